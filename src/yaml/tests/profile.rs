//! Rules of profiles: what they may say, what a create may give.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::domain::error::Code;
use crate::domain::profile::{
    Allowance, Bytes, Compose, InputKind, PortPolicy, Profile, Seconds, write_canonical,
};
use crate::domain::text::hex;
use crate::yaml::read_profile;

const HEAD: &str = "id: profile.x\nversion: 1.0.0\nextension: ext.compose-ssh\n";

fn profile(rest: &str) -> Profile {
    read_profile("x.yaml", &format!("{HEAD}{rest}")).unwrap()
}

fn refusal(rest: &str) -> String {
    let problems = read_profile("x.yaml", &format!("{HEAD}{rest}")).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn durations_read_and_print() {
    for (text, seconds, shown) in [
        ("90s", 90, "1m30s"),
        ("4h", 14_400, "4h"),
        ("1h30m", 5_400, "1h30m"),
        ("1h 30m", 5_400, "1h30m"),
        ("2d", 172_800, "2d"),
        ("1w", 604_800, "7d"),
        ("0s", 0, "0s"),
        ("0", 0, "0s"),
        (" 5m ", 300, "5m"),
        ("300 seconds", 300, "5m"),
    ] {
        let read: Seconds = text.parse().unwrap();
        assert_eq!((read.get(), read.to_string().as_str()), (seconds, shown), "{text}");
        assert_eq!(read.to_string().parse::<Seconds>().unwrap(), read);
    }
    for bad in [
        "", "4", "h", "-1h", "4x", "1y", "1mo", "1.5s", "4h ago", "PT4H", "none", "1:30", "4H\n5",
        "١h",
    ] {
        assert!(bad.parse::<Seconds>().is_err(), "{bad}");
    }
    assert!("9".repeat(10_000).parse::<Seconds>().is_err());
    for (long, shown) in [
        ("99999999999999999999h", "99999999999999999999h"),
        ("4000d", "4000d"),
        ("9999999d", "9999999d"),
        ("1m 9999999999s", "1m 9999999999s"),
        ("1d 99999999999999m", "1d 99999999999999m"),
    ] {
        let error = long.parse::<Seconds>().unwrap_err().to_string();
        assert_eq!(error, format!("'{shown}' is longer than ten years"));
    }
    let garbled = "99999999999999999999q".parse::<Seconds>().unwrap_err().to_string();
    assert!(garbled.contains("is not a duration"), "{garbled}");
}

#[test]
fn sizes_read_and_print() {
    for (text, bytes, shown) in [
        ("1GiB", 1 << 30, "1GiB"),
        ("500MB", 500_000_000, "476.8MiB"),
        ("1.5GiB", 3 << 29, "1.5GiB"),
        ("2 gib", 2 << 30, "2GiB"),
        ("1024", 1024, "1KiB"),
        ("1048575", (1 << 20) - 1, "1.0MiB"),
        ("7B", 7, "7B"),
        ("0", 0, "0B"),
    ] {
        let read: Bytes = text.parse().unwrap();
        assert_eq!((read.get(), read.to_string().as_str()), (bytes, shown), "{text}");
    }
    for bad in ["", "GiB", "-1", "1e3", "1.2.3GiB", "1XiB", "99999999999TiB", "1GiB\0", "1,5GiB"] {
        assert!(bad.parse::<Bytes>().is_err(), "{bad}");
    }
}

#[test]
fn defaults_are_the_contracts() {
    let profile = profile("");
    assert_eq!(profile.ttl, Some(Seconds::hours(4)));
    assert_eq!(
        (profile.max_ttl, profile.ready_timeout, profile.stop_grace),
        (None, Seconds(180), Seconds(2))
    );
    assert_eq!(profile.settle, Seconds(2));
    assert_eq!(
        (profile.patches.timeout, profile.patches.pass_timeout),
        (Seconds(300), Seconds(600))
    );
    assert!(!profile.undo);
    assert_eq!(self::profile("ttl: none\n").ttl, None);
    assert_eq!(self::profile("max_ttl: 1h\n").ttl, Some(Seconds::hours(1)));
}

/// Lines after the head of a profile, and what is said of them.
const MEANINGLESS: &[(&str, &str)] = &[
    ("ttl: 2d\nmax_ttl: 1d\n", "x.yaml:4:6: 'ttl' (2d) is above 'max_ttl' (1d)"),
    ("ttl: none\nmax_ttl: 1d\n", "x.yaml:4:6: 'ttl' cannot be none where 'max_ttl' (1d) is set"),
    ("ttl: 0s\n", "x.yaml:4:6: 'ttl' must be above 0; write none for a sandbox without end"),
    ("ttl: 0\n", "x.yaml:4:6: 'ttl' must be above 0; write none for a sandbox without end"),
    ("ttl: 1h\nmax_ttl: 0\n", "x.yaml:5:10: 'max_ttl' must be above 0"),
    ("settle: 11m\n", "x.yaml:4:9: 'settle' is at most 10m"),
    ("stop_grace: 11m\n", "x.yaml:4:13: 'stop_grace' is at most 10m"),
    ("ready_timeout: 0s\n", "x.yaml:4:16: 'ready_timeout' is 1s to 24h"),
    ("ready_timeout: 25h\n", "x.yaml:4:16: 'ready_timeout' is 1s to 24h"),
    ("patches: {timeout: 20m}\n", "x.yaml:4:10: 'pass_timeout' (10m) is below 'timeout' (20m)"),
    ("placement: {hosts: [a, b, A]}\n", "x.yaml:4:27: host 'A' is named twice"),
    (
        "placement: {hosts: ['-oProxyCommand=x']}\n",
        "x.yaml:4:21: '-oProxyCommand=x' is not a host's name: letters, digits, '.', '_' and '-', beginning with a letter or digit",
    ),
    (
        "placement: {strategy: first}\n",
        "x.yaml:4:23: 'first' is not one of first-available, least-loaded, did you mean 'first-available'?",
    ),
    (
        "compose: {ports: publik}\n",
        "x.yaml:4:18: 'publik' is not one of ephemeral, public, keep, did you mean 'public'?",
    ),
    (
        "compose: {allow: [privilegd]}\n",
        "x.yaml:4:19: 'privilegd' is not one of privileged, host-network, bind-mounts, external, devices, builds, did you mean 'privileged'?",
    ),
    (
        "inputs: {a-b: {}}\n",
        "x.yaml:4:15: the input name 'a-b' is not a-z, 0-9 and '_', beginning with a letter",
    ),
    (
        "inputs: {sandbox_id: {}}\n",
        "x.yaml:4:22: the input 'sandbox_id' exists in every profile and cannot be declared",
    ),
    (
        "inputs: {a: {kind: dirctory}}\n",
        "x.yaml:4:20: 'dirctory' is not one of string, directory, integer, boolean, choice, did you mean 'directory'?",
    ),
    ("inputs: {a: {kind: choice}}\n", "x.yaml:4:13: input 'a' of kind choice needs 'choices'"),
    (
        "inputs: {a: {choices: [x]}}\n",
        "x.yaml:4:23: input 'a' has 'choices' but is not of kind choice",
    ),
    (
        "inputs: {a: {kind: choice, choices: [eu, us], default: ue}}\n",
        "x.yaml:4:56: the default of input 'a' must be one of eu, us, not 'ue', did you mean 'eu'?",
    ),
    (
        "inputs: {a: {kind: integer, default: x1}}\n",
        "x.yaml:4:38: the default of input 'a' must be a whole number, not 'x1'",
    ),
    (
        "inputs: {a: {required: true, default: x}}\n",
        "x.yaml:4:39: input 'a' is required, so its default never applies",
    ),
    (
        "inputs: {a: {default: 1.10}}\n",
        "x.yaml:4:23: 'inputs.a.default' must be a text, not a number; put it in quotes",
    ),
    ("inputs: [a]\n", "x.yaml:4:9: 'inputs' must be a mapping, not a list"),
    ("config: {root: /a/../..}\n", "x.yaml:4:16: '/a/../..' must not hold '..'"),
    ("config: [1]\n", "x.yaml:4:9: 'config' must be a mapping, not a list"),
    ("snapshot: {keep: 0}\n", "x.yaml:4:18: 'keep' is at least 1, or null to keep all"),
    ("sync: {exclude: ['']}\n", "x.yaml:4:18: a pattern is one line and not empty"),
];

#[test]
fn meaning_is_checked_with_its_place() {
    for (rest, wanted) in MEANINGLESS {
        assert_eq!(refusal(rest), *wanted, "{rest}");
    }
    let ids = [
        "x",
        "profile.",
        "profile.-x",
        "profile.X",
        "profile.a b",
        "profile.a/../b",
        "prof\u{fc}l.x",
    ];
    for id in ids.map(str::to_owned).into_iter().chain([format!("profile.{}", "x".repeat(10_000))])
    {
        let source = format!("id: '{id}'\nversion: 1.0.0\nextension: ext.x\n");
        let problems = read_profile("x.yaml", &source).unwrap_err();
        let text = problems[0].to_string();
        assert!(
            text.starts_with("x.yaml:1:5: ")
                && text.ends_with("is not 'profile.' and a name of a-z, 0-9 and '-'"),
            "{text}"
        );
        assert!(text.len() < 300);
    }
}

#[test]
fn numbers_and_truth_are_defaults_of_their_kinds() {
    let profile = profile(
        "inputs: {port: {kind: integer, default: 8080}, fast: {kind: boolean, default: true}}\n",
    );
    assert_eq!(profile.inputs.get("port").unwrap().default.as_deref(), Some("8080"));
    assert_eq!(profile.inputs.get("fast").unwrap().default.as_deref(), Some("true"));
}

#[test]
fn json_has_integer_seconds_the_files_order_and_reads_back() {
    let profile = profile(
        "ttl: 1h\nmax_ttl: 2h\ninputs: {zeta: {}, alpha: {kind: boolean}}\nrouting: {max_cost_usd: 0.1}\n",
    );
    let json = serde_json::to_value(&profile).unwrap();
    assert_eq!((json["ttl_s"].as_u64(), json["max_ttl_s"].as_u64()), (Some(3600), Some(7200)));
    assert_eq!(json["ready_timeout_s"], 180);
    assert_eq!(json["settle_s"], 2);
    assert_eq!(json["stop_grace_s"], 2);
    assert_eq!(
        (json["patches"]["timeout_s"].as_u64(), json["patches"]["pass_timeout_s"].as_u64()),
        (Some(300), Some(600))
    );
    assert_eq!(json["inputs"].as_object().unwrap().keys().collect::<Vec<_>>(), ["zeta", "alpha"]);
    let back: Profile = serde_json::from_str(&json.to_string()).unwrap();
    assert_eq!(back, profile);
    assert_eq!(back.hash(), profile.hash());
    // A reader takes a newer version's fields and words.
    let mut newer = json;
    newer["new_field"] = 1.into();
    newer["placement"]["strategy"] = "by-moon".into();
    assert_eq!(
        serde_json::from_value::<Profile>(newer).unwrap().placement.strategy.as_str(),
        "by-moon"
    );
}

#[test]
fn the_hash_follows_the_content_and_not_the_layout() {
    let one = profile("undo: true\nconfig: {a: 1, b: {c: 2, d: 3}}\n");
    let other = profile("# a comment\nconfig:\n  b: {d: 3, c: 2}\n  a: 1\nundo:   true\n");
    assert_eq!(one.hash(), other.hash());
    assert_eq!(one.hash().len(), 64);
    assert!(one.hash().chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase()));
    assert_ne!(one.hash(), profile("undo: false\nconfig: {a: 1, b: {c: 2, d: 3}}\n").hash());
}

