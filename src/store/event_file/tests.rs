use super::*;
use crate::domain::Time;
use crate::domain::actor::Actor;
use crate::domain::event::EventKind;
use crate::domain::name::{EventId, SandboxId};

fn event(number: u64) -> PendingEvent {
    PendingEvent {
        id: EventId::new(format!("id-{number:08}")),
        time: Time::from_unix(1_700_000_000 + i64::try_from(number).unwrap()),
        kind: EventKind::SandboxReady,
        sandbox_id: Some(SandboxId::new(format!("box-{}", number % 2))),
        actor: Actor::parse("adm:ops").unwrap(),
        data: serde_json::Value::Null,
    }
}

fn opened(path: &std::path::Path, limit: u64) -> EventFile {
    EventFile::with_limit(&DataDir::open(path).unwrap(), limit)
}

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq).collect()
}

#[tokio::test]
async fn numbers_go_on_over_rotation_and_only_four_old_files_stay() {
    let dir = tempfile::tempdir().unwrap();
    let line = serde_json::to_string(&event(1).numbered(1, Some(1))).unwrap().len() as u64 + 1;
    // Two processes take turns; each file holds five lines.
    let (a, b) = (opened(dir.path(), 5 * line + 20), opened(dir.path(), 5 * line + 20));
    for number in 1..=40 {
        let log = if number % 3 == 0 { &a } else { &b };
        assert_eq!(seqs(&log.append(vec![event(number)]).await.unwrap()), [number]);
        // Both see it at once, whoever rotated.
        assert_eq!(seqs(&a.tail(number - 1).await.unwrap()), [number]);
        assert_eq!(b.last_seq().await.unwrap(), number);
    }
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name == "events.jsonl.4"), "{names:?}");
    assert!(!names.iter().any(|name| name == "events.jsonl.5"), "{names:?}");
    let kept = seqs(&a.read(&EventFilter::default()).await.unwrap());
    assert_eq!(kept, (kept[0]..=40).collect::<Vec<_>>(), "in order, none missing");
    assert!(kept.len() >= 20, "{kept:?}");
    assert_eq!(seqs(&a.tail(kept[0] + 3).await.unwrap()), (kept[0] + 4..=40).collect::<Vec<_>>());
    assert_eq!(a.tail(40).await.unwrap(), []);
    // An event of a rotated file is still known.
    assert_eq!(seqs(&opened(dir.path(), 1).append(vec![event(kept[1])]).await.unwrap()), [kept[1]]);
    assert_eq!(a.last_seq().await.unwrap(), 40);
}

#[tokio::test]
async fn the_same_event_is_appended_once_by_whoever_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (opened(dir.path(), LIMIT), opened(dir.path(), LIMIT));
    assert_eq!(seqs(&a.append(vec![event(1), event(2), event(1)]).await.unwrap()), [1, 2, 1]);
    assert_eq!(seqs(&b.append(vec![event(2), event(3)]).await.unwrap()), [2, 3]);
    assert_eq!(seqs(&a.append(vec![event(3), event(4)]).await.unwrap()), [3, 4]);
    assert_eq!(a.read(&EventFilter::default()).await.unwrap().len(), 4);
}

#[tokio::test]
async fn an_event_from_long_ago_is_recognised_beyond_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let log = opened(dir.path(), LIMIT);
    log.append((1..=25_000).map(event).collect()).await.unwrap();
    for log in [&log, &opened(dir.path(), LIMIT)] {
        assert_eq!(seqs(&log.append(vec![event(24_999)]).await.unwrap()), [24_999]);
        assert_eq!(seqs(&log.append(vec![event(7)]).await.unwrap()), [7]);
    }
    assert_eq!(seqs(&log.append(vec![event(25_001)]).await.unwrap()), [25_001]);
}

