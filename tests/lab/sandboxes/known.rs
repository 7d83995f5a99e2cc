//! What is known of a host from what it said last: used where it holds, found anew where it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, lab, text};
use crate::sandboxes::broken::Sshd;
use crate::support::base_path;
use crate::support::json_assertions::JsonAssertions as _;

/// The host's record in `hosts.json`.
fn known(bench: &Bench, host: &str) -> Value {
    let file = fs::read_to_string(bench.data().join("hosts.json")).unwrap();
    let document: Value = serde_json::from_str(&file).unwrap();
    let records = document["records"].as_array().unwrap().iter();
    records.clone().find(|record| record["id"] == host).unwrap().clone()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_second_canary_takes_what_the_first_one_found() {
    let bench = Bench::new();
    for host in [DOCKER, PODMAN] {
        let first = bench.ok(["create", "--host", host]);
        let second = bench.ok(["create", "--host", host]);
        assert_eq!(first["certificate"], second["certificate"], "{host}");
        let report = &known(&bench, host)["report"];
        report.has(json!({
            "certificate.certificate": first["certificate"],
            "identity.machine_id": first["host_identity"]["machine_id"],
            "detection.runtimes.0.command": first["certificate"]["runtime"]["command"],
        }));
        assert_eq!(report["facts"]["inventory"], Value::Null, "counted, and not item by item");
        bench.ok(["destroy", &text(&first["id"]), &text(&second["id"])]);
    }
    // Nobody is reached any more, and what they said is known all the same.
    let config = bench.path("config.yaml");
    let away = fs::read_to_string(&config).unwrap().replace("/ssh_config", "/no-such-file");
    fs::write(&config, away).unwrap();
    let views = bench.ok(["hosts", "list"]);
    for host in [DOCKER, PODMAN] {
        let view = views.as_array().unwrap().iter().find(|view| view["name"] == host).unwrap();
        view.has(json!({"state": "unknown", "checked_at": view["facts"]["at"]}));
        assert!(view["facts"]["cpus"].as_u64().unwrap() > 0, "{view:#}");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_tool_that_was_upgraded_removed_or_broken_is_looked_for_anew() {
    let bench = Bench::with(&["sandboxer01-v5"]);
    let (bin, config) = (bench.path("two-bin"), bench.path("two-docker"));
    base_path::make(&bin);
    let plugin = config.join("cli-plugins/docker-compose");
    fs::create_dir_all(plugin.parent().unwrap()).unwrap();
    let install = |host: &str| {
        let from = lab().join("hosts").join(host).join("docker-config/cli-plugins/docker-compose");
        let _ = fs::remove_file(&plugin);
        fs::copy(from, &plugin).unwrap();
    };
    install(DOCKER);
    // The real client, which says what it was asked.
    let asked = bin.join("asked");
    let client =
        format!("#!/bin/sh\necho \"$*\" >>{}\nexec /usr/bin/docker \"$@\"\n", asked.display());
    fs::write(bin.join("docker"), client).unwrap();
    fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    let took = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let _ = fs::remove_file(file);
        text.lines().filter(|line| *line == "compose version").count()
    };
    let variables = [("PATH", bin.to_str().unwrap()), ("DOCKER_CONFIG", config.to_str().unwrap())];
    let _sshd = Sshd::start(&bench, "two", &variables);
    let repo = format!("repo={}", bench.web_stack("x").display());
    let args = ["create", "--profile", "compose-e2e", "--host", "two", "--input", &repo];
    let verdict = || {
        let plan = bench.ok([&args[..], &["--dry-run"]].concat());
        (text(&plan["verdicts"][0]["reason"]), took(&asked))
    };
    // A dry run changes nothing: a check is who learns.
    let check = || {
        bench.ok(["hosts", "check", "two"]);
        took(&asked)
    };
    let (first, detected) = verdict();
    assert!(first.contains("docker compose 2.") && detected == 1, "{first} {detected}");
    assert!(first.contains("networks left"), "{first}");
    assert_eq!((check(), check()), (1, 0));
    let (second, detected) = verdict();
    assert!(second.contains("docker compose 2.") && detected == 0, "{second} {detected}");
    assert!(second.contains("networks left"), "{second}");

    install("sandboxer01-v5");
    let (upgraded, detected) = verdict();
    assert!(upgraded.contains("docker compose 5.") && detected == 1, "{upgraded} {detected}");
    assert_eq!((check(), verdict().1), (1, 0));

    fs::remove_file(&plugin).unwrap();
    bench.refused(args, "missing_dependency").has(json!({"details.missing": "compose"}));
    install(DOCKER);
    check();

    // Of another machine behind the same name, or damaged: nothing of it is used.
    let file = bench.data().join("hosts.json");
    let whole = fs::read_to_string(&file).unwrap();
    let fingerprint = text(&known(&bench, "two")["report"]["detection"]["fingerprint"]);
    assert_eq!(verdict().1, 0);
    fs::write(&file, whole.replace(&fingerprint, &"0".repeat(64))).unwrap();
    assert_eq!(verdict().1, 1);
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(verdict().1, 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), whole[..whole.len() / 2], "left as it is");
    for name in ["hosts.json", "hosts.json.bak"] {
        fs::remove_file(bench.data().join(name)).unwrap();
    }
    assert_eq!((verdict().1, check(), verdict().1), (1, 1, 0));
}
