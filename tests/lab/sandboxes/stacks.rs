//! What real stacks have: ports, builds, networks, volumes, links, and files that only root can remove.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{
    Bench, DOCKER, PODMAN, free_port, http_get, on_engine, stack_args, text, url_of, wait_until,
};
use crate::support::json_assertions::JsonAssertions as _;

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

fn ports_follow_the_profile_and_a_create_is_four_requests(host: &str) {
    let bench = Bench::watching(&[host]);
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
    endpoint.has(json!({"container_port": 80, "host_port": port}));
    assert!(http_get(&format!("http://127.0.0.1:{port}")).contains("by port"));

    let (open, trips) = create_counted(&bench, &public, host, &repo);
    let chosen = open["reachability"]["endpoints"][0]["host_port"].as_u64().unwrap();
    assert_ne!(chosen, u64::from(port));
    assert!(url_of(&open).ends_with(&format!(":{chosen}")), "{open:#}");
    let bound = on_engine(
        host,
        &[
            "$1 port $($1 ps -q --filter label=com.docker.compose.project=sbx-$2)",
            &text(&open["id"]),
        ],
    );
    assert!(bound.contains("0.0.0.0:"), "on all interfaces: {bound}");
    assert!(TcpStream::connect(("127.0.0.1", u16::try_from(chosen).unwrap())).is_ok());
    // What the host is; its directory with the tree; the start with a first look; the manifest with its deadline.
    assert_eq!(trips, 4);

    // A port that is taken: the engine's words, and nothing left.
    let error = bench.refused(stack_args(&keep, host, &repo, &[]), "operation_failed");
    assert!(text(&error["details"]["failure"]["output"]).contains(&port.to_string()), "{error:#}");
    for record in [&kept, &open] {
        bench.ok(["destroy", &text(&record["id"])]);
    }
    bench.ok(["destroy", &text(&error["details"]["sandbox_id"])]);
    bench.assert_as_before();
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

fn builds_networks_volumes_and_odd_files_go_with_the_sandbox(host: &str) {
    let bench = Bench::watching(&[host]);
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
    let plan = bench.ok(stack_args(&profile, host, &repo, &["--dry-run"]));
    let made = bench.ok(stack_args(&profile, host, &repo, &[]));
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
        on_engine(host, &[script, kind, &id]).lines().count()
    };
    assert_eq!((named("network"), named("volume")), (3, 3));
    let greeting = on_engine(
        host,
        &[
            "$1 exec $($1 ps -q --filter label=com.docker.compose.service=built --filter label=com.docker.compose.project=sbx-$2) cat /greeting",
            &id,
        ],
    );
    assert_eq!(greeting, "built here");

    bench.ok(["destroy", &id]);
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
    bench.assert_as_before();
    // Others build on the same engine: theirs do not bear the mark.
    let nameless =
        on_engine(host, &["$1 images -q --filter dangling=true --filter label=$2", &mark]);
    assert_eq!(nameless, "", "no nameless image is left");
}

each_case! {
    ports_follow_the_profile_and_a_create_is_four_requests {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }

    builds_networks_volumes_and_odd_files_go_with_the_sandbox {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}
