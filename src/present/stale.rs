//! Stale things, and what a reap or a sweep does about them: the columns of its tables, reasons and sums.

use super::count::{counts, many};
use super::error::hinted;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::client::{ReapItem, ReapReport, StaleItem, SweepReport};
use crate::domain::figures::{age, bytes};
use crate::domain::stale::{HostPass, PassState, ReapAction, ReapOutcome, StaleClass};
use crate::domain::sweep::{HeldBack, SweepItem, SweepOutcome};
use crate::domain::text::clean_line;

/// Columns of an owner id that are read, of which the first eight are shown: on a host it may be any text.
const OWNER: usize = 80;

/// Columns of what is stale.
pub(crate) const COLUMNS: &[Column<StaleItem>] = &[
    Column::new("ID", |item, _| item.id().to_owned()),
    Column::whole("CLASS", |item, _| item.class.to_string()),
    Column::new("HOST", |item, _| item.host.to_string()),
    Column::new("NAME", |item, _| or_nothing(item.name.as_ref())),
    Column::new("OWNER", |item, _| {
        let owner = item.owner.as_deref().unwrap_or_default();
        clean_line(owner, OWNER).chars().take(8).collect()
    }),
    Column::new("AGE", |item, _| or_nothing(item.age_s.map(age))),
    Column::new("SIZE", |item, _| or_nothing(item.bytes.map(bytes))),
    Column::whole("ACTION", |item, _| item.action.to_string()),
    Column::new("WHY", |item, _| item.why.clone()),
];

/// How something stale is meant.
pub(crate) fn role(item: &StaleItem) -> Role {
    match item.action {
        ReapAction::Keep => Role::Dim,
        ReapAction::Destroy | ReapAction::Remove => Role::Bad,
        ReapAction::Recover | ReapAction::Close | ReapAction::Adopt | ReapAction::Other(_) => {
            Role::Plain
        }
    }
}

/// Columns of what a reap did.
pub(crate) const REAPED: &[Column<ReapItem>] = &[
    Column::new("ID", |item, _| item.id.clone()),
    Column::whole("CLASS", |item, _| item.class.to_string()),
    Column::new("HOST", |item, _| item.host.to_string()),
    Column::whole("DONE", |item, _| item.outcome.to_string()),
    Column::new("WHY", |item, _| item.message.clone()),
];

/// Sign of what was done about something stale, and how it is meant.
pub(crate) fn outcome_sign(item: &ReapItem) -> (char, Role) {
    match item.outcome {
        ReapOutcome::Removed
        | ReapOutcome::Recovered
        | ReapOutcome::Closed
        | ReapOutcome::Adopted => ('✓', Role::Good),
        ReapOutcome::Skipped | ReapOutcome::Other(_) => ('⚠', Role::Warn),
        ReapOutcome::Failed => ('✗', Role::Bad),
    }
}

/// Columns of what a sweep did.
pub(crate) const SWEPT: &[Column<SweepItem>] = &[
    Column::new("ID", |item, _| item.id.to_string()),
    Column::new("NAME", |item, _| or_nothing(item.name.as_ref())),
    Column::new("HOST", |item, _| item.host.to_string()),
    Column::whole("DONE", |item, _| match &item.skipped {
        Some(reason) => format!("{}: {reason}", item.outcome),
        None => item.outcome.to_string(),
    }),
    Column::new("WHY", |item, _| item.message.clone()),
];

/// How what a sweep did is meant.
pub(crate) fn swept_role(item: &SweepItem) -> Role {
    match item.outcome {
        SweepOutcome::Failed => Role::Bad,
        SweepOutcome::Skipped => Role::Dim,
        _ => Role::Plain,
    }
}

/// Whether something stale is there to be reaped: what is somebody else's, or protected, is only shown.
pub(crate) fn is_counted(item: &StaleItem) -> bool {
    !item.class.is_never_reaped() && !item.protected
}

/// Why nothing can be done about an item, whatever is pressed.
pub(crate) fn is_never(item: &StaleItem) -> Option<&'static str> {
    match item.class {
        StaleClass::Foreign => Some("another owner's: never reaped"),
        StaleClass::Unreadable => Some("nobody can tell whose it is: look at it on its host"),
        StaleClass::Other(_) => Some("of a class that this version does not know: left alone"),
        _ if item.possible.is_empty() && item.protected => Some("protected: it is kept"),
        _ if item.possible.is_empty() => Some("nothing can be done about it from here"),
        _ => None,
    }
}

