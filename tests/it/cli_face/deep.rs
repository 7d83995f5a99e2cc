//! `hosts check --deep`: a row for each step, and one status of all hosts.

use insta::assert_snapshot;
use sandboxer::domain::host_view::HostView;
use serde_json::{Value, json};

use super::cli_client::FakeClient;
use super::cli_world::*;
use super::fits;

/// What a deep check found; `fails` is the stage that failed, and why.
fn found(name: &str, state: &str, fails: Option<(&str, &str, &str)>) -> HostView {
    let mut failed = false;
    let mut step = |stage: &str| {
        let mut step = json!({"stage": stage, "outcome": "ok", "took_ms": 340, "message": "sandbox a1b2c3d4", "error": null});
        if failed && !matches!(stage, "destroy" | "host") {
            step["outcome"] = "skipped".into();
            step["message"] = "the step before failed".into();
        }
        if let Some((_, code, message)) = fails.filter(|(fails, _, _)| *fails == stage) {
            failed = true;
            step = json!({"stage": stage, "outcome": "failed", "took_ms": 12_340, "message": null, "error": {
                "code": code, "message": message, "causes": ["no space left\u{1b}[2J"], "hint": "make room on it",
                "retryable": false,
                "details": {"failure": {"step": "archive", "exit_status": 2, "output": "tar: cannot write\n"}},
            }});
        }
        step
    };
    let stages =
        ["probe", "canary", "stack", "write", "snapshot", "restore", "compare", "destroy", "host"];
    let steps: Vec<Value> = stages.into_iter().map(&mut step).collect();
    let mut view = serde_json::to_value(host(name, state)).unwrap();
    view["deep"] = json!({
        "ok": fails.is_none(), "operation": "op-0000000a", "steps": steps, "sandboxes": ["a1b2c3d4"],
        "snapshots": ["snap-0000000a"], "left": [],
    });
    serde_json::from_value(view).unwrap()
}

fn fleet() -> FakeClient {
    let fake = FakeClient::default();
    fake.lock().hosts = vec![
        found("coulombcore", "up", None),
        found(
            "sandboxer01",
            "up",
            Some(("snapshot", "operation_failed", "the archive could not be written")),
        ),
        found("railiance01", "down", Some(("probe", "host_unreachable", "railiance01 is down"))),
        host("prod", "forbidden"),
    ];
    fake
}

#[tokio::test]
async fn a_row_for_each_step_and_why_one_failed() {
    assert_snapshot!("deep", run(&fleet(), "hosts check --deep coulombcore sandboxer01").await);
    assert_snapshot!("deep_alone", run(&fleet(), "hosts check --deep railiance01").await);
}

#[tokio::test]
async fn the_status_is_that_of_all_hosts() {
    for (names, status) in [
        ("coulombcore", 0),
        ("COULOMBCORE coulombcore", 0),
        ("sandboxer01", 1),
        ("railiance01", 5),
        ("sandboxer01 railiance01", 8),
        ("coulombcore nowhere", 8),
        ("nowhere", 3),
        ("", 8),
    ] {
        let fake = fleet();
        let line = format!("hosts check --deep {names}");
        assert_eq!(run(&fake, &line).await.status, status, "{line}");
        assert!(
            !fake.calls().contains(&"deep_check prod".to_owned()),
            "what is out of bounds is left alone: {line}"
        );
        let ran = run(&fake, &format!("{line} --json")).await;
        assert_eq!(ran.status, status, "{line} --json");
        fits("hosts", &ran.json());
        if status != 0 {
            fits("error", &json!({"error": ran.error()}));
        }
    }
    let json = run(&fleet(), "hosts check --deep --json coulombcore").await.json();
    assert_eq!(
        (&json[0]["state"], &json[0]["deep"]["steps"][4]["stage"]),
        (&json!("up"), &json!("snapshot"))
    );
    assert_eq!(run(&fleet(), "hosts list --json").await.json()[3].get("deep"), None);
}

/// The hosts that run are waited for, and none is begun any more.
#[tokio::test]
async fn ctrl_c_calls_all_off() {
    let fake = FakeClient::default();
    let cancelled =
        |name: &str| found(name, "up", Some(("stack", "cancelled", "cancelled and rolled back")));
    fake.lock().hosts = ["one", "two", "three", "four"].map(cancelled).to_vec();
    fake.lock().deep_checks_wait = true;
    let ran = run_in(World { presses: 1, ..World::default() }, &fake, "hosts check --deep").await;
    assert_eq!(ran.status, 130, "{ran}");
    let calls = fake.calls();
    for name in ["one", "two", "three"] {
        assert!(calls.contains(&format!("cancel op-{name}")), "{calls:?}");
    }
    assert!(!calls.contains(&"deep_check four".to_owned()), "{calls:?}");
}
