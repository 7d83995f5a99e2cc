//! Reserve: a file in the data directory that takes the room of its largest write. What ends something (a removal, a rollback,
//! a recovery) gives it up where the disk is full, and makes it again afterwards; whoever begins something new does not.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

const NAME: &str = "reserve";

/// Room that is reserved beside the largest file: events, operations, locks; bytes.
const BESIDE: u64 = 64 * 1024;

/// Size is a multiple of this, so that it seldom grows; bytes.
const STEP: u64 = 64 * 1024;

/// Reserves that were given up, and their sizes.
#[derive(Default)]
struct GivenUp(Mutex<Vec<(PathBuf, u64)>>);

tokio::task_local! {
    static ENDING: Arc<GivenUp>;
}

thread_local! {
    /// [`ENDING`], on a thread that works for such a task.
    static WORKS_FOR: RefCell<Option<Arc<GivenUp>>> = const { RefCell::new(None) };
}

/// Work that ends something: what it writes may take the room that is reserved.
pub async fn ending<T>(work: impl Future<Output = T>) -> T {
    // Boxed: it is held twice here, and large.
    let work = Box::pin(work);
    if ENDING.try_with(|_| ()).is_ok() {
        return work.await;
    }
    let given_up = Arc::new(GivenUp::default());
    let result = ENDING.scope(Arc::clone(&given_up), work).await;
    let to_make = std::mem::take(&mut *given_up.0.lock().unwrap_or_else(PoisonError::into_inner));
    if !to_make.is_empty() {
        let made = tokio::task::spawn_blocking(move || {
            for (path, size) in to_make {
                make_again(&path, size);
            }
        });
        if let Err(error) = made.await {
            tracing::warn!(%error, "the reserve of the data directory could not be made again");
        }
    }
    result
}

/// File work that knows on its thread whether it ends something.
pub(super) fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let ending = ENDING.try_with(Arc::clone).ok();
    move || {
        let before = WORKS_FOR.replace(ending);
        let result = work();
        WORKS_FOR.set(before);
        result
    }
}

/// Writes in a folder, and once more where the disk is full and something is reserved for this work.
pub(super) fn or_from_reserve<T>(
    folder: &Path,
    mut write: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    match write() {
        Err(error) if is_full(&error) && give_up(folder) => write(),
        outcome => outcome,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Gives up the reserve of the data directory that this folder is, or is in; whether there was one.
fn give_up(folder: &Path) -> bool {
    let Some(given_up) = WORKS_FOR.with_borrow(Clone::clone) else { return false };
    [Some(folder), folder.parent()].into_iter().flatten().any(|dir| {
        let path = dir.join(NAME);
        let size = fs::symlink_metadata(&path).map_or(0, |found| found.len());
        let is_given_up = size > 0 && fs::remove_file(&path).is_ok();
        if is_given_up {
            tracing::warn!(path = %path.display(), size, "the disk is full: its reserve was given up");
            given_up.0.lock().unwrap_or_else(PoisonError::into_inner).push((path, size));
        }
        is_given_up
    })
}

/// Keeps room for another write of so many bytes, after one that went well. Where the disk has little room left, little or none
/// of it is taken.
pub(super) fn keep(dir: &Path, bytes: usize) {
    if WORKS_FOR.with_borrow(Option::is_some) {
        return;
    }
    let path = dir.join(NAME);
    let wanted = (bytes as u64 + BESIDE).next_multiple_of(STEP);
    let has = fs::symlink_metadata(&path).map_or(0, |found| found.len());
    if has >= wanted {
        return;
    }
    let free = free(&path);
    let size = if free >= 4 * wanted { wanted } else { (free / 4).min(wanted) };
    if size > has.max(BESIDE / 8) && (has == 0 || size == wanted) {
        report(&path, make(&path, size));
    }
}

/// Makes it as large as it was, or as there is room for.
fn make_again(path: &Path, size: u64) {
    let size = size.min(free(path));
    if size > 0 && fs::symlink_metadata(path).is_err() {
        report(path, make(path, size));
    }
}

fn report(path: &Path, made: io::Result<()>) {
    if let Err(error) = made {
        tracing::debug!(path = %path.display(), %error, "no room could be reserved");
        let _ = fs::remove_file(path);
    }
}

/// Bytes that the account can still write beside this file.
fn free(path: &Path) -> u64 {
    let folder = path.parent().unwrap_or(path);
    statvfs(folder).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize))
}

fn make(path: &Path, size: u64) -> io::Result<()> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_link)
        .open(path)?;
    // Whatever the umask is.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(()),
        // A file system that can only be written to.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => fill(file, size),
        Err(error) => Err(error.into()),
    }
}

fn fill(mut file: File, size: u64) -> io::Result<()> {
    let piece = vec![0; 64 * 1024];
    let mut left = usize::try_from(size).unwrap_or(0);
    while left > 0 {
        let length = left.min(piece.len());
        file.write_all(&piece[..length])?;
        left -= length;
    }
    file.sync_data()
}
