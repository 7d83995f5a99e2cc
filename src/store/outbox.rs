//! `outbox/`: `cursor.json`, how far the event log was delivered to the State Hub, and `dead.jsonl`, a letter a line of what
//! will never be. Events themselves stay in the log: none is copied.
//!
//! A cursor that cannot be read says nothing: delivery begins again with the oldest event that is kept, each with the id that it
//! had, and the file stays beside as `cursor.json.unreadable`. The dead letter rotates as the log does.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::domain::error::{Code, Error};
use crate::domain::outbox::{Cursor, DeadLetter, Missed};
use crate::store::files::{
    self, DataDir, blocking, in_the_way, io_error, open_private, sync_folder,
};
use crate::store::history::ends_torn;
use crate::store::lock::try_lock_file;
use crate::store::rotation::RotatedLog;
use crate::store::{CursorFound, Held, OutboxStore};

const FOLDER: &str = "outbox";

const SCHEMA: u64 = 1;

/// Largest cursor that is read, in bytes; 256 sandboxes that are held back take a quarter of it.
const LARGEST: u64 = 1 << 20;

/// Size at which the dead letter is rotated, in bytes.
const LIMIT: u64 = 64 * 1024 * 1024;

/// Content of the cursor's file.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    schema: u64,
    #[serde(flatten)]
    cursor: Cursor,
}

/// The outbox, in a folder.
pub struct OutboxFolder {
    dir: DataDir,
    letters: Arc<Letters>,
}

impl OutboxFolder {
    pub(super) fn new(dir: &DataDir) -> Self {
        let letters = Letters {
            rotated: RotatedLog::new(dir.join(FOLDER).join("dead.jsonl")),
            limit: LIMIT,
            counted: Mutex::default(),
        };
        Self { dir: dir.clone(), letters: Arc::new(letters) }
    }
}

fn cursor_path(dir: &DataDir) -> PathBuf {
    dir.join(FOLDER).join("cursor.json")
}

/// The number from which on events may be needed still. A cursor that nobody can read needs all.
pub(super) fn first_needed(dir: &DataDir) -> u64 {
    match read(&cursor_path(dir)) {
        Ok(CursorFound::Cursor(cursor)) => cursor.first_needed(),
        Ok(CursorFound::None | CursorFound::Unreadable) | Err(_) => 0,
    }
}

fn read(path: &Path) -> Result<CursorFound, Error> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Err(in_the_way(path)),
        Ok(found) if found.len() > LARGEST => return Ok(CursorFound::Unreadable),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CursorFound::None),
        Err(error) => return Err(io_error("read", path, error)),
    }
    let Some((bytes, _)) = files::read_whole(path)? else { return Ok(CursorFound::None) };
    let schema = serde_json::from_slice::<serde_json::Value>(&bytes).ok();
    let schema = schema.and_then(|value| value.get("schema")?.as_u64());
    if schema.is_some_and(|schema| schema > SCHEMA) {
        let message = format!("{} was written by a newer version", path.display());
        return Err(Error::new(Code::StoreForeign, message)
            .hint("use that version; nothing is delivered by this one")
            .detail("path", path.display().to_string()));
    }
    Ok(match serde_json::from_slice::<Written>(&bytes) {
        Ok(written) => CursorFound::Cursor(written.cursor),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the outbox's cursor cannot be read");
            CursorFound::Unreadable
        }
    })
}

fn write(dir: &DataDir, cursor: &Cursor) -> Result<(), Error> {
    let path = cursor_path(dir);
    dir.prepare(Some(FOLDER))?;
    if matches!(read(&path)?, CursorFound::Unreadable) {
        let beside = path.with_file_name("cursor.json.unreadable");
        fs::rename(&path, &beside).map_err(|error| io_error("rename", &path, error))?;
    }
    files::remove_leftovers(&path);
    let written = Written { schema: SCHEMA, cursor: cursor.clone() };
    let mut text = serde_json::to_vec(&written)
        .map_err(|error| Error::internal("a cursor cannot be written as JSON").because(error))?;
    text.push(b'\n');
    // After a power cut the version before may be back: then some events are told again.
    files::replace_non_durable(&path, &text, false).map(|_| ())
}

/// The dead letter's files, and what was counted in them.
struct Letters {
    rotated: RotatedLog,
    limit: u64,
    /// Events of each file as far as it was read, by inode.
    counted: Mutex<HashMap<u64, (u64, u64)>>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    missed: Option<Missed>,
}

impl Letters {
    fn append(&self, letters: &[DeadLetter]) -> Result<(), Error> {
        let path = self.rotated.newest();
        let failed = |error| io_error("write", path, error);
        let mut lines = Vec::new();
        for letter in letters {
            serde_json::to_writer(&mut lines, letter).map_err(|error| {
                Error::internal("a dead letter cannot be written as JSON").because(error)
            })?;
            lines.push(b'\n');
        }
        let mut file = open_private(path).map_err(failed)?;
        let mut len = file.metadata().map_err(failed)?.len();
        if ends_torn(&mut file, len).map_err(failed)? {
            file.write_all(b"\n").map_err(failed)?;
            len += 1;
        }
        if len > 0 && len + lines.len() as u64 > self.limit {
            self.rotated.rotate(None)?;
            file = open_private(path).map_err(failed)?;
            len = 0;
        }
        if let Err(error) = file.write_all(&lines).and_then(|()| file.sync_data()) {
            // A full disk: take back the part that was written.
            let _ = file.set_len(len);
            return Err(failed(error));
        }
        sync_folder(path.parent().unwrap_or(path)).map_err(failed)
    }

    /// A line that cannot be read holds an event all the same.
    fn count(&self) -> Result<u64, Error> {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::new();
        for log_file in self.rotated.open()? {
            let known = counted.get(&log_file.inode).copied();
            let (place, mut count) =
                known.filter(|(place, _)| *place <= log_file.len).unwrap_or_default();
            let place = log_file.lines_after(place, |line| {
                if !line.is_empty() {
                    let read = serde_json::from_slice::<Counted>(line).ok();
                    count += read.and_then(|read| read.missed).map_or(1, |missed| missed.count);
                }
            })?;
            now.insert(log_file.inode, (place, count));
        }
        *counted = now;
        Ok(counted.values().map(|(_, count)| count).sum())
    }
}

#[async_trait]
impl OutboxStore for OutboxFolder {
    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error> {
        // A sandbox's id begins with no `_`.
        try_lock_file(&self.dir, "_outbox.lock").await
    }

    async fn cursor(&self) -> Result<CursorFound, Error> {
        let path = cursor_path(&self.dir);
        blocking(move || read(&path)).await
    }

    async fn write(&self, cursor: &Cursor) -> Result<(), Error> {
        let (dir, cursor) = (self.dir.clone(), cursor.clone());
        blocking(move || write(&dir, &cursor)).await
    }

    async fn give_up(&self, dead: Vec<DeadLetter>) -> Result<(), Error> {
        let (dir, letters) = (self.dir.clone(), Arc::clone(&self.letters));
        blocking(move || {
            dir.prepare(Some(FOLDER))?;
            letters.append(&dead)
        })
        .await
    }

    async fn dead(&self) -> Result<(u64, String), Error> {
        let letters = Arc::clone(&self.letters);
        blocking(move || Ok((letters.count()?, letters.rotated.newest().display().to_string())))
            .await
    }
}

#[cfg(test)]
mod tests;
