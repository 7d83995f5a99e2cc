//! Look-alikes of a sandbox's parts, by their labels or names, are somebody else's: nobody stops, pauses or removes them, and nobody
//! is led into them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, IMAGE, PODMAN, on_engine, stack_args, text};
use crate::sandboxes::scripts::{engine_in, source};
use crate::support::json_assertions::JsonAssertions as _;

const STACK: &str = r#"services:
  web:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "echo the sandbox speaks; exec sleep 100000"]
    stop_signal: SIGKILL
    volumes: ["data:/data"]
volumes: {data: {}}
"#;

/// Things made by hand, on a host, with the labels of a sandbox. Removed when dropped.
struct Lookalikes {
    host: &'static str,
    id: String,
}

/// The names that each kind of lookalike has.
const MADE: &str = r#"
other="--label sandboxer.id=$id --label sandboxer.owner=somebody --label com.docker.compose.project=sbx-$id --label com.docker.compose.service=web"
mine="--label sandboxer.id=$id --label sandboxer.owner=$owner --label com.docker.compose.project=sbx-$id --label com.docker.compose.service=web"
"#;

impl Lookalikes {
    /// Of another owner, by hand, and from an image that was committed from the sandbox's own container.
    fn of(host: &'static str, id: &str, owner: &str) -> Self {
        let made = Self { host, id: id.to_owned() };
        made.run(
            owner,
            r#"
$engine volume create $other "hand-sbx-$id-volume" >/dev/null || exit
$engine network create $other "hand-sbx-$id-net" >/dev/null || exit
run() { $engine run -d --stop-signal KILL --network none "$@" >/dev/null || exit; }
run --name "aa-sbx-$id-other" $other -v "hand-sbx-$id-volume:/data" "$image" sh -c 'echo precious >/data/x; echo another speaks; exec sleep 100000'
run --name "aa-sbx-$id-mine" $mine "$image" sh -c 'echo another speaks; exec sleep 100000'
run --name "sbx-$id-other-1" $other "$image" sleep 100000
run --name "aa-sbx-$id-project" --label "com.docker.compose.project=sbx-$id" "$image" sleep 100000
own=$($engine ps -q --filter "label=sandboxer.id=$id" --filter "label=com.docker.compose.service=web" --filter "volume=sbx-${id}_data")
$engine commit "$own" "hand-sbx-$id-image" >/dev/null || exit
run --name "aa-sbx-$id-commit" "hand-sbx-$id-image"
"#,
        );
        made
    }

    fn run(&self, owner: &str, script: &str) -> String {
        let script = format!("engine=$1 id=$2 owner=$3 image=$4\n{MADE}\n{script}");
        on_engine(self.host, &[&script, &self.id, owner, IMAGE])
    }

    /// Their names with how they stand and since when, and what is in the volume.
    fn stand(&self) -> String {
        self.run(
            "",
            r#"
for one in aa-sbx-$id-other aa-sbx-$id-mine sbx-$id-other-1 aa-sbx-$id-project aa-sbx-$id-commit; do
  $engine inspect --type container -f '{{.Name}} {{.State.Status}} {{.State.StartedAt}}' "$one" || echo "$one is gone"
done
$engine exec "aa-sbx-$id-other" cat /data/x || echo "the volume is gone"
$engine network ls --format '{{.Name}}' | grep -Fx "hand-sbx-$id-net" || echo "the network is gone"
"#,
        )
    }
}

impl Drop for Lookalikes {
    fn drop(&mut self) {
        self.run(
            "",
            r#"
for one in aa-sbx-$id-other aa-sbx-$id-mine sbx-$id-other-1 aa-sbx-$id-project aa-sbx-$id-commit; do $engine rm -f -v "$one"; done >/dev/null 2>&1
$engine volume rm "hand-sbx-$id-volume" >/dev/null 2>&1
$engine network rm "hand-sbx-$id-net" >/dev/null 2>&1
$engine rmi -f "hand-sbx-$id-image" >/dev/null 2>&1
:
"#,
        );
    }
}

fn owner(bench: &Bench) -> String {
    let known: Value =
        serde_json::from_str(&fs::read_to_string(bench.data().join("owner")).unwrap()).unwrap();
    text(&known["owners"][0])
}

