//! The dashboard in a pty with a terminal behind it: first frame, idle cost, memory, keys under load. Figures of the process come
//! from `/proc`, those of its children (ssh) with them.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sandboxer::domain::Time;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::event::{EventKind, PendingEvent};
use sandboxer::domain::name::SandboxId;
use sandboxer::store::EventLog as _;
use sandboxer::store::json::JsonStores;

use crate::fixture::{BIN, Fixture};
use crate::sample::Sample;

/// What a frame is waited for, at most.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long an idle dashboard is watched, after it has come to rest.
const WATCHED: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(6);
const EVENTS_PER_S: u32 = 200;
const KEYS: usize = 300;
/// Kernel's ticks in a second, as `/proc` counts.
const TICKS: f64 = 100.0;

/// A dashboard on a terminal of 120x36.
pub(crate) struct Console {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<AtomicU64>,
    began: Instant,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Console {
    /// Starts the dashboard with the environment of this command.
    pub(crate) fn start(like: &Command) -> Self {
        let size = portable_pty::PtySize { rows: 36, cols: 120, ..Default::default() };
        let pair = portable_pty::native_pty_system().openpty(size).expect("a pty");
        let mut command = portable_pty::CommandBuilder::new(BIN);
        command.env_clear();
        for (key, value) in like.get_envs() {
            if let Some(value) = value {
                command.env(key, value);
            }
        }
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        let [rows, columns] = [36, 120].map(|size| std::num::NonZeroU16::new(size).expect("not 0"));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let written = Arc::new(AtomicU64::new(0));
        let (shown, counted) = (Arc::clone(&screen), Arc::clone(&written));
        let began = Instant::now();
        let child = pair.slave.spawn_command(command).expect("the dashboard");
        drop(pair.slave);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                shown.lock().expect("a screen").process(&buffer[..read]);
                counted.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        Self { child, writer, screen, written, began, _master: pair.master }
    }

    /// Waits until the screen is as wanted; since the start.
    fn until(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) -> Duration {
        let mut seen = u64::MAX;
        loop {
            let written = self.written.load(Ordering::Relaxed);
            if written != seen {
                seen = written;
                let screen = self.screen.lock().expect("a screen");
                if wanted(screen.screen()) {
                    return self.began.elapsed();
                }
                let text = screen.screen().contents();
                assert!(self.began.elapsed() < PATIENCE, "no {what}:\n{text}");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits for the pane with its count and a row; since the start.
    pub(crate) fn first_frame(&self, count: usize) -> Duration {
        let title = format!("Sandboxes {count}");
        self.until("full frame", |screen| {
            let text = screen.contents();
            text.contains(&title) && text.contains("box-")
        })
    }

    fn press(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).expect("a key");
    }

    /// Row of the cursor bar.
    fn cursor(screen: &vt100::Screen) -> Option<usize> {
        screen.rows(0, 120).position(|row| row.contains('▌') || row.contains('▶'))
    }

    fn pid(&self) -> u32 {
        self.child.process_id().expect("a process")
    }

    /// Leaves, and waits for the end.
    pub(crate) fn leave(mut self) {
        self.press("q");
        let until = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().expect("its status").is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
    }
}

/// What the dashboard costs while nothing changes: percent of one processor, its children's included, and bytes a second that the
/// terminal gets.
pub(crate) fn idle(name: &str, like: &Command, count: usize) {
    let console = Console::start(like);
    console.first_frame(count);
    std::thread::sleep(REST);
    let before = (ticks(console.pid()), console.written.load(Ordering::Relaxed));
    std::thread::sleep(WATCHED);
    let ticks = ticks(console.pid()).saturating_sub(before.0);
    let bytes = console.written.load(Ordering::Relaxed) - before.1;
    let seconds = WATCHED.as_secs_f64();
    println!(
        "{name:<44} {:>9.2} % {:>7.0} B/s {:>8.1} MB",
        ticks as f64 / TICKS / seconds * 100.0,
        bytes as f64 / seconds,
        status(console.pid(), "VmRSS:") as f64 / 1024.0
    );
    console.leave();
}

/// From a key to the frame that shows it, while other processes do much.
pub(crate) fn keys(fixture: &Fixture, count: usize) {
    let mut console = Console::start(&fixture.sandboxer());
    console.first_frame(count);
    std::thread::sleep(Duration::from_secs(2));
    console.press(&"j".repeat(6));
    console.until("cursor", |screen| Console::cursor(screen).is_some());
    std::thread::sleep(Duration::from_millis(300));
    let stop = Arc::new(AtomicU64::new(0));
    let (ended, data) = (Arc::clone(&stop), fixture.join("data"));
    let storm = std::thread::spawn(move || storm(&data, count, &ended));
    let mut sample = Sample::default();
    for number in 0..KEYS {
        let at = {
            let screen = console.screen.lock().expect("a screen");
            Console::cursor(screen.screen())
        };
        let began = Instant::now();
        console.press(if number % 2 == 0 { "j" } else { "k" });
        console.until("move of the cursor", |screen| Console::cursor(screen) != at);
        sample.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(23));
    }
    stop.store(1, Ordering::Relaxed);
    let sent = storm.join().expect("the events");
    sample.print_tail(&format!("key to frame, {count} sandboxes, events"));
    println!("  ({sent:.0} events a second)");
    console.leave();
}

/// Events of sandboxes, as another process appends them; how many a second.
fn storm(data: &Path, count: usize, stop: &AtomicU64) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let log = JsonStores::open(data).expect("the stores").events;
    runtime.expect("a runtime").block_on(async {
        let (began, mut sent) = (Instant::now(), 0);
        let each = 5;
        while stop.load(Ordering::Relaxed) == 0 {
            let events = (0..each).map(|number| PendingEvent {
                id: uuid::Uuid::new_v4().to_string().as_str().into(),
                time: Time::new(jiff::Timestamp::now()),
                kind: EventKind::SandboxLabelled,
                sandbox_id: Some(SandboxId::new(format!(
                    "{:08x}",
                    (sent + number) as usize % count
                ))),
                actor: Actor::observer(),
                data: serde_json::Value::Null,
            });
            log.append(events.collect()).await.expect("an append");
            sent += each;
            let due = began + Duration::from_secs(1) * sent / EVENTS_PER_S;
            tokio::time::sleep_until(due.into()).await;
        }
        f64::from(sent) / began.elapsed().as_secs_f64()
    })
}

/// Processor time of a process and of all below it, in ticks. Children that ended are in their parents' figures.
fn ticks(pid: u32) -> u64 {
    let mut all = vec![pid];
    let mut sum = 0;
    while let Some(pid) = all.pop() {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // utime, stime, cutime, cstime
        sum += fields.iter().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum::<u64>();
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            all.extend(
                children
                    .unwrap_or_default()
                    .split_whitespace()
                    .filter_map(|n| n.parse::<u32>().ok()),
            );
        }
    }
    sum
}

/// A figure of `/proc/PID/status`, in KiB.
pub(crate) fn status(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}
