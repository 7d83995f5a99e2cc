//! Where everything is: pure arithmetic on the terminal's size, so that a click finds what was drawn.

use super::area::Area;
use super::columns::{Column, Placed};
use super::pane::Pane;

/// The smallest terminal that shows more than a sentence, in columns and rows. On a smaller one no key acts.
pub(crate) const SMALLEST: (u16, u16) = (40, 10);

/// Smaller than this in either direction, one pane is shown at a time.
const SEVERAL_PANES: (u16, u16) = (60, 15);

/// From this height on the strip has a third line.
const TALL: u16 = 20;

/// From this width on the band's panes stand side by side.
const WHOLE_BAND: u16 = 100;

/// From this width on hosts, snapshots and credits have a column at full height.
const RIGHT_COLUMN: u16 = 160;

/// Rows of the credits in the column: sums, spending, and some entries.
const CREDITS: u16 = 8;

/// From so many rows of the band on, credits stand below the hosts.
const HOSTS_AND_CREDITS: u16 = 7;

/// From this width on details of the row under the cursor stand beside the list.
const DETAILS_BESIDE: u16 = 200;

/// State that the map depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrangement {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The pane that keys act on.
    pub focus: Pane,
    /// The pane of the band, where there is room for one.
    pub below: Pane,
    /// Whether the focused pane takes the room of all.
    pub zoomed: bool,
}

/// The screen's map. Empty areas are not drawn. Frames share their edges with what is above and below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Screen {
    pub whole: Area,
    /// The first row; empty when the terminal is too small for anything but a sentence.
    pub header: Area,
    /// All panes with their frames.
    pub panes: Area,
    /// The row of the list's column titles; the list's own title is on the frame above.
    pub titles: Area,
    /// The list's rows.
    pub list: Area,
    /// Lines about the row under the cursor, below the list.
    pub strip: Area,
    /// Details of the row under the cursor, beside the list.
    pub details: Area,
    /// The snapshots' rows; their title is on the row above.
    pub snapshots: Area,
    /// The hosts' rows; their title is on the row above.
    pub hosts: Area,
    /// The credits' rows; their title is on the row above.
    pub credits: Area,
    /// The activity's rows; its title is on the row above.
    pub activity: Area,
    /// The last row: keys, a toast, or the filter.
    pub footer: Area,
}

impl Screen {
    /// The map of an arrangement.
    pub fn of(arrangement: Arrangement) -> Self {
        let (width, height) = arrangement.size;
        let whole = Area::new(0, 0, width, height);
        let mut screen = Self { whole, ..Self::default() };
        if width < SMALLEST.0 || height < SMALLEST.1 {
            return screen;
        }
        screen.header = Area::new(0, 0, width, 1);
        screen.footer = Area::new(0, height - 1, width, 1);
        screen.panes = Area::new(0, 1, width, height - 2);
        let single = width < SEVERAL_PANES.0 || height < SEVERAL_PANES.1;
        if single || arrangement.zoomed {
            screen.place(arrangement.focus, screen.panes.inner(1));
        } else {
            screen.several(arrangement.below);
        }
        screen
    }

    /// The list, the strip below it, and the band; hosts and snapshots on the right where they have a column.
    fn several(&mut self, below: Pane) {
        let mut left = self.panes;
        if self.whole.width >= RIGHT_COLUMN {
            let right = (self.whole.width * 28 / 100).clamp(44, 52);
            left.width -= right;
            let column = Area { x: left.width, width: right, ..self.panes };
            let (hosts, lower) = column.split(column.height * 2 / 5);
            let credits = (lower.height / 3).clamp(3, CREDITS + 2);
            let (snapshots, credits) = lower.split(lower.height - credits + 1);
            self.hosts = hosts.inner(1);
            self.snapshots = snapshots.inner(1);
            self.credits = credits.inner(1);
        }
        let band = (left.height / 4).clamp(2, 12) + 2;
        let (upper, band) = left.split(left.height - band + 1);
        self.upper(upper);
        self.band(band, below);
    }

    /// The list with what is known of the row under the cursor: beside it, or below.
    fn upper(&mut self, upper: Area) {
        if self.whole.width >= DETAILS_BESIDE {
            let details = (upper.width * 34 / 100).clamp(44, 90);
            let list = Area { width: upper.width - details, ..upper };
            self.place(Pane::Sandboxes, list.inner(1));
            self.details = Area { x: list.width, width: details, ..upper }.inner(1);
            return;
        }
        let strip = if self.whole.height >= TALL { 5 } else { 4 };
        let (list, strip) = upper.split(upper.height - strip + 1);
        self.place(Pane::Sandboxes, list.inner(1));
        self.strip = strip.inner(1);
    }