fn what_only_looks_like_a_sandboxs_is_left_by_every_verb(host: &'static str) {
    let bench = Bench::watching(&[host]);
    let repo = bench.stack("own", STACK);
    let id = text(&bench.create_stack(host, &repo, &[])["id"]);
    let theirs = Lookalikes::of(host, &id, &owner(&bench));
    let stood = theirs.stand();
    assert!(!stood.contains("gone") && stood.matches("running").count() == 5, "{stood}");

    // Who is asked for the service is asked of the sandbox's own container.
    let named = text(&bench.ok(["exec", &id, "--service", "web", "--", "hostname"])["stdout"]);
    let own =
        on_engine(host, &["$1 ps --no-trunc --filter volume=sbx-$2_data --format '{{.ID}}'", &id]);
    assert!(own.starts_with(named.trim()) && named.trim().len() == 12, "{named} of {own}");
    let logs = bench.run(["logs", &id]);
    assert!(logs.stdout.contains("the sandbox speaks"), "{logs:#?}");
    assert!(!logs.stdout.contains("another speaks"), "{logs:#?}");

    for words in [
        &["snapshot", &id, "--name", &format!("stopped-{id}"), "--mode", "stop"][..],
        &["sleep", &id],
        &["wake", &id],
        &["sleep", &id],
    ] {
        bench.ok(words);
        assert_eq!(theirs.stand(), stood, "after {words:?}");
    }
    // It would be in the way of what is made again: nothing is removed for that.
    let record = bench.get(&id);
    bench.ok(["wake", &id]);
    let error = bench.refused(["recreate", &id, "--yes"], "conflict");
    assert!(error.to_string().contains(&format!("aa-sbx-{id}-other")), "{error:#}");
    assert_eq!(bench.get(&id)["state"], json!("ready"), "{record:#}");

    bench.ok(["destroy", &id, "--yes"]);
    assert_eq!(theirs.stand(), stood, "after destroy");
    let record = bench.get(&id);
    record.has(json!({"state": "destroyed", "leftovers": []}));
    let lines = record["teardown"].as_array().unwrap();
    let of = |outcome: &str| -> Vec<String> {
        let told = |line: &&Value| line["outcome"] == outcome;
        lines.iter().filter(told).map(|line| text(&line["resource"]["id"])).collect()
    };
    let mut foreign = of("foreign");
    foreign.sort();
    let named = [
        "aa-sbx-ID-commit",
        "aa-sbx-ID-mine",
        "aa-sbx-ID-other",
        "aa-sbx-ID-project",
        "hand-sbx-ID-net",
        "hand-sbx-ID-volume",
        "sbx-ID-other-1",
    ];
    assert_eq!(foreign, named.map(|name| name.replace("ID", &id)), "{lines:#?}");
    assert!(of("removed").iter().any(|name| *name == format!("sbx-{id}_data")), "{lines:#?}");
    assert!(
        lines.iter().all(|line| line["outcome"] != "foreign" || line["reason"].is_string()),
        "{lines:#?}"
    );

    // And whoever wants the id again is told what is in the way. Nothing is made.
    let other = Bench::new();
    let error = other.try_stack(host, &repo, &["--id", &id]).error_with_hint("conflict");
    assert!(error.to_string().contains(&format!("aa-sbx-{id}-other")), "{error:#}");
    assert!(!other.directory(host, &id).exists());
    drop(theirs);
    bench.ok(["snapshots", "delete", &format!("stopped-{id}"), "--yes"]);
    bench.assert_as_before();
}

/// Another data directory, another workspace root: only the engine knows. What is left of theirs is a volume with its data.
fn an_id_that_another_installation_uses_on_an_engine_is_refused(host: &'static str) {
    let theirs = Bench::new();
    let repo = theirs.stack("own", STACK);
    let id = text(&theirs.create_stack(host, &repo, &[])["id"]);
    let script = |words: &str| on_engine(host, &[words, &id]);
    for (what, undo) in [
        (
            "$1 exec $($1 ps -q --filter label=sandboxer.id=$2) sh -c 'echo precious >/data/x'",
            "all of it",
        ),
        (
            "$1 rm -f $($1 ps -aq --filter label=sandboxer.id=$2) >/dev/null",
            "a volume and a network",
        ),
    ] {
        script(what);
        let ours = Bench::new();
        let error = ours.try_stack(host, &repo, &["--id", &id]).error_with_hint("conflict");
        assert!(text(&error["hint"]).contains("another id"), "{undo}: {error:#}");
        assert!(!ours.directory(host, &id).exists(), "{undo}");
        // What was made of it, which is nothing, is destroyed.
        ours.run(["destroy", &id, "--yes"]).ok();
        let kept = script(&format!(
            "$1 run --rm --name hand-sbx-$2-look --network none -v sbx-$2_data:/d {IMAGE} cat /d/x"
        ));
        assert_eq!(kept.trim(), "precious", "{undo}");
    }
}

