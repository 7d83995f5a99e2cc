//! The dashboard: one queue, one loop.
//!
//! Input and the client's answers become a [`Msg`]; [`mod@update`] changes the model and says what is to be done; the
//! effects run as tasks and answer into the same queue. The loop awaits nothing else, and draws only when something
//! may have changed, at most every 16 ms.

mod console;
pub mod effects;
mod foreground_process;
mod input;
pub mod keymap;
mod message;
pub mod model;
mod shutdown;
mod signals;
mod terminal;
pub mod update;
pub mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

pub(crate) use console::Notify;
use console::{Console, EventSource, Next};
use input::Input;
pub use message::{Completion, Effect, Msg, ShellEnd, Timer};
use model::{Appearance, Fetch, Model, SavedState, Sweep, ThemeName};
pub use shutdown::Ended;
pub(crate) use signals::EndSignal;
use signals::{LoopEnd, Signals, failed, unusable};

use crate::client::Client;
use crate::domain::Time;
use crate::domain::error::Error;

/// Messages that may wait; a full queue slows the senders down.
const QUEUE: usize = 1024;

/// How a dashboard runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Mutating keys are refused.
    pub read_only: bool,
    /// Colours.
    pub theme: ThemeName,
    /// Only ASCII glyphs.
    pub ascii: bool,
    /// No colours, whatever the theme (`NO_COLOR`, `--no-color`).
    pub no_color: bool,
    /// Rebound keys: an action's name, its keys separated by spaces.
    pub keys: BTreeMap<String, String>,
    /// How long a read of everything is good for.
    pub refresh: Duration,
    /// How often it ends what has expired; none: never.
    pub sweep: Option<Duration>,
    /// How to notify.
    pub notify: Notify,
    /// The time zone of every screen.
    pub zone: jiff::tz::TimeZone,
    /// Where pane and sort are remembered; none: nowhere.
    pub state_file: Option<PathBuf>,
    /// The home directory, which `~` means in a path.
    pub home: Option<PathBuf>,
    pub clock: fn() -> Time,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_only: false,
            theme: ThemeName::default(),
            ascii: false,
            no_color: false,
            keys: BTreeMap::new(),
            refresh: Duration::from_secs(2),
            sweep: None,
            notify: Notify::default(),
            zone: jiff::tz::TimeZone::system(),
            state_file: None,
            home: None,
            clock: || Time::new(jiff::Timestamp::now()),
        }
    }
}

/// Runs the dashboard on this terminal until the operator leaves, a signal ends it, or the terminal is gone: then what runs
/// is finished first, without it. The caller closes the client, which rolls back what still runs.
///
/// Errors: `invalid_config` for keys that clash (before the terminal is touched), `internal` when the terminal
/// cannot be used.
pub async fn run(client: Arc<dyn Client>, options: Options) -> Result<Ended, Error> {
    let model = model_of(client.as_ref(), &options)?;
    let (queue, inbox) = mpsc::channel(QUEUE);
    let effects = effects::Effects::new(client, queue, options.state_file.clone());
    // The reads start before the terminal is touched: the list is there when the first frame is.
    for effect in update::start(&model) {
        effects.run(effect);
    }
    let signals = Signals::new().map_err(|error| unusable("signals cannot be heard", error))?;
    let gone = watch()?;
    // Our theme knows NO_COLOR; crossterm's own handling of it would cancel reverse video.
    crossterm::style::force_color_output(true);
    let guard = terminal::Guard::new(model.mouse)
        .map_err(|error| unusable("the terminal cannot be used", error))?;
    let tty = terminal::open().map_err(|error| unusable("the terminal cannot be used", error))?;
    let input = terminal::input()
        .and_then(Input::new)
        .map_err(|error| unusable("the terminal cannot be read", error))?;
    let (notify, clock) = (options.notify, options.clock);
    let mut console = Console {
        model,
        view: view::draw,
        tty,
        effects,
        notify,
        clock,
        dirty: true,
        drawn: None,
        away: false,
    };
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut source = EventSource { inbox, signals, gone, tick };
    let mut outcome = console.run(input, &mut source).await;
    drop(guard);
    if matches!(outcome, Err(LoopEnd::Signal(EndSignal::HangUp))) {
        outcome = console.finish_without_screen(&mut source).await;
    }
    drop(source);
    console.effects.stop().await;
    if let Some(path) = &options.state_file {
        let _ = effects::write_state(path, &console.model.saved_state());
    }
    match outcome {
        Ok(()) => Ok(Ended::Left),
        Err(LoopEnd::Signal(signal)) => Ok(Ended::By(signal)),
        Err(LoopEnd::Failed(error)) => Err(error),
    }
}

