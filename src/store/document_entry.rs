//! Record of a document: its text as it is in the file, which may be shorter than its JSON, and what it means to this
//! version.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::error::Error;
use crate::domain::raw_json::JsonText;
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

/// Record. It is understood when somebody asks for it: most commands ask for one of many.
pub(super) struct DocumentEntry<R> {
    text: JsonText,
    read: OnceLock<Result<Arc<R>, Broken>>,
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
        let known = same
            .filter(|same| same.text.as_str() == text.as_str())
            .and_then(|same| same.read.get());
        let read = match known {
            Some(Ok(record)) => OnceLock::from(Ok(Arc::clone(record))),
            _ => OnceLock::new(),
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
            text: JsonText::of(&value).map_err(unfit)?,
            read: OnceLock::from(Ok(Arc::new(record))),
        })
    }

    /// Meaning, for as long as the entry lives.
    pub(super) fn read(&self) -> Result<&Arc<R>, &Broken> {
        self.read.get_or_init(|| parse(self.text()).map(Arc::new).map_err(Broken)).as_ref()
    }

    /// Whether somebody asked what it means.
    pub(super) fn is_read(&self) -> bool {
        self.read.get().is_some()
    }

    /// Meaning, for one look: nothing of it stays in memory. `None` if this version cannot read it.
    pub(super) fn peek<T>(&self, look: impl FnOnce(&R) -> T) -> Option<T> {
        match self.read.get() {
            Some(read) => read.as_ref().ok().map(|record| look(record)),
            None => parse(self.text()).ok().map(|record| look(&record)),
        }
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
