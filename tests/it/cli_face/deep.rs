//! `hosts check --deep`: a row for each step, and one status of all hosts.

use insta::assert_snapshot;
use sandboxer::domain::error::Code;
use sandboxer::domain::host_view::HostState;
use serde_json::json;

use super::cli_world::*;
use super::fits;
use crate::test_env::fixture::{Fixture, host};
use crate::test_env::script::Act;

/// Hosts of which one is down and one out of bounds.
async fn fleet() -> Console {
    let hosts = vec![
        host("coulombcore", HostState::Up, Some(12)),
        host("sandboxer01", HostState::Up, Some(12)),
        host("railiance01", HostState::Down, None),
        host("prod", HostState::Forbidden, None),
    ];
    env_of(Fixture { hosts, ..Fixture::default() }).await
}

/// The next archive cannot be written.
fn no_archive(console: &Console) {
    let full = Act::Fail(Code::OperationFailed, "the archive could not be written\u{1b}[2J");
    console.script.shelf.capture.lock().unwrap().push_back(full);
}

#[tokio::test]
async fn a_row_for_each_step_and_why_one_failed() {
    let console = fleet().await;
    let mut text = String::new();
    for name in ["coulombcore", "sandboxer01", "railiance01"] {
        if name == "sandboxer01" {
            no_archive(&console);
        }
        text.push_str(&format!(
            "{}\n",
            run(&console, &format!("hosts check --deep --quiet {name}")).await
        ));
    }
    assert_snapshot!("deep", untimed(&text));
}

/// The text without what steps took, and how wide that was.
fn untimed(text: &str) -> String {
    let row = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [host, step, outcome @ ("ok" | "failed"), _, what @ ..] => {
            format!("{host} {step} {outcome} TOOK {}", what.join(" "))
        }
        words if line.contains("skipped") => words.join(" "),
        ["HOST", ..] => "HOST STEP OUTCOME TOOK WHAT".to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(|line| row(line) + "\n").collect()
}

#[tokio::test]
async fn the_status_is_that_of_all_hosts() {
    for (names, status) in [
        ("coulombcore", 0),
        ("COULOMBCORE coulombcore", 0),
        ("sandboxer01", 1),
        ("railiance01", 5),
        ("coulombcore railiance01", 8),
        ("coulombcore nowhere", 8),
        ("nowhere", 3),
        ("", 8),
    ] {
        let console = fleet().await;
        let line = format!("hosts check --deep {names}");
        if names == "sandboxer01" {
            no_archive(&console);
            no_archive(&console);
        }
        assert_eq!(exits(&console, &line).await, status, "{line}");
        assert!(
            !console.calls().iter().any(|call| call.contains("prod")),
            "what is out of bounds is left alone: {line}"
        );
        let ran = run(&console, &format!("{line} --json")).await;
        assert_eq!(ran.status, status, "{line} --json");
        fits("hosts", &ran.json());
        if status != 0 {
            fits("error", &json!({"error": ran.error()}));
        }
    }
    let json = run(&fleet().await, "hosts check --deep --json coulombcore").await.json();
    assert_eq!(
        (&json[0]["state"], &json[0]["deep"]["steps"][4]["stage"]),
        (&json!("up"), &json!("snapshot"))
    );
    assert_eq!(document(&fleet().await, "hosts list").await[3].get("deep"), None);
}

/// The hosts that run are waited for, and none is begun any more.
#[tokio::test]
async fn ctrl_c_calls_all_off() {
    let hosts =
        ["one", "two", "three", "four"].map(|name| host(name, HostState::Up, None)).to_vec();
    let console = env_of(Fixture { hosts, ..Fixture::default() }).await;
    console.script(&[Act::Hang, Act::Hang, Act::Hang, Act::Hang], &[], &[]);
    let ran = run_in(pressed(1, "provision"), &console, "hosts check --deep").await;
    assert_eq!(ran.status, 130, "{ran}");
    let calls = console.calls();
    let of = |verb: &str| calls.iter().filter(|call| call.starts_with(verb)).count();
    assert_eq!((of("check_host"), of("cancel")), (3, 3), "{calls:?}");
    assert!(!calls.iter().any(|call| call.contains("four")), "{calls:?}");
}
