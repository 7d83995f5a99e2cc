//! Judgements before a sandbox is made are for the host that takes it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::held::held_and;
use crate::lab::{Bench, DOCKER, PODMAN, Way, free_port, on_host, stack_args, text};
use crate::support::json_assertions::JsonAssertions as _;

const V1: &str = "sandboxer01-v1";

const HOOKED: &str = "services:\n  web:\n    image: localhost/sbx-lab:1\n    pids_limit: 50\n    post_start: [{command: [\"true\"]}]\n";

fn paths(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| text(&one["path"])).collect()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_dry_run_shows_what_the_hosts_own_compose_gets() {
    let bench = Bench::with(&[V1]);
    let repo = bench.stack("hooked", HOOKED);
    for (host, tool, refused, rewritten) in [
        (DOCKER, "docker compose 2.26", &[][..], &[][..]),
        (V1, "docker-compose 1.29", &["services.web.post_start"], &[]),
        (
            PODMAN,
            "podman-compose 1.0.3 with podman 4.3.1",
            &["services.web.post_start"],
            &["services.web.pids_limit"],
        ),
    ] {
        let ran = bench.try_stack(host, &repo, &["--dry-run"]);
        let plan = ran.json();
        assert_eq!(paths(&plan["preview"]["refusals"]), refused, "{plan:#}");
        assert_eq!(paths(&plan["preview"]["rewrites"]), rewritten, "{plan:#}");
        assert!(text(&plan["verdicts"][0]["reason"]).contains(tool), "{plan:#}");
        assert_eq!(plan["ok"], json!(refused.is_empty()));
        if !refused.is_empty() {
            // The create ends the same way, with nothing written or made.
            let create = bench.try_stack(host, &repo, &[]);
            assert_eq!((create.status, ran.status), (Some(2), Some(2)));
            create.error("invalid_input");
        }
    }
    assert_eq!(bench.stored().len(), 0);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_dry_run_without_a_host_says_what_can_be_said() {
    let bench = Bench::new();
    bench.add_host("silent", &Way::to(DOCKER, free_port()), &bench.path("nowhere"));
    let repo = bench.stack("hooked", HOOKED);
    let ran = bench.try_stack("silent", &repo, &["--dry-run"]);
    let plan = ran.json();
    plan.has(json!({"preview.services": ["web"], "verdicts.0.ok": false}));
    ran.error("host_unreachable");
    // What is wrong wherever it goes is said first, and no host is asked for it.
    let wrong = bench.stack("wrong", "services: {web: {image: x, privileged: true}}\n");
    bench.try_stack("silent", &wrong, &[]).error("invalid_input");
}

/// A build that reads the host: the second stage mounts a link to `/` of the first (CVE-2024-1753). What it reads lies in the
/// bench's own folder.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_build_that_reads_the_host_needs_a_word_on_podman() {
    let bench = Bench::watching(&[PODMAN]);
    let secret = bench.path("of-the-host");
    fs::write(&secret, "of the host").unwrap();
    let dockerfile = format!(
        "FROM localhost/sbx-lab:1 AS a\nRUN [\"ln\", \"-s\", \"/\", \"/root-link\"]\nFROM localhost/sbx-lab:1\nRUN --mount=type=bind,rw,from=a,source=/root-link,target=/h cp /h{} /got || true\n",
        secret.display()
    );
    let compose = "services:\n  web:\n    build: .\n    command: [\"sh\", \"-c\", \"cat /got; exec sleep 600\"]\n    stop_signal: SIGKILL\n";
    let repo =
        bench.repository("escape", &[("docker-compose.yml", compose), ("Dockerfile", &dockerfile)]);
    let plan = bench.try_stack(PODMAN, &repo, &["--dry-run"]).json();
    let told = text(&plan["verdicts"][0]["reason"]);
    assert!(told.contains("builds only where the profile allows `builds`"), "{plan:#}");
    let error = bench.try_stack(PODMAN, &repo, &[]).error_with_hint("invalid_input");
    assert_eq!(error["details"]["refusals"][0]["allow"], "builds", "{error:#}");
    error.says("CVE-2024-1753");
    assert_eq!(bench.stored().len(), 0);
    bench.ok(["hosts", "check", PODMAN]).has(json!({"0.facts.runtimes.0.engine_version": "4.3.1"}));
    bench.assert_as_before();
    // With the word it is built. Whether it gets out depends on what the distribution mended; Debian's did not when this was
    // written, and the service said `of the host`.
    let profile = bench
        .profile("builds", "ready_timeout: 120s\ncompose: {ports: ephemeral, allow: [builds]}");
    let made = bench.ok(stack_args(&profile, PODMAN, &repo, &[]));
    assert_eq!(made["state"], "ready", "{made:#}");
    bench.ok(["destroy", &text(&made["id"])]);
    bench.assert_as_before();
}

