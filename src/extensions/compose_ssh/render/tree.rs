//! The workspace as the renderer reads it.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use super::document::MAX_BYTES;

/// What stands at a path, the last component not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link and its text.
    Link(String),
    /// A socket, device, pipe, or a link whose text is not UTF-8.
    Other,
}

/// A read-only view of a workspace. Paths are relative to it, `/`-separated, without `.`, `..` and links before
/// the last component; the empty path is the workspace itself.
pub trait Tree {
    /// What stands at `path`.
    ///
    /// # Errors
    /// Whatever the file system says, except that nothing is there.
    fn entry(&self, path: &str) -> io::Result<Entry>;

    /// The content of the regular file at `path`; may stop 1 byte after the 1 MiB that the renderer accepts.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
}

/// A workspace in a local directory.
#[derive(Clone, Debug)]
pub struct LocalTree {
    root: PathBuf,
}

impl LocalTree {
    /// The tree under `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.join(".") } else { self.root.join(path) }
    }
}

impl Tree for LocalTree {
    fn entry(&self, path: &str) -> io::Result<Entry> {
        let full = self.at(path);
        let kind = match fs::symlink_metadata(&full) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Entry::Missing);
            }
            Err(error) => return Err(error),
        };
        if kind.is_symlink() {
            return Ok(fs::read_link(&full)?.to_str().map_or(Entry::Other, |text| Entry::Link(text.to_owned())));
        }
        Ok(if kind.is_dir() {
            Entry::Directory
        } else if kind.is_file() {
            Entry::File
        } else {
            Entry::Other
        })
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        fs::File::open(self.at(path))?.take(MAX_BYTES as u64 + 1).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// A workspace in memory, for tests.
#[cfg(test)]
#[derive(Default)]
pub(super) struct MemoryTree(std::collections::BTreeMap<String, (Entry, Vec<u8>)>);

#[cfg(test)]
impl MemoryTree {
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, content) in files {
            tree.put(path, Entry::File, content.as_bytes());
        }
        tree
    }

    pub(super) fn link(mut self, path: &str, to: &str) -> Self {
        self.put(path, Entry::Link(to.to_owned()), b"");
        self
    }

    pub(super) fn put(&mut self, path: &str, entry: Entry, content: &[u8]) {
        let mut above = super::paths::parent(path);
        while !above.is_empty() {
            self.0.insert(above.to_owned(), (Entry::Directory, Vec::new()));
            above = super::paths::parent(above);
        }
        self.0.insert(path.to_owned(), (entry, content.to_vec()));
    }
}

#[cfg(test)]
impl Tree for MemoryTree {
    fn entry(&self, path: &str) -> io::Result<Entry> {
        Ok(if path.is_empty() {
            Entry::Directory
        } else {
            self.0.get(path).map_or(Entry::Missing, |(entry, _)| entry.clone())
        })
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.get(path).map(|(_, content)| content.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
