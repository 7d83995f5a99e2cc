//! A sandbox from an archive that is on its host: the directory is made as for any other, the archive is unpacked into it, and
//! whatever the files ask for is started by whoever knows how.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::{ProvisionRequest, RestoreSource};
use crate::domain::facts::HostFacts;
use crate::domain::name::HostName;
use crate::domain::profile::Bytes;
use crate::domain::reporter::Report;
use crate::domain::sandbox::Failure;
use crate::domain::snapshot::ArchiveFacts;
use crate::extensions::archives::archive_dir;
use crate::extensions::workspace::prepare::Prepared;
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput, lacks};
use crate::extensions::workspace::{Steps, failed, joined};
use crate::failpoint;
use crate::transport::{Command, Source, Transport};

const UNPACK_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    include_str!("../workspace/scripts/bind.sh"),
    include_str!("scripts/as.sh"),
    include_str!("scripts/unpack.sh")
);

/// How long an archive may be unpacked.
const LIMIT: Duration = Duration::from_hours(12);

/// Room that an archive's content takes: a tenth more than it, since a file system counts blocks.
pub(crate) fn room(archive: &ArchiveFacts) -> Bytes {
    let content = archive.content_bytes.unwrap_or(0);
    Bytes(content.saturating_add(content / 10))
}

/// Whether a host with these tools can unpack the archive.
///
/// Errors: `missing_dependency`.
pub(crate) fn suits(
    facts: &HostFacts,
    archive: &ArchiveFacts,
    host: &HostName,
) -> Result<(), Error> {
    if archive.needs_gnu_tar && !facts.tools.contains_key("gnu-tar") {
        return Err(lacks(host, &["GNU tar"]));
    }
    Ok(())
}

/// Puts the archive's workspace and volumes into the sandbox's directory. What could not be set is counted.
///
/// Errors: `operation_failed` with `details.kind` = `altered`, `hostile`, or `unread`, which proves nothing; `not_found` for an archive that is not there,
/// `missing_dependency`.
pub(crate) async fn unpack(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    prepared: &Prepared,
    source: &RestoreSource,
    steps: &Steps<'_>,
) -> Result<BTreeMap<String, u64>, Error> {
    let report = steps.next("extract");
    let archive = &source.archive;
    let engine = prepared.identity.engine.as_deref().unwrap_or_default();
    let command = command(transport, request, prepared, source, engine)?;
    let of = archive.content_bytes;
    let mut heard = OutputBuffer::default();
    let mut on_line = |from: Source, line: &[u8]| {
        heard.line(from, line);
        let line = String::from_utf8_lossy(line);
        if from == Source::Stdout
            && let Some(kib) =
                line.strip_prefix("kib=").and_then(|kib| kib.trim().parse::<u64>().ok())
        {
            let bytes = Some(kib.saturating_mul(1024));
            steps.reporter.report(Report { done: bytes, of, bytes, ..report.clone() });
        }
    };
    let output = transport
        .stream(&command, LIMIT, &mut on_line)
        .await
        .map_err(|error| error.step("extract"))?;
    failpoint::reached("restore.extracted");
    let said = heard.said().map_err(|error| error.step("extract"))?;
    refused(&said, transport, source)?;
    said.check("extract", transport, &prepared.root)?;
    if said.value("unpacked") != Some("yes") {
        let message = format!("the archive was not unpacked on {}", transport.spec().name);
        return Err(failed("extract", message, &output));
    }
    let not_preserved = not_preserved(&said, archive, engine);
    enough(source, request, &not_preserved)?;
    Ok(not_preserved)
}

/// A strict restore takes no less than everything.
pub(crate) fn enough(
    source: &RestoreSource,
    request: &ProvisionRequest,
    not_preserved: &BTreeMap<String, u64>,
) -> Result<(), Error> {
    if source.strict && !not_preserved.is_empty() {
        Err(too_little(not_preserved, request))
    } else {
        Ok(())
    }
}

fn command(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    prepared: &Prepared,
    source: &RestoreSource,
    engine: &str,
) -> Result<Command, Error> {
    let (archive, place) = (&source.archive, &source.place);
    let unknown = |what: &str| Error::internal(format!("snapshot {} has no {what}", place.id));
    let path =
        place.path.clone().unwrap_or_else(|| format!("{}/snapshots/{}", prepared.root, place.id));
    let format = archive.format.as_ref().ok_or_else(|| unknown("format"))?;
    let sha256 = archive.sha256.as_deref().ok_or_else(|| unknown("hash"))?;
    let content = archive.content_bytes.ok_or_else(|| unknown("size"))?;
    if archive.has_nameless_volumes() {
        let message = format!("snapshot {} has volumes in it, and nothing says which", place.id);
        return Err(Error::new(Code::OperationFailed, message)
            .hint("`sandboxer snapshots export` gives its content as a file that any tar opens")
            .step("extract"));
    }
    let volumes: Vec<&str> = match engine {
        "" => Vec::new(),
        _ => archive.captured_volumes.iter().map(|volume| volume.name.as_str()).collect(),
    };
    tracing::debug!(host = %transport.spec().name, path, "unpacking");
    Ok(Command::script(UNPACK_SH)
        .arg(&prepared.workdir)
        .arg(request.id.as_str())
        .arg(format!("{} {}", joined(&place.owners), request.owner.owner))
        .arg(place.id.as_str())
        .arg(path)
        .arg(format.file_name())
        .arg(sha256)
        .arg(content.to_string())
        .arg(archive.volumes_bytes.to_string())
        .arg(if archive.needs_gnu_tar { "yes" } else { "no" })
        .arg(archive.foreign_owners.to_string())
        .arg(numbers(archive.account.as_deref()))
        .arg(engine)
        .arg(request.owner.owner.as_str())
        .arg(request.profile.id.as_str())
        .arg(archive_dir::expected_of(place))
        .args(volumes))
}