#[tokio::test]
async fn an_unfinished_line_is_ended_and_the_next_ones_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let whole = serde_json::to_string(&event(1).numbered(1, Some(1))).unwrap();
    let log = opened(dir.path(), LIMIT);
    // Torn in the middle.
    std::fs::write(&path, format!("{whole}\n{}", &whole[..40])).unwrap();
    assert_eq!(seqs(&log.tail(0).await.unwrap()), [1], "what is unfinished is not there yet");
    assert_eq!(seqs(&log.append(vec![event(2)]).await.unwrap()), [2]);
    assert_eq!(seqs(&log.read(&EventFilter::default()).await.unwrap()), [1, 2]);
    let file = path.display().to_string();
    assert_eq!(
        log.unreadable_lines().await.unwrap(),
        [UnreadableLines { file: file.clone(), lines: vec![2] }]
    );
    // Torn just before its end: it was written, so it counts.
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(&serde_json::to_string(&event(3).numbered(3, Some(3))).unwrap());
    std::fs::write(&path, text).unwrap();
    assert_eq!(seqs(&log.append(vec![event(3), event(4)]).await.unwrap()), [3, 4]);
    assert_eq!(seqs(&log.tail(2).await.unwrap()), [3, 4]);
    // Not our bytes at all.
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(b"\0\0\xff\xfe\n[]\n\n");
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(seqs(&log.append(vec![event(5)]).await.unwrap()), [5]);
    assert_eq!(seqs(&log.read(&EventFilter::default()).await.unwrap()), [1, 2, 3, 4, 5]);
    assert_eq!(
        log.unreadable_lines().await.unwrap(),
        [UnreadableLines { file, lines: vec![2, 6, 7] }]
    );
}

#[tokio::test]
async fn a_filter_takes_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let log = opened(dir.path(), 2000);
    for number in 1..=20 {
        log.append(vec![event(number)]).await.unwrap();
    }
    let read = async |filter: EventFilter| seqs(&log.read(&filter).await.unwrap());
    assert_eq!(
        read(EventFilter { after_seq: Some(17), ..EventFilter::default() }).await,
        [18, 19, 20]
    );
    assert_eq!(
        read(EventFilter { since: Some(event(19).time), ..EventFilter::default() }).await,
        [19, 20]
    );
    let sandbox = Some(SandboxId::new("box-1"));
    assert_eq!(
        read(EventFilter { after_seq: Some(15), sandbox, ..EventFilter::default() }).await,
        [17, 19]
    );
    assert_eq!(
        read(EventFilter { kinds: vec![EventKind::HostDown], ..EventFilter::default() }).await,
        [0; 0]
    );
    // The newest of these, over all files.
    for (newest, found) in [(0, vec![]), (1, vec![20]), (3, vec![18, 19, 20])] {
        let newest = Some(newest);
        assert_eq!(read(EventFilter { newest, ..EventFilter::default() }).await, found);
    }
    let all = read(EventFilter::default()).await;
    let newest = Some(1000);
    assert_eq!(read(EventFilter { newest, ..EventFilter::default() }).await, all);
    let sandbox = Some(SandboxId::new("box-1"));
    let newest = Some(4);
    let of_one = EventFilter { sandbox, newest, ..EventFilter::default() };
    assert_eq!(read(of_one.clone()).await, [13, 15, 17, 19]);
    assert_eq!(read(EventFilter { after_seq: Some(15), ..of_one.clone() }).await, [17, 19]);
    assert_eq!(read(EventFilter { since: Some(event(17).time), ..of_one }).await, [17, 19]);
}

#[tokio::test]
async fn looking_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = opened(&dir.path().join("absent"), LIMIT);
    assert_eq!(log.tail(0).await.unwrap(), []);
    assert_eq!(log.last_seq().await.unwrap(), 0);
    assert_eq!(log.read(&EventFilter::default()).await.unwrap(), []);
    assert!(!dir.path().join("absent").exists());
}

fn of_sandboxes(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sandbox_seq.unwrap()).collect()
}

#[tokio::test]
async fn a_sandboxs_own_numbers_begin_with_1_and_have_no_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (opened(dir.path(), LIMIT), opened(dir.path(), LIMIT));
    // Numbers 1 to 9 are of two sandboxes in turns.
    for number in 1..=9 {
        let log = if number % 3 == 0 { &a } else { &b };
        assert_eq!(
            of_sandboxes(&log.append(vec![event(number)]).await.unwrap()),
            [number.div_ceil(2)]
        );
    }
    assert_eq!(
        of_sandboxes(&a.append(vec![event(2), event(10), event(11)]).await.unwrap()),
        [1, 5, 6],
        "one is known"
    );
    let host = PendingEvent { sandbox_id: None, ..event(12) };
    assert_eq!(a.append(vec![host]).await.unwrap()[0].sandbox_seq, None, "it is no sandbox's");
}

