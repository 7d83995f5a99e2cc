//! The ids of the log's last events, by which an event that is appended twice is recognised.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::name::{EventId, SandboxId};
use crate::store::rotation::{LineHead, RotatedLog};

/// Slack for the clock of another process, in seconds.
pub(super) const CLOCK_SLACK_S: u64 = 600;

/// Events that are looked at, however old the new one is.
const AT_LEAST: usize = 4096;

/// Events that are remembered before old ones are let go.
const AT_MOST: usize = 16_384;

/// After how many older events in a row a search ends. Events are only roughly in the order of their times: what a
/// crash left pending is appended late.
const OLDER_IN_A_ROW: usize = 256;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WindowExtent {
    #[default]
    Nothing,
    /// At least the events that happened since.
    Since(Time),
    All,
}

/// An event's place in the log's order, and in its sandbox's.
pub(super) type EventPosition = (u64, Option<u64>);

/// Knowledge of the log's end.
#[derive(Debug, Default)]
pub(super) struct EventWindow {
    inode: u64,
    read: u64,
    last_seq: u64,
    numbers: HashMap<EventId, EventPosition>,
    /// The last number of each sandbox's own.
    of: HashMap<SandboxId, u64>,
    /// In the log's order.
    order: VecDeque<(EventId, Time)>,
    extent: WindowExtent,
}

impl EventWindow {
    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The last number of a sandbox's own; 0 where none is known.
    pub(super) fn last_of(&self, sandbox: &SandboxId) -> u64 {
        self.of.get(sandbox).copied().unwrap_or(0)
    }

    /// The place that this event has already.
    pub(super) fn position_of(&self, id: &EventId) -> Option<EventPosition> {
        self.numbers.get(id).copied()
    }

    pub(super) fn note(&mut self, head: LineHead) {
        self.last_seq = self.last_seq.max(head.seq);
        if let Some((sandbox, number)) = head.sandbox_id.zip(head.sandbox_seq) {
            let last = self.of.entry(sandbox).or_default();
            *last = number.max(*last);
        }
        // The first one counts.
        self.numbers.entry(head.id.clone()).or_insert((head.seq, head.sandbox_seq));
        self.order.push_back((head.id, head.time));
    }

    /// Lets old events go when there are too many.
    ///
    /// Only what is older than any new event may be: else each append would have to read it again.
    pub(super) fn trim(&mut self) {
        let Some(old) = self.order.back().map(|(_, time)| time.minus_seconds(CLOCK_SLACK_S)) else {
            return;
        };
        while self.order.len() > AT_MOST && self.order.front().is_some_and(|(_, time)| *time < old)
        {
            if let Some((id, time)) = self.order.pop_front() {
                self.numbers.remove(&id);
                self.extent = match self.extent {
                    WindowExtent::Since(since) => WindowExtent::Since(since.max(time)),
                    _ => WindowExtent::Since(time),
                };
            }
        }
    }

    /// Forgets everything; the next use reads it again.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Bytes in the file now were read or written by us.
    pub(super) fn written_up_to(&mut self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        (self.inode, self.read) = (found.ino(), found.len());
        Ok(())
    }

    /// Takes in what other processes appended, and older events as far back as `since`.
    pub(super) fn catch_up(&mut self, rotated: &RotatedLog, since: Time) -> Result<(), Error> {
        let reaches = match self.extent {
            WindowExtent::Nothing => false,
            WindowExtent::Since(extent) => extent <= since,
            WindowExtent::All => true,
        };
        let opened = rotated.open()?;
        if let Some(newest) =
            opened.first().filter(|newest| newest.inode == self.inode && newest.len >= self.read)
            && reaches
        {
            let mut heads = Vec::new();
            self.read = newest.lines_after(self.read, |line| {
                heads.extend(serde_json::from_slice::<LineHead>(line));
            })?;
            for head in heads {
                self.note(head);
            }
            return Ok(());
        }
        self.forget();
        let mut heads = Vec::new();
        let mut older = 0;
        let mut all = true;
        for log_file in &opened {
            all = log_file.lines_back(|line| {
                let Ok(head) = serde_json::from_slice::<LineHead>(line) else { return true };
                older = if head.time < since { older + 1 } else { 0 };
                heads.push(head);
                heads.len() < AT_LEAST || older < OLDER_IN_A_ROW
            })?;
            if !all {
                break;
            }
        }
        self.extent = if all { WindowExtent::All } else { WindowExtent::Since(since) };
        for head in heads.into_iter().rev() {
            self.note(head);
        }
        if let Some(newest) = opened.first().filter(|log_file| log_file.is_newest) {
            (self.inode, self.read) = (newest.inode, newest.len);
        }
        Ok(())
    }
}
