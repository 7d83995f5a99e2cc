//! An archive from outside, judged while it passes by. Nothing is written and nothing kept but counts, a hash and the
//! places of links.
//!
//! Hosts unpack with their own tar, GNU's or busybox's, and what the two make of one archive differs: busybox passes over
//! the headers that say more than the first 512 bytes can. So what a header and its extensions say of one entry must both
//! be harmless, sizes must agree, and what is not known here is refused. So is what unpacking would pass over or stop at: a
//! name that is written another way than `workspace/…`, a file where a folder is, a hard link to what does not come before it.

mod paths;
mod said;

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};

use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use crate::domain::text::hex;
use crate::domain::text::plural;
use crate::extensions::archives::scan::paths::{
    PATH_LIMIT, as_tar_writes_it, parts, shown, tree_of,
};
use crate::extensions::archives::scan::said::{Readings, Said, agreed};

/// Bytes of a block.
const BLOCK: usize = 512;
/// How long an extension of a header may be; bytes.
const EXTENSION_LIMIT: u64 = 1024 * 1024;
/// How many places of links are kept.
const LINKS_LIMIT: usize = 500_000;
/// How many places are kept; each takes some 20 bytes.
const PLACES_LIMIT: usize = 10_000_000;

/// The largest number of an owner; the one above it means none.
const OWNER_LIMIT: u64 = u32::MAX as u64 - 1;

/// What may come.
#[derive(Debug, Clone, Default)]
pub(super) struct Promise {
    /// The size of the tar; bytes.
    pub(super) content_bytes: u64,
    /// How many entries, where that is known: all, or those of the workspace.
    pub(super) files: Option<u64>,
    /// SHA-256 (hex) of the tar.
    pub(super) sha256: String,
    /// Names of the volumes.
    pub(super) volumes: Vec<String>,
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Entries, as they were promised; all where nothing was.
    pub(super) files: u64,
    /// Where `workspace/` begins; bytes.
    pub(super) volumes_bytes: u64,
    /// Whether it takes GNU tar to read it.
    pub(super) needs_gnu_tar: bool,
}

/// Why an archive is not taken: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(String);

/// Refuses.
fn no<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal(why.into()))
}

/// What the bytes that come next are.
enum Next {
    /// A header, of which so much is there.
    Header,
    /// An extension: which, how much of it is to come, and the padding behind it.
    Extension { kind: u8, left: u64, padding: u64, data: Vec<u8> },
    /// Further blocks of an old GNU sparse map; then so much data.
    SparseMap { data: u64 },
    /// Data and padding, which are passed over.
    Data { left: u64 },
    /// Zeros, after the first block of them.
    End,
}

/// An archive that is being judged.
pub(super) struct Scan {
    promise: Promise,
    hash: Sha256,
    seen: u64,
    next: Next,
    block: Vec<u8>,
    said: Said,
    files: u64,
    in_workspace: u64,
    workspace_at: Option<u64>,
    needs_gnu_tar: bool,
    links: HashSet<u64>,
    /// Places of folders, said or not, and of everything else.
    folders: HashSet<u64>,
    others: HashSet<u64>,
    /// The promised volumes that are in it.
    volumes: BTreeSet<String>,
    hasher: RandomState,
}

