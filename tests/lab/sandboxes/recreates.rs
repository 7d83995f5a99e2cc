//! A recreate that cannot come to its end is refused while the sandbox that is there still runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, Started, on_engine, on_host, stack_args, text};
use crate::support::json_assertions::JsonAssertions as _;

const V1: &str = "sandboxer01-v1";
const NEW: &str = "coulombcore-new";

/// A service that writes a word into its volume once.
const KEEPER: &str = r#"services:
  keeper:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "[ -e /data/word ] || echo first >/data/word; exec sleep 600"]
    stop_signal: SIGKILL
    volumes: ["data:/data"]
volumes: {data: {}}
"#;

/// Its containers with when they were started, and the word in its volume.
fn there(host: &str, id: &str) -> String {
    let script = r#"for c in $($1 ps -aq --filter label=com.docker.compose.project=sbx-$2); do
  $1 inspect --format '{{.Id}} {{.State.Status}} {{.State.StartedAt}}' $c; $1 exec $c cat /data/word
done; $1 volume ls -q | grep "sbx-${2}_""#;
    on_engine(host, &[script, id])
}

/// The record without what every writing of it changes.
fn told(record: &Value) -> Value {
    let mut record = record.clone();
    for key in ["revision", "observed_at", "pending"] {
        record.as_object_mut().unwrap().remove(key);
    }
    record
}

/// The recreate of a sandbox whose file was changed is refused with this code and these words, and nothing is touched.
fn a_recreate_that_cannot_end_well_costs_nothing(
    host: &'static str,
    changes: &[(&str, &str, &str, &str)],
) {
    let bench = Bench::with(&[V1, NEW]).and_watches(&[host]);
    let profile = bench.profile("keeper", "compose: {ports: ephemeral, allow: [builds]}");
    let repo = bench.repository(
        "keeper",
        &[("docker-compose.yml", KEEPER), ("Dockerfile", "FROM localhost/sbx-nowhere:1\n")],
    );
    let made = bench.ok(stack_args(&profile, host, &repo, &[]));
    let id = text(&made["id"]);
    let (was, record) = (there(host, &id), told(&bench.get(&id)));
    assert!(was.contains("running") && was.contains("first"), "{was}");
    for (from, to, code, words) in changes {
        fs::write(repo.join("docker-compose.yml"), KEEPER.replace(from, to)).unwrap();
        let error = bench.refused(["recreate", &id, "--yes"], code);
        assert!(error.to_string().contains(words), "{to}: {error:#}");
        error.hints("nothing of the sandbox was touched");
        assert_eq!(there(host, &id), was, "{to}");
        assert_eq!(told(&bench.get(&id)), record, "{to}");
    }
    fs::write(repo.join("docker-compose.yml"), KEEPER).unwrap();
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    assert_ne!(there(host, &id), was, "it was made again");
    bench.ok(["destroy", &id]);
    bench.assert_as_before();
}

/// Lines of the file, what they become, and what is said to that.
const IMAGE: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "image: localhost/sbx-nowhere:1",
    "operation_failed",
    "localhost/sbx-nowhere:1 of services.keeper.image, which cannot be pulled",
);
const NEVER: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "image: localhost/sbx-nowhere:1\n    pull_policy: never",
    "operation_failed",
    "which is never pulled",
);
const BASE: (&str, &str, &str, &str) = (
    "image: localhost/sbx-lab:1",
    "build: .",
    "operation_failed",
    "localhost/sbx-nowhere:1 of services.keeper.build, which cannot be pulled",
);
const HOOK: (&str, &str, &str, &str) = (
    "stop_signal: SIGKILL",
    "stop_signal: SIGKILL\n    post_start: [{command: [\"true\"]}]",
    "invalid_input",
    "services.keeper.post_start",
);
const SUBNET: (&str, &str, &str, &str) = (
    "volumes: {data: {}}",
    "volumes: {data: {}}\nnetworks: {default: {ipam: {config: [{subnet: 'fd00::/64'}]}}}",
    "invalid_input",
    "the host has a route to fd00::/64",
);

/// Archives hold no images.
fn a_recreate_from_an_archive_whose_image_is_nowhere_costs_nothing(host: &'static str) {
    let bench = Bench::watching(&[host]);
    let image = format!("localhost/sbx-once-{}:1", std::process::id());
    let tag = |words: &str| on_engine(host, &[&format!("$1 {words} >/dev/null"), &image]);
    tag("tag localhost/sbx-lab:1 $2");
    let repo = bench.stack("once", &KEEPER.replace("localhost/sbx-lab:1", &image));
    let made = bench.create_stack(host, &repo, &[]);
    let taken = bench.ok(["snapshot", &text(&made["id"]), "--mode", "stop"]);
    let restored = bench.ok(["restore", &text(&taken["id"])]);
    let id = text(&restored["id"]);
    bench.ok(["destroy", &text(&made["id"])]);
    let (was, record) = (there(host, &id), told(&bench.get(&id)));
    tag("rmi $2");
    bench.refused(["recreate", &id, "--yes"], "operation_failed").says(&image);
    assert_eq!((there(host, &id), told(&bench.get(&id))), (was.clone(), record));
    tag("tag localhost/sbx-lab:1 $2");
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    assert_ne!(there(host, &id), was, "it was made again");
    bench.ok(["destroy", &id]);
    bench.ok(["snapshots", "delete", &text(&taken["id"])]);
    tag("rmi $2");
    bench.assert_as_before();
}

