//! Plan of a transfer: what of a local tree would go onto a host.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{BufWriter, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::domain::error::{Code, Error};
use crate::domain::text::clean_line;

/// The files, in any directory of the tree, that say with gitignore's syntax what stays here.
pub(crate) const IGNORE_FILE: &str = ".sandboxerignore";

/// Paths that an error names.
const NAMED: usize = 5;

/// Above what a tree is not sent unless the operator agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files and symlinks.
    pub files: u64,
    /// Bytes of content.
    pub bytes: u64,
    /// Whether the operator agreed to more.
    pub allow_large: bool,
}

impl Limits {
    /// Limits of the contract: 200,000 files, 2 GiB.
    pub fn contract() -> Self {
        Self { files: 200_000, bytes: 2 << 30, allow_large: false }
    }

    /// None: the operator agreed.
    pub(crate) fn none() -> Self {
        Self { allow_large: true, ..Self::contract() }
    }
}

/// Plan of a transfer. Holds the list in an unnamed temporary file.
#[derive(Debug)]
pub struct Plan {
    /// Files and symlinks.
    pub files: u64,
    pub directories: u64,
    /// Bytes of content; hard-linked content once.
    pub bytes: u64,
    /// Sockets, fifos, device nodes and mounted kernel file systems (`/proc`), which stay here.
    pub left_out: u64,
    /// About how long the tar stream is.
    pub(super) stream_bytes: u64,
    list: File,
}

impl Plan {
    /// Whether it may be sent.
    ///
    /// Errors: as [`plan`] for what is above the limits.
    pub fn check(&self, limits: &Limits) -> Result<(), Error> {
        let Self { files, bytes, .. } = *self;
        if limits.allow_large || (files <= limits.files && bytes <= limits.bytes) {
            return Ok(());
        }
        let message = if files > limits.files {
            format!("the repository has more than {} files", limits.files)
        } else {
            format!(
                "the repository has {bytes} bytes in {files} files, more than {} bytes",
                limits.bytes
            )
        };
        Err(Error::invalid_input("repo", message)
            .hint(format!(
                "--yes sends it all the same; sync.exclude or a {IGNORE_FILE} file leaves parts out"
            ))
            .detail("files", files)
            .detail("bytes", bytes)
            .detail("max_files", limits.files)
            .detail("max_bytes", limits.bytes))
    }

    /// The list from its beginning: each path relative to the source and behind `./`, each with a NUL behind it; files
    /// before the directories they are in. (An extracting busybox sets a directory's mode and time at once: whatever
    /// came after it could not be written into a read-only one, and would change its time.)
    ///
    /// Every call sets the same position back: one reader at a time.
    pub(super) fn list(&self) -> Result<File, Error> {
        let rewound = self.list.try_clone().and_then(|mut list| list.rewind().map(|()| list));
        rewound.map_err(|error| Error::internal("the list of files is gone").because(error))
    }
}

/// Walks a tree: hidden files too, no `.gitignore`, symlinks not followed, mount points entered except for the kernel's
/// own file systems. Excludes are gitignore patterns relative to the root, and win over a `IGNORE_FILE`.
///
/// Runs on a thread for blocking work, which stops soon after this future is dropped.
///
/// Errors: `invalid_input` with field `repo` when it is no directory, is above the limits (`details.files`,
/// `details.bytes`), has files that cannot be read (`details.paths`: the first five) or an ignore file that cannot be;
/// `invalid_profile` for a pattern that is none.
pub async fn plan(source: &Path, excludes: &[String], limits: Limits) -> Result<Plan, Error> {
    let cancelled = Cancelled(Arc::new(AtomicBool::new(false)));
    let walk = Walk::new(source, excludes, limits, Arc::clone(&cancelled.0))?;
    tokio::task::spawn_blocking(move || walk.run())
        .await
        .map_err(|error| Error::internal("the tree could not be walked").because(error))?
}

