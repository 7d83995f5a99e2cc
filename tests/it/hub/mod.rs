//! The State Hub: a real HTTP server that fails in every way that such a one can, and the event log that is delivered to it all the
//! same.

mod bad_days;
mod commands;
mod orders;
mod server;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sandboxer::domain::actor::Actor;
use sandboxer::domain::event::{EventKind, PendingEvent};
use sandboxer::domain::hub::HubFormat;
use sandboxer::domain::name::EventId;
use sandboxer::domain::outbox::DeadLetter;
use sandboxer::domain::{SandboxId, Time};
use sandboxer::manager::SandboxManager;
use sandboxer::store::EventLog as _;
use sandboxer::store::json::JsonStores;
use sandboxer::transport::hub::HubToken;

use crate::test_env::manager;
use crate::test_env::script::Scripted;
use server::{Act, Message, TestHub};

/// A console with a hub.
struct Console {
    folder: tempfile::TempDir,
    script: Arc<Scripted>,
    manager: SandboxManager,
    hub: TestHub,
}

/// A console, and a hub that takes everything.
fn console() -> Console {
    let hub = TestHub::start();
    let script = Arc::new(Scripted::default());
    script.hub.set(Some((hub.url(), HubToken::None, HubFormat::CloudEvents)));
    let folder = tempfile::tempdir().unwrap();
    let manager = manager(folder.path(), &script);
    Console { folder, script, manager, hub }
}

impl Console {
    /// Another process on the same data directory.
    fn other(&self) -> SandboxManager {
        manager(self.folder.path(), &self.script)
    }

    async fn waiting(&self) -> u64 {
        self.manager.hub_backlog().await.unwrap().unwrap().waiting
    }

    /// Delivers as a command does at its end.
    async fn command(&self) {
        self.manager.deliver_after_command(true).await;
    }

    fn cursor(&self) -> std::path::PathBuf {
        self.folder.path().join("outbox/cursor.json")
    }

    fn letters(&self) -> Vec<DeadLetter> {
        let file = self.folder.path().join("outbox/dead.jsonl");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// So many events happen, of `sandboxes` in turns; each twelfth is of none.
async fn happen(data: &Path, numbers: std::ops::RangeInclusive<u64>, sandboxes: u64) {
    let pending = |number: u64| PendingEvent {
        id: EventId::new(format!("event-{number:06}")),
        time: Time::from_unix(1_700_000_000),
        kind: EventKind::SandboxLabelled,
        sandbox_id: (!number.is_multiple_of(12))
            .then(|| SandboxId::new(format!("box-{:04}", number % sandboxes))),
        actor: Actor::parse("adm:ops").unwrap(),
        data: serde_json::json!({"number": number}),
    };
    let events = JsonStores::open(data).unwrap().events;
    events.append(numbers.map(pending).collect()).await.unwrap();
}

/// What came is in each sandbox's order. An event may come again, under the same id, and then so do those that came behind it.
fn assert_in_order(messages: &[Message]) {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut ids: BTreeMap<u64, String> = BTreeMap::new();
    for message in messages {
        let (number, of) = (message.sequence(), message.subject());
        let id = ids.entry(number).or_insert_with(|| message.id()).clone();
        assert_eq!(id, message.id(), "another id for event {number}");
        let before = last.entry(of.clone()).or_default();
        assert!(number >= *before, "{number} after {before} of {of:?}");
        *before = number;
    }
}

/// Every event up to `last` came, at least once.
fn assert_all_came(messages: &[Message], last: u64) {
    let numbers: std::collections::BTreeSet<u64> = messages.iter().map(Message::sequence).collect();
    let missing: Vec<u64> = (1..=last).filter(|number| !numbers.contains(number)).collect();
    assert!(missing.is_empty(), "these did not come: {missing:?}");
}
