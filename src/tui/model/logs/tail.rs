//! Kept lines of a log: the last ones, cleaned, bounded in number and in bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::domain::output::{LogLine, Source};
use crate::domain::text::{clean_line, columns};

/// How many lines are kept.
pub const KEPT_LINES: usize = 20_000;
/// How many bytes of text are kept.
pub const KEPT_BYTES: usize = 8 * 1024 * 1024;
/// A line is cut at this many columns.
const LINE: usize = 8000;
/// Cost of a line beyond its text, about.
const LINE_COST: usize = 96;
/// Line of a log, cleaned for a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogText {
    /// The service; none for what the console itself says.
    pub service: Option<Arc<str>>,
    /// Whether it came from stderr.
    pub stderr: bool,
    pub text: String,
    /// The columns that it takes.
    pub columns: usize,
}

impl LogText {
    /// A service's line. Meant for another thread than the UI's: a line may be long.
    pub fn new(line: &LogLine, service: Arc<str>) -> Self {
        let printable =
            line.bytes.len() <= LINE && line.bytes.iter().all(|byte| (0x20..0x7f).contains(byte));
        let text = String::from_utf8_lossy(&line.bytes);
        let mut text = if printable { text.into_owned() } else { clean_line(&text, LINE) };
        if line.cut {
            text.push_str(" … (cut)");
        }
        let columns = if text.is_ascii() { text.len() } else { columns(&text) };
        Self { service: Some(service), stderr: line.source == Source::Stderr, text, columns }
    }

    /// The console's own words in between: lines are missing here.
    pub fn gap(missed: u64) -> Self {
        let lines = match missed {
            1 => "1 line came faster than it can be shown and was".to_owned(),
            _ => format!("{missed} lines came faster than they can be shown and were"),
        };
        let text = format!("··· {lines} dropped");
        let columns = columns(&text);
        Self { service: None, stderr: false, text, columns }
    }

    fn cost(&self) -> usize {
        self.text.len() + LINE_COST
    }
}

/// The last lines, bounded in number and in bytes.
#[derive(Debug, Clone, Default)]
pub struct LogTail {
    lines: VecDeque<Arc<LogText>>,
    /// The number of the first line that is kept: how many were dropped before it.
    first: u64,
    bytes: usize,
    /// Lines that were dropped before they came here.
    missed: u64,
}

impl LogTail {
    /// Takes lines, after `missed` ones that were dropped on the way.
    pub fn extend(&mut self, missed: u64, lines: Vec<Arc<LogText>>) {
        self.missed += missed;
        let gap = (missed > 0).then(|| Arc::new(LogText::gap(missed)));
        for line in gap.into_iter().chain(lines) {
            self.bytes += line.cost();
            self.lines.push_back(line);
        }
        while self.lines.len() > KEPT_LINES || self.bytes > KEPT_BYTES {
            let Some(line) = self.lines.pop_front() else { break };
            self.bytes -= line.cost();
            self.first += 1;
        }
    }

    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The bytes that they take, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Lines that came and are no longer here, those that were dropped on the way among them.
    pub fn dropped(&self) -> u64 {
        self.first + self.missed
    }

    /// The number behind the last line.
    pub fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    /// The number of the first line.
    pub fn first(&self) -> u64 {
        self.first
    }

    pub fn line(&self, number: u64) -> Option<&Arc<LogText>> {
        self.lines.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// All lines that are kept.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &Arc<LogText>> + ExactSizeIterator {
        self.lines.iter()
    }
}

/// A line of the service `web`.
#[cfg(test)]
pub(super) fn line(text: &str) -> Arc<LogText> {
    let (service, bytes) = ("web".to_owned(), text.into());
    let line = LogLine { service, source: Source::Stdout, bytes, cut: false };
    Arc::new(LogText::new(&line, "web".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_in_lines_and_in_bytes() {
        let mut tail = LogTail::default();
        for _ in 0..30 {
            tail.extend(0, (0..1000).map(|number| line(&format!("line {number}"))).collect());
        }
        assert_eq!((tail.len(), tail.dropped()), (KEPT_LINES, 10_000));
        let mut tail = LogTail::default();
        for _ in 0..30 {
            tail.extend(3, vec![line(&"x".repeat(1_000_000)); 1]);
            tail.extend(0, vec![line(&"x".repeat(LINE)); 100]);
        }
        assert!(tail.bytes() <= KEPT_BYTES, "{}", tail.bytes());
        assert!(tail.dropped() > 90);
        assert_eq!(tail.end(), 30 * 102, "a gap is a line");
    }
}
