//! Reading of the event log by a filter: a file from its start, or the newest from the end.

use std::io::{self, BufRead, BufReader};

use crate::domain::error::Error;
use crate::domain::event::{Event, EventKind};
use crate::store::EventFilter;
use crate::store::event_window::CLOCK_SLACK_S;
use crate::store::rotation::{FromOffset, LogFile, RotatedLog};

/// Whether a file has only events of before the filter's time: its last line was written then, and no event is appended
/// before it happened.
pub(super) fn is_older(log_file: &LogFile, filter: &EventFilter) -> bool {
    match (filter.since, log_file.modified()) {
        (Some(since), Some(written)) => {
            !log_file.is_newest && written < since.minus_seconds(CLOCK_SLACK_S)
        }
        _ => false,
    }
}

/// The newest events that pass, oldest first; no more than these are ever held.
pub(super) fn read_newest(
    rotated: &RotatedLog,
    filter: &EventFilter,
    newest: usize,
) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    if newest == 0 {
        return Ok(events);
    }
    for log_file in &rotated.open()? {
        if is_older(log_file, filter) {
            continue;
        }
        let going_on = log_file.lines_back(|line| {
            let Ok(event) = serde_json::from_slice::<Event>(line) else { return true };
            // Numbers only fall from here on; times do so roughly.
            let is_behind = filter.after_seq.is_some_and(|after| event.seq <= after);
            if filter.matches(&event) {
                events.push(event);
            }
            !is_behind && events.len() < newest
        })?;
        if !going_on {
            break;
        }
    }
    events.reverse();
    Ok(events)
}

/// Adds a file's events that pass; which lines cannot be read.
pub(super) fn read_log_file(
    log_file: &LogFile,
    filter: &EventFilter,
    events: &mut Vec<Event>,
) -> io::Result<Vec<u64>> {
    let mut reader = BufReader::with_capacity(256 * 1024, FromOffset::new(log_file, 0));
    let mut line = Vec::new();
    let mut unreadable = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        // A line without an end is one that somebody writes right now.
        if reader.read_until(b'\n', &mut line)? == 0 || line.pop() != Some(b'\n') {
            return Ok(unreadable);
        }
        let may_pass = match (&filter.sandbox, std::str::from_utf8(&line)) {
            (_, Err(_)) => true,
            (sandbox, Ok(text)) => {
                let of_kind = |kind: &EventKind| text.contains(kind.as_str());
                !text.is_empty()
                    && sandbox.as_ref().is_none_or(|id| text.contains(id.as_str()))
                    && (filter.kinds.is_empty() || filter.kinds.iter().any(of_kind))
            }
        };
        if !may_pass {
            continue;
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) if filter.matches(&event) => events.push(event),
            Ok(_) => {}
            Err(_) => unreadable.push(number),
        }
    }
}
