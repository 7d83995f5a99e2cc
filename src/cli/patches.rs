//! `patches`: a snapshot's scripts, who has them, and applying them.

mod apply;
mod status;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::args::{AddArgs, PatchesCommand, RemoveArgs, SnapshotRef};
use super::confirm::{Question, allow};
use super::input::unreadable;
use super::output::{CliError, Context, Outcome};
use super::{document, table};
use crate::client::{Error, PatchRequest};
use crate::domain::Code;
use crate::domain::lineage::SnapshotView;
use crate::domain::patch::{MAX_SCRIPT_BYTES, Patch, find};
use crate::present::patch::{COLUMNS, record};
use crate::present::{Role, bytes, question};

pub(super) async fn patches(context: &mut Context<'_>, command: &PatchesCommand) -> Outcome {
    match command {
        PatchesCommand::List(args) => list(context, args).await,
        PatchesCommand::Add(args) => add(context, args).await,
        PatchesCommand::Remove(args) => remove(context, args).await,
        PatchesCommand::Status(args) => status::status(context, args).await,
        PatchesCommand::Apply(args) => apply::apply(context, args).await,
    }
}

async fn list(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let view = context.client.snapshot_view(&args.snapshot).await?;
    let nothing = format!("snapshot {} has no patches", view.record.title());
    table::reply(context, &view.patches, &nothing, COLUMNS, |_| Role::Plain)
}

async fn add(context: &mut Context<'_>, args: &AddArgs) -> Outcome {
    let snapshot = context.client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let script = script(context, &args.script_file)?;
    let request = PatchRequest {
        snapshot: snapshot.clone(),
        script,
        description: args.description.clone(),
        run_in: args.run_in.clone(),
    };
    let patch = context.client.add_patch(request).await?;
    let shown = document::reply(context, &patch, |document, _| record(document, &patch))?;
    if context.options.json {
        return Ok(shown);
    }
    // It is added, whether or not anybody can be told who will get it.
    if let Ok(view) = context.client.snapshot_view(&snapshot).await {
        let waiting: Vec<_> = view
            .sandboxes
            .iter()
            .filter(|sandbox| sandbox.owes.contains(&patch.sequence))
            .collect();
        let names: Vec<_> =
            waiting.iter().map(|one| one.name.as_deref().unwrap_or(one.id.as_str())).collect();
        let text = match names.as_slice() {
            [] => "no sandbox is based on the snapshot: the next that is restored from it gets the patch".to_owned(),
            names => format!("on their next wake, or with `patches apply`, get it: {}", names.join(", ")),
        };
        context.remark(&text);
    }
    Ok(shown)
}

/// Reads a script, no more of it than may be taken.
fn script(context: &mut Context<'_>, path: &Path) -> Result<String, Error> {
    let read = if path.as_os_str() == "-" {
        if context.io.terminals.stdin {
            context.remark("type the script; Ctrl-D ends it");
        }
        read(&mut context.io.stdin)
    } else {
        File::open(path).and_then(read)
    };
    let shown = if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let script = read.map_err(|error| unreadable(&shown, &error))?;
    if script.len() > MAX_SCRIPT_BYTES {
        let message = format!("the script has more than {}", bytes(MAX_SCRIPT_BYTES as u64));
        return Err(Error::new(Code::InvalidInput, message).hint("let it fetch what is large"));
    }
    String::from_utf8(script).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("{shown} is not UTF-8: byte {at} belongs to no character");
        Error::new(Code::InvalidInput, message).hint("a patch is a script, kept as text")
    })
}

fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_SCRIPT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn remove(context: &mut Context<'_>, args: &RemoveArgs) -> Outcome {
    let view = context.client.snapshot_view(&args.snapshot).await?;
    // From here on it is the id of what was shown: one that comes by this number later is not meant.
    let Some(patch) = find(&view.patches, &args.patch) else {
        return Err(no_such_patch(&view, &args.patch).into());
    };
    agree(context, args, &view, patch).await?;
    let record = &view.record;
    let patch = context.client.remove_patch(record.id.as_str(), patch.id.as_str()).await?;
    let text = format!("removed patch {} ({}) from {}", patch.sequence, patch.id, record.title());
    context.reply(&patch, |context| context.say(&text))
}

fn no_such_patch(view: &SnapshotView, reference: &str) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let problem = Error::new(
        Code::NotFound,
        format!("snapshot {} has no patch {shown:?}", view.record.title()),
    );
    let there: Vec<_> =
        view.patches.iter().map(|patch| format!("{} ({})", patch.sequence, patch.id)).collect();
    problem.hint(if there.is_empty() {
        "it has no patches".to_owned()
    } else {
        format!("it has {}", there.join(", "))
    })
}

async fn agree(
    context: &mut Context<'_>,
    args: &RemoveArgs,
    view: &SnapshotView,
    patch: &Patch,
) -> Result<(), CliError> {
    let needs_yes = Some("patches remove".to_owned());
    let note = "Sandboxes that have it keep it; those that owe it never get it.".to_owned();
    let about = question::patch(patch, view, context.now());
    allow(context, &Question { verb: "remove", note: Some(note), about, yes: args.yes, needs_yes })
        .await
        .map(drop)
}
