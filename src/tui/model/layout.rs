//! Where everything is: pure arithmetic on the terminal's size, so that a click finds what was drawn.

use super::{Pane, SortKey};

/// A rectangle in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    /// Column of its left edge.
    pub x: u16,
    /// Row of its top edge.
    pub y: u16,
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

impl Area {
    /// A rectangle.
    pub fn new(x: u16, y: u16, width: u16, height: u16) -> Self {
        Self { x, y, width, height }
    }

    /// Whether a cell is inside.
    pub fn holds(self, column: u16, row: u16) -> bool {
        column >= self.x
            && row >= self.y
            && column - self.x < self.width
            && row - self.y < self.height
    }

    /// Without `by` columns left and right and `by` rows above and below.
    #[must_use]
    pub fn inner(self, by: u16) -> Self {
        if self.width < 2 * by || self.height < 2 * by {
            return Self::default();
        }
        Self::new(self.x + by, self.y + by, self.width - 2 * by, self.height - 2 * by)
    }

    /// A rectangle of at most this size in the middle.
    #[must_use]
    pub fn centred(self, width: u16, height: u16) -> Self {
        let (width, height) = (width.min(self.width), height.min(self.height));
        Self::new(
            self.x + (self.width - width) / 2,
            self.y + (self.height - height) / 2,
            width,
            height,
        )
    }
}

/// The smallest terminal that shows more than a sentence, in columns and rows. On a smaller one no key acts.
pub const SMALLEST: (u16, u16) = (60, 15);

/// Below this height only the focused pane is shown.
const BOTH_PANES: u16 = 20;

/// From this width on the snapshots have a column of their own.
const TWO_COLUMNS: u16 = 100;

/// The screen's map. Empty areas are not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Screen {
    /// All of it.
    pub whole: Area,
    /// The first row; empty when the terminal is too small for anything but a sentence.
    pub header: Area,
    /// All panes with their frames.
    pub panes: Area,
    /// The frame around the list and what is below it.
    pub frame: Area,
    /// The frame of the right column; empty where there is none.
    pub column: Area,
    /// The row of the list's column titles; the list's own title is on the frame above.
    pub titles: Area,
    /// The list's rows.
    pub list: Area,
    /// The snapshots' rows; their title is on the row above.
    pub snapshots: Area,
    /// The activity's rows; its title is on the row above.
    pub activity: Area,
    /// The last row: keys, a toast, or the filter.
    pub footer: Area,
}

impl Screen {
    /// The map for a size. `below`: which pane is shown below the list, where the snapshots have no column of their own.
    pub fn of((width, height): (u16, u16), focus: Pane, below: Pane) -> Self {
        let whole = Area::new(0, 0, width, height);
        let mut screen = Self { whole, ..Self::default() };
        if width < SMALLEST.0 || height < SMALLEST.1 {
            return screen;
        }
        screen.header = Area::new(0, 0, width, 1);
        screen.footer = Area::new(0, height - 1, width, 1);
        screen.panes = Area::new(0, 1, width, height - 2);
        screen.frame = screen.panes;
        let two = width >= TWO_COLUMNS;
        if two {
            let right = (width * 36 / 100).clamp(40, 60);
            screen.frame.width -= right;
            screen.column = Area { x: screen.frame.width, width: right, ..screen.panes };
            screen.snapshots = screen.column.inner(1);
        }
        screen.stack(focus, below, two);
        screen
    }

    /// The list, and the pane below it; on a low screen only one of them.
    fn stack(&mut self, focus: Pane, below: Pane, two: bool) {
        let inside = self.frame.inner(1);
        let low = self.whole.height < BOTH_PANES;
        let below = if two { Pane::Activity } else { below };
        let rows = if low { 0 } else { (inside.height / 4).clamp(4, 12) };
        let focused = if two && focus == Pane::Snapshots { Pane::Sandboxes } else { focus };
        let mut lower = Area::default();
        if !low {
            self.list = Area { height: inside.height - rows - 1, ..inside };
            lower = Area { y: self.list.y + self.list.height + 1, height: rows, ..inside };
        } else if focused == Pane::Sandboxes {
            self.list = inside;
        } else {
            lower = inside;
        }
        if self.list.height > 0 {
            self.titles = Area { height: 1, ..self.list };
            self.list = Area { y: self.list.y + 1, height: self.list.height - 1, ..self.list };
        }
        let shown = if low { focused } else { below };
        if shown == Pane::Snapshots {
            self.snapshots = lower;
        } else {
            self.activity = lower;
        }
    }

    /// Whether the snapshots share a place with the activity.
    pub fn is_folded(&self) -> bool {
        self.column.width == 0
    }

    /// A pane's rows.
    pub fn rows(&self, pane: Pane) -> Area {
        match pane {
            Pane::Sandboxes => self.list,
            Pane::Snapshots => self.snapshots,
            Pane::Activity => self.activity,
        }
    }

