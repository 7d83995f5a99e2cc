//! Document: what is told of a record, in the order in which it is read. A face lays it out: the dashboard wraps it at a width,
//! a command prints it line by line.

use super::role::{Role, Spans};

/// Piece of a document. Texts are as the record has them: a face cleans them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// An empty line.
    Gap,
    /// A heading, with a gap above it.
    Heading(String),
    /// A name and its value.
    Pair {
        /// The name; empty where it goes on with the one above.
        key: String,
        /// Sign in front of the value, for a face that draws signs.
        sign: Option<char>,
        /// How the value is meant.
        role: Role,
        value: String,
    },
    /// A text of one or several lines.
    Text {
        /// How it is meant.
        role: Role,
        /// Columns in front of it.
        indent: usize,
        text: String,
    },
    /// A line of an enumeration.
    Line {
        /// Branches in front of it, where it is of a tree.
        branch: String,
        /// Sign in front of it, for a face that draws signs.
        sign: (Role, char),
        /// Its text.
        spans: Spans,
    },
}

/// Document of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document(Vec<Piece>);

impl Document {
    /// Its pieces, from above.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.0.push(Piece::Gap);
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.0.push(Piece::Heading(text.into()));
    }

    /// Adds a name and its value.
    pub fn pair(&mut self, key: impl Into<String>, role: Role, value: impl Into<String>) {
        self.0.push(Piece::Pair { key: key.into(), sign: None, role, value: value.into() });
    }

    /// Adds a name and its value with a sign.
    pub fn signed(
        &mut self,
        key: impl Into<String>,
        (sign, role): (char, Role),
        value: impl Into<String>,
    ) {
        let (key, value) = (key.into(), value.into());
        self.0.push(Piece::Pair { key, sign: Some(sign), role, value });
    }

    /// Adds a name and its value, if there is one.
    pub fn maybe(&mut self, key: &str, role: Role, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.pair(key, role, value);
        }
    }

    /// Adds what is plain, if there is such: `key` and any value.
    #[expect(clippy::needless_pass_by_value, reason = "most callers hand over what they just made")]
    pub fn plain(&mut self, key: &str, value: impl ToString) {
        self.pair(key, Role::Plain, value.to_string());
    }

    /// Adds a text.
    pub fn text(&mut self, role: Role, indent: usize, text: impl Into<String>) {
        self.0.push(Piece::Text { role, indent, text: text.into() });
    }

    /// Adds a line of an enumeration.
    pub fn line(&mut self, sign: (char, Role), spans: impl Into<Spans>) {
        self.branch("", sign, spans);
    }

    /// Adds a line of a tree, behind its branches.
    pub fn branch(&mut self, branch: &str, (sign, role): (char, Role), spans: impl Into<Spans>) {
        let branch = branch.to_owned();
        self.0.push(Piece::Line { branch, sign: (role, sign), spans: spans.into() });
    }
}
