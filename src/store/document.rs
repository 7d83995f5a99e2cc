//! A file of records: `{"schema": 1, "revision": N, "records": [...]}`, shared by processes.
//!
//! Readers take no lock: a file is only ever replaced whole. Writers take its lock, read what is there then, and
//! write everything anew; records they do not touch keep their bytes, whatever a newer version put into them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::domain::error::Error;
use crate::store::corruption::{self, Position};
use crate::store::document_entry::{DocumentEntry, JsonText, Record};
use crate::store::files::{self, DataDir, Stamp, blocking};
use crate::store::lock::{FileLock, FileLockGuard};
use crate::store::reserve;
use crate::store::shape::{SCHEMA, Shape, misfit};

/// A version of the document.
pub(super) struct Content<R> {
    path: PathBuf,
    stamp: Option<Stamp>,
    revision: u64,
    /// Keys that a newer version wrote beside the three we know.
    extra: Vec<(String, Box<RawValue>)>,
    /// In the file's order.
    pub(super) entries: Vec<Arc<DocumentEntry<R>>>,
}

impl<R: Record> Content<R> {
    fn empty(path: &Path) -> Self {
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
        let Some(index) = self.entries.iter().position(|entry| entry.key().as_deref() == Some(key))
        else {
            return Ok(None);
        };
        Ok(Some((index, self.meaning(&self.entries[index])?)))
    }

    /// Where the records with these keys are. To look for each of many from the beginning takes as long as all of them squared.
    pub(super) fn places<'a>(&self, keys: impl Iterator<Item = &'a str>) -> HashMap<String, usize> {
        let wanted: HashSet<&str> = keys.collect();
        let places = self.entries.iter().enumerate().filter_map(|(index, entry)| {
            Some((entry.key().filter(|key| wanted.contains(&**key))?.into_owned(), index))
        });
        places.collect()
    }

    /// Meaning of a record. Errors: `store_corrupt`, with its number, its key and the place.
    pub(super) fn meaning<'a>(&self, entry: &'a DocumentEntry<R>) -> Result<&'a Arc<R>, Error> {
        entry.read().map_err(|broken| {
            let number = 1 + self
                .entries
                .iter()
                .position(|one| std::ptr::eq(Arc::as_ptr(one), entry))
                .unwrap_or_default();
            let key = entry.key();
            let name = key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default();
            let what = format!("record {number}{name}");
            let error =
                corruption::corrupt(&self.path, &what, entry.position_of(broken), broken.why())
                    .detail("record", number);
            match key {
                Some(key) => error.detail("id", key.as_ref()),
                None => error,
            }
        })
    }

    /// Content of a file's text. What is known of records whose text did not change since `before` is not found out again.
    ///
    /// Errors: `store_corrupt` or `store_foreign` for a text that is no whole document of ours. A record that cannot be read is
    /// kept: who asks for it is told.
    async fn parse(
        path: &Path,
        text: String,
        stamp: Stamp,
        before: Option<Arc<Self>>,
    ) -> Result<Self, Error> {
        let owned = path.to_owned();
        let (mut content, pieces) = blocking(move || Self::outside(owned, text, stamp)).await?;
        content.entries = understood(pieces, before).await?;
        content.refuse_twins()?;
        Ok(content)
    }

    /// Content of a text, without its records, and where these are.
    fn outside(path: PathBuf, text: String, stamp: Stamp) -> Result<(Self, Vec<JsonText>), Error> {
        let text = Arc::new(text);
        let shape: Shape<'_> =
            serde_json::from_str(&text).map_err(|error| misfit(&path, &text, &error))?;
        let pieces = shape.records.iter().map(|raw| {
            let begin = offset_in(&text, raw);
            JsonText::within(&text, begin..begin + raw.get().len())
        });
        let pieces = pieces.collect();
        let extra = shape.extra.into_iter().map(|(key, raw)| (key, raw.to_owned())).collect();
        let content =
            Self { path, stamp: Some(stamp), revision: shape.revision, extra, entries: Vec::new() };
        Ok((content, pieces))
    }

    /// Two records with one key cannot be told apart: no write could be right.
    fn refuse_twins(&self) -> Result<(), Error> {
        let mut seen = HashSet::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(key) = entry.key() else { continue };
            if !seen.insert(key.clone()) {
                let id = key;
                let why = "another record has the same id";
                let what = format!("record {} ({id})", index + 1);
                return Err(
                    corruption::corrupt(&self.path, &what, entry.begins(), why).detail("id", &*id)
                );
            }
        }
        Ok(())
    }

    fn render(&self) -> Result<Vec<u8>, Error> {
        let unfit = |error| Error::internal("a document cannot be written as JSON").because(error);
        let size: usize = self.entries.iter().map(|entry| entry.text().len() + 2).sum();
        let mut out = Vec::with_capacity(size + 128);
        // The revision stands within the first bytes: a reader's stamp of the file relies on it.
        out.extend_from_slice(
            format!("{{\"schema\":{SCHEMA},\"revision\":{},", self.revision).as_bytes(),
        );
        for (key, raw) in &self.extra {
            serde_json::to_writer(&mut out, key).map_err(unfit)?;
            out.push(b':');
            out.extend_from_slice(raw.get().as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(b"\"records\":[");
        for (index, entry) in self.entries.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
            out.extend_from_slice(entry.text().as_bytes());
        }
        out.extend_from_slice(b"\n]}\n");
        Ok(out)
    }
}

