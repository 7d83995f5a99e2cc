//! Files, variables and flags, and which of them wins.

mod hub;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::sections::Theme;
use super::{Config, Environment, Notify, Overrides, Paths};
use crate::domain::error::{Code, Error};
use crate::domain::hub::HubFormat;
use crate::domain::profile::{Bytes, Seconds};

/// A home with a configuration.
struct Home {
    dir: TempDir,
}

impl Home {
    fn new(config: impl AsRef<[u8]>) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(home.path(".config/sandboxer")).unwrap();
        fs::write(home.path(".config/sandboxer/config.yaml"), config).unwrap();
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn environment(&self) -> Environment {
        Environment::from_pairs([("HOME", self.dir.path())])
    }

    fn load(&self) -> Result<Config, Error> {
        Config::load(&Overrides::default(), &self.environment())
    }

    fn refusal(&self) -> String {
        let error = self.load().unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig);
        error
            .message
            .replace(&self.dir.path().display().to_string(), "~")
            .replace("~/.config/sandboxer/", "")
    }
}

const WHOLE: &str = "
hosts:
  coulombcore:
    ssh: ops@coulombcore
    ssh_config: ~/.ssh/lab
    workspace_root: ~/boxes
    compose_cmd: podman-compose
    max_sandboxes: 30
    labels: {zone: home}
    limits: {disk_used_pct: 80, load_per_core: 2}
    login_hint: run ops-warden renew
    reach: {command: [ops-bridge, attach]}
  railiance01: {forbid: production}
  bare:
default_host: coulombcore
default_profile: profile.compose-e2e
state_hub: {url: 'http://127.0.0.1:8787/events', token_env: STATE_HUB_TOKEN, format: plain}
undo: {window: 12h, max_bytes: 2GiB, max_total: 6GiB}
stale: {failed_after: 1h, grace: 90s}
sweep: {interval: 10s, reap: false}
serve: {max_upload: 1GiB, input_roots: [~/src, /srv]}
dashboard: {theme: dark, keys: {destroy: ctrl-x}, refresh: 5s, notify: osc9, utc: true}
";

#[test]
fn every_key_is_read() {
    let home = Home::new(WHOLE);
    let config = home.load().unwrap();
    let names: Vec<&str> = config.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["local", "coulombcore", "railiance01", "bare"]);
    let core = config.host("CoulombCore").unwrap();
    assert_eq!(core.ssh_target(), Some("ops@coulombcore"));
    assert_eq!(core.ssh_config, Some(home.path(".ssh/lab")));
    assert_eq!(
        (core.workspace_root.as_str(), core.compose_cmd.as_deref()),
        ("~/boxes", Some("podman-compose"))
    );
    assert_eq!((core.max_sandboxes, core.labels["zone"].as_str()), (Some(30), "home"));
    assert_eq!(
        serde_json::to_value(&core.limits).unwrap().to_string(),
        r#"{"disk_used_pct":80.0,"mem_used_pct":90.0,"load_per_core":2.0}"#
    );
    assert_eq!(core.login_hint.as_deref(), Some("run ops-warden renew"));
    assert_eq!(core.reach.as_ref().unwrap().command, ["ops-bridge", "attach"]);
    assert!(config.host("railiance01").unwrap().is_forbidden());
    assert_eq!(config.host("bare").unwrap().ssh_target(), Some("bare"));
    assert_eq!(
        (config.default_host.as_str(), config.default_profile.as_str()),
        ("coulombcore", "profile.compose-e2e")
    );
    let hub = config.state_hub.unwrap();
    assert_eq!(
        (hub.url.as_str(), hub.token_env.as_deref(), hub.format),
        ("http://127.0.0.1:8787/events", Some("STATE_HUB_TOKEN"), HubFormat::Plain)
    );
    assert_eq!(
        (config.undo.window, config.undo.max_bytes, config.undo.max_total),
        (Seconds::hours(12), Bytes::gib(2), Bytes::gib(6))
    );
    assert_eq!((config.stale.failed_after, config.stale.grace), (Seconds::hours(1), Seconds(90)));
    assert_eq!((config.sweep.interval, config.sweep.reap), (Seconds(10), false));
    assert_eq!(
        (config.serve.max_upload, &config.serve.input_roots),
        (Bytes::gib(1), &vec![home.path("src"), PathBuf::from("/srv")])
    );
    assert_eq!(
        (config.dashboard.theme, config.dashboard.notify, config.dashboard.refresh),
        (Theme::Dark, Notify::Osc9, Seconds(5))
    );
    assert!(config.dashboard.utc);
    assert_eq!(config.dashboard.keys["destroy"], "ctrl-x");
}