    /// Activity, snapshots and hosts side by side, credits below the hosts or, on a low screen, in their place; only one of them
    /// on a narrow screen, only activity beside a right column.
    fn band(&mut self, band: Area, below: Pane) {
        if self.whole.width < WHOLE_BAND {
            let below = if below == Pane::Sandboxes { Pane::Activity } else { below };
            self.place(below, band.inner(1));
        } else if self.hosts.height > 0 {
            self.activity = band.inner(1);
        } else {
            let width = (band.width * 28 / 100).clamp(30, 44);
            let first = Area { width: band.width - 2 * width, ..band };
            self.activity = first.inner(1);
            self.snapshots = Area { x: first.width, width, ..band }.inner(1);
            self.hosts_and_credits(Area { x: first.width + width, width, ..band }, below);
        }
    }

    /// Hosts above credits, each host with all of its rows; where both have no room, the one that had the focus last.
    fn hosts_and_credits(&mut self, frame: Area, below: Pane) {
        let rows = frame.height.saturating_sub(2);
        if rows < HOSTS_AND_CREDITS {
            let shown = if below == Pane::Credits { below } else { Pane::Hosts };
            return self.place(shown, frame.inner(1));
        }
        let (hosts, credits) = frame.split((rows - 3) / 2 * 2 + 2);
        self.hosts = hosts.inner(1);
        self.credits = credits.inner(1);
    }

    fn place(&mut self, pane: Pane, rows: Area) {
        match pane {
            Pane::Sandboxes => {
                self.titles = Area { height: rows.height.min(1), ..rows };
                self.list = Area { y: rows.y + 1, height: rows.height.saturating_sub(1), ..rows };
            }
            Pane::Snapshots => self.snapshots = rows,
            Pane::Hosts => self.hosts = rows,
            Pane::Credits => self.credits = rows,
            Pane::Activity => self.activity = rows,
        }
    }

    pub fn rows(&self, pane: Pane) -> Area {
        match pane {
            Pane::Sandboxes => self.list,
            Pane::Snapshots => self.snapshots,
            Pane::Hosts => self.hosts,
            Pane::Credits => self.credits,
            Pane::Activity => self.activity,
        }
    }

    /// A pane's frame, its edges included; empty where the pane has no place.
    pub fn frame(&self, pane: Pane) -> Area {
        match pane {
            Pane::Sandboxes if self.titles.height > 0 => {
                Area { height: self.list.height + 1, ..self.titles }.outer()
            }
            Pane::Sandboxes | Pane::Snapshots | Pane::Hosts | Pane::Credits | Pane::Activity => {
                self.rows(pane).outer()
            }
        }
    }

    /// The pane at a cell, its edges included.
    pub fn pane_at(&self, column: u16, row: u16) -> Option<Pane> {
        Pane::ALL.iter().copied().find(|pane| self.frame(*pane).holds(column, row))
    }

    /// The room of a pane's title, on its upper edge.
    pub fn title(&self, pane: Pane) -> Area {
        let frame = self.frame(pane);
        let tabs: u16 = self.tabs(pane).iter().map(|(_, area)| area.width + 2).sum();
        let width = frame.width.saturating_sub(2 + tabs);
        Area::new(frame.x + 1, frame.y, width, frame.height.min(1))
    }

