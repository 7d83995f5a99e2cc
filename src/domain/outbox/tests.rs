use std::time::Duration;

use super::*;
use crate::domain::actor::Actor;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::EventId;

fn now() -> Time {
    "2026-11-29T10:00:00Z".parse().unwrap()
}

fn event(seq: u64, sandbox: Option<&str>) -> Event {
    Event {
        seq,
        sandbox_seq: sandbox.map(|_| seq),
        id: EventId::new(format!("id-{seq}")),
        time: now().plus_seconds(seq),
        kind: EventKind::SandboxReady,
        sandbox_id: sandbox.map(SandboxId::new),
        actor: Actor::parse("adm:ops").unwrap(),
        data: serde_json::Value::Null,
    }
}

fn failure(scope: FailureScope, retry_after: Option<u64>) -> HubFailure {
    HubFailure {
        scope,
        error: Error::new(Code::OperationFailed, "the State Hub answered 500").because("why"),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

#[test]
fn a_failing_event_holds_back_its_own_sandbox_and_no_other() {
    let mut cursor = Cursor { after: 3, ..Cursor::default() };
    let fails = failure(FailureScope::Sandbox, None);
    cursor.failed(&event(4, Some("a")), &fails, now(), 0);
    assert!(!cursor.pass_over(&event(5, Some("b"))));
    cursor.done(&event(5, Some("b")), None);
    assert!(cursor.pass_over(&event(6, Some("a"))));
    assert!(!cursor.pass_over(&event(7, None)));
    cursor.done(&event(7, None), None);
    assert_eq!((cursor.after, cursor.first_needed(), cursor.waiting(9)), (7, 4, 4));
    // Not before its time, and only its first.
    assert_eq!(cursor.next_held(Some(now()), &[]), None);
    let later = now().plus_seconds(60);
    assert_eq!(cursor.next_held(Some(later), &[]).unwrap().from, 4);
    assert_eq!(cursor.next_held(Some(later), &[4]), None);
    assert_eq!(cursor.next_held(None, &[]).unwrap().from, 4);
    // Its next one follows at once, and then nothing is held back.
    cursor.done(&event(4, Some("a")), Some(&event(6, Some("a"))));
    assert_eq!((cursor.first_needed(), cursor.waiting(7)), (6, 1));
    assert_eq!(cursor.next_held(Some(now()), &[]).unwrap().from, 6);
    cursor.done(&event(6, Some("a")), None);
    assert_eq!((cursor.held.len(), cursor.first_needed(), cursor.waiting(7)), (0, 8, 0));
}

#[test]
fn events_without_a_sandbox_have_one_order() {
    let mut cursor = Cursor::default();
    cursor.failed(&event(1, None), &failure(FailureScope::Sandbox, None), now(), 0);
    assert!(cursor.pass_over(&event(2, None)) && !cursor.pass_over(&event(3, Some("a"))));
}

#[test]
fn a_hub_that_does_not_work_holds_back_all_and_moves_nothing() {
    let mut cursor = Cursor { after: 3, ..Cursor::default() };
    cursor.failed(&event(4, Some("a")), &failure(FailureScope::Hub, None), now(), 0);
    assert_eq!((cursor.after, cursor.held.len(), cursor.waiting(4)), (3, 0, 1));
    assert_eq!(cursor.next_backoff(now()).unwrap().error, "the State Hub answered 500: why");
    cursor.done(&event(4, Some("a")), None);
    assert_eq!((cursor.after, cursor.backoff), (4, None));
}

#[test]
fn the_next_try_is_that_of_a_wait_that_still_runs() {
    let mut cursor = Cursor::default();
    let [of_hub, of_sandbox] = [(FailureScope::Hub, 5), (FailureScope::Sandbox, 60)]
        .map(|(scope, s)| failure(scope, Some(s)));
    assert_eq!(cursor.failed(&event(1, Some("a")), &of_sandbox, now(), 0), FailureScope::Sandbox);
    assert_eq!(cursor.failed(&event(2, Some("b")), &of_hub, now(), 0), FailureScope::Hub);
    let next = |now| cursor.next_backoff(now).unwrap().next_try_at;
    assert_eq!(next(now()), now().plus_seconds(5));
    assert_eq!(next(now().plus_seconds(6)), now().plus_seconds(60));
}

#[test]
fn too_many_that_are_held_back_are_a_hub_that_does_not_work() {
    let mut cursor = Cursor::default();
    let fails = failure(FailureScope::Sandbox, None);
    for seq in 1..=MOST_HELD as u64 + 1 {
        cursor.failed(&event(seq, Some(&format!("box-{seq}"))), &fails, now(), 0);
    }
    assert_eq!((cursor.held.len(), cursor.after), (MOST_HELD, MOST_HELD as u64));
    assert!(cursor.backoff.is_some());
}

#[test]
fn waits_grow_to_five_minutes_and_never_end() {
    for (random, waits) in [(0, [1, 2, 4, 8, 16]), (u32::MAX, [1, 2, 4, 8, 16])] {
        let mut cursor = Cursor::default();
        let fails = failure(FailureScope::Hub, None);
        for at_least in waits {
            cursor.failed(&event(1, None), &fails, now(), random);
            let wait = cursor.backoff.as_ref().unwrap().next_try_at.since(now()).as_secs();
            assert!((at_least..=2 * at_least).contains(&wait), "{wait} for {at_least}");
        }
        for _ in 0..1000 {
            cursor.failed(&event(1, None), &fails, now(), random);
        }
        let backoff = cursor.backoff.unwrap();
        let wait = backoff.next_try_at.since(now()).as_secs();
        assert!((150..=LONGEST_WAIT_S).contains(&wait), "{wait}");
        assert!(backoff.runs(now()) && !backoff.runs(now().plus_seconds(wait)));
        // The clock went back by a day: nobody waits so long.
        assert!(!backoff.runs(now().minus_seconds(86_400)));
    }
}

#[test]
fn a_wait_that_the_hub_asks_for_counts_up_to_the_longest() {
    for (asked, wait) in [(0, 1), (40, 40), (86_400, LONGEST_WAIT_S)] {
        let mut cursor = Cursor::default();
        cursor.failed(&event(1, None), &failure(FailureScope::Hub, Some(asked)), now(), 7);
        let backoff = cursor.backoff.unwrap();
        assert_eq!(backoff.next_try_at.since(now()).as_secs(), wait, "{asked}");
    }
}

#[test]
fn what_left_the_log_is_given_up_and_counted() {
    let mut cursor = Cursor { after: 9, ..Cursor::default() };
    assert_eq!(cursor.give_up_behind(10, now()), None);
    let letter = cursor.give_up_behind(31, now()).unwrap();
    let missed = letter.missed.as_ref().unwrap();
    assert_eq!((missed.from, missed.to, letter.count(), cursor.after), (10, 30, 21, 30));
    // Of four that are held back two are kept.
    cursor.failed(&event(31, Some("a")), &failure(FailureScope::Sandbox, None), now(), 0);
    for seq in [33, 40, 44] {
        assert!(cursor.pass_over(&event(seq, Some("a"))));
    }
    let left = [event(40, Some("a")), event(44, Some("a"))];
    let letter = cursor.give_up_held(31, &left, 38, now()).unwrap();
    let missed = letter.missed.as_ref().unwrap();
    assert_eq!((missed.from, missed.to, letter.count()), (31, 37, 2));
    assert_eq!((cursor.held[0].from, cursor.held[0].waiting), (40, 2));
    assert_eq!(cursor.give_up_held(40, &[], 50, now()).unwrap().count(), 2);
    assert!(cursor.held.is_empty());
}

#[test]
fn a_cursor_and_a_letter_are_read_as_they_were_written() {
    let mut cursor = Cursor { after: 3, ..Cursor::default() };
    cursor.failed(&event(4, Some("a")), &failure(FailureScope::Sandbox, None), now(), 0);
    cursor.failed(&event(5, Some("b")), &failure(FailureScope::Hub, None), now(), 0);
    let text = serde_json::to_string(&cursor).unwrap();
    assert_eq!(serde_json::from_str::<Cursor>(&text).unwrap(), cursor);
    assert_eq!(serde_json::from_str::<Cursor>(r#"{"after":7}"#).unwrap().after, 7);
    for letter in [
        DeadLetter::refused(event(4, Some("a")), 400, "no".into(), now()),
        cursor.give_up_behind(50, now()).unwrap(),
    ] {
        let text = serde_json::to_string(&letter).unwrap();
        assert_eq!(serde_json::from_str::<DeadLetter>(&text).unwrap(), letter);
    }
}
