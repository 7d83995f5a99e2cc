//! Console: what the loop works on. It takes messages, does what only the terminal can, and draws when something changed.

use std::time::Duration;

use crossterm::event::Event;
use ratatui::backend::{Backend as _, ClearType};
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Interval};

use super::effects;
use super::message::{Effect, Msg, Timer};
use super::model::{Load, Model};
use super::signals::{LoopEnd, Signals, draw_failed, failed};
use super::terminal::{self, Tty};
use super::update::update;
use crate::client::ShellRequest;
use crate::domain::Time;
use crate::domain::name::SnapshotId;

/// Least time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// How long the first frame waits for the list.
const FIRST: Duration = Duration::from_millis(20);

/// How the dashboard tells something to an operator who looks elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// The terminal's bell.
    #[default]
    Bell,
    /// OSC 9, a desktop notification in terminals that know it.
    Osc9,
    /// Not at all.
    None,
}

/// Sources that the loop hears besides keys.
pub(super) struct EventSource {
    pub(super) inbox: mpsc::Receiver<Msg>,
    pub(super) signals: Signals,
    pub(super) gone: oneshot::Receiver<()>,
    pub(super) tick: Interval,
}

/// State that the loop works on.
pub(super) struct Console {
    pub(super) model: Model,
    /// Draws the model; answers where the text cursor is.
    pub(super) view: fn(&Model, &mut Buffer) -> Option<Position>,
    pub(super) tty: Tty,
    pub(super) effects: effects::Effects,
    pub(super) notify: Notify,
    pub(super) clock: fn() -> Time,
    /// Whether something visible may have changed since the last frame.
    pub(super) dirty: bool,
    /// When the last frame was drawn.
    pub(super) drawn: Option<Instant>,
    /// Whether a shell has the terminal: nothing is written to it then.
    pub(super) away: bool,
}

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
pub(super) enum Next {
    On,
    Suspend,
    /// A shell is opened: for what, and what it is called.
    Shell(Box<ShellRequest>, String),
    /// An editor is opened, for a patch on that snapshot.
    Write(SnapshotId),
    Quit,
}

impl Console {
    /// Wipes the screen, so that the next frame is drawn in full. Not `Terminal::clear`: that asks where the cursor is,
    /// and a terminal that does not answer would hold the loop for two seconds and then end it.
    pub(super) fn clear(&mut self) -> std::io::Result<()> {
        self.tty.backend_mut().clear_region(ClearType::All)?;
        self.tty.swap_buffers();
        Ok(())
    }

    /// When the next frame may be drawn: the first one waits a moment for the list.
    pub(super) fn frame_due(&self, start: Instant) -> Instant {
        match self.drawn {
            Some(drawn) => drawn + FRAME,
            None if self.model.sandboxes.load == Load::Loading => start + FIRST,
            None => start,
        }
    }

    pub(super) fn input(&mut self, event: Event) -> Result<Next, LoopEnd> {
        let msg = match event {
            Event::Key(key) => Msg::Key(key),
            Event::Paste(text) => Msg::Paste(text),
            Event::Mouse(event) => Msg::Mouse(event),
            Event::Resize(width, height) => Msg::Resize(width, height),
            Event::FocusGained | Event::FocusLost => return Ok(Next::On),
        };
        self.take(msg)
    }

    /// Takes a message and those that wait behind it, but not so many that a key would wait.
    pub(super) fn take_all(
        &mut self,
        msg: Msg,
        inbox: &mut mpsc::Receiver<Msg>,
    ) -> Result<Next, LoopEnd> {
        let mut next = self.take(msg)?;
        for _ in 0..64 {
            if next != Next::On {
                break;
            }
            let Ok(msg) = inbox.try_recv() else { break };
            next = self.take(msg)?;
        }
        Ok(next)
    }

    pub(super) fn take(&mut self, msg: Msg) -> Result<Next, LoopEnd> {
        // Timers show nothing by themselves but that a host is asked, and what a sample changed is seen with the next second.
        self.dirty |= matches!(msg, Msg::Due(Timer::Host(_)))
            || !matches!(msg, Msg::Due(_) | Msg::HostSampled(..));
        let mut next = Next::On;
        for effect in terminal::on_screen(|| update(&mut self.model, msg)) {
            match effect {
                Effect::Quit => next = Next::Quit,
                Effect::Suspend => next = Next::Suspend,
                Effect::Shell(request, title) => next = Next::Shell(request, title),
                Effect::Write(snapshot) => next = Next::Write(snapshot),
                Effect::Redraw | Effect::Copy(_) | Effect::Mouse(_) | Effect::Notify(_)
                    if self.away => {}
                Effect::Redraw => self.clear().map_err(draw_failed)?,
                Effect::Copy(text) => terminal::copy(&text).map_err(draw_failed)?,
                Effect::Mouse(on) => terminal::mouse(on).map_err(draw_failed)?,
                Effect::Notify(text) => match self.notify {
                    Notify::Bell => terminal::notify(None).map_err(draw_failed)?,
                    Notify::Osc9 => terminal::notify(Some(&text)).map_err(draw_failed)?,
                    Notify::None => {}
                },
                effect => self.effects.run(effect),
            }
        }
        Ok(next)
    }

    pub(super) fn draw(&mut self) -> Result<(), LoopEnd> {
        self.resized()?;
        let (model, view) = (&self.model, self.view);
        let drawn = terminal::on_screen(|| {
            self.tty.draw(|frame| {
                if let Some(cursor) = view(model, frame.buffer_mut()) {
                    frame.set_cursor_position(cursor);
                }
            })
        });
        drawn.map_err(draw_failed)?;
        self.take(Msg::Drawn)?;
        self.dirty = false;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// Takes the terminal's size, if it is another one.
    pub(super) fn resized(&mut self) -> Result<Next, LoopEnd> {
        self.dirty = true;
        let size = self.tty.size().map_err(draw_failed)?;
        if (size.width, size.height) == self.model.size {
            return Ok(Next::On);
        }
        self.take(Msg::Resize(size.width, size.height))
    }

    /// Gives the terminal back, stops, and comes back when the shell says so.
    pub(super) async fn suspend(&mut self, continued: &mut Signal) -> Result<(), LoopEnd> {
        terminal::restore();
        terminal::stop_here(continued)
            .await
            .map_err(|error| failed("the process cannot be stopped", error))?;
        self.resume()
    }

    pub(super) fn resume(&mut self) -> Result<(), LoopEnd> {
        terminal::enter(self.model.mouse).map_err(draw_failed)?;
        self.take(Msg::Resumed)?;
        Ok(())
    }
}
