//! Files of the earlier Python tool, which kept its records where ours are: read, set aside under another name, and done with.
//!
//! The rename is the only thing that is done to such a file. A process that dies behind it leaves a file that is set aside and not
//! done with, which the next import reads again.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::Value;

use crate::domain::earlier::{EarlierEntry, entries_of};
use crate::domain::error::{Code, Error};
use crate::store::corruption::{self, Foreign, Position, START};
use crate::store::document::utf8;
use crate::store::earlier_store::{EarlierFile, EarlierKind, EarlierStore};
use crate::store::files::{self, DataDir, blocking, io_error, sync_folder};
use crate::store::lock::FileLock;

/// The earlier tool's files in a data directory.
pub struct EarlierFolder {
    dir: DataDir,
}

impl EarlierFolder {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone() }
    }
}

/// Names of one file: where it was, where it is set aside, and what says that it is done with.
#[derive(Clone)]
struct Names {
    live: PathBuf,
    aside: PathBuf,
    done: PathBuf,
}

fn stem(kind: EarlierKind) -> &'static str {
    match kind {
        EarlierKind::Sandboxes => "sandboxes",
        EarlierKind::Snapshots => "snapshots",
    }
}

fn names(dir: &DataDir, kind: EarlierKind) -> Names {
    let file = format!("{}.json", stem(kind));
    Names {
        live: dir.join(&file),
        aside: dir.join(format!("{file}.python")),
        done: dir.join(format!("{file}.python.imported")),
    }
}

#[async_trait]
impl EarlierStore for EarlierFolder {
    async fn file(&self, kind: EarlierKind) -> Result<Option<EarlierFile>, Error> {
        let names = names(&self.dir, kind);
        blocking(move || read(&names)).await
    }

    async fn set_aside(&self, kind: EarlierKind) -> Result<(), Error> {
        let guard = FileLock::new(&self.dir, stem(kind)).acquire().await?;
        let (names, dir) = (names(&self.dir, kind), self.dir.clone());
        blocking(move || {
            dir.prepare(None)?;
            // Under the lock: somebody may have done it meanwhile.
            if read(&names)?.is_some_and(|file| !file.is_aside) {
                set_aside(&names)?;
            }
            drop(guard);
            Ok(())
        })
        .await
    }

    async fn done(&self, kind: EarlierKind) -> Result<(), Error> {
        let names = names(&self.dir, kind);
        blocking(move || files::replace(&names.done, b"imported\n", false).map(|_| ())).await
    }
}

/// The file, where it is still to be imported.
///
/// Errors: `conflict` where one was set aside before, and another one came in its place.
fn read(names: &Names) -> Result<Option<EarlierFile>, Error> {
    let live = its_entries(&names.live)?;
    let is_there = fs::symlink_metadata(&names.aside).is_ok();
    let (path, entries, is_aside) = match live {
        Some(_) if is_there && !is_one_file(names) => return Err(in_the_way(names)),
        Some(entries) => (&names.live, entries, false),
        None if is_there && !names.done.exists() => {
            let entries = its_entries(&names.aside)?;
            let entries =
                entries.ok_or_else(|| corruption::foreign(&names.aside, Foreign::Unknown))?;
            (&names.aside, entries, true)
        }
        None => return Ok(None),
    };
    Ok(Some(EarlierFile { path: path.display().to_string(), entries, is_aside }))
}

/// Entries of a file, where it is the earlier tool's; none for one of ours, or of nobody we know.
///
/// Errors: `store_corrupt` for what is no JSON.
fn its_entries(path: &Path) -> Result<Option<Vec<EarlierEntry>>, Error> {
    let Some((bytes, _)) = files::read_whole(path)? else { return Ok(None) };
    let text = utf8(path, &bytes)?;
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let place = Position::of_json(&error, START);
        corruption::corrupt(path, "the file", place, corruption::words(&error))
    })?;
    Ok(if value.get("schema").is_some() { None } else { entries_of(&value) })
}

/// Renames it, never over what is there: a link is made whole or not at all, and only then the first name goes.
fn set_aside(names: &Names) -> Result<(), Error> {
    let failed = |error| io_error("set aside", &names.live, error);
    let _ = fs::remove_file(&names.done);
    if !is_one_file(names)
        && let Err(error) = fs::hard_link(&names.live, &names.aside)
    {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return Err(in_the_way(names));
        }
        // A file system without links. The lock keeps other processes of ours away.
        fs::rename(&names.live, &names.aside).map_err(failed)?;
    }
    let synced = sync_folder(names.live.parent().unwrap_or_else(|| Path::new("/")));
    synced.map_err(failed)?;
    match fs::remove_file(&names.live) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    // Private, like everything here.
    fs::set_permissions(&names.aside, fs::Permissions::from_mode(0o600)).map_err(failed)
}

/// Whether both names are one file: a process died between the two.
fn is_one_file(names: &Names) -> bool {
    let of = |path: &Path| fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()));
    of(&names.live).is_some_and(|live| of(&names.aside) == Some(live))
}

fn in_the_way(names: &Names) -> Error {
    let (live, aside) = (names.live.display(), names.aside.display());
    Error::new(
        Code::Conflict,
        format!("{live} is of the earlier tool, and {aside} is there already"),
    )
    .hint(format!("nothing was touched; move {aside} away, then import again"))
    .detail("file", live.to_string())
}
