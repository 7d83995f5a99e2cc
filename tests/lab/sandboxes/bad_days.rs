//! Hosts that are away, changed, silent, full or bare; connections that break.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::{Host, Relay, Tmpfs, new_key};
use crate::lab::{
    Bench, DOCKER, PODMAN, Ran, Started, WEB_STACK, Way, free_port, port_of, rooms, signal,
    stack_args, text, wait_until,
};
use crate::sandboxes::rollback::{check_failed, containers, destroy, slow_stack};
use crate::support::json_assertions::JsonAssertions as _;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_cannot_be_used_is_named_with_a_way_out() {
    let bench = Bench::new();
    let good = Way::to(PODMAN, port_of(PODMAN));
    let stranger = new_key(&bench.path("stranger"));
    let nobody = bench.path("nobody_known");
    fs::write(&nobody, "").unwrap();
    let other = bench.path("other_known");
    let public = fs::read_to_string(stranger.with_extension("pub")).unwrap();
    fs::write(&other, format!("{PODMAN} {public}")).unwrap();
    let silent = Relay::start(port_of(PODMAN), &["--stall-after", "0"]);
    for (name, way) in [
        ("closed", Way { port: free_port(), ..good.clone() }),
        ("locked", Way { key: stranger, ..good.clone() }),
        ("unknown", Way { known_hosts: nobody, ..good.clone() }),
        ("changed", Way { known_hosts: other, ..good.clone() }),
        ("silent", Way { port: silent.port, ..good }),
    ] {
        bench.add_host(name, &way, &bench.workspace_root(PODMAN));
    }
    let before = bench.snapshot(PODMAN);
    let cases = [
        ("closed", "host_unreachable", "refused", "sshd"),
        ("nosuch.invalid", "host_unreachable", "resolve", "name"),
        ("locked", "host_unreachable", "credentials", "ssh"),
        ("unknown", "host_unreachable", "unknown_host_key", "StrictHostKeyChecking=ask"),
        ("changed", "host_changed", "", "ssh-keygen -R"),
        ("silent", "host_unreachable", "timeout", "ssh"),
    ];
    std::thread::scope(|scope| {
        for case in cases {
            let bench = &bench;
            scope.spawn(move || {
                let (host, code, kind, hint) = case;
                let ran = bench.run(["create", "--host", host]);
                let error = ran.error_with_hint(code);
                assert!(kind.is_empty() || error["details"]["kind"] == kind, "{host}: {error:#}");
                error.hints(hint);
                assert!(
                    !error["causes"].as_array().unwrap().is_empty(),
                    "ssh's own words: {error:#}"
                );
                assert_eq!(error["details"]["verdicts"][0]["host"], host, "{error:#}");
                assert!(ran.took < Duration::from_secs(45), "{host} took {:?}", ran.took);
            });
        }
    });
    assert_eq!(bench.stored().len(), 0, "refused before anything is written");
    // Of a profile's list the ones that are away are skipped, and named when none is left.
    let profile = bench
        .profile("away", "placement: {hosts: [closed, not-configured], strategy: first-available}");
    let repo = bench.web_stack("x");
    let input = format!("repo={}", repo.display());
    let error =
        bench.refused(["create", "--profile", &profile, "--input", &input], "host_unreachable");
    error.hints("--host local");
    let all = error["details"]["verdicts"].as_array().unwrap().iter();
    let reasons: Vec<String> = all.map(|verdict| text(&verdict["reason"])).collect();
    assert!(reasons[0].contains("refuses") && reasons[1] == "not configured", "{reasons:?}");
    bench.assert_unchanged(PODMAN, &before);
}

/// A create through a relay that takes long in `up`, with control sockets of its own.
struct Slow {
    create: Started,
    id: String,
    sockets: PathBuf,
}

fn start_slow(bench: &Bench) -> Slow {
    let run = bench.path("run");
    fs::create_dir_all(&run).unwrap();
    let profile = bench.profile("slow", "ready_timeout: 300s\nstop_grace: 1s");
    let repo = bench.stack("slow", &slow_stack(DOCKER));
    let mut command = bench.command(stack_args(&profile, "relayed", &repo, &[]));
    command.env("XDG_RUNTIME_DIR", &run);
    let create = Started::spawn(command);
    let id = text(&bench.wait_for_record(|record| record["state"] == "provisioning")["id"]);
    wait_until("its containers", || containers(DOCKER, &id) >= 2);
    Slow { create, id, sockets: run.join("sbx") }
}

