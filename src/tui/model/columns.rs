//! Columns of the list: which are shown at a width, and where.

use super::SortKey;
use crate::domain::SandboxRecord;
use crate::present::{self, sandbox};

/// A column of the list. Each holds one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Cursor, mark, glyph.
    Marks,
    Name,
    Id,
    Profile,
    Host,
    State,
    Age,
    /// Time left.
    Left,
    /// Processor time that its containers use.
    Cpu,
    /// Memory that its containers use.
    Memory,
    /// Cost so far.
    Cost,
    /// Cost of an hour.
    Hourly,
    /// Work on it, or what is wrong with it.
    What,
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

/// Columns between two columns.
const GAP: u16 = 2;

/// The last column has at least this, as long as another one can go.
const LEAST_WHAT: u16 = 14;

/// A name has at least this and, where there is room, as much as the longest needs, up to a limit.
const NAME: [u16; 3] = [8, 16, 32];

impl Column {
    /// All, from left to right.
    const ALL: [Self; 13] = [
        Self::Marks,
        Self::Name,
        Self::Id,
        Self::Profile,
        Self::Host,
        Self::State,
        Self::Age,
        Self::Left,
        Self::Cpu,
        Self::Memory,
        Self::Cost,
        Self::Hourly,
        Self::What,
    ];

    /// Columns that can go, in the order in which they do.
    const GOING: [Self; 9] = [
        Self::Hourly,
        Self::Cpu,
        Self::Memory,
        Self::Profile,
        Self::Cost,
        Self::Id,
        Self::Age,
        Self::Host,
        Self::Left,
    ];

    /// The record's column that it shows, where it shows one; the sort that a click on its title asks for; its cells before
    /// free space is given away, a name's left out.
    fn facts(self) -> (Option<present::Column<SandboxRecord>>, Option<SortKey>, u16) {
        match self {
            Self::Marks => (None, None, 4),
            Self::Name => (Some(sandbox::NAME), Some(SortKey::Name), 0),
            Self::Id => (Some(sandbox::ID), Some(SortKey::Id), 8),
            Self::Profile => (Some(sandbox::PROFILE), Some(SortKey::Profile), 12),
            Self::Host => (Some(sandbox::HOST), Some(SortKey::Host), 11),
            Self::State => (Some(sandbox::STATE), Some(SortKey::State), 10),
            Self::Age => (Some(sandbox::AGE), Some(SortKey::Age), 4),
            Self::Left => (Some(sandbox::TTL), Some(SortKey::Left), 7),
            Self::Cpu => (None, Some(SortKey::Cpu), 4),
            Self::Memory => (None, Some(SortKey::Memory), 5),
            Self::Cost => (Some(sandbox::COST), Some(SortKey::Cost), 8),
            Self::Hourly => (Some(sandbox::HOURLY), Some(SortKey::Cost), 6),
            Self::What => (Some(sandbox::WHAT_IS), Some(SortKey::Trouble), LEAST_WHAT),
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Memory => "MEM",
            _ => self.of_record().map(|column| column.title).unwrap_or_default(),
        }
    }

    /// The record's column that it shows, where it shows one; the last has more than its record tells.
    pub fn of_record(self) -> Option<present::Column<SandboxRecord>> {
        self.facts().0
    }

    /// Sort that a click on its title asks for.
    pub fn sort_key(self) -> Option<SortKey> {
        self.facts().1
    }

    /// Whether it holds a figure, which stands at its right end.
    pub fn is_figure(self) -> bool {
        matches!(self, Self::Left | Self::Cpu | Self::Memory | Self::Cost | Self::Hourly)
    }

    /// Its cells before free space is given away.
    fn least(self, name: u16) -> u16 {
        if self == Self::Name { name } else { self.facts().2 }
    }

    /// Cells between it and the next one: the name stands right behind the glyph.
    fn gap(self) -> u16 {
        if matches!(self, Self::Marks | Self::What) { 0 } else { GAP }
    }

