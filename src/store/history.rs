//! `history.jsonl`: destroyed sandboxes, a line each, only ever appended to.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::SandboxRecord;
use crate::domain::error::Error;
use crate::store::UnreadableLines;
use crate::store::document_entry::{key_of, parse};
use crate::store::files::{DataDir, blocking, io_error, open_private, open_stamped, sync_folder};

/// The history. Whoever appends holds the lock of `sandboxes.json`.
#[derive(Debug, Clone)]
pub(super) struct History {
    dir: DataDir,
    path: PathBuf,
    ids: Arc<Mutex<Ids>>,
}

/// The ids of the part that was read.
#[derive(Debug, Default)]
struct Ids {
    inode: u64,
    read: u64,
    known: HashSet<String>,
}

impl History {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone(), path: dir.join("history.jsonl"), ids: Arc::default() }
    }

    /// Whether a sandbox with this id is in it.
    pub(super) async fn has(&self, id: &str) -> Result<bool, Error> {
        let (history, id) = (self.clone(), id.to_owned());
        blocking(move || history.contains(&id)).await
    }

    /// [`Self::has`], for who is on a thread that may wait.
    pub(super) fn contains(&self, id: &str) -> Result<bool, Error> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((mut file, _)) = open_stamped(&self.path)? else {
            *ids = Ids::default();
            return Ok(false);
        };
        self.catch_up(&mut file, &mut ids)?;
        Ok(ids.known.contains(id))
    }

    /// Reads the lines that were appended since the last time.
    fn catch_up(&self, file: &mut File, ids: &mut Ids) -> Result<(), Error> {
        let failed = |error| io_error("read", &self.path, error);
        let found = file.metadata().map_err(failed)?;
        if found.ino() != ids.inode || found.len() < ids.read {
            *ids = Ids { inode: found.ino(), ..Ids::default() };
        }
        if found.len() == ids.read {
            return Ok(());
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(ids.read)).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        // A last line without its end is not there yet, or never will be.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        ids.known.extend(bytes[..whole].split(|byte| *byte == b'\n').filter_map(id_of));
        ids.read += whole as u64;
        Ok(())
    }

    /// Appends records (each a JSON text without line breaks) so that a power cut does not lose them.
    pub(super) fn append(&self, lines: &[String]) -> Result<(), Error> {
        let failed = |error| io_error("write", &self.path, error);
        self.dir.prepare(None)?;
        let mut file = open_private(&self.path).map_err(failed)?;
        let before = file.metadata().map_err(failed)?.len();
        let mut text = lines.join("\n");
        if ends_torn(&mut file, before).map_err(failed)? {
            // A writer died in the middle of a line. Its record is still in the store; the line stays as it is.
            text.insert(0, '\n');
        }
        text.push('\n');
        if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
            // A full disk: take back the half that was written.
            let _ = file.set_len(before);
            return Err(failed(error));
        }
        if before == 0 {
            sync_folder(self.path.parent().unwrap_or(&self.path)).map_err(failed)?;
        }
        Ok(())
    }

    /// All records in it, in its order, each id once; and the lines that cannot be read.
    pub(super) fn read(&self) -> Result<(Vec<Arc<SandboxRecord>>, Option<UnreadableLines>), Error> {
        let Some((mut file, _)) = open_stamped(&self.path)? else { return Ok((Vec::new(), None)) };
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(|error| io_error("read", &self.path, error))?;
        let mut seen = HashSet::new();
        let mut lines = Vec::new();
        let mut records = Vec::new();
        for (number, line) in
            (1..).zip(bytes.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty())
        {
            let record = std::str::from_utf8(line).ok().and_then(|line| parse(line).ok());
            match record {
                Some::<SandboxRecord>(record) => {
                    if seen.insert(record.id.clone()) {
                        records.push(Arc::new(record));
                    }
                }
                None => lines.push(number),
            }
        }
        if !lines.is_empty() {
            tracing::warn!(file = %self.path.display(), ?lines, "passed over lines that cannot be read");
        }
        let file = self.path.display().to_string();
        Ok((records, (!lines.is_empty()).then_some(UnreadableLines { file, lines })))
    }
}

/// Whether a file's last line has no end.
pub(super) fn ends_torn(file: &mut File, len: u64) -> std::io::Result<bool> {
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

fn id_of(line: &[u8]) -> Option<String> {
    key_of(std::str::from_utf8(line).ok()?).map(Cow::into_owned)
}
