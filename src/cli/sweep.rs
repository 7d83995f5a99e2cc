//! `sweep`: ends what has expired, once: for who has no dashboard open.

use super::bulk::{BulkItem, complain, end};
use super::interrupt::{Running, with_progress};
use super::output::{CliError, Context, Outcome, Tone};
use super::table::{self, Line};
use crate::client::{Error, SweepReport, SweepRequest};
use crate::domain::Code;
use crate::domain::sweep::{HeldBack, HoldReason, SweepItem, SweepOutcome};
use crate::domain::text::plural;

pub(super) async fn sweep(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let running = Running::new(client);
    let work = async {
        tokio::select! {
            done = client.sweep(SweepRequest { alone: true }) => done,
            // What is half done is what the next sweep finds; nothing has to be rolled back.
            () = running.asked_to_stop() => Err(Error::new(Code::Cancelled, "left before everything was ended")
                .hint("sandboxer sweep goes on with the rest")),
        }
    };
    let report = Box::pin(with_progress(context, &running, work)).await??;
    let items: Vec<_> = report.items.iter().filter_map(bulk_item).collect();
    let printed = print(context, &report, &items);
    match report.held_back {
        Some(held) if held.reason == HoldReason::NotOwn => {
            printed?;
            Err(refusal(held).into())
        }
        Some(_) | None => end(context, &items, printed),
    }
}

/// Item of a sandbox about which something was to be done.
fn bulk_item(item: &SweepItem) -> Option<BulkItem> {
    let ended = item.error.clone().map_or(Ok(()), Err);
    item.skipped.is_none().then(|| BulkItem::new(item.id.as_str(), ended))
}

fn refusal(held: HeldBack) -> Error {
    let error = Error::new(Code::Conflict, held.message);
    match held.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
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
            let hint = held.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let text = format!("remark: {}{hint}", held.message);
            context.remark(&context.options.clean(&text, 1000));
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
    let rows: Vec<_> = told.into_iter().map(row).collect();
    table::print(context, &["ID", "NAME", "HOST", "DONE!", "WHY"], &rows)?;
    for item in items {
        complain(context, item, false);
    }
    context.remark(&sum(report));
    Ok(())
}

fn row(item: &SweepItem) -> Line {
    let tone = match item.outcome {
        SweepOutcome::Failed => Tone::Bad,
        SweepOutcome::Skipped => Tone::Faint,
        SweepOutcome::Warned
        | SweepOutcome::Renewed
        | SweepOutcome::Destroyed
        | SweepOutcome::Finished
        | SweepOutcome::Collected
        | SweepOutcome::Other(_) => Tone::Plain,
    };
    let done = match &item.skipped {
        Some(reason) => format!("{}: {reason}", item.outcome),
        None => item.outcome.to_string(),
    };
    let name = item.name.clone().unwrap_or_else(|| "-".to_owned());
    let cells = vec![item.id.to_string(), name, item.host.to_string(), done, item.message.clone()];
    Line { tone, cells }
}

/// `2 destroyed, 1 skipped, 1 failed`.
fn sum(report: &SweepReport) -> String {
    let counts = SweepOutcome::ALL.iter().map(|outcome| (report.with(outcome).count(), outcome));
    let parts: Vec<_> = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, outcome)| format!("{count} {outcome}"))
        .collect();
    let all = plural(report.items.len() as u64, "sandbox was due", "sandboxes were due");
    format!("{all}: {}", parts.join(", "))
}
