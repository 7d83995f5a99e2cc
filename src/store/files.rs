//! The data directory and its files: made private, replaced whole, with errors that say what to do.
//!
//! Nothing is made before the first write, so that looking works on a directory that is absent or read-only.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::domain::error::{Code, Error};
use crate::store::reserve::{carried, or_from_reserve};

#[derive(Debug, Clone)]
pub(super) struct DataDir(PathBuf);

impl DataDir {
    /// Looks at the directory without making it.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        // Absolute: a later change of the working directory must not move the data.
        let path = std::path::absolute(path)
            .map_err(|error| io_error("use the data directory", path, error))?;
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Self(path)),
            Ok(_) => Err(unusable(format!("the data directory {} is a file", path.display()))
                .hint("move the file away, or choose a directory with --data-dir")
                .detail("path", path.display().to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(unusable(format!(
                        "the data directory {} is a link to nothing",
                        path.display()
                    ))
                    .hint("make the directory it points to, or choose another with --data-dir")
                    .detail("path", path.display().to_string())
                    .because(error));
                }
                Ok(Self(path))
            }
            Err(error) => Err(io_error("look at the data directory", &path, error)),
        }
    }

    pub(super) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Makes it (and the folder in it) if it is absent; refuses to write into another user's.
    pub(super) fn prepare(&self, folder: Option<&str>) -> Result<(), Error> {
        make_private(&self.0)?;
        let found = fs::metadata(&self.0)
            .map_err(|error| io_error("look at the data directory", &self.0, error))?;
        let me = rustix::process::geteuid().as_raw();
        if found.uid() != me {
            // Also for root: files of root in a user's directory would lock that user out of their own records.
            return Err(unusable(format!(
                "the data directory {} belongs to user {}, and you are user {me}",
                self.0.display(),
                found.uid()
            ))
            .hint("run as its owner, or choose another directory with --data-dir")
            .detail("path", self.0.display().to_string()));
        }
        if found.mode() & OTHERS != 0 {
            self.tighten(found.mode());
        }
        folder.map_or(Ok(()), |folder| make_private(&self.0.join(folder)))
    }

    /// Closes a directory to others that was there before us, and what is ours in it. One that has anything else is somebody's
    /// for more than this, and keeps its mode.
    fn tighten(&self, mode: u32) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        let (ours, others): (Vec<_>, Vec<_>) =
            entries.flatten().partition(|entry| is_ours(&entry.file_name()));
        for entry in ours {
            // Not through links: what they lead to is elsewhere.
            let Ok(found) = entry.metadata() else { continue };
            if !found.is_symlink() && found.mode() & OTHERS != 0 {
                close_to_others(&entry.path(), found.mode());
            }
        }
        if others.is_empty() {
            close_to_others(&self.0, mode);
        } else {
            let path = self.0.display();
            tracing::warn!(%path, "the data directory has other things in it, and others may look into it");
        }
    }
}

/// The permissions of a mode that others than the owner have.
const OTHERS: u32 = 0o077;

/// Names of a data directory's files and folders, by how they begin.
const OURS: &[&str] = &[
    "sandboxes.json",
    "snapshots.json",
    "patches.json",
    "operations.json",
    "hosts.json",
    "sweep.json",
    "history.jsonl",
    "events.jsonl",
    "events.numbers",
    "credits.jsonl",
    "owner",
    "recipes",
    "pinned",
    "outbox",
    "locks",
    "plans",
    "reserve",
];

fn is_ours(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    OURS.iter().any(|ours| name.trim_start_matches('.').starts_with(ours))
}

/// Takes from others what they may do with an entry. Who cannot is no worse off than before.
fn close_to_others(path: &Path, mode: u32) {
    if let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
        tracing::warn!(path = %path.display(), %error, "others may read it");
    }
}

