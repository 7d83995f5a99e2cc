//! Frame rule. What is typed before a dialog or a form was on the screen was meant for something else: no button hears it.
//! And what is not on the screen at all, because the terminal is too small, is not there.

use tui_input::Input;

use super::{Model, Overlay, Role};
use crate::tui::keymap::Mode;

impl Overlay {
    /// Where keys go while it is on top: the one list of overlays, from which follows what each is.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Details(_)
            | Self::Snapshot(_)
            | Self::Text(_)
            | Self::Host(_)
            | Self::Output(..)
            | Self::Help(_)
            | Self::Error(..) => Mode::TextBlock,
            Self::Picker(_) => Mode::Picker,
            Self::Form(_) => Mode::Form,
            Self::Patches(_) => Mode::Patches,
            Self::Reap => Mode::Reap,
            Self::Events(log) if log.field.is_some() => Mode::EventField,
            Self::Events(_) => Mode::Events,
            Self::Confirm(_) => Mode::Confirm,
            Self::Jobs(_) => Mode::Jobs,
            Self::Palette(..) => Mode::Palette,
            Self::Logs(logs) if logs.search.is_some() => Mode::LogField,
            Self::Logs(_) => Mode::Logs,
            Self::Shell(_) => Mode::Shell,
        }
    }

    /// Whether something is asked for, chosen or typed in it, and not only read.
    fn acts(&self) -> bool {
        matches!(
            self.mode(),
            Mode::Picker | Mode::Form | Mode::Confirm | Mode::Palette | Mode::Shell
        )
    }

    /// The mark of one with buttons, or whose enter changes something: whether a frame showed it as it is.
    fn drawn(&mut self) -> Option<&mut bool> {
        match self {
            Self::Confirm(confirm) => Some(&mut confirm.drawn),
            Self::Form(form) => Some(&mut form.drawn),
            _ => None,
        }
    }
}

impl Model {
    /// Whether the terminal is too small to show anything but a sentence.
    pub fn is_blind(&self) -> bool {
        self.screen().header.height == 0
    }

    /// Everything is on the screen as it is now.
    pub fn drawn(&mut self) {
        for drawn in self.overlays.iter_mut().filter_map(Overlay::drawn) {
            *drawn = true;
        }
        self.reap.drawn |= matches!(self.overlays.last(), Some(Overlay::Reap));
    }

    /// The text field of one line that keys go to, where they go to one.
    pub fn line_field(&mut self) -> Option<&mut Input> {
        let (mode, depth) = (self.mode(), self.overlays.len());
        match (mode, self.overlays.last_mut()) {
            (Mode::SearchField, _) => self.searches.at_mut(depth)?.field.as_mut(),
            (_, None) => self.filter_field.as_mut(),
            (_, Some(Overlay::Picker(picker))) => Some(&mut picker.search),
            (_, Some(Overlay::Palette(input, at))) => {
                // What is found is another list.
                *at = 0;
                Some(input)
            }
            (_, Some(Overlay::Logs(logs))) => logs.search.as_mut().map(|search| &mut search.field),
            (_, Some(Overlay::Events(log))) => log.field.as_mut(),
            (_, Some(_)) => None,
        }
    }

    /// Says that a key was typed before what it would have acted on was on the screen.
    pub fn say_undrawn(&mut self) {
        self.say(Role::Dim, "that was typed before this was on the screen: press it again");
    }

    /// Counts a change that a frozen display does not show.
    pub fn hold(&mut self) {
        if let Some(held) = &mut self.frozen {
            *held += 1;
        }
    }

    /// Closes what acts: nobody sees it. What is only read stays.
    pub fn close_acting(&mut self) {
        self.overlays.retain(|overlay| !overlay.acts());
        self.filter_field = None;
        self.searches.close_fields();
        self.held = None;
        for overlay in &mut self.overlays {
            if let Overlay::Logs(logs) = overlay {
                logs.search = None;
            } else if let Overlay::Events(log) = overlay {
                log.field = None;
            }
        }
    }
}
