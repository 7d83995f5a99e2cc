//! Judge of an archive from outside: what its entries may be called, what each may be, and that none reaches out of its tree
//! or is written through a link. Kept of them are their places alone.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use tar::EntryType;

use crate::domain::text::clean_line;

/// How long a part of a path may be; bytes. No file system of a host has longer ones.
const PART_LIMIT: usize = 255;
/// How long a path, or what a link says, may be; bytes. The kernel takes no longer one.
const PATH_LIMIT: usize = 4095;
/// How many places are kept; each takes some 30 bytes.
const PLACES_LIMIT: usize = 10_000_000;

/// Refuses, in a sentence.
pub(super) fn no<T>(why: impl Into<String>) -> io::Result<T> {
    Err(io::Error::other(why.into()))
}

/// A name for a sentence.
pub(super) fn shown(name: &[u8]) -> String {
    clean_line(&String::from_utf8_lossy(name), 120)
}

/// Occupant of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Folder,
    Link,
    Other,
}

/// Half of an archive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Volumes,
    Workspace,
}

/// An entry that is let in, as it is to be written.
pub(super) struct Admitted {
    pub(super) path: Vec<u8>,
    /// Empty for what is no link.
    pub(super) target: Vec<u8>,
    pub(super) half: Half,
}

/// Judge of what comes, by what came so far.
pub(super) struct Judge<'a> {
    promised: &'a [String],
    volumes: BTreeSet<&'a str>,
    in_workspace: bool,
    places: HashMap<u64, Place>,
    hasher: RandomState,
}

impl<'a> Judge<'a> {
    /// Of an archive that is to have these volumes.
    pub(super) fn new(promised: &'a [String]) -> Self {
        let (volumes, places) = (BTreeSet::new(), HashMap::new());
        Self { promised, volumes, in_workspace: false, places, hasher: RandomState::new() }
    }

    /// Lets an entry in.
    pub(super) fn admit(
        &mut self,
        name: &[u8],
        kind: EntryType,
        target: &[u8],
    ) -> io::Result<Admitted> {
        let folder = kind == EntryType::Directory;
        let own = parts(name)?;
        let keys = self.keys(&own);
        for key in &keys[..own.len() - 1] {
            match self.places.entry(*key).or_insert(Place::Folder) {
                Place::Folder => {}
                Place::Link => return no(format!("{} leads through a link", shown(name))),
                Place::Other => {
                    return no(format!("{} is in what is no folder there", shown(name)));
                }
            }
        }
        let half = self.half(&own, folder, name)?;
        let mut said = Vec::new();
        let place = match kind {
            EntryType::Directory => Place::Folder,
            EntryType::Symlink | EntryType::Link if target.is_empty() => {
                return no(format!("{} links to nothing", shown(name)));
            }
            EntryType::Symlink if target.len() > PATH_LIMIT || target.contains(&0) => {
                return no(format!("the link {} says more than a host can keep", shown(name)));
            }
            EntryType::Symlink => {
                said = target.to_vec();
                Place::Link
            }
            EntryType::Link => {
                let (there, place) = self.hard_link(name, &own, target)?;
                said = there.join(&b'/');
                place
            }
            _ => Place::Other,
        };
        let before = self.places.insert(keys[own.len() - 1], place);
        if let Some(before) = before.filter(|before| !(folder && *before == Place::Folder)) {
            let why = match before {
                Place::Link => "comes again after it was a link",
                Place::Other if !folder => "is in it twice",
                Place::Folder | Place::Other => "is a folder and a file",
            };
            return no(format!("{} {why}", shown(name)));
        }
        if self.places.len() > PLACES_LIMIT {
            return no(format!("there are more than {PLACES_LIMIT} entries in it"));
        }
        let mut path = own.join(&b'/');
        if folder {
            path.push(b'/');
        }
        Ok(Admitted { path, target: said, half })
    }