#[test]
fn without_a_file_the_defaults_hold() {
    for home in [Home::new(""), Home::new("# nothing yet\n"), Home::new("---\n")] {
        let config = home.load().unwrap();
        assert_eq!(config.hosts.len(), 1);
        assert_eq!(
            (config.default_host.as_str(), config.default_profile.as_str()),
            ("local", "profile.sandbox-canary")
        );
        assert_eq!(
            (config.undo.window, config.undo.max_bytes, config.undo.max_total),
            (Seconds::hours(24), Bytes::gib(1), Bytes::gib(5))
        );
        assert_eq!(
            (config.sweep.interval, config.sweep.reap, config.stale.grace),
            (Seconds(5), true, Seconds(60))
        );
        assert_eq!((config.state_hub, config.serve.max_upload), (None, Bytes::gib(2)));
        fs::remove_file(home.path(".config/sandboxer/config.yaml")).unwrap();
        assert!(home.load().is_ok());
    }
}

#[test]
fn mistakes_have_their_place() {
    for (file, wanted) in [
        ("hots: {}\n", "config.yaml:1:1: unknown key 'hots', did you mean 'hosts'?"),
        ("hosts:\n  a:\n    shh: x\n", "config.yaml:3:5: unknown key 'shh', did you mean 'ssh'?"),
        (
            "hosts:\n  a: {forbiden: production}\n",
            "config.yaml:2:7: unknown key 'forbiden', did you mean 'forbid'?",
        ),
        ("hosts:\n  a: x\n", "config.yaml:2:6: 'hosts.a' must be a mapping, not a text"),
        ("hosts: [a]\n", "config.yaml:1:8: 'hosts' must be a mapping, not a list"),
        ("hosts:\n  a: {}\n  a: {}\n", "config.yaml:3:3: duplicate key 'a', first set at line 2"),
        (
            "hosts:\n  Core: {}\n  core: {}\n",
            "config.yaml:3:3: host 'core' is 'Core' again: host names are compared without case",
        ),
        (
            "hosts:\n  a b: {}\n",
            "config.yaml:2:3: 'a b' is not a host's name: letters, digits, '.', '_' and '-', beginning with a letter or digit",
        ),
        (
            "hosts:\n  local: {ssh: x}\n",
            "config.yaml:2:16: the host 'local' is this machine and has no 'ssh'",
        ),
        (
            "hosts:\n  a.b: {ssh: -oProxyCommand=x}\n",
            "config.yaml:2:14: '-oProxyCommand=x' is not a host that ssh takes",
        ),
        (
            "hosts:\n  a: {workspace_root: /}\n",
            "config.yaml:2:23: '/' is no place for sandboxes: name a directory below it",
        ),
        (
            "hosts:\n  a: {limits: {disk_used_pct: 900}}\n",
            "config.yaml:2:31: 'disk_used_pct' is above 0 and at most 100",
        ),
        (
            "hosts:\n  a: {limits: {load_per_core: .nan}}\n",
            "config.yaml:2:31: a number must be finite",
        ),
        (
            "hosts:\n  a: {max_sandboxes: 0}\n",
            "config.yaml:2:22: 'max_sandboxes' is at least 1; write forbid: with a reason to use no host",
        ),
        (
            "hosts:\n  a: {ssh_config: ~bob/x}\n",
            "config.yaml:2:19: '~bob/x': another account's home is not looked up, write the whole path",
        ),
        (
            "hosts:\n  a: {reach: {command: []}}\n",
            "config.yaml:2:24: 'command' names a program and its arguments",
        ),
        (
            "hosts: {a: {forbid: production}}\ndefault_host: A\n",
            "config.yaml:2:15: the host 'A' is forbidden",
        ),
        (
            "undo: {window: 24}\n",
            "config.yaml:1:16: '24' has no unit: write for example 24s, 24m or 24h",
        ),
        (
            "undo: {max_bytes: 9GiB}\n",
            "config.yaml:1:19: 'max_bytes' (9GiB) is above 'max_total' (5GiB)",
        ),
        (
            "undo: {max_total: big}\n",
            "config.yaml:1:19: 'big' is not a size: write for example 512MiB or 2GiB",
        ),
        ("sweep: {interval: 0s}\n", "config.yaml:1:19: 'interval' is 1s to 1h"),
        (
            "sweep: {reap: no}\n",
            "config.yaml:1:15: 'sweep.reap' must be true or false, not 'no', did you mean 'false'?",
        ),
        (
            "dashboard: {theme: drak}\n",
            "config.yaml:1:20: 'drak' is not one of terminal, dark, light, high-contrast, mono, did you mean 'dark'?",
        ),
        (
            "dashboard: {notify: beep}\n",
            "config.yaml:1:21: 'beep' is not one of bell, osc9, none, did you mean 'bell'?",
        ),
        ("- a\n", "config.yaml:1:1: the file must be a mapping, not a list"),
    ] {
        assert_eq!(Home::new(file).refusal(), wanted, "{file}");
    }
    let two = Home::new("hots: {}\nundo: {windw: 1h}\n");
    assert_eq!(
        two.refusal(),
        "config.yaml:1:1: unknown key 'hots', did you mean 'hosts'? (and 1 more)"
    );
    assert_eq!(two.load().unwrap_err().details["problems"][1]["line"], 2);
}

