//! Cuts a log into lines, and knows which were told already.

use jiff::{SignedDuration, Timestamp};

use crate::domain::output::{LOG_LINE_LIMIT, Source};

/// More than the times within one line ever are: an engine puts one before each piece of a long line.
const STAMPS: usize = 8 * 1024;
/// No engine cuts a line into shorter pieces than this; bytes.
const PIECE: usize = 4096;
/// Pieces of one line come within this of its beginning.
const PIECES_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// Line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// When the engine got it, where it was asked to say so.
    pub(super) at: Option<Timestamp>,
    pub(super) bytes: Vec<u8>,
    pub(super) cut: bool,
}

/// Cuts both outputs of one container into lines.
#[derive(Debug)]
pub(super) struct Lines {
    stamped: bool,
    out: Unfinished,
    err: Unfinished,
}

#[derive(Debug, Default)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The line was given already; what is left of it is dropped.
    cut: bool,
}

impl Lines {
    /// `stamped`: each line has its time before it. One that has none is the engine's own then, and left out.
    pub(super) fn new(stamped: bool) -> Self {
        Self { stamped, out: Unfinished::default(), err: Unfinished::default() }
    }

    /// Takes output; the lines that are complete now.
    pub(super) fn push(&mut self, source: Source, mut chunk: &[u8]) -> Vec<Line> {
        let mut given = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.add(source, &chunk[..end], &mut given);
            let unfinished = self.of(source);
            let (bytes, cut) =
                (std::mem::take(&mut unfinished.bytes), std::mem::take(&mut unfinished.cut));
            if !cut {
                given.extend(self.line(bytes, false));
            }
            chunk = &chunk[end + 1..];
        }
        self.add(source, chunk, &mut given);
        given
    }

    /// A last line that had no line break.
    pub(super) fn finish(&mut self, source: Source) -> Option<Line> {
        let unfinished = std::mem::take(self.of(source));
        (!unfinished.cut && !unfinished.bytes.is_empty())
            .then(|| self.line(unfinished.bytes, false))
            .flatten()
    }

    fn add(&mut self, source: Source, part: &[u8], given: &mut Vec<Line>) {
        let limit = LOG_LINE_LIMIT + if self.stamped { STAMPS } else { 0 };
        let unfinished = self.of(source);
        if unfinished.cut {
            return;
        }
        let room = limit - unfinished.bytes.len();
        unfinished.bytes.extend_from_slice(&part[..part.len().min(room)]);
        if part.len() > room {
            unfinished.cut = true;
            let bytes = std::mem::take(&mut unfinished.bytes);
            given.extend(self.line(bytes, true));
        }
    }

    fn line(&self, bytes: Vec<u8>, cut: bool) -> Option<Line> {
        let (at, mut bytes) = if self.stamped {
            let (at, length) = stamp(&bytes)?;
            (Some(at), joined(&bytes[length..], at))
        } else {
            (None, bytes)
        };
        let cut = cut || bytes.len() > LOG_LINE_LIMIT;
        bytes.truncate(LOG_LINE_LIMIT);
        Some(Line { at, bytes, cut })
    }

    fn of(&mut self, source: Source) -> &mut Unfinished {
        match source {
            Source::Stdout => &mut self.out,
            Source::Stderr => &mut self.err,
        }
    }
}

/// The time at the beginning, such as `2026-11-28T04:01:42.389910741Z `, and its length with the blank.
fn stamp(text: &[u8]) -> Option<(Timestamp, usize)> {
    let end = text.iter().take(40).position(|byte| *byte == b' ')?;
    let at = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((at, end + 1))
}

/// A line without the times before its later pieces.
fn joined(text: &[u8], began: Timestamp) -> Vec<u8> {
    if text.len() < PIECE {
        return text.to_vec();
    }
    let mut whole = Vec::with_capacity(text.len());
    let mut from = 0;
    let mut at = PIECE;
    while at < text.len() {
        // All begin as `2026-11-28T`.
        let likely = text[at..].starts_with(b"2") && text.get(at + 10) == Some(&b'T');
        match likely.then(|| stamp(&text[at..])).flatten() {
            Some((stamped, length))
                if stamped >= began && stamped.duration_since(began) < PIECES_WITHIN =>
            {
                whole.extend_from_slice(&text[from..at]);
                from = at + length;
                at = from;
            }
            _ => at += 1,
        }
    }
    whole.extend_from_slice(&text[from..]);
    whole
}

/// The last time that was told of each output, and how many lines had it: podman gives one time to all that it reads at
/// once.
#[derive(Debug, Default)]
pub(super) struct Told {
    out: Option<(Timestamp, u32)>,
    err: Option<(Timestamp, u32)>,
    /// Lines of the last time that come again, of each output.
    again: (u32, u32),
}