    /// A key for each beginning of a path, all of them in one pass.
    fn keys(&self, parts: &[&[u8]]) -> Vec<u64> {
        let mut hasher = self.hasher.build_hasher();
        let key = |part: &&[u8]| {
            hasher.write(part);
            // In no part.
            hasher.write_u8(b'/');
            hasher.clone().finish()
        };
        parts.iter().map(key).collect()
    }

    /// Where an entry is: in the workspace, or before it in a volume that is promised.
    fn half(&mut self, own: &[&[u8]], folder: bool, name: &[u8]) -> io::Result<Half> {
        match own {
            [b"workspace"] if !folder => no("its workspace is no folder"),
            [b"workspace", ..] => {
                self.in_workspace = true;
                Ok(Half::Workspace)
            }
            [b"volumes", ..] if self.in_workspace => {
                no(format!("{} comes after the workspace", shown(name)))
            }
            [b"volumes"] if folder && !self.promised.is_empty() => Ok(Half::Volumes),
            [b"volumes", volume, rest @ ..] => {
                let known = self.promised.iter().find(|one| one.as_bytes() == *volume);
                match known.filter(|_| folder || !rest.is_empty()) {
                    Some(known) => {
                        self.volumes.insert(known);
                        Ok(Half::Volumes)
                    }
                    None => no(format!("{} is in no volume that its manifest names", shown(name))),
                }
            }
            [b"volumes"] => no(format!("{} is in no volume that its manifest names", shown(name))),
            _ => no(format!("{} is neither in workspace/ nor in volumes/", shown(name))),
        }
    }

    /// A further name of a file that came before it, in the same tree: each tree is unpacked by itself. What it is a name of may
    /// be a link itself.
    fn hard_link<'t>(
        &self,
        name: &[u8],
        own: &[&[u8]],
        target: &'t [u8],
    ) -> io::Result<(Vec<&'t [u8]>, Place)> {
        let says = |why: &str| no(format!("{} links to {}, {why}", shown(name), shown(target)));
        let Some(there) =
            parts(target).ok().filter(|there| there.len() > 1 && tree_of(there) == tree_of(own))
        else {
            return says("which is outside");
        };
        let keys = self.keys(&there);
        let at = |key: &u64| self.places.get(key).copied();
        let (last, before) = keys.split_last().unzip();
        if before.into_iter().flatten().any(|key| at(key) == Some(Place::Link)) {
            return no(format!("{} leads through a link", shown(target)));
        }
        match last.and_then(at) {
            Some(place @ (Place::Link | Place::Other)) => Ok((there, place)),
            Some(Place::Folder) | None => says("which does not come before it"),
        }
    }

    /// After the last entry.
    pub(super) fn finish(&self) -> io::Result<()> {
        if !self.in_workspace {
            return no("there is no workspace in it");
        }
        match self.promised.iter().find(|volume| !self.volumes.contains(volume.as_str())) {
            Some(volume) => {
                no(format!("the volume {volume} is not in it, and its manifest says so"))
            }
            None => Ok(()),
        }
    }
}

/// A path's parts, without those that say nothing.
fn parts(name: &[u8]) -> io::Result<Vec<&[u8]>> {
    if name.first() == Some(&b'/') {
        return no(format!("{} is absolute", shown(name)));
    }
    if name.contains(&0) {
        return no(format!("{} has a zero byte in it", shown(name)));
    }
    let parts: Vec<&[u8]> =
        name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&b"..".as_slice()) {
        return no(format!("{} leads upwards", shown(name)));
    }
    if parts.is_empty() {
        return no("an entry has no name");
    }
    let length = parts.iter().map(|part| part.len() + 1).sum::<usize>() - 1;
    if length > PATH_LIMIT || parts.iter().any(|part| part.len() > PART_LIMIT) {
        return no(format!("{} is longer than a name on a host can be", shown(name)));
    }
    Ok(parts)
}

/// Tree that a hard link must not leave: the workspace, or its volume.
fn tree_of<'p, 'a>(parts: &'p [&'a [u8]]) -> &'p [&'a [u8]] {
    let depth = if parts[0] == b"volumes" { 2 } else { 1 };
    &parts[..parts.len().min(depth)]
}