fn a_directory_that_is_not_proved_keeps_the_engine_untouched(host: &'static str) {
    let bench = Bench::watching(&[host]);
    let id = text(&bench.create_stack(host, &bench.stack("own", STACK), &[])["id"]);
    let manifest = bench.directory(host, &id).join("manifest.json");
    let own = fs::read_to_string(&manifest).unwrap();
    let stands = || {
        let all = "$1 ps --no-trunc --filter label=sandboxer.id=$2 --format '{{.ID}} {{.Names}}'; $1 volume ls -q --filter label=sandboxer.id=$2";
        on_engine(host, &[all, &id])
    };
    let stood = stands();
    fs::write(&manifest, own.replace(&owner(&bench), "somebody")).unwrap();
    let told = bench.event_kinds(&id);
    for words in [["recreate", &id, "--yes"], ["destroy", &id, "--yes"]] {
        let error = bench.refused(words, "conflict");
        assert!(error.to_string().contains("does not name this sandbox"), "{error:#}");
        assert_eq!(stands(), stood);
        // A refusal changes nothing of the record either.
        let record = bench.get(&id);
        let (state, said, operation) = (&record["state"], &record["message"], &record["operation"]);
        assert_eq!(state, &json!("ready"), "{words:?}");
        assert_eq!(said, &Value::Null, "{words:?}");
        assert_eq!(operation, &Value::Null, "{words:?}");
        assert_eq!(bench.event_kinds(&id), told, "{words:?}");
    }
    fs::write(&manifest, own).unwrap();
    bench.ok(["destroy", &id, "--yes"]);
    // Without a directory what the engine has proves itself.
    let id = text(&bench.create_stack(host, &bench.stack("own", STACK), &[])["id"]);
    fs::remove_dir_all(bench.directory(host, &id)).unwrap();
    bench.ok(["destroy", &id, "--yes"]);
    bench.assert_as_before();
}

each_case! {
    an_id_that_begins_with_another_one_is_another_sandbox = a_longer_id_is_another_sandbox {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn a_longer_id_is_another_sandbox(host: &'static str) {
    let bench = Bench::watching(&[host]);
    let stack = |services: &[&str]| -> String {
        let of = |name: &&str| {
            format!("  {name}: {{build: ., command: [sleep, '100000'], stop_signal: SIGKILL}}\n")
        };
        format!("services:\n{}", services.iter().map(of).collect::<String>())
    };
    let repo = |name: &str, services: &[&str]| {
        let made = stack(services);
        let files = [
            ("docker-compose.yml", made.as_str()),
            ("Dockerfile", "FROM localhost/sbx-lab:1\nCOPY docker-compose.yml /\n"),
        ];
        bench.repository(name, &files)
    };
    let short = format!("a{}", std::process::id());
    let long = format!("{short}-b");
    // On Docker the containers of `a-b` with `c` and of `a` with `b-c` have one name: the second create is refused by the engine.
    let c = if host == PODMAN { "c" } else { "d" };
    let profile = bench
        .profile("builds", "ready_timeout: 120s\ncompose: {ports: ephemeral, allow: [builds]}");
    bench.ok(stack_args(&profile, host, &repo("long", &[c]), &["--id", &long]));
    bench.ok(stack_args(&profile, host, &repo("short", &["b-c", "c", "C"]), &["--id", &short]));
    let images = |id: &str| {
        let all = "$1 images --format '{{.Repository}}:{{.Tag}}' | sed 's,^localhost/,,' | grep \"^sbx-$2-built:\" | sort | tr '\\n' ' '";
        on_engine(host, &[all, id])
    };
    let found = images(&short);
    assert_eq!(found, format!("sbx-{short}-built:C sbx-{short}-built:b-c sbx-{short}-built:c "));
    bench.ok(["sleep", &short]);
    bench.ok(["exec", &long, "--service", c, "--", "true"]);
    bench.ok(["destroy", &short, "--yes"]);
    let record = bench.get(&short);
    assert!(
        record["teardown"].as_array().unwrap().iter().all(|line| line["outcome"] != "foreign"),
        "{record:#}"
    );
    assert_eq!((images(&short), images(&long)), (String::new(), format!("sbx-{long}-built:{c} ")));
    bench.ok(["exec", &long, "--service", c, "--", "true"]);
    bench.ok(["sleep", &long]);
    bench.ok(["wake", &long]);
    bench.ok(["destroy", &long, "--yes"]);
    bench.assert_as_before();
}

/// Says of compose that it was asked to start something; somebody else's container of this id is there from then on.
const MEANWHILE: &str = r#"#!/bin/sh
case "$1 $2" in
  "compose "*) : >up ;;
  "ps "*) [ ! -e "$FOREIGN" ] || printf 'c1\037"x"\037"other"\037"sbx-x"\037"sbx-x-web-1"\037Up\n' ;;
