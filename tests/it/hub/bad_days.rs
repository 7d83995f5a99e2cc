//! Bad days: a hub that is down, slow or half dead, consoles that die, files that are damaged.

use std::time::Duration;

use sandboxer::domain::Code;

use super::*;

#[tokio::test]
async fn a_hub_that_is_down_for_an_hour_gets_ten_thousand_events_from_commands_alone() {
    let mut console = console();
    happen(console.folder.path(), 1..=10_000, 97).await;
    console.hub.stop();
    // A command every ten seconds, for an hour.
    let mut tries = std::collections::BTreeSet::new();
    for _ in 0..360 {
        console.command().await;
        let backlog = console.manager.hub_backlog().await.unwrap().unwrap();
        assert_eq!(backlog.waiting, 10_000);
        tries.insert(backlog.next_try_at.unwrap());
        console.script.pass(10);
    }
    assert!((12..=45).contains(&tries.len()), "{} tries in an hour", tries.len());
    let checks = console.manager.doctor(false).await.unwrap();
    let check = checks.iter().find(|check| check.name == "hub backlog").unwrap();
    assert_eq!(check.state.as_str(), "warning");
    assert!(check.message.starts_with("10000 events wait"), "{}", check.message);
    // It is back.
    console.hub = console.hub.restarted();
    console.script.pass(300);
    let mut commands = 0;
    while console.waiting().await > 0 {
        console.command().await;
        commands += 1;
        assert!(commands < 200, "{} still wait", console.waiting().await);
    }
    let taken = console.hub.taken();
    assert_in_order(&taken);
    assert_all_came(&taken, 10_000);
}

#[tokio::test]
async fn a_hub_that_asks_for_a_wait_gets_it() {
    let console = console();
    happen(console.folder.path(), 1..=5, 2).await;
    for status in [429, 503] {
        console.hub.answers(move |_, _| Act::answer(status, "Retry-After: 40", "busy"));
        let before = console.hub.messages().len();
        console.command().await;
        console.script.pass(39);
        console.command().await;
        assert_eq!(console.hub.messages().len(), before + 1, "{status}: tried once");
        console.script.pass(2);
    }
    console.hub.answers(|_, _| Act::Status(204));
    console.command().await;
    assert_eq!(console.waiting().await, 0);
    assert_in_order(&console.hub.taken());
}

#[tokio::test]
async fn a_hub_that_closes_in_the_midst_of_an_answer_has_it_again_under_the_same_id() {
    for cut in ["", "HTTP/1.1 20", "HTTP/1.1 204 X\r\nContent-Le", "no HTTP at all\r\n\r\n"] {
        let console = console();
        happen(console.folder.path(), 1..=20, 3).await;
        console.hub.answers(move |message, before| match (message.sequence(), before) {
            (7, 0..=6) if cut.is_empty() => Act::Close,
            (7, 0..=6) => Act::Raw(cut.to_owned()),
            _ => Act::Status(204),
        });
        console.command().await;
        assert_eq!(console.waiting().await, 14, "{cut:?}");
        console.script.pass(5);
        console.command().await;
        let messages = console.hub.messages();
        assert_eq!((console.waiting().await, messages.len()), (0, 21), "{cut:?}");
        assert_in_order(&messages);
        assert_eq!(messages[6].id(), messages[7].id(), "{cut:?}");
    }
}

#[tokio::test]
async fn a_status_counts_whatever_becomes_of_the_body() {
    let console = console();
    happen(console.folder.path(), 1..=4, 2).await;
    console.hub.answers(|message, _| match message.sequence() {
        // Fewer bytes than were said; more than anybody reads; none, and no end.
        1 => Act::Raw("HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf of it is cut".into()),
        2 => Act::answer(200, "", &"x".repeat(2_000_000)),
        3 => Act::answer(400, "", &"y".repeat(2_000_000)),
        _ => Act::Raw("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n".into()),
    });
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.error), (3, 1, None));
    assert!(console.letters()[0].reason.len() < 400);
    assert_eq!(console.hub.messages().len(), 4, "nothing came twice");
}

#[tokio::test]
async fn a_slow_hub_gets_what_fits_into_the_time_of_a_command() {
    let console = console();
    happen(console.folder.path(), 1..=12, 3).await;
    console.hub.answers(|_, _| Act::After(Duration::from_millis(150), 204));
    let mut commands = 0;
    while console.waiting().await > 0 {
        let before = console.waiting().await;
        console.command().await;
        let backlog = console.manager.hub_backlog().await.unwrap().unwrap();
        assert!(backlog.waiting < before, "it works, and it is not held against it: {backlog:?}");
        commands += 1;
    }
    assert!(commands > 1, "one second was enough for 12 times 150 ms");
    assert_in_order(&console.hub.messages());
    assert_eq!(console.hub.messages().len(), 12);
}

