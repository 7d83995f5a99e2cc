//! Create, list, get, wait, recreate and destroy; the host afterwards exactly as before.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sandboxer::domain::event::{EventKind, derived_event_id};
use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{
    Bench, DOCKER, PODMAN, WEB_STACK, engine, http_get, on_engine, text, tree, url_of,
};
use crate::support::json_assertions::JsonAssertions as _;

each_case! {
    a_stack_lives_and_leaves_nothing {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn a_stack_lives_and_leaves_nothing(host: &str) {
    let bench = Bench::watching(&[host]);
    let repo = bench.repository(
        "shop",
        &[
            ("docker-compose.yml", &format!("{WEB_STACK}    networks: [front]\n    depends_on: {{init: {{condition: service_completed_successfully, required: true}}}}\n  init:\n    image: localhost/sbx-lab:1\n    command: [\"sh\", \"-c\", \"echo ${{WORD}} > /data/word\"]\n    volumes: [\"data:/data\"]\nvolumes:\n  data: {{}}\nnetworks:\n  front: {{}}\n")),
            (".env", "WORD=spoken\n"),
            ("www/index.html", "hello from the shop"),
            (".git/HEAD", "ref: refs/heads/main"),
        ],
    );
    let more = [
        "--name",
        "shop",
        "--label",
        "team=a b",
        "--label",
        "x=1",
        "--ttl",
        "30m",
        "--idempotency-key",
        "k1",
    ];
    let made = bench.create_stack(host, &repo, &more);
    let id = text(&made["id"]);

    check_record(&bench, &made, host, &repo);
    check_host(&bench, &made, host);
    let url = url_of(&made);
    assert!(http_get(&url).contains("hello from the shop"));

    // The same request again is the same sandbox; another one with this key is refused.
    let again = bench.create_stack(host, &repo, &more);
    again.has(json!({"id": made["id"], "revision": made["revision"]}));
    let other = bench.try_stack(host, &repo, &["--idempotency-key", "k1"]);
    other.error_with_hint("conflict").has(json!({"details.id": made["id"]}));

    for way in [id.as_str(), "shop", &id[..4]] {
        assert_eq!(bench.get(way)["id"], made["id"], "by {way}");
    }
    check_list(&bench, &id, host);
    assert_eq!(bench.ok(["wait", &id, "--timeout", "5s"])["state"], "ready");
    let late = bench.run(["wait", &id, "--for", "destroyed", "--timeout", "1s"]);
    late.error("timeout");

    // Recreate is destructive, so it has to be meant; it keeps the id and restarts the clock.
    bench.run(["recreate", &id]).error("usage");
    let reborn = bench.ok(["recreate", &id, "--yes"]);
    reborn.has(json!({"id": made["id"], "name": made["name"], "state": "ready"}));
    assert!(text(&reborn["expires_at"]) > text(&made["expires_at"]));
    assert_eq!(reborn["operation"], Value::Null);
    check_host(&bench, &reborn, host);
    assert!(http_get(&url_of(&reborn)).contains("hello from the shop"));

    let gone = bench.ok(["destroy", &id]);
    assert_eq!(gone, json!([{"id": id, "ok": true}]));
    let record = bench.get(&id);
    record.has(json!({"state": "destroyed", "leftovers": []}));
    let outcome = |kind: &str| {
        let lines = record["teardown"].as_array().unwrap();
        lines
            .iter()
            .find(|line| line["resource"]["kind"] == kind)
            .map(|line| text(&line["outcome"]))
    };
    for kind in ["container", "network", "volume", "directory"] {
        assert_eq!(outcome(kind).as_deref(), Some("removed"), "{kind}: {:#}", record["teardown"]);
    }
    bench.assert_as_before();

    // Once more is nothing to do; the name is free again.
    assert_eq!(bench.ok(["destroy", &id]), json!([{"id": id, "ok": true}]));
    assert_eq!(bench.ok(["list"]), json!([]));
    assert_eq!(bench.ok(["list", "--all"]).as_array().unwrap().len(), 1);
    assert_eq!(bench.ok(["wait", &id, "--for", "destroyed"])["state"], "destroyed");
    let kinds = check_events(&bench, &id);
    let born = [
        "requested",
        "provisioning",
        "ready",
        "destroying",
        "provisioning",
        "recreated",
        "ready",
        "destroying",
        "destroyed",
    ];
    assert_eq!(kinds, born.map(|word| format!("sandbox.{word}")));
    check_data(&bench);
}

/// Every field of the contract's section 3 that has a value in this version.
fn check_record(bench: &Bench, record: &Value, host: &str, repo: &Path) {
    let id = text(&record["id"]);
    assert!(id.len() == 8 && id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')), "{id}");
    for (key, value) in [
        ("name", json!("shop")),
        ("labels", json!({"team": "a b", "x": "1"})),
        ("extension", json!("ext.compose-ssh")),
        ("host", json!(host)),
        ("workdir", json!(bench.workspace_root(host).join(format!("sbx-{id}")))),
        ("state", json!("ready")),
        ("reason", json!("user")),
        ("operation", Value::Null),
        ("inputs", json!({"repo": repo})),
        ("failure", Value::Null),
        ("leftovers", json!([])),
        ("actor", json!({"type": "adm", "name": "tester"})),
        ("idempotency_key", json!("k1")),
        ("patch_state", json!("none")),
        ("based_on_snapshot", Value::Null),
        ("applied_patches", json!([])),
        ("last_patch_sequence", json!(0)),
        ("quote_usd", Value::Null),
    ] {
        assert_eq!(record[key], value, "{key}");
    }
    record.has(json!({"profile.id": "profile.compose-e2e", "profile.version": "1.0.0"}));
    assert_eq!(text(&record["profile"]["hash"]).len(), 64);
    assert_eq!(record["host_identity"]["engine"], engine(host));
    assert!(!text(&record["host_identity"]["engine_id"]).is_empty());
    assert!(!text(&record["host_identity"]["machine_id"]).is_empty());
    record.has(json!({"route.host": host, "attempts.0.host": host}));
    assert!(record["revision"].as_u64().unwrap() > 1);
    assert!(record["handle"].is_object());
    for key in [
        "message",
        "max_expires_at",
        "hold_usd",
        "cost_usd",
        "undo_of",
        "patch_error",
        "telemetry",
        "certificate",
        "not_preserved",
        "pending",
    ] {
        assert!(record.get(key).is_some(), "{key} is there");
    }
    let owner = fs::read_to_string(bench.data().join("owner")).unwrap();
    assert!(owner.contains(&text(&record["owner"])), "{owner}");
    for key in ["since", "observed_at", "created_at", "ready_at", "expires_at"] {
        let time = text(&record[key]);
        assert!(time.ends_with('Z') && time.parse::<jiff::Timestamp>().is_ok(), "{key}: {time}");
    }
    assert_eq!(seconds_between(&record["ready_at"], &record["expires_at"]), 1800);
    assert_eq!(seconds_between(&record["ready_at"], &record["max_expires_at"]), 24 * 3600);

    let services = record["services"].as_array().unwrap();
    let named = |name: &str| services.iter().find(|service| service["name"] == name).unwrap();
    assert_eq!(named("web")["state"], "running");
    assert_eq!(named("init")["state"], json!("exited"));
    assert_eq!(named("init")["exit_code"], json!(0));
    let rewrites = record["rewrites"].to_string();
    assert!(rewrites.contains("container_name") && rewrites.contains("ports"), "{rewrites}");

    let reach = &record["reachability"];
    assert_eq!(reach["host"], host);
    assert!(text(&reach["ssh"]).starts_with("ssh -F "), "{reach}");
    assert!(text(&reach["ssh"]).contains(host), "{reach}");
    let endpoint = &reach["endpoints"][0];
    let port = endpoint["host_port"].as_u64().unwrap();
    endpoint.has(json!({
        "service": "web", "container_port": 80, "protocol": "tcp",
        "url": format!("http://127.0.0.1:{port}"),
    }));
    let told = text(&endpoint["tunnel"]);
    assert!(told.contains(&format!("-L {port}:127.0.0.1:{port}")), "{endpoint}");
    assert_ne!(port, 18080);
}

fn seconds_between(from: &Value, to: &Value) -> i64 {
    let at = |value: &Value| text(value).parse::<jiff::Timestamp>().unwrap().as_second();
    at(to) - at(from)
}

/// The contract's section 6: directory, manifest, rendered file, labels.
fn check_host(bench: &Bench, record: &Value, host: &str) {
    let id = text(&record["id"]);
    let folder = bench.workspace_root(host).join(format!("sbx-{id}"));
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let fields = manifest.as_object_mut().unwrap();
    // Enough to adopt it: the record as it was, and the profile that it was made with.
    let (sandbox, profile) = (fields.remove("sandbox").unwrap(), fields.remove("recipe").unwrap());
    assert_eq!(
        (&sandbox["id"], &sandbox["name"], &sandbox["handle"], &profile["id"]),
        (&record["id"], &record["name"], &record["handle"], &record["profile"]["id"])
    );
    assert_eq!(
        manifest,
        json!({
            "schema": 1, "id": id, "owner": record["owner"], "profile": record["profile"]["id"],
            "created_at": record["created_at"], "expires_at": record["expires_at"], "project": format!("sbx-{id}"),
        })
    );
    let rendered = fs::read_to_string(folder.join("compose.yaml")).unwrap();
    assert!(!rendered.contains("container_name") && !rendered.contains("18080"), "{rendered}");
    assert!(rendered.contains("spoken") && !rendered.contains("WORD"), "interpolated: {rendered}");
    assert!(folder.join("workspace/www/index.html").is_file());
    assert!(!folder.join("workspace/.git").exists(), "excluded by the profile");

    let (owner, profile) = (text(&record["owner"]), text(&record["profile"]["id"]));
    let labels = [
        format!("sandboxer.id={id}"),
        format!("sandboxer.owner={owner}"),
        format!("sandboxer.profile={profile}"),
        format!("com.docker.compose.project=sbx-{id}"),
    ];
    let own =
        labels.map(|label| labelled(host, &label)).into_iter().reduce(|a, b| &a & &b).unwrap();
    let count = |kind: &str| own.iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("container"), count("volume")), (2, 1), "{own:#?}");
    assert!(count("network") >= 1, "{own:#?}");
    let counter = format!("home/.local/state/sandboxer/owners/{owner}");
    assert!(crate::lab::lab().join("hosts").join(host).join(counter).is_file());
}

/// Containers, networks and volumes with this label. (Several `--filter` at once mean "or" to podman's volumes.)
fn labelled(host: &str, label: &str) -> BTreeSet<String> {
    let script = r#"
$1 ps -aq --no-trunc --filter "label=$2" | sed 's/^/container /'
$1 network ls -q --filter "label=$2" | sed 's/^/network /'
$1 volume ls -q --filter "label=$2" | sed 's/^/volume /'"#;
    on_engine(host, &[script, label]).lines().map(str::to_owned).collect()
}

fn check_list(bench: &Bench, id: &str, host: &str) {
    let ids = |more: &[&str]| -> Vec<String> {
        let args: Vec<&str> = std::iter::once("list").chain(more.iter().copied()).collect();
        bench.ok(args).as_array().unwrap().iter().map(|record| text(&record["id"])).collect()
    };
    let other = if host == DOCKER { PODMAN } else { DOCKER };
    let yes: [&[&str]; 6] = [
        &[],
        &["--state", "ready"],
        &["--state", "failed", "--state", "ready"],
        &["--host", &host.to_uppercase()],
        &["--profile", "profile.compose-e2e"],
        &["--label", "team=a b", "--label", "x=1"],
    ];
    for filter in yes {
        assert_eq!(ids(filter), [id], "{filter:?}");
    }
    let no: [&[&str]; 4] = [
        &["--state", "failed"],
        &["--host", other],
        &["--profile", "profile.sandbox-canary"],
        &["--label", "x=2"],
    ];
    for filter in no {
        assert!(ids(filter).is_empty(), "{filter:?}");
    }
}

/// Events of one sandbox: numbered, in order, with ids that derive from record, revision and kind.
fn check_events(bench: &Bench, id: &str) -> Vec<String> {
    let events = bench.ok(["events", "--sandbox", id]);
    let events = events.as_array().unwrap();
    let mut ids = BTreeSet::new();
    let (mut seq, mut sandbox_seq) = (0, 0);
    for event in events {
        assert!(event["seq"].as_u64().unwrap() > seq, "{events:#?}");
        assert_eq!(event["sandbox_seq"].as_u64().unwrap(), sandbox_seq + 1, "{events:#?}");
        (seq, sandbox_seq) =
            (event["seq"].as_u64().unwrap(), event["sandbox_seq"].as_u64().unwrap());
        event.has(json!({"sandbox_id": id, "actor": {"type": "adm", "name": "tester"}}));
        assert!(text(&event["time"]).ends_with('Z'));
        let kind: EventKind = serde_json::from_value(event["kind"].clone()).unwrap();
        let derived = |revision| event["id"] == json!(derived_event_id(id, revision, &kind));
        assert!((1..100).any(derived), "{event}");
        assert!(ids.insert(text(&event["id"])), "twice: {event}");
    }
    bench.event_kinds(id)
}

/// Files 0600, folders 0700, and each document in its frame.
fn check_data(bench: &Bench) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut folders = vec![bench.data()];
    while let Some(folder) = folders.pop() {
        assert_eq!(
            fs::metadata(&folder).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
        }
    }
    for name in ["sandboxes.json", "operations.json"] {
        let document: Value =
            serde_json::from_slice(&fs::read(bench.data().join(name)).unwrap()).unwrap();
        assert_eq!(document["schema"], 1, "{name}");
        assert!(document["revision"].is_u64() && document["records"].is_array(), "{name}");
        assert!(bench.data().join(format!("{name}.bak")).is_file());
    }
    for record in bench.stored() {
        // Whatever a write of the record caused is in the log: `pending` holds at most what the last writer appended.
        let pending = record["pending"].as_array().unwrap();
        assert!(pending.len() <= 2, "{pending:#?}");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_canary_proves_both_hosts_and_leaves_nothing() {
    let bench = Bench::new();
    for host in [DOCKER, PODMAN] {
        let before = bench.snapshot(host);
        let made = bench.ok(["create", "--host", host]);
        let id = text(&made["id"]);
        made.has(json!({"profile.id": "profile.sandbox-canary", "state": "ready", "services": []}));
        let telemetry = &made["telemetry"];
        assert!(telemetry["cpus"].as_u64().unwrap() > 0);
        assert!(telemetry["disk"]["available_bytes"].as_u64().unwrap() > 0);
        assert!(telemetry["clock_offset_s"].as_f64().unwrap().abs() < 5.0, "{telemetry:#}");
        assert!(telemetry["inventory"]["sandboxes"].as_u64().unwrap() > 0, "{telemetry:#}");
        let certificate = &made["certificate"];
        let (flavour, trusted) =
            if host == DOCKER { ("docker-compose-v2", true) } else { ("podman-compose", false) };
        assert_eq!(certificate["runtime"]["flavour"], flavour);
        assert_eq!(certificate["runtime"]["engine"], engine(host));
        assert_eq!(certificate["exit_codes_trusted"], trusted);
        assert!(!certificate["findings"].as_array().unwrap().is_empty());
        // The certification leaves nothing behind even while the sandbox lives.
        let containers =
            on_engine(host, &["$1 ps -aq --filter label=com.docker.compose.project=sbx-$2", &id]);
        assert_eq!(containers, "");
        let folder = bench.workspace_root(host).join(format!("sbx-{id}"));
        assert!(folder.join("manifest.json").is_file() && !folder.join(".certify").exists());
        assert_eq!(fs::read_dir(folder.join("workspace")).unwrap().count(), 0);
        bench.ok(["destroy", &id]);
        assert_eq!(bench.get(&id)["state"], "destroyed");
        bench.assert_unchanged(host, &before);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_canary_needs_nothing_but_the_base_of_this_machine() {
    let bench = Bench::new();
    let made = bench.run_base(["create"]).ok();
    let id = text(&made["id"]);
    made.has(json!({"host": "local", "state": "ready"}));
    assert_eq!(made["certificate"]["runtime"], Value::Null, "no runtime, nothing to certify");
    let folder = bench.home().join(format!("sandboxes/sbx-{id}"));
    made.has(json!({
        "workdir": folder, "reachability.ssh": format!("cd {}/workspace", folder.display()),
    }));
    assert!(folder.join("workspace").is_dir() && folder.join("manifest.json").is_file());

    let told = bench.run_base(["recreate", &id, "--yes"]).ok();
    told.has(json!({"id": made["id"], "state": "ready"}));
    bench.run_base(["destroy", &id]).ok();
    let left = tree(&bench.home().join("sandboxes"));
    assert!(
        left.len() == 1 && left.iter().all(|line| line.contains("/.sandboxer-root ")),
        "its mark alone: {left:#?}"
    );
    assert_eq!(check_events(&bench, &id).last().map(String::as_str), Some("sandbox.destroyed"));
    check_data(&bench);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_dry_run_touches_nothing() {
    let bench = Bench::new();
    let repo = bench.web_stack("x");
    let before = [bench.snapshot(DOCKER), bench.snapshot(PODMAN)];
    let files = tree(&bench.path(""));
    for host in [DOCKER, PODMAN] {
        let plan = bench.create_stack(host, &repo, &["--dry-run", "--name", "dry"]);
        plan.has(
            json!({"ok": true, "route.host": host, "ttl_s": 14400, "inputs.compose_file": null}),
        );
        let preview = &plan["preview"];
        assert_eq!((&preview["files"], &preview["refusals"]), (&json!(2), &json!([])), "{plan:#}");
        assert_eq!(preview["bytes"], WEB_STACK.len() + 1);
        assert_eq!(preview["services"], json!(["web"]));
        // As this host's compose gets it: podman-compose 1.0 knows no aliases.
        let rewritten = if host == DOCKER { 2 } else { 3 };
        assert_eq!(preview["rewrites"].as_array().unwrap().len(), rewritten, "{plan:#}");
    }
    // Without --host both are asked, and both verdicts are told.
    let repo_input = format!("repo={}", repo.display());
    let plan = bench.ok([
        "create",
        "--dry-run",
        "--profile",
        "profile.compose-e2e",
        "--input",
        &repo_input,
    ]);
    assert_eq!(plan["verdicts"].as_array().unwrap().len(), 2, "{plan:#}");
    // All that would be refused is told at once.
    let bad = bench.stack(
        "bad",
        "services:\n  a: {image: x, privileged: true, pid: host}\n  b: {image: x, volumes: [\"/etc:/e\"]}\n",
    );
    let ran = bench.try_stack(DOCKER, &bad, &["--dry-run"]);
    assert!(ran.json()["preview"]["refusals"].as_array().unwrap().len() >= 3, "{ran:#?}");
    ran.error("invalid_input");

    fs::remove_dir_all(&bad).unwrap();
    let now = tree(&bench.path(""));
    let more: Vec<_> = now.difference(&files).filter(|line| !line.contains("/state/")).collect();
    assert!(more.is_empty(), "the data directory is as it was: {more:#?}");
    bench.assert_unchanged(DOCKER, &before[0]);
    bench.assert_unchanged(PODMAN, &before[1]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn ids_names_labels_and_ttl_follow_their_rules() {
    let bench = Bench::new();
    let create =
        |more: &[&str]| bench.run_base(std::iter::once("create").chain(more.iter().copied()));
    let mine = create(&["--id", "mine-1", "--name", "first", "--label", "k=v"]).ok();
    mine.has(json!({"id": "mine-1", "name": "first", "labels": {"k": "v"}}));
    create(&["--input", "sandbox_id=mine-2"]).ok().has(json!({"id": "mine-2"}));
    create(&["--id", "mine-1"]).error("conflict");
    create(&["--name", "first"]).error("conflict");
    create(&["--id", "first"]).error("conflict");
    create(&["--name", "mine-2"]).error("conflict");
    create(&["--id", "a1", "--input", "sandbox_id=a2"]).error("invalid_input");
    for id in ["", "-x", "UPPER", "a b", "a/b", "..", "a_b", &"x".repeat(32)] {
        create(&[&format!("--id={id}")]).error("invalid_input");
    }
    for name in ["", "-x", "Upper", "a b", "0123abcd", "snap-0123abcd", &"x".repeat(64)] {
        create(&[&format!("--name={name}")]).error("invalid_input");
    }
    for ttl in ["none", "25h", "0", "0s", "-1h", "soon", "99999999999999999999h"] {
        let error = create(&["--ttl", ttl]).error("invalid_input");
        assert_eq!(error["details"]["field"], "ttl", "{ttl}: {error:#}");
    }
    // A profile without a limit takes `none`, and then there is no deadline.
    let endless = "profile.endless";
    fs::write(
        bench.path("profiles/endless.yaml"),
        "id: profile.endless\nversion: 1.0.0\nsummary: x\nextension: ext.compose-ssh\nttl: 1h\nready_timeout: 30s\nstop_grace: 1s\nconfig: {workspace_only: true}\n",
    )
    .unwrap();
    let endless = create(&["--profile", endless, "--ttl", "none"]).ok();
    endless.has(json!({"expires_at": null, "max_expires_at": null}));
    let manifest = fs::read(Path::new(&text(&endless["workdir"])).join("manifest.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&manifest).unwrap()["expires_at"], Value::Null);

    // Refused requests left no record.
    assert_eq!(bench.stored().len(), 3);
    // A protected one is spared until forced; a bulk verb says what became of each.
    let kept = create(&["--label", "protect=true"]).ok();
    let kept = text(&kept["id"]);
    let ran = bench.run_base(["destroy", "mine-1", "no-such", &kept]);
    let told = ran.json();
    told.has(json!({
        "0": {"id": "mine-1", "ok": true}, "1.ok": false, "1.error.code": "not_found",
        "2.ok": false, "2.error.code": "conflict",
    }));
    assert_eq!(ran.status, Some(8), "{ran:#?}");
    bench.run_base(["destroy", &kept, "--force-protected"]).error("usage");
    bench.run_base(["destroy", &kept, "--force-protected", "--yes"]).ok();
    // Prefixes are for people: a script has to say that it means them.
    bench.run_base(["destroy", &text(&endless["id"])[..5]]).error("usage");
    bench.run_base(["destroy", &text(&endless["id"])[..5], "--yes"]).ok();
    bench.run_base(["get", "nothing-such"]).error("not_found");
    // A destroyed one's id stays taken, its name does not.
    create(&["--id", "mine-1"]).error("conflict");
    create(&["--name", "first"]).ok();
}
