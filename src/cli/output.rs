//! Output of the process: documents on stdout, errors and remarks on stderr.
//!
//! The same reply is either one JSON document, exact, or text for a person, cleaned of everything that could move
//! the cursor (semantics 11). Nothing here panics when a pipe is closed: writes are results.

pub(super) mod paced;

use std::io::{self, BufRead, BufWriter, Write};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use super::global::Global;
use super::input;
use super::tty::{self, Tty};
use crate::client::{Client, Error};
use crate::domain::error::Kind;
use crate::domain::output::Source;
use crate::domain::text::{clean_line, is_utf8_locale};
use crate::domain::{Code, Progress, Time};
use crate::present::{Present, Role, ascii};

/// The longest sentence of an error that is shown to a person, in columns; `--json` has all of it.
const SENTENCE: usize = 2000;

/// Bytes of a document that are written at a time.
const BLOCK: usize = 64 << 10;

/// The world around a command; tests put their own in its place.
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact of the terminal")]
pub struct Io {
    /// Standard output.
    pub stdout: Box<dyn Write + Send>,
    /// Standard error.
    pub stderr: Box<dyn Write + Send>,
    /// Standard input, where a script may come from.
    pub stdin: Box<dyn BufRead + Send>,
    /// Standard input as a stream, for what passes it on while it comes. Used by one verb, once.
    pub input: Box<dyn Fn() -> BoxStream<'static, Result<Vec<u8>, Error>> + Send>,
    /// Opens the terminal that questions are asked on.
    pub tty: Box<dyn Fn() -> io::Result<Box<dyn Tty>> + Send>,
    /// Whether an output takes bytes without waiting; it is given a moment to. Asked before much is written, so that
    /// Ctrl-C is heard while a slow reader is waited for.
    pub takes: fn(Source) -> bool,
    /// Whether whoever read `stdout` closed it.
    pub reader_left: fn() -> bool,
    /// Which of the three are terminals.
    pub terminals: Terminals,
    /// Columns of the terminal; none: nothing is cut.
    pub width: Option<usize>,
    /// Whether the environment allows colours (`NO_COLOR`, `TERM`).
    pub color: bool,
    /// Whether the locale is UTF-8 (`LC_ALL`, `LC_CTYPE`, `LANG`).
    pub unicode: bool,
    /// Whether a terminal moves its cursor (`TERM`): else nothing is drawn over what was written.
    pub moves: bool,
    /// Item for each Ctrl-C (or SIGTERM).
    pub interrupts: BoxStream<'static, ()>,
    /// The clock.
    pub now: fn() -> Time,
    /// Set by a second Ctrl-C: whoever ends the process must not wait for what was cancelled.
    pub leave_at_once: bool,
}

/// Which of the standard streams are terminals.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminals {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

impl Io {
    /// The process's own.
    pub fn process() -> Self {
        use std::io::IsTerminal as _;
        let terminals = Terminals {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
        };
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let mut locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
        let locale = locale.find(|value| !value.is_empty());
        let width =
            rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
        Self {
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
            stdin: Box::new(io::BufReader::new(io::stdin())),
            input: Box::new(input::stdin),
            tty: Box::new(tty::open),
            takes: output_takes,
            reader_left: stdout_is_closed,
            terminals,
            // A terminal of a serial line says 0 columns: it does not know.
            width: width.filter(|columns| terminals.stdout && *columns >= 20),
            color: !set("NO_COLOR") && !dumb,
            unicode: is_utf8_locale(&locale.unwrap_or_default().to_string_lossy()),
            moves: !dumb,
            interrupts: presses(),
            now: || Time::new(jiff::Timestamp::now()),
            leave_at_once: false,
        }
    }
}

/// A closed one takes bytes: the write then says so. So does one that cannot be asked. A signal ends the poll early,
/// and it is for signals that it is asked.
fn output_takes(source: Source) -> bool {
    const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let mut fds = [match source {
        Source::Stdout => PollFd::new(&stdout, PollFlags::OUT),
        Source::Stderr => PollFd::new(&stderr, PollFlags::OUT),
    }];
    !matches!(poll(&mut fds, Some(&MOMENT)), Ok(0) | Err(Errno::INTR))
}