/// The account's numbers, as the script takes them. They come from a manifest, which may come from anywhere.
fn numbers(account: Option<&str>) -> String {
    let pair = account.and_then(|account| account.split_once(':'));
    let pair = pair
        .and_then(|(user, group)| Some((user.parse::<u32>().ok()?, group.parse::<u32>().ok()?)));
    pair.map_or_else(String::new, |(user, group)| format!("{user}:{group}"))
}

/// Refusal by the script in words of its own.
fn refused(
    said: &ScriptOutput<'_>,
    transport: &dyn Transport,
    source: &RestoreSource,
) -> Result<(), Error> {
    let host = &transport.spec().name;
    let id = &source.place.id;
    let kind = said.value("error");
    let words = said.text("words").unwrap_or_default();
    let error = match kind {
        Some("absent") => Error::new(Code::NotFound, format!("the archive of snapshot {id} is not on {host} any more"))
            .hint("a copy on another host can be restored with --host; `sandboxer snapshots get` lists them"),
        Some("manifest") => {
            let message = format!("the manifest beside the archive of snapshot {id} on {host} is gone or another one");
            Error::new(Code::OperationFailed, message)
                .hint("nothing was used; restore from a copy on another host, if there is one")
                .detail("differs", "manifest")
        }
        Some("altered") => {
            Error::new(Code::OperationFailed, format!("the archive of snapshot {id} on {host} is not what it was"))
                .hint("nothing of it was used; restore from a copy on another host, if there is one")
        }
        Some("unread") => {
            let message = format!("the archive of snapshot {id} could not be read whole on {host}");
            Error::new(Code::OperationFailed, message)
                .hint("nothing is known of it now, and nothing of it was used; try again")
        }
        Some("hostile") => {
            Error::new(Code::OperationFailed, format!("the archive of snapshot {id} on {host} reaches out of itself"))
                .hint("nothing of it was used; find out who wrote it")
        }
        Some("full") => Error::new(Code::OperationFailed, format!("the disk of {host} has no room for the sandbox"))
            .hint("destroy something there, or restore onto another host"),
        Some("volumes") => {
            Error::new(Code::OperationFailed, format!("the volumes of snapshot {id} could not be filled on {host}"))
        }
        Some("tar") => Error::new(Code::OperationFailed, format!("tar could not unpack snapshot {id} on {host}")),
        Some("gone") => Error::new(Code::Conflict, format!("the sandbox's directory on {host} is not what it was")),
        _ => return Ok(()),
    };
    let failure = Failure { step: "extract".to_owned(), exit_status: None, output: words.clone() };
    let kind = if kind == Some("manifest") { Some("altered") } else { kind };
    let error =
        error.step("extract").detail("kind", kind.unwrap_or_default()).of_kind(match kind {
            Some("altered" | "hostile") => Kind::ArchiveAltered,
            Some("absent") => Kind::ArchiveMissing,
            _ => Kind::Plain,
        });
    let error = match words.lines().find(|line| !line.trim().is_empty()) {
        Some(first) => error.because(first.to_owned()),
        None => error,
    };
    Err(error.evidence(failure))
}

fn not_preserved(
    said: &ScriptOutput<'_>,
    archive: &ArchiveFacts,
    engine: &str,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut count = |kind: &str, number: u64| {
        if number > 0 {
            *counts.entry(kind.to_owned()).or_insert(0) += number;
        }
    };
    let number =
        |key: &str| said.value(key).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    // An account that is not root gives everything to itself.
    count(
        "owners",
        if said.value("keep") == Some("self") { archive.foreign_owners } else { number("owners") },
    );
    count("modes", number("modes"));
    count("xattrs", number("xattrs"));
    count("devices", number("devices"));
    if engine.is_empty() {
        count("volumes", archive.captured_volumes.len() as u64);
    }
    counts
}

fn too_little(not_preserved: &BTreeMap<String, u64>, request: &ProvisionRequest) -> Error {
    let list = crate::domain::request::counted(not_preserved);
    Error::new(
        Code::OperationFailed,
        format!("{} cannot keep all that the archive has: {list}", request.host),
    )
    .hint("restore it like to like (the same kind of account and engine), or without --strict")
    .detail("kind", "not_preserved")
    .detail("not_preserved", serde_json::to_value(not_preserved).unwrap_or_default())
    .step("extract")
}
