//! Small repositories that real compose files led to (`tests/cases`), where it takes a host to tell.

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{
    Bench, DOCKER, IMAGE, PODMAN, Started, engine, is_random, on_engine, stack_args, text,
};

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_dry_run_ends_as_the_create_does() {
    let bench = Bench::new();
    for (case, host, status) in [
        ("cycle", DOCKER, 2),
        ("cycle", PODMAN, 2),
        ("only-profiles", DOCKER, 2),
        ("only-profiles", PODMAN, 2),
        ("podman-configs", PODMAN, 2),
        ("podman-configs", DOCKER, 0),
    ] {
        let repo = bench.case(case);
        let dry = bench.try_stack(host, &repo, &["--dry-run"]);
        assert_eq!(dry.status, Some(status), "{case} {host}: {dry:#?}");
        assert_eq!(dry.json()["ok"].as_bool(), Some(status == 0), "{case} {host}: {dry:#?}");
        let made = bench.try_stack(host, &repo, &[]);
        assert_eq!(made.status, Some(status), "{case} {host}: {made:#?}");
        assert_eq!(
            bench.stored().len(),
            usize::from(status == 0),
            "{case} {host}: what is refused leaves no record"
        );
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_volume_without_a_name_comes_back_or_is_said_not_to_on_every_compose() {
    let bench = Bench::with(&["coulombcore-new", "sandboxer01-v1"]);
    let repo = bench.case("anonymous-volume-podman");
    for host in [PODMAN, "coulombcore-new", DOCKER, "sandboxer01-v1"] {
        let before = bench.snapshot(host);
        let id = text(&bench.create_stack(host, &repo, &[])["id"]);
        let in_cache = |id: &str, words: &str| {
            let script =
                format!("$1 exec $($1 ps -q --filter label=sandboxer.id=$2) sh -c '{words}'");
            on_engine(host, &[&script, id])
        };
        in_cache(&id, "echo kept >/cache/file");
        let snapshot = bench.ok(["snapshot", &id]);
        let captured: Vec<String> = names(&snapshot["captured_volumes"]);
        let missed: Vec<String> = names(&snapshot["not_captured"]);
        let volume = "$1 inspect --type container -f '{{range .Mounts}}{{.Name}}{{end}}' $($1 ps -q --filter label=sandboxer.id=$2)";
        let volume = on_engine(host, &[volume, &id]).trim().to_owned();
        assert_eq!(is_random(&volume), engine(host) == "docker", "{host}: {volume}");
        bench.ok(["destroy", "--yes", &id]);
        let left = on_engine(host, &["$1 volume ls -q --filter name=$2", &volume]);
        assert_eq!(left, "", "{host}: it goes with the sandbox");
        if engine(host) == "podman" {
            assert_eq!((captured, missed), (vec!["app_cache".to_owned()], Vec::new()), "{host}");
            let back = text(&bench.ok(["restore", &text(&snapshot["id"])])["id"]);
            assert_eq!(in_cache(&back, "cat /cache/file").trim(), "kept", "{host}");
            bench.ok(["destroy", "--yes", &back]);
        } else {
            assert_eq!((captured, missed), (Vec::new(), vec!["/cache".to_owned()]), "{host}");
        }
        bench.ok(["snapshots", "delete", &text(&snapshot["id"]), "--yes"]);
        bench.assert_unchanged(host, &before);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_an_image_asks_for_as_a_volume_is_said_not_to_be_in_a_snapshot() {
    let bench = Bench::new();
    let profile = bench.profile("building", "compose: {ports: ephemeral, allow: [builds]}");
    let dockerfile = format!("FROM {IMAGE}\nVOLUME /data\n");
    let compose =
        "services:\n  app: {build: ., command: [sleep, \"1000\"], stop_signal: SIGKILL}\n";
    let repo =
        bench.repository("image", &[("docker-compose.yml", compose), ("Dockerfile", &dockerfile)]);
    for host in [DOCKER, PODMAN] {
        let id = text(&bench.ok(stack_args(&profile, host, &repo, &[]))["id"]);
        let snapshot = bench.ok(["snapshot", &id]);
        assert_eq!(names(&snapshot["not_captured"]), ["/data"], "{host}: {snapshot:#}");
        bench.ok(["destroy", "--yes", &id]);
        bench.ok(["snapshots", "delete", &text(&snapshot["id"]), "--yes"]);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_is_built_is_looked_up_in_no_registry() {
    let bench = Bench::with(&["coulombcore-new", "sandboxer01-v1", "sandboxer01-v5"]);
    let profile = bench.profile("building", "compose: {ports: ephemeral, allow: [builds]}");
    let repo = bench.case("build-is-pulled");
    for host in [DOCKER, "sandboxer01-v5", "sandboxer01-v1", PODMAN, "coulombcore-new"] {
        let ran = bench.run_telling(stack_args(&profile, host, &repo, &[]));
        let id = text(&ran.ok()["id"]);
        // Each tool says what it pulls; podman-compose says each of its commands.
        let said = ran.stderr.lines().filter(|line| line.contains("\"stage\":\"up\""));
        let said: String = said.collect();
        assert!(said.contains("message"), "{host}");
        assert!(!said.to_lowercase().contains("pull"), "{host}: {said}");
        bench.ok(["destroy", "--yes", &id]);
    }
}

fn services(made: &Value) -> Vec<String> {
    let mut names: Vec<_> =
        made["services"].as_array().unwrap().iter().map(|service| text(&service["name"])).collect();
    names.sort();
    names
}

/// A create of a case, where nothing of the console's environment is a secret's value or names a file.
fn create(bench: &Bench, host: &str, case: &str, more: &[&str]) -> Value {
    let repo = bench.case(case);
    let mut command = bench.command(stack_args("profile.compose-e2e", host, &repo, more));
    command.env("TOK", "the console's").env("COMPOSE_FILE", "gone.yml");
    Started::spawn(command).finish().ok()
}

/// What a command says in a service of a sandbox.
fn inside(bench: &Bench, made: &Value, service: &str, words: &[&str]) -> String {
    let id = text(&made["id"]);
    let ran = bench.ok([&["exec", &id, "--service", service, "--"], words].concat());
    text(&ran["stdout"]).trim_end().to_owned()
}

/// Files are found and put together by the console, before any tool has a word in it.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_files_of_a_case_are_those_that_compose_would_take() {
    let bench = Bench::watching(&[DOCKER]);
    for (name, more, want) in [
        (
            "two-files",
            &["--input", "compose_file=docker-compose.yml,extra.yml"][..],
            &["web", "worker"][..],
        ),
        ("compose-file-in-dotenv", &[], &["db", "web"]),
        ("compose-yaml-name", &[], &["web"]),
    ] {
        let made = create(&bench, DOCKER, name, more);
        assert_eq!(services(&made), want, "{name}: {made:#}");
    }
    let made = create(&bench, DOCKER, "override-tag", &[]);
    let all = made["reachability"]["endpoints"].as_array().unwrap().iter();
    let ports: Vec<_> = all.map(|end| &end["container_port"]).collect();
    assert_eq!(ports, [81], "{made:#}");
    let made = create(&bench, DOCKER, "include-override", &[]);
    assert_eq!(inside(&bench, &made, "db", &["sh", "-c", "echo $TZ"]), "UTC");
    bench.clear();
    bench.assert_as_before();
}

fn cases_of_real_compose_files_run(host: &str) {
    let bench = Bench::watching(&[host]);
    let made = create(&bench, host, "default-caps", &[]);
    assert_eq!(services(&made), ["web"], "{made:#}");
    let localtime = "[ -s /etc/localtime ] && { (: >>/etc/localtime) 2>/dev/null || echo kept; }";
    for (name, script, want) in
        [("dollar", "echo $RE $HASH", "^a$ $2b$10"), ("localtime", localtime, "kept")]
    {
        let made = create(&bench, host, name, &[]);
        assert_eq!(inside(&bench, &made, "web", &["sh", "-c", script]), want, "{name}");
    }
    let made = create(&bench, host, "secret-from-dotenv", &[]);
    let id = text(&made["id"]);
    let secret =
        || inside(&bench, &made, "web", &["sh", "-c", "read -r tok </run/secrets/tok; echo $tok"]);
    assert_eq!(secret(), "one");
    // Secret stays through a sleep, and through everything being made anew.
    bench.ok(["sleep", &id]);
    bench.ok(["wake", &id]);
    assert_eq!(secret(), "one");
    bench.ok(["recreate", &id, "--yes"]);
    assert_eq!(secret(), "one");
    bench.clear();
    bench.assert_as_before();
}

each_case! {
    cases_of_real_compose_files_run {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn names(list: &Value) -> Vec<String> {
    assert_ne!(*list, json!(null));
    list.as_array().unwrap().iter().map(|volume| text(&volume["name"])).collect()
}
