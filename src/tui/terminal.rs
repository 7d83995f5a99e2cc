//! The terminal: modes on and off, suspend, clipboard, the watch for its end.
//!
//! A guard, idempotent: every way out (return, error, panic, signal, suspend) goes through [`restore`], which
//! undoes what [`enter`] did and nothing twice.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, queue};
use nix::sys::signal::{SigSet, Signal as BlockedSignal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
    tcsetpgrp,
};

/// The terminal that is drawn on. Standard output flushes at every line; a frame wants to go out as one.
pub(super) type Tty = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// Whether our modes are on.
static ENTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in an update or a drawing now: then its panic is the screen's end.
    static ON_SCREEN: Cell<bool> = const { Cell::new(false) };
}

// Clicks and the wheel only (1000), with coordinates beyond 223 (1006). crossterm's own command also asks for
// every motion (1003): a message for each cell the pointer crosses.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";

/// Makes a terminal to draw on.
pub(super) fn open() -> io::Result<Tty> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(64 * 1024, io::stdout())))
}

/// Puts the modes on. Called again after a suspend: whatever the shell did in between is undone.
pub(super) fn enter(mouse: bool) -> io::Result<()> {
    // crossterm keeps what was before its raw mode only the first time; a shell may have changed it since.
    if ENTERED.swap(true, Ordering::SeqCst) {
        let _ = disable_raw_mode();
    }
    enable_raw_mode()?;
    keep_line_feeds()?;
    let mut out = io::stdout().lock();
    queue!(out, EnterAlternateScreen, cursor::Hide, EnableBracketedPaste)?;
    if mouse {
        out.write_all(MOUSE_ON.as_bytes())?;
    }
    out.flush()
}

/// Takes the modes off. Idempotent; errors are of no use here, the terminal may be gone.
pub(super) fn restore() {
    if !ENTERED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout().lock();
    let _ = out.write_all(MOUSE_OFF.as_bytes());
    let _ = queue!(out, DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Lets enter arrive as a line feed, as it does outside of raw mode. What is typed ahead of a shell waits in the
/// terminal's queue as it came; a carriage return there would be no end of a line to most programs.
fn keep_line_feeds() -> io::Result<()> {
    let tty = input()?;
    let mut modes = tcgetattr(&tty)?;
    modes.input_modes |= InputModes::ICRNL;
    Ok(tcsetattr(&tty, OptionalActions::Now, &modes)?)
}

/// Whether ctrl-c is a signal although nobody reads keys: while a shell is being opened it gives up.
pub(super) fn interruptible(on: bool) -> io::Result<()> {
    let tty = input()?;
    let mut modes = tcgetattr(&tty)?;
    modes.local_modes.set(LocalModes::ISIG, on);
    // Only ctrl-c: ctrl-z would stop this process with the screen as it is.
    let none = if cfg!(any(target_os = "linux", target_os = "android")) { 0 } else { 0xff };
    modes.special_codes[SpecialCodeIndex::VSUSP] = none;
    modes.special_codes[SpecialCodeIndex::VQUIT] = none;
    Ok(tcsetattr(&tty, OptionalActions::Now, &modes)?)
}

/// How the terminal is set now, to be put back after a program that left it otherwise.
pub(super) fn modes(tty: &OwnedFd) -> io::Result<Termios> {
    Ok(tcgetattr(tty)?)
}

/// Sets the terminal as it was.
pub(super) fn set_modes(tty: &OwnedFd, modes: &Termios) -> io::Result<()> {
    Ok(tcsetattr(tty, OptionalActions::Now, modes)?)
}

/// Makes a process group the terminal's foreground: ours for `None`.
pub(super) fn foreground(tty: &OwnedFd, group: Option<Pid>) -> io::Result<()> {
    from_behind(|| Ok(tcsetpgrp(tty, group.unwrap_or_else(getpgrp))?))
}

/// Does something to the terminal that stops a process in the background, unless it blocks SIGTTOU.
pub(super) fn from_behind<T>(work: impl FnOnce() -> T) -> T {
    let mut ttou = SigSet::empty();
    ttou.add(BlockedSignal::SIGTTOU);
    let blocked = ttou.thread_block().is_ok();
    let value = work();
    if blocked {
        let _ = ttou.thread_unblock();
    }
    value
}

/// Takes or releases the mouse.
pub(super) fn mouse(on: bool) -> io::Result<()> {
    write(if on { MOUSE_ON } else { MOUSE_OFF })
}

/// Rings, or tells the terminal to notify (OSC 9).
pub(super) fn notify(text: Option<&str>) -> io::Result<()> {
    match text {
        None => write("\x07"),
        Some(text) => write(&format!("\x1b]9;{}\x07", crate::domain::text::clean_line(text, 200))),
    }
}

/// Puts a text into the terminal's clipboard (OSC 52).
pub(super) fn copy(text: &str) -> io::Result<()> {
    write(&format!("\x1b]52;c;{}\x07", base64(text.as_bytes())))
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Base64 with padding, as OSC 52 wants it.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) & 63;
            out.push(if place <= chunk.len() { char::from(ALPHABET[six as usize]) } else { '=' });
        }
    }
    out
}

