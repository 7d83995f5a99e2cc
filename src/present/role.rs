//! Meaning of a text: a face gives it a colour, or none.

/// How a piece of the screen is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nothing special.
    Plain,
    /// Of less weight.
    Dim,
    /// A heading.
    Title,
    /// Text that the eye should find first.
    Accent,
    /// All is well.
    Good,
    /// Look at this.
    Warn,
    /// Something failed.
    Bad,
    /// Something is being done.
    Busy,
    /// A key to press.
    Key,
    /// Something to paste.
    Code,
    /// A frame.
    Border,
    /// The frame of what has the focus.
    Focus,
    /// The row under the cursor.
    Selected,
    /// A button that is not focused.
    Button,
    /// The focused button.
    Pressed,
    /// A text field.
    Field,
    /// A service's name: the same number is always the same colour.
    Service(usize),
    /// Match of a search.
    Match,
    /// Match in the line that was found last.
    Found,
}

/// Spans of a line, each with how it is meant.
pub(crate) type Spans = Vec<(Role, String)>;