fn stdout_is_closed() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let closed = PollFlags::ERR | PollFlags::HUP;
    matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1..))
        && fds[0].revents().intersects(closed)
}

/// Whether whoever started us wants hang-ups ignored (`SigIgn` of proc(5); SIGHUP is signal 1).
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// Ctrl-C, SIGTERM and a hang-up. The handlers are installed when somebody first listens: until then (a `list`, say) Ctrl-C
/// simply ends the process.
fn presses() -> BoxStream<'static, ()> {
    stream::once(async {
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return stream::pending().boxed();
        };
        // A closed window must not leave a half-made sandbox. Under nohup the hang-up is ignored, and stays so.
        let mut hang_up =
            if hang_up_is_ignored() { None } else { signal(SignalKind::hangup()).ok() };
        stream::poll_fn(move |context| {
            let mut heard =
                interrupt.poll_recv(context).is_ready() || terminate.poll_recv(context).is_ready();
            heard |= hang_up.as_mut().is_some_and(|signal| signal.poll_recv(context).is_ready());
            if heard {
                // One that closes may be told so by its shell and by its terminal: that is nobody's second thought.
                hang_up = None;
            }
            if heard { std::task::Poll::Ready(Some(())) } else { std::task::Poll::Pending }
        })
        .boxed()
    })
    .flatten()
    .boxed()
}

/// How things are shown.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag of the contract")]
pub(super) struct OutputOptions {
    /// JSON instead of text.
    pub json: bool,
    /// Colours, where the stream is a terminal.
    pub color: bool,
    /// No characters of ours outside ASCII.
    pub ascii: bool,
    /// No progress, no remarks.
    pub quiet: bool,
}

impl OutputOptions {
    /// From the flags and the environment.
    pub(super) fn of(global: &Global, io: &Io) -> Self {
        Self {
            json: global.json,
            color: io.color && !global.no_color && !global.json,
            ascii: global.ascii || !io.unicode,
            quiet: global.quiet,
        }
    }

    /// Cleans text of others for one line of at most `limit` columns.
    pub(super) fn clean(self, text: &str, limit: usize) -> String {
        let line = clean_line(text, limit);
        if !self.ascii {
            return line;
        }
        // Signs of ours; what stands for a character that was cleaned away is one too.
        let plain = |c: char| match c {
            '·' => '?',
            '…' | '─' | '│' | '├' | '└' | '✓' | '✗' | '●' | '⚠' => ascii(c),
            _ => c,
        };
        line.chars().map(plain).collect()
    }
}

/// A text with the colour of how it is meant; `on` says whether the stream takes colours.
pub(super) fn paint(role: Role, text: &str, on: bool) -> String {
    let code = match role {
        Role::Title | Role::Key => "1",
        Role::Dim => "2",
        Role::Bad => "31",
        Role::Warn | Role::Busy => "33",
        _ => return text.to_owned(),
    };
    if on && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Why a verb ended early.
#[derive(Debug)]
pub(super) enum CliError {
    /// An error to be shown.
    Error(Box<Error>),
    /// Nobody reads stdout any more.
    PipeClosed,
}

impl From<Error> for CliError {
    fn from(problem: Error) -> Self {
        Self::Error(Box::new(problem))
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::PipeClosed;
        }
        unwritten(error)
            .hint("what the command changed, if anything, stays changed: `sandboxer list` shows it")
            .into()
    }
}

/// Error of an output that takes no more.
pub(super) fn unwritten(error: io::Error) -> Error {
    Error::new(Code::Internal, "standard output cannot be written").because(error)
}

/// Result of a verb: the exit status, or why it ended early.
pub(super) type Outcome = Result<u8, CliError>;

/// A verb's view of the world. A verb that needs no client has `()` in its place.
pub(super) struct Context<'a, C: ?Sized = dyn Client + 'a> {
    pub client: &'a C,
    pub io: &'a mut Io,
    pub options: OutputOptions,
    pub global: &'a Global,
}

