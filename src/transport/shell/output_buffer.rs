//! Output of a command as far as it is kept, and its lines as they come.

use crate::transport::{LINE_LIMIT, OUTPUT_LIMIT};

/// Part of a streamed command's output that is kept, its end; bytes.
const TAIL: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct OutputHead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) truncated: bool,
}

impl OutputHead {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let room = OUTPUT_LIMIT - self.bytes.len();
        self.bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        self.truncated |= chunk.len() > room;
    }
}

/// Keeps at least the last 64 KiB, at most twice that.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    pub(crate) bytes: Vec<u8>,
    pub(crate) truncated: bool,
}

impl OutputTail {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > 2 * TAIL {
            let surplus = self.bytes.len() - TAIL;
            self.bytes.drain(..surplus);
            self.truncated = true;
        }
    }
}

/// Cuts output into lines, and a line without an end after 64 KiB.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    line: Vec<u8>,
    /// The line was given already; what is left of it is dropped.
    cut: bool,
}

impl LineSplitter {
    pub(crate) fn push(&mut self, mut chunk: &[u8], give: &mut dyn FnMut(&[u8])) {
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.add(&chunk[..end], give);
            if !self.cut {
                give(&self.line);
            }
            self.line.clear();
            self.cut = false;
            chunk = &chunk[end + 1..];
        }
        self.add(chunk, give);
    }

    /// Gives a last line that had no line break.
    pub(crate) fn finish(&mut self, give: &mut dyn FnMut(&[u8])) {
        if !self.cut && !self.line.is_empty() {
            give(&self.line);
        }
        self.line.clear();
    }

    fn add(&mut self, part: &[u8], give: &mut dyn FnMut(&[u8])) {
        if self.cut {
            return;
        }
        let room = LINE_LIMIT - self.line.len();
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        if part.len() > room {
            give(&self.line);
            self.line.clear();
            self.cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let mut lines = LineSplitter::default();
        for piece in pieces {
            lines.push(piece, &mut |line| out.push(line.to_vec()));
        }
        lines.finish(&mut |line| out.push(line.to_vec()));
        out
    }

    #[test]
    fn lines_are_joined_over_reads_and_the_last_needs_no_end() {
        assert_eq!(
            lines(&[b"a\nb", b"c\n\n", b"d"]),
            [b"a".to_vec(), b"bc".to_vec(), b"".to_vec(), b"d".to_vec()]
        );
    }

    #[test]
    fn an_endless_line_is_cut_once() {
        let long = vec![b'x'; 50_000];
        let got = lines(&[&long, &long, &long, b"\nnext\n"]);
        assert_eq!(got.iter().map(Vec::len).collect::<Vec<_>>(), [LINE_LIMIT, 4]);
    }

    #[test]
    fn the_tail_keeps_the_end_and_the_head_the_beginning() {
        let mut tail = OutputTail::default();
        for n in 0..10u8 {
            tail.push(&vec![n; 40_000]);
        }
        assert!(tail.bytes.len() >= TAIL && tail.truncated && tail.bytes.last() == Some(&9));
        let mut head = OutputHead::default();
        head.push(b"first");
        head.push(&vec![0; OUTPUT_LIMIT]);
        head.push(b"more");
        assert!(
            head.bytes.starts_with(b"first") && head.bytes.len() == OUTPUT_LIMIT && head.truncated
        );
    }
}