#[test]
fn a_later_layer_can_point_into_the_file() {
    let config = Home::new("dashboard:\n  keys:\n    destroy: ctrl-zz\n").load().unwrap();
    let error = config.error_at("dashboard.keys.destroy", "'ctrl-zz' is not a key");
    assert!(
        error.message.ends_with("config.yaml:3:14: 'ctrl-zz' is not a key"),
        "{}",
        error.message
    );
}

#[test]
fn hostile_files_are_refused() {
    assert_eq!(
        Home::new(b"hosts: \xff\n").refusal(),
        "config.yaml:1:8: the file is not UTF-8 text"
    );
    assert_eq!(Home::new(vec![b'#'; 2 << 20]).refusal(), "config.yaml: the file is over 1 MiB");
    assert_eq!(Home::new("a: \0\n").refusal(), "config.yaml:1:4: the file holds a NUL character");
    let home = Home::new("");
    let file = home.path(".config/sandboxer/config.yaml");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/nonexistent/target", &file).unwrap();
    assert_eq!(
        home.refusal(),
        "config.yaml: the file cannot be read: No such file or directory (os error 2)"
    );
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(home.refusal(), "config.yaml: this is a directory, not a file");
}

#[test]
fn a_file_or_directory_that_was_named_must_exist() {
    let home = Home::new("");
    let missing = home.path("missing");
    let by_flag = Overrides { config: Some(missing.clone()), ..Overrides::default() };
    let by_variable = Environment::from_pairs([
        ("HOME", home.dir.path()),
        ("SANDBOXER_CONFIG", missing.as_path()),
    ]);
    let faults = [
        Config::load(&by_flag, &home.environment()).unwrap_err(),
        Config::load(&Overrides::default(), &by_variable).unwrap_err(),
    ];
    for error in faults {
        assert_eq!(
            error.message,
            format!("the configuration file {} does not exist", missing.display())
        );
    }
    let by_flag = Overrides { profiles_dir: Some(missing.clone()), ..Overrides::default() };
    let error = Config::load(&by_flag, &home.environment()).unwrap_err();
    assert_eq!(
        error.message,
        format!("--profiles-dir names {}, which is not a directory", missing.display())
    );
}

