//! Locks across processes: one per file while it is written, one per sandbox while an operation works on it.
//!
//! They are the kernel's: a process that dies frees its own. A lock file that stays is harmless, and so is one that
//! somebody deletes.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::domain::error::{Code, Error};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::store::files::{DataDir, blocking, io_error, open_private};
use crate::store::{Held, Locks};

/// Time that a writer waits for another one. A write takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

const FOLDER: &str = "locks";

#[derive(Debug)]
pub(super) struct LockedFile {
    file: File,
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread starts right now has a copy of the descriptor
        // until it runs its program, and the lock would stay with that copy. Unlocking frees it for all copies.
        let _ = self.file.unlock();
    }
}

fn try_take(path: &Path) -> Result<Option<LockedFile>, Error> {
    let failed = |error| io_error("lock", path, error);
    loop {
        let file = open_private(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // If the file was deleted in between, the lock is on a file that nobody else will find: take it again.
        let ours = file.metadata().map_err(failed)?.ino();
        match fs::metadata(path) {
            Ok(found) if found.ino() == ours => return Ok(Some(LockedFile { file })),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Waits for the lock, at most [`PATIENCE`], and not longer than somebody wants it.
///
/// Asks again and again instead of sleeping in the kernel: a holder that was stopped (Ctrl-Z) would otherwise hang
/// this process without a word, beyond its end.
fn wait_for(path: &Path, wanted: &Weak<()>) -> Result<LockedFile, Error> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(lock) = try_take(path)? {
            return Ok(lock);
        }
        if wanted.strong_count() == 0 {
            return Err(Error::new(Code::Cancelled, "nobody waits for this lock any more"));
        }
        if began.elapsed() >= PATIENCE {
            return Err(Error::new(
                Code::Busy,
                format!("another process has held {} for {} s", path.display(), PATIENCE.as_secs()),
            )
            .hint("find it with `fuser` on that file; one that was stopped (Ctrl-Z) must be continued or ended")
            .detail("path", path.display().to_string()));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(3));
    }
}

/// The way to a file's write lock.
///
/// Callers of this process queue in memory first: at most one thread of ours waits for other processes, so that
/// waiting writers never take all the threads that the one who holds the lock needs to finish.
#[derive(Debug)]
pub(super) struct FileLock {
    dir: DataDir,
    name: String,
    queue: Arc<tokio::sync::Mutex<()>>,
}

/// A turn to write; dropping it frees the lock.
#[derive(Debug)]
pub(super) struct FileLockGuard {
    // Fields are dropped in order: the file's lock first, then the place in the queue.
    _lock: LockedFile,
    _place: tokio::sync::OwnedMutexGuard<()>,
}

impl FileLock {
    /// The lock of a file. Its name begins with `_`, which no sandbox's id does.
    pub(super) fn new(dir: &DataDir, name: &str) -> Self {
        Self { dir: dir.clone(), name: format!("_{name}.lock"), queue: Arc::default() }
    }

    /// Waits for a turn.
    pub(super) async fn acquire(&self) -> Result<FileLockGuard, Error> {
        let place = Arc::clone(&self.queue).lock_owned().await;
        let dir = self.dir.clone();
        let name = self.name.clone();
        // Lives as long as this future: a caller that went away must not keep a thread.
        let here = Arc::new(());
        let wanted = Arc::downgrade(&here);
        let guard = blocking(move || {
            dir.prepare(Some(FOLDER))?;
            let lock = wait_for(&dir.join(FOLDER).join(name), &wanted)?;
            Ok(FileLockGuard { _lock: lock, _place: place })
        })
        .await;
        drop(here);
        guard
    }
}

/// Takes a lock of the data directory if it is free. `None`: somebody holds it.
pub(super) async fn try_lock_file(
    dir: &DataDir,
    name: &str,
) -> Result<Option<Box<dyn Held>>, Error> {
    let (dir, name) = (dir.clone(), name.to_owned());
    let taken = blocking(move || {
        dir.prepare(Some(FOLDER))?;
        try_take(&dir.join(FOLDER).join(name))
    })
    .await?;
    Ok(taken.map(|lock| Box::new(lock) as Box<dyn Held>))
}

/// The sandboxes' operation locks: `locks/<id>.lock`.
#[derive(Debug)]
pub struct LockFolder {
    dir: DataDir,
}

impl LockFolder {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone() }
    }
}

impl Held for LockedFile {}

impl Held for FileLockGuard {}

#[async_trait]
impl Locks for LockFolder {
    async fn try_lock(&self, id: &SandboxId) -> Result<Option<Box<dyn Held>>, Error> {
        // An id from a file somebody edited must not become a path.
        let id = SandboxId::parse(id.as_str())?;
        try_lock_file(&self.dir, &format!("{id}.lock")).await
    }

    async fn try_lock_snapshot(&self, id: &SnapshotId) -> Result<Option<Box<dyn Held>>, Error> {
        if !SnapshotId::is_one(id.as_str()) {
            return Err(Error::invalid_input(
                "snapshot",
                "a snapshot's id is `snap-` and 8 hex digits",
            ));
        }
        // A sandbox may be called as a snapshot is.
        try_lock_file(&self.dir, &format!("_{id}.lock")).await
    }

    async fn tidy(&self, live: BTreeSet<SandboxId>) -> Result<(), Error> {
        let folder = self.dir.join(FOLDER);
        blocking(move || {
            let failed = |error| io_error("read", &folder, error);
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries.map_err(failed)?,
            };
            for entry in entries {
                let path = entry.map_err(failed)?.path();
                let id = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .and_then(|name| name.strip_suffix(".lock"));
                // Names with `_` in front are the files' own locks.
                let over = |id: &SandboxId| !live.contains(id);
                if id.and_then(|id| SandboxId::parse(id).ok()).is_some_and(|id| over(&id))
                    && let Some(_held) = try_take(&path)?
                {
                    fs::remove_file(&path).map_err(|error| io_error("remove", &path, error))?;
                }
            }
            Ok(())
        })
        .await
    }
}
