//! The terminal in other hands: a shell takes it over, and gives it back.
//!
//! From `!` on nothing reads the terminal here, so what is typed waits in its queue for the shell. Everything else
//! goes on: jobs run, messages are taken, only nothing is drawn while the shell has the screen.

use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal as Kill, WaitOptions, kill_process_group, waitpid};
use rustix::termios::Termios;
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use super::console::{Console, EventSource};
use super::input::Input;
use super::message::{Msg, ShellEnd};
use super::signals::{EndSignal, LoopEnd, draw_failed, failed};
use super::terminal;
use crate::client::{Error, ShellRequest};
use crate::domain::child_process::child;
use crate::domain::error::Code;
use crate::domain::name::SnapshotId;
use crate::domain::output::Interactive;
use crate::domain::text::clean_line;

/// ssh's own failures end with this status; anything else is the other side's.
const SSH_FAILED: i32 = 255;
/// A shell that failed sooner than this was hardly used: what it wrote stays on the screen until a key.
const HARDLY: Duration = Duration::from_secs(3);
/// How much of ssh's last words is kept, in bytes.
const WORDS: usize = 4096;
/// In case a signal is missed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Console {
    /// Opens a shell on the terminal and comes back when it ended.
    pub(super) async fn hand_over(
        &mut self,
        request: ShellRequest,
        title: &str,
        input: &mut Input,
        source: &mut EventSource,
    ) -> Result<(), LoopEnd> {
        self.draw()?;
        terminal::interruptible(true).map_err(draw_failed)?;
        let client = self.effects.client();
        let asked = self.meanwhile(source, true, client.shell(request)).await?;
        let end = match asked {
            Some(Ok(program)) => self.run_program(&program, "shell", title, input, source).await?,
            Some(Err(problem)) => ShellEnd::Failed(problem),
            None => ShellEnd::GivenUp,
        };
        // Whatever was typed and not read was meant for the shell.
        input.forget();
        self.away = false;
        terminal::enter(self.model.mouse).map_err(draw_failed)?;
        self.take(Msg::Resumed)?;
        self.take(Msg::ShellEnded(title.to_owned(), end))?;
        Ok(())
    }

    /// Opens an editor on the terminal, for a patch on a snapshot, and comes back when it ended.
    pub(super) async fn write_patch(
        &mut self,
        snapshot: SnapshotId,
        input: &mut Input,
        source: &mut EventSource,
    ) -> Result<(), LoopEnd> {
        let written = match draft() {
            Err(error) => Err(not_written(&error)),
            Ok(file) => {
                let program = editor(file.path());
                let end = self.run_program(&program, "editor", "the editor", input, source).await?;
                input.forget();
                self.away = false;
                terminal::enter(self.model.mouse).map_err(draw_failed)?;
                self.take(Msg::Resumed)?;
                match end {
                    ShellEnd::Left(0) => {
                        read_draft(file.path()).map_err(|error| not_written(&error))
                    }
                    ShellEnd::Failed(problem) => Err(problem),
                    ShellEnd::Left(_) | ShellEnd::GivenUp => Ok(None),
                }
            }
        };
        self.take(Msg::Written(snapshot, written))?;
        Ok(())
    }

    async fn run_program(
        &mut self,
        program: &Interactive,
        what: &str,
        title: &str,
        input: &mut Input,
        source: &mut EventSource,
    ) -> Result<ShellEnd, LoopEnd> {
        self.away = true;
        terminal::restore();
        let began = Instant::now();
        let mut shell = match Shell::start(program) {
            Ok(shell) => shell,
            Err(error) => return Ok(ShellEnd::Failed(not_started(program, &error))),
        };
        let status = loop {
            match self.meanwhile(source, false, shell.next()).await? {
                Some(Turn::Ended(status)) => break status,
                Some(Turn::Stopped) => {
                    shell.stand_back();
                    terminal::stop_here(&mut source.signals.continued)
                        .await
                        .map_err(|error| failed("the process cannot be stopped", error))?;
                    shell.go_on();
                }
                None => {}
            }
        };
        let said = shell.last_words().await;
        let is_ssh = shell.is_ssh;
        drop(shell);
        if is_ssh && status == SSH_FAILED {
            return Ok(ShellEnd::Failed(ssh_failed(title, &said)));
        }
        if status != 0 && began.elapsed() < HARDLY {
            input.forget();
            let mut out = io::stdout().lock();
            let _ = write!(
                out,
                "\r\n[the {what} ended with status {status}; enter goes back to the dashboard] "
            );
            let _ = out.flush();
            drop(out);
            // The terminal is not raw here: it has something to read when the line is ended.
            self.meanwhile(source, true, input.next()).await?;
        }
        Ok(ShellEnd::Left(status))
    }

    /// Waits for something while everything but the keys goes on; none when ctrl-c gave the wait up.
    async fn meanwhile<T>(
        &mut self,
        source: &mut EventSource,
        interruptible: bool,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, LoopEnd> {
        tokio::pin!(work);
        let start = Instant::now();
        loop {
            tokio::select! {
                biased;
                signal = source.signals.ends.next() => match signal {
                    // The keyboard's signals are for whoever has the terminal.
                    EndSignal::Interrupt | EndSignal::Quit if interruptible => return Ok(None),
                    EndSignal::Interrupt | EndSignal::Quit => {}
                    EndSignal::HangUp | EndSignal::Terminate => return Err(LoopEnd::Signal(signal)),
                },
                _ = &mut source.gone => return Err(LoopEnd::Signal(EndSignal::HangUp)),
                value = &mut work => return Ok(Some(value)),
                () = tokio::time::sleep_until(self.frame_due(start)), if self.dirty && !self.away => self.draw()?,
                Some(msg) = source.inbox.recv() => drop(self.take_all(msg, &mut source.inbox)?),
                _ = source.tick.tick() => drop(self.take(Msg::Tick((self.clock)()))?),
            }
        }
    }
}

