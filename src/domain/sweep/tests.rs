use super::*;
use crate::domain::tests as examples;

const MINUTE: i64 = 60;

fn at(seconds: i64) -> Time {
    Time::from_unix(1_800_000_000 + seconds)
}

/// A sandbox whose deadline is at 0.
fn sandbox(state: &str) -> SandboxRecord {
    let made = at(-9000);
    examples::sandbox(serde_json::json!({
        "state": state, "since": made, "created_at": made, "expires_at": at(0),
    }))
}

fn told(state: &str) -> SandboxRecord {
    SandboxRecord { expiring_told: Some(at(0)), ..sandbox(state) }
}

fn protected(mut record: SandboxRecord) -> SandboxRecord {
    record.labels.insert("protect".into(), "true".into());
    record
}

#[test]
fn what_is_due_goes_by_state_deadline_and_protection() {
    use SweepTask::{Collect, Destroy, Finish, Protected, Warn};
    let kept = SandboxRecord { kept_failed: true, ..sandbox("failed") };
    let endless = SandboxRecord { expires_at: None, ..sandbox("ready") };
    for (what, record, before, near, over) in vec![
        ("ready", sandbox("ready"), None, Some(Warn), Some(Destroy)),
        ("told once", told("ready"), None, None, Some(Destroy)),
        ("sleeping", sandbox("sleeping"), None, Some(Warn), Some(Destroy)),
        ("lost", sandbox("lost"), None, Some(Warn), Some(Destroy)),
        ("failed", sandbox("failed"), None, None, None),
        ("failed and kept", kept, None, Some(Warn), Some(Destroy)),
        ("being made", sandbox("provisioning"), None, None, Some(Destroy)),
        ("asked for", sandbox("requested"), None, None, Some(Destroy)),
        ("without deadline", endless, None, None, None),
        ("protected", protected(sandbox("ready")), None, Some(Warn), Some(Warn)),
        ("protected and told", protected(told("ready")), None, None, Some(Protected)),
        ("being removed", sandbox("destroying"), Some(Finish), Some(Finish), Some(Finish)),
        ("forgotten", sandbox("forgotten"), Some(Collect), Some(Collect), Some(Collect)),
        (
            "protected while removed",
            protected(sandbox("destroying")),
            Some(Protected),
            Some(Protected),
            Some(Protected),
        ),
        ("destroyed", sandbox("destroyed"), None, None, None),
        ("of a newer version", sandbox("dreaming"), None, None, None),
    ] {
        let due = |seconds| task_of(&record, at(seconds));
        assert_eq!(due(-10 * MINUTE - 1), before, "{what} before");
        assert_eq!(due(-10 * MINUTE), near, "{what} near");
        assert_eq!(due(-1), near, "{what} just before");
        assert_eq!(due(0), over, "{what} over");
        assert_eq!(due(90_000), over, "{what} long over");
    }
    // An extension has the new deadline told in its turn.
    let extended = SandboxRecord { expires_at: Some(at(3600)), ..told("ready") };
    assert_eq!(task_of(&extended, at(0)), None);
    assert_eq!(task_of(&extended, at(3600 - 10 * MINUTE)), Some(Warn));
}

#[test]
fn nothing_is_due_before_the_moment_that_is_said() {
    let kept = SandboxRecord { kept_failed: true, ..told("failed") };
    for (what, record, due) in [
        ("ready", sandbox("ready"), Some(at(-10 * MINUTE))),
        ("told", told("ready"), Some(at(0))),
        ("protected and told", protected(told("ready")), None),
        ("being made", sandbox("provisioning"), Some(at(0))),
        ("failed", sandbox("failed"), None),
        ("failed, kept, told", kept, Some(at(0))),
        ("without deadline", SandboxRecord { expires_at: None, ..sandbox("ready") }, None),
        ("destroyed", sandbox("destroyed"), None),
    ] {
        assert_eq!(due_at(&record), due, "{what}");
        if let Some(due) = due {
            assert_eq!(task_of(&record, due.minus_seconds(1)), None, "{what}");
            assert!(task_of(&record, due).is_some(), "{what}");
        }
    }
}

#[test]
fn a_removal_is_finished_for_the_reason_that_it_was_begun_for() {
    let gone = |reason, since| SandboxRecord { reason, since: at(since), ..sandbox("destroying") };
    for (reason, since, finished) in [
        (Some(Reason::HostLost), 3, Reason::TtlExpired),
        (Some(Reason::HostLost), -60, Reason::User),
        (None, 3, Reason::TtlExpired),
        (Some(Reason::User), 3, Reason::User),
        (Some(Reason::TtlExpired), 3, Reason::TtlExpired),
        (Some(Reason::CrashRecovered), 3, Reason::CrashRecovered),
    ] {
        assert_eq!(reason_to_finish(&gone(reason.clone(), since)), finished, "{reason:?}");
    }
}