    /// The panes that have no place beside this one, as tabs at the right end of its upper edge. Where there is no room for
    /// all of them, it is the one that comes next.
    pub fn tabs(&self, pane: Pane) -> Vec<(Pane, Area)> {
        let frame = self.frame(pane);
        let alone = Pane::ALL.iter().all(|other| *other == pane || self.rows(*other).height == 0);
        // Side by side, hosts and credits have one place; what is hidden there is no other pane's tab.
        let beside = self.activity.height > 0 && self.snapshots.height > 0;
        let takes_turns = matches!(pane, Pane::Hosts | Pane::Credits);
        if frame.width == 0 || (pane == Pane::Sandboxes && !alone) || (beside && !takes_turns) {
            return Vec::new();
        }
        let at = Pane::ALL.iter().position(|other| *other == pane).unwrap_or_default();
        let following = Pane::ALL.iter().cycle().skip(at + 1).take(Pane::ALL.len() - 1).copied();
        let mut hidden: Vec<Pane> =
            following.filter(|other| self.rows(*other).height == 0).collect();
        if frame.width < SEVERAL_PANES.0 {
            hidden.truncate(1);
        }
        let widths = hidden.iter().map(|other| tab_width(*other) + 1).sum::<u16>();
        let mut x = (frame.x + frame.width).saturating_sub(2 + widths);
        let mut tabs = Vec::with_capacity(hidden.len());
        for other in hidden {
            tabs.push((other, Area::new(x, frame.y, tab_width(other), 1)));
            x += tab_width(other) + 1;
        }
        tabs
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

    /// The list's columns at this width, for the longest name; those of money where something has a price.
    pub fn columns(&self, longest_name: u16, has_prices: bool) -> Vec<Placed> {
        Column::place(self.list.width, longest_name, has_prices)
    }
}

/// Cells of a tab: its name with a space on each side.
fn tab_width(pane: Pane) -> u16 {
    u16::try_from(pane.title().len() + 2).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_arrangement(width: u16, height: u16) -> impl Iterator<Item = Arrangement> {
        let panes = Pane::ALL.iter().copied();
        panes.flat_map(move |focus| {
            // The focused pane is the band's, unless it is the list.
            let below = move |below: &Pane| focus == Pane::Sandboxes || *below == focus;
            Pane::ALL.iter().copied().filter(below).flat_map(move |below| {
                [false, true].map(|zoomed| Arrangement {
                    size: (width, height),
                    focus,
                    below,
                    zoomed,
                })
            })
        })
    }

    #[test]
    fn nothing_leaves_the_screen_at_any_size() {
        for width in 0..230 {
            for height in (0..45).chain([60, 200]) {
                for arrangement in every_arrangement(width, height) {
                    let screen = Screen::of(arrangement);
                    let frames = Pane::ALL.iter().map(|pane| screen.frame(*pane));
                    let tabs = Pane::ALL.iter().flat_map(|pane| screen.tabs(*pane));
                    let parts = [
                        screen.header,
                        screen.panes,
                        screen.titles,
                        screen.list,
                        screen.strip.outer(),
                        screen.details.outer(),
                        screen.footer,
                        screen.overlay(),
                    ];
                    for area in parts.into_iter().chain(frames).chain(tabs.map(|(_, area)| area)) {
                        assert!(
                            area.x + area.width <= width && area.y + area.height <= height,
                            "{arrangement:?} {area:?}"
                        );
                    }
                    if screen.header.height == 0 {
                        continue;
                    }
                    let focus = arrangement.focus;
                    assert!(screen.rows(focus).height > 0, "no rows: {arrangement:?}");
                    let tabs: Vec<Pane> = Pane::ALL
                        .iter()
                        .flat_map(|pane| screen.tabs(*pane))
                        .map(|tab| tab.0)
                        .collect();
                    for pane in Pane::ALL {
                        let shown = screen.rows(*pane).height > 0;
                        assert!(!(shown && tabs.contains(pane)), "{arrangement:?} {pane:?}");
                        assert!(
                            shown || tabs.contains(pane) || width < 60,
                            "{arrangement:?} {pane:?}"
                        );
                    }
                    if screen.list.height > 0 {
                        let last = screen.columns(12, true).last().copied().unwrap();
                        assert_eq!(last.x + last.width, screen.list.width, "{arrangement:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn frames_meet_only_in_their_edges() {
        for size in
            [(60, 15), (80, 24), (99, 30), (100, 30), (120, 36), (160, 45), (200, 60), (250, 70)]
        {
            for arrangement in every_arrangement(size.0, size.1) {
                let screen = Screen::of(arrangement);
                let mut parts: Vec<Area> =
                    Pane::ALL.iter().map(|pane| screen.rows(*pane)).collect();
                parts.extend([screen.strip, screen.details]);
                for (at, area) in parts.iter().enumerate() {
                    for other in &parts[at + 1..] {
                        let apart = area.x + area.width < other.x
                            || other.x + other.width < area.x
                            || area.y + area.height < other.y
                            || other.y + other.height < area.y;
                        let empty = area.height == 0 || other.height == 0;
                        assert!(empty || apart, "{arrangement:?}: {area:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_size_shows_what_it_has_room_for() {
        let shown = |size| {
            let arrangement =
                Arrangement { size, focus: Pane::Sandboxes, below: Pane::Hosts, zoomed: false };
            let screen = Screen::of(arrangement);
            let panes: Vec<Pane> =
                Pane::ALL.iter().copied().filter(|pane| screen.rows(*pane).height > 0).collect();
            (panes, screen.strip.height, screen.details.height > 0)
        };
        assert_eq!(shown((39, 10)), (vec![], 0, false));
        assert_eq!(shown((40, 10)), (vec![Pane::Sandboxes], 0, false));
        assert_eq!(shown((59, 40)), (vec![Pane::Sandboxes], 0, false));
        assert_eq!(shown((60, 15)), (vec![Pane::Sandboxes, Pane::Hosts], 2, false));
        assert_eq!(shown((80, 24)), (vec![Pane::Sandboxes, Pane::Hosts], 3, false));
        assert_eq!(shown((120, 36)), (Pane::ALL.to_vec(), 3, false));
        assert_eq!(shown((160, 45)), (Pane::ALL.to_vec(), 3, false));
        assert_eq!(shown((200, 60)), (Pane::ALL.to_vec(), 0, true));
    }
}