    /// Where an overlay of the common size goes: inset on a large screen, else exactly over the panes.
    pub fn overlay(&self) -> Area {
        if self.whole.width < 100 || self.whole.height < 30 {
            return self.panes;
        }
        self.whole.centred((self.whole.width - 12).min(132), self.whole.height - 4)
    }

    /// The text's area within an overlay's frame.
    pub fn overlay_text(&self) -> Area {
        let inner = self.overlay().inner(1);
        Area { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
    }

    /// The lines of a log: a log takes all of the panes' room, without a row for how it stands.
    pub fn log_text(&self) -> Area {
        let inner = self.panes.inner(1);
        Area { height: inner.height.saturating_sub(1), ..inner }
    }

    /// The list's columns at this width.
    pub fn columns(&self) -> Vec<Placed> {
        Column::place(self.list.width)
    }
}

/// A column of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Cursor, mark, glyph.
    Marks,
    /// Id.
    Id,
    /// Name.
    Name,
    /// Profile.
    Profile,
    /// Host.
    Host,
    /// State.
    State,
    /// Age.
    Age,
    /// What is left, or what is being done, or what is wrong.
    Left,
}

/// A column and where it is, from the list's left edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Which.
    pub column: Column,
    /// Its first cell.
    pub x: u16,
    /// Its cells.
    pub width: u16,
}

impl Column {
    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Marks => "",
            Self::Id => "id",
            Self::Name => "name",
            Self::Profile => "profile",
            Self::Host => "host",
            Self::State => "state",
            Self::Age => "age",
            Self::Left => "left",
        }
    }

    /// What a click on its title sorts by.
    pub fn sort_key(self) -> Option<SortKey> {
        match self {
            Self::Marks => None,
            Self::Id => Some(SortKey::Id),
            Self::Name => Some(SortKey::Name),
            Self::Profile => Some(SortKey::Profile),
            Self::Host => Some(SortKey::Host),
            Self::State => Some(SortKey::State),
            Self::Age => Some(SortKey::Age),
            Self::Left => Some(SortKey::Left),
        }
    }

    /// Fixed widths, and the rest shared by name, profile and the last column.
    fn place(width: u16) -> Vec<Placed> {
        const GAP: u16 = 2;
        let mut widths = vec![(Self::Marks, 4), (Self::Id, 8), (Self::Name, 14)];
        let roomy = width >= 96;
        if roomy {
            widths.push((Self::Profile, 16));
        }
        if width >= 72 {
            widths.push((Self::Host, 12));
        }
        widths.push((Self::State, 12));
        if width >= 84 {
            widths.push((Self::Age, 6));
        }
        widths.push((Self::Left, 12));
        let used: u16 = widths.iter().map(|(_, width)| width + GAP).sum::<u16>() - 2 * GAP;
        let mut spare = width.saturating_sub(used);
        for (column, share, most) in [
            (Self::Name, 4, 18),
            (Self::Host, 6, 14),
            (Self::Profile, 6, 18),
            (Self::Id, 8, 10),
            (Self::Left, 1, u16::MAX),
        ] {
            if let Some((_, width)) = widths.iter_mut().find(|(known, _)| *known == column) {
                let more = (spare / share).min(most.saturating_sub(*width));
                *width += more;
                spare -= more;
            }
        }
        let mut x = 0;
        let mut placed = Vec::with_capacity(widths.len());
        for (column, width) in widths {
            placed.push(Placed { column, x, width });
            // The marks stand right before the id.
            x += width + if column == Self::Marks { 0 } else { GAP };
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_the_screen_at_any_size() {
        for width in 0..160 {
            for height in 0..60 {
                let panes = [Pane::Sandboxes, Pane::Snapshots, Pane::Activity];
                for (focus, below) in
                    panes.into_iter().flat_map(|focus| panes.map(|below| (focus, below)))
                {
                    let screen = Screen::of((width, height), focus, below);
                    for area in [
                        screen.header,
                        screen.panes,
                        screen.frame,
                        screen.column,
                        screen.titles,
                        screen.list,
                        screen.snapshots,
                        screen.activity,
                        screen.footer,
                        screen.overlay(),
                    ] {
                        assert!(
                            area.x + area.width <= width && area.y + area.height <= height,
                            "{width}x{height} {area:?}"
                        );
                    }
                    let shown = below == focus || focus == Pane::Sandboxes;
                    if screen.header.height > 0 && shown {
                        assert!(
                            screen.rows(focus).height > 0,
                            "{width}x{height}: {focus:?} has the focus and no rows"
                        );
                    }
                    if screen.list.height > 0 {
                        let last = screen.columns().last().copied().unwrap();
                        assert_eq!(last.x + last.width, screen.list.width, "{width}x{height}");
                    }
                }
            }
        }
    }
}
