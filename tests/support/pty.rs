//! The real binary in a pty with a terminal emulator behind it: a bare pty would leave the cursor query unanswered.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long a screen may take to show something. Generous: machines are busy, and nothing here measures speed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A dashboard on a terminal.
pub(crate) struct Console {
    pub(crate) child: Box<dyn Child + Send + Sync>,
    /// Kept open: closing it would hang the terminal up.
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
}

impl Console {
    /// Starts the binary with these arguments and this environment alone.
    pub(crate) fn start(args: &[&str], env: &[(&str, &Path)], columns: u16, rows: u16) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_sandboxer"), args, env, columns, rows)
    }

    /// Starts another program, such as a shell.
    pub(crate) fn start_program(program: &str, args: &[&str], env: &[(&str, &Path)], columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(PtySize { rows, cols: columns, ..PtySize::default() }).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("TERM", "xterm-256color");
        command.env("USER", "tester");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let [rows, columns] = [rows, columns].map(|size| std::num::NonZeroU16::new(size).unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (shown, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(read) = reader.read(&mut buffer) {
                if read == 0 {
                    break;
                }
                shown.lock().unwrap().process(&buffer[..read]);
                kept.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, writer, screen, raw }
    }

    /// Gives the terminal another size.
    #[allow(dead_code, reason = "not everyone needs it")]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.master.resize(PtySize { rows, cols: columns, ..PtySize::default() }).unwrap();
        let [rows, columns] = [rows, columns].map(|size| std::num::NonZeroU16::new(size).unwrap());
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    /// What the screen shows.
    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Everything that was written to the terminal.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen holds this; the screen as it is then.
    pub(crate) fn wait_for(&self, what: &str) -> String {
        self.wait_until(what, |text| text.contains(what))
    }

    /// Waits until the screen is as wanted.
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(Instant::now() < until, "the screen never showed {what:?}:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
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