/// Set when the future that owns it is dropped.
struct Cancelled(Arc<AtomicBool>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Walk {
    root: PathBuf,
    excludes: Gitignore,
    limits: Limits,
    cancelled: Arc<AtomicBool>,
}

/// Count of the walk so far, with the list.
struct Tally {
    plan: Plan,
    directories: Vec<Vec<u8>>,
    linked: HashSet<(u64, u64)>,
    unreadable: Vec<PathBuf>,
    unreadable_count: u64,
}

impl Walk {
    fn new(
        source: &Path,
        excludes: &[String],
        limits: Limits,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let root = source.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
            Error::invalid_input(
                "repo",
                format!("{} is not a directory", clean_line(&source.to_string_lossy(), 200)),
            )
        })?;
        let mut builder = GitignoreBuilder::new(&root);
        for pattern in excludes {
            builder.add_line(None, pattern).map_err(|error| bad_pattern(pattern, error))?;
        }
        let excludes = builder.build().map_err(|error| bad_pattern("", error))?;
        Ok(Self { root, excludes, limits, cancelled })
    }

    fn run(self) -> Result<Plan, Error> {
        // The walker asks its filter about everything but the root.
        if let Some(path) = odd_ignore_file(&self.root) {
            return Err(not_regular(&path));
        }
        let list = tempfile::tempfile()
            .map_err(|error| Error::internal("no temporary file could be made").because(error))?;
        let mut writer = BufWriter::new(list.try_clone().map_err(unwritable)?);
        let mut tally = Tally {
            plan: Plan {
                files: 0,
                directories: 0,
                bytes: 0,
                left_out: 0,
                stream_bytes: 10240,
                list,
            },
            directories: Vec::new(),
            linked: HashSet::new(),
            unreadable: Vec::new(),
            unreadable_count: 0,
        };
        let (strange, refused) = mpsc::channel();
        for entry in self.walker(strange).build() {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(Error::new(Code::Cancelled, "the walk of the tree was cancelled"));
            }
            self.take(entry, &mut tally, &mut writer)?;
            if tally.plan.files > self.limits.files && !self.limits.allow_large {
                break;
            }
        }
        // The walker, and its sender with it, is gone: this ends.
        for refusal in refused.try_iter() {
            match refusal {
                Refusal::KernelFiles => tally.plan.left_out += 1,
                Refusal::IgnoreFile(path) => return Err(not_regular(&path)),
            }
        }
        tally.plan.check(&self.limits)?;
        tally.check_unreadable()?;
        // Deepest first: the walk told parents before their children.
        for directory in tally.directories.iter().rev() {
            write_path(&mut writer, directory).map_err(unwritable)?;
        }
        writer.flush().map_err(unwritable)?;
        Ok(tally.plan)
    }

    fn walker(&self, refused: mpsc::Sender<Refusal>) -> WalkBuilder {
        let mut walker = WalkBuilder::new(&self.root);
        walker.standard_filters(false).follow_links(false).add_custom_ignore_filename(IGNORE_FILE);
        walker.sort_by_file_name(OsStr::cmp);
        let (excludes, device) = (self.excludes.clone(), device(&self.root));
        walker.filter_entry(move |entry| keep(entry, &excludes, device, &refused));
        walker
    }

    /// Counts one entry and writes it into the list.
    fn take(
        &self,
        entry: Result<DirEntry, ignore::Error>,
        tally: &mut Tally,
        writer: &mut impl Write,
    ) -> Result<(), Error> {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                tally.unreadable(path_of(&error).unwrap_or_else(|| self.root.clone()), &error);
                return Ok(());
            }
        };
        if let Some(error) = entry.error() {
            return Err(ignore_file(&entry.path().join(IGNORE_FILE), error.to_string()));
        }
        let Some(relative) =
            entry.path().strip_prefix(&self.root).ok().filter(|path| !path.as_os_str().is_empty())
        else {
            return Ok(());
        };
        // Gone since it was listed: as if it had never been there.
        let Ok(metadata) = entry.path().symlink_metadata() else { return Ok(()) };
        tally.count(&metadata, entry.path(), relative, writer).map_err(unwritable)
    }
}

enum Refusal {
    /// A mounted /proc or the like.
    KernelFiles,
    /// An ignore file that opening or reading might hang on.
    IgnoreFile(PathBuf),
}

/// Whether an entry is sent and, for a directory, entered.
fn keep(
    entry: &DirEntry,
    excludes: &Gitignore,
    device: Option<u64>,
    refused: &mpsc::Sender<Refusal>,
) -> bool {
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    if entry.depth() > 0 && excludes.matched(entry.path(), is_directory).is_ignore() {
        return false;
    }
    if !is_directory {
        return true;
    }
    if entry.depth() > 0
        && self::device(entry.path()) != device
        && is_kernel_file_system(entry.path())
    {
        let _ = refused.send(Refusal::KernelFiles);
        return false;
    }
    if let Some(path) = odd_ignore_file(entry.path()) {
        let _ = refused.send(Refusal::IgnoreFile(path));
        return false;
    }
    true
}