/// Words for what a reap does about something.
pub(crate) fn reap_words(action: &ReapAction) -> Option<&'static str> {
    match action {
        ReapAction::Destroy | ReapAction::Remove => Some("reap takes it"),
        ReapAction::Recover => Some("reap recovers it"),
        ReapAction::Close => Some("reap closes its record"),
        ReapAction::Adopt => Some("reap adopts it"),
        ReapAction::Keep | ReapAction::Other(_) => None,
    }
}

/// Why something is stale, and what a reap does about it; where it is left alone, the reason says so.
pub(crate) fn stale_sentence(item: &StaleItem) -> String {
    match reap_words(&item.action) {
        Some(reap) => format!("{}: {reap}", item.why),
        None => item.why.clone(),
    }
}

/// Why nothing may be reaped or swept from here, and what to do.
pub(crate) fn held_words(held: &HeldBack) -> String {
    hinted(&held.message, held.hint.as_ref())
}

/// `3 stale: 2 expired, 1 orphan_dir; 1 foreign`. That there is none is said of no more than was read.
pub(crate) fn sum(items: &[StaleItem], passes: &[HostPass]) -> String {
    if items.is_empty() {
        let is = |state: PassState| passes.iter().any(|pass| pass.state == state);
        let words = match (is(PassState::Read), is(PassState::Unread) || is(PassState::Changed)) {
            (_, false) => "nothing is stale",
            (true, true) => "nothing is stale on the hosts that could be read",
            (false, true) => "no host could be read",
        };
        return words.to_owned();
    }
    let (never, classes): (Vec<&StaleClass>, Vec<&StaleClass>) =
        StaleClass::ALL.iter().partition(|class| class.is_never_reaped());
    let each = |classes: &[&StaleClass]| {
        let of = |class: &StaleClass| items.iter().filter(|item| item.class == *class).count();
        counts(classes.iter().map(|class| (of(class), (*class).clone())))
    };
    let stale = items.iter().filter(|item| classes.contains(&&item.class)).count();
    let (classes, never) = (each(&classes), each(&never));
    let of = if classes.is_empty() { String::new() } else { format!(": {classes}") };
    let beside = if never.is_empty() { String::new() } else { format!("; {never}") };
    format!("{stale} stale{of}{beside}")
}

/// `7 removed, 1 skipped`: how many items have each outcome that one has.
pub(crate) fn reap_outcomes(count: impl Fn(&ReapOutcome) -> usize) -> String {
    counts(ReapOutcome::ALL.iter().map(|outcome| (count(outcome), outcome)))
}

/// `5 found, 3 removed, 1 skipped, 1 failed`: these four always.
pub(crate) fn reap_sum(report: &ReapReport) -> String {
    let count = |outcome: &ReapOutcome| report.with(outcome).count();
    let is_rare = |outcome: &ReapOutcome| {
        matches!(outcome, ReapOutcome::Recovered | ReapOutcome::Closed | ReapOutcome::Adopted)
    };
    let outcomes = [
        ReapOutcome::Removed,
        ReapOutcome::Recovered,
        ReapOutcome::Closed,
        ReapOutcome::Adopted,
        ReapOutcome::Skipped,
        ReapOutcome::Failed,
    ];
    let told = outcomes.iter().filter(|outcome| !is_rare(outcome) || count(outcome) > 0);
    let found = format!("{} found", report.items.len());
    let each = told.map(|outcome| format!("{} {outcome}", count(outcome)));
    std::iter::once(found).chain(each).collect::<Vec<_>>().join(", ")
}

/// `3 sandboxes were due: 2 destroyed, 1 skipped`.
pub(crate) fn swept_sum(report: &SweepReport) -> String {
    let each = SweepOutcome::ALL.iter().map(|outcome| (report.with(outcome).count(), outcome));
    let all = many(report.items.len(), "sandbox was due", "sandboxes were due");
    format!("{all}: {}", counts(each))
}
