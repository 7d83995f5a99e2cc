//! What arrives, in which order, and what does not.

use sandboxer::domain::hub::HubFormat;
use sandboxer::domain::secret::Secret;
use sandboxer::domain::{Code, Event};
use sandboxer::transport::hub::HubToken;

use super::*;

#[tokio::test]
async fn an_event_is_posted_as_a_cloud_event_with_the_token() {
    let console = console();
    console.script.hub.set(Some((
        console.hub.url(),
        HubToken::Variable("HUB".into(), Some(Secret::new("s3cr3t"))),
        HubFormat::CloudEvents,
    )));
    happen(console.folder.path(), 1..=1, 3).await;
    let report = console.other().flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.error), (1, 0, None));
    let message = console.hub.messages().pop().unwrap();
    assert_eq!(message.path, "/events");
    let header = |name: &str| message.headers.get(name).map(String::as_str);
    assert_eq!(header("authorization"), Some("Bearer s3cr3t"));
    assert_eq!(header("content-type"), Some("application/cloudevents+json; charset=utf-8"));
    assert_eq!(message.body["type"], "dev.coulomb.sandboxer.sandbox.labelled");
    assert_eq!(message.body["subject"], "box-0001");
    assert_eq!(message.body["sequence"], "1");
    assert_eq!(message.body["data"], serde_json::json!({"number": 1}));
    let source = message.body["source"].as_str().unwrap();
    let owner = std::fs::read_to_string(console.folder.path().join("owner")).unwrap();
    assert!(owner.contains(source.strip_prefix("sandboxer/").unwrap()), "{source} in {owner}");
    // Plain is the event as it is kept; without a token there is no header.
    console.script.hub.set(Some((console.hub.url(), HubToken::None, HubFormat::Plain)));
    happen(console.folder.path(), 2..=2, 3).await;
    console.other().flush_events().await.unwrap();
    let message = console.hub.messages().pop().unwrap();
    let event: Event = serde_json::from_value(message.body.clone()).unwrap();
    assert_eq!((event.seq, event.sandbox_id.unwrap().as_str()), (2, "box-0002"));
    assert!(!message.headers.contains_key("authorization"));
    assert_eq!(message.headers["content-type"], "application/json");
}

#[tokio::test]
async fn an_event_that_fails_holds_back_its_own_sandboxs_and_no_other() {
    let console = console();
    happen(console.folder.path(), 1..=60, 5).await;
    // The third of box 1, which is number 11.
    console.hub.answers(|message, _| match message.sequence() {
        11 => Act::Status(500),
        _ => Act::Status(204),
    });
    let report = console.manager.flush_events().await.unwrap();
    let error = report.error.unwrap();
    assert_eq!((&error.code, report.dead), (&Code::OperationFailed, 0), "{error:?}");
    // Behind it eight of box 1 wait, those of none aside, and nothing else does.
    let behind = (11..=60).filter(|number| number % 5 == 1 && number % 12 != 0).count() as u64;
    assert_eq!((report.backlog.waiting, report.delivered), (behind, 60 - behind));
    assert!(report.backlog.next_try_at.is_some() && report.backlog.oldest_at.is_some());
    assert!(report.backlog.last_error.unwrap().contains("answered 500"));
    assert_in_order(&console.hub.taken());
    // What happens meanwhile waits behind it, or passes.
    happen(console.folder.path(), 61..=70, 5).await;
    console.command().await;
    assert_eq!(console.waiting().await, behind + 2);
    // Not tried again before its time, and then no other command waits for it.
    let tries = |hub: &TestHub| hub.messages().iter().filter(|m| m.sequence() == 11).count();
    assert_eq!(tries(&console.hub), 1);
    console.script.pass(60);
    console.command().await;
    assert_eq!(tries(&console.hub), 2);
    console.hub.answers(|_, _| Act::Status(200));
    console.script.pass(60);
    console.command().await;
    assert_eq!(console.waiting().await, 0);
    assert_in_order(&console.hub.taken());
    assert_all_came(&console.hub.taken(), 70);
    assert_eq!(console.hub.taken().len(), 70, "nothing came twice");
}

