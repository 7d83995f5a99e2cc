//! `events.numbers`: the last number that an event was given, of all and of each sandbox's own. Beside the log, so that no number
//! is used again when the log is lost or cannot be read.
//!
//! A line a key, all of one width: a number is written over in place. The log is written first: who dies in between leaves the
//! numbers behind the log's last events, and the next writer knows those.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::store::files::{io_error, no_wait, open_private_as};
use crate::store::rotation::{LineHead, RotatedLog};

/// The key of the number of all events; no sandbox's id.
const ALL: &str = "*";

/// Columns of a key; a sandbox's id has 31 at most.
const KEY: usize = 40;

/// Columns of a number.
const NUMBER: usize = 20;

/// The largest file that is read: a million sandboxes; bytes.
const LARGEST: u64 = 1_000_000 * LINE;

const LINE: u64 = (KEY + NUMBER + 2) as u64;

/// The file, and where each key's line is. Every use is under the log's lock.
#[derive(Debug)]
pub(super) struct Numbers {
    path: PathBuf,
    inode: u64,
    read: u64,
    lines: HashMap<String, u64>,
}

/// The numbers while the log is appended to.
pub(super) struct OpenNumbers<'a> {
    numbers: &'a mut Numbers,
    /// None where it cannot be used: the log's own numbers count then.
    file: Option<File>,
}

impl Numbers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, inode: 0, read: 0, lines: HashMap::new() }
    }

    /// Opens them, with what other processes added; where there are none they are what the log says. A file that cannot be used is
    /// told in the log, and keeps no event from being written.
    pub(super) fn open(&mut self, rotated: &RotatedLog) -> Result<OpenNumbers<'_>, Error> {
        let file = match self.usable() {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the last numbers of events cannot be read");
                self.lines.clear();
                return Ok(OpenNumbers { numbers: self, file: None });
            }
        };
        let is_new = !self.lines.contains_key(ALL);
        let mut open = OpenNumbers { numbers: self, file: Some(file) };
        if is_new {
            open.take_from(rotated)?;
        }
        Ok(open)
    }

    /// The file, read to its end. A pipe in its place is not waited for.
    fn usable(&mut self) -> io::Result<File> {
        let file = open_private_as(
            &self.path,
            OpenOptions::new().read(true).write(true).custom_flags(no_wait()),
        )?;
        let found = file.metadata()?;
        if !found.is_file() || found.len() > LARGEST {
            return Err(io::Error::other("it is no file of numbers; move it away"));
        }
        self.catch_up(&file)?;
        Ok(file)
    }

    fn catch_up(&mut self, file: &File) -> io::Result<()> {
        let found = file.metadata()?;
        if found.ino() != self.inode || found.len() < self.read {
            (self.inode, self.read) = (found.ino(), 0);
            self.lines.clear();
        }
        // A line that somebody died over is written anew.
        let whole = found.len() - found.len() % LINE;
        let mut text = vec![0; usize::try_from(whole - self.read).unwrap_or_default()];
        file.read_exact_at(&mut text, self.read)?;
        for (line, at) in text.chunks_exact(LINE as usize).zip((self.read..).step_by(LINE as usize))
        {
            let key = std::str::from_utf8(&line[..KEY]).unwrap_or_default().trim_end();
            if !key.is_empty() {
                self.lines.insert(key.to_owned(), at);
            }
        }
        self.read = whole;
        Ok(())
    }
}

impl OpenNumbers<'_> {
    /// The last number of all; 0 where none is known.
    pub(super) fn last(&self) -> u64 {
        self.get(ALL)
    }

    /// The last number of a sandbox's own; 0 where none is known.
    pub(super) fn last_of(&self, sandbox: &SandboxId) -> u64 {
        self.get(sandbox.as_str())
    }

    fn get(&self, key: &str) -> u64 {
        let Some(at) = self.numbers.lines.get(key) else { return 0 };
        let mut number = [0; NUMBER];
        let read =
            self.file.as_ref().map(|file| file.read_exact_at(&mut number, at + KEY as u64 + 1));
        let text = read.and_then(Result::ok).and_then(|()| std::str::from_utf8(&number).ok());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Writes the last numbers down.
    pub(super) fn put<'a>(
        &mut self,
        last: u64,
        of: impl Iterator<Item = (&'a SandboxId, &'a u64)>,
    ) -> io::Result<()> {
        self.set(ALL, last)?;
        for (sandbox, number) in of {
            self.set(sandbox.as_str(), *number)?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, number: u64) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let line = format!("{key:<KEY$} {number:>NUMBER$}\n");
        match self.numbers.lines.get(key) {
            Some(at) => file.write_all_at(line.as_bytes(), *at),
            // An id that has no room has no number beside the log's.
            None if line.len() as u64 != LINE => Ok(()),
            None => {
                file.write_all_at(line.as_bytes(), self.numbers.read)?;
                self.numbers.lines.insert(key.to_owned(), self.numbers.read);
                self.numbers.read += LINE;
                Ok(())
            }
        }
    }

    /// Numbers of a log that was written before there were numbers beside it.
    fn take_from(&mut self, rotated: &RotatedLog) -> Result<(), Error> {
        let mut last = 0;
        let mut of: HashMap<SandboxId, (u64, u64)> = HashMap::new();
        for log_file in rotated.open()? {
            log_file.lines_back(|line| {
                if let Ok(head) = serde_json::from_slice::<LineHead>(line) {
                    last = last.max(head.seq);
                    if let Some(sandbox) = head.sandbox_id {
                        let (count, highest) = of.entry(sandbox).or_default();
                        *count += 1;
                        *highest = head.sandbox_seq.unwrap_or(0).max(*highest);
                    }
                }
                true
            })?;
        }
        let of: HashMap<SandboxId, u64> =
            of.into_iter().map(|(id, (count, highest))| (id, count.max(highest))).collect();
        self.put(last, of.iter()).map_err(|error| io_error("write", &self.numbers.path, error))
    }
}