#[tokio::test]
async fn a_hub_and_a_console_that_begin_again_go_on_where_they_were() {
    let mut console = console();
    happen(console.folder.path(), 1..=10, 3).await;
    console.command().await;
    assert_eq!(console.hub.taken().len(), 10);
    console.hub = console.hub.restarted();
    happen(console.folder.path(), 11..=20, 3).await;
    // The connection of before is gone, and that is no failure of the hub's.
    let manager = console.other();
    manager.flush_events().await.unwrap();
    let came: Vec<u64> = console.hub.taken().iter().map(Message::sequence).collect();
    assert_eq!(came, (11..=20).collect::<Vec<_>>());
    console.hub = console.hub.restarted();
    happen(console.folder.path(), 21..=22, 3).await;
    manager.flush_events().await.unwrap();
    manager.flush_events().await.unwrap();
    assert_eq!(console.hub.taken().len(), 2);
}

#[tokio::test]
async fn a_damaged_cursor_has_everything_told_again_under_the_same_ids() {
    let console = console();
    happen(console.folder.path(), 1..=10, 3).await;
    console.command().await;
    for text in ["", "{", "garbage"] {
        std::fs::write(console.cursor(), text).unwrap();
        assert_eq!(console.waiting().await, 10);
        let checks = console.manager.doctor(false).await.unwrap();
        assert!(checks.iter().any(|check| check.name == "hub cursor"), "{checks:?}");
        console.command().await;
        assert_eq!(console.waiting().await, 0);
    }
    let messages = console.hub.messages();
    assert_eq!(messages.len(), 40);
    for again in messages.chunks(10) {
        let ids = |messages: &[Message]| messages.iter().map(Message::id).collect::<Vec<_>>();
        assert_eq!(ids(again), ids(&messages[..10]));
    }
    assert_eq!(
        std::fs::read_to_string(console.cursor().with_file_name("cursor.json.unreadable")).unwrap(),
        "garbage"
    );
    // One of a newer version is nobody's to touch.
    let newer = r#"{"schema":9,"after":10}"#;
    std::fs::write(console.cursor(), newer).unwrap();
    assert_eq!(console.manager.flush_events().await.unwrap_err().code, Code::StoreForeign);
    assert_eq!(std::fs::read_to_string(console.cursor()).unwrap(), newer);
    assert_eq!(console.hub.messages().len(), 40);
}

