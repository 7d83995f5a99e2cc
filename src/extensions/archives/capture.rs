//! A snapshot: one script that writes the archive's part, and one that makes it whole.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{CaptureRequest, Captured, Target};
use crate::domain::facts::HostIdentity;
use crate::domain::name::SnapshotId;
use crate::domain::profile::SnapshotMode;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::{
    ArchiveFacts, ArchiveFormat, ArchiveManifest, CapturedVolume, Consistency, NotCaptured,
};
use crate::extensions::archives::archive_dir;
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput};
use crate::extensions::workspace::{expected_of, failed, owners, root, step};
use crate::failpoint;
use crate::transport::{Command, Source, Transport};

/// Script that takes back what was done to containers, as definitions and as the text `sbx_letting_go`, for who does it later.
macro_rules! letting_go {
    () => {
        concat!(
            "sbx_letting_go='",
            include_str!("scripts/let_go.sh"),
            "'\neval \"$sbx_letting_go\"\n"
        )
    };
}

const CAPTURE_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    include_str!("../workspace/scripts/engine.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("../workspace/scripts/bind.sh"),
    include_str!("scripts/as.sh"),
    letting_go!(),
    include_str!("scripts/hold.sh"),
    include_str!("scripts/leave_out.sh"),
    include_str!("scripts/capture.sh")
);
const SEAL_SH: &str = include_str!("scripts/seal.sh");
const RESUME_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    letting_go!(),
    include_str!("scripts/resume.sh")
);
/// How long an archive may be written.
const LIMIT: Duration = Duration::from_hours(12);
/// How long containers may take to be resumed.
const RESUME_LIMIT: Duration = Duration::from_mins(2);
/// A piece of a text that travels as an argument; bytes.
const PIECE: usize = 64 * 1024;
/// Which paths of what is left out are kept.
const LEFT_OUT_KEPT: usize = 100;

