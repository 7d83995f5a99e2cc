//! Table of a noun: a column has its title and says what stands in its cells, once for every face.

use crate::domain::Time;

/// Column of a noun's table.
#[derive(Debug, Clone, Copy)]
pub struct Column<T: ?Sized> {
    pub title: &'static str,
    /// Whether a cell that is cut says something else: an id, a state, an amount.
    pub is_whole: bool,
    /// Text of its cell for a record; nothing: the face's sign for none stands there.
    pub cell: fn(&T, Time) -> String,
}

impl<T: ?Sized> Column<T> {
    /// A column whose cells may be cut.
    pub const fn new(title: &'static str, cell: fn(&T, Time) -> String) -> Self {
        Self { title, is_whole: false, cell }
    }

    /// A column whose cells must stay whole.
    pub const fn whole(title: &'static str, cell: fn(&T, Time) -> String) -> Self {
        Self { title, is_whole: true, cell }
    }
}

/// The value in words; nothing where there is none.
pub(super) fn or_nothing<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
