//! Account of the provider: a folder with the account's id, and a small file for each thing that it has. Whoever works on this
//! machine can have put anything there, so nothing is followed, believed or waited for; processes lock it one after the other.

use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::error::{Code, Error};
use crate::domain::root::RootMark;

/// The largest file that is read or written, in bytes.
pub(super) const LONGEST: usize = 96 * 1024;

/// Entries of a folder that are looked at; with more nobody can tell what is there.
const MOST: usize = 20_000;

/// Time that the lock is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// Pause between two tries to get it.
const LOCK_POLL: Duration = Duration::from_millis(5);

const ACCOUNT: &str = "account.json";
const LOCK: &str = "lock";

/// File of the account. Its id is what proves that a folder is still the same one.
#[derive(Serialize, Deserialize)]
struct AccountFile {
    schema: u64,
    account: String,
}

/// Room of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// A file for each sandbox.
    Sandboxes,
    /// A file for each snapshot.
    Snapshots,
    /// A file for each owner, with its counter.
    Owners,
}

impl Room {
    const ALL: [Self; 3] = [Self::Sandboxes, Self::Snapshots, Self::Owners];

    fn name(self) -> &'static str {
        match self {
            Self::Sandboxes => "sandboxes",
            Self::Snapshots => "snapshots",
            Self::Owners => "owners",
        }
    }
}

/// A file of a room.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// There is none.
    Absent,
    Text(String),
    /// Not to be read, and why.
    Odd(String),
}

