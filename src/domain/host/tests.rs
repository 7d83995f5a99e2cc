//! Rules of hosts; their places in a file are tested with the configuration.

use super::{HostSpec, check_host_name, check_root};

#[test]
fn names_cannot_be_options_or_hold_anything_odd() {
    for good in ["local", "CoulombCore", "a.b-c_d", "10.0.0.1", "9"] {
        assert!(check_host_name(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "-oProxyCommand=x",
        ".a",
        "a b",
        "a;b",
        "a\n",
        "a@b",
        "ä",
        "a/b",
        "a:1",
        &"h".repeat(10_000),
    ] {
        assert!(check_host_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn roots_are_below_something() {
    for good in ["~/sandboxes", "/build", "/srv/sandboxes/", "~/a b", "/srv/a, \"b\""] {
        assert!(check_root(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "/",
        "//",
        "~",
        "~/",
        "~/.",
        "sandboxes",
        "~ops/x",
        "/a/../..",
        "/a\nb",
        "$HOME/x",
        "/a:b",
        "~/a:b",
    ] {
        assert!(check_root(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_target_is_what_ssh_gets() {
    assert_eq!(HostSpec::local().ssh_target(), None);
    assert_eq!(HostSpec::named("alias").ssh_target(), Some("alias"));
    let named = HostSpec { ssh: Some("ops@far".to_owned()), ..HostSpec::named("alias") };
    assert_eq!(named.ssh_target(), Some("ops@far"));
}

#[test]
fn however_a_machine_is_spelled_it_is_the_same_machine() {
    let cases = [
        ("box", "box"),
        ("ops@box", "box"),
        ("a@b@box", "box"),
        ("ssh://box", "box"),
        ("ssh://ops@box:2222", "box"),
        ("ssh://ops@[::1]:22", "::1"),
        ("fe80::1", "fe80::1"),
    ];
    for (ssh, host) in cases {
        let spec = HostSpec { ssh: Some(ssh.to_owned()), ..HostSpec::named("other") };
        assert_eq!(spec.ssh_host(), Some(host), "{ssh}");
    }
    assert_eq!(HostSpec::named("box").ssh_host(), Some("box"));
    assert_eq!(HostSpec::local().ssh_host(), None);
}