impl<C: ?Sized> Context<'_, C> {
    /// JSON document; indented where a person looks at it.
    pub(super) fn document<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CliError> {
        let pretty = self.io.terminals.stdout;
        // By the block: a document may have many megabytes.
        let mut out = BufWriter::with_capacity(BLOCK, &mut self.io.stdout);
        let written = if pretty {
            serde_json::to_writer_pretty(&mut out, value)
        } else {
            serde_json::to_writer(&mut out, value)
        };
        written.map_err(|error| {
            if error.is_io() { io::Error::from(error).into() } else { encoding(&error) }
        })?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Answers with a value: one JSON document, or what `show` prints of it for a person.
    pub(super) fn reply<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        show: impl FnOnce(&mut Self) -> Result<(), CliError>,
    ) -> Outcome {
        if self.options.json {
            self.document(value)?;
        } else {
            show(self)?;
        }
        Ok(0)
    }

    /// JSON object on one line, written out at once.
    pub(super) fn json_line<T: Serialize>(&mut self, value: &T) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(|error| encoding(&error))?;
        self.line(&text)?;
        Ok(self.io.stdout.flush()?)
    }

    /// A line on stdout. The text is ours or cleaned.
    pub(super) fn line(&mut self, text: &str) -> Result<(), CliError> {
        Ok(writeln!(self.io.stdout, "{text}")?)
    }

    /// A line on stdout with text of others, which is cleaned.
    pub(super) fn say(&mut self, text: &str) -> Result<(), CliError> {
        self.line(&self.options.clean(text, SENTENCE))
    }

    /// A remark for a person on stderr, cleaned; nothing with `--quiet` or `--json`. A closed stderr is no reason to stop.
    pub(super) fn remark(&mut self, text: &str) {
        if !self.options.quiet && !self.options.json {
            let _ = writeln!(self.io.stderr, "{}", self.options.clean(text, SENTENCE));
        }
    }

    /// An error on stderr that does not end the command.
    pub(super) fn error(&mut self, problem: &Error) {
        error(self.io, self.options, problem);
    }

    /// Whether stdout takes colours.
    pub(super) fn paints(&self) -> bool {
        self.options.color && self.io.terminals.stdout
    }

    pub(super) fn now(&self) -> Time {
        (self.io.now)()
    }

    /// The time, and how others are written: as records have them.
    pub(super) fn present(&self) -> Present<'static> {
        Present { now: self.now(), zone: None }
    }
}

pub(super) fn encoding(error: &serde_json::Error) -> CliError {
    Error::new(Code::Internal, format!("the answer cannot be written as JSON: {error}")).into()
}

/// The last line of stderr under `--json`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorLine {
    /// Reason of the failure.
    pub error: Error,
}

/// A line of stderr under `--json` while an operation runs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProgressLine {
    /// Progress of the operation.
    pub progress: Progress,
}

/// Writes an error to stderr: a JSON line, or the sentence, its causes, evidence and a hint.
pub(super) fn error(io: &mut Io, options: OutputOptions, problem: &Error) {
    let text = if options.json {
        serde_json::to_string(&ErrorLine { error: problem.clone() }).unwrap_or_default()
    } else {
        error_text(problem, options, options.color && io.terminals.stderr)
    };
    // Where stderr is closed too there is nobody left to tell; the status still says it.
    let _ = writeln!(io.stderr, "{text}").and_then(|()| io.stderr.flush());
}

fn error_text(problem: &Error, options: OutputOptions, color: bool) -> String {
    let mut text = format!(
        "{} {}",
        paint(Role::Bad, "error:", color),
        options.clean(&problem.message, SENTENCE)
    );
    if let Kind::Cancelled(outcome) = &problem.kind {
        text.extend([" (", &options.clean(outcome.words(), SENTENCE), ")"]);
    }
    for cause in &problem.causes {
        // ssh's own words have several lines: each is a line here too.
        for line in cause.lines() {
            text.push_str("\n  ");
            text.push_str(&options.clean(line, SENTENCE));
        }
    }
    if let Some(hint) = &problem.hint {
        text.push('\n');
        text.push_str(&paint(Role::Key, "hint:", color));
        text.push(' ');
        text.push_str(&options.clean(hint, SENTENCE));
    }
    text
}
