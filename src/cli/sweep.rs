//! `sweep`: ends what has expired, once: for who has no dashboard open.

use super::bulk::{BulkItem, complain, end};
use super::interrupt::awaited;
use super::output::{CliError, Context, Outcome};
use super::table;
use crate::client::{Error, SweepReport, SweepRequest};
use crate::domain::Code;
use crate::domain::sweep::{HeldBack, HoldReason, SweepItem};
use crate::present::stale::{SWEPT, held_words, swept_role, swept_sum};

pub(super) async fn sweep(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let swept = client.sweep(SweepRequest { alone: true });
    let (left, rest) =
        ("left before everything was ended", "sandboxer sweep goes on with the rest");
    let work = awaited(context, async |running| running.or_left(swept, left, rest).await);
    let report = work.await??;
    let items: Vec<_> = report.items.iter().filter_map(bulk_item).collect();
    let printed = print(context, &report, &items);
    match report.held_back {
        Some(held) if held.reason == HoldReason::NotOwn => {
            printed?;
            Err(refusal(&held).into())
        }
        Some(_) | None => end(context, &items, printed),
    }
}

/// Item of a sandbox about which something was to be done.
fn bulk_item(item: &SweepItem) -> Option<BulkItem> {
    item.skipped.is_none().then(|| BulkItem::new(item.id.as_str(), item.error.clone()))
}

/// Error of what may not be done from here.
pub(super) fn refusal(held: &HeldBack) -> Error {
    Error { hint: held.hint.clone(), ..Error::new(Code::Conflict, held.message.clone()) }
}

/// Prints a row for each sandbox, and the sum. Where nothing was due only a person is told so: a timer's mail stays empty.
fn print(
    context: &mut Context<'_>,
    report: &SweepReport,
    items: &[BulkItem],
) -> Result<(), CliError> {
    if context.options.json {
        return context.document(report);
    }
    match &report.held_back {
        Some(held) if held.reason == HoldReason::NotOwn => return Ok(()),
        Some(held) => {
            context.remark(&format!("remark: {}", held_words(held)));
            return Ok(());
        }
        None => {}
    }
    // What is passed over is passed over by each sweep: no news for a timer's mail.
    let is_told = |item: &&SweepItem| item.skipped.is_none() || !context.options.quiet;
    let told: Vec<&SweepItem> = report.items.iter().filter(is_told).collect();
    if told.is_empty() {
        if context.io.terminals.stderr {
            context.remark("nothing is due");
        }
        return Ok(());
    }
    table::print(context, SWEPT, told, swept_role)?;
    for item in items {
        complain(context, item, false);
    }
    context.remark(&swept_sum(report));
    Ok(())
}
