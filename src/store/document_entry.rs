//! Record of a document: its text as it is in the file, which may be shorter than its JSON, and what it means to this
//! version.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::error::Error;
use crate::store::corruption::{self, Position};
use crate::store::unknown_fields::merge_unknown;

/// Record that a document can hold. A record's key is its `id`.
pub(super) trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Drops what records do not keep any more; before each write.
    fn slim(&mut self) {}

    /// Brings the JSON of an earlier version into today's shape, so that nothing of it passes for a newer version's.
    fn bring_up_to_date(_record: &mut Value) {}

    /// Takes out of its JSON what [`Self::complete`] puts back, and what says nothing.
    fn leave_out(_record: &mut Value) {}

    /// Takes nulls out of the parts of its JSON in which this version knows every field.
    fn leave_nulls_out(_record: &mut Value) {}

    /// Puts back what its text leaves out; after each read.
    fn complete(&mut self) {}
}

pub(super) fn parse<R: Record>(text: &str) -> Result<R, serde_json::Error> {
    let mut record: R = serde_json::from_str(text)?;
    record.complete();
    Ok(record)
}

/// Record, with the text that it has in its file.
pub(super) struct DocumentEntry<R> {
    text: JsonText,
    read: Result<Arc<R>, Broken>,
}

/// Why a record has no meaning for this version.
#[derive(Debug)]
pub(super) struct Broken(serde_json::Error);

impl Broken {
    /// The parser's words.
    pub(super) fn why(&self) -> String {
        corruption::words(&self.0)
    }
}

impl<R: Record> DocumentEntry<R> {
    /// A record of a file, whole JSON. What `same` said of the same text is not found out again.
    pub(super) fn found(text: JsonText, same: Option<&Self>) -> Self {
        let same = same.filter(|same| same.text.as_str() == text.as_str());
        let read = match same.map(|same| &same.read) {
            Some(Ok(record)) => Ok(Arc::clone(record)),
            _ => parse(text.as_str()).map(Arc::new).map_err(Broken),
        };
        Self { text, read }
    }

    /// A record to write. What it replaces may hold fields of a newer version: they stay.
    pub(super) fn new(mut record: R, replaces: Option<&Self>) -> Result<Self, Error> {
        let unfit = |error| Error::internal("a record cannot be written as JSON").because(error);
        record.slim();
        let mut value = serde_json::to_value(&record).map_err(unfit)?;
        R::leave_out(&mut value);
        if let Some(old) = replaces
            && let Ok(known) = old.read()
        {
            let mut raw = serde_json::from_str(old.text()).map_err(unfit)?;
            R::bring_up_to_date(&mut raw);
            let known = serde_json::to_value(&**known).map_err(unfit)?;
            value = merge_unknown(&raw, &known, value);
        }
        R::leave_nulls_out(&mut value);
        Ok(Self {
            text: serde_json::to_string(&value).map_err(unfit)?.into(),
            read: Ok(Arc::new(record)),
        })
    }

    /// Meaning, for as long as the entry lives.
    pub(super) fn read(&self) -> Result<&Arc<R>, &Broken> {
        self.read.as_ref()
    }

    /// Key, as far as it can be told. Quick where the record is as we write it.
    pub(super) fn key(&self) -> Option<Cow<'_, str>> {
        key_of(self.text())
    }

    pub(super) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Where it begins in its file.
    pub(super) fn begins(&self) -> Position {
        let (file, offset) = self.text.place();
        Position::of(file.as_bytes(), offset)
    }

    /// The place in its file where it stops making sense.
    pub(super) fn position_of(&self, broken: &Broken) -> Position {
        Position::of_json(&broken.0, self.begins())
    }
}

/// Whole JSON document, as text. A piece of a larger text is shared with it, not copied.
#[derive(Clone)]
pub(super) struct JsonText {
    of: Arc<String>,
    piece: Range<usize>,
}

impl JsonText {
    /// A piece of a text that is known to be a whole document.
    pub(super) fn within(of: &Arc<String>, piece: Range<usize>) -> Self {
        Self { of: Arc::clone(of), piece }
    }

    fn as_str(&self) -> &str {
        &self.of[self.piece.clone()]
    }

    /// Text that it is a piece of, and where it begins there.
    fn place(&self) -> (&str, usize) {
        (&self.of, self.piece.start)
    }
}

impl From<String> for JsonText {
    fn from(text: String) -> Self {
        Self { piece: 0..text.len(), of: Arc::new(text) }
    }
}

pub(super) fn key_of(text: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: Cow<'a, str>,
    }
    if let Some(rest) = text.strip_prefix("{\"id\":\"") {
        let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if rest.as_bytes()[end] == b'"' {
            return Some(Cow::Borrowed(&rest[..end]));
        }
    }
    serde_json::from_str(text).ok().map(|OnlyId { id }| id)
}
