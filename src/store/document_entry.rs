//! Record of a document: what it means to this version, and where its text is. The text itself is not kept: whoever writes the
//! document reads it again.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::error::Error;
use crate::store::corruption::{self, Position};
use crate::store::unknown_fields::merge_unknown;

/// Record that a document can hold.
pub(super) trait Record: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Key: its `id`.
    fn key(&self) -> &str;

    /// Whether an earlier version wrote this text, so that it is to be written anew.
    fn is_of_earlier_version(_text: &str) -> bool {
        false
    }

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

/// Record, and its text.
pub(super) struct DocumentEntry<R> {
    text: EntryText,
    read: Result<Arc<R>, Arc<Broken>>,
}

enum EntryText {
    /// Piece of the file's text, and what tells it from another text.
    InFile { piece: Range<usize>, digest: u64, is_of_earlier_version: bool },
    /// Text that is still to be written.
    New(String),
}

/// Record that has no meaning for this version.
#[derive(Debug)]
pub(super) struct Broken {
    /// Number in its file, from 1.
    pub(super) number: usize,
    /// Key, as far as it can be told.
    pub(super) key: Option<String>,
    /// Place in its file where it stops making sense.
    pub(super) place: Position,
    /// The parser's words.
    pub(super) why: String,
}

/// Digest of a text, for this process.
fn digest_of(text: &str) -> u64 {
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    HASHER.hash_one(text)
}

impl<R: Record> DocumentEntry<R> {
    /// Records of these pieces of a file's text, whole JSON each, of which the first has this index. What was known of a record
    /// whose text is the same as before is not found out again.
    pub(super) fn of_pieces(
        file: &str,
        pieces: &[Range<usize>],
        first: usize,
        before: &[Arc<Self>],
    ) -> Vec<Arc<Self>> {
        let (mut walked, mut begins) = (0, corruption::START);
        let entries = pieces.iter().zip(first..).map(|(piece, index)| {
            let text = &file[piece.clone()];
            let digest = digest_of(text);
            let same = before.get(index).filter(|entry| entry.is_of(piece.len(), digest));
            let read = match same.map(|entry| &entry.read) {
                Some(Ok(record)) => Ok(Arc::clone(record)),
                _ => parse(text).map(Arc::new).map_err(|error| {
                    begins = begins.after(&file.as_bytes()[walked..piece.start]);
                    walked = piece.start;
                    Arc::new(Broken {
                        number: index + 1,
                        key: key_of(text).map(Cow::into_owned),
                        place: Position::of_json(&error, begins),
                        why: corruption::words(&error),
                    })
                }),
            };
            Arc::new(Self { text: EntryText::in_file::<R>(text, piece.clone(), digest), read })
        });
        entries.collect()
    }

    /// A record to write. The text that it replaces may hold fields of a newer version: they stay.
    pub(super) fn new(mut record: R, replaces: Option<(&Self, &str)>) -> Result<Self, Error> {
        let unfit = |error| Error::internal("a record cannot be written as JSON").because(error);
        record.slim();
        let mut value = serde_json::to_value(&record).map_err(unfit)?;
        R::leave_out(&mut value);
        if let Some((old, text)) = replaces
            && let Ok(known) = &old.read
        {
            let mut raw = serde_json::from_str(text).map_err(|error| {
                Error::internal(format!("the record of {} cannot be written anew", known.key()))
                    .hint("a field in its file is not this version's and cannot be kept: mend it there")
                    .detail("id", known.key())
                    .because(error)
            })?;
            R::bring_up_to_date(&mut raw);
            let known = serde_json::to_value(&**known).map_err(unfit)?;
            value = merge_unknown(&raw, &known, value);
        }
        R::leave_nulls_out(&mut value);
        let text = serde_json::to_string(&value).map_err(unfit)?;
        Ok(Self { text: EntryText::New(text), read: Ok(Arc::new(record)) })
    }

    /// The same record where its text was written.
    pub(super) fn written(&self, piece: Range<usize>) -> Self {
        let text = match &self.text {
            EntryText::InFile { digest, is_of_earlier_version, .. } => EntryText::InFile {
                piece,
                digest: *digest,
                is_of_earlier_version: *is_of_earlier_version,
            },
            EntryText::New(text) => EntryText::in_file::<R>(text, piece, digest_of(text)),
        };
        Self { text, read: self.read.clone() }
    }

    /// Meaning, for as long as the entry lives.
    pub(super) fn read(&self) -> Result<&Arc<R>, &Broken> {
        self.read.as_ref().map_err(|broken| &**broken)
    }

    /// Key, as far as it can be told.
    pub(super) fn key(&self) -> Option<&str> {
        match &self.read {
            Ok(record) => Some(record.key()),
            Err(broken) => broken.key.as_deref(),
        }
    }

    /// Text, in the file's text or still to be written.
    pub(super) fn text<'a>(&'a self, file: &'a str) -> &'a str {
        match &self.text {
            EntryText::InFile { piece, .. } => &file[piece.clone()],
            EntryText::New(text) => text,
        }
    }

    /// Where it begins in its file; none for what is still to be written.
    pub(super) fn begins(&self) -> Option<usize> {
        match &self.text {
            EntryText::InFile { piece, .. } => Some(piece.start),
            EntryText::New(_) => None,
        }
    }

    /// Whether an earlier version wrote it.
    pub(super) fn is_of_earlier_version(&self) -> bool {
        matches!(self.text, EntryText::InFile { is_of_earlier_version: true, .. })
    }

    /// Whether its text has this length and digest.
    fn is_of(&self, len: usize, other: u64) -> bool {
        matches!(&self.text, EntryText::InFile { piece, digest, .. } if piece.len() == len && *digest == other)
    }
}

impl EntryText {
    fn in_file<R: Record>(text: &str, piece: Range<usize>, digest: u64) -> Self {
        Self::InFile { piece, digest, is_of_earlier_version: R::is_of_earlier_version(text) }
    }
}

/// Key of a record's text. Quick where the record is as we write it.
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
