//! A cursor in a list, and the part of the list that is on the screen.

use std::ops::Range;

use crate::tui::keymap::Action;

/// Where the cursor is, and what is shown around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The row under the cursor.
    pub index: usize,
    /// The first row on the screen.
    pub offset: usize,
    /// How many rows are on the screen.
    pub height: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { index: 0, offset: 0, height: 1 }
    }
}

impl Window {
    /// Keeps cursor and window within `count` rows.
    pub fn fit(&mut self, count: usize) {
        let height = self.height.max(1);
        self.index = self.index.min(count.saturating_sub(1));
        if self.index < self.offset {
            self.offset = self.index;
        } else if self.index >= self.offset + height {
            self.offset = self.index + 1 - height;
        }
        self.offset = self.offset.min(count.saturating_sub(height));
    }

    /// Moves the cursor, within `count` rows.
    pub fn go(&mut self, to: usize, count: usize) {
        self.index = to;
        self.fit(count);
    }

    /// Takes how many rows of `count` are on the screen.
    pub fn resize(&mut self, height: usize, count: usize) {
        self.height = height;
        self.fit(count);
    }

    /// The rows on the screen, of `count`.
    pub fn rows(&self, count: usize) -> Range<usize> {
        let end = (self.offset + self.height).min(count);
        self.offset.min(end)..end
    }

    /// Where a movement leads to, the list's end or beyond it; none where it is no movement. Of a page one row stays in sight.
    pub fn moved(&self, action: Action) -> Option<usize> {
        let (at, page) = (self.index, self.height.max(2) - 1);
        match action {
            Action::Down => Some(at + 1),
            Action::Up => Some(at.saturating_sub(1)),
            Action::Top => Some(0),
            Action::Bottom => Some(usize::MAX),
            Action::PageDown => Some(at + page),
            Action::PageUp => Some(at.saturating_sub(page)),
            _ => None,
        }
    }
}