esac
"#;

/// `up` among its definitions: before the start, while it is started, or never, somebody else's comes. Where the prepare call
/// looked a moment ago, the one after the start is the only look.
#[test]
fn a_stack_beside_which_somebody_elses_appeared_is_not_started() {
    for (foreign, way, started, status) in [
        ("docker", "", false, 75),
        ("docker", "clear", true, 75),
        ("box/up", "", true, 75),
        ("nowhere", "", true, 0),
        ("nowhere", "clear", true, 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        engine_in(folder.path(), MEANWHILE);
        fs::create_dir(folder.path().join("box")).unwrap();
        let scripts = [
            "transport/scripts/runtime.sh",
            "extensions/workspace/scripts/belonging.sh",
            "extensions/compose_ssh/scripts/clock.sh",
            "extensions/compose_ssh/scripts/up.sh",
        ];
        let script: String =
            scripts.iter().map(|path| fs::read_to_string(source().join(path)).unwrap()).collect();
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let ran = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(folder.path().join("box"))
            .args(["sbx-x", "{}", "docker", "", "own", "0", way, "0", "0", "", "0"])
            .args(["docker", "compose"])
            .envs([("PATH", path), ("FOREIGN", folder.path().join(foreign).display().to_string())])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(status), "{foreign}: {said}");
        let found = said.contains("nothing is started beside container sbx-x-web-1");
        assert_eq!(found, status == 75, "{foreign}: {said}");
        assert_eq!(folder.path().join("box/up").exists(), started, "{foreign}");
    }
}

/// Table of what belongs to `a` of the owners `o1` and `o2`: labels as an engine tells them (JSON), and the name.
#[test]
fn what_belongs_has_the_id_an_owner_of_ours_and_the_name() {
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("a", "o1", "sbx-a", "sbx-a-web-1", "ours"),
        ("a", "o2", "sbx-a", "sbx-a_web_1", "ours"),
        ("a", "o1", "", "sbx-a_default", "ours"),
        ("a", "o1", "sbx-a", "sbx-a-b-web-1", "ours"),
        // Docker tells by which names links reach it.
        ("a", "o1", "sbx-a", "sbx-x-web-1/db,sbx-a-db-1,other/db", "ours"),
        // Our own, which versions before this one gave no owner.
        ("a", "", "", "sbx-a-archive", "foreign"),
        ("a", "", "", "sbx-a-web-1", "foreign"),
        ("a", "o3", "sbx-a", "sbx-a-web-1", "foreign"),
        ("a", "o1 o2", "sbx-a", "sbx-a-web-1", "foreign"),
        ("a", "o1", "sbx-a", "from-a-commit", "foreign"),
        ("a", "o1", "sbx-a", "sbx-ab-web-1", "foreign"),
        ("a", "o1", "sbx-a", "sbx-a_x y", "foreign"),
        ("a", "o1", "sbx-a", "other/db,another", "foreign"),
        ("", "", "sbx-a", "anything", "foreign"),
        ("", "", "", "sbx-a_default", "foreign"),
        ("", "", "", "sbx-a-web-1", "foreign"),
        ("b", "o1", "", "sbx-a_default", "foreign"),
        ("a-b", "o1", "sbx-a-b", "sbx-a-b-web-1", ""),
        ("ab", "o1", "sbx-ab", "sbx-ab-web-1", ""),
        ("", "", "", "sbx-ab_default", ""),
        ("a\\\"", "o1", "", "other", ""),
        ("", "", "", "a", ""),
    ];
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (id, owner, project, name, want) in cases {
        let rows = format!(
            "handle\u{1f}\"{id}\"\u{1f}\"{owner}\"\u{1f}\"{project}\"\u{1f}\"{name}\"\u{1f}Up"
        );
        let script = format!(
            ". {0}/transport/scripts/runtime.sh; . {0}/extensions/workspace/scripts/belonging.sh\nrows=$1; sbx_rows() {{ printf '%s\\n' \"$rows\"; }}\nsbx_belonging docker container a 'o1 o2' | cut -d \"$sbx_cut\" -f 1",
            scripts.display()
        );
        let ran = Command::new("sh").args(["-c", &script, "sh", &rows]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), *want, "{rows:?}: {ran:?}");
    }
}

each_case! {
    what_only_looks_like_a_sandboxs_is_left_by_every_verb {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }

    an_id_that_another_installation_uses_on_an_engine_is_refused {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }

    a_directory_that_is_not_proved_keeps_the_engine_untouched {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}