/// A directory's ignore file if it is no regular file. The walker opens it: a fifo would hang it for ever, /dev/zero
/// would fill the memory.
fn odd_ignore_file(directory: &Path) -> Option<PathBuf> {
    let path = directory.join(IGNORE_FILE);
    path.metadata().is_ok_and(|metadata| !metadata.is_file()).then_some(path)
}

fn device(path: &Path) -> Option<u64> {
    path.symlink_metadata().ok().map(|metadata| metadata.dev())
}

/// Files there have no size, and reading one may wait for ever. Anything else that is mounted in a tree (a volume, a
/// btrfs subvolume) is part of what its owner sees.
#[cfg(target_os = "linux")]
fn is_kernel_file_system(path: &Path) -> bool {
    // proc, sysfs, cgroup, cgroup2, devpts, debugfs, tracefs, securityfs, bpf, mqueue, selinuxfs, configfs.
    const MAGICS: [u32; 12] = [
        0x9fa0,
        0x6265_6572,
        0x27_e0eb,
        0x6367_7270,
        0x1cd1,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0xcafe_4a11,
        0x1980_0202,
        0xf97c_ff8c,
        0x6265_6570,
    ];
    rustix::fs::statfs(path).is_ok_and(|statfs| MAGICS.contains(&(statfs.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_kernel_file_system(_path: &Path) -> bool {
    false
}

impl Tally {
    fn count(
        &mut self,
        metadata: &Metadata,
        path: &Path,
        relative: &Path,
        writer: &mut impl Write,
    ) -> std::io::Result<()> {
        let kind = metadata.file_type();
        let name = relative.as_os_str().as_bytes();
        self.plan.stream_bytes += if name.len() > 97 { 512 + 1024 } else { 512 };
        if kind.is_dir() {
            self.plan.directories += 1;
            self.directories.push(name.to_vec());
            return Ok(());
        }
        if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
            self.plan.left_out += 1;
            return Ok(());
        }
        self.plan.files += 1;
        if kind.is_file() {
            if rustix::fs::access(path, rustix::fs::Access::READ_OK).is_err() {
                self.unreadable_count += 1;
                if self.unreadable.len() < NAMED {
                    self.unreadable.push(relative.to_owned());
                }
            }
            if metadata.nlink() < 2 || self.linked.insert((metadata.dev(), metadata.ino())) {
                self.plan.bytes += metadata.len();
                self.plan.stream_bytes += metadata.len().next_multiple_of(512);
            }
        }
        write_path(writer, name)
    }

    fn unreadable(&mut self, path: PathBuf, error: &ignore::Error) {
        // A file that vanished while the tree was walked is not there; everything else is an obstacle.
        if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return;
        }
        self.unreadable_count += 1;
        if self.unreadable.len() < NAMED {
            self.unreadable.push(path);
        }
    }

    fn check_unreadable(&self) -> Result<(), Error> {
        if self.unreadable_count == 0 {
            return Ok(());
        }
        let paths: Vec<String> =
            self.unreadable.iter().map(|path| clean_line(&path.to_string_lossy(), 200)).collect();
        Err(Error::invalid_input(
            "repo",
            format!(
                "{} of the repository's files cannot be read: {}",
                self.unreadable_count,
                paths.join(", ")
            ),
        )
        .hint(format!("sync.exclude or a {IGNORE_FILE} file leaves them out"))
        .detail("paths", paths)
        .detail("count", self.unreadable_count))
    }
}

/// `./` in front keeps a name that begins with `-` or `#` from being an option or, to rsync, a comment.
fn write_path(writer: &mut impl Write, relative: &[u8]) -> std::io::Result<()> {
    writer.write_all(b"./")?;
    writer.write_all(relative)?;
    writer.write_all(&[0])
}

fn path_of(error: &ignore::Error) -> Option<PathBuf> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path.clone()),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

fn bad_pattern(pattern: &str, error: ignore::Error) -> Error {
    Error::new(
        Code::InvalidProfile,
        format!("sync.exclude has a pattern that is none: {}", clean_line(pattern, 200)),
    )
    .detail("field", "sync.exclude")
    .because(error)
}

fn ignore_file(path: &Path, reason: String) -> Error {
    Error::invalid_input(
        "repo",
        format!("{} cannot be used", clean_line(&path.to_string_lossy(), 300)),
    )
    .because(reason)
}

fn not_regular(path: &Path) -> Error {
    ignore_file(path, "it is not a regular file".to_owned())
}

fn unwritable(error: std::io::Error) -> Error {
    Error::internal("the list of files could not be written").because(error)
}
