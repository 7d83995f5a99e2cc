//! Charge: the end of a hold, in the write that says that nothing of the sandbox is there any more.

use crate::domain::Time;
use crate::domain::Usd;
use crate::domain::actor::Actor;
use crate::domain::error::Error;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::settlement::{After, settle};
use crate::domain::teardown::{TeardownOutcome, TeardownReport};
use crate::manager::credits::cost::cost_of_run;
use crate::manager::credits::entries::add_events;
use crate::manager::deps::Deps;
use crate::manager::journal::NewEvent;
use crate::manager::operation::Op;

/// Run of a sandbox that is over: whether it cost anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Nothing of it was ever there.
    Nothing,
    Metered,
}

impl Ran {
    /// Run of a record of which a teardown left nothing: nothing was made where nothing was found, and nobody said that it was made.
    pub(crate) fn of(record: &SandboxRecord, report: &TeardownReport) -> Self {
        let is_absent = report.lines.iter().all(|line| line.outcome == TeardownOutcome::Absent);
        if is_absent && record.handle.is_none() { Self::Nothing } else { Self::Metered }
    }
}

/// Settlement of a run, worked out before the write that has it.
pub(crate) struct Settlement {
    cost: Usd,
    after: After,
    actor: Actor,
    now: Time,
}

impl Settlement {
    /// Settlement of a record's run by what it cost.
    pub(crate) async fn of(deps: &Deps, record: &SandboxRecord, ran: Ran, after: After) -> Self {
        let cost = match ran {
            Ran::Nothing => Usd::ZERO,
            Ran::Metered => cost_of_run(deps, record).await,
        };
        Self { cost, after, actor: deps.actor(), now: deps.now() }
    }

    /// Ends the hold on a record, inside of a change. One that is settled stays as it is.
    pub(crate) fn write_on(self, record: &mut SandboxRecord) {
        let events = settle(record, self.cost, self.after);
        add_events(record, events, &self.actor, self.now);
    }
}

/// Settlement of the run of what an operation works on, by what a teardown found. `None`: something may be there still, and cost.
pub(crate) async fn settlement_of(
    op: &Op<SandboxRecord>,
    report: &TeardownReport,
    after: After,
) -> Option<Settlement> {
    if !report.is_clean() {
        return None;
    }
    let record = as_written(op).await;
    Some(Settlement::of(&op.deps, &record, Ran::of(&record, report), after).await)
}

/// Record that an operation works on. Where it cannot be read, it was not written either.
async fn as_written(op: &Op<SandboxRecord>) -> SandboxRecord {
    let found = op.deps.sandboxes.get(&op.subject.id).await.ok().flatten();
    found.unwrap_or_else(|| op.subject.clone())
}

/// Changes the record and settles its run in the same write.
pub(crate) async fn settle_with(
    op: &Op<SandboxRecord>,
    ran: Ran,
    events: Vec<NewEvent>,
    change: impl FnOnce(&mut SandboxRecord) + Send,
) -> Result<SandboxRecord, Error> {
    let settlement = Settlement::of(&op.deps, &as_written(op).await, ran, After::Over).await;
    op.update(events, move |record| {
        settlement.write_on(record);
        change(record);
    })
    .await
}