fn paths(overrides: &Overrides, pairs: &[(&str, &str)]) -> Paths {
    Paths::resolve(overrides, &Environment::from_pairs(pairs.iter().copied())).unwrap()
}

#[test]
fn base_directories_are_honoured_and_relative_ones_ignored() {
    let none = Overrides::default();
    let plain = paths(&none, &[("HOME", "/h")]);
    assert_eq!(plain.config_file, Path::new("/h/.config/sandboxer/config.yaml"));
    assert_eq!(plain.profiles_dir, Path::new("/h/.config/sandboxer/profiles"));
    assert_eq!(plain.extensions_dir, Path::new("/h/.config/sandboxer/extensions"));
    assert_eq!(plain.data_dir, Path::new("/h/.local/share/sandboxer"));
    assert_eq!(plain.log_file, Path::new("/h/.local/state/sandboxer/sandboxer.log"));
    assert_eq!((plain.runtime_dir.as_deref(), plain.config_named), (None, false));
    let xdg = [
        ("HOME", "/h"),
        ("XDG_CONFIG_HOME", "/c"),
        ("XDG_DATA_HOME", "/d"),
        ("XDG_STATE_HOME", "/s"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
    ];
    let moved = paths(&none, &xdg);
    assert_eq!(moved.config_file, Path::new("/c/sandboxer/config.yaml"));
    assert_eq!(moved.data_dir, Path::new("/d/sandboxer"));
    assert_eq!(moved.log_file, Path::new("/s/sandboxer/sandboxer.log"));
    assert_eq!(moved.runtime_dir.as_deref(), Some(Path::new("/run/user/7")));
    let odd = [
        ("HOME", "/h"),
        ("XDG_CONFIG_HOME", "c"),
        ("XDG_DATA_HOME", ""),
        ("XDG_STATE_HOME", "./s"),
    ];
    assert_eq!(paths(&none, &odd), plain);
}

#[test]
fn flags_win_over_variables() {
    let variables =
        [("HOME", "/h"), ("SANDBOXER_CONFIG", "/v/c.yaml"), ("SANDBOXER_DATA_DIR", "/v/data")];
    let by_variable = paths(&Overrides::default(), &variables);
    assert_eq!(
        (by_variable.config_file.as_path(), by_variable.data_dir.as_path()),
        (Path::new("/v/c.yaml"), Path::new("/v/data"))
    );
    assert!(by_variable.config_named);
    let flags = Overrides {
        config: Some("f.yaml".into()),
        data_dir: Some("/f/data".into()),
        ..Overrides::default()
    };
    let by_flag = paths(&flags, &variables);
    assert_eq!(
        (by_flag.config_file.as_path(), by_flag.data_dir.as_path()),
        (Path::new("f.yaml"), Path::new("/f/data"))
    );
}

#[test]
fn without_a_home_the_flags_are_named() {
    for (home, start) in [
        (None, "HOME is not set"),
        (Some(""), "HOME is not set"),
        (Some("rel"), "HOME is not an absolute path"),
    ] {
        let environment = Environment::from_pairs(home.map(|home| ("HOME", home)));
        let error = Paths::resolve(&Overrides::default(), &environment).unwrap_err();
        assert_eq!(
            error.message,
            format!("{start}, so it is not known where sandboxer's files are")
        );
        assert_eq!(
            error.hint.as_deref(),
            Some(
                "set HOME, or pass --config, --profiles-dir, --extensions-dir, --data-dir, --log-file"
            )
        );
        let some = Overrides {
            data_dir: Some("/d".into()),
            log_file: Some("/l".into()),
            ..Overrides::default()
        };
        let error = Paths::resolve(&some, &environment).unwrap_err();
        assert_eq!(
            error.hint.as_deref(),
            Some("set HOME, or pass --config, --profiles-dir, --extensions-dir")
        );
        let bases = [("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d"), ("XDG_STATE_HOME", "/s")];
        assert!(Paths::resolve(&Overrides::default(), &Environment::from_pairs(bases)).is_ok());
    }
}

#[test]
fn variables_of_ours_are_carried_and_empty_ones_are_not_set() {
    let home = Home::new("");
    let pairs = |extra: &[(&str, &str)]| {
        let home = ("HOME".to_owned(), home.dir.path().display().to_string());
        let extra = extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment::from_pairs(std::iter::once(home).chain(extra))
    };
    let environment = pairs(&[
        ("SANDBOXER_ACTOR", "agt:runner"),
        ("SANDBOXER_HOST", "CoulombCore"),
        ("SANDBOXER_COMPOSE_CMD", "podman-compose"),
        ("SANDBOXER_LOG", "debug"),
        ("USER", "kay"),
    ]);
    let config = Config::load(&Overrides::default(), &environment).unwrap();
    assert_eq!(
        (config.actor.as_deref(), config.user.as_deref()),
        (Some("agt:runner"), Some("kay"))
    );
    assert_eq!(config.requested_host.unwrap().as_str(), "CoulombCore");
    assert_eq!(
        (config.compose_cmd.as_deref(), config.log_filter.as_deref()),
        (Some("podman-compose"), Some("debug"))
    );
    let flag = Overrides { actor: Some("adm:lee".to_owned()), ..Overrides::default() };
    assert_eq!(Config::load(&flag, &environment).unwrap().actor.as_deref(), Some("adm:lee"));
    let empty = pairs(&[("SANDBOXER_ACTOR", ""), ("SANDBOXER_HOST", ""), ("SANDBOXER_CONFIG", "")]);
    let config = Config::load(&Overrides::default(), &empty).unwrap();
    assert_eq!((config.actor, config.requested_host), (None, None));
    let error =
        Config::load(&Overrides::default(), &pairs(&[("SANDBOXER_HOST", "-x")])).unwrap_err();
    assert!(
        error.message.starts_with("SANDBOXER_HOST: '-x' is not a host's name"),
        "{}",
        error.message
    );
}

#[test]
fn local_may_be_configured_and_keeps_its_place() {
    let config =
        Home::new("hosts:\n  a: {}\n  Local: {workspace_root: /srv/boxes, max_sandboxes: 3}\n")
            .load()
            .unwrap();
    assert_eq!(config.hosts.len(), 2);
    let local = config.host("local").unwrap();
    assert_eq!((local.workspace_root.as_str(), local.ssh_target()), ("/srv/boxes", None));
}

#[test]
fn a_relative_local_path_stands_beside_the_file() {
    let home = Home::new("hosts: {a: {ssh_config: ssh/lab}}\n");
    assert_eq!(
        home.load().unwrap().host("a").unwrap().ssh_config,
        Some(home.path(".config/sandboxer/ssh/lab"))
    );
}

#[test]
fn values_of_the_environment_are_not_printed() {
    let environment = Environment::from_pairs([("SANDBOXER_TOKEN", "secret")]);
    assert_eq!(format!("{environment:?}"), "{\"SANDBOXER_TOKEN\"}");
}

#[test]
fn a_host_is_forbidden_with_or_without_a_reason() {
    let without = Some("no reason is given");
    for (host, reason) in [
        ("{forbid: }", without),
        ("{forbid: ~, ssh: }", without),
        ("\n    forbid:", without),
        ("\n    forbid: null", without),
        ("\n    forbid: production", Some("production")),
        ("{ssh: b}", None),
    ] {
        let config = Home::new(format!("hosts:\n  a: {host}\n")).load().unwrap();
        let spec = config.host("a").unwrap();
        assert_eq!(
            (spec.forbid.as_deref(), spec.is_forbidden()),
            (reason, reason.is_some()),
            "{host}"
        );
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused_and_not_ignored() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let home = Home::new("");
    for name in ["SANDBOXER_ACTOR", "SANDBOXER_HOST", "SANDBOXER_COMPOSE_CMD"] {
        let odd = OsString::from_vec(b"agt:x\xff".to_vec());
        let environment = Environment::from_pairs([("HOME", home.dir.path().into()), (name, odd)]);
        let error = Config::load(&Overrides::default(), &environment).unwrap_err();
        assert_eq!(error.code, Code::Usage, "{name}");
        assert!(error.message.contains(name), "{}", error.message);
    }
}