/// The model at start: what the options say and the last run left.
fn model_of(client: &dyn Client, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new((options.clock)(), keymap::Keymap::new(&options.keys)?);
    model.appearance =
        Appearance { theme: options.theme, ascii: options.ascii, no_color: options.no_color };
    model.read_only = options.read_only;
    model.sweeps.interval = options.sweep.filter(|_| !options.read_only);
    if model.sweeps.interval.is_some() {
        model.sweep = Sweep::On;
    }
    model.home.clone_from(&options.home);
    model.refresh = options.refresh.max(Duration::from_millis(500));
    model.actor = client.actor().to_string();
    model.zone = options.zone.clone();
    model.process =
        (std::process::id(), rustix::system::uname().nodename().to_string_lossy().into_owned());
    (model.reading, model.reading_snapshots) = (Fetch::Running, Fetch::Running);
    let text = options.state_file.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    let saved_state = SavedState::parse(text.as_deref().unwrap_or_default());
    model.focus_on(saved_state.pane.unwrap_or(model.focus));
    model.looked_before = saved_state.last_look;
    if let Some(sort) = saved_state.sort {
        model.sandboxes.set_sort(sort);
    }
    Ok(model)
}

/// Watches for the terminal's end in a thread of its own: a hang-up does not come as something to read everywhere, nor does
/// every owner of a terminal send the signal.
fn watch() -> Result<oneshot::Receiver<()>, Error> {
    let (tell, gone) = oneshot::channel();
    let tty =
        terminal::input().map_err(|error| unusable("the dashboard needs a terminal", error))?;
    let watcher = move || {
        if terminal::wait_for_hang_up(&tty) {
            let _ = tell.send(());
        } else {
            // It cannot be watched here: never answer, rather than answer wrongly.
            std::mem::forget(tell);
        }
    };
    let spawned = std::thread::Builder::new().name("terminal-watch".to_owned()).spawn(watcher);
    spawned.map_err(|error| unusable("the terminal cannot be watched", error))?;
    Ok(gone)
}

impl Console {
    /// Hears and draws until the operator leaves.
    async fn run(&mut self, mut input: Input, source: &mut EventSource) -> Result<(), LoopEnd> {
        let start = Instant::now();
        self.resized()?;
        loop {
            let next = tokio::select! {
                biased;
                signal = source.signals.ends.next() => return Err(LoopEnd::Signal(signal)),
                _ = &mut source.gone => return Err(LoopEnd::Signal(EndSignal::HangUp)),
                _ = source.signals.continued.recv() => { self.resume()?; Next::On }
                // Before the next key: what does not fit on the screen any more is not there.
                _ = source.signals.resized.recv() => self.resized()?,
                event = input.next() => match event {
                    Ok(Some(event)) => self.input(event)?,
                    Ok(None) => return Err(LoopEnd::Signal(EndSignal::HangUp)),
                    Err(error) => return Err(failed("the terminal cannot be read", error)),
                },
                () = tokio::time::sleep_until(self.frame_due(start)), if self.dirty => { self.draw()?; Next::On }
                Some(msg) = source.inbox.recv() => self.take_all(msg, &mut source.inbox)?,
                _ = source.tick.tick() => self.take(Msg::Tick((self.clock)()))?,
            };
            match next {
                Next::On => {}
                Next::Quit => return Ok(()),
                Next::Suspend => self.suspend(&mut source.signals.continued).await?,
                Next::Shell(request, title) => {
                    self.hand_over(*request, &title, &mut input, source).await?;
                }
                Next::Write(snapshot) => self.write_patch(snapshot, &mut input, source).await?,
            }
            // What was waited for may have ended while a shell had the terminal.
            if update::may_leave(&self.model) {
                return Ok(());
            }
        }
    }
}