/// Makes a directory and what leads to it, each 0700 whatever the umask is. One that exists keeps its mode.
fn make_private(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let failed = |error: io::Error| {
        // A missing parent: this is no place for directories.
        let nowhere = error.kind() == io::ErrorKind::NotFound;
        let mut failure = io_error("make the directory", path, error);
        if nowhere {
            failure.code = Code::InvalidConfig;
        }
        failure
    };
    if let Some(parent) = path.parent() {
        make_private(parent)?;
    }
    let folder = path.parent().unwrap_or(path);
    match or_from_reserve(folder, || DirBuilder::new().mode(0o700).create(path)) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(unusable(format!(
            "{} is a file, and sandboxer needs a directory there",
            path.display()
        ))
        .hint("move it away, or choose another directory with --data-dir")
        .detail("path", path.display().to_string())),
        Err(error) => Err(failed(error)),
    }
}

/// Opens a file for reading and appending; a new one is 0600 whatever the umask is. Close-on-exec, as std always does.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    open_private_as(path, OpenOptions::new().read(true).append(true))
}

/// Flag of an open that waits for no writer of a pipe. To a file it means nothing.
pub(super) fn no_wait() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}

/// Opens a file as `options` say; a new one is 0600 whatever the umask is.
pub(super) fn open_private_as(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let options = || options.clone().mode(0o600).to_owned();
    match or_from_reserve(path.parent().unwrap_or(path), || options().create_new(true).open(path)) {
        Ok(file) => {
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            options().create(true).open(path)
        }
        Err(error) => Err(error),
    }
}

/// Stamp of a file's version. Writers replace files whole, so the same stamp means the same content.
///
/// Inode, size and time are not enough: with fast writes a freed inode comes back within one tick of the file
/// system's clock. The head holds the document's revision, which never comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    inode: u64,
    len: u64,
    modified: Option<SystemTime>,
    head: [u8; 64],
}

impl Stamp {
    fn of(file: &File, head: &[u8]) -> io::Result<Self> {
        let found = file.metadata()?;
        let mut kept = [0; 64];
        let len = head.len().min(kept.len());
        kept[..len].copy_from_slice(&head[..len]);
        Ok(Self {
            inode: found.ino(),
            len: found.len(),
            modified: found.modified().ok(),
            head: kept,
        })
    }
}