impl Told {
    /// From when on the log is to be asked for; from here on what was told comes again.
    pub(super) fn since(&self) -> Option<String> {
        let first = [self.out, self.err].into_iter().flatten().map(|(at, _)| at).min()?;
        // Engines differ in whether a line of just that time is told.
        Some(first.saturating_sub(SignedDuration::from_millis(1)).unwrap_or(first).to_string())
    }

    /// To be called when the log is taken up again.
    pub(super) fn taken_up(mut self) -> Self {
        let count = |last: Option<(Timestamp, u32)>| last.map_or(0, |(_, count)| count);
        self.again = (count(self.out), count(self.err));
        self
    }

    /// Whether a line was not told yet; it counts as told then.
    pub(super) fn is_new(&mut self, source: Source, at: Option<Timestamp>) -> bool {
        let Some(at) = at else { return true };
        let (last, again) = match source {
            Source::Stdout => (&mut self.out, &mut self.again.0),
            Source::Stderr => (&mut self.err, &mut self.again.1),
        };
        match last {
            Some((before, _)) if at < *before => return false,
            Some((before, count)) if at == *before => {
                if *again > 0 {
                    *again -= 1;
                    return false;
                }
                *count += 1;
            }
            _ => *last = Some((at, 1)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect()
    }

    #[test]
    fn both_outputs_are_cut_into_lines_apart() {
        let mut lines = Lines::new(false);
        assert_eq!(texts(&lines.push(Source::Stdout, b"a\nb")), ["a"]);
        assert_eq!(texts(&lines.push(Source::Stderr, b"x\r\n\n")), ["x\r", ""]);
        assert_eq!(texts(&lines.push(Source::Stdout, b"c\n\xff\n")), ["bc", "\u{fffd}"]);
        assert_eq!(lines.finish(Source::Stdout), None);
        lines.push(Source::Stdout, b"end");
        assert_eq!(lines.finish(Source::Stdout).unwrap().bytes, b"end");
    }

    #[test]
    fn a_long_line_is_cut_and_said_to_be() {
        for stamped in [false, true] {
            let mut lines = Lines::new(stamped);
            let mut given = Vec::new();
            if stamped {
                given.extend(lines.push(Source::Stdout, b"2026-11-28T04:01:42.389910741Z "));
            }
            for _ in 0..10 {
                given.extend(lines.push(Source::Stdout, &vec![b'x'; 40_000]));
            }
            let stamp: &[u8] =
                if stamped { b"\n2026-11-28T04:01:42.389910742Z next\n" } else { b"\nnext\n" };
            given.extend(lines.push(Source::Stdout, stamp));
            let told: Vec<(usize, bool)> =
                given.iter().map(|line| (line.bytes.len(), line.cut)).collect();
            assert_eq!(told, [(LOG_LINE_LIMIT, true), (4, false)], "{stamped}");
        }
    }

    #[test]
    fn times_are_taken_away_and_an_engines_own_words_left_out() {
        let mut lines = Lines::new(true);
        let docker = "2026-11-28T04:01:42.389910741Z ";
        let long =
            format!("{docker}{}{docker}{}{docker}end\n", "x".repeat(16384), "y".repeat(16384));
        let given = lines.push(Source::Stdout, long.as_bytes());
        assert_eq!(given[0].bytes.len(), 2 * 16384 + 3);
        assert_eq!(given[0].at.unwrap().to_string(), "2026-11-28T04:01:42.389910741Z");
        // A time that the service wrote itself stays.
        let own = format!("{docker}{}2020-01-01T00:00:00.000000000Z z\n", "x".repeat(16384));
        assert!(lines.push(Source::Stdout, own.as_bytes())[0].bytes.ends_with(b"0Z z"));
        let given = lines.push(
            Source::Stderr,
            b"Error response from daemon: gone\n2026-11-28T04:01:42+01:00 a  b\n",
        );
        assert_eq!(texts(&given), ["a  b"]);
    }

    #[test]
    fn what_comes_again_is_not_told_twice() {
        let at = |nanosecond: i64| {
            Some(Timestamp::from_nanosecond(i128::from(nanosecond) + 5_000_000_000).unwrap())
        };
        let mut told = Told::default();
        assert_eq!(told.since(), None);
        for (time, source) in
            [(1, Source::Stdout), (3, Source::Stderr), (4, Source::Stdout), (4, Source::Stdout)]
        {
            assert!(told.is_new(source, at(time)));
        }
        assert_eq!(told.since().unwrap(), "1970-01-01T00:00:04.999000003Z");
        let mut told = told.taken_up();
        let again =
            [(1, Source::Stdout), (3, Source::Stderr), (4, Source::Stdout), (4, Source::Stdout)];
        assert!(again.into_iter().all(|(time, source)| !told.is_new(source, at(time))));
        let more = [(4, Source::Stdout), (4, Source::Stderr), (5, Source::Stdout)];
        assert!(more.into_iter().all(|(time, source)| told.is_new(source, at(time))));
    }
}
