//! Putting text into cells, never outside of an area.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use tui_input::Input;

use super::theme::Theme;
use crate::domain::error::Error;
use crate::domain::text::{clean_line, columns};
use crate::tui::model::{Area, Role, wrap};

/// Cells that a text takes.
pub(super) fn cells(text: &str) -> u16 {
    u16::try_from(columns(text)).unwrap_or(u16::MAX)
}

/// A buffer with a theme.
pub(super) struct Paint<'a> {
    pub(super) buf: &'a mut Buffer,
    pub(super) theme: Theme,
}

impl Paint<'_> {
    pub(super) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// Puts text at a cell, cleaned and cut at a width with `…`; says how many cells it took.
    pub(super) fn put(&mut self, x: u16, y: u16, width: u16, text: &str, role: Role) -> u16 {
        let style = self.style(role);
        self.put_styled(x, y, width, text, style)
    }

    /// Text with a style: see [`Self::put`].
    pub(super) fn put_styled(
        &mut self,
        x: u16,
        y: u16,
        width: u16,
        text: &str,
        style: Style,
    ) -> u16 {
        let area = self.buf.area;
        if y < area.y || y >= area.bottom() || x < area.x || x >= area.right() {
            return 0;
        }
        let width = width.min(area.right() - x);
        let text = clean_line(text, usize::from(width));
        // The buffer would add to the style that is there (a title on a faint frame would be faint).
        let style = Style::reset().patch(style);
        let (end, _) = self.buf.set_stringn(x, y, &text, usize::from(width), style);
        end - x
    }

    /// Puts spans one after the other; says where the next would go.
    pub(super) fn spans(&mut self, x: u16, y: u16, width: u16, spans: &[(Role, &str)]) -> u16 {
        let end = x.saturating_add(width);
        let mut at = x;
        for (role, text) in spans {
            at += self.put(at, y, end.saturating_sub(at), text, *role);
        }
        at
    }

    /// Puts spans into the first row of an area; says where the next would go.
    pub(super) fn row(&mut self, area: Area, spans: &[(Role, String)]) -> u16 {
        let spans: Vec<_> = spans.iter().map(|(role, text)| (*role, text.as_str())).collect();
        self.spans(area.x, area.y, area.width, &spans)
    }

    /// Puts a key, and what it does.
    pub(super) fn key(&mut self, x: u16, y: u16, width: u16, key: &str, does: &str) {
        self.spans(x, y, width, &[(Role::Key, key), (Role::Dim, &format!(" {does}"))]);
    }

    /// Puts an error where rows would be: its sentence, its first causes and its hint, each wrapped, then the key that tries
    /// again. Where there is no room for all of it the causes go first: the hint says how to go on.
    pub(super) fn error(
        &mut self,
        area: Area,
        error: &Error,
        causes: usize,
        again: Option<(&str, &str)>,
    ) {
        let (x, width) = (area.x + 2, area.width.saturating_sub(2));
        let wrapped = |role, text: &String| {
            let lines = wrap(text, usize::from(width)).into_iter();
            lines.map(move |line| (role, line)).collect::<Vec<_>>()
        };
        let hint = error.hint.as_ref().map_or(Vec::new(), |hint| wrapped(Role::Key, hint));
        let mut lines = wrapped(Role::Bad, &error.message);
        lines.extend(error.causes.iter().take(causes).flat_map(|one| wrapped(Role::Plain, one)));
        let room = usize::from(area.height).saturating_sub(usize::from(again.is_some()));
        lines.truncate(room.saturating_sub(hint.len()).max(1));
        lines.extend(hint);
        self.put(area.x, area.y, area.width, "✗", Role::Bad);
        let rows = (area.y..).zip(&lines).take(room.max(1));
        let row = rows.map(|(y, (role, line))| self.put(x, y, width, line, *role)).count();
        let row = u16::try_from(row).unwrap_or(u16::MAX);
        // With a row between them where there is one.
        let y = area.y.saturating_add(row) + u16::from(row + 1 < area.height);
        if let Some((key, does)) = again.filter(|_| row < area.height) {
            self.key(x, y, width, key, does);
        }
    }

    /// Puts what is typed into a text field, as far as there is room; answers where the text cursor is.
    pub(super) fn field(&mut self, area: Area, input: &Input, role: Role) -> Position {
        let last = area.width.saturating_sub(1);
        let scroll = input.visual_scroll(usize::from(last));
        self.put(area.x, area.y, area.width, &skip_columns(input.value(), scroll), role);
        let at = u16::try_from(input.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
        Position::new(area.x + at.min(last), area.y)
    }

    /// Puts text so that it ends before a column.
    pub(super) fn put_right(&mut self, area: Area, y: u16, text: &str, role: Role) {
        let width = cells(text).min(area.width);
        self.put(area.x + area.width - width, y, width, text, role);
    }

    /// Empties an area.
    pub(super) fn clear(&mut self, area: Area) {
        let area = Rect::new(area.x, area.y, area.width, area.height).intersection(self.buf.area);
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                self.buf[(x, y)].reset();
            }
        }
    }

    /// Adds a style to an area, keeping what is written there.
    pub(super) fn tint(&mut self, area: Area, style: Style) {
        let area = Rect::new(area.x, area.y, area.width, area.height).intersection(self.buf.area);
        self.buf.set_style(area, style);
    }

    /// Draws a frame.
    pub(super) fn frame(&mut self, area: Area, role: Role) {
        if area.width < 2 || area.height < 2 {
            return;
        }
        let (right, bottom) = (area.x + area.width - 1, area.y + area.height - 1);
        self.rule(area, area.y, ('╭', '╮'), role);
        self.rule(area, bottom, ('╰', '╯'), role);
        for y in area.y + 1..bottom {
            self.put(area.x, y, 1, "│", role);
            self.put(right, y, 1, "│", role);
        }
    }

    /// Draws a frame that goes on from the one above it where they share an edge.
    pub(super) fn joined_frame(&mut self, area: Area, role: Role) {
        if area.width < 2 || area.height < 2 {
            return;
        }
        let above: Vec<String> = (area.x..area.x + area.width)
            .map(|x| self.buf.cell((x, area.y)).map(|cell| cell.symbol().to_owned()))
            .map(Option::unwrap_or_default)
            .collect();
        self.frame(area, role);
        for (x, symbol) in (area.x..).zip(&above) {
            let joint = match symbol.as_str() {
                "╰" if x == area.x => "├",
                "╯" if x == area.x + area.width - 1 => "┤",
                "╰" | "╯" => "┴",
                _ => continue,
            };
            self.put(x, area.y, 1, joint, role);
        }
    }

    /// Gives a frame's edge another look.
    pub(super) fn edge(&mut self, area: Area, role: Role) {
        if area.width < 2 || area.height < 2 {
            return;
        }
        let style = self.style(role).remove_modifier(Modifier::DIM);
        let (right, bottom) = (area.x + area.width - 1, area.y + area.height - 1);
        for side in [
            Area { height: 1, ..area },
            Area { y: bottom, height: 1, ..area },
            Area { width: 1, ..area },
            Area { x: right, width: 1, ..area },
        ] {
            self.tint(side, style);
        }
    }

    /// Draws a horizontal line across an area, with its two ends.
    pub(super) fn rule(&mut self, area: Area, y: u16, ends: (char, char), role: Role) {
        let line = "─".repeat(usize::from(area.width.saturating_sub(2)));
        self.put(area.x, y, area.width, &format!("{}{line}{}", ends.0, ends.1), role);
    }

    /// An overlay: emptied, framed, titled; a hint stands on its lower edge.
    pub(super) fn overlay(&mut self, area: Area, title: &str, hint: &[(String, &str)]) {
        self.clear(area);
        self.frame(area, Role::Focus);
        let room = area.width.saturating_sub(4);
        if !title.is_empty() {
            self.put(area.x + 2, area.y, room, &format!(" {title} "), Role::Title);
        }
        let y = area.y + area.height.saturating_sub(1);
        let end = area.x + 2 + room;
        let mut x = area.x + 2;
        for (key, what) in hint {
            let needed = u16::try_from(columns(key) + columns(what) + 3).unwrap_or(u16::MAX);
            if key.is_empty() || x + needed > end {
                continue;
            }
            x = self.spans(
                x,
                y,
                end - x,
                &[
                    (Role::Plain, " "),
                    (Role::Key, key),
                    (Role::Plain, " "),
                    (Role::Dim, what),
                    (Role::Plain, " "),
                ],
            );
        }
    }

    /// A bar of a width, filled to a fraction.
    pub(super) fn bar(&mut self, x: u16, y: u16, width: u16, fraction: f64, role: Role) {
        let full = (fraction * f64::from(width)).round() as usize;
        let full = full.min(usize::from(width));
        let text = format!("{}{}", "▓".repeat(full), "░".repeat(usize::from(width) - full));
        self.put(x, y, width, &text, role);
    }
}

/// A text without its first columns.
fn skip_columns(text: &str, skip: usize) -> String {
    let mut left = skip;
    text.chars()
        .skip_while(|c| {
            let wide = columns(&c.to_string());
            let skipped = left > 0;
            left = left.saturating_sub(wide);
            skipped
        })
        .collect()
}
