//! `patches`: a snapshot's scripts, who has them, and applying them.

mod apply;
mod status;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::args::{AddArgs, PatchesCommand, RemoveArgs, SnapshotRef};
use super::confirm::{self, Question, allow};
use super::output::Tone;
use super::output::{Face, Outcome, Stop};
use super::record;
use super::table::{self, Line, age, size};
use crate::client::{Error, PatchRequest};
use crate::domain::Code;
use crate::domain::lineage::SnapshotView;
use crate::domain::patch::{MAX_SCRIPT_BYTES, Patch, find};

pub(super) async fn patches(face: &mut Face<'_>, command: &PatchesCommand) -> Outcome {
    match command {
        PatchesCommand::List(args) => list(face, args).await,
        PatchesCommand::Add(args) => add(face, args).await,
        PatchesCommand::Remove(args) => remove(face, args).await,
        PatchesCommand::Status(args) => status::status(face, args).await,
        PatchesCommand::Apply(args) => apply::apply(face, args).await,
    }
}

async fn list(face: &mut Face<'_>, args: &SnapshotRef) -> Outcome {
    let view = face.client.snapshot_view(&args.snapshot).await?;
    if face.look.json {
        face.document(&view.patches)?;
    } else if view.patches.is_empty() {
        face.remark(&format!(
            "snapshot {} has no patches",
            face.look.clean(view.record.title(), 200)
        ));
    } else {
        let now = face.now();
        let row = |patch: &Patch| Line {
            tone: Tone::Plain,
            cells: vec![
                patch.sequence.to_string(),
                patch.id.to_string(),
                patch.run_in.clone(),
                size(patch.script.len() as u64),
                age(patch.created_at, now),
                patch.actor.to_string(),
                patch.description.clone().unwrap_or_default(),
            ],
        };
        let rows: Vec<_> = view.patches.iter().map(row).collect();
        table::print(
            face,
            &["PATCH", "ID!", "RUNS IN", "SIZE!", "AGE!", "BY", "DESCRIPTION"],
            &rows,
        )?;
    }
    Ok(0)
}

async fn add(face: &mut Face<'_>, args: &AddArgs) -> Outcome {
    let snapshot = face.client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let script = script(face, &args.script_file)?;
    let request = PatchRequest {
        snapshot: snapshot.clone(),
        script,
        description: args.description.clone(),
        run_in: args.run_in.clone(),
    };
    let patch = face.client.add_patch(request).await?;
    if face.look.json {
        face.document(&patch)?;
        return Ok(0);
    }
    show(face, &patch)?;
    // It is added, whether or not anybody can be told who will get it.
    if let Ok(view) = face.client.snapshot_view(&snapshot).await {
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
        face.remark(&face.look.clean(&text, 1000));
    }
    Ok(0)
}

fn show(face: &mut Face<'_>, patch: &Patch) -> Result<(), Stop> {
    let mut fields = vec![
        ("patch", patch.sequence.to_string()),
        ("id", patch.id.to_string()),
        ("snapshot", patch.snapshot_id.to_string()),
        ("runs in", patch.run_in.clone()),
        ("size", size(patch.script.len() as u64)),
    ];
    fields.extend(patch.description.clone().map(|text| ("for", text)));
    record::block(face, &fields)
}

/// Reads a script, no more of it than may be taken.
fn script(face: &mut Face<'_>, path: &Path) -> Result<String, Error> {
    let read = if path.as_os_str() == "-" {
        if face.io.terminals.stdin {
            face.remark("type the script; Ctrl-D ends it");
        }
        read(&mut face.io.stdin)
    } else {
        File::open(path).and_then(read)
    };
    let shown = if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    };
    let bytes = read.map_err(|error| {
        let mut problem = Error::new(Code::InvalidInput, format!("{shown} cannot be read"));
        problem.causes.push(error.to_string());
        problem
    })?;
    if bytes.len() > MAX_SCRIPT_BYTES {
        let message = format!("the script has more than {}", size(MAX_SCRIPT_BYTES as u64));
        return Err(Error::new(Code::InvalidInput, message).hint("let it fetch what is large"));
    }
    String::from_utf8(bytes).map_err(|error| {
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

async fn remove(face: &mut Face<'_>, args: &RemoveArgs) -> Outcome {
    let view = face.client.snapshot_view(&args.snapshot).await?;
    // From here on it is the id of what was shown: one that comes by this number later is not meant.
    let Some(patch) = find(&view.patches, &args.patch) else {
        return Err(no_such_patch(&view, &args.patch).into());
    };
    agree(face, args, &view, patch).await?;
    let record = &view.record;
    let patch = face.client.remove_patch(record.id.as_str(), patch.id.as_str()).await?;
    if face.look.json {
        face.document(&patch)?;
    } else {
        let text =
            format!("removed patch {} ({}) from {}", patch.sequence, patch.id, record.title());
        face.line(&face.look.clean(&text, 1000))?;
    }
    Ok(0)
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
    face: &mut Face<'_>,
    args: &RemoveArgs,
    view: &SnapshotView,
    patch: &Patch,
) -> Result<(), Stop> {
    let needs_yes = Some("patches remove".to_owned());
    let note = "Sandboxes that have it keep it; those that owe it never get it.".to_owned();
    let about = confirm::patch(patch, view, face.now());
    allow(face, &Question { verb: "remove", note: Some(note), about, yes: args.yes, needs_yes })
        .await
        .map(drop)
}
