//! Folder of an archive on a host: `<root>/snapshots/<snapshot-id>`, with the archive and, once it is whole, its
//! manifest. What is there, the removal of it, and the words for what can be wrong with it.

use std::time::Duration;

use crate::domain::archive::{ArchiveLook, ArchivePlace};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::facts::HostIdentity;
use crate::domain::root::KnownRoots;
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, ArchiveManifest};
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{Recorded, configured_root, expected, failed, joined, step};
use crate::transport::{Command, Transport};

/// The definitions that the scripts of archives stand on.
macro_rules! archive_script {
    ($script:literal) => {
        concat!(
            include_str!("../../transport/scripts/runtime.sh"),
            include_str!("../workspace/scripts/says.sh"),
            include_str!("../workspace/scripts/place.sh"),
            include_str!("../workspace/scripts/bind.sh"),
            include_str!("scripts/as.sh"),
            include_str!("scripts/keep.sh"),
            include_str!(concat!("scripts/", $script))
        )
    };
}
pub(super) use archive_script;

const LOOK_SH: &str = archive_script!("archive_look.sh");
const REMOVE_SH: &str = archive_script!("archive_remove.sh");

/// How long a manifest may be, as it is sealed; bytes. Who looks at one reads no more than that.
pub(super) const MANIFEST_LIMIT: usize = 1024 * 1024;
/// How long a removal may take: one that was cut off may have left somebody at work for some seconds.
const REMOVE_LIMIT: Duration = Duration::from_mins(2);

/// A manifest as it is sealed.
///
/// Errors: `invalid_input` where it is longer than one may be.
pub(super) fn manifest_text(manifest: &ArchiveManifest) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| {
        Error::internal("the archive's manifest cannot be written").because(error)
    })?;
    if text.len() <= MANIFEST_LIMIT {
        return Ok(text);
    }
    let message = format!(
        "the manifest of snapshot {} has {} bytes, and {MANIFEST_LIMIT} are the most",
        manifest.id,
        text.len()
    );
    Err(Error::new(Code::InvalidInput, message))
}

/// Expectations of an archive's host. Whoever looks at archives marks no root.
pub(super) fn expected_of(place: &ArchivePlace) -> String {
    let recorded = if place.is_recorded { Recorded::Yes } else { Recorded::No };
    expected(
        place.host_identity.as_ref(),
        &KnownRoots { spare: None, ..place.roots.clone() },
        recorded,
    )
}

