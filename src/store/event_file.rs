//! `events.jsonl`: an event a line, appended by every process under the file's lock, which alone numbers them.
//!
//! Lines are never changed. A line that a crash left unfinished is ended by the next writer; readers pass over lines
//! that cannot be read. At 64 MiB the file becomes `events.jsonl.1`, up to `.4`, and up to `.16` while the State Hub still
//! needs what is in them; numbers go on.
//!
//! **Appending twice.** An event whose id is in the log already keeps its number. The log is searched back through
//! its last 4096 events at least, and further as long as they are not older than the event itself (less ten minutes
//! for clocks that differ): an event cannot have been appended before it happened.
//!
//! **Numbers.** `events.numbers` has the last ones as well: a log that is lost or damaged makes none be used again.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::event::{Event, PendingEvent};
use crate::domain::name::SandboxId;
use crate::store::event_numbers::{Numbers, OpenNumbers};
use crate::store::event_pages::read_page;
use crate::store::event_reading::{is_older, read_log_file, read_newest};
use crate::store::event_window::{CLOCK_SLACK_S, EventWindow};
use crate::store::files::{DataDir, blocking, io_error, open_private, sync_folder};
use crate::store::history::ends_torn;
use crate::store::lock::FileLock;
use crate::store::outbox::first_needed;
use crate::store::reserve::or_from_reserve;
use crate::store::rotation::{LineHead, LogFile, RotatedLog};
use crate::store::{EventFilter, EventLog, EventPage, UnreadableLines};

/// Size at which the file is rotated, in bytes.
const LIMIT: u64 = 64 * 1024 * 1024;

/// The event log, in files.
pub struct EventFile {
    lock: FileLock,
    log: Arc<Log>,
}

struct Log {
    dir: DataDir,
    rotated: RotatedLog,
    limit: u64,
    window: Mutex<EventWindow>,
    numbers: Mutex<Numbers>,
    /// The newest file as it was seen last, and the last number then: while it is the same, nothing is new.
    seen: Mutex<Option<(Mark, u64)>>,
    /// Whether files are kept until the State Hub has what is in them.
    is_delivered: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    len: u64,
}

impl EventFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self::with_limit(dir, LIMIT)
    }

    fn with_limit(dir: &DataDir, limit: u64) -> Self {
        let log = Log {
            dir: dir.clone(),
            rotated: RotatedLog::new(dir.join("events.jsonl")),
            limit,
            window: Mutex::default(),
            numbers: Mutex::new(Numbers::new(dir.join("events.numbers"))),
            seen: Mutex::default(),
            is_delivered: AtomicBool::new(false),
        };
        Self { lock: FileLock::new(dir, "events"), log: Arc::new(log) }
    }

    /// Keeps files beyond the four until the State Hub has what is in them, up to a bound.
    pub fn keep_for_delivery(&self) {
        self.log.is_delivered.store(true, Ordering::Relaxed);
    }
}