#[tokio::test]
async fn a_cursor_of_another_log_is_not_believed() {
    let console = console();
    std::fs::create_dir(console.folder.path().join("outbox")).unwrap();
    std::fs::write(console.cursor(), r#"{"schema":1,"after":5000}"#).unwrap();
    happen(console.folder.path(), 1..=10, 3).await;
    console.command().await;
    assert_all_came(&console.hub.taken(), 10);
    // Numbers that nobody wrote who meant it.
    let most = u64::MAX;
    let since = "2026-11-29T10:00:00Z";
    for text in [
        format!(r#"{{"schema":1,"after":{most}}}"#),
        format!(
            r#"{{"schema":1,"after":4,"held":[{{"sandbox_id":"box-0001","from":0,"since":"{since}","waiting":{most}}}]}}"#
        ),
        format!(
            r#"{{"schema":1,"after":4,"held":[{{"sandbox_id":null,"from":{most},"since":"{since}","waiting":0}}]}}"#
        ),
    ] {
        std::fs::write(console.cursor(), &text).unwrap();
        happen(console.folder.path(), 11..=11, 3).await;
        console.manager.hub_backlog().await.unwrap();
        console.manager.flush_events().await.unwrap();
        assert_eq!(console.waiting().await, 0, "{text}");
    }
}

#[tokio::test]
async fn what_left_the_log_is_said_and_counted() {
    let console = console();
    happen(console.folder.path(), 1..=10, 3).await;
    console.command().await;
    happen(console.folder.path(), 11..=40, 3).await;
    // Files that are not kept any more.
    let log = console.folder.path().join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let kept: String = text.split_inclusive('\n').skip(30).collect();
    std::fs::write(&log, kept).unwrap();
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.backlog.dead), (10, 20, 20));
    let letter = console.letters().pop().unwrap();
    let missed = letter.missed.unwrap();
    assert_eq!((missed.from, missed.to, missed.count), (11, 30, 20));
    assert!(letter.reason.contains("left the event log"));
    let came: Vec<u64> = console.hub.taken().iter().skip(10).map(Message::sequence).collect();
    assert_eq!(came, (31..=40).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_cannot_be_read_in_the_log_is_said_and_counted() {
    let console = console();
    let log = console.folder.path().join("events.jsonl");
    let damage = |lines: &[usize]| {
        let text = std::fs::read_to_string(&log).unwrap();
        let damaged = |(at, line): (usize, &str)| {
            if lines.contains(&(at + 1)) { "\0".repeat(line.len()) } else { line.to_owned() }
        };
        let text: Vec<String> = text.lines().enumerate().map(damaged).collect();
        std::fs::write(&log, text.join("\n") + "\n").unwrap();
    };
    let told = |console: &Console| -> Vec<(u64, u64, u64)> {
        let missed = console.letters().into_iter().map(|letter| {
            assert!(letter.reason.contains("cannot be read"), "{}", letter.reason);
            letter.missed.unwrap()
        });
        missed.map(|missed| (missed.from, missed.to, missed.count)).collect()
    };
    happen(console.folder.path(), 1..=5, 2).await;
    damage(&[3]);
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.backlog.dead), (4, 1, 1));
    assert_eq!(told(&console), [(3, 3, 1)]);
    // More than one place, and at the end of a page.
    happen(console.folder.path(), 6..=600, 7).await;
    damage(&[3, 7, 8, 261, 262, 500]);
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.backlog.dead), (590, 5, 6));
    assert_eq!(told(&console), [(3, 3, 1), (7, 8, 2), (261, 262, 2), (500, 500, 1)]);
    let came: Vec<u64> = console.hub.taken().iter().map(Message::sequence).collect();
    let lost = [3, 7, 8, 261, 262, 500];
    assert_eq!(came, (1..=600).filter(|number| !lost.contains(number)).collect::<Vec<_>>());
    assert_eq!(console.waiting().await, 0);
    // Of what is held back too: one that failed, and one behind another.
    console.hub.answers(|_, _| Act::Status(500));
    happen(console.folder.path(), 601..=607, 2).await;
    console.manager.flush_events().await.unwrap();
    console.hub.answers(|_, _| Act::Status(204));
    damage(&[3, 7, 8, 261, 262, 500, 602, 605]);
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.backlog.dead), (5, 2, 8));
    assert_eq!(console.waiting().await, 0);
    assert_in_order(&console.hub.taken());
}

#[tokio::test]
async fn a_dashboard_tries_again_though_the_clock_went_back_by_a_day() {
    let console = console();
    console.hub.answers(|_, _| Act::answer(503, "Retry-After: 200", "busy"));
    happen(console.folder.path(), 1..=3, 2).await;
    console.manager.deliver_in_background();
    let cursor = console.cursor();
    let noted = || std::fs::read_to_string(&cursor).is_ok_and(|text| text.contains("next_try_at"));
    wait_for(noted).await;
    console.hub.answers(|_, _| Act::Status(204));
    console.script.pass(-86_400);
    wait_for(|| console.hub.taken().len() == 3).await;
    console.manager.close().await;
}

#[tokio::test]
async fn one_process_delivers_and_the_other_says_so() {
    let console = console();
    happen(console.folder.path(), 1..=3, 2).await;
    console.hub.answers(|_, _| Act::Hold);
    let manager = console.manager.clone();
    let delivers = tokio::spawn(async move { manager.flush_events().await });
    wait_for(|| console.hub.holding() == 1).await;
    let error = console.other().flush_events().await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::Busy, true));
    // A command has nothing to wait for, and its end says nothing of it.
    console.other().deliver_after_command(true).await;
    assert_eq!((console.hub.holding(), console.hub.messages().len()), (1, 1));
    delivers.abort();
    let _ = delivers.await;
    console.hub.answers(|_, _| Act::Status(204));
    console.other().flush_events().await.unwrap();
    assert_eq!(console.waiting().await, 0);
}

#[tokio::test]
async fn a_dashboard_delivers_behind_its_back_and_ends_while_a_hub_is_silent() {
    let console = console();
    console.manager.deliver_in_background();
    happen(console.folder.path(), 1..=5, 2).await;
    wait_for(|| console.hub.taken().len() == 5).await;
    console.hub.answers(|_, _| Act::Hold);
    happen(console.folder.path(), 6..=7, 2).await;
    wait_for(|| console.hub.holding() == 1).await;
    console.manager.close().await;
    assert_eq!((console.hub.holding(), console.hub.messages().len()), (1, 6), "it holds it still");
    // The next one goes on.
    console.hub.answers(|_, _| Act::Status(204));
    let next = console.other();
    next.deliver_in_background();
    wait_for(|| console.hub.taken().len() == 7).await;
    next.close().await;
    assert_in_order(&console.hub.messages());
}

async fn wait_for(is: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_mins(1), async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.expect("it did not come to that");
}
