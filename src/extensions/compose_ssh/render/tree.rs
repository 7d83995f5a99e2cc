//! The workspace as the renderer reads it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use super::document::MAX_BYTES;
use super::lexical::{normalize, parent};

/// Thing at a path, the last component not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    Directory,
    /// A symbolic link and its text.
    Link(String),
    /// A symbolic link whose text is not UTF-8: nobody here can tell where it leads.
    OddLink,
    /// A socket, device or pipe.
    Other,
}

/// A read-only view of a workspace. Paths are relative to it, `/`-separated, without `.`, `..` and links before
/// the last component; the empty path is the workspace itself.
pub trait Tree {
    /// Thing at `path`.
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
pub(crate) struct LocalTree {
    root: PathBuf,
}

impl LocalTree {
    /// The tree under `root`.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
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
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Entry::Missing);
            }
            Err(error) => return Err(error),
        };
        if kind.is_symlink() {
            return Ok(fs::read_link(&full)?
                .to_str()
                .map_or(Entry::OddLink, |text| Entry::Link(text.to_owned())));
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

/// A workspace that was listed elsewhere, such as one that lies on a host: restoring renders from what was fetched.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree(BTreeMap<String, (Entry, Vec<u8>)>);

impl MemoryTree {
    /// Puts an entry at `path`, and folders above it. Only regular files have content.
    pub fn insert(&mut self, path: &str, entry: Entry, content: impl Into<Vec<u8>>) {
        let path = normalize(path);
        let mut above = parent(&path);
        while !above.is_empty() {
            self.0.entry(above.to_owned()).or_insert((Entry::Directory, Vec::new()));
            above = parent(above);
        }
        self.0.insert(path, (entry, content.into()));
    }
}

impl Tree for MemoryTree {
    fn entry(&self, path: &str) -> io::Result<Entry> {
        if path.is_empty() {
            return Ok(Entry::Directory);
        }
        Ok(self.0.get(path).map_or(Entry::Missing, |(entry, _)| entry.clone()))
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0
            .get(path)
            .map(|(_, content)| content.clone())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
