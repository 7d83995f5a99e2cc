//! Reading of a list by a wake, and how the script writes one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command as Process, Output};

use super::*;

fn stack(services: &[(&str, &[(&str, bool)])]) -> Stack {
    let services = services.iter().map(|(name, needs)| Expected {
        name: (*name).to_owned(),
        replicas: 1,
        restart: "no".to_owned(),
        one_shot: false,
        needs: needs.iter().map(|(name, healthy)| ((*name).to_owned(), *healthy)).collect(),
    });
    Stack { runtime: None, services: services.collect(), built: Vec::new() }
}

fn there(services: &[&str]) -> Vec<Container> {
    let container = |service: &&str| Container {
        id: String::new(),
        name: format!("sbx-1-{service}-1"),
        sandbox: "1".to_owned(),
        service: (*service).to_owned(),
        state: "exited".to_owned(),
        exit_code: Some(137),
        restarts: None,
        health: None,
        ports: Vec::new(),
        started_at: None,
        finished_at: None,
    };
    services.iter().map(container).collect()
}

fn names(services: &[&str]) -> Vec<String> {
    services.iter().map(|service| format!("sbx-1-{service}-1")).collect()
}

#[test]
fn what_ran_is_started_behind_what_it_needs_and_the_rest_stays() {
    let stack = stack(&[
        ("web", &[("api", false), ("init", false)]),
        ("api", &[("db", true)]),
        ("db", &[]),
        ("init", &[]),
    ]);
    let containers = there(&["web", "api", "db", "init"]);
    let ran = Ran::new(&stack, &containers, names(&["web", "db", "api"])).unwrap();
    assert_eq!(ran.levels(), [["sbx-1-db-1"], ["sbx-1-api-1"], ["sbx-1-web-1"]]);
    assert_eq!(ran.awaited_by("sbx-1-api-1").collect::<Vec<_>>(), ["db"]);
    assert_eq!(ran.awaited_by("sbx-1-web-1").count(), 0);
    let expected: Vec<&str> = ran.expected.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(expected, ["web", "api", "db"], "a one-shot that had ended is not asked for");
    let none = Ran::new(&stack, &containers, Vec::new()).unwrap();
    assert!(none.levels().is_empty());
}

#[test]
fn a_database_that_did_not_run_is_not_waited_for() {
    let stack = stack(&[("api", &[("db", true)]), ("db", &[])]);
    let ran = Ran::new(&stack, &there(&["api", "db"]), names(&["api"])).unwrap();
    assert_eq!(ran.awaited_by("sbx-1-api-1").count(), 0);
}

#[test]
fn what_is_gone_is_named() {
    let stack = stack(&[("web", &[]), ("db", &[])]);
    let missing = Ran::new(&stack, &there(&["db"]), names(&["db", "web"])).err();
    assert_eq!(missing, Some(names(&["web"])));
}

#[test]
fn services_that_need_each_other_end_somewhere() {
    let stack = stack(&[("a", &[("b", false)]), ("b", &[("a", false)])]);
    let ran = Ran::new(&stack, &there(&["a", "b"]), names(&["a", "b"])).unwrap();
    assert_eq!(ran.levels().concat().len(), 2);
}

/// An engine with two containers, the older of which runs until it is stopped.
const ENGINE: &str = r#"#!/bin/sh
case $1 in
  ps) for one in a:web b:init; do printf '%s\037"1"\037"ours"\037"sbx-1"\037"sbx-1-%s-1"\037Up\n' "${one%:*}" "${one#*:}"; done ;;
  inspect) [ ! -e mute ] || { echo "no answer" >&2; exit 1; }; printf '1|%s|a|/sbx-1-web-1|\n2|exited|b|/sbx-1-init-1|\n' "$(cat state)" ;;
  stop) echo exited >state ;;
esac
"#;

/// The script in a sandbox's folder, in one of this machine's shells.
fn put_to_sleep(shell: &[&str], bin: &Path, root: &Path) -> Output {
    let words = shell.iter().skip(1).chain(&["-c", SLEEP_SH, "sh"]).copied();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let parameters = ["1", "ours", "", "docker", "", "1"];
    Process::new(shell[0])
        .args(words)
        .arg(root)
        .args(parameters)
        .env("PATH", path)
        .output()
        .unwrap()
}

#[test]
fn a_list_that_is_not_whole_is_not_gone_by() {
    for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
        if Process::new(shell[0]).arg("--help").output().is_err() {
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        let (root, bin) = (root.path(), root.path().join("bin"));
        let at = root.join("sbx-1");
        fs::create_dir_all(at.join("workspace")).unwrap();
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("docker"), ENGINE).unwrap();
        fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            at.join("manifest.json"),
            "{\n  \"id\": \"1\",\n  \"owner\": \"ours\",\n  \"x\": 0\n}\n",
        )
        .unwrap();
        fs::write(at.join("state"), "running\n").unwrap();

        // On a disk that is full.
        symlink("/dev/full", at.join(".asleep.new")).unwrap();
        let output = put_to_sleep(shell, &bin, root);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            ScriptOutput::read(&text).value("error"),
            Some("write"),
            "{shell:?}: {output:?}"
        );
        assert!(at.join(".asleep").symlink_metadata().is_err(), "{shell:?}");
        assert_eq!(fs::read_to_string(at.join("state")).unwrap(), "running\n", "{shell:?}");

        // Its engine lists containers, and says nothing of them: they may run.
        fs::write(at.join("mute"), "").unwrap();
        let output = put_to_sleep(shell, &bin, root);
        let text = String::from_utf8_lossy(&output.stdout);
        let said = ScriptOutput::read(&text);
        assert_eq!(
            (said.value("error"), said.value("slept")),
            (Some("engine"), None),
            "{shell:?}: {output:?}"
        );
        assert!(said.text("words").unwrap().contains("no answer"), "{shell:?}: {output:?}");
        fs::remove_file(at.join("mute")).unwrap();

        let output = put_to_sleep(shell, &bin, root);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(ScriptOutput::read(&text).value("slept"), Some("yes"), "{shell:?}: {output:?}");
        assert_eq!(fs::read_to_string(at.join(".asleep")).unwrap(), "sbx-1-web-1\n", "{shell:?}");
        assert_eq!(fs::read_to_string(at.join("state")).unwrap(), "exited\n", "{shell:?}");
        assert!(!at.join(".asleep.new").exists(), "{shell:?}");
    }
}