#[tokio::test]
async fn no_number_is_used_again_when_the_log_is_lost_or_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let a = opened(dir.path(), LIMIT);
    a.append((1..=6).map(event).collect()).await.unwrap();
    for lose in [
        |path: &std::path::Path| std::fs::remove_file(path).unwrap(),
        |path: &std::path::Path| {
            std::fs::write(path, b"\xff\xfe no log\n").unwrap();
        },
    ] {
        let next = a.append(vec![event(100)]).await.unwrap()[0].seq;
        lose(&path);
        // By one that was there, and by one that begins now.
        let told = a.append(vec![event(next * 1000)]).await.unwrap();
        assert_eq!((told[0].seq, a.last_seq().await.unwrap()), (next + 1, next + 1));
        lose(&path);
        let told = opened(dir.path(), LIMIT).append(vec![event(next * 1001)]).await.unwrap();
        assert_eq!(told[0].seq, next + 2);
        assert!(told[0].sandbox_seq.unwrap() > 3);
    }
}

#[tokio::test]
async fn numbers_that_are_lost_are_what_the_log_says() {
    let dir = tempfile::tempdir().unwrap();
    opened(dir.path(), LIMIT).append((1..=6).map(event).collect()).await.unwrap();
    let file = dir.path().join("events.numbers");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions())
            & 0o777,
        0o600
    );
    std::fs::remove_file(&file).unwrap();
    let told = opened(dir.path(), LIMIT).append(vec![event(8)]).await.unwrap();
    assert_eq!((told[0].seq, told[0].sandbox_seq), (7, Some(4)));
    // Somebody died over a line, or wrote nonsense.
    std::fs::OpenOptions::new()
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(b"half"))
        .unwrap();
    let told = opened(dir.path(), LIMIT).append(vec![event(9), event(11)]).await.unwrap();
    assert_eq!((seqs(&told), of_sandboxes(&told)), (vec![8, 9], vec![4, 5]));
    std::fs::write(&file, "nonsense").unwrap();
    let told = opened(dir.path(), LIMIT).append(vec![event(10)]).await.unwrap();
    assert_eq!((told[0].seq, told[0].sandbox_seq), (10, Some(5)));
}

fn files(dir: &std::path::Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("events.jsonl")).count()
}

async fn page(log: &EventFile, after: u64, at_most: usize) -> Vec<u64> {
    seqs(&log.page(EventPage { after, up_to: None, of: None, at_most }).await.unwrap())
}

#[tokio::test]
async fn files_stay_until_the_hub_has_what_is_in_them_up_to_a_bound() {
    use crate::domain::outbox::Cursor;
    use crate::store::OutboxStore as _;
    let dir = tempfile::tempdir().unwrap();
    let outbox = crate::store::outbox::OutboxFolder::new(&DataDir::open(dir.path()).unwrap());
    let line = serde_json::to_string(&event(1).numbered(1, Some(1))).unwrap().len() as u64 + 1;
    let log = opened(dir.path(), 5 * line + 20);
    log.keep_for_delivery();
    for number in 1..=40 {
        log.append(vec![event(number)]).await.unwrap();
    }
    assert_eq!(page(&log, 0, 3).await, [1, 2, 3], "nothing was delivered, nothing is dropped");
    // Delivered files go, at once or with the next rotation.
    let cursor = Cursor { after: 10, ..Cursor::default() };
    outbox.write(&cursor).await.unwrap();
    log.drop_delivered().await.unwrap();
    assert_eq!((page(&log, 0, 1).await, files(dir.path())), (vec![11], 6));
    outbox.write(&Cursor { after: 40, ..cursor.clone() }).await.unwrap();
    log.append((41..=46).map(event).collect()).await.unwrap();
    assert_eq!(files(dir.path()), 5);
    // A cursor that nobody can read needs everything, and the bound is a bound.
    std::fs::write(dir.path().join("outbox/cursor.json"), "{").unwrap();
    for number in 47..=200 {
        log.append(vec![event(number)]).await.unwrap();
    }
    assert_eq!(files(dir.path()), 17);
    assert!(page(&log, 0, 1).await[0] > 100);
    // Without a hub there are the four again.
    let log = opened(dir.path(), 5 * line + 20);
    for number in 201..=210 {
        log.append(vec![event(number)]).await.unwrap();
    }
    assert_eq!(files(dir.path()), 5);
}
