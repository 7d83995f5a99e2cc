//! A version of a document: its records as they are in the file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::domain::error::Error;
use crate::store::corruption::{self, Position};
use crate::store::document_entry::{DocumentEntry, Record};
use crate::store::files::{Stamp, blocking};
use crate::store::shape::{Outside, SCHEMA};

/// A version of the document.
pub(super) struct Content<R> {
    path: PathBuf,
    /// Stamp of its file; none of what is not in one yet.
    pub(super) stamp: Option<Stamp>,
    revision: u64,
    /// Keys that a newer version wrote beside the three we know.
    extra: Vec<(String, Box<RawValue>)>,
    /// In the file's order.
    pub(super) entries: Vec<Arc<DocumentEntry<R>>>,
}

impl<R: Record> Content<R> {
    pub(super) fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            stamp: None,
            revision: 0,
            extra: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// All records. A list that left one out would make what it has on a host look like nobody's.
    pub(super) fn records(&self) -> Result<Vec<&Arc<R>>, Error> {
        self.entries.iter().map(|entry| self.meaning(entry)).collect()
    }

    /// The record with this key and where it is.
    pub(super) fn find(&self, key: &str) -> Result<Option<(usize, &Arc<R>)>, Error> {
        let Some(index) = self.entries.iter().position(|entry| entry.key() == Some(key)) else {
            return Ok(None);
        };
        Ok(Some((index, self.meaning(&self.entries[index])?)))
    }

    /// Where the records with these keys are. To look for each of many from the beginning takes as long as all of them squared.
    pub(super) fn places<'a>(&self, keys: impl Iterator<Item = &'a str>) -> HashMap<String, usize> {
        let wanted: HashSet<&str> = keys.collect();
        let places = self.entries.iter().enumerate().filter_map(|(index, entry)| {
            Some((entry.key().filter(|key| wanted.contains(key))?.to_owned(), index))
        });
        places.collect()
    }

    /// Meaning of a record. Errors: `store_corrupt`, with its number, its key and the place.
    pub(super) fn meaning<'a>(&self, entry: &'a DocumentEntry<R>) -> Result<&'a Arc<R>, Error> {
        entry.read().map_err(|broken| {
            let key = broken.key.as_deref();
            let name = key.map(|key| format!(" ({key})")).unwrap_or_default();
            let what = format!("record {}{name}", broken.number);
            let error = corruption::corrupt(&self.path, &what, broken.place, broken.why.as_str())
                .detail("record", broken.number);
            match key {
                Some(key) => error.detail("id", key),
                None => error,
            }
        })
    }

    /// Content of a file's text. What is known of records whose text did not change since `before` is not found out again.
    ///
    /// Errors: `store_corrupt` or `store_foreign` for a text that is no whole document of ours. A record that cannot be read is
    /// kept: who asks for it is told.
    pub(super) async fn parse(
        path: &Path,
        text: &Arc<String>,
        stamp: Stamp,
        before: Option<Arc<Self>>,
    ) -> Result<Self, Error> {
        if let Some(outside) = Outside::by_line(text) {
            let content = Self::read_within(path, text, stamp, outside, before.clone()).await?;
            // A line that is no record may be a part of one.
            if content.is_whole() {
                return content.without_twins(text);
            }
        }
        let (owned, named) = (Arc::clone(text), path.to_owned());
        let outside = blocking(move || Outside::of(&named, &owned)).await?;
        Self::read_within(path, text, stamp, outside, before).await?.without_twins(text)
    }

    /// Content with this outside.
    async fn read_within(
        path: &Path,
        text: &Arc<String>,
        stamp: Stamp,
        outside: Outside,
        before: Option<Arc<Self>>,
    ) -> Result<Self, Error> {
        let Outside { revision, extra, pieces } = outside;
        let entries = understood(text, pieces, before).await?;
        Ok(Self { path: path.to_owned(), stamp: Some(stamp), revision, extra, entries })
    }

    /// Whether all its records can be read.
    pub(super) fn is_whole(&self) -> bool {
        self.entries.iter().all(|entry| entry.read().is_ok())
    }

    /// Content, unless two of its records have one key: they cannot be told apart, so no write could be right.
    fn without_twins(self, text: &str) -> Result<Self, Error> {
        let mut seen = HashSet::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(id) = entry.key() else { continue };
            if !seen.insert(id) {
                let what = format!("record {} ({id})", index + 1);
                let place = Position::of(text.as_bytes(), entry.begins().unwrap_or_default());
                let why = "another record has the same id";
                return Err(corruption::corrupt(&self.path, &what, place, why).detail("id", id));
            }
        }
        Ok(self)
    }

    /// Next version, of these records, and its text. `file` is the text of this one.
    pub(super) fn next(
        &self,
        entries: &[Arc<DocumentEntry<R>>],
        file: &str,
    ) -> Result<(Self, Vec<u8>), Error> {
        let unfit = |error| Error::internal("a document cannot be written as JSON").because(error);
        let size: usize = entries.iter().map(|entry| entry.text(file).len() + 2).sum();
        let mut out = Vec::with_capacity(size + 128);
        // Somebody may have written the last there is.
        let revision = self.revision.wrapping_add(1);
        // The revision stands within the first bytes: a reader's stamp of the file relies on it.
        out.extend_from_slice(format!("{{\"schema\":{SCHEMA},\"revision\":{revision},").as_bytes());
        for (key, raw) in &self.extra {
            serde_json::to_writer(&mut out, key).map_err(unfit)?;
            out.push(b':');
            out.extend_from_slice(raw.get().as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(b"\"records\":[");
        let written = entries.iter().enumerate().map(|(index, entry)| {
            out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
            let begin = out.len();
            out.extend_from_slice(entry.text(file).as_bytes());
            Arc::new(entry.written(begin..out.len()))
        });
        let entries = written.collect();
        out.extend_from_slice(b"\n]}\n");
        let (path, extra) = (self.path.clone(), self.extra.clone());
        Ok((Self { path, stamp: None, revision, extra, entries }, out))
    }
}

/// Records that a thread of their own is worth.
const SHARE: usize = 200;
const READERS: usize = 4;

/// Records of these pieces of a text, read by all processors where there are many.
async fn understood<R: Record>(
    text: &Arc<String>,
    pieces: Vec<Range<usize>>,
    before: Option<Arc<Content<R>>>,
) -> Result<Vec<Arc<DocumentEntry<R>>>, Error> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = pieces.len().div_ceil(processors.min(READERS)).max(SHARE);
    let shares = pieces.chunks(share).enumerate().map(|(number, pieces)| {
        let (text, pieces, before) = (Arc::clone(text), pieces.to_vec(), before.clone());
        blocking(move || {
            let before = before.as_ref().map_or(&[][..], |content| &content.entries);
            Ok(DocumentEntry::of_pieces(&text, &pieces, number * share, before))
        })
    });
    Ok(futures_util::future::try_join_all(shares).await?.concat())
}