#[test]
fn a_profile_that_was_kept_before_settle_was_known_reads_as_the_usual_one_under_its_old_hash() {
    let today = profile("ttl: 1h\n");
    let mut kept = serde_json::to_value(&today).unwrap();
    kept.as_object_mut().unwrap().remove("settle_s");
    let mut text = String::new();
    write_canonical(&kept, &mut text);
    let kept: Profile = serde_json::from_value(kept).unwrap();
    assert_eq!((kept.settle, kept.hash()), (Seconds(2), hex(&Sha256::digest(text.as_bytes()))));
    assert_eq!(profile("ttl: 1h\nsettle: 2s\n").hash(), kept.hash());
    assert_ne!(profile("ttl: 1h\nsettle: 0s\n").hash(), kept.hash());
}

#[test]
fn a_profile_without_routing_has_the_hash_that_it_always_had() {
    // Of the versions before candidates were looked at.
    assert_eq!(
        profile("ttl: 1h\n").hash(),
        "2df5931bf200bb9a452201b664720c056d857d2683ece2073881e2d7aa1aa56a"
    );
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const INPUTS: &str = "inputs:
  repo: {required: true, kind: directory, help: Repository to deploy}
  compose_file: {default: docker-compose.yml}
  port: {kind: integer}
  fast: {kind: boolean}
  region: {kind: choice, choices: [eu, us]}
";

#[test]
fn inputs_are_checked_and_filled_in() {
    let profile = profile(INPUTS);
    let resolved = profile
        .check_inputs(&given(&[("repo", "."), ("sandbox_id", "e2e-1"), ("fast", "true")]))
        .unwrap();
    assert_eq!(
        resolved,
        given(&[("compose_file", "docker-compose.yml"), ("fast", "true"), ("repo", ".")])
    );
    let value = "v".repeat(4096);
    assert!(profile.check_inputs(&given(&[("repo", "."), ("compose_file", &value)])).is_ok());
    assert_eq!(profile.inputs.get("port").unwrap().kind, InputKind::Integer);
}

#[test]
fn every_refused_input_is_named_at_once() {
    let profile = profile(INPUTS);
    let long = "v".repeat(4097);
    let problems = profile
        .check_inputs(&given(&[
            ("compose_fil", "x"),
            ("compose_file", &long),
            ("fast", "yes"),
            ("port", "80 80"),
            ("region", "ue"),
            ("zzzzzz", "1"),
        ]))
        .unwrap_err();
    let shown: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect();
    assert_eq!(
        shown,
        [
            "compose_fil: unknown input 'compose_fil', did you mean 'compose_file'?",
            "compose_file: input 'compose_file' is 4097 bytes long, at most 4096 are allowed",
            "fast: input 'fast' must be true or false, not 'yes'",
            "port: input 'port' must be a whole number, not '80 80'",
            "region: input 'region' must be one of eu, us, not 'ue', did you mean 'eu'?",
            "zzzzzz: unknown input 'zzzzzz'; profile.x takes repo, compose_file, port, fast, region",
            "repo: input 'repo' is required by profile.x (Repository to deploy)",
        ]
    );
    let problems =
        profile.check_inputs(&given(&[("repo", ""), ("compose_file", "a\0b")])).unwrap_err();
    assert_eq!(problems[0].message, "input 'compose_file' holds a NUL character");
    assert_eq!(problems[1].message, "input 'repo' must name a directory");
    let none = self::profile("").check_inputs(&given(&[("repo", ".")])).unwrap_err();
    assert_eq!(none[0].message, "unknown input 'repo'; profile.x takes no inputs");
}

#[test]
fn a_time_to_live_is_refused_by_rule() {
    let bounded = profile("ttl: 1h\nmax_ttl: 1d\n");
    assert_eq!(bounded.parse_ttl(None).unwrap(), Some(Seconds::hours(1)));
    assert_eq!(bounded.parse_ttl(Some("1d")).unwrap(), Some(Seconds::hours(24)));
    for (asked, message) in [
        ("none", "profile.x allows at most 1d, so 'none' is refused"),
        ("25h", "1d1h is above the 1d that profile.x allows"),
        ("0s", "a sandbox cannot live for 0 seconds"),
        ("0", "a sandbox cannot live for 0 seconds"),
        ("0h0m", "a sandbox cannot live for 0 seconds"),
        ("20000000h", "'20000000h' is longer than ten years"),
        ("soon", "'soon' is not a duration: write for example 90s, 30m, 1h30m or 2d"),
    ] {
        let problem = bounded.parse_ttl(Some(asked)).unwrap_err();
        assert_eq!((problem.code, problem.message.as_str()), (Code::InvalidInput, message));
        assert_eq!(problem.details["field"], "ttl");
    }
    assert_eq!(profile("").parse_ttl(Some("none")).unwrap(), None);
    // A profile that was pinned or imported is judged as what is asked for is.
    for (ttl, max_ttl) in [
        (Some(Seconds(0)), None),
        (Some(Seconds(0)), Some(Seconds(60))),
        (None, Some(Seconds(60))),
        (Some(Seconds(61)), Some(Seconds(60))),
        (Some(Seconds(1)), Some(Seconds(0))),
    ] {
        let foreign = Profile { ttl, max_ttl, ..profile("") };
        assert_eq!(foreign.parse_ttl(None).unwrap_err().details["field"], "ttl");
    }
}

#[test]
fn a_profile_from_outside_may_not_ask_for_more_than_the_operators() {
    let known = "ttl: 4h\nmax_ttl: 1d\nundo: true\nstop_grace: 2s\ncompose: {allow: [devices]}\n\
        snapshot: {keep: 5, exclude: [secrets]}\nconfig: {root: /build}\n";
    let known = profile(known);
    // As it is, and with less.
    let less = [
        known.clone(),
        Profile { ttl: Some(Seconds::hours(1)), max_ttl: Some(Seconds::hours(1)), ..known.clone() },
        Profile { compose: Compose::default(), config: serde_json::json!({}), ..known.clone() },
    ];
    for pinned in less {
        assert_eq!(pinned.widens(Some(&known)), Vec::<String>::new());
    }
    let with = |change: &dyn Fn(&mut Profile)| {
        let mut pinned = known.clone();
        change(&mut pinned);
        pinned.widens(Some(&known))
    };
    let ports = |ports: PortPolicy| with(&|pinned| pinned.compose.ports = ports.clone());
    assert_eq!(ports(PortPolicy::Public), ["has the ports public"]);
    assert_eq!(ports(PortPolicy::Keep), ["has the ports keep"]);
    assert_eq!(
        with(&|pinned| pinned.compose.allow = vec![Allowance::Devices, Allowance::Privileged]),
        ["allows privileged"]
    );
    assert_eq!(with(&|pinned| pinned.ttl = Some(Seconds::hours(5))), ["has the ttl 5h"]);
    assert_eq!(with(&|pinned| pinned.ttl = None), ["has the ttl none"]);
    assert_eq!(with(&|pinned| pinned.max_ttl = None), ["has the max_ttl none"]);
    assert_eq!(with(&|pinned| pinned.ready_timeout = Seconds(7200)), ["has the ready_timeout 2h"]);
    assert_eq!(with(&|pinned| pinned.settle = Seconds(600)), ["has the settle 10m"]);
    assert_eq!(with(&|pinned| pinned.stop_grace = Seconds(600)), ["has the stop_grace 10m"]);
    assert_eq!(
        with(&|pinned| pinned.patches.timeout = Seconds(600)),
        ["has the patches.timeout 10m"]
    );
    assert_eq!(
        with(&|pinned| pinned.patches.pass_timeout = Seconds(3600)),
        ["has the patches.pass_timeout 1h"]
    );
    assert_eq!(with(&|pinned| pinned.undo = false), ["has undo: false"]);
    assert_eq!(with(&|pinned| pinned.snapshot.keep = Some(1)), ["keeps 1 snapshot"]);
    assert_eq!(with(&|pinned| pinned.snapshot.keep = None), ["keeps all snapshots"]);
    assert_eq!(with(&|pinned| pinned.snapshot.exclude.clear()), ["leaves 'secrets' in snapshots"]);
    assert_eq!(
        with(&|pinned| pinned.extension = "ext.other".into()),
        ["is for the extension 'ext.other'"]
    );
    let root = serde_json::json!({"root": "/x"});
    assert_eq!(with(&|pinned| pinned.config = root.clone()), ["has the config {\"root\":\"/x\"}"]);
    assert_eq!(
        with(&|pinned| pinned.routing.max_cost_usd =
            serde_json::from_value(serde_json::json!(9)).unwrap()),
        ["has other routes"]
    );

    // Of a name that nobody here knows: nothing that must be asked for.
    assert_eq!(profile("ttl: 30d\nsnapshot: {keep: 2}\n").widens(None), Vec::<String>::new());
    let wide = profile(
        "ttl: none\ncompose: {ports: public, allow: [privileged]}\nconfig: {root: /build}\n",
    );
    let told = wide.widens(None);
    let all = ["allows privileged", "has the ports public", "has the config {\"root\":\"/build\"}"];
    assert_eq!(told[..3], all);
    assert_eq!(told[3..], ["lets a sandbox live without end"]);
}

#[test]
fn a_time_that_no_text_can_say_is_refused() {
    let longer = Seconds(Seconds::MAX.get() + 1);
    let pinned = Profile { ttl: Some(longer), max_ttl: Some(longer), ..profile("") };
    let problems: Vec<String> =
        pinned.validate().into_iter().map(|problem| problem.message).collect();
    assert_eq!(problems, ["'ttl' is longer than ten years", "'max_ttl' is longer than ten years"]);
    assert!(Profile { ttl: Some(Seconds::MAX), ..profile("") }.validate().is_empty());
}