impl Log {
    fn append(&self, events: Vec<PendingEvent>) -> Result<Vec<Event>, Error> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let appended = self.append_to(&mut window, events);
        match &appended {
            Ok(_) => window.trim(),
            // Events that were not written may be in it.
            Err(_) => window.forget(),
        }
        appended
    }

    fn append_to(
        &self,
        window: &mut EventWindow,
        events: Vec<PendingEvent>,
    ) -> Result<Vec<Event>, Error> {
        let Some(oldest) = events.iter().map(|event| event.time).min() else {
            return Ok(Vec::new());
        };
        let path = self.rotated.newest();
        let failed = |error| io_error("write", path, error);
        self.dir.prepare(None)?;
        let mut file = open_private(path).map_err(failed)?;
        let mut len = file.metadata().map_err(failed)?.len();
        if ends_torn(&mut file, len).map_err(failed)? {
            // Nobody else writes now: that line's writer is dead. Once it has an end it counts, or is passed over.
            file.write_all(b"\n").map_err(failed)?;
            len += 1;
        }
        window.catch_up(&self.rotated, oldest.minus_seconds(CLOCK_SLACK_S))?;
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut numbers = numbers.open(&self.rotated)?;
        let (numbered, lines) = number(window, &numbers, events)?;
        if lines.is_empty() {
            return Ok(numbered);
        }
        if len > 0 && len + lines.len() as u64 > self.limit {
            self.rotated.rotate(self.first_needed())?;
            file = open_private(path).map_err(failed)?;
            len = 0;
        }
        let write = || {
            file.set_len(len)?;
            file.write_all(&lines)?;
            file.sync_data()
        };
        if let Err(error) = or_from_reserve(path.parent().unwrap_or(path), write) {
            // A full disk: take back the part that was written.
            let _ = file.set_len(len);
            return Err(failed(error));
        }
        if len == 0 {
            sync_folder(path.parent().unwrap_or(path)).map_err(failed)?;
        }
        window.written_up_to(&file).map_err(failed)?;
        let of: HashMap<&SandboxId, u64> = numbered
            .iter()
            .filter_map(|event| event.sandbox_id.as_ref().zip(event.sandbox_seq))
            .collect();
        if let Err(error) =
            numbers.put(window.last_seq(), of.iter().map(|(sandbox, number)| (*sandbox, number)))
        {
            // The log has them too: the next writer goes on behind these.
            tracing::warn!(%error, "the last numbers of events were not written down");
        }
        Ok(numbered)
    }

    /// Number from which on the State Hub needs events; none where nobody delivers.
    fn first_needed(&self) -> Option<u64> {
        self.is_delivered.load(Ordering::Relaxed).then(|| first_needed(&self.dir))
    }

    /// Whether nothing was appended since this process looked last, and the last number if so.
    fn unchanged(&self) -> Option<u64> {
        let (mark, last) = (*self.seen.lock().unwrap_or_else(PoisonError::into_inner))?;
        (self.mark()? == mark).then_some(last)
    }

    fn mark(&self) -> Option<Mark> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(self.rotated.newest()).ok()?;
        Some(Mark { inode: found.ino(), len: found.len() })
    }

    /// The events after a number, read from the end backwards.
    fn tail(&self, after: u64) -> Result<Vec<Event>, Error> {
        if self.unchanged().is_some_and(|last| last <= after) {
            return Ok(Vec::new());
        }
        let log_files = self.rotated.open()?;
        let mut last = None;
        let mut events = Vec::new();
        for log_file in &log_files {
            let going_on = log_file.lines_back(|line| {
                let Ok(event) = serde_json::from_slice::<Event>(line) else { return true };
                last.get_or_insert(event.seq);
                let newer = event.seq > after;
                if newer {
                    events.push(event);
                }
                newer
            })?;
            if !going_on {
                break;
            }
        }
        self.remember(&log_files, last);
        events.reverse();
        Ok(events)
    }

    fn remember(&self, log_files: &[LogFile], last: Option<u64>) {
        let newest = log_files.first().filter(|log_file| log_file.is_newest);
        let mark = newest.map(|log_file| Mark { inode: log_file.inode, len: log_file.len });
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            mark.map(|mark| (mark, last.unwrap_or(0)));
    }

    fn last_seq(&self) -> Result<u64, Error> {
        if let Some(last) = self.unchanged() {
            return Ok(last);
        }
        let log_files = self.rotated.open()?;
        let mut last = None;
        for log_file in &log_files {
            last = log_file.last_seq()?;
            if last.is_some() {
                break;
            }
        }
        self.remember(&log_files, last);
        Ok(last.unwrap_or(0))
    }

    /// The lines of every file that cannot be read, the oldest file first.
    fn unreadable_lines(&self) -> Result<Vec<UnreadableLines>, Error> {
        let mut found = Vec::new();
        // No event passes: only whether it can be read counts.
        let none =
            EventFilter { since: Some(Time::new(jiff::Timestamp::MAX)), ..EventFilter::default() };
        for log_file in self.rotated.open()?.iter().rev() {
            let file = log_file.path.display().to_string();
            let lines = read_log_file(log_file, &none, &mut Vec::new())
                .map_err(|error| io_error("read", &log_file.path, error))?;
            if !lines.is_empty() {
                found.push(UnreadableLines { file, lines });
            }
        }
        Ok(found)
    }

    /// The events that pass, oldest first.
    fn read(&self, filter: &EventFilter) -> Result<Vec<Event>, Error> {
        if let Some(newest) = filter.newest {
            return read_newest(&self.rotated, filter, newest);
        }
        if let Some(after) = filter.after_seq {
            // From the end back: mostly little is asked for.
            let mut events = self.tail(after)?;
            events.retain(|event| filter.matches(event));
            return Ok(events);
        }
        let mut events = Vec::new();
        for log_file in self.rotated.open()?.iter().rev() {
            if is_older(log_file, filter) {
                continue;
            }
            let lines = read_log_file(log_file, filter, &mut events)
                .map_err(|error| io_error("read", &log_file.path, error))?;
            if !lines.is_empty() {
                tracing::warn!(file = %log_file.path.display(), ?lines, "passed over lines that cannot be read");
            }
        }
        Ok(events)
    }
}