/// A script about one archive, with what all of them begin with: the root, the id, the owners, what is expected of the host.
pub(super) fn about(
    script: &'static str,
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Command {
    expecting(script, transport, place, &expected_of(place))
}

/// [`about`], with expectations of the caller's.
pub(super) fn expecting(
    script: &'static str,
    transport: &dyn Transport,
    place: &ArchivePlace,
    expected: &str,
) -> Command {
    Command::script(script)
        .arg(root(transport, place))
        .arg(place.id.as_str())
        .arg(joined(&place.owners))
        .arg(expected)
}

/// `<root>` of `<root>/snapshots/<id>`: as recorded, else as the profile or the host says.
pub(super) fn root<'a>(transport: &'a dyn Transport, place: &'a ArchivePlace) -> &'a str {
    let recorded = place.path.as_deref().and_then(|path| path.strip_suffix(place.id.as_str()));
    let recorded = recorded.and_then(|dir| dir.strip_suffix("/snapshots/"));
    let recorded = recorded.map(|root| if root.is_empty() { "/" } else { root });
    let configured = || place.profile.as_ref().and_then(configured_root);
    recorded.or_else(configured).unwrap_or(&transport.spec().workspace_root)
}

/// Identity that the host proved; with its engine, where that is known from before.
pub(super) fn identity(said: &ScriptOutput<'_>, place: &ArchivePlace) -> Option<HostIdentity> {
    let machine_id = said.value("machine").filter(|id| !id.is_empty())?;
    Some(place.host_identity.clone().unwrap_or_else(|| HostIdentity::of_machine(machine_id)))
}

/// Refusal by a script of archives in words of its own; anything else as for sandboxes.
pub(super) fn check(
    said: &ScriptOutput<'_>,
    step: &str,
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Result<(), Error> {
    let (host, id) = (&transport.spec().name, &place.id);
    let error = match said.value("error") {
        Some("identity") => other_machine(transport, place),
        Some("closed") => Error::new(
            Code::OperationFailed,
            format!("the folder of archives on {host} cannot be looked into"),
        ),
        Some("link") => Error::new(
            Code::OperationFailed,
            format!("the folder of snapshot {id} on {host} leads elsewhere"),
        )
        .hint("nothing was touched; find out who put a link there"),
        Some("absent") => missing(transport, place),
        Some("theirs") => Error::new(
            Code::Conflict,
            format!("what bears the name of snapshot {id} on {host} is not ours"),
        ),
        Some("taken") => taken(place),
        Some("space") => Error::new(
            Code::OperationFailed,
            format!("the disk of {host} has no room for the archive"),
        )
        .hint("delete something there, or take another host"),
        Some("altered") => altered(said.value("differs").unwrap_or("content"), transport, place),
        _ => return said.check(step, transport, root(transport, place)),
    };
    let words = said.text("words").unwrap_or_default();
    let error = error.step(step);
    Err(if words.is_empty() { error } else { error.because(words) })
}

/// An archive that is not what is known of it; `differs` is `truncated`, `size`, `hash`, `content` or `manifest`.
pub(super) fn altered(differs: &str, transport: &dyn Transport, place: &ArchivePlace) -> Error {
    let host = &transport.spec().name;
    let how = match differs {
        "truncated" => "was cut short",
        "size" => "has another size than it had",
        "hash" => "has another content than it had",
        "manifest" => "has no manifest beside it that says what is recorded",
        _ => "cannot be read any more",
    };
    Error::new(
        Code::OperationFailed,
        format!("the archive of snapshot {} on {host} {how}", place.id),
    )
    .hint("do not trust it; a copy on another host can be verified by itself")
    .of_kind(Kind::ArchiveAltered)
    .detail("kind", "altered")
    .detail("differs", differs)
}

/// Something of it is there that nobody here put there.
fn taken(place: &ArchivePlace) -> Error {
    Error::new(Code::Conflict, format!("{} has something of snapshot {} already", place.host, place.id)).hint(
        "nothing was touched: what nobody here has a record of is never removed; look at it there, and move it away",
    )
}

/// There is no archive of it.
pub(super) fn missing(transport: &dyn Transport, place: &ArchivePlace) -> Error {
    Error::new(
        Code::NotFound,
        format!("the archive of snapshot {} is not on {}", place.id, transport.spec().name),
    )
    .of_kind(Kind::ArchiveMissing)
    .detail("differs", "missing")
}

/// The host is another one than the recorded.
pub(super) fn other_machine(transport: &dyn Transport, place: &ArchivePlace) -> Error {
    let message =
        format!("host {} is not the one that snapshot {} is on", transport.spec().name, place.id);
    Error::new(Code::HostChanged, message)
        .hint("nothing was touched; check what the host's name points to")
}

/// How an archive is compressed, as it is recorded.
pub(super) fn format(facts: &ArchiveFacts) -> Result<ArchiveFormat, Error> {
    match facts.format.clone() {
        Some(format @ (ArchiveFormat::TarZst | ArchiveFormat::TarGz)) => Ok(format),
        Some(other) => {
            let message = format!(
                "this version of sandboxer cannot read an archive that is compressed as {other}"
            );
            Err(Error::new(Code::Unsupported, message))
        }
        None => Err(Error::internal("the snapshot's record has no archive")),
    }
}

/// Look at what the host has of it.
pub(super) async fn look(
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Result<ArchiveLook, Error> {
    inspect(transport, place).await.map(|(seen, _)| seen)
}

/// Whether the manifest beside an archive is there and says what is recorded. The archive itself is not read.
///
/// Errors: `not_found` where there is no archive, `operation_failed` with `details.kind` = `altered` for the manifest.
pub(super) async fn ensure_sealed(
    transport: &dyn Transport,
    place: &ArchivePlace,
    facts: &ArchiveFacts,
) -> Result<(), Error> {
    let (seen, beside) = inspect(transport, place).await?;
    if seen.bytes.is_none() {
        return Err(missing(transport, place));
    }
    let why = match (&seen.manifest, beside) {
        (Some(manifest), _) if manifest.id != place.id || manifest.snapshot.id != place.id => {
            Beside::Another.words()
        }
        (Some(manifest), _) if manifest.snapshot.archive != *facts => {
            "manifest.json says something else of the archive"
        }
        (Some(_), _) => return Ok(()),
        (None, beside) => beside.words(),
    };
    Err(altered("manifest", transport, place).because(why.to_owned()))
}

/// Thing that is where an archive's manifest should be.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// Manifest of this snapshot and installation, as far as a script can tell.
    Ours,
    Another,
    TooLong,
    Noise,
}

impl Beside {
    /// Fault of it as a manifest.
    fn words(self) -> &'static str {
        match self {
            Self::Nothing => "there is no manifest.json",
            Self::Another => "manifest.json names another snapshot, or another installation",
            Self::TooLong => "manifest.json is longer than a manifest may be",
            Self::Ours | Self::Noise => "manifest.json is no manifest",
        }
    }
}

/// State of an archive's folder, and what is where its manifest should be.
async fn inspect(
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Result<(ArchiveLook, Beside), Error> {
    let command = about(LOOK_SH, transport, place).arg((MANIFEST_LIMIT + 1).to_string());
    let output = step(transport, "look", &command).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    check(&said, "look", transport, place)?;
    let untold = |what: &str| {
        failed("look", format!("{} did not say {what}", transport.spec().name), &output)
    };
    let there = said.value("there").ok_or_else(|| untold("what it has"))? == "yes";
    let manifest = said.text("manifest");
    let beside = match said.value("whose") {
        None => Beside::Nothing,
        Some(_) if manifest.as_ref().is_some_and(|text| text.trim_end().len() > MANIFEST_LIMIT) => {
            Beside::TooLong
        }
        Some("ours") => Beside::Ours,
        Some("theirs") => Beside::Another,
        Some(_) => Beside::Noise,
    };
    let manifest = manifest.filter(|_| matches!(beside, Beside::Ours));
    let bytes = said
        .value("size")
        .map(|size| size.parse::<u64>().map_err(|_| untold("how large its archive is")));
    let seen = ArchiveLook {
        folder: said.text("path"),
        path: said.text("path").filter(|_| there),
        identity: identity(&said, place),
        // One that cannot be read seals nothing.
        manifest: manifest.and_then(|text| serde_json::from_str(&text).ok()),
        bytes: bytes.transpose()?,
        root: said.marked_root(),
    };
    Ok((seen, beside))
}

/// Removes it, and reads back.
pub(super) async fn remove(
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Result<TeardownReport, Error> {
    let command = about(REMOVE_SH, transport, place);
    let output =
        transport.run(&command, REMOVE_LIMIT).await.map_err(|error| error.step("remove"))?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    let untouched = said.value("begun").is_none();
    check(&said, "remove", transport, place).map_err(|error| Error { untouched, ..error })?;
    if said.value("finished") != Some("yes") {
        let message = format!("the removal on {} did not come to its end", transport.spec().name);
        return Err(failed("remove", message, &output));
    }
    let mut report = TeardownReport { untouched, ..TeardownReport::default() };
    for entry in said.entries() {
        let resource = |kind: &str| Resource { kind: kind.to_owned(), id: entry.text() };
        match entry.key {
            "done" => {
                let (kind, outcome) =
                    entry.value.split_once(' ').unwrap_or((entry.value, "failed"));
                let outcome = TeardownOutcome::from_word(outcome);
                report.lines.push(TeardownLine { resource: resource(kind), outcome, reason: None });
            }
            "why" => {
                if let Some(line) = report.lines.last_mut() {
                    line.reason = Some(entry.text());
                }
            }
            "left" => report.leftovers.push(resource(entry.value)),
            _ => {}
        }
    }
    Ok(report)
}
