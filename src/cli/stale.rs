//! `inspect stale`: what records and hosts have and should not.

use super::args::StaleArgs;
use super::bulk::{BulkItem, complain};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome, Tone};
use super::table::{self, Line};
use crate::client::problem::exit_status;
use crate::client::{Error, StaleItem, StaleQuery};
use crate::domain::Code;
use crate::domain::figures::{age, bytes};
use crate::domain::stale::{HostPass, PassState, ReapAction, StaleClass};
use crate::domain::text::plural;

pub(super) async fn inspect(context: &mut Context<'_>, args: &StaleArgs) -> Outcome {
    let client = context.client;
    let query = StaleQuery { hosts: args.hosts.clone(), as_last_seen: false };
    let report = until_interrupted(context, client.stale(query)).await??;
    if context.options.json {
        context.document(&report.items)?;
    } else {
        print_items(context, &report.items)?;
        context.remark(&sum(&report.items));
        if let Some(held) = &report.held_back {
            let hint = held.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let text = format!("remark: {}{hint}", held.message);
            context.remark(&context.options.clean(&text, 1000));
        }
    }
    conclude_passes(context, &report.hosts)
}

/// Prints items: sums first where there are many.
pub(super) fn print_items(context: &mut Context<'_>, items: &[StaleItem]) -> Result<(), CliError> {
    if items.is_empty() {
        return Ok(());
    }
    let rows: Vec<Line> = items.iter().map(row).collect();
    table::print(
        context,
        &["ID", "CLASS!", "HOST", "NAME", "OWNER", "AGE", "SIZE", "ACTION!", "WHY"],
        &rows,
    )
}

fn row(item: &StaleItem) -> Line {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let tone = match item.action {
        ReapAction::Keep => Tone::Faint,
        ReapAction::Destroy | ReapAction::Remove => Tone::Bad,
        ReapAction::Recover | ReapAction::Close | ReapAction::Adopt | ReapAction::Other(_) => {
            Tone::Plain
        }
    };
    let cells = vec![
        item.id().to_owned(),
        item.class.to_string(),
        item.host.to_string(),
        dash(item.name.clone()),
        dash(item.owner.as_ref().map(|owner| owner.chars().take(8).collect())),
        dash(item.age_s.map(age)),
        dash(item.bytes.map(bytes)),
        item.action.to_string(),
        item.why.clone(),
    ];
    Line { tone, cells }
}

/// `3 stale: 2 expired, 1 orphan_dir; 1 foreign`.
pub(super) fn sum(items: &[StaleItem]) -> String {
    let count = |class: &StaleClass| items.iter().filter(|item| item.class == *class).count();
    let words = |classes: Vec<&StaleClass>| {
        let some = classes.into_iter().map(|class| (count(class), class));
        let some = some.filter(|(count, _)| *count > 0);
        some.map(|(count, class)| format!("{count} {class}")).collect::<Vec<_>>()
    };
    let (never, classes): (Vec<_>, Vec<_>) =
        StaleClass::ALL.iter().partition(|class| class.is_never_reaped());
    let stale: usize = classes.iter().map(|class| count(class)).sum();
    if items.is_empty() {
        return "nothing is stale".to_owned();
    }
    let (classes, never) = (words(classes), words(never));
    let of = if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
    let beside = if never.is_empty() { String::new() } else { format!("; {}", never.join(", ")) };
    format!("{stale} stale{of}{beside}")
}

/// Passes that could not be made, one for each host that is not forbidden.
pub(super) fn unread(passes: &[HostPass]) -> Vec<BulkItem> {
    passes
        .iter()
        .filter(|pass| pass.state != PassState::Read && pass.state != PassState::Forbidden)
        .map(|pass| {
            let unknown =
                || Error::new(Code::OperationFailed, format!("{} could not be read", pass.host));
            let error = pass.error.clone().unwrap_or_else(unknown);
            BulkItem::new(pass.host.as_str(), Err(error))
        })
        .collect()
}

/// Says which hosts could not be read; the status is 0 where all were, that of `partial` where some were not, and where none was
/// the one that all of them have, else that of `host_unreachable`.
fn conclude_passes(context: &mut Context<'_>, passes: &[HostPass]) -> Outcome {
    let failed = unread(passes);
    let Some(error) = unread_error(&failed, passes) else { return Ok(0) };
    if context.options.json {
        return Err(error.into());
    }
    for item in &failed {
        complain(context, item, false);
    }
    Ok(exit_status(&error.code))
}

/// The one error that stands for all hosts that could not be read.
pub(super) fn unread_error(failed: &[BulkItem], passes: &[HostPass]) -> Option<Error> {
    let errors: Vec<&Error> = failed.iter().filter_map(|item| item.error.as_ref()).collect();
    let first = *errors.first()?;
    let code = if passes.iter().any(|pass| pass.state == PassState::Read) {
        Code::Partial
    } else if errors.iter().all(|error| error.code == first.code) {
        first.code.clone()
    } else {
        Code::HostUnreachable
    };
    let words = plural(failed.len() as u64, "host could not be read", "hosts could not be read");
    let mut error = Error::new(code, words);
    error.causes = errors.iter().map(|error| error.message.clone()).collect();
    error.retryable = errors.iter().all(|error| error.retryable);
    error.hint.clone_from(&first.hint);
    Some(error)
}