impl Scan {
    /// Of one that is to keep this promise.
    pub(super) fn new(promise: Promise) -> Self {
        Self {
            promise,
            hash: Sha256::new(),
            seen: 0,
            next: Next::Header,
            block: Vec::with_capacity(BLOCK),
            said: Said::default(),
            files: 0,
            in_workspace: 0,
            workspace_at: None,
            needs_gnu_tar: false,
            links: HashSet::new(),
            folders: HashSet::new(),
            others: HashSet::new(),
            volumes: BTreeSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Takes what comes next of the tar.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        let promised = self.promise.content_bytes;
        if self.seen + bytes.len() as u64 > promised {
            return no(format!(
                "there is more in it than the {promised} bytes that its manifest says"
            ));
        }
        self.hash.update(bytes);
        while !bytes.is_empty() {
            let taken = self.step(bytes)?;
            self.seen += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// After the last byte.
    pub(super) fn finish(self) -> Result<Scanned, Refusal> {
        let Promise { content_bytes, files, sha256, .. } = &self.promise;
        let ended = match self.next {
            Next::End => true,
            Next::Header => self.block.is_empty() && self.said.begun_at.is_none(),
            _ => false,
        };
        if !ended || self.seen < *content_bytes {
            return no(format!("it ends after {} of {content_bytes} bytes", self.seen));
        }
        let Some(volumes_bytes) = self.workspace_at else {
            return no("there is no workspace in it");
        };
        if let Some(volume) =
            self.promise.volumes.iter().find(|volume| !self.volumes.contains(*volume))
        {
            return no(format!("the volume {volume} is not in it, and its manifest says so"));
        }
        // A capture counts what tar lists of the workspace.
        if let Some(promised) =
            files.filter(|promised| ![self.files, self.in_workspace].contains(promised))
        {
            return no(format!(
                "it has {}, and its manifest says {promised}",
                plural(self.files, "entry", "entries")
            ));
        }
        let hash = hex(&self.hash.finalize());
        if hash != *sha256 {
            return no(format!("its SHA-256 is {hash}, and its manifest says {sha256}"));
        }
        Ok(Scanned {
            files: files.unwrap_or(self.files),
            volumes_bytes,
            needs_gnu_tar: self.needs_gnu_tar,
        })
    }

    /// Takes some bytes, at least one; how many.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        match &mut self.next {
            Next::Header | Next::SparseMap { .. } => {
                let taken = bytes.len().min(BLOCK - self.block.len());
                self.block.extend_from_slice(&bytes[..taken]);
                if self.block.len() == BLOCK {
                    let at = self.seen + taken as u64 - BLOCK as u64;
                    let block = std::mem::take(&mut self.block);
                    self.block_is_there(&block, at)?;
                    self.block = block;
                    self.block.clear();
                }
                Ok(taken)
            }
            Next::Extension { left, padding, data, kind } => {
                let taken = shorter(bytes, *left + *padding);
                let wanted = shorter(&bytes[..taken], *left);
                data.extend_from_slice(&bytes[..wanted]);
                *left -= wanted as u64;
                *padding -= (taken - wanted) as u64;
                if *left + *padding == 0 {
                    let (kind, data) = (*kind, std::mem::take(data));
                    self.next = Next::Header;
                    self.said.take_in(kind, &data)?;
                }
                Ok(taken)
            }
            Next::Data { left } => {
                let taken = shorter(bytes, *left);
                *left -= taken as u64;
                if *left == 0 {
                    self.next = Next::Header;
                }
                Ok(taken)
            }
            Next::End => {
                if bytes.iter().any(|byte| *byte != 0) {
                    return no("something follows its end");
                }
                Ok(bytes.len())
            }
        }
    }

    fn block_is_there(&mut self, block: &[u8], at: u64) -> Result<(), Refusal> {
        if let Next::SparseMap { data } = self.next {
            // Its last word but seven bytes says whether another one follows.
            if block[504] == 0 {
                self.data(data);
            }
            return Ok(());
        }
        if block.iter().all(|byte| *byte == 0) {
            if self.said.begun_at.is_some() {
                return no("it ends between the two parts of a header");
            }
            self.next = Next::End;
            return Ok(());
        }
        let header = Header::from_byte_slice(block);
        let sum = block.iter().enumerate().map(|(at, byte)| match at {
            148..156 => u32::from(b' '),
            _ => u32::from(*byte),
        });
        let sum: u32 = sum.sum();
        if header.cksum().ok() != Some(sum) {
            return no(format!("the header at byte {at} is damaged"));
        }
        let Ok(size) = header.entry_size() else {
            return no(format!("the header at byte {at} has no size"));
        };
        match header.entry_type() {
            kind @ (EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink) => {
                if size > EXTENSION_LIMIT {
                    return no(format!("the header at byte {at} has an extension of {size} bytes"));
                }
                self.said.begun_at.get_or_insert(at);
                let padding = size.next_multiple_of(BLOCK as u64) - size;
                self.next =
                    Next::Extension { kind: kind.as_byte(), left: size, padding, data: Vec::new() };
                if size == 0 {
                    self.next = Next::Header;
                }
                Ok(())
            }
            kind => self.entry(header, kind, size, at),
        }
    }

    /// One entry, with what was said of it before.
    fn entry(
        &mut self,
        header: &Header,
        kind: EntryType,
        size: u64,
        at: u64,
    ) -> Result<(), Refusal> {
        let said = std::mem::take(&mut self.said);
        let begun_at = said.begun_at.unwrap_or(at);
        let own = Some(header.path_bytes().into_owned());
        let Some(name) = Readings::of([said.sparse_name, said.pax.name, said.long.name, own])
        else {
            return no("an entry has no name");
        };
        if [header.uid(), header.gid()].into_iter().flatten().any(|owner| owner > OWNER_LIMIT) {
            return no(format!("{} belongs to nobody that a host can have", shown(&name.meant)));
        }
        let (size, larger) = agreed(&name, said.size, size)?;
        if size > self.promise.content_bytes {
            return no(format!("{} is larger than the archive", shown(&name.meant)));
        }
        let mut is_link = kind == EntryType::Symlink;
        match kind {
            EntryType::Regular if name.meant.ends_with(b"/") => {
                return no(format!("{} is a file and named as a folder", shown(&name.meant)));
            }
            EntryType::Regular | EntryType::GNUSparse => {}
            _ if size > 0 => {
                return no(format!("{} has content and is no file", shown(&name.meant)));
            }
            EntryType::Directory | EntryType::Fifo => {}
            EntryType::Symlink | EntryType::Link => {
                let own = header.link_name_bytes().map(std::borrow::Cow::into_owned);
                let target = Readings::of([said.pax.target, said.long.target, own]);
                let Some(target) = target.filter(|target| !target.meant.is_empty()) else {
                    return no(format!("{} links to nothing", shown(&name.meant)));
                };
                if kind == EntryType::Link {
                    is_link = self.hard_link(&name.meant, &target)?;
                } else if target.meant.len() > PATH_LIMIT {
                    return no(format!(
                        "the link {} says more than a host can keep",
                        shown(&name.meant)
                    ));
                }
            }
            EntryType::Char | EntryType::Block => {
                return no(format!("{} is a device", shown(&name.meant)));
            }
            other => {
                let letter = char::from(other.as_byte()).escape_default();
                return no(format!(
                    "{} is of a kind that no snapshot has ('{letter}')",
                    shown(&name.meant)
                ));
            }
        }
        let parts = self.place(&name, kind, begun_at)?;
        self.files += 1;
        self.in_workspace += u64::from(parts[0] == b"workspace");
        // Volumes are unpacked by the engine.
        self.needs_gnu_tar |=
            (said.gnu || larger || kind == EntryType::GNUSparse) && parts[0] == b"workspace";
        if is_link {
            self.remember(&parts)?;
        }
        if kind == EntryType::GNUSparse && header.as_gnu().is_some_and(tar::GnuHeader::is_extended)
        {
            self.next = Next::SparseMap { data: size };
        } else {
            self.data(size);
        }
        Ok(())
    }

    fn data(&mut self, size: u64) {
        let left = size.next_multiple_of(BLOCK as u64);
        self.next = if left == 0 { Next::Header } else { Next::Data { left } };
    }

    /// Whether a name is one that an entry may have here, however it is read; its parts.
    fn place<'n>(
        &mut self,
        name: &'n Readings,
        kind: EntryType,
        begun_at: u64,
    ) -> Result<Vec<&'n [u8]>, Refusal> {
        let meant = parts(&name.meant)?;
        self.through_no_link(&meant, &name.meant)?;
        if self.links.contains(&self.mark(&meant)) {
            return no(format!("{} comes again after it was a link", shown(&name.meant)));
        }
        self.in_its_tree(&meant, kind, begun_at, &name.meant)?;
        for other in &name.others {
            let parts = parts(other)?;
            // It may be cut off, and then be the beginning of several names: only where it leads counts.
            self.through_no_link(&parts, other)?;
            self.in_its_tree(&parts, kind, begun_at, other)?;
        }
        as_tar_writes_it(&name.meant)?;
        self.once(&meant, kind, &name.meant)?;
        Ok(meant)
    }

    /// Takes a place, which nothing of another kind may have.
    fn once(&mut self, parts: &[&[u8]], kind: EntryType, name: &[u8]) -> Result<(), Refusal> {
        for end in 1..parts.len() {
            let above = self.mark(&parts[..end]);
            if self.others.contains(&above) {
                return no(format!("{} is in what is no folder there", shown(name)));
            }
            self.folders.insert(above);
        }
        let mark = self.mark(parts);
        match (
            kind == EntryType::Directory,
            self.folders.contains(&mark),
            self.others.contains(&mark),
        ) {
            (true, _, true) | (false, true, _) => {
                return no(format!("{} is a folder and a file", shown(name)));
            }
            (false, _, true) => return no(format!("{} is in it twice", shown(name))),
            (true, ..) => self.folders.insert(mark),
            (false, ..) => self.others.insert(mark),
        };
        if self.folders.len() + self.others.len() > PLACES_LIMIT {
            return no(format!("there are more than {PLACES_LIMIT} entries in it"));
        }
        Ok(())
    }

    fn in_its_tree(
        &mut self,
        parts: &[&[u8]],
        kind: EntryType,
        begun_at: u64,
        name: &[u8],
    ) -> Result<(), Refusal> {
        let folder = kind == EntryType::Directory;
        match parts {
            [b"workspace"] if !folder => no("its workspace is no folder"),
            [b"workspace", ..] => {
                self.workspace_at.get_or_insert(begun_at);
                Ok(())
            }
            [b"volumes", ..] if self.workspace_at.is_some() => {
                no(format!("{} comes after the workspace", shown(name)))
            }
            [b"volumes"] if folder => Ok(()),
            [b"volumes", volume, rest @ ..] if folder || !rest.is_empty() => {
                let Some(promised) =
                    self.promise.volumes.iter().find(|one| one.as_bytes() == *volume)
                else {
                    return no(format!("{} is in no volume that its manifest names", shown(name)));
                };
                if !self.volumes.contains(promised) {
                    self.volumes.insert(promised.clone());
                }
                Ok(())
            }
            [b"volumes", ..] => {
                no(format!("{} is in no volume that its manifest names", shown(name)))
            }
            _ => no(format!("{} is neither in workspace/ nor in volumes/", shown(name))),
        }
    }

    /// A further name of a file: of one that is in the same tree. What it is a name of may be a link itself: whether it is.
    fn hard_link(&self, name: &[u8], target: &Readings) -> Result<bool, Refusal> {
        let own = parts(name)?;
        for reading in std::iter::once(&target.meant).chain(&target.others) {
            let there = parts(reading)
                .ok()
                .filter(|there| there.len() > 1 && tree_of(there) == tree_of(&own));
            let Some(there) = there else {
                return no(format!(
                    "{} links to {}, which is outside",
                    shown(name),
                    shown(reading)
                ));
            };
            self.through_no_link(&there, reading)?;
        }
        as_tar_writes_it(&target.meant)?;
        let mark = self.mark(&parts(&target.meant)?);
        if !self.others.contains(&mark) {
            return no(format!(
                "{} links to {}, which does not come before it",
                shown(name),
                shown(&target.meant)
            ));
        }
        Ok(self.links.contains(&mark))
    }

    /// Whether a path leads through a link that came before.
    fn through_no_link(&self, parts: &[&[u8]], name: &[u8]) -> Result<(), Refusal> {
        if !self.links.is_empty()
            && (1..parts.len()).any(|end| self.links.contains(&self.mark(&parts[..end])))
        {
            return no(format!("{} leads through a link", shown(name)));
        }
        Ok(())
    }

    fn remember(&mut self, parts: &[&[u8]]) -> Result<(), Refusal> {
        if self.links.len() >= LINKS_LIMIT {
            return no(format!("there are more than {LINKS_LIMIT} links in it"));
        }
        let mark = self.mark(parts);
        self.links.insert(mark);
        Ok(())
    }

    /// A path in 8 bytes. Two paths with one mark, which is one chance in 10^13 for each, would be a refusal too many.
    fn mark(&self, parts: &[&[u8]]) -> u64 {
        self.hasher.hash_one(parts)
    }
}

/// How much of `bytes` is within `limit`.
fn shorter(bytes: &[u8], limit: u64) -> usize {
    bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
