//! The files of a rotated log: `events.jsonl`, `events.jsonl.1`, ... `.4`, newest first; more where something still needs them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::name::{EventId, SandboxId};
use crate::store::files::{in_the_way, io_error, no_wait};

const KEPT: usize = 4;

/// Rotated files that are kept at most, while what is in them is needed: a gibibyte of events.
const KEPT_AT_MOST: usize = 16;

/// Bytes that are read at once when a file is read backwards.
const CHUNK: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) struct RotatedLog {
    /// Newest first.
    paths: Vec<PathBuf>,
}

/// File, open; it is read as far as it went then, wherever it is renamed to.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) inode: u64,
    pub(super) len: u64,
    /// Whether it is the one that is appended to.
    pub(super) is_newest: bool,
}

/// Numbers of a line.
#[derive(Debug, Deserialize)]
pub(super) struct LineHead {
    pub(super) seq: u64,
    pub(super) id: EventId,
    pub(super) time: Time,
    #[serde(default)]
    pub(super) sandbox_id: Option<SandboxId>,
    #[serde(default)]
    pub(super) sandbox_seq: Option<u64>,
}

impl RotatedLog {
    pub(super) fn new(newest: PathBuf) -> Self {
        let older = (1..=KEPT_AT_MOST).map(|number| {
            let mut name = newest.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        });
        let mut paths: Vec<PathBuf> = older.collect();
        paths.insert(0, newest);
        Self { paths }
    }

    /// The path that is appended to.
    pub(super) fn newest(&self) -> &Path {
        &self.paths[0]
    }

    /// Opens all that are there, newest first, as they were at one moment.
    ///
    /// Another process may rotate between two opens, so that a file would be missed or come twice: it is done again
    /// until every name still stands for the file that was opened.
    pub(super) fn open(&self) -> Result<Vec<LogFile>, Error> {
        loop {
            let mut opened = Vec::new();
            for (index, path) in self.paths.iter().enumerate() {
                // A pipe in its place is not waited for.
                let opened_now = OpenOptions::new().read(true).custom_flags(no_wait()).open(path);
                let log_file = match opened_now {
                    Ok(file) => {
                        let found =
                            file.metadata().map_err(|error| io_error("read", path, error))?;
                        if !found.is_file() {
                            return Err(in_the_way(path));
                        }
                        let (inode, len) = (found.ino(), found.len());
                        Some(LogFile {
                            path: path.clone(),
                            file,
                            inode,
                            len,
                            is_newest: index == 0,
                        })
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => return Err(io_error("read", path, error)),
                };
                opened.push(log_file);
            }
            let as_before = self.paths.iter().zip(&opened).all(|(path, log_file)| {
                fs::metadata(path).ok().map(|found| found.ino())
                    == log_file.as_ref().map(|log_file| log_file.inode)
            });
            if as_before {
                return Ok(opened.into_iter().flatten().collect());
            }
        }
    }

    /// Whether there are more files than the four.
    pub(super) fn has_more_than_kept(&self) -> bool {
        self.paths[KEPT + 1..].iter().any(|path| path.exists())
    }

    /// Moves every file one place on; what is beyond the four, and has nothing from `needed` on, is dropped, and so is the oldest
    /// of as many as are kept at most. Call it under the log's lock.
    pub(super) fn rotate(&self, needed: Option<u64>) -> Result<(), Error> {
        self.drop_from(KEPT, needed)?;
        if self.paths[KEPT_AT_MOST].exists() {
            let file = self.paths[KEPT_AT_MOST].display();
            tracing::warn!(%file, "dropped with events that the State Hub did not take yet: no more files are kept");
        }
        for pair in self.paths.windows(2).rev() {
            match fs::rename(&pair[0], &pair[1]) {
                // A gap: a process died while it rotated.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|error| io_error("rotate", &pair[0], error))?,
            }
        }
        Ok(())
    }

    /// Drops what is beyond the four and has nothing from `needed` on. Call it under the log's lock.
    pub(super) fn drop_delivered(&self, needed: Option<u64>) -> Result<(), Error> {
        self.drop_from(KEPT + 1, needed)
    }

    fn drop_from(&self, first: usize, needed: Option<u64>) -> Result<(), Error> {
        let beyond = &self.paths[first..];
        for log_file in self.open()?.iter().filter(|log_file| beyond.contains(&log_file.path)) {
            let is_needed = match needed {
                Some(needed) => log_file.last_seq()?.is_some_and(|last| last >= needed),
                None => false,
            };
            if !is_needed {
                fs::remove_file(&log_file.path)
                    .map_err(|error| io_error("remove", &log_file.path, error))?;
            }
        }
        Ok(())
    }
}

/// Reads a file from a place on, as far as it went when it was opened.
pub(super) struct FromOffset<'a> {
    log_file: &'a LogFile,
    at: u64,
}

impl<'a> FromOffset<'a> {
    pub(super) fn new(log_file: &'a LogFile, place: u64) -> Self {
        Self { log_file, at: place }
    }
}

impl io::Read for FromOffset<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.log_file.len.saturating_sub(self.at);
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.log_file.file.read_at(&mut buffer[..left], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl LogFile {
    /// Visits its lines from the last to the first, while `visit` wants more. Whether it wanted all.
    ///
    /// Bytes behind the last line end are no line yet.
    pub(super) fn lines_back(&self, mut visit: impl FnMut(&[u8]) -> bool) -> Result<bool, Error> {
        let mut at = self.len;
        // Whole lines and the end of one that begins further up; ends with a line end once one was found.
        let mut text: Vec<u8> = Vec::new();
        let mut found_end = false;
        while at > 0 {
            let size = at.min(CHUNK);
            at -= size;
            let mut chunk = vec![0; usize::try_from(size).unwrap_or(0)];
            self.file
                .read_exact_at(&mut chunk, at)
                .map_err(|error| io_error("read", &self.path, error))?;
            chunk.append(&mut text);
            text = chunk;
            if !found_end {
                let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else {
                    // Still in the unfinished line.
                    text.clear();
                    continue;
                };
                text.truncate(end + 1);
                found_end = true;
            }
            while let Some(start) = line_start(&text, at == 0) {
                if !visit(&text[start..text.len() - 1]) {
                    return Ok(false);
                }
                text.truncate(start);
            }
        }
        Ok(true)
    }

    /// Lines after a place, first to last, and the place after them.
    pub(super) fn lines_after(
        &self,
        place: u64,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<u64, Error> {
        let mut text = vec![0; usize::try_from(self.len.saturating_sub(place)).unwrap_or(0)];
        self.file
            .read_exact_at(&mut text, place)
            .map_err(|error| io_error("read", &self.path, error))?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text[..whole].split(|byte| *byte == b'\n').for_each(&mut visit);
        Ok(place + whole as u64)
    }

    pub(super) fn last_seq(&self) -> Result<Option<u64>, Error> {
        let mut last = None;
        self.lines_back(|line| {
            last = serde_json::from_slice::<LineHead>(line).ok().map(|head| head.seq);
            last.is_none()
        })?;
        Ok(last)
    }

    pub(super) fn modified(&self) -> Option<Time> {
        let modified = self.file.metadata().ok()?.modified().ok()?;
        jiff::Timestamp::try_from(modified).ok().map(Time::new)
    }
}

/// Where the last line of `text` (which ends with a line end) begins, if its beginning is in it.
fn line_start(text: &[u8], is_whole: bool) -> Option<usize> {
    let body = text.len().checked_sub(1)?;
    match text[..body].iter().rposition(|byte| *byte == b'\n') {
        Some(end) => Some(end + 1),
        None => is_whole.then_some(0),
    }
}
