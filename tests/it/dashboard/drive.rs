//! The dashboard without a terminal: keys in, screens out, and effects on a real client.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use sandboxer::client::{Client as _, PatchStatus};
use sandboxer::domain::Time;
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::tui::effects::Effects;
use sandboxer::tui::keymap::Keymap;
use sandboxer::tui::model::{Entry, Fetch, Load, Model};
use sandboxer::tui::update::{start, update};
use sandboxer::tui::{Completion, Effect, Msg, view};
use tokio::sync::mpsc;

use crate::test_env::TestEnv;
use crate::test_env::fixture::{Fixture, host, world};
use crate::test_env::script::Scripted;

pub(crate) fn real_now() -> Time {
    Time::new(jiff::Timestamp::now())
}

/// 2026-11-27 14:03:22 UTC.
const NOW: i64 = 1_795_788_202;

pub(crate) fn now() -> Time {
    Time::from_unix(NOW)
}

/// The small world with its hosts' answers.
pub(crate) fn world_model() -> Model {
    model_of(world(now()))
}

/// A world with its hosts' answers, and its snapshots.
pub(crate) fn model_of(world: Fixture) -> Model {
    let mut model = Model::new(now(), Keymap::new(&BTreeMap::new()).unwrap());
    "adm:kim".clone_into(&mut model.actor);
    model.listening = true;
    update(&mut model, Msg::Resize(120, 36));
    let snapshots = world.snapshot_views();
    list(&mut model, world.records);
    let unseen =
        world.hosts.iter().map(|view| host(view.name.as_str(), HostState::Unknown, None)).collect();
    update(&mut model, Msg::Hosts(Ok(unseen)));
    for mut view in world.hosts {
        view.checked_at = Some(now());
        update(&mut model, Msg::HostChecked(view.name.clone(), Ok(Box::new(view))));
    }
    update(&mut model, Msg::Events(None, Ok(Vec::new())));
    update(&mut model, Msg::Operations(Ok(Vec::new())));
    update(&mut model, Msg::Extensions(Ok(world.extensions)));
    update(&mut model, Msg::Snapshots(Ok(snapshots)));
    model.reading_snapshots = Fetch::Idle;
    model.toast = None;
    model
}

pub(crate) fn list(model: &mut Model, records: Vec<SandboxRecord>) -> Vec<Effect> {
    let entries = records.into_iter().map(|record| Arc::new(Entry::new(record))).collect();
    update(model, Msg::Listed(Ok(entries)))
}

