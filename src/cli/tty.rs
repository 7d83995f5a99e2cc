//! The terminal that a question is asked on: `/dev/tty`, wherever the standard streams lead.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

/// The longest answer that is read, in bytes; what is longer is no "yes".
const ANSWER: usize = 1024;

/// Somebody's terminal, to ask on.
pub trait Tty: Send {
    /// Forgets what was typed before, which was meant for something else, and shows the question.
    fn ask(&mut self, question: &str) -> io::Result<()>;

    /// The line that was typed since, with its end; none while there is none. Never waits, so that Ctrl-C is heard
    /// meanwhile: a blocking read is resumed after a signal that has a handler.
    fn answer(&mut self) -> io::Result<Option<String>>;

    /// Writes a line break, where the answer had none.
    fn end_line(&mut self);
}

/// The controlling terminal of this process.
struct Controlling {
    file: File,
    typed: Vec<u8>,
}

/// Opens the controlling terminal.
///
/// Errors: there is none (`setsid`), or it is not ours to open.
pub(super) fn open() -> io::Result<Box<dyn Tty>> {
    let file = File::options().read(true).write(true).open("/dev/tty")?;
    Ok(Box::new(Controlling { file, typed: Vec::new() }))
}

impl Tty for Controlling {
    fn ask(&mut self, question: &str) -> io::Result<()> {
        tcflush(&self.file, QueueSelector::IFlush)?;
        self.typed.clear();
        self.file.write_all(question.as_bytes())
    }

    fn answer(&mut self) -> io::Result<Option<String>> {
        // A hang-up or an error counts as readable: the read then says so. A poll that a signal interrupts says nothing: a read
        // would wait then, and Ctrl-C would not be heard.
        match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&Timespec::default())) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut piece = [0; ANSWER];
        let length = self.file.read(&mut piece)?;
        self.typed.extend_from_slice(&piece[..length]);
        // A terminal that somebody left raw says CR for the key that ends a line.
        let whole = length == 0
            || self.typed.len() >= ANSWER
            || self.typed.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        Ok(whole.then(|| String::from_utf8_lossy(&std::mem::take(&mut self.typed)).into_owned()))
    }

    fn end_line(&mut self) {
        let _ = self.file.write_all(b"\n");
    }
}
