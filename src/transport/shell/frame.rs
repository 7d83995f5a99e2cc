//! Finds one request's answer in a shell's output: what stands between two marks that hold its nonce. A third mark, which
//! says that the far side is alive, is dropped wherever it stands.

use memchr::memchr;

/// Part of the noise before an answer that is kept, for the words of a shell that never answered; bytes.
const NOISE_KEPT: usize = 4096;
/// Longer than a mark's number and line break ever are.
const NUMBER_LIMIT: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FramePosition {
    Before,
    Inside,
    After,
}

/// The reader of one request's frame on one stream.
#[derive(Debug)]
pub(crate) struct Frame {
    begin: Vec<u8>,
    end: Vec<u8>,
    beat: Vec<u8>,
    position: FramePosition,
    held: Vec<u8>,
    status: Option<i32>,
}

impl Frame {
    /// A reader for the request with this nonce.
    pub(crate) fn new(nonce: &str) -> Self {
        let mark = |letter: &str| format!("\u{1e}{letter}{nonce} ").into_bytes();
        let (begin, end, beat) = (mark("B"), mark("E"), format!("\u{1e}H{nonce}\n").into_bytes());
        Self { begin, end, beat, position: FramePosition::Before, held: Vec::new(), status: None }
    }

    pub(crate) fn begun(&self) -> bool {
        self.position != FramePosition::Before
    }

    /// The command's exit status, once the answer is complete.
    pub(crate) fn status(&self) -> Option<i32> {
        self.status
    }

    /// Bytes that are held back: before the answer the account's noise.
    pub(crate) fn noise(&self) -> &[u8] {
        &self.held
    }

    /// Takes what was read and gives on what belongs to the answer.
    pub(crate) fn push(&mut self, chunk: &[u8], take: &mut dyn FnMut(&[u8])) {
        self.held.extend_from_slice(chunk);
        if self.position == FramePosition::Before {
            self.look_for_begin();
        }
        if self.position == FramePosition::Inside {
            self.look_for_end(take);
        }
        if self.position == FramePosition::After {
            self.held.clear();
        }
    }

    fn look_for_begin(&mut self) {
        let Some(at) = find(&self.held, &self.begin) else {
            let kept = NOISE_KEPT.max(self.begin.len() + NUMBER_LIMIT);
            let surplus = self.held.len().saturating_sub(kept);
            self.held.drain(..surplus);
            return;
        };
        // The number is the shell's process id; it is for who looks at the stream by hand.
        if let Some((_, length)) = number(&self.held[at + self.begin.len()..]) {
            self.held.drain(..at + self.begin.len() + length);
            self.position = FramePosition::Inside;
        }
    }

    fn look_for_end(&mut self, take: &mut dyn FnMut(&[u8])) {
        let mut from = 0;
        let (mut over, mut whole) = (None, self.held.len());
        while let Some(step) = memchr(self.end[0], &self.held[from..]) {
            let at = from + step;
            let rest = &self.held[at..];
            if rest.starts_with(&self.end) {
                (over, whole) = (number(&rest[self.end.len()..]), at);
                break;
            }
            if rest.starts_with(&self.beat) {
                self.held.drain(at..at + self.beat.len());
                (from, whole) = (at, self.held.len());
            } else if self.end.starts_with(rest) || self.beat.starts_with(rest) {
                whole = at;
                break;
            } else {
                from = at + 1;
            }
        }
        if whole > 0 {
            take(&self.held[..whole]);
            self.held.drain(..whole);
        }
        if let Some((status, _)) = over {
            self.status = Some(status.unwrap_or(255));
            self.position = FramePosition::After;
        }
    }
}

/// Where `needle`, which begins with a byte that is rare in text, is.
fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(step) = memchr(needle[0], &text[from..]) {
        if text[from + step..].starts_with(needle) {
            return Some(from + step);
        }
        from += step + 1;
    }
    None
}

/// The number up to a line break, and the length of both; `None` while the line break has not come.
fn number(text: &[u8]) -> Option<(Option<i32>, usize)> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&text[..end]).ok().and_then(|digits| digits.parse().ok()), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Frame, Vec<u8>) {
        let mut frame = Frame::new("n0");
        let mut out = Vec::new();
        for piece in pieces {
            frame.push(piece, &mut |bytes| out.extend_from_slice(bytes));
        }
        (frame, out)
    }

    #[test]
    fn noise_is_dropped_and_the_answer_kept() {
        let (frame, out) = read(&[b"Welcome!\n\x1eBother 1\n\x1eBn0 42\nhello\x1eEn0 127\nlate"]);
        assert_eq!((out.as_slice(), frame.status()), (b"hello".as_slice(), Some(127)));
    }

    #[test]
    fn every_split_of_the_stream_reads_the_same() {
        let whole = b"noise\n\x1eBn0 7\na\x1eb\x1eEn1 3\n\x1eEn0 0\n";
        for cut in 0..whole.len() {
            for second in cut..whole.len() {
                let (frame, out) = read(&[&whole[..cut], &whole[cut..second], &whole[second..]]);
                assert_eq!(out, b"a\x1eb\x1eEn1 3\n", "{cut} {second}");
                assert_eq!(frame.status(), Some(0));
            }
        }
    }

    #[test]
    fn signs_of_life_are_dropped_wherever_they_stand() {
        let whole = b"\x1eBn0 7\n\x1eHn0\nab\x1eHn0\n\x1eHn0\nc\x1eHn1\n\x1eHn\x1eHn0\n\x1eEn0 3\n";
        for cut in 0..whole.len() {
            let (frame, out) = read(&[&whole[..cut], &whole[cut..]]);
            assert_eq!(
                (out.as_slice(), frame.status()),
                (b"abc\x1eHn1\n\x1eHn".as_slice(), Some(3)),
                "{cut}"
            );
        }
    }

    #[test]
    fn text_is_given_on_as_soon_as_it_cannot_be_a_mark() {
        let (frame, out) = read(&[b"\x1eBn0 7\n", b"partial line"]);
        assert_eq!(out, b"partial line");
        assert!(frame.begun() && frame.status().is_none());
    }

    #[test]
    fn noise_without_an_end_is_bounded() {
        let mut frame = Frame::new("n0");
        for _ in 0..100 {
            frame.push(&[b'x'; 4096], &mut |_| {});
        }
        assert!(frame.noise().len() <= 2 * NOISE_KEPT);
    }
}
