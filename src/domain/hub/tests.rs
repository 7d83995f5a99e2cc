use super::*;
use crate::domain::actor::Actor;
use crate::domain::event::EventKind;
use crate::domain::name::{EventId, SandboxId};

fn now() -> Time {
    "2026-11-29T10:00:00Z".parse().unwrap()
}

fn event() -> Event {
    Event {
        seq: 17,
        sandbox_seq: Some(3),
        id: EventId::new("0b6f1f0e-0000-5000-8000-000000000001"),
        time: now(),
        kind: EventKind::SandboxReady,
        sandbox_id: Some(SandboxId::new("a1b2c3d4")),
        actor: Actor::parse("agt:builder").unwrap(),
        data: serde_json::json!({"host": "sandboxer01"}),
    }
}

fn answered(status: u16, retry_after: Option<&str>, text: &str) -> HubReply {
    HubReply::Answered {
        status,
        retry_after: retry_after.map(str::to_owned),
        text: text.to_owned(),
    }
}

#[test]
fn a_message_is_a_cloud_event_or_the_event_as_it_is() {
    let owner = OwnerId::new("0f0f0f0f");
    let message = HubFormat::CloudEvents.message(&event(), &owner).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&message).unwrap(),
        serde_json::json!({
            "specversion": "1.0",
            "id": "0b6f1f0e-0000-5000-8000-000000000001",
            "source": "sandboxer/0f0f0f0f",
            "type": "dev.coulomb.sandboxer.sandbox.ready",
            "subject": "a1b2c3d4",
            "time": "2026-11-29T10:00:00.000Z",
            "sequence": "17",
            "sandboxseq": "3",
            "actor": "agt:builder",
            "datacontenttype": "application/json",
            "data": {"host": "sandboxer01"},
        })
    );
    let none = Event { sandbox_id: None, sandbox_seq: None, data: Value::Null, ..event() };
    let message = HubFormat::CloudEvents.message(&none, &owner).unwrap();
    let message: Value = serde_json::from_slice(&message).unwrap();
    for absent in ["subject", "sandboxseq", "data", "datacontenttype"] {
        assert_eq!(message.get(absent), None, "{absent}");
    }
    let plain = HubFormat::Plain.message(&event(), &owner).unwrap();
    assert_eq!(serde_json::from_slice::<Event>(&plain).unwrap(), event());
}

#[test]
fn a_reply_is_judged_by_its_status() {
    use FailureScope::{Hub, Sandbox};
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(Receipt::of(answered(status, None, "x"), now()), Receipt::Taken, "{status}");
    }
    for status in [400, 401, 403, 404, 409, 410, 413, 418, 422, 451] {
        let words = format!("the State Hub answered {status}: no such kind");
        assert_eq!(
            Receipt::of(answered(status, None, " no such\nkind\n"), now()),
            Receipt::Refused(status, words),
            "{status}"
        );
    }
    for (status, scope, code) in [
        (408, Sandbox, Code::OperationFailed),
        (425, Sandbox, Code::OperationFailed),
        (429, Hub, Code::Overloaded),
        (500, Sandbox, Code::OperationFailed),
        (501, Sandbox, Code::OperationFailed),
        (502, Hub, Code::OperationFailed),
        (503, Hub, Code::OperationFailed),
        (504, Hub, Code::OperationFailed),
        (507, Sandbox, Code::OperationFailed),
        (301, Hub, Code::OperationFailed),
        (307, Hub, Code::OperationFailed),
        (101, Hub, Code::OperationFailed),
        (600, Hub, Code::OperationFailed),
    ] {
        let Receipt::Failed(failure) = Receipt::of(answered(status, None, ""), now()) else {
            panic!("{status}")
        };
        assert_eq!((failure.scope, &failure.error.code), (scope, &code), "{status}");
        assert!(failure.error.retryable, "{status}");
    }
    for (reply, code) in [
        (HubReply::TimedOut("10 s".into()), Code::Timeout),
        (HubReply::Unreachable("refused".into()), Code::ServerUnreachable),
    ] {
        let Receipt::Failed(failure) = Receipt::of(reply, now()) else { panic!() };
        assert_eq!((failure.scope, failure.error.code), (Hub, code));
    }
}

#[test]
fn what_a_hub_says_moves_no_cursor_and_is_short() {
    let evil = format!("\u{1b}[2J\u{202e}{}", "x".repeat(90_000));
    let Receipt::Refused(_, words) = Receipt::of(answered(400, None, &evil), now()) else {
        panic!()
    };
    assert!(!words.contains('\u{1b}') && !words.contains('\u{202e}') && words.len() < 400);
}

#[test]
fn a_hub_may_ask_for_a_wait_in_seconds_or_until_a_date() {
    for (text, seconds) in [
        ("120", Some(120)),
        (" 7 ", Some(7)),
        ("Sun, 29 Nov 2026 10:00:30 GMT", Some(30)),
        // The weekday is wrong, and that is nobody's loss.
        ("Mon, 29 Nov 2026 10:00:30 GMT", Some(30)),
        ("Sun, 29 Nov 2026 09:00:00 GMT", Some(0)),
        ("-1", None),
        ("soon", None),
        ("", None),
        ("99999999999999999999999999", None),
    ] {
        let Receipt::Failed(failure) = Receipt::of(answered(503, Some(text), ""), now()) else {
            panic!()
        };
        assert_eq!(failure.retry_after.map(|wait| wait.as_secs()), seconds, "{text:?}");
    }
}
