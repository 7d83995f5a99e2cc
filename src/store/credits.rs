//! `credits.jsonl`: the ledger, an entry a line in integer micro-USD, appended by every process under the file's lock.
//!
//! Lines are never changed, and count once they have their end. A last line without one is of a writer that died: the next writer
//! ends it where it is whole, and else cuts it, with a warning; nobody was told that it was written. Any other line that cannot be
//! read is an error, for readers too: a balance without it would be a wrong one.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::credit::{EntryKind, HistoryEntry, LedgerEntry, LedgerSums};
use crate::domain::error::{Code, Error};
use crate::domain::name::{EventId, SandboxId};
use crate::domain::{Time, Usd};
use crate::store::corruption::{Position, corrupt, words};
use crate::store::files::{DataDir, blocking, io_error, open_private, open_stamped, sync_folder};
use crate::store::lock::FileLock;
use crate::store::reserve::or_from_reserve;
use crate::store::{CreditStore, Held};

/// The ledger, in a file.
pub struct CreditFile {
    lock: FileLock,
    holders: FileLock,
    log: Arc<Log>,
}

struct Log {
    dir: DataDir,
    path: PathBuf,
    known: Mutex<Known>,
}

/// The part of the file that was read.
#[derive(Debug, Default, Clone)]
struct Known {
    inode: u64,
    read: u64,
    lines: usize,
    sums: LedgerSums,
    ids: HashSet<EventId>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EntryLine {
    id: EventId,
    time: Time,
    kind: EntryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sandbox_id: Option<SandboxId>,
    micro_usd: i64,
    actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl From<LedgerEntry> for EntryLine {
    fn from(entry: LedgerEntry) -> Self {
        let LedgerEntry { id, time, kind, sandbox_id, usd, actor, note } = entry;
        Self { id, time, kind, sandbox_id, micro_usd: usd.micros(), actor, note }
    }
}

impl From<EntryLine> for LedgerEntry {
    fn from(line: EntryLine) -> Self {
        let EntryLine { id, time, kind, sandbox_id, micro_usd, actor, note } = line;
        Self { id, time, kind, sandbox_id, usd: Usd::from_micros(micro_usd), actor, note }
    }
}

impl CreditFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        let log =
            Log { dir: dir.clone(), path: dir.join("credits.jsonl"), known: Mutex::default() };
        Self {
            lock: FileLock::new(dir, "credits"),
            holders: FileLock::new(dir, "holds"),
            log: Arc::new(log),
        }
    }
}

impl Known {
    /// Counts a line, without its end.
    fn count(&mut self, line: &[u8]) -> Result<LedgerEntry, LineError> {
        let entry: LedgerEntry = serde_json::from_slice::<EntryLine>(line)?.into();
        if !self.ids.insert(entry.id.clone()) {
            return Err(LineError::Rule(format!("an earlier entry has its id, {}", entry.id)));
        }
        if let EntryKind::Other(word) = &entry.kind {
            return Err(LineError::Newer(word.clone()));
        }
        self.sums.count(&entry).map_err(LineError::Rule)?;
        self.lines += 1;
        self.read += line.len() as u64 + 1;
        Ok(entry)
    }
}

