//! `events flush`: what is printed of a delivery, and the status of each outcome.

use insta::assert_snapshot;
use sandboxer::client::{Error, FlushReport, HubBacklog};
use sandboxer::domain::Code;
use sandboxer::domain::hub::HubFormat;
use sandboxer::transport::hub::HubToken;
use serde_json::Value;

use super::cli_world::*;
use crate::test_env::fixture::Fixture;

fn report(delivered: u64, dead: u64, waiting: u64, error: Option<Code>) -> FlushReport {
    let backlog = HubBacklog {
        waiting,
        oldest_at: (waiting > 0).then(now),
        dead,
        next_try_at: None,
        last_error: error.as_ref().map(|_| "the State Hub did not answer".to_owned()),
    };
    let error = error.map(|code| Error::new(code, "the State Hub did not\u{1b}[2J answer"));
    FlushReport { delivered, dead, backlog, error }
}

#[tokio::test]
async fn flush_ends_with_the_status_of_what_was_not_delivered() {
    let mut text = String::new();
    for (report, status) in [
        (report(0, 0, 0, None), 0),
        (report(1, 0, 0, None), 0),
        (report(312, 0, 0, None), 0),
        (report(3, 2, 0, None), 8),
        (report(0, 1, 0, None), 1),
        (report(3, 1, 9, Some(Code::ServerUnreachable)), 5),
        (report(0, 0, 9, Some(Code::Timeout)), 5),
        (report(0, 0, 9, Some(Code::OperationFailed)), 1),
        (report(0, 0, 9, Some(Code::Overloaded)), 9),
    ] {
        let ran =
            run(&nothing().await.answers("flush_events", report.clone()), "events flush").await;
        assert_eq!(ran.status, status, "{ran}");
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran}");
        text.push_str(&format!("{ran}\n"));
        let ran =
            run(&nothing().await.answers("flush_events", report.clone()), "events flush --json")
                .await;
        assert_eq!(ran.status, status, "{ran}");
        super::fits("flush", &ran.json());
        assert_eq!(serde_json::from_value::<FlushReport>(ran.json()).unwrap(), report);
        if status != 0 {
            let error: Value = ran.error();
            assert!(error["code"].is_string(), "{ran}");
        }
    }
    assert_snapshot!("flush", text);
}

#[tokio::test]
async fn ctrl_c_leaves_a_flush() {
    // A hub that takes the connection and says nothing.
    let hub = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", hub.local_addr().unwrap());
    let script = script();
    *script.hub.lock().unwrap() = Some((url, HubToken::None, HubFormat::CloudEvents));
    let console = env_with(Fixture::default(), script).await;
    run(&console, "create").await;
    let ran = run_in(World { presses: 1, ..World::default() }, &console, "events flush").await;
    assert_eq!(ran.status, 130);
    assert!(ran.stderr.contains("sandboxer events flush goes on with the rest"), "{ran}");
}

#[tokio::test]
async fn flags_of_events_are_none_of_flush() {
    for line in ["events --follow flush", "events flush --since 1h"] {
        assert_eq!(exits(&nothing().await, line).await, 2, "{line}");
    }
}
