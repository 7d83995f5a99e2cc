//! Small repositories that real compose files led to (`tests/cases`), as containers run them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lab::{Bench, DOCKER, PODMAN, Started, stack_args, text};

/// A case as a repository, with the lab's image.
fn case(bench: &Bench, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .map(|(name, content)| (name, content.replace("lab/box:1", "localhost/sbx-lab:1")))
        .collect();
    let files: Vec<_> = files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
    bench.repository(name, &files)
}

fn services(made: &Value) -> Vec<String> {
    let mut names: Vec<_> = made["services"].as_array().unwrap().iter().map(|service| text(&service["name"])).collect();
    names.sort();
    names
}

fn cases_run(host: &'static str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let create = |name: &str, more: &[&str]| {
        let repo = case(&bench, name);
        // Nothing of the console's environment is a secret's value.
        let mut command = bench.command(stack_args("profile.compose-e2e", host, &repo, more));
        command.env("TOK", "the console's").env("COMPOSE_FILE", "gone.yml");
        Started::spawn(command).finish().ok()
    };
    let inside = |made: &Value, service: &str, words: &[&str]| {
        let id = text(&made["id"]);
        let ran = bench.run([&["exec", &id, "--service", service, "--"], words].concat()).ok();
        text(&ran["stdout"]).trim_end().to_owned()
    };
    let end = |made: &Value| drop(bench.run(["destroy", &text(&made["id"]), "--yes"]).ok());

    for (name, more, want) in [
        ("two-files", &["--input", "compose_file=docker-compose.yml,extra.yml"][..], &["web", "worker"][..]),
        ("compose-file-in-dotenv", &[], &["db", "web"]),
        ("compose-yaml-name", &[], &["web"]),
        ("default-caps", &[], &["web"]),
    ] {
        let made = create(name, more);
        assert_eq!(services(&made), want, "{name}: {made:#}");
        end(&made);
    }
    let made = create("override-tag", &[]);
    let ports: Vec<_> =
        made["reachability"]["endpoints"].as_array().unwrap().iter().map(|end| &end["container_port"]).collect();
    assert_eq!(ports, [81], "{made:#}");
    end(&made);
    for (name, service, words, want) in [
        ("include-override", "db", &["sh", "-c", "echo $TZ"][..], "UTC"),
        ("dollar", "web", &["sh", "-c", "echo $RE $HASH"], "^a$ $2b$10"),
        (
            "localtime",
            "web",
            &["sh", "-c", "[ -s /etc/localtime ] && { (: >>/etc/localtime) 2>/dev/null || echo kept; }"],
            "kept",
        ),
    ] {
        let made = create(name, &[]);
        assert_eq!(inside(&made, service, words), want, "{name}");
        end(&made);
    }
    let made = create("secret-from-dotenv", &[]);
    let id = text(&made["id"]);
    let secret = &["sh", "-c", "read -r tok </run/secrets/tok; echo $tok"];
    assert_eq!(inside(&made, "web", secret), "one");
    // Secret stays through a sleep, and through everything being made anew.
    bench.run(["sleep", &id]).ok();
    bench.run(["wake", &id]).ok();
    assert_eq!(inside(&made, "web", secret), "one");
    bench.run(["recreate", &id, "--yes"]).ok();
    assert_eq!(inside(&made, "web", secret), "one");
    end(&made);
    bench.assert_unchanged(host, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn cases_of_real_compose_files_run_on_docker() {
    cases_run(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn cases_of_real_compose_files_run_on_podman() {
    cases_run(PODMAN);
}