/// A file opened for reading, with its stamp. `None` if there is none.
pub(super) fn open_stamped(path: &Path) -> Result<Option<(File, Stamp)>, Error> {
    let failed = |error| io_error("read", path, error);
    match fs::metadata(path) {
        // Opening a fifo would wait for ever.
        Ok(found) if !found.is_file() => {
            return Err(in_the_way(path));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut head = Vec::with_capacity(64);
    (&file).take(64).read_to_end(&mut head).map_err(failed)?;
    let stamp = Stamp::of(&file, &head).map_err(failed)?;
    Ok(Some((file, stamp)))
}

/// The whole of a file, and its stamp. `None` if there is none.
pub(super) fn read_whole(path: &Path) -> Result<Option<(Vec<u8>, Stamp)>, Error> {
    let Some((mut file, stamp)) = open_stamped(path)? else { return Ok(None) };
    let mut bytes = Vec::with_capacity(usize::try_from(stamp.len).unwrap_or(0) + 1);
    bytes.extend_from_slice(&stamp.head[..usize::try_from(stamp.len).unwrap_or(64).min(64)]);
    file.read_to_end(&mut bytes).map_err(|error| io_error("read", path, error))?;
    Ok(Some((bytes, stamp)))
}

/// Where the version before the last write of a file is.
pub(super) fn backup_of(path: &Path) -> PathBuf {
    beside(path, |name| format!("{name}.bak"))
}

fn beside(path: &Path, name: impl FnOnce(&str) -> String) -> PathBuf {
    path.with_file_name(name(&path.file_name().map(OsStr::to_string_lossy).unwrap_or_default()))
}

/// Replaces a file whole, so that a power cut does not bring the old one back; the version before becomes its backup.
/// Call it under the file's lock.
///
/// Whenever the process dies, the file is there and whole: the new content is complete and on disk before it gets
/// the name, and the backup is a second name of the old one, never a move of it.
pub(super) fn replace(path: &Path, content: &[u8], keep_backup: bool) -> Result<Stamp, Error> {
    let stamp = replace_non_durable(path, content, keep_backup)?;
    sync_folder(path.parent().unwrap_or_else(|| Path::new("/")))
        .map_err(|error| io_error("write", path, error))?;
    Ok(stamp)
}

/// [`replace`], but after a power cut the version before may be back: whole, and with its backup.
pub(super) fn replace_non_durable(
    path: &Path,
    content: &[u8],
    keep_backup: bool,
) -> Result<Stamp, Error> {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    or_from_reserve(folder, || put(path, folder, content, keep_backup))
        .map_err(|error| io_error("write", path, error))
}

fn put(path: &Path, folder: &Path, content: &[u8], keep_backup: bool) -> io::Result<Stamp> {
    let prefix = format!(".{}.", path.file_name().map(OsStr::to_string_lossy).unwrap_or_default());
    let mut new = tempfile::Builder::new().prefix(&prefix).suffix(".tmp").tempfile_in(folder)?;
    new.as_file().set_permissions(Permissions::from_mode(0o600))?;
    new.write_all(content)?;
    new.as_file().sync_all()?;
    let stamp = Stamp::of(new.as_file(), content)?;
    if keep_backup {
        keep_old(path)?;
    }
    new.persist(path).map_err(|error| error.error)?;
    Ok(stamp)
}

/// Gives the present version of a file its backup's name as well.
fn keep_old(path: &Path) -> io::Result<()> {
    let step = beside(path, |name| format!(".{name}.bak.tmp"));
    remove_if_there(&step)?;
    match fs::hard_link(path, &step) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A file system without hard links.
        Err(_) => {
            fs::copy(path, &step)?;
        }
    }
    fs::rename(&step, backup_of(path))?;
    // A rename between two names of one file does nothing, not even to the old name.
    remove_if_there(&step)
}

/// Makes a rename in a folder last over a power cut.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems cannot sync a folder; there is nothing more to do on those.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Removes what writers of this file left that were killed. Call it under the file's lock.
pub(super) fn remove_leftovers(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let prefix = format!(".{}.", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&prefix) && name.ends_with(".tmp") {
            // Not worth an error: it is in nobody's way.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The data directory that was configured is none, or is not to be used by this account.
fn unusable(message: String) -> Error {
    Error::new(Code::InvalidConfig, message)
}

/// Something else has the name of a file of ours.
pub(super) fn in_the_way(path: &Path) -> Error {
    unusable(format!("{} is not a file", path.display()))
        .hint("move it away, or choose another directory with --data-dir")
        .detail("path", path.display().to_string())
}

/// An error of the file system: which file, what for, and what to do about it.
pub(super) fn io_error(doing: &str, path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{
        NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let is = |errno: rustix::io::Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let hint = match error.kind() {
        StorageFull | QuotaExceeded => {
            "nothing was lost: what was written before is unchanged; free some space there, or choose another \
             place with --data-dir"
        }
        PermissionDenied | ReadOnlyFilesystem => {
            "make it yours to read and write, or choose another directory with --data-dir"
        }
        NotADirectory => "a part of the path is a file; choose another directory with --data-dir",
        _ if is(rustix::io::Errno::ISDIR) => {
            "move it away, or choose another directory with --data-dir"
        }
        _ if is(rustix::io::Errno::LOOP) => {
            "links there point at each other; choose another directory with --data-dir"
        }
        _ => "see the cause; --data-dir chooses another directory",
    };
    // Errors that the choice of the directory decides, as against what befell it.
    let chosen = matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | NotADirectory)
        || is(rustix::io::Errno::LOOP)
        || is(rustix::io::Errno::ISDIR);
    let message = format!("cannot {doing} {}", path.display());
    let failure = if chosen { unusable(message) } else { Error::internal(message) };
    failure.hint(hint).detail("path", path.display().to_string()).because(error)
}

/// Runs file work on a thread that may wait. It begins at once, and runs to its end even if the caller is dropped.
pub(super) fn blocking<T, F>(work: F) -> impl Future<Output = Result<T, Error>> + Send
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Error> + Send + 'static,
{
    let task = tokio::task::spawn_blocking(carried(work));
    async move {
        task.await.unwrap_or_else(|error| {
            Err(Error::internal("the work on a file ended early").because(error))
        })
    }
}