    /// The columns for a width and the longest name. Names are cut last; what is free goes to them and to the last column.
    /// Columns of money are there only where something has a price.
    pub(super) fn place(width: u16, longest_name: u16, has_prices: bool) -> Vec<Placed> {
        let [least, common, most] = NAME;
        let name = longest_name.clamp(least, common);
        let mut shown: Vec<Self> = Self::ALL.to_vec();
        if !has_prices {
            shown.retain(|column| !matches!(column, Self::Cost | Self::Hourly));
        }
        let needed = |shown: &[Self], name| -> u16 {
            shown.iter().map(|column| column.least(name) + column.gap()).sum()
        };
        for column in Self::GOING {
            if needed(&shown, name) <= width {
                break;
            }
            shown.retain(|other| *other != column);
        }
        // On the narrowest screen the last column gives way, then the name.
        let over = needed(&shown, name).saturating_sub(width);
        let name = name - over.saturating_sub(LEAST_WHAT / 2).min(name - least);
        let spare = width.saturating_sub(needed(&shown, name) - LEAST_WHAT);
        let longer = longest_name.clamp(name, most) - name;
        let longer = longer.min(spare.saturating_sub(LEAST_WHAT));
        let mut x = 0;
        let mut placed = Vec::with_capacity(shown.len());
        for column in shown {
            let cells = match column {
                Self::Name => name + longer,
                Self::What => width.saturating_sub(x),
                _ => column.least(name),
            };
            placed.push(Placed { column, x, width: cells });
            x += cells + column.gap();
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(width: u16, name: u16, has_prices: bool) -> Vec<&'static str> {
        let placed = Column::place(width, name, has_prices);
        placed.iter().skip(1).map(|placed| placed.column.title()).collect()
    }

    #[test]
    fn narrower_columns_go_one_by_one() {
        let titles = |width, name| titles(width, name, false);
        let all = ["NAME", "ID", "PROFILE", "HOST", "STATE", "AGE", "TTL", "CPU", "MEM", "WHAT"];
        assert_eq!(titles(118, 12), all);
        assert_eq!(titles(104, 12), [&all[..7], &["MEM", "WHAT"]].concat());
        assert_eq!(titles(98, 10), [&all[..7], &["WHAT"]].concat());
        assert_eq!(titles(88, 12), ["NAME", "ID", "HOST", "STATE", "AGE", "TTL", "WHAT"]);
        assert_eq!(titles(78, 12), ["NAME", "HOST", "STATE", "AGE", "TTL", "WHAT"]);
        assert_eq!(titles(58, 12), ["NAME", "STATE", "TTL", "WHAT"]);
        assert_eq!(titles(38, 12), ["NAME", "STATE", "WHAT"]);
    }

    #[test]
    fn columns_of_money_are_there_where_something_has_a_price() {
        let titles = |width| titles(width, 12, true);
        let all = ["NAME", "ID", "PROFILE", "HOST", "STATE", "AGE", "TTL", "CPU", "MEM"];
        assert_eq!(titles(140), [&all[..], &["COST", "$/H", "WHAT"]].concat());
        assert_eq!(titles(118), [&all[..7], &["MEM", "COST", "WHAT"]].concat());
        assert_eq!(titles(78), ["NAME", "HOST", "STATE", "AGE", "TTL", "WHAT"]);
    }

    #[test]
    fn every_width_is_filled_and_a_name_is_cut_last() {
        for width in 38..300 {
            for (name, has_prices) in [0, 8, 12, 20, 60, u16::MAX]
                .into_iter()
                .flat_map(|name| [(name, false), (name, true)])
            {
                let placed = Column::place(width, name, has_prices);
                let last = placed.last().unwrap();
                assert_eq!(last.x + last.width, width, "{width} {name}");
                assert!(placed[1].width >= 8, "{width} {name}: {placed:?}");
                for pair in placed.windows(2) {
                    assert!(pair[0].x + pair[0].width <= pair[1].x, "{width} {name}");
                }
                if width >= 118 {
                    assert!(placed[1].width >= name.min(16), "{width} {name}: {placed:?}");
                }
            }
        }
    }
}