/// A sandbox with a volume and a subnet, from an archive; its subnet is somebody else's by the time that it is made again.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_from_an_archive_whose_subnet_was_taken_costs_nothing() {
    let bench = Bench::watching(&[DOCKER]);
    let of = format!("10.205.{}", std::process::id() % 250);
    let network = |words: &str| on_host(DOCKER, &[&format!("docker network {words}")]);
    let compose =
        format!("{KEEPER}networks: {{default: {{ipam: {{config: [{{subnet: {of}.0/24}}]}}}}}}\n");
    let repo = bench.stack("fixed", &compose);
    let made = bench.create_stack(DOCKER, &repo, &[]);
    let taken = bench.ok(["snapshot", &text(&made["id"]), "--mode", "stop"]);
    bench.ok(["destroy", &text(&made["id"])]);
    let id = text(&bench.ok(["restore", &text(&taken["id"])])["id"]);
    // The engine gives no subnet twice: the sandbox's own network goes first.
    let other = format!("sbx-test-taken-{}", std::process::id());
    on_host(
        DOCKER,
        &[
            "docker network disconnect -f \"sbx-$1_default\" \"$(docker ps -q --filter label=sandboxer.id=$1)\"; docker network rm \"sbx-$1_default\"",
            &id,
        ],
    );
    network(&format!("create --subnet {of}.128/25 {other}"));
    let (was, record) = (there(DOCKER, &id), told(&bench.get(&id)));
    assert!(was.contains("running") && was.contains("first"), "{was}");
    let error = bench.refused(["recreate", &id, "--yes"], "invalid_input");
    assert!(
        error.to_string().contains(&format!("the network {other} has {of}.128/25")),
        "{error:#}"
    );
    error.hints("nothing of the sandbox was touched");
    assert_eq!((there(DOCKER, &id), told(&bench.get(&id))), (was.clone(), record));
    network(&format!("rm {other}"));
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    assert_ne!(there(DOCKER, &id), was, "it was made again");
    bench.ok(["destroy", &id]);
    bench.ok(["snapshots", "delete", &text(&taken["id"])]);
    bench.assert_as_before();
}

/// `sbx-a-b-c-1` is the service `c` of `a-b`, and would be `b-c` of `a`.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_whose_new_service_would_have_anothers_name_costs_nothing() {
    let bench = Bench::watching(&[DOCKER]);
    let id = format!("n{}", std::process::id());
    let other = format!("{id}-b");
    let first = bench.stack("first", KEEPER);
    bench.create_stack(DOCKER, &first, &["--id", &id]);
    let second = bench.stack("second", &KEEPER.replace("keeper:", "c:"));
    bench.create_stack(DOCKER, &second, &["--id", &other]);
    let (was, record) = (there(DOCKER, &id), told(&bench.get(&id)));
    fs::write(first.join("docker-compose.yml"), KEEPER.replace("keeper:", "b-c:")).unwrap();
    let error = bench.refused(["recreate", &id, "--yes"], "conflict");
    error.says(&format!("sbx-{id}-b-c-1")).hints("nothing of the sandbox was touched");
    assert_eq!((there(DOCKER, &id), told(&bench.get(&id))), (was, record));
    bench.ok(["destroy", &other]);
    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    bench.ok(["destroy", &id]);
    bench.assert_as_before();
}

/// The other engine has no word in it: here one whose lists cannot be had, which would be asked when everything is gone.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_asks_the_engine_that_is_used_and_no_other() {
    let bench = Bench::watching(&[DOCKER]);
    let bin = bench.path("engines");
    fs::create_dir(&bin).unwrap();
    let (docker, podman) = (bin.join("docker"), bin.join("podman"));
    let real = on_host(DOCKER, &["command -v docker"]);
    fs::write(&docker, format!("#!/bin/sh\nexec {} \"$@\"\n", real.trim())).unwrap();
    let script = "#!/bin/sh\ncase \"$*\" in *debug*'ps -q') echo 'msg=\"Using graph root /\"' ;; --version) echo 'podman version 4.3.1' ;; *) echo out of order >&2; exit 1 ;; esac\n";
    fs::write(&podman, script).unwrap();
    for file in [&docker, &podman] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let engine = on_host(DOCKER, &["printf '%s\\n%s\\n' \"$DOCKER_HOST\" \"$DOCKER_CONFIG\""]);
    let engine: Vec<&str> = engine.lines().collect();
    let repo = bench.stack("plain", KEEPER);
    let run = |args: Vec<String>| {
        let mut command = bench.command(args);
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("DOCKER_HOST", engine[0]).env("DOCKER_CONFIG", engine[1]);
        Started::spawn(command).finish().ok()
    };
    let id = text(&run(stack_args("profile.compose-e2e", "local", &repo, &[]))["id"]);
    let was = there(DOCKER, &id);
    assert_eq!(run(["recreate", &id, "--yes"].map(str::to_owned).to_vec())["state"], "ready");
    assert_ne!(there(DOCKER, &id), was, "it was made again");
    run(["destroy", &id].map(str::to_owned).to_vec());
    bench.assert_as_before();
}

each_case! {
    a_recreate_that_cannot_end_well_costs_nothing {
        on_docker: DOCKER, &[IMAGE, NEVER, BASE, SUBNET];
        with_docker_compose_1_29: V1, &[HOOK, IMAGE];
        on_podman: PODMAN, &[HOOK, IMAGE, NEVER, BASE];
        with_podman_compose_1_6: NEW, &[HOOK, IMAGE, BASE, SUBNET];
    }

    a_recreate_from_an_archive_whose_image_is_nowhere_costs_nothing {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}
