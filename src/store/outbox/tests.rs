use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::domain::Time;
use crate::domain::actor::Actor;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::EventId;

fn outbox(path: &Path) -> OutboxFolder {
    OutboxFolder::new(&DataDir::open(path).unwrap())
}

fn letter(seq: u64) -> DeadLetter {
    let event = Event {
        seq,
        sandbox_seq: None,
        id: EventId::new(format!("id-{seq}")),
        time: Time::from_unix(1_700_000_000),
        kind: EventKind::HostDown,
        sandbox_id: None,
        actor: Actor::parse("adm:ops").unwrap(),
        data: serde_json::Value::Null,
    };
    DeadLetter::refused(event, 400, "no".into(), Time::from_unix(1_700_000_001))
}

#[tokio::test]
async fn a_cursor_is_what_was_written_last_and_a_damaged_one_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (outbox(folder.path()), outbox(folder.path()));
    assert_eq!(a.cursor().await.unwrap(), CursorFound::None);
    let cursor = Cursor { after: 7, ..Cursor::default() };
    a.write(&cursor).await.unwrap();
    assert_eq!(b.cursor().await.unwrap(), CursorFound::Cursor(cursor.clone()));
    let path = folder.path().join("outbox/cursor.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() - 2 {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(b.cursor().await.unwrap(), CursorFound::Unreadable, "cut at {cut}");
    }
    for text in [&b"\xff\xfe"[..], b"[]", b"{}", b"{\"schema\":1}", b"{\"schema\":1,\"after\":-1}"]
    {
        fs::write(&path, text).unwrap();
        assert_eq!(b.cursor().await.unwrap(), CursorFound::Unreadable, "{text:?}");
        assert_eq!(first_needed(&DataDir::open(folder.path()).unwrap()), 0);
    }
    fs::write(&path, vec![b' '; (LARGEST + 1) as usize]).unwrap();
    assert_eq!(b.cursor().await.unwrap(), CursorFound::Unreadable);
    fs::write(&path, "garbage").unwrap();
    // Kept beside the next one.
    a.write(&cursor).await.unwrap();
    assert_eq!(b.cursor().await.unwrap(), CursorFound::Cursor(cursor));
    assert_eq!(fs::read(path.with_file_name("cursor.json.unreadable")).unwrap(), b"garbage");
    assert_eq!(first_needed(&DataDir::open(folder.path()).unwrap()), 8);
}

#[tokio::test]
async fn a_cursor_of_a_newer_version_or_something_else_in_its_place_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let a = outbox(folder.path());
    a.write(&Cursor::default()).await.unwrap();
    let path = folder.path().join("outbox/cursor.json");
    fs::write(&path, r#"{"schema":2,"after":{"shard":9}}"#).unwrap();
    assert_eq!(a.cursor().await.unwrap_err().code, Code::StoreForeign);
    assert_eq!(a.write(&Cursor::default()).await.unwrap_err().code, Code::StoreForeign);
    assert_eq!(fs::read(&path).unwrap(), br#"{"schema":2,"after":{"shard":9}}"#);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(a.cursor().await.unwrap_err().code, Code::InvalidConfig);
    assert_eq!(a.write(&Cursor::default()).await.unwrap_err().code, Code::InvalidConfig);
}

#[tokio::test]
async fn one_process_delivers_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (outbox(folder.path()), outbox(folder.path()));
    let held = a.try_lock().await.unwrap();
    assert!(held.is_some() && b.try_lock().await.unwrap().is_none());
    drop(held);
    assert!(b.try_lock().await.unwrap().is_some());
}

#[tokio::test]
async fn letters_are_counted_whatever_lies_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (outbox(folder.path()), outbox(folder.path()));
    assert_eq!(a.dead().await.unwrap().0, 0);
    a.give_up(vec![letter(1), letter(2)]).await.unwrap();
    let mut cursor = Cursor { after: 2, ..Cursor::default() };
    let missed = cursor.give_up_behind(13, Time::from_unix(1_700_000_000)).unwrap();
    b.give_up(vec![missed]).await.unwrap();
    assert_eq!((a.dead().await.unwrap().0, b.dead().await.unwrap().0), (12, 12));
    // Somebody died over a line, and the next one is whole all the same.
    let path = folder.path().join("outbox/dead.jsonl");
    let half = &serde_json::to_vec(&letter(14)).unwrap()[..50];
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(half).unwrap();
    assert_eq!(a.dead().await.unwrap().0, 12);
    a.give_up(vec![letter(15)]).await.unwrap();
    assert_eq!((a.dead().await.unwrap().0, b.dead().await.unwrap().0), (14, 14));
    let text = fs::read_to_string(&path).unwrap();
    let last: DeadLetter = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last, letter(15));
    // Moved away by who looked at them.
    fs::remove_file(&path).unwrap();
    assert_eq!(a.dead().await.unwrap().0, 0);
}

#[tokio::test]
async fn the_dead_letter_rotates() {
    let folder = tempfile::tempdir().unwrap();
    let mut small = outbox(folder.path());
    Arc::get_mut(&mut small.letters).unwrap().limit = 1000;
    for seq in 1..=100 {
        small.give_up(vec![letter(seq)]).await.unwrap();
    }
    let kept = small.dead().await.unwrap().0;
    assert!((10..40).contains(&kept), "{kept}");
    assert!(folder.path().join("outbox/dead.jsonl.4").exists());
    assert!(!folder.path().join("outbox/dead.jsonl.5").exists());
}