pub(super) struct Document<R> {
    dir: DataDir,
    path: PathBuf,
    lock: FileLock,
    replace: fn(&Path, &[u8], bool) -> Result<Stamp, Error>,
    cache: Arc<Mutex<Cache<R>>>,
    /// Held while the file is read: of several who start at once, one reads it.
    reading: tokio::sync::Mutex<()>,
}

struct Cache<R> {
    content: Option<Arc<Content<R>>>,
    swept: bool,
}

impl<R> Default for Cache<R> {
    fn default() -> Self {
        Self { content: None, swept: false }
    }
}

/// A turn to write a document, and what is in it meanwhile.
pub(super) struct Writing<R> {
    /// Content; nobody changes it while this lives.
    pub(super) content: Arc<Content<R>>,
    guard: FileLockGuard,
}

impl<R: Record> Document<R> {
    pub(super) fn new(dir: &DataDir, name: &str) -> Self {
        Self {
            dir: dir.clone(),
            path: dir.join(format!("{name}.json")),
            lock: FileLock::new(dir, name),
            replace: files::replace,
            cache: Arc::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// The same, of something that a power cut ends anyway: the version before the last write will do after it.
    pub(super) fn non_durable(dir: &DataDir, name: &str) -> Self {
        Self { replace: files::replace_non_durable, ..Self::new(dir, name) }
    }

    /// Content now. Errors: `store_corrupt`, `store_foreign`, `internal`.
    pub(super) async fn read(&self) -> Result<Arc<Content<R>>, Error> {
        if let Some(known) = self.known().await? {
            return Ok(known);
        }
        let _one = self.reading.lock().await;
        if let Some(known) = self.known().await? {
            return Ok(known);
        }
        let path = self.path.clone();
        let found = blocking(move || files::read_whole(&path)).await?;
        let content = match found {
            Some((bytes, stamp)) => {
                let text = String::from_utf8(bytes).map_err(|error| {
                    let place = Position::of(error.as_bytes(), error.utf8_error().valid_up_to());
                    corruption::corrupt(&self.path, "its text", place, error.utf8_error())
                })?;
                let before = lock(&self.cache).content.clone();
                Content::parse(&self.path, text, stamp, before).await?
            }
            None if files::backup_of(&self.path).exists() => {
                return Err(corruption::missing(&self.path));
            }
            None => return Ok(Arc::new(Content::empty(&self.path))),
        };
        let content = Arc::new(content);
        lock(&self.cache).content = Some(Arc::clone(&content));
        Ok(content)
    }

    /// Content that was read last, if the file is that one still.
    async fn known(&self) -> Result<Option<Arc<Content<R>>>, Error> {
        let path = self.path.clone();
        let Some((_, stamp)) = blocking(move || files::open_stamped(&path)).await? else {
            return Ok(None);
        };
        Ok(lock(&self.cache).content.clone().filter(|content| content.stamp == Some(stamp)))
    }

    /// A number that another content does not have.
    pub(super) async fn version(&self) -> Result<u64, Error> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let path = self.path.clone();
        let stamp = blocking(move || files::open_stamped(&path)).await?;
        Ok(stamp.map_or(0, |(_, stamp)| {
            let mut hasher = DefaultHasher::new();
            stamp.hash(&mut hasher);
            hasher.finish()
        }))
    }

    /// Waits for a turn to write. Dropping it writes nothing.
    pub(super) async fn write(&self) -> Result<Writing<R>, Error> {
        let guard = self.lock.acquire().await?;
        Ok(Writing { content: self.read().await?, guard })
    }

    /// Writes anew, in one write, each record that `change` makes another one of, and hands back how many that are. One that cannot
    /// be read stays as it is.
    pub(super) async fn rewrite(
        &self,
        mut change: impl FnMut(&DocumentEntry<R>, &R) -> Option<R>,
    ) -> Result<usize, Error> {
        let writing = self.write().await?;
        let mut entries = writing.content.entries.clone();
        let mut count = 0;
        for entry in &mut entries {
            let changed = entry.read().ok().and_then(|record| change(entry, record));
            if let Some(changed) = changed {
                *entry = Arc::new(DocumentEntry::new(changed, Some(entry))?);
                count += 1;
            }
        }
        if count > 0 {
            self.commit(writing, entries).await?;
        }
        Ok(count)
    }

    /// Writes these records in place of what was read, and ends the turn. Runs to its end once begun.
    pub(super) async fn commit(
        &self,
        writing: Writing<R>,
        entries: Vec<Arc<DocumentEntry<R>>>,
    ) -> Result<(), Error> {
        self.commit_after(writing, entries, || Ok(())).await
    }

    /// [`Self::commit`], with other file work before it in the same turn. Nothing is written if that fails.
    pub(super) async fn commit_after(
        &self,
        writing: Writing<R>,
        entries: Vec<Arc<DocumentEntry<R>>>,
        first: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (dir, path, cache) = (self.dir.clone(), self.path.clone(), Arc::clone(&self.cache));
        let replace = self.replace;
        blocking(move || {
            let Writing { content: old, guard } = writing;
            dir.prepare(None)?;
            first()?;
            let mut next = Content {
                path: path.clone(),
                stamp: None,
                revision: old.revision + 1,
                extra: old.extra.clone(),
                entries,
            };
            let bytes = next.render()?;
            if !std::mem::replace(&mut lock(&cache).swept, true) {
                files::remove_leftovers(&path);
            }
            next.stamp = Some(replace(&path, &bytes, true)?);
            reserve::keep(path.parent().unwrap_or(&path), bytes.len());
            lock(&cache).content = Some(Arc::new(next));
            drop(guard);
            Ok(())
        })
        .await
    }
}

/// Records that a thread of their own is worth.
const SHARE: usize = 200;
const READERS: usize = 4;

/// Records of these texts, read by all processors where there are many.
async fn understood<R: Record>(
    pieces: Vec<JsonText>,
    before: Option<Arc<Content<R>>>,
) -> Result<Vec<Arc<DocumentEntry<R>>>, Error> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = pieces.len().div_ceil(processors.min(READERS)).max(SHARE);
    let shares = pieces.chunks(share).enumerate().map(|(number, pieces)| {
        let (pieces, before) = (pieces.to_vec(), before.clone());
        blocking(move || {
            let entries = pieces.into_iter().zip(number * share..).map(|(piece, index)| {
                let same = before.as_ref().and_then(|old| old.entries.get(index));
                Arc::new(DocumentEntry::found(piece, same.map(|same| &**same)))
            });
            Ok(entries.collect::<Vec<_>>())
        })
    });
    Ok(futures_util::future::try_join_all(shares).await?.concat())
}

fn lock<R>(cache: &Mutex<Cache<R>>) -> std::sync::MutexGuard<'_, Cache<R>> {
    // Only whole values are ever put in: one that a panic left is as good as any.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file's bytes as text, or `store_corrupt` with the place of the first byte that is none.
pub(super) fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        corruption::corrupt(path, "its text", Position::of(bytes, error.valid_up_to()), error)
    })
}

fn offset_in(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr() as usize - text.as_ptr() as usize
}