/// End of a shell.
enum Turn {
    /// Status that it ended with.
    Ended(i32),
    /// ctrl-z stopped it.
    Stopped,
}

/// A program that has the terminal. Dropping it ends the program, if need be, and takes the terminal back.
struct Shell {
    /// Process group that it leads, so that the keyboard's signals reach it and nobody else.
    group: Pid,
    tty: OwnedFd,
    /// How the terminal was set before.
    modes: Termios,
    children: Signal,
    is_ssh: bool,
    /// ssh's stderr: its words are wanted after the screen is ours again. With a terminal on the other side nothing
    /// but ssh itself writes there.
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
    ended: bool,
}

impl Shell {
    fn start(program: &Interactive) -> io::Result<Self> {
        let (name, args) = program.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let is_ssh = Path::new(name).file_name().is_some_and(|name| name == "ssh");
        let tty = terminal::input()?;
        let modes = terminal::modes(&tty)?;
        // Heard from before the program is there: its end must not be missed.
        let children = signal(SignalKind::child())?;
        let mut command = child(name);
        command.args(args).process_group(0);
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        if is_ssh {
            command.stderr(Stdio::piped());
        }
        // Waited for in `next`, which hears of a stop too.
        #[allow(clippy::zombie_processes)]
        let mut child = command.spawn()?;
        let group = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidData)?;
        let stderr = child.stderr.take().map(ChildStderr::from_std).transpose()?;
        let shell =
            Self { group, tty, modes, children, is_ssh, stderr, said: Vec::new(), ended: false };
        shell.go_on();
        Ok(shell)
    }

    /// Gives it the terminal. It may have been stopped already for asking too early: it is told to go on.
    fn go_on(&self) {
        // One that is gone meanwhile needs no terminal.
        let _ = terminal::foreground(&self.tty, Some(self.group));
        let _ = kill_process_group(self.group, Kill::CONT);
    }

    /// Takes the terminal, as it was before.
    fn stand_back(&self) {
        let _ = terminal::foreground(&self.tty, None);
        let _ = terminal::set_modes(&self.tty, &self.modes);
    }

    /// Waits until it ends or is stopped. Safe to drop at any await.
    async fn next(&mut self) -> Turn {
        loop {
            match waitpid(Some(self.group), WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((_, status))) if status.stopped() => return Turn::Stopped,
                Ok(Some((_, status))) => {
                    self.ended = true;
                    let signal = status.terminating_signal().map(|signal| 128 + signal);
                    return Turn::Ended(status.exit_status().or(signal).unwrap_or_default());
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(_) => {
                    self.ended = true;
                    return Turn::Ended(0);
                }
            }
            let mut buffer = [0; 1024];
            tokio::select! {
                _ = self.children.recv() => {}
                () = sleep(LOOK_AGAIN) => {}
                read = hear(&mut self.stderr, &mut buffer) => match read {
                    0 => self.stderr = None,
                    count => self.pass_on(&buffer[..count]),
                },
            }
        }
    }

    /// Last words of ssh; its end does not end what it wrote.
    async fn last_words(&mut self) -> String {
        let mut buffer = [0; 1024];
        while self.stderr.is_some() {
            match timeout(Duration::from_millis(50), hear(&mut self.stderr, &mut buffer)).await {
                Ok(count) if count > 0 => self.pass_on(&buffer[..count]),
                _ => self.stderr = None,
            }
        }
        String::from_utf8_lossy(&self.said).into_owned()
    }

    fn pass_on(&mut self, bytes: &[u8]) {
        terminal::from_behind(|| {
            let mut out = io::stdout().lock();
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        });
        self.said.extend_from_slice(bytes);
        let over = self.said.len().saturating_sub(WORDS);
        self.said.drain(..over);
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if !self.ended {
            let _ = kill_process_group(self.group, Kill::HUP);
            let _ = kill_process_group(self.group, Kill::CONT);
        }
        self.stand_back();
    }
}

