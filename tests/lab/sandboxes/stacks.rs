//! What real stacks have: ports, builds, networks, volumes, links, and files that only root can remove.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{
    Bench, DOCKER, PODMAN, engine, free_port, http_get, on_host, stack_args, text, wait_until,
};

/// A create with a log; the record, and how many requests to its host all of it cost.
fn create_counted(bench: &Bench, profile: &str, host: &str, repo: &Path) -> (Value, usize) {
    let log = bench.path("debug.log");
    let _ = fs::remove_file(&log);
    let mut command = bench.command(stack_args(profile, host, repo, &[]));
    command.env("SANDBOXER_LOG", "sandboxer=debug").arg("--log-file").arg(&log);
    let made = crate::lab::Started::spawn(command).finish().ok();
    let log = fs::read_to_string(log).unwrap();
    let requests = log.lines().filter(|line| line.contains(" request ") && line.contains(host));
    (made, requests.count())
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn ports_follow_the_profile_and_a_create_is_four_requests_on_docker() {
    ports_follow_the_profile_and_a_create_is_four_requests(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn ports_follow_the_profile_and_a_create_is_four_requests_on_podman() {
    ports_follow_the_profile_and_a_create_is_four_requests(PODMAN);
}

fn ports_follow_the_profile_and_a_create_is_four_requests(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let port = free_port();
    let repo = bench.web_stack("by port");
    let compose = fs::read_to_string(repo.join("docker-compose.yml"))
        .unwrap()
        .replace("18080", &port.to_string());
    fs::write(repo.join("docker-compose.yml"), compose).unwrap();
    let keep = bench.profile("keep", "compose: {ports: keep, allow: []}");
    let public = bench.profile("public", "settle: 1s\ncompose: {ports: public, allow: []}");

    let (kept, _) = create_counted(&bench, &keep, host, &repo);
    let endpoint = &kept["reachability"]["endpoints"][0];
    assert_eq!(
        (&endpoint["container_port"], &endpoint["host_port"]),
        (&json!(80), &json!(port)),
        "{endpoint}"
    );
    assert!(http_get(&format!("http://127.0.0.1:{port}")).contains("by port"));

    let (open, trips) = create_counted(&bench, &public, host, &repo);
    let chosen = open["reachability"]["endpoints"][0]["host_port"].as_u64().unwrap();
    assert_ne!(chosen, u64::from(port));
    assert!(
        text(&open["reachability"]["endpoints"][0]["url"]).ends_with(&format!(":{chosen}")),
        "{open:#}"
    );
    let bound = on_host(
        host,
        &[
            "$1 port $($1 ps -q --filter label=com.docker.compose.project=sbx-$2)",
            engine(host),
            &text(&open["id"]),
        ],
    );
    assert!(bound.contains("0.0.0.0:"), "on all interfaces: {bound}");
    assert!(TcpStream::connect(("127.0.0.1", u16::try_from(chosen).unwrap())).is_ok());
    // What the host is; its directory with the tree; the start with a first look; the manifest with its deadline.
    assert_eq!(trips, 4);

    // A port that is taken: the engine's words, and nothing left.
    let error = bench.run(stack_args(&keep, host, &repo, &[])).error_with_hint("operation_failed");
    assert!(text(&error["details"]["failure"]["output"]).contains(&port.to_string()), "{error:#}");
    for record in [&kept, &open] {
        bench.run(["destroy", &text(&record["id"])]).ok();
    }
    bench.run(["destroy", &text(&error["details"]["sandbox_id"])]).ok();
    bench.assert_unchanged(host, &before);
}

const RICH: &str = r#"services:
  built:
    build: ./image
    command: ["sleep", "1000"]
    stop_signal: SIGKILL
    networks: [one, two, three]
    volumes: ["v1:/v1", "v2:/v2", "v3:/v3", "./through:/out"]
  writer:
    image: localhost/sbx-lab:1
    networks: [one]
    user: "0:0"
    command: ["sh", "-c", "mkdir -p /out/deep/er && echo secret > /out/deep/er/f && chown -R 4711:4711 /out/deep && chmod 000 /out/deep/er/f /out/deep/er /out/deep && echo x > /v1/x"]
    volumes: ["./through:/out", "v1:/v1"]
networks: {one: {}, two: {}, three: {}}
volumes: {v1: {}, v2: {}, v3: {}}
"#;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn builds_networks_volumes_and_odd_files_go_with_the_sandbox_on_docker() {
    builds_networks_volumes_and_odd_files_go_with_the_sandbox(DOCKER);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn builds_networks_volumes_and_odd_files_go_with_the_sandbox_on_podman() {
    builds_networks_volumes_and_odd_files_go_with_the_sandbox(PODMAN);
}

fn builds_networks_volumes_and_odd_files_go_with_the_sandbox(host: &str) {
    let bench = Bench::new();
    let before = bench.snapshot(host);
    let mark = format!("of={}", bench.path("").file_name().unwrap().to_str().unwrap());
    let repo = bench.repository(
        "rich",
        &[
            ("docker-compose.yml", RICH),
            (
                "image/Dockerfile",
                &format!("FROM localhost/sbx-lab:1\nLABEL {mark}\nCOPY greeting /greeting\n"),
            ),
            ("image/greeting", "built here"),
            (".sandboxerignore", "*.log\n/private/\n"),
            ("noise.log", "x"),
            ("private/key", "x"),
            ("deep/private/kept", "x"),
            ("deep/.sandboxerignore", "local\n"),
            ("deep/local", "x"),
            ("node_modules/left-pad/index.js", "x"),
            ("skip/me", "x"),
            ("out/there", "x"),
        ],
    );
    symlink("out", repo.join("through")).unwrap();
    let profile = bench.profile(
        "rich",
        "sync: {exclude: [node_modules, skip]}\nready_timeout: 120s\ncompose: {ports: ephemeral, allow: [builds]}",
    );
    let plan = bench.run(stack_args(&profile, host, &repo, &["--dry-run"])).ok();
    let made = bench.run(stack_args(&profile, host, &repo, &[])).ok();
    let id = text(&made["id"]);
    let workspace = Path::new(&text(&made["workdir"])).join("workspace");
    for (path, there) in [
        ("image/greeting", true),
        ("deep/private/kept", true),
        ("through/there", true),
        ("noise.log", false),
        ("private", false),
        ("deep/local", false),
        ("node_modules", false),
        ("skip", false),
    ] {
        assert_eq!(workspace.join(path).exists(), there, "{path}");
    }
    // compose file, Dockerfile, greeting, two ignore files, kept, there, and the link.
    assert_eq!(plan["preview"]["files"], 8, "{plan:#}");
    let locked = workspace.join("out/deep");
    let is_locked =
        || fs::metadata(&locked).is_ok_and(|locked| locked.permissions().mode() % 0o1000 == 0);
    wait_until("a container locked it", is_locked);
    let named = |kind: &str| {
        let script = r#"$1 $2 ls --filter "label=sandboxer.id=$3" --format '{{.Name}}'"#;
        on_host(host, &[script, engine(host), kind, &id]).lines().count()
    };
    assert_eq!((named("network"), named("volume")), (3, 3));
    let greeting = on_host(
        host,
        &[
            "$1 exec $($1 ps -q --filter label=com.docker.compose.service=built --filter label=com.docker.compose.project=sbx-$2) cat /greeting",
            engine(host),
            &id,
        ],
    );
    assert_eq!(greeting, "built here");

    bench.run(["destroy", &id]).ok();
    let record = bench.get(&id);
    assert_eq!(record["leftovers"], json!([]), "{record:#}");
    let kinds = |kind: &str| {
        record["teardown"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|line| line["resource"]["kind"] == kind && line["outcome"] == "removed")
            .count()
    };
    assert_eq!(
        (kinds("network"), kinds("volume"), kinds("image"), kinds("directory")),
        (3, 3, 1, 1),
        "{:#}",
        record["teardown"]
    );
    bench.assert_unchanged(host, &before);
    // Others build on the same engine: theirs do not bear the mark.
    let nameless = on_host(
        host,
        &["$1 images -q --filter dangling=true --filter label=$2", engine(host), &mark],
    );
    assert_eq!(nameless, "", "no nameless image is left");
}
