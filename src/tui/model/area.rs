//! Areas: rectangles in cells.

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

    /// With one column left and right and one row above and below; nothing around nothing.
    #[must_use]
    pub fn outer(self) -> Self {
        if self.width == 0 || self.height == 0 {
            return Self::default();
        }
        Self::new(
            self.x.saturating_sub(1),
            self.y.saturating_sub(1),
            self.width + 2,
            self.height + 2,
        )
    }

    /// Two frames, the upper one of this height: they share the row between them.
    pub(super) fn split(self, upper: u16) -> (Self, Self) {
        let upper = upper.clamp(1, self.height.max(1));
        let lower = Self { y: self.y + upper - 1, height: self.height + 1 - upper, ..self };
        (Self { height: upper, ..self }, lower)
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