/// Reads what is there; 0 at the end, and never anything where there is nothing to read.
async fn hear(stderr: &mut Option<ChildStderr>, buffer: &mut [u8]) -> usize {
    match stderr {
        Some(stderr) => stderr.read(buffer).await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

/// Beginning of a new script.
const DRAFT: &str = "set -eu\n\n";

/// A file with the beginning of a script, for the operator's eyes alone; it goes when it is dropped.
fn draft() -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("patch-").suffix(".sh").tempfile()?;
    file.write_all(DRAFT.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// The operator's editor. The variables hold commands with arguments, so a shell reads them; the path is no part of that.
fn editor(path: &Path) -> Interactive {
    let words = ["sh", "-c", "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"", "sh"].map(OsString::from);
    Interactive { words: words.into_iter().chain([path.into()]).collect(), folder: None }
}

/// Text that was written; none where that is nothing.
fn read_draft(path: &Path) -> io::Result<Option<String>> {
    let text = std::fs::read_to_string(path)?;
    Ok(Some(text).filter(|text| text.trim() != DRAFT.trim() && !text.trim().is_empty()))
}

fn not_written(error: &io::Error) -> Error {
    let mut problem = Error::new(Code::InvalidInput, "the script cannot be taken from the editor");
    problem.causes = vec![error.to_string()];
    problem
}

fn not_started(program: &Interactive, error: &io::Error) -> Error {
    let name =
        program.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let mut problem = Error::new(Code::MissingDependency, format!("{name} could not be started"));
    problem.causes = vec![error.to_string()];
    problem.hint(format!("is {name} installed, and in PATH?"))
}

fn ssh_failed(title: &str, said: &str) -> Error {
    let mut problem =
        Error::new(Code::HostUnreachable, format!("the connection of the shell in {title} failed"));
    let words =
        said.lines().map(|line| clean_line(line, 400)).filter(|line| !line.trim().is_empty());
    problem.causes = words.collect();
    problem.causes.push(format!("ssh ended with status {SSH_FAILED}"));
    problem
}
