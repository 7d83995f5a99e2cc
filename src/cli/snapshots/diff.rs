//! `snapshots diff`.

use super::super::args::DiffArgs;
use super::super::interrupt::until_interrupted;
use super::super::output::{CliError, Context, Outcome, paint};
use crate::client::{Client, Error, SnapshotDiff, SnapshotDiffRequest};
use crate::domain::Code;
use crate::present::diff::{change_sign, particulars, totals};

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
        let (sign, role) = change_sign(change);
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