/// The process that holds the shared connection.
fn master(sockets: &Path) -> u32 {
    let asked: Vec<String> = fs::read_dir(sockets)
        .unwrap()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let output = Command::new("ssh")
                .arg("-S")
                .arg(entry.path())
                .args(["-O", "check", "x"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Some(said.split_once("pid=")?.1.split_once(')')?.0.to_owned())
        })
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked[0].parse().unwrap()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_connection_that_breaks_during_up_is_rolled_back() {
    let bench = Bench::new();
    let relay = Relay::start(port_of(DOCKER), &[]);
    bench.add_host("relayed", &Way::to(DOCKER, relay.port), &bench.workspace_root(DOCKER));
    let before = bench.snapshot(DOCKER);
    for how in ["cut", "master killed"] {
        let Slow { create, id, sockets } = start_slow(&bench);
        if how == "cut" {
            relay.cut();
        } else {
            signal(master(&sockets), "KILL");
        }
        let error = create.finish().error_with_hint("host_unreachable");
        assert_eq!(error["details"]["kind"], "lost", "{how}: {error:#}");
        assert_eq!(error["details"]["leftovers"], json!([]), "{how}: {error:#}");
        let record = check_failed(&bench, &id, "provision_failed");
        assert_eq!(record["failure"]["step"], "up", "{how}: {record:#}");
        bench.assert_unchanged(DOCKER, &before);
        destroy(&bench, &id);
    }
    // Away for good: what is left is on the record, and goes when the host is back.
    let Slow { create, id, .. } = start_slow(&bench);
    let port = relay.port;
    drop(relay);
    let error = create.finish().error_with_hint("host_unreachable");
    error.hints("destroy");
    bench.get(&id).has(json!({
        "state": "failed", "reason": "provision_failed",
        "leftovers": [{"kind": "sandbox", "id": format!("sbx-{id}")}],
    }));
    let away = bench.run(["destroy", &id]);
    assert_eq!(away.status, Some(5), "{away:#?}");
    assert_eq!(away.json()[0]["error"]["code"], json!("host_unreachable"), "{away:#?}");
    bench.get(&id).has(json!({"state": "destroying", "reason": "host_lost", "operation": null}));
    let back = Relay::start_at(port, port_of(DOCKER), &[]);
    destroy(&bench, &id);
    bench.assert_unchanged(DOCKER, &before);
    drop(back);
}

/// A create that fails on the host's account; its record, after checking that it says so and that nothing is left.
fn fails(bench: &Bench, ran: &Ran, code: &str, step: &str) -> (Value, Value) {
    let error = ran.error_with_hint(code);
    assert_eq!(error["details"]["step"], step, "{error:#}");
    assert_eq!(error["details"]["leftovers"], json!([]), "{error:#}");
    let record = check_failed(bench, &text(&error["details"]["sandbox_id"]), "provision_failed");
    destroy(bench, &text(&record["id"]));
    (error, record)
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_full_disk_fails_before_or_during_the_transfer() {
    let bench = Bench::new();
    let big = bench
        .repository("big", &[("docker-compose.yml", WEB_STACK), ("big", &"x".repeat(8 << 20))]);
    let many = bench.stack("many", WEB_STACK);
    for n in 0..200 {
        fs::write(many.join(format!("file-{n}")), "x").unwrap();
    }
    for host in [DOCKER, PODMAN] {
        let before = bench.snapshot(host);
        let name = format!("small-{host}");
        let disk = Tmpfs::mount(bench.path(&name), "size=6m,nr_inodes=64");
        bench.add_host(&name, &Way::to(host, port_of(host)), &disk.path);
        let create = |repo: &Path| bench.try_stack(&name, repo, &[]);
        let (error, _) = fails(&bench, &create(&big), "operation_failed", "prepare");
        error.says("no room");
        // Bytes enough, but not one more file: only the transfer finds out.
        let (error, record) = fails(&bench, &create(&many), "operation_failed", "transfer");
        let causes = error["causes"].to_string();
        assert!(causes.contains("No space left on device"), "{host}: {error:#}");
        let told = text(&record["failure"]["output"]);
        assert!(told.contains("No space left on device"), "{host}: {record:#}");
        assert!(rooms(&disk.path).is_empty(), "{host}");
        bench.assert_unchanged(host, &before);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_bare_host_says_what_it_lacks() {
    let bench = Bench::new();
    let repo = bench.web_stack("x");
    let _no_tar = Host::start(&bench, "no-tar", &["=tar", "docker", "podman"]);
    let (error, record) =
        fails(&bench, &bench.run(["create", "--host", "no-tar"]), "missing_dependency", "prepare");
    assert_eq!(error["details"]["missing"], json!(["tar"]));
    error.hints("tar");
    assert_eq!(record["teardown"][0]["outcome"], "absent");
    let _bare = Host::start(&bench, "bare", &["docker", "podman", "rsync", "zstd"]);
    bench.try_stack("bare", &repo, &[]).error_with_hint("missing_dependency").hints("compose");
    // The host is asked before anything is written down.
    assert_eq!(bench.ok(["list"]), json!([]));
    // The canary needs none, and says that there is none.
    let canary = bench.ok(["create", "--host", "bare"]);
    assert_eq!(canary["certificate"]["runtime"], Value::Null, "{canary:#}");
    destroy(&bench, &text(&canary["id"]));
    for name in ["no-tar", "bare"] {
        let sandboxes = bench.path(format!("host-{name}/sandboxes"));
        assert!(rooms(&sandboxes).is_empty(), "{name}");
    }
}