/// Reason for which a line does not count.
enum LineError {
    Json(serde_json::Error),
    Newer(String),
    Rule(String),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl Log {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what was appended since; what stands behind the last line end. Each entry is `seen` once.
    fn catch_up(
        &self,
        known: &mut Known,
        file: &mut File,
        mut seen: impl FnMut(LedgerEntry, &LedgerSums),
    ) -> Result<Vec<u8>, Error> {
        let failed = |error| io_error("read", &self.path, error);
        let found = file.metadata().map_err(failed)?;
        if found.ino() != known.inode || found.len() < known.read {
            *known = Known { inode: found.ino(), ..Known::default() };
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(known.read)).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = bytes.split_off(whole);
        bytes.pop();
        if whole == 0 {
            return Ok(tail);
        }
        for line in bytes.split(|byte| *byte == b'\n') {
            let number = known.lines + 1;
            match known.count(line) {
                Ok(entry) => seen(entry, &known.sums),
                Err(line_error) => {
                    *known = Known::default();
                    return Err(self.unreadable(number, line_error));
                }
            }
        }
        Ok(tail)
    }

    fn unreadable(&self, line: usize, line_error: LineError) -> Error {
        let (path, what) = (&self.path, format!("entry {line} of the ledger"));
        let start = Position { line, column: 1 };
        let error = match line_error {
            LineError::Json(error) => {
                corrupt(path, &what, Position::of_json(&error, start), words(&error))
            }
            LineError::Rule(why) => corrupt(path, &what, start, why),
            LineError::Newer(word) => {
                let message = format!(
                    "{}: {what} is of a kind that this version does not know, {word:?}; the file is left as it is",
                    path.display()
                );
                return Error::new(Code::StoreForeign, message)
                    .hint("upgrade sandboxer")
                    .detail("file", path.display().to_string())
                    .detail("line", line);
            }
        };
        error.hint(format!(
            "nothing is held or charged until it can be read: copy the file, then mend line {line} by what `sandboxer events \
             --kind credits.held` and the other kinds of credits.* say, or take the line out"
        ))
    }

    fn sums(&self) -> Result<LedgerSums, Error> {
        let mut known = self.known();
        let Some((mut file, _)) = open_stamped(&self.path)? else {
            *known = Known::default();
            return Ok(LedgerSums::default());
        };
        self.catch_up(&mut known, &mut file, |_, _| {})?;
        Ok(known.sums.clone())
    }

    fn history(&self) -> Result<Vec<HistoryEntry>, Error> {
        let Some((mut file, _)) = open_stamped(&self.path)? else { return Ok(Vec::new()) };
        let mut history = Vec::new();
        self.catch_up(&mut Known::default(), &mut file, |entry, ledger| {
            history.push(HistoryEntry { entry, balance_usd: ledger.balance() });
        })?;
        Ok(history)
    }

    fn append(&self, entries: Vec<LedgerEntry>) -> Result<Vec<LedgerEntry>, Error> {
        let failed = |error| io_error("write", &self.path, error);
        self.dir.prepare(None)?;
        let mut known = self.known();
        let mut file = open_private(&self.path).map_err(failed)?;
        let tail = self.catch_up(&mut known, &mut file, |_, _| {})?;
        if !tail.is_empty() {
            self.mend(&mut known, &mut file, &tail)?;
        }
        let (appended, after, lines) = with_entries(&known, entries)?;
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let len = known.read;
        let folder = self.path.parent().unwrap_or(&self.path);
        let write = || {
            file.set_len(len)?;
            file.write_all(&lines)?;
            file.sync_data()
        };
        if let Err(error) = or_from_reserve(folder, write) {
            // A full disk: take back the part that was written.
            let _ = file.set_len(len);
            *known = Known::default();
            return Err(failed(error));
        }
        if len == 0 {
            sync_folder(folder).map_err(failed)?;
        }
        *known = after;
        Ok(appended)
    }

    /// Ends a last line whose writer died, where it is whole, and else cuts it.
    fn mend(&self, known: &mut Known, file: &mut File, tail: &[u8]) -> Result<(), Error> {
        let failed = |error| io_error("write", &self.path, error);
        let path = self.path.display();
        let mut after = known.clone();
        if after.count(tail).is_ok() {
            file.write_all(b"\n").and_then(|()| file.sync_data()).map_err(failed)?;
            tracing::warn!(%path, "the last entry of the ledger had no end: its writer died; it counts");
            *known = after;
            return Ok(());
        }
        let text = String::from_utf8_lossy(tail);
        tracing::warn!(%path, bytes = tail.len(), cut = %text, "the last entry of the ledger was written in part: it is cut");
        file.set_len(known.read).and_then(|()| file.sync_data()).map_err(failed)
    }
}

/// Entries that are new, as they are appended; what is known then, and their lines.
fn with_entries(
    known: &Known,
    entries: Vec<LedgerEntry>,
) -> Result<(Vec<LedgerEntry>, Known, Vec<u8>), Error> {
    let (mut after, mut lines, mut appended) = (known.clone(), Vec::new(), Vec::new());
    for entry in entries {
        if entry.usd == Usd::ZERO || after.ids.contains(&entry.id) {
            continue;
        }
        let entry = after.sums.admit(entry)?;
        let unwritable =
            |why: String| Error::internal("an entry cannot be written to the ledger").because(why);
        let line = serde_json::to_vec(&EntryLine::from(entry.clone()))
            .map_err(|error| unwritable(error.to_string()))?;
        after.count(&line).map_err(|line_error| match line_error {
            LineError::Json(error) => unwritable(error.to_string()),
            LineError::Newer(why) | LineError::Rule(why) => unwritable(why),
        })?;
        lines.extend(line);
        lines.push(b'\n');
        appended.push(entry);
    }
    Ok((appended, after, lines))
}

#[async_trait]
impl CreditStore for CreditFile {
    async fn sums(&self) -> Result<LedgerSums, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || log.sums()).await
    }

    async fn append(&self, entries: Vec<LedgerEntry>) -> Result<Vec<LedgerEntry>, Error> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let guard = self.lock.acquire().await?;
        let log = Arc::clone(&self.log);
        blocking(move || {
            let appended = log.append(entries);
            drop(guard);
            appended
        })
        .await
    }

    async fn history(&self) -> Result<Vec<HistoryEntry>, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || log.history()).await
    }

    async fn lock_holders(&self) -> Result<Box<dyn Held>, Error> {
        Ok(Box::new(self.holders.acquire().await?))
    }
}