/// An engine that is another one between the preview and the first command that makes something: nothing is started that was
/// judged for the one before.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_engine_that_changed_meanwhile_is_judged_again() {
    let bench = Bench::new();
    let bin = bench.path("changing");
    fs::create_dir(&bin).unwrap();
    let (docker, changed) = (bin.join("docker"), bench.path("changed"));
    let real = on_host(DOCKER, &["command -v docker"]);
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = info ] && [ -e {} ]; then exec {} \"$@\" | sed 's/|20[.]10[.][^|]*|/|99.1|/'; fi\nexec {} \"$@\"\n",
        changed.display(),
        real.trim(),
        real.trim()
    );
    fs::write(&docker, script).unwrap();
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755)).unwrap();
    let engine = on_host(DOCKER, &["printf '%s\\n%s\\n' \"$DOCKER_HOST\" \"$DOCKER_CONFIG\""]);
    let engine: Vec<&str> = engine.lines().collect();
    let repo = bench.stack(
        "plain",
        "services: {web: {image: 'localhost/sbx-lab:1', command: [sleep, '600'], stop_signal: SIGKILL}}\n",
    );
    let mut command = bench.command(stack_args("profile.compose-e2e", "local", &repo, &[]));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let log = bench.path("debug.log");
    command.env("PATH", path).env("DOCKER_HOST", engine[0]).env("DOCKER_CONFIG", engine[1]);
    command.env("SANDBOXER_LOG", "sandboxer=debug").arg("--log-file").arg(&log);
    let (create, gate) = held_and(&bench, "create.requested", "", command);
    fs::write(&changed, "").unwrap();
    gate.open();
    let made = create.finish().ok();
    let handle = &made["handle"]["runtime"];
    assert_eq!(handle["engine_version"], "99.1", "{made:#}");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("it is judged again"), "{log}");
    let mut destroy = bench.command(["destroy", &text(&made["id"])]);
    destroy.env("DOCKER_HOST", engine[0]).env("DOCKER_CONFIG", engine[1]);
    crate::lab::Started::spawn(destroy).finish().ok();
}

const DATA: &str = "services:\n  web:\n    image: localhost/sbx-lab:1\n    command: [sleep, \"1000\"]\n    volumes: [\"./data:/data\"]\n";

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_source_that_becomes_a_link_while_it_is_copied_is_not_followed() {
    let bench = Bench::new();
    let repo = bench.repository("linked", &[("compose.yaml", DATA), ("data/kept", "")]);
    let outside = bench.path("outside");
    fs::create_dir(&outside).unwrap();
    for (host, id) in [(DOCKER, "linked-d"), (PODMAN, "linked-p")] {
        let before = bench.snapshot(host);
        let command = bench.command(stack_args("profile.compose-e2e", host, &repo, &["--id", id]));
        let (create, gate) = held_and(&bench, "compose.rendered", "", command);
        let data = bench.workspace_root(host).join(format!("sbx-{id}/workspace/data"));
        fs::remove_dir_all(&data).unwrap();
        symlink(&outside, &data).unwrap();
        gate.open();
        let error = create.finish().error("operation_failed");
        assert!(error.to_string().contains("workspace/data is a link on this host"), "{error:#}");
        bench.assert_unchanged(host, &before);
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_link_whose_text_is_not_utf_8_leads_out() {
    let bench = Bench::new();
    let repo = bench.repository("odd", &[("compose.yaml", DATA)]);
    fs::create_dir(repo.join(OsStr::from_bytes(b"\xff"))).unwrap();
    symlink(OsStr::from_bytes(b"\xff/../../../../../tmp"), repo.join("data")).unwrap();
    for host in [DOCKER, PODMAN] {
        let error = bench.try_stack(host, &repo, &[]).error("invalid_input");
        assert!(error.to_string().contains("whose text is not UTF-8"), "{error:#}");
    }
}