/// Stops this process as the shell's ctrl-z would. Only this process: the ssh children go on.
fn stop() -> io::Result<()> {
    Ok(kill_process(getpid(), Signal::TSTP)?)
}

/// Stops this process, and comes back when the shell says so. A process that no shell watches over is not stopped at
/// all, and another thread may take the signal a moment later: then it goes on after that moment.
pub(super) async fn stop_here(continued: &mut tokio::signal::unix::Signal) -> io::Result<()> {
    stop()?;
    tokio::select! {
        _ = continued.recv() => {}
        () = tokio::time::sleep(std::time::Duration::from_millis(200)) => {}
    }
    Ok(())
}

/// The signal that says that a stopped process goes on.
pub(super) fn continued() -> i32 {
    Signal::CONT.as_raw()
}

/// The terminal's input, to be watched.
pub(super) fn input() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        stdin.as_fd().try_clone_to_owned()
    } else {
        File::open("/dev/tty").map(OwnedFd::from)
    }
}

/// Blocks until the terminal is gone; `false` if that cannot be watched. No CPU is used meanwhile: without a wanted
/// event, only a hang-up or an error wakes it.
pub(super) fn wait_for_hang_up(tty: &OwnedFd) -> bool {
    loop {
        let mut fds = [PollFd::new(tty, PollFlags::empty())];
        match poll(&mut fds, None) {
            Ok(_) if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => return true,
            Ok(_) if fds[0].revents().is_empty() => {}
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Runs an update or a drawing; a panic in it restores the terminal before it is told.
pub(super) fn on_screen<T>(work: impl FnOnce() -> T) -> T {
    ON_SCREEN.set(true);
    let value = work();
    ON_SCREEN.set(false);
    value
}

/// The modes, and the panic hook that knows of them; dropping it takes both away.
pub(super) struct Guard {
    previous: Arc<Hook>,
}

type Hook = dyn Fn(&std::panic::PanicHookInfo<'_>) + Send + Sync + 'static;

impl Guard {
    /// Puts the modes on.
    pub(super) fn new(mouse: bool) -> io::Result<Self> {
        let previous: Arc<Hook> = Arc::from(std::panic::take_hook());
        let guard = Self { previous: Arc::clone(&previous) };
        std::panic::set_hook(Box::new(move |info| {
            // A task's panic becomes a failed job; printing it would break the screen.
            if ON_SCREEN.get() || !ENTERED.load(Ordering::SeqCst) {
                restore();
                previous(info);
            } else {
                tracing::error!(panic = %info, "a task panicked");
            }
        }));
        enter(mouse)?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
        // The hook cannot be changed while it runs.
        if !std::thread::panicking() {
            let previous = Arc::clone(&self.previous);
            std::panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_everyone_writes_it() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
