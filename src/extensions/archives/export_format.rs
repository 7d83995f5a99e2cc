//! Format of an exported snapshot: one plain tar with `manifest.json` first and the archive behind it, so that what follows is
//! known before it comes. It can be opened with any tar.

use std::collections::BTreeSet;
use std::error::Error as StdError;

use futures_util::stream::{self, StreamExt};
use tar::{EntryType, Header};

use crate::domain::archive::ByteStream;
use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId, check_label, check_name};
use crate::domain::patch::MAX_SEQUENCE;
use crate::domain::profile::MAX_INPUT_BYTES;
use crate::domain::snapshot::{ArchiveFormat, ArchiveManifest, CapturedVolume};
use crate::extensions::archives::archive_dir::{MANIFEST_LIMIT, manifest_text};

/// The first entry's name.
pub(super) const MANIFEST: &str = "manifest.json";
/// Bytes of a block.
pub(super) const BLOCK: usize = 512;
/// How large an archive, or what is in it, may be said to be; bytes. Hosts reckon with signed numbers.
const SIZE_LIMIT: u64 = 1 << 60;
/// Padding that may follow the archive: the end of a tar, up to a whole record of GNU tar's; bytes.
const END_LIMIT: usize = 20 * BLOCK;

/// Header of a member.
pub(super) fn header(name: &str, bytes: u64, time: u64) -> Result<Header, Error> {
    let mut header = Header::new_gnu();
    header
        .set_path(name)
        .map_err(|error| Error::internal("an export cannot be written").because(error))?;
    header.set_size(bytes);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(time);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

/// Reads the head of an export: the manifest, and a stream of the archive alone.
pub(super) async fn open(source: ByteStream) -> Result<(ArchiveManifest, ByteStream), Error> {
    let mut reader = Reader { source, rest: Vec::new() };
    let size = reader.entry(MANIFEST).await?;
    if size > MANIFEST_LIMIT as u64 {
        return Err(no_export(format!(
            "its manifest has {size} bytes, and {MANIFEST_LIMIT} are the most"
        )));
    }
    let padded = (size as usize).next_multiple_of(BLOCK);
    let mut text = reader.exactly(padded).await?;
    text.truncate(size as usize);
    let manifest: ArchiveManifest = serde_json::from_slice(&text)
        .map_err(|error| no_export(caused("its manifest cannot be read", error)))?;
    let format = manifest.snapshot.archive.format.clone().unwrap_or(ArchiveFormat::TarZst);
    let bytes = reader.entry(&format.file_name()).await?;
    if manifest.snapshot.archive.bytes != Some(bytes) {
        return Err(no_export("the archive in it is not as long as its manifest says"));
    }
    Ok((manifest, reader.archive(bytes)))
}

/// Error of a file that is no export.
fn no_export(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::invalid_input("file", "the file is no snapshot that sandboxer exported").because(why)
}

/// A sentence with a cause of its own.
fn caused(why: impl Into<String>, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(Code::InvalidInput, why).because(cause)
}

struct Reader {
    source: ByteStream,
    rest: Vec<u8>,
}

impl Reader {
    /// So many bytes.
    async fn exactly(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        while self.rest.len() < count {
            match self.source.next().await {
                Some(piece) => self.rest.extend_from_slice(&piece?),
                None => return Err(no_export("it ends too early")),
            }
        }
        let after = self.rest.split_off(count);
        Ok(std::mem::replace(&mut self.rest, after))
    }

    /// The header of an entry that must be a file of this name; its size.
    async fn entry(&mut self, name: &str) -> Result<u64, Error> {
        let block = self.exactly(BLOCK).await?;
        let header = Header::from_byte_slice(&block);
        let mut copy = header.clone();
        copy.set_cksum();
        let sound = header.cksum().is_ok() && header.cksum().ok() == copy.cksum().ok();
        if !sound
            || header.entry_type() != EntryType::Regular
            || header.path_bytes() != name.as_bytes()
        {
            return Err(no_export(format!("{name} is not where it should be")));
        }
        match header.entry_size() {
            Ok(size) if size > SIZE_LIMIT => Err(no_export(format!("{name} has {size} bytes"))),
            Ok(size) => Ok(size),
            Err(error) => Err(no_export(caused(format!("{name} has no size"), error))),
        }
    }

    /// The bytes of the archive; an error where there are fewer, or more than the end of a tar.
    fn archive(self, bytes: u64) -> ByteStream {
        let Self { source, rest } = self;
        let first = stream::once(async move { Ok(rest) });
        let padding = (bytes.next_multiple_of(BLOCK as u64) - bytes) as usize;
        let state = Some((first.chain(source).boxed(), bytes, padding + END_LIMIT));
        stream::try_unfold(state, |state| async move {
            let Some((mut source, mut left, mut end)) = state else { return Ok(None) };
            while let Some(piece) = source.next().await {
                let mut piece: Vec<u8> = piece?;
                let behind =
                    piece.split_off(piece.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                left -= piece.len() as u64;
                end = match end.checked_sub(behind.len()) {
                    Some(end) if behind.iter().all(|byte| *byte == 0) => end,
                    _ => return Err(no_export("something follows the archive")),
                };
                if !piece.is_empty() {
                    return Ok(Some((piece, Some((source, left, end)))));
                }
            }
            if left > 0 {
                return Err(no_export(format!("it ends {left} bytes too early"))
                    .detail("kind", "truncated"));
            }
            Ok::<_, Error>(None)
        })
        .boxed()
    }
}

/// Checks what a manifest from outside says, as far as it goes: it becomes paths and names on hosts.
pub(super) fn check(manifest: &ArchiveManifest) -> Result<(), Error> {
    let refuse = |what: &str| Err(no_export(what.to_owned()).detail("kind", "manifest"));
    let snapshot = &manifest.snapshot;
    let facts = &snapshot.archive;
    if manifest.schema != 1 {
        let message = format!(
            "the file is of the schema {}, which this version of sandboxer cannot read",
            manifest.schema
        );
        return Err(Error::new(Code::InvalidInput, message)
            .hint("use a newer sandboxer")
            .detail("field", "file"));
    }
    manifest_text(manifest).map_err(|error| no_export(error).detail("kind", "manifest"))?;
    if let Some(what) = odd_names(manifest) {
        return refuse(what);
    }
    let known = matches!(facts.format, Some(ArchiveFormat::TarZst | ArchiveFormat::TarGz));
    let hashed = facts.sha256.as_deref().is_some_and(|text| {
        text.len() == 64
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    let content = facts.content_bytes.filter(|content| (1..=SIZE_LIMIT).contains(content));
    let sized = content.is_some_and(|content| facts.volumes_bytes <= content)
        && facts.bytes.is_some_and(|bytes| bytes > 0);
    if !known || !hashed || !sized {
        return refuse("its manifest does not say what its archive is");
    }
    // Each entry takes a block.
    let most = content.unwrap_or_default() / BLOCK as u64;
    if facts.foreign_owners > most {
        return refuse("its manifest counts more entries than its archive has room for");
    }
    if snapshot.next_patch_sequence > MAX_SEQUENCE + 1 || snapshot.patch_level > MAX_SEQUENCE {
        return refuse("its manifest counts more patches than there can be");
    }
    if let Some(problem) = manifest.profile.validate().into_iter().next() {
        return Err(no_export(format!(
            "its profile is refused: {}: {}",
            problem.path, problem.message
        )));
    }
    if manifest.profile.hash() != snapshot.profile.hash
        || !manifest.profile.may_use(&snapshot.extension)
    {
        return refuse("its profile is not the one that its snapshot was made with");
    }
    Ok(())
}

/// Oddity of the ids and names in it.
fn odd_names(manifest: &ArchiveManifest) -> Option<&'static str> {
    let snapshot = &manifest.snapshot;
    let plain = |text: &str, most: usize| {
        let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        text.len() <= most
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(inside)
    };
    let host = |text: &str| {
        !text.is_empty() && text.len() <= 255 && !text.contains(|c: char| c.is_control())
    };
    let rules = [
        (SnapshotId::is_one(manifest.id.as_str()) && snapshot.id == manifest.id, "its id is none"),
        (
            plain(manifest.owner.as_str(), 64) && snapshot.owner == manifest.owner,
            "its owner is none",
        ),
        (SandboxId::parse(snapshot.sandbox_id.as_str()).is_ok(), "its sandbox has no id"),
        (snapshot.name.as_deref().is_none_or(|name| check_name(name).is_ok()), "its name is none"),
        (
            snapshot.sandbox_name.as_deref().is_none_or(|name| check_name(name).is_ok()),
            "its sandbox's name is none",
        ),
        (
            snapshot.parent_snapshot.as_ref().is_none_or(|id| SnapshotId::is_one(id.as_str())),
            "its parent has no id",
        ),
        (
            snapshot.labels.iter().all(|(key, value)| check_label(key, value).is_ok()),
            "one of its labels is none",
        ),
        (
            snapshot
                .extension_version
                .as_deref()
                .is_none_or(|text| semver::Version::parse(text).is_ok()),
            "its extension's version is none",
        ),
        (host(snapshot.host.as_str()), "its host has no name"),
        (
            snapshot.archive.captured_volumes.iter().all(|volume| plain(&volume.name, 255)),
            "one of its volumes has no name",
        ),
        (once_each(&snapshot.archive.captured_volumes), "one of its volumes is named twice"),
        (snapshot.inputs.keys().all(|key| plain(key, 63)), "one of its inputs has no name"),
        (
            snapshot.inputs.values().all(|value| value.len() <= MAX_INPUT_BYTES),
            "one of its inputs is too long",
        ),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
}

fn once_each(volumes: &[CapturedVolume]) -> bool {
    let names: BTreeSet<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    names.len() == volumes.len()
}

#[cfg(test)]
mod tests;
