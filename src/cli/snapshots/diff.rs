//! `snapshots diff`.

use super::super::args::DiffArgs;
use super::super::interrupt::until_interrupted;
use super::super::output::{CliError, Context, Outcome, paint};
use crate::client::{Client, Error, SnapshotDiff, SnapshotDiffRequest};
use crate::domain::Code;
use crate::domain::archive::TreeEntry;
use crate::domain::figures::bytes;
use crate::domain::request::Change;
use crate::present::Role;

pub(super) async fn diff(context: &mut Context<'_>, args: &DiffArgs) -> Outcome {
    let client = context.client;
    let a = client.snapshot_view(&args.a).await?.record.id.to_string();
    let b = match &args.b {
        Some(reference) => Some(other(client, reference).await?),
        None => None,
    };
    let request = SnapshotDiffRequest { a, b };
    let found = Box::pin(until_interrupted(context, client.diff_snapshot(request))).await??;
    context.reply(&found, |context| print(context, &found))
}

/// The id of the snapshot or the sandbox that is meant. A name that both have is refused: whichever was taken, it might
/// be the wrong one.
async fn other(client: &dyn Client, reference: &str) -> Result<String, Error> {
    let missing = |problem: &Error| problem.code == Code::NotFound;
    let snapshot = client.snapshot_view(reference).await.map(|view| view.record.id.to_string());
    let sandbox = client.get(reference).await;
    match (snapshot, sandbox) {
        // There is nothing to compare with in one that is over.
        (Ok(snapshot), Ok(sandbox)) if sandbox.state.is_over() => Ok(snapshot),
        (Ok(snapshot), Ok(sandbox)) => {
            let message =
                format!("{reference} is a snapshot, {snapshot}, and a sandbox, {}", sandbox.id);
            Err(Error::new(Code::Conflict, message).hint("write the id of the one that is meant"))
        }
        (Ok(snapshot), Err(problem)) if missing(&problem) => Ok(snapshot),
        (Err(problem), Ok(sandbox)) if missing(&problem) => Ok(sandbox.id.to_string()),
        (Err(problem), _) | (_, Err(problem)) if !missing(&problem) => Err(problem),
        _ => Err(Error::new(
            Code::NotFound,
            format!("there is no snapshot and no sandbox {reference:?}"),
        )
        .hint("sandboxer snapshots list; sandboxer list")),
    }
}

fn print(context: &mut Context<'_>, found: &SnapshotDiff) -> Result<(), CliError> {
    let paints = context.paints();
    for change in &found.changes {
        let (sign, role) = match change.change.as_str() {
            "added" => ("+", Role::Plain),
            "removed" => ("-", Role::Bad),
            _ => ("~", Role::Busy),
        };
        let line =
            context.options.clean(&format!("{sign} {}{}", change.path, particulars(change)), 2000);
        context.line(&paint(role, &line, paints))?;
    }
    if found.truncated {
        context.line(&format!(
            "{} not all are shown",
            if context.options.ascii { "..." } else { "…" }
        ))?;
    }
    context.say(&totals(found))?;
    for note in &found.notes {
        context.remark(&format!("note: {note}"));
    }
    Ok(())
}

/// `snap-… → a1b2c3d4: 3 added, 1 removed, 2 changed, 1.2MiB more`.
fn totals(found: &SnapshotDiff) -> String {
    let bytes = match found.bytes {
        0 => "no bytes more or less".to_owned(),
        more if more > 0 => format!("{} more", bytes(more.unsigned_abs())),
        less => format!("{} less", bytes(less.unsigned_abs())),
    };
    let (added, removed, changed) = (found.added, found.removed, found.changed);
    format!(
        "from {} to {}: {added} added, {removed} removed, {changed} changed, {bytes}",
        found.a, found.b
    )
}

/// The size of what came or went; what differs of what changed.
fn particulars(change: &Change) -> String {
    match (&change.a, &change.b) {
        (Some(a), Some(b)) => {
            let told: Vec<_> = change.differs.iter().map(|what| differs(what, a, b)).collect();
            if told.is_empty() { String::new() } else { format!("  {}", told.join(", ")) }
        }
        (Some(one), None) | (None, Some(one)) => match (one.size, &one.target) {
            (_, Some(target)) => format!(" -> {target}"),
            (0, None) => String::new(),
            (size, None) => format!("  {}", bytes(size)),
        },
        (None, None) => String::new(),
    }
}

fn differs(what: &str, a: &TreeEntry, b: &TreeEntry) -> String {
    let target = |entry: &TreeEntry| entry.target.clone().unwrap_or_else(|| "nothing".to_owned());
    let (before, after) = match what {
        "kind" => (a.kind.to_string(), b.kind.to_string()),
        "mode" => (a.mode.clone(), b.mode.clone()),
        "owner" => (a.owner.clone(), b.owner.clone()),
        "size" => (bytes(a.size), bytes(b.size)),
        "modified" => (a.modified.clone(), b.modified.clone()),
        "target" => (target(a), target(b)),
        other => return other.to_owned(),
    };
    // Two sizes that are written alike differ by little: then their bytes are told.
    if before == after {
        return format!("{what} {} to {}B", a.size, b.size);
    }
    format!("{what} {before} to {after}")
}
