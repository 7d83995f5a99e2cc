//! Credits of the fake: a ledger in memory, and sandboxes that cost.

use sandboxer::client::{Credits, Error, ExtensionView, GrantRequest, HistoryEntry, Update};
use sandboxer::domain::actor::{Actor, ActorType};
use sandboxer::domain::clock::{ClockReading, MonotonicTime};
use sandboxer::domain::credit::{EntryKind, LedgerEntry};
use sandboxer::domain::event::Event;
use sandboxer::domain::extension::Capability;
use sandboxer::domain::meter::CostMeter;
use sandboxer::domain::name::{EventId, ExtensionId, SandboxId};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{EventKind, Time, Usd};

use super::snapshots::extension;
use super::{FakeClient, Scenario, ready, record, world};

impl FakeClient {
    pub(super) fn ledger(&self) -> Result<(Credits, Vec<HistoryEntry>), Error> {
        self.asked.lock().unwrap().push("credits".to_owned());
        self.inner.lock().unwrap().credits.clone()
    }

    /// The ledger is another one from now on, as another process would leave it, and tells so.
    pub fn change_credits(&self, credits: Result<(Credits, Vec<HistoryEntry>), Error>) {
        self.inner.lock().unwrap().credits = credits;
        self.tell_of_credits(EventKind::CreditsCharged);
    }

    pub(super) fn grant(&self, request: GrantRequest) -> Result<Credits, Error> {
        let GrantRequest { usd, note } = request;
        let asked = format!("grant {usd} {}", note.as_deref().unwrap_or("without a note"));
        self.asked.lock().unwrap().push(asked);
        if let Some(problem) = &self.scenario.grant_error {
            return Err(problem.clone());
        }
        let now = self.now();
        let sums = {
            let mut inner = self.inner.lock().unwrap();
            let (sums, history) = inner.credits.as_mut().map_err(|problem| problem.clone())?;
            sums.balance_usd += usd;
            let mut granted = ledger_entry(EntryKind::Grant, None, usd, now);
            granted.entry.note = note;
            granted.balance_usd = sums.balance_usd;
            history.push(granted);
            sums.clone()
        };
        self.tell_of_credits(EventKind::CreditsGranted);
        Ok(sums)
    }

    fn tell_of_credits(&self, kind: EventKind) {
        let mut inner = self.inner.lock().unwrap();
        let seq = inner.events.last().map_or(1, |event| event.seq + 1);
        let event = Event {
            seq,
            sandbox_seq: None,
            id: EventId::new(format!("event-{seq}")),
            time: self.now(),
            kind,
            sandbox_id: None,
            actor: kim(),
            data: serde_json::json!({}),
        };
        inner.events.push(event.clone());
        let _ = self.updates.send(Update::Event(event));
    }
}

fn kim() -> Actor {
    Actor { kind: ActorType::Adm, name: "kim".to_owned() }
}

/// An entry; its balance is zero.
pub fn ledger_entry(kind: EntryKind, id: Option<&str>, usd: Usd, time: Time) -> HistoryEntry {
    let of = id.unwrap_or("none");
    HistoryEntry {
        entry: LedgerEntry {
            id: EventId::new(format!("{kind}-{of}-{}", time.unix())),
            time,
            kind,
            sandbox_id: id.map(SandboxId::new),
            usd,
            actor: kim(),
            note: None,
        },
        balance_usd: Usd::ZERO,
    }
}

/// An extension that takes money.
pub fn metered() -> ExtensionView {
    ExtensionView {
        place: Some("saas-stub".into()),
        ..extension("ext.saas-stub", &[Capability::Metered])
    }
}

/// The small world with sandboxes that cost, and three days of a ledger.
pub fn metered_world(now: Time) -> Scenario {
    let usd = |text: &str| text.parse::<Usd>().unwrap();
    let mut running =
        record("e1e2e3e4", Some("burst-1"), "saas-stub", "saas-stub", State::Ready, now);
    running.created_at = now.minus_seconds(5 * 3600);
    let mut running = ready(running, now.minus_seconds(5 * 3600));
    running.extension = ExtensionId::new("ext.saas-stub");
    running.services.clear();
    running.quote_usd = Some(usd("0.80"));
    running.hold_usd = Some(usd("0.80"));
    running.cost_usd = Some(usd("0.5125"));
    let mut meter = CostMeter::new(Some(4 * 3600));
    let monotonic = MonotonicTime { boot: "boot".to_owned(), elapsed_ms: 1 };
    meter.begin(ClockReading { wall: running.created_at, monotonic }, true);
    running.meter = Some(meter);
    let mut history = vec![
        ledger_entry(EntryKind::Grant, None, usd("50"), now.minus_seconds(3 * 86_400)),
        ledger_entry(EntryKind::Hold, Some("d0d0d0d0"), usd("9"), now.minus_seconds(80_000)),
        ledger_entry(EntryKind::Charge, Some("d0d0d0d0"), usd("8"), now.minus_seconds(20_000)),
        ledger_entry(EntryKind::Release, Some("d0d0d0d0"), usd("1"), now.minus_seconds(20_000)),
        ledger_entry(EntryKind::Hold, Some("e1e2e3e4"), usd("0.80"), now.minus_seconds(5 * 3600)),
    ];
    history[0].entry.note = Some("November, \u{1b}[31mfrom the team's budget".to_owned());
    history[1].entry.actor = Actor { kind: ActorType::Agt, name: "nightly".to_owned() };
    let mut balance = Usd::ZERO;
    for entry in &mut history {
        let amount = entry.entry.usd;
        balance = match entry.entry.kind {
            EntryKind::Grant | EntryKind::Release => balance + amount,
            EntryKind::Hold => balance - amount,
            _ => balance,
        };
        entry.balance_usd = balance;
    }
    let sums = Credits { balance_usd: balance, held_usd: usd("0.80"), burn_usd_per_h: usd("0.21") };
    let mut world = world(now);
    world.records.push(running);
    world.extensions.push(metered());
    world.credits = Ok((sums, history));
    world
}