/// Writes and seals an archive of a sandbox.
///
/// Errors: `untouched` ones where the host refused before anything was written.
pub(crate) async fn capture(
    transport: &dyn Transport,
    target: &Target,
    request: &CaptureRequest,
    reporter: &dyn Reporter,
) -> Result<Captured, Error> {
    let wanted = request.mode.clone().or_else(|| target.profile.snapshot.mode.clone());
    reporter.report(at_step("prepare", 1));
    let identity = target.host_identity.as_ref();
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(CAPTURE_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(request.snapshot.id.as_str())
        .arg(expected_of(target))
        .arg(target.engine())
        .arg(identity.and_then(|identity| identity.engine_id.as_deref()).unwrap_or_default())
        .arg(wanted.as_ref().map_or("auto", SnapshotMode::as_str))
        .arg(target.profile.stop_grace.get().to_string())
        .args(&request.excludes);
    let mut heard = OutputBuffer::default();
    let mut on_line = |source: Source, line: &[u8]| {
        heard.line(source, line);
        if source == Source::Stdout {
            tell(reporter, &String::from_utf8_lossy(line));
        }
    };
    failpoint::reached("snapshot.prepared");
    let output = transport
        .stream(&command, LIMIT, &mut on_line)
        .await
        .map_err(|error| error.step("archive"))?;
    failpoint::reached("snapshot.captured");
    let said = heard.said().map_err(|error| error.step("archive"))?;
    refused(&said, transport, target)?;
    said.check("archive", transport, root).map_err(|error| {
        if said.value("began").is_none() { error.of_a_part().untouched() } else { error }
    })?;
    let path = said.text("path").filter(|_| said.value("captured_all") == Some("yes"));
    let Some(path) = path else {
        return Err(failed(
            "archive",
            format!("the archive on {} was not finished", transport.spec().name),
            &output,
        ));
    };
    let archive = facts(&said, request);
    if !is_told(&archive) {
        let message =
            format!("what is in the archive on {} was not told in full", transport.spec().name);
        return Err(failed("archive", message, &output));
    }
    let machine_id = said.value("machine").unwrap_or_default();
    let identity = identity.cloned().unwrap_or_else(|| HostIdentity::of_machine(machine_id));
    reporter.report(Report { bytes: archive.bytes, ..at_step("seal", 4) });
    let manifest = manifest(target, request, &archive);
    seal(transport, &path, &manifest).await?;
    failpoint::reached("snapshot.sealed");
    if let Some(words) = said.text("still") {
        // Whole as it is; but somebody's containers stand still.
        return Err(Error::new(
            Code::OperationFailed,
            format!("the containers of sandbox {} were not resumed", target.id),
        )
        .because(words)
        .step("resume"));
    }
    Ok(Captured { path, identity, archive })
}

/// Report of a line of the script, for who looks on.
fn tell(reporter: &dyn Reporter, line: &str) {
    let report = match line.split_once('=') {
        Some(("stage", "pause")) => at_step("pause", 2),
        Some(("stage", "archive")) => Report { bytes: Some(0), ..at_step("archive", 3) },
        Some(("bytes", count)) => {
            let bytes = count.trim().parse().ok();
            Report { done: bytes, bytes, ..at_step("archive", 3) }
        }
        _ => return,
    };
    reporter.report(report);
}

fn at_step(stage: &'static str, step: u32) -> Report {
    Report { stage, step, steps: 4, ..Report::default() }
}

/// Refusal by the script in words of its own.
fn refused(
    said: &ScriptOutput<'_>,
    transport: &dyn Transport,
    target: &Target,
) -> Result<(), Error> {
    let host = &transport.spec().name;
    let id = &target.id;
    let words = said.text("words").unwrap_or_default();
    let error = match said.value("error") {
        Some("gone") => Error::new(Code::Conflict, format!("the workspace of sandbox {id} is not on {host} any more"))
            .hint(format!("`sandboxer get {id}` shows what became of it")),
        Some("pause") => {
            let error = if said.value("began").is_none() { Code::Unsupported } else { Code::OperationFailed };
            Error::new(error, format!("the containers of sandbox {id} cannot be held still"))
                .hint("--mode stop stops them meanwhile; --mode live takes files as they change")
        }
        Some("busy") => Error::new(Code::Conflict, format!("an earlier snapshot of sandbox {id} is still at work on {host}"))
            .hint("it ends by itself once its console is gone; then try again"),
        Some("exclude") => {
            let message =
                format!("tar on {host} cannot leave anything out, and the profile's snapshot.exclude asks for that");
            Error::new(Code::MissingDependency, message)
                .hint(format!("it takes GNU tar on {host}; nothing is installed there by sandboxer"))
                .detail("missing", vec!["GNU tar"])
        }
        Some("closed") => Error::new(Code::OperationFailed, format!("not all of sandbox {id} can be read on {host}"))
            .hint("it takes sudo without a password for tar and find, or a container of the sandbox that is there"),
        Some("space") => Error::new(Code::OperationFailed, format!("the disk of {host} has no room for the archive"))
            .hint("delete snapshots or destroy sandboxes there, or exclude files (snapshot.exclude)"),
        Some("full") => Error::new(Code::OperationFailed, format!("the archive could not be written on {host}"))
            .hint("is its disk full? nothing of the archive was left there"),
        Some("volumes") => Error::new(Code::OperationFailed, format!("a volume of sandbox {id} could not be read"))
            .hint("nothing of the archive was left"),
        Some("lacks") => {
            Error::new(Code::OperationFailed, format!("the archive lacks something of sandbox {id}, and nothing says why"))
                .hint(format!(
                    "find out what tells tar on {host} to leave files out: a TAR_OPTIONS that sudo sets, or a tar of its own; \
                     nothing of the archive was left"
                ))
        }
        Some("tar") => Error::new(Code::OperationFailed, format!("tar could not read all of sandbox {id}"))
            .hint("nothing of the archive was left"),
        Some("long") => Error::new(Code::OperationFailed, format!("a path of sandbox {id} is too long to be unpacked"))
            .hint("move or remove what has 4096 bytes and more, or exclude it (snapshot.exclude); nothing of the archive was left"),
        Some("taken") => Error::new(Code::Conflict, format!("{host} has something with this snapshot's id already")),
        _ => return Ok(()),
    };
    let untouched = said.value("began").is_none();
    let step = if untouched { "prepare" } else { "archive" };
    let failure = crate::domain::sandbox::Failure {
        step: step.to_owned(),
        exit_status: None,
        output: words.clone(),
    };
    let error = error.step(step);
    let error = match words.lines().next_back() {
        Some(last) => error.because(last.to_owned()),
        None => error,
    };
    Err(Error { untouched, ..error.evidence(failure) })
}

fn number(said: &ScriptOutput<'_>, key: &str) -> Option<u64> {
    said.value(key)?.trim().parse().ok()
}

fn facts(said: &ScriptOutput<'_>, request: &CaptureRequest) -> ArchiveFacts {
    let mut not_captured: Vec<NotCaptured> = Vec::new();
    let mut images = BTreeMap::new();
    let mut captured_volumes = Vec::new();
    let mut remarks = Vec::new();
    for entry in said.entries() {
        match entry.key {
            "remark" => remarks.push(entry.text()),
            "missed" => {
                not_captured.push(NotCaptured { name: entry.text(), reason: String::new() });
            }
            "because" => {
                if let Some(missed) = not_captured.last_mut() {
                    missed.reason = entry.text();
                }
            }
            "captured" => captured_volumes.push(CapturedVolume { name: entry.value.to_owned() }),
            "image" => {
                if let Some((service, image)) = entry.value.split_once(' ') {
                    images.insert(service.to_owned(), image.to_owned());
                }
            }
            _ => {}
        }
    }
    let gnu = said.value("gnu") == Some("yes");
    let left_out = said.text("left_out").unwrap_or_default();
    let fuzzy = said.value("fuzzy") == Some("yes");
    let mode = said.value("mode").map(SnapshotMode::from_word);
    if let Some(wanted) = request.mode.as_ref().filter(|wanted| mode.as_ref() != Some(*wanted)) {
        remarks
            .push(format!("--mode {wanted} had nothing to hold still: none of its containers ran"));
    }
    ArchiveFacts {
        bytes: number(said, "size"),
        content_bytes: number(said, "content"),
        files: number(said, "files"),
        sha256: said.hash("sum"),
        format: said.value("format").map(ArchiveFormat::from_word),
        mode,
        consistency: Some(if fuzzy { Consistency::Fuzzy } else { Consistency::Clean }),
        volumes_bytes: number(said, "volumes").unwrap_or(0),
        captured_volumes,
        not_captured,
        remarks,
        // busybox's tar knows neither.
        not_preserved: if gnu {
            BTreeMap::new()
        } else {
            BTreeMap::from([("xattrs_unknown".to_owned(), 1)])
        },
        left_out: left_out.lines().take(LEFT_OUT_KEPT).map(str::to_owned).collect(),
        left_out_count: number(said, "left_out").unwrap_or(0),
        foreign_owners: number(said, "foreign").unwrap_or(0),
        account: said.value("account").map(str::to_owned),
        needs_gnu_tar: gnu,
        compose_hash: said.hash("compose"),
        images,
        excludes: request.excludes.clone(),
    }
}

/// Whether the host said all without which nobody can restore it or know what it is worth.
fn is_told(archive: &ArchiveFacts) -> bool {
    let known = archive.mode.is_some() && archive.format.is_some() && archive.sha256.is_some();
    known
        && archive.bytes.is_some()
        && archive.content_bytes.is_some()
        && !archive.has_nameless_volumes()
}

/// Manifest beside the archive: the record as it will be.
pub(crate) fn manifest(
    target: &Target,
    request: &CaptureRequest,
    archive: &ArchiveFacts,
) -> ArchiveManifest {
    let mut snapshot = request.snapshot.clone();
    snapshot.archive = archive.clone();
    snapshot.replicas.clear();
    snapshot.state = crate::domain::snapshot::SnapshotState::Ready;
    snapshot.operation = None;
    snapshot.pending.clear();
    let (id, owner) = (snapshot.id.clone(), request.owner.clone());
    ArchiveManifest { schema: 1, id, owner, snapshot, profile: target.profile.as_written().clone() }
}

/// Gives an archive its last name and writes its manifest, which makes it whole.
pub(crate) async fn seal(
    transport: &dyn Transport,
    path: &str,
    manifest: &ArchiveManifest,
) -> Result<(), Error> {
    let text = archive_dir::manifest_text(manifest)?;
    let format = manifest.snapshot.archive.format.as_ref();
    let format = format.ok_or_else(|| Error::internal("the archive has no format"))?;
    let command = Command::script(SEAL_SH).arg(path).arg(format.file_name()).args(pieces(&text));
    step(transport, "seal", &command).await.map(|_| ())
}

/// Splits a text so that each piece fits an argument, at character boundaries.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let mut rest = text;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, tail) = rest.split_at(end);
        found.push(piece);
        rest = tail;
    }
    found
}

/// Resumes what a snapshot that was cut off left paused or stopped. One that is `cancelled` here begins nothing any more.
pub(crate) async fn resume(
    transport: &dyn Transport,
    target: &Target,
    cancelled: Option<&SnapshotId>,
) -> Result<(), Error> {
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(RESUME_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(cancelled.map_or("", SnapshotId::as_str));
    let output =
        transport.run(&command, RESUME_LIMIT).await.map_err(|error| error.step("resume"))?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    said.check("resume", transport, root)?;
    match said.value("resumed") {
        Some("yes") => Ok(()),
        _ => Err(failed(
            "resume",
            format!("the containers of sandbox {} were not resumed", target.id),
            &output,
        )),
    }
}