/// Gives each event its numbers, and writes the lines of those that are new.
fn number(
    window: &mut EventWindow,
    numbers: &OpenNumbers<'_>,
    events: Vec<PendingEvent>,
) -> Result<(Vec<Event>, Vec<u8>), Error> {
    let mut lines = Vec::new();
    let mut numbered = Vec::with_capacity(events.len());
    for event in events {
        let known = window.position_of(&event.id);
        let (seq, sandbox_seq) = known.unwrap_or_else(|| {
            let next_of = |sandbox| window.last_of(sandbox).max(numbers.last_of(sandbox)) + 1;
            (window.last_seq().max(numbers.last()) + 1, event.sandbox_id.as_ref().map(next_of))
        });
        let event = event.numbered(seq, sandbox_seq);
        if known.is_none() {
            serde_json::to_writer(&mut lines, &event).map_err(|error| {
                Error::internal("an event cannot be written as JSON").because(error)
            })?;
            lines.push(b'\n');
            window.note(LineHead {
                seq,
                id: event.id.clone(),
                time: event.time,
                sandbox_id: event.sandbox_id.clone(),
                sandbox_seq,
            });
        }
        numbered.push(event);
    }
    Ok((numbered, lines))
}

#[async_trait]
impl EventLog for EventFile {
    async fn append(&self, events: Vec<PendingEvent>) -> Result<Vec<Event>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let guard = self.lock.acquire().await?;
        let log = Arc::clone(&self.log);
        blocking(move || {
            let appended = log.append(events);
            drop(guard);
            appended
        })
        .await
    }

    async fn read(&self, filter: &EventFilter) -> Result<Vec<Event>, Error> {
        let (log, filter) = (Arc::clone(&self.log), filter.clone());
        blocking(move || log.read(&filter)).await
    }

    async fn tail(&self, after: u64) -> Result<Vec<Event>, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || log.tail(after)).await
    }

    async fn unreadable_lines(&self) -> Result<Vec<UnreadableLines>, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || log.unreadable_lines()).await
    }

    async fn last_seq(&self) -> Result<u64, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || log.last_seq()).await
    }

    async fn page(&self, page: EventPage) -> Result<Vec<Event>, Error> {
        let log = Arc::clone(&self.log);
        blocking(move || read_page(&log.rotated, &page)).await
    }

    async fn drop_delivered(&self) -> Result<(), Error> {
        if !self.log.rotated.has_more_than_kept() {
            return Ok(());
        }
        let guard = self.lock.acquire().await?;
        let log = Arc::clone(&self.log);
        blocking(move || {
            let dropped = log.rotated.drop_delivered(log.first_needed());
            drop(guard);
            dropped
        })
        .await
    }
}

#[cfg(test)]
mod tests;