#[tokio::test]
async fn what_a_hub_refuses_for_good_stands_in_the_dead_letter_with_its_reason() {
    let console = console();
    happen(console.folder.path(), 1..=30, 4).await;
    console.hub.answers(|message, _| match message.sequence() {
        5 => Act::answer(400, "", "no such \u{1b}[2J kind\n"),
        9 => Act::Status(422),
        12 => Act::Status(401),
        _ => Act::Status(202),
    });
    let report = console.manager.flush_events().await.unwrap();
    assert_eq!((report.delivered, report.dead, report.backlog.waiting), (27, 3, 0));
    assert_eq!((report.backlog.dead, report.error), (3, None));
    let letters = console.letters();
    let found: Vec<_> = letters
        .iter()
        .map(|letter| (letter.event.as_ref().unwrap().seq, letter.status.unwrap()))
        .collect();
    assert_eq!(found, [(5, 400), (9, 422), (12, 401)]);
    assert_eq!(letters[0].reason, "the State Hub answered 400: no such  kind");
    // The sandbox's next one follows.
    assert_in_order(&console.hub.taken());
    let came: Vec<u64> = console.hub.taken().iter().map(Message::sequence).collect();
    assert_eq!(came, (1..=30).filter(|n| ![5, 9, 12].contains(n)).collect::<Vec<_>>());
    console.other().flush_events().await.unwrap();
    assert_eq!(console.hub.messages().len(), 30, "nothing is tried again");
}

#[tokio::test]
async fn three_poisoned_sandboxes_do_not_starve_the_others() {
    let console = console();
    happen(console.folder.path(), 1..=40, 8).await;
    console.hub.answers(|message, _| match message.subject().as_str() {
        "box-0001" | "box-0002" | "box-0003" => Act::Status(500),
        _ => Act::Status(204),
    });
    for _ in 0..4 {
        console.command().await;
        console.script.pass(300);
    }
    let poisoned = |message: &Message| {
        ["box-0001", "box-0002", "box-0003"].contains(&message.subject().as_str())
    };
    let healthy =
        (1..=40).filter(|n| n % 12 == 0 || !(1..=3).contains(&(n % 8))).collect::<Vec<u64>>();
    let taken = console.hub.taken();
    assert!(!taken.iter().any(poisoned));
    assert_eq!(taken.iter().map(Message::sequence).collect::<Vec<_>>(), healthy);
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_token() {
    let elsewhere = TestHub::start();
    let console = console();
    console.script.hub.set(Some((
        console.hub.url(),
        HubToken::Variable("HUB".into(), Some(Secret::new("s3cr3t"))),
        HubFormat::CloudEvents,
    )));
    let to = format!("Location: {}", elsewhere.url());
    console.hub.answers(move |_, _| Act::answer(307, &to, ""));
    happen(console.folder.path(), 1..=3, 2).await;
    let report = console.other().flush_events().await.unwrap();
    assert!(report.error.unwrap().hint.unwrap().contains("redirect"));
    assert_eq!((report.delivered, report.backlog.waiting), (0, 3));
    assert_eq!((console.hub.messages().len(), elsewhere.messages().len()), (1, 0));
}

#[tokio::test]
async fn without_its_token_a_process_delivers_nothing_and_holds_nobody_back() {
    let console = console();
    console.script.hub.set(Some((
        console.hub.url(),
        HubToken::Variable("HUB".into(), None),
        HubFormat::CloudEvents,
    )));
    let bare = console.other();
    happen(console.folder.path(), 1..=3, 2).await;
    bare.deliver_after_command(true).await;
    let error = bare.flush_events().await.unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
    assert!(error.message.contains("HUB is not set"), "{error}");
    assert_eq!(console.hub.messages().len(), 0);
    let checks = bare.doctor(false).await.unwrap();
    let check = checks.iter().find(|check| check.name == "state hub").unwrap();
    assert_eq!((check.state.as_str(), check.message.contains("HUB is not set")), ("failed", true));
    // Who has it need not wait for a backoff.
    console.command().await;
    assert_eq!(console.waiting().await, 0);
}

#[tokio::test]
async fn without_a_hub_nothing_is_delivered_or_counted() {
    let console = console();
    console.script.hub.set(None);
    let bare = console.other();
    happen(console.folder.path(), 1..=3, 2).await;
    bare.deliver_after_command(true).await;
    assert_eq!(bare.hub_backlog().await.unwrap(), None);
    assert_eq!(bare.flush_events().await.unwrap_err().code, Code::InvalidConfig);
    assert!(!console.folder.path().join("outbox").exists());
}
