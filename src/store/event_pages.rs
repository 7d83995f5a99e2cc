//! Pages of the event log: what comes after a number, oldest first, without reading what comes before.

use std::io::{self, BufRead, BufReader};

use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::outbox::EventsOf;
use crate::store::EventPage;
use crate::store::files::io_error;
use crate::store::rotation::{FromOffset, LineHead, LogFile, RotatedLog};

/// Bytes that are read from their start to their end in search of a line.
const SMALL: u64 = 64 * 1024;

/// Events of a page, oldest first.
pub(super) fn read_page(rotated: &RotatedLog, page: &EventPage) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    for log_file in rotated.open()?.iter().rev() {
        // A file that ends before the page begins.
        if !log_file.is_newest && log_file.last_seq()?.is_none_or(|last| last <= page.after) {
            continue;
        }
        let failed = |error| io_error("read", &log_file.path, error);
        let place = place_after(log_file, page.after).map_err(failed)?;
        if add(log_file, place, page, &mut events).map_err(failed)? {
            break;
        }
    }
    Ok(events)
}

/// Adds a file's events of a page from a place on; whether the page is full.
fn add(
    log_file: &LogFile,
    place: u64,
    page: &EventPage,
    events: &mut Vec<Event>,
) -> io::Result<bool> {
    let mut lines = Lines::from(log_file, place);
    while events.len() < page.at_most {
        let Some(line) = lines.next_line()? else { return Ok(false) };
        let Ok(line) = std::str::from_utf8(line) else { continue };
        // The id stands in its line as it is: most lines of others need not be understood.
        if let Some(EventsOf::Sandbox(id)) = &page.of
            && !line.contains(id.as_str())
        {
            continue;
        }
        let Ok(event) = serde_json::from_str::<Event>(line) else { continue };
        if page.up_to.is_some_and(|last| event.seq > last) {
            return Ok(true);
        }
        let is_of = page.of.as_ref().is_none_or(|of| EventsOf::event(&event) == *of);
        if event.seq > page.after && is_of {
            events.push(event);
        }
    }
    Ok(true)
}

/// Place at which a search for the first event with a number above `after` begins: the lines before have lower ones, since
/// numbers rise. Found by halves.
fn place_after(log_file: &LogFile, after: u64) -> io::Result<u64> {
    // Every line that begins before `low`, which begins one, has a number up to `after`.
    let (mut low, mut high) = (0, log_file.len);
    while high - low > SMALL {
        let middle = low + (high - low) / 2;
        match first_head(log_file, middle, high)? {
            Some((head, end)) if head.seq <= after => low = end,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

/// The first line that begins after `place` and before `high` and can be read, and where it ends.
fn first_head(log_file: &LogFile, place: u64, high: u64) -> io::Result<Option<(LineHead, u64)>> {
    let mut lines = Lines::from(log_file, place);
    // The rest of a line that begins before.
    if lines.next_line()?.is_none() {
        return Ok(None);
    }
    while lines.at < high {
        let Some(line) = lines.next_line()? else { return Ok(None) };
        if let Ok(head) = serde_json::from_slice::<LineHead>(line) {
            return Ok(Some((head, lines.at)));
        }
    }
    Ok(None)
}

/// Lines of a file from a place on, each whole.
struct Lines<'a> {
    reader: BufReader<FromOffset<'a>>,
    line: Vec<u8>,
    /// Where the next one begins.
    at: u64,
}

impl<'a> Lines<'a> {
    fn from(log_file: &'a LogFile, place: u64) -> Self {
        let reader = BufReader::with_capacity(SMALL as usize, FromOffset::new(log_file, place));
        Self { reader, line: Vec::new(), at: place }
    }

    /// None at the end; a line without an end is one that somebody writes right now.
    fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let read = self.reader.read_until(b'\n', &mut self.line)?;
        self.at += read as u64;
        Ok((read > 0 && self.line.pop() == Some(b'\n')).then_some(self.line.as_slice()))
    }
}

#[cfg(test)]
mod tests;
