use std::io::Write as _;

use super::*;
use crate::domain::Time;
use crate::domain::actor::Actor;
use crate::domain::event::EventKind;
use crate::domain::name::{EventId, SandboxId};

fn event(seq: u64) -> Event {
    Event {
        seq,
        sandbox_seq: None,
        id: EventId::new(format!("id-{seq:08}")),
        time: Time::from_unix(1_700_000_000),
        kind: EventKind::SandboxReady,
        sandbox_id: (!seq.is_multiple_of(10)).then(|| SandboxId::new(format!("box-{}", seq % 3))),
        actor: Actor::parse("adm:ops").unwrap(),
        // Some lines are longer than what is read at once.
        data: serde_json::json!({"text": "x".repeat(if seq.is_multiple_of(500) { 90_000 } else { 200 })}),
    }
}

/// A log of 3,000 events in two files, with lines between them that cannot be read.
fn log(dir: &std::path::Path) -> RotatedLog {
    let path = dir.join("events.jsonl");
    for (name, numbers) in [("events.jsonl.1", 1..=1500), ("events.jsonl", 1501..=3000)] {
        let mut file = std::fs::File::create(dir.join(name)).unwrap();
        for seq in numbers {
            if seq % 7 == 0 {
                file.write_all(b"\xff\xfe garbage\n[]\n\n").unwrap();
            }
            serde_json::to_writer(&mut file, &event(seq)).unwrap();
            file.write_all(b"\n").unwrap();
        }
    }
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(br#"{"seq": 3001, "unfinished"#).unwrap();
    RotatedLog::new(path)
}

fn seqs(log_files: &RotatedLog, page: &EventPage) -> Vec<u64> {
    read_page(log_files, page).unwrap().iter().map(|event| event.seq).collect()
}

#[test]
fn a_page_begins_behind_its_number_wherever_that_is() {
    let dir = tempfile::tempdir().unwrap();
    let log_files = log(dir.path());
    let page = |after, at_most| EventPage { after, up_to: None, of: None, at_most };
    for after in (0..3000).step_by(61).chain([499, 500, 1499, 1500, 1501, 2999]) {
        let expected: Vec<_> = (after + 1..=3000).take(5).collect();
        assert_eq!(seqs(&log_files, &page(after, 5)), expected, "{after}");
    }
    assert_eq!(seqs(&log_files, &page(3000, 5)), [0; 0]);
    assert_eq!(seqs(&log_files, &page(9999, 5)), [0; 0]);
    assert_eq!(seqs(&log_files, &page(0, usize::MAX)).len(), 3000);
}

#[test]
fn a_page_of_one_sandbox_has_its_events_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log_files = log(dir.path());
    let sandbox = Some(EventsOf::Sandbox(SandboxId::new("box-1")));
    let page = EventPage { after: 1497, up_to: Some(1510), of: sandbox, at_most: 99 };
    assert_eq!(seqs(&log_files, &page), [1498, 1501, 1504, 1507]);
    let none = EventPage { of: Some(EventsOf::NoSandbox), ..page };
    assert_eq!(seqs(&log_files, &none), [1500, 1510]);
}

#[test]
fn a_log_that_is_not_there_has_empty_pages() {
    let dir = tempfile::tempdir().unwrap();
    let log_files = RotatedLog::new(dir.path().join("events.jsonl"));
    assert_eq!(
        seqs(&log_files, &EventPage { after: 0, up_to: None, of: None, at_most: 9 }),
        [0; 0]
    );
}
