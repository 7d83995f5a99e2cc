//! The real binary in a pty with a terminal emulator behind it: a bare pty would leave the cursor query unanswered.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long a screen may take to show something. Generous: machines are busy, and nothing here measures speed.
const PATIENCE: Duration = Duration::from_mins(1);
/// After so long without a byte, what is there is all that was written.
const QUIET: Duration = Duration::from_millis(500);

/// A dashboard on a terminal.
pub(crate) struct Console {
    pub(crate) child: Box<dyn Child + Send + Sync>,
    /// Kept open: closing it would hang the terminal up.
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    seen: Arc<Mutex<Seen>>,
}

/// What came from the terminal.
struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
    last: Instant,
}

impl Seen {
    /// A screen of this size, with whatever comes from a reader.
    fn through(
        mut reader: impl Read + Send + 'static,
        columns: u16,
        rows: u16,
    ) -> Arc<Mutex<Self>> {
        let [rows, columns] = [rows, columns].map(|size| std::num::NonZeroU16::new(size).unwrap());
        let screen = vt100::Parser::new(rows, columns, 0);
        let seen = Arc::new(Mutex::new(Self { screen, raw: Vec::new(), last: Instant::now() }));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                kept.lock().unwrap().take(&buffer[..read]);
            }
        });
        seen
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.raw.extend_from_slice(bytes);
        self.last = Instant::now();
    }

    /// Whether no frame is half-way: a terminal hands over a write in pieces. The cursor comes last in each frame: it is
    /// hidden, or shown and then put in its place.
    fn is_whole(&self) -> bool {
        let tail = &self.raw[self.raw.len().saturating_sub(20)..];
        let shown =
            tail.windows(6).rposition(|bytes| bytes == b"\x1b[?25h").map(|at| &tail[at + 6..]);
        let placed = |rest: &[u8]| {
            let place = rest.strip_prefix(b"\x1b[").and_then(|rest| rest.strip_suffix(b"H"));
            place.is_some_and(|place| {
                place.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
            })
        };
        tail.ends_with(b"\x1b[?25l") || shown.is_some_and(placed) || self.last.elapsed() > QUIET
    }
}

impl Console {
    /// Starts the binary with these arguments and this environment alone.
    pub(crate) fn start(args: &[&str], env: &[(&str, &Path)], columns: u16, rows: u16) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_sandboxer"), args, env, columns, rows)
    }

    /// Starts another program, such as a shell.
    pub(crate) fn start_program(
        program: &str,
        args: &[&str],
        env: &[(&str, &Path)],
        columns: u16,
        rows: u16,
    ) -> Self {
        let pair = native_pty_system()
            .openpty(PtySize { rows, cols: columns, ..PtySize::default() })
            .unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("USER", "tester");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let seen = Seen::through(pair.master.try_clone_reader().unwrap(), columns, rows);
        let writer = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, writer, seen }
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        // Held meanwhile: nothing that is drawn for the new size is read by a screen of the old one.
        let mut seen = self.seen.lock().unwrap();
        self.master.resize(PtySize { rows, cols: columns, ..PtySize::default() }).unwrap();
        let [rows, columns] = [rows, columns].map(|size| std::num::NonZeroU16::new(size).unwrap());
        seen.screen.screen_mut().set_size(rows, columns);
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Everything that was written to the terminal.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().raw).into_owned()
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen holds this; the screen as it is then.
    pub(crate) fn wait_for(&self, what: &str) -> String {
        self.wait_until(what, |text| text.contains(what))
    }

    /// Waits until the screen is as wanted; the whole screen as it is then, and no part of a frame.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        wait_until(&self.seen, what, wanted)
    }

    /// The exit status, or a panic when the process is still there after `limit`.
    pub(crate) fn ended_within(&mut self, limit: Duration) -> u32 {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(Instant::now() < until, "the process is still there:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(seen: &Mutex<Seen>, what: &str, wanted: impl Fn(&str) -> bool) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let (text, whole) = {
            let seen = seen.lock().unwrap();
            (seen.screen.screen().contents(), seen.is_whole())
        };
        if whole && wanted(&text) {
            return text;
        }
        assert!(Instant::now() < until, "the screen never showed {what:?}:\n{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A dashboard on a terminal that can be taken away: script(1) owns it, and when that is killed nobody holds the other end
/// any more.
pub(crate) struct Owned {
    owner: std::process::Child,
    dashboard: std::path::PathBuf,
    seen: Arc<Mutex<Seen>>,
}

impl Owned {
    /// Starts the binary with these arguments and this environment, and waits until it has the screen.
    pub(crate) fn start(args: &[&str], env: &[(&str, &Path)]) -> Self {
        let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
        let line = format!(
            "stty cols 140 rows 44; exec '{}' {}",
            env!("CARGO_BIN_EXE_sandboxer"),
            words.join(" ")
        );
        let mut command = Command::new("script");
        command
            .args(["-qfc", &line, "/dev/null"])
            .envs(env.iter().copied())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8");
        let mut owner = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let seen = Seen::through(owner.stdout.take().unwrap(), 140, 44);
        let mut console = Self { owner, dashboard: std::path::PathBuf::new(), seen };
        console.wait_for("Sandboxes");
        let children = format!("/proc/{0}/task/{0}/children", console.owner.id());
        let number = std::fs::read_to_string(children).unwrap().trim().to_owned();
        console.dashboard = Path::new("/proc").join(number);
        assert!(console.is_there(), "the dashboard {} does not run", console.dashboard.display());
        console
    }

    /// Waits until the screen holds this.
    pub(crate) fn wait_for(&self, what: &str) {
        wait_until(&self.seen, what, |text| text.contains(what));
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.owner.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Takes the terminal away.
    pub(crate) fn lose(&mut self) {
        self.owner.kill().unwrap();
        self.owner.wait().unwrap();
    }

    /// Whether the dashboard still runs. What has ended has no program.
    pub(crate) fn is_there(&self) -> bool {
        std::fs::read_link(self.dashboard.join("exe")).is_ok()
    }

    /// Waits for the dashboard's end.
    pub(crate) fn wait_for_end(&self) {
        let until = Instant::now() + PATIENCE;
        while self.is_there() {
            assert!(
                Instant::now() < until,
                "process {} outlived its terminal",
                self.dashboard.display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.owner.kill();
        let _ = self.owner.wait();
    }
}