pub(crate) fn key_event(word: &str) -> KeyEvent {
    let (word, modifiers) = match word.strip_prefix("ctrl-") {
        Some(rest) => (rest, KeyModifiers::CONTROL),
        None => (word, KeyModifiers::NONE),
    };
    let code = match word {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "space" => KeyCode::Char(' '),
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pgup" => KeyCode::PageUp,
        "pgdn" => KeyCode::PageDown,
        "backspace" => KeyCode::Backspace,
        "down" => KeyCode::Down,
        "up" => KeyCode::Up,
        "end" => KeyCode::End,
        _ => KeyCode::Char(word.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

/// Presses keys, separated by spaces, each when what the one before did is on the screen; all effects come back.
pub(crate) fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let press = |word| {
        let effects = update(model, Msg::Key(key_event(word)));
        update(model, Msg::Drawn);
        effects
    };
    keys.split(' ').flat_map(press).collect()
}

/// The same where no folder completes what is typed: tab goes on.
pub(crate) fn press_beyond_folders(model: &mut Model, keys: &str) -> Vec<Effect> {
    let press = |word| {
        let mut effects = update(model, Msg::Key(key_event(word)));
        if let [Effect::Complete(typed, ..)] = &effects[..] {
            let answer = Msg::Completed(typed.clone(), Completion::Nothing);
            effects = update(model, answer);
        }
        update(model, Msg::Drawn);
        effects
    };
    keys.split(' ').flat_map(press).collect()
}

pub(crate) fn type_text(model: &mut Model, text: &str) -> Vec<Effect> {
    let event = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    text.chars().flat_map(|c| update(model, Msg::Key(event(c)))).collect()
}

pub(crate) fn draw(model: &mut Model, (width, height): (u16, u16)) -> Buffer {
    update(model, Msg::Resize(width, height));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let model = &*model;
    terminal
        .draw(|frame| {
            if let Some(cursor) = view::draw(model, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

pub(crate) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y| {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(sandboxer::domain::text::columns(symbol)).unwrap().max(1);
        }
        line.trim_end().to_owned()
    };
    (0..area.height).map(line).collect::<Vec<_>>().join("\n")
}

/// How the patches of a snapshot stand, as a client says it.
pub(crate) fn patch_status(fixture: &Fixture, snapshot: &str) -> Vec<PatchStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asked = async { TestEnv::of(fixture).await.client.patch_status(snapshot).await };
    runtime.block_on(asked).unwrap()
}

/// What this thread has worked so far, to 10 ms: how long others kept it from working says nothing about it.
pub(crate) fn on_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
    Duration::from_millis(fields.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum())
}

/// A screen as text.
pub(crate) fn screen(model: &mut Model, size: (u16, u16)) -> String {
    text(&draw(model, size))
}

/// Update and effects on the client of a world.
pub(crate) struct Drive {
    pub(crate) model: Box<Model>,
    pub(crate) env: TestEnv,
    pub(crate) effects: Effects,
    pub(crate) inbox: mpsc::Receiver<Msg>,
    /// Effects that only a terminal can do.
    pub(crate) terminal: Vec<Effect>,
}

impl Drive {
    pub(crate) fn new(fixture: Fixture) -> LocalBoxFuture<'static, Self> {
        Self::scripted(fixture, Scripted::default())
    }

    /// With an extension that does as this says.
    pub(crate) fn scripted(fixture: Fixture, script: Scripted) -> LocalBoxFuture<'static, Self> {
        // Boxed: a world is large, and a part of nearly every test.
        Self::over(fixture, script).boxed_local()
    }

    async fn over(fixture: Fixture, script: Scripted) -> Self {
        let env = TestEnv::with_script(&fixture, script).await;
        let (queue, inbox) = mpsc::channel(1024);
        let effects = Effects::new(env.client.clone(), queue, None);
        let mut model =
            Box::new(Model::new(env.script.wall(), Keymap::new(&BTreeMap::new()).unwrap()));
        update(&mut model, Msg::Resize(120, 36));
        model.process = (std::process::id(), "here".to_owned());
        (model.reading, model.reading_snapshots) = (Fetch::Running, Fetch::Running);
        let mut drive = Self { model, env, effects, inbox, terminal: Vec::new() };
        for effect in start(&drive.model) {
            drive.effects.run(effect);
        }
        drive
            .until("the list and the snapshots", |model| {
                model.sandboxes.load == Load::Ready
                    && model.snapshots.load != Load::Loading
                    && model.listening
            })
            .await;
        drive
    }

    pub(crate) fn take(&mut self, msg: Msg) {
        for effect in update(&mut self.model, msg) {
            if matches!(
                effect,
                Effect::Shell(..) | Effect::Write(_) | Effect::Quit | Effect::Copy(_)
            ) {
                self.terminal.push(effect);
            } else {
                self.effects.run(effect);
            }
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        for word in keys.split(' ') {
            self.take(Msg::Key(key_event(word)));
            self.take(Msg::Drawn);
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        for c in text.chars() {
            self.take(Msg::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
        }
    }

    pub(crate) async fn until(&mut self, what: &str, done: impl Fn(&Model) -> bool) {
        let limit = tokio::time::Instant::now() + Duration::from_secs(30);
        while !done(&self.model) {
            let msg = tokio::time::timeout_at(limit, self.inbox.recv()).await;
            let Ok(Some(msg)) = msg else {
                panic!("waited in vain for {what}: {:#?}", self.model.toast)
            };
            self.take(msg);
        }
    }

    /// Takes messages until something outside of the model is so.
    pub(crate) async fn until_so(&mut self, what: &str, is: impl Fn() -> bool) {
        let limit = tokio::time::Instant::now() + Duration::from_secs(30);
        while !is() {
            assert!(tokio::time::Instant::now() < limit, "waited in vain for {what}");
            self.go_on(Duration::from_millis(10)).await;
        }
    }

    /// Takes messages for a while.
    pub(crate) async fn go_on(&mut self, time: Duration) {
        let limit = tokio::time::Instant::now() + time;
        while let Ok(Some(msg)) = tokio::time::timeout_at(limit, self.inbox.recv()).await {
            self.take(msg);
        }
    }

    pub(crate) fn screen(&mut self, size: (u16, u16)) -> String {
        screen(&mut self.model, size)
    }

    /// Waits until jobs were begun and none runs.
    pub(crate) async fn jobs_end(&mut self) {
        self.until("the jobs' end", |model| {
            model.jobs.list().len() > 0 && model.jobs.running().count() == 0
        })
        .await;
    }

    /// What the extension was asked that begins so.
    pub(crate) fn asked(&self, begins: &str) -> Vec<String> {
        self.env.script.asked().into_iter().filter(|asked| asked.starts_with(begins)).collect()
    }
}
