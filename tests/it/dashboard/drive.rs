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
use ratatui::style::Style;
use sandboxer::client::{Client as _, PatchStatus, Request, Update};
use sandboxer::domain::event::Event;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::name::OperationId;
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::domain::update::Progress;
use sandboxer::domain::{OperationKind, Time};
use sandboxer::tui::effects::Effects;
use sandboxer::tui::keymap::Keymap;
use sandboxer::tui::model::{Confirm, Entry, Fetch, Form, Load, Model, Overlay, Patches};
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

/// A console that has read nothing yet.
pub(crate) fn empty_model() -> Model {
    let mut model = Model::new(now(), Keymap::new(&BTreeMap::new()).unwrap());
    "adm:kim".clone_into(&mut model.actor);
    model.listening = true;
    update(&mut model, Msg::Resize(120, 36));
    model
}

/// A console that has read these sandboxes and nothing else.
pub(crate) fn model_with(records: Vec<SandboxRecord>) -> Model {
    let mut model = empty_model();
    list(&mut model, records);
    model
}

/// A console that has read sandboxes, and whose hosts answered.
pub(crate) fn answered(records: Vec<SandboxRecord>, hosts: Vec<HostView>) -> Model {
    let mut model = model_with(records);
    let unseen =
        hosts.iter().map(|view| host(view.name.as_str(), HostState::Unknown, None)).collect();
    update(&mut model, Msg::Hosts(Ok(unseen)));
    for view in hosts {
        check(&mut model, HostView { checked_at: Some(now()), ..view });
    }
    update(&mut model, Msg::Events(None, Ok(Vec::new())));
    model.toast = None;
    model
}

/// A world with its hosts' answers, and its snapshots.
pub(crate) fn model_of(world: Fixture) -> Model {
    let snapshots = world.snapshot_views();
    let mut model = answered(world.records, world.hosts);
    update(&mut model, Msg::Operations(Ok(Vec::new())));
    update(&mut model, Msg::Extensions(Ok(world.extensions)));
    update(&mut model, Msg::Snapshots(Ok(snapshots)));
    model.reading_snapshots = Fetch::Idle;
    model.toast = None;
    model
}

/// A host was asked, and this is how it is.
pub(crate) fn check(model: &mut Model, view: HostView) -> Vec<Effect> {
    update(model, Msg::HostChecked(view.name.clone(), Ok(Box::new(view))))
}

pub(crate) fn hear(model: &mut Model, heard: Update) -> Vec<Effect> {
    update(model, Msg::Heard(Box::new(heard)))
}

/// An event of now, by `adm:kim`.
pub(crate) fn event(seq: u64, kind: &str, sandbox: Option<&str>) -> Event {
    serde_json::from_value(serde_json::json!({
        "seq": seq, "sandbox_seq": null, "id": format!("e{seq}"), "time": now(), "kind": kind, "sandbox_id": sandbox,
        "actor": {"type": "adm", "name": "kim"}, "data": {}
    }))
    .unwrap()
}

/// A step of an operation on a sandbox, of six.
pub(crate) fn progress(kind: OperationKind, sandbox: &str, stage: &str, step: u32) -> Progress {
    Progress {
        operation: OperationId::from_random(0x77),
        kind,
        sandbox_id: Some(sandbox.into()),
        snapshot_id: None,
        stage: stage.to_owned(),
        step,
        steps: 6,
        done: None,
        of: None,
        bytes: None,
        message: None,
    }
}

/// The cursor of the list on the sandbox of this name, or id.
pub(crate) fn point_at(model: &mut Model, title: &str) {
    let is_it = |record: &SandboxRecord| record.title() == title || record.id.as_str() == title;
    let found = model.sandboxes.shown().iter().find(|entry| is_it(&entry.record));
    let id = found.unwrap_or_else(|| panic!("{title} is not listed")).record.id.clone();
    model.sandboxes.point_at(id);
}

/// Toast of the console, which is heard once.
pub(crate) fn toast(model: &mut Model) -> String {
    model.toast.take().map(|toast| toast.text).unwrap_or_default()
}

/// Panics unless all of these texts are on the screen, which comes back.
pub(crate) fn shows(model: &mut Model, size: (u16, u16), texts: &[&str]) -> String {
    let shown = screen(model, size);
    for text in texts {
        assert!(shown.contains(text), "{text:?} is not in\n{shown}");
    }
    shown
}

/// Panics unless a read-only console refuses each of these keys, and says so.
pub(crate) fn refused(model: &mut Model, keys: &str) {
    model.read_only = true;
    let depth = model.overlays.len();
    for key in keys.split(' ') {
        assert_eq!(press(model, key), [], "{key}");
        assert_eq!(model.overlays.len(), depth, "{key}: {:?}", model.overlays);
        assert!(toast(model).contains("read-only"), "{key}");
    }
}

/// Requests that start something.
pub(crate) fn started(effects: &[Effect]) -> Vec<&Request> {
    let request = effects.iter().filter_map(|effect| match effect {
        Effect::Start(_, request) => Some(request),
        _ => None,
    });
    request.collect()
}

pub(crate) fn confirm(model: &Model) -> &Confirm {
    match model.overlays.last() {
        Some(Overlay::Confirm(confirm)) => confirm,
        other => panic!("nothing is asked: {other:?}"),
    }
}

pub(crate) fn form(model: &Model) -> &Form {
    match model.overlays.last() {
        Some(Overlay::Form(form)) => form,
        other => panic!("no form is open: {other:?}"),
    }
}

pub(crate) fn patches(model: &Model) -> &Patches {
    match model.overlays.last() {
        Some(Overlay::Patches(patches)) => patches,
        other => panic!("no patches are open: {other:?}"),
    }
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

/// Runs of cells that look the same, each with its row, its first and last column, and its text.
pub(crate) fn runs(buffer: &Buffer) -> Vec<(u16, u16, u16, Style, String)> {
    let mut runs: Vec<(u16, u16, u16, Style, String)> = Vec::new();
    for y in 0..buffer.area.height {
        for x in 0..buffer.area.width {
            let (style, symbol) = (buffer[(x, y)].style(), buffer[(x, y)].symbol());
            match runs.last_mut() {
                Some((row, _, end, own, text)) if *row == y && *own == style => {
                    *end = x;
                    text.push_str(symbol);
                }
                _ => runs.push((y, x, x, style, symbol.to_owned())),
            }
        }
    }
    runs
}

/// How the patches of a snapshot stand, as a client says it.
pub(crate) fn patch_status(fixture: &Fixture, snapshot: &str) -> Vec<PatchStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asked = async { TestEnv::of(fixture).await.client.patch_status(snapshot).await };
    runtime.block_on(asked).unwrap()
}

/// Time that this thread has worked so far, to 10 ms: how long others kept it from working says nothing about it.
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

    /// Waits until the form on top is answered.
    pub(crate) async fn form_answered(&mut self) {
        let answered = |model: &Model| match model.overlays.last() {
            Some(Overlay::Form(form)) => !form.is_asked(),
            _ => true,
        };
        self.until("an answer", answered).await;
    }

    /// Waits until jobs were begun and none runs.
    pub(crate) async fn jobs_end(&mut self) {
        self.until("the jobs' end", |model| {
            model.jobs.list().len() > 0 && model.jobs.running().count() == 0
        })
        .await;
    }

    /// Calls of the extension that begin so.
    pub(crate) fn asked(&self, begins: &str) -> Vec<String> {
        self.env.script.asked().into_iter().filter(|asked| asked.starts_with(begins)).collect()
    }
}