/// Whether whoever asked for some work has given it up meanwhile: then it changes nothing any more.
#[derive(Clone, Default)]
pub(super) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub(super) fn give_up(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn is_so(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The account, locked by this process.
pub(super) struct Account {
    folder: OwnedFd,
    given_up: GivenUp,
    pub(super) id: String,
    _lock: OwnedFd,
}

impl Account {
    /// Opens and locks it; none where there is no folder, or nothing was made in it yet.
    ///
    /// Errors: why it cannot be read, `timeout` where another process keeps the lock.
    pub(super) fn open(path: &Path, given_up: GivenUp) -> Result<Option<Self>, Error> {
        let folder = match open_folder(rustix::fs::CWD, path) {
            Err(Errno::NOENT) => return Ok(None),
            folder => folder.map_err(|error| unreadable(path, error))?,
        };
        let id = read_account(&folder, path)?;
        if id.is_none() {
            return if is_empty(&folder) { Ok(None) } else { Err(without_account(path)) };
        }
        let lock = lock(&folder, path)?;
        // Somebody may have put another one in its place while the lock was waited for.
        let id = read_account(&folder, path)?.ok_or_else(|| without_account(path))?;
        Ok(Some(Self { folder, given_up, id, _lock: lock }))
    }

    /// Opens and locks it; it is made where it is not there, with an id of its own.
    ///
    /// Errors: why it cannot be made, or read.
    pub(super) fn make(path: &Path, given_up: GivenUp) -> Result<Self, Error> {
        let unmade = |error: std::io::Error| unreadable(path, error);
        let parent = path.parent().unwrap_or(path);
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(unmade)?;
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unmade(error)),
            _ => {}
        }
        let folder = open_folder(rustix::fs::CWD, path).map_err(|error| unreadable(path, error))?;
        let lock = lock(&folder, path)?;
        if given_up.is_so() {
            return Err(nobody_waits());
        }
        let id = match read_account(&folder, path)? {
            Some(id) => id,
            None if !is_empty(&folder) => return Err(without_account(path)),
            None => {
                let id = Uuid::new_v4().simple().to_string();
                let text = json(&AccountFile { schema: 1, account: id.clone() })?;
                replace(&folder, ACCOUNT, &text).map_err(|error| unreadable(path, error))?;
                id
            }
        };
        for room in Room::ALL {
            match rustix::fs::mkdirat(&folder, room.name(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(unreadable(path, error)),
            }
        }
        Ok(Self { folder, given_up, id, _lock: lock })
    }

    fn room(&self, room: Room) -> Result<Option<OwnedFd>, Error> {
        match open_folder(&self.folder, room.name()) {
            Ok(open) => Ok(Some(open)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(unreadable(Path::new(room.name()), error)),
        }
    }

    /// Reads a file.
    ///
    /// Errors: why its room cannot be opened; of the file itself that is in the answer.
    pub(super) fn read(&self, room: Room, name: &str) -> Result<Content, Error> {
        Ok(match self.room(room)? {
            Some(room) => read_file(&room, &file_name(name)?),
            None => Content::Absent,
        })
    }

    /// Writes a file in the place of the one that is there, so that it is there whole or not at all.
    ///
    /// Errors: `cancelled` where nobody waits for it any more.
    pub(super) fn write(&self, room: Room, name: &str, text: &str) -> Result<(), Error> {
        if self.given_up.is_so() {
            return Err(nobody_waits());
        }
        let written = self
            .room(room)?
            .ok_or(Errno::NOENT)
            .and_then(|open| replace(&open, &file_name(name).map_err(|_| Errno::INVAL)?, text));
        written.map_err(|error| unwritten(room, name, error))
    }

    /// Removes a file, and what a write that was cut off left beside it; whether it was there.
    pub(super) fn remove(&self, room: Room, name: &str) -> Result<bool, Error> {
        if self.given_up.is_so() {
            return Err(nobody_waits());
        }
        let Some(open) = self.room(room)? else { return Ok(false) };
        let name = file_name(name)?;
        let _ = rustix::fs::unlinkat(&open, draft_name(&name), AtFlags::empty());
        match rustix::fs::unlinkat(&open, &name, AtFlags::empty()) {
            Ok(()) => {
                let _ = rustix::fs::fsync(&open);
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(unwritten(room, &name, error)),
        }
    }

    /// Names of all that is in a room, ours or not, in order; what is being written is not among them.
    ///
    /// Errors: why that cannot be told. Nothing is judged then.
    pub(super) fn names(&self, room: Room) -> Result<Vec<String>, Error> {
        let Some(open) = self.room(room)? else { return Ok(Vec::new()) };
        let unread = |error: Errno| unreadable(Path::new(room.name()), error);
        let mut names = Vec::new();
        for entry in Dir::read_from(&open).map_err(unread)? {
            let name = entry.map_err(unread)?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                names.push(name);
            }
            if names.len() > MOST {
                let message =
                    format!("the saas-stub provider has more than {MOST} files in {}", room.name());
                return Err(Error::new(Code::OperationFailed, message));
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Flags with which nothing is followed, waited for or handed on.
fn file_flags(how: OFlags) -> OFlags {
    how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
}

fn open_folder(at: impl std::os::fd::AsFd, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let folder = rustix::fs::openat(
        at,
        path,
        file_flags(OFlags::RDONLY | OFlags::DIRECTORY),
        Mode::empty(),
    )?;
    let is_ours = rustix::fs::fstat(&folder)?.st_uid == rustix::process::geteuid().as_raw();
    if is_ours { Ok(folder) } else { Err(Errno::PERM) }
}

/// Locks the folder, which other processes wait for.
fn lock(folder: &OwnedFd, path: &Path) -> Result<OwnedFd, Error> {
    let flags = file_flags(OFlags::RDWR | OFlags::CREATE);
    let lock = rustix::fs::openat(folder, LOCK, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| unreadable(path, error))?;
    let until = Instant::now() + LOCK_LIMIT;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                std::thread::sleep(LOCK_POLL);
            }
            Err(Errno::WOULDBLOCK) => {
                let message = format!(
                    "another process has held {} for {} s",
                    path.join(LOCK).display(),
                    LOCK_LIMIT.as_secs()
                );
                return Err(Error::new(Code::Timeout, message).hint("end it, then try again"));
            }
            Err(error) => return Err(unreadable(path, error)),
        }
    }
}

/// Id of the account; none where there is none yet.
fn read_account(folder: &OwnedFd, path: &Path) -> Result<Option<String>, Error> {
    let unfit = |why: &str| {
        let message = format!("{} {why}", path.join(ACCOUNT).display());
        Error::new(Code::OperationFailed, message)
            .hint("nothing of the saas-stub provider is judged or touched until it is as it was")
    };
    match read_file(folder, ACCOUNT) {
        Content::Absent => Ok(None),
        Content::Odd(why) => Err(unfit(&format!("cannot be read: {why}"))),
        Content::Text(text) => {
            let file: Option<AccountFile> = serde_json::from_str(&text).ok();
            let is_one =
                |file: &AccountFile| file.schema == 1 && RootMark::parse(&file.account).is_some();
            let file = file.filter(is_one).ok_or_else(|| unfit("is no account's"))?;
            Ok(Some(file.account))
        }
    }
}

/// Whether nothing was made in a folder yet.
fn is_empty(folder: &OwnedFd) -> bool {
    Room::ALL.into_iter().all(|room| match open_folder(folder, room.name()) {
        Err(error) => error == Errno::NOENT,
        Ok(open) => Dir::read_from(&open).is_ok_and(|mut entries| {
            entries.all(|entry| {
                entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
            })
        }),
    })
}

fn read_file(room: &OwnedFd, name: &str) -> Content {
    let file = match rustix::fs::openat(room, name, file_flags(OFlags::RDONLY), Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Content::Absent,
        Err(Errno::LOOP) => return Content::Odd("it is a symbolic link".to_owned()),
        Err(error) => return Content::Odd(error.to_string()),
    };
    let odd = |why: &str| Content::Odd(why.to_owned());
    match rustix::fs::fstat(&file) {
        Err(error) => return Content::Odd(error.to_string()),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            return odd("it is no regular file");
        }
        Ok(stat) if stat.st_uid != rustix::process::geteuid().as_raw() => {
            return odd("it belongs to another account of this machine");
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    match File::from(file).take(LONGEST as u64 + 1).read_to_end(&mut bytes) {
        Err(error) => Content::Odd(error.to_string()),
        Ok(read) if read > LONGEST => odd("it is longer than any of the provider's"),
        Ok(_) => String::from_utf8(bytes).map_or_else(|_| odd("it is no text"), Content::Text),
    }
}

/// Puts a text in the place of a file, in one step.
fn replace(room: &OwnedFd, name: &str, text: &str) -> Result<(), Errno> {
    let draft = draft_name(name);
    match rustix::fs::unlinkat(room, &draft, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    let flags = file_flags(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
    let mut file = File::from(rustix::fs::openat(room, &draft, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let placed = written
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        .and_then(|()| rustix::fs::renameat(room, &draft, room, name))
        .and_then(|()| rustix::fs::fsync(room));
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(room, &draft, AtFlags::empty());
    }
    placed
}

/// Name of what is being written. There is one at a time: whoever writes has the lock.
fn draft_name(name: &str) -> String {
    format!(".{name}.new")
}

/// Name of the file of something. Ids come from elsewhere too, and become a path here.
fn file_name(name: &str) -> Result<String, Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 100 || !name.chars().all(legal) {
        return Err(Error::internal(format!("{name:?} names no file of the saas-stub provider")));
    }
    Ok(format!("{name}.json"))
}

/// JSON as the provider's files have it.
pub(super) fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value).map_err(|error| {
        Error::internal("a file of the saas-stub provider cannot be written").because(error)
    })
}

fn unreadable(path: &Path, error: impl Into<std::io::Error>) -> Error {
    let message = format!("the saas-stub provider cannot be used: {}", path.display());
    Error::new(Code::OperationFailed, message)
        .hint("it has to be a directory of yours, and no link; SANDBOXER_STUB_DIR names another")
        .because(error.into())
}

fn unwritten(room: Room, name: &str, error: Errno) -> Error {
    let message = format!("the saas-stub provider cannot write {}/{name}", room.name());
    Error::new(Code::OperationFailed, message).because(std::io::Error::from(error))
}

fn without_account(path: &Path) -> Error {
    let message = format!("{} has things, and no account that they are of", path.display());
    Error::new(Code::OperationFailed, message)
        .hint("put its account.json back; nothing there is judged or touched until then")
}

fn nobody_waits() -> Error {
    Error::new(Code::Cancelled, "nobody waits for it any more: nothing was changed")
}

#[cfg(test)]
mod tests;
