//! A file of records: `{"schema": 1, "revision": N, "records": [...]}`, shared by processes.
//!
//! Readers take no lock: a file is only ever replaced whole. Writers take its lock, read what is there then, and
//! write everything anew; records they do not touch keep their bytes, whatever a newer version put into them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use crate::domain::error::Error;
use crate::domain::verbatim::JsonText;
use crate::store::damage::{self, Place};
use crate::store::entry::{Entry, Record};
use crate::store::files::{self, DataDir, Stamp, blocking};
use crate::store::lock::{Gate, Turn};
use crate::store::reserve;
use crate::store::shape::{SCHEMA, Shape, misfit};

/// A version of the document.
pub(super) struct Content<R> {
    path: PathBuf,
    stamp: Option<Stamp>,
    revision: u64,
    /// What a newer version wrote beside the three keys we know.
    extra: Vec<(String, Box<RawValue>)>,
    /// In the file's order.
    pub(super) entries: Vec<Arc<Entry<R>>>,
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

    /// What a record means. Errors: `store_corrupt`, with its number, its key and the place.
    pub(super) fn meaning<'a>(&self, entry: &'a Entry<R>) -> Result<&'a Arc<R>, Error> {
        entry.read().map_err(|broken| {
            let number = 1 + self
                .entries
                .iter()
                .position(|one| std::ptr::eq(Arc::as_ptr(one), entry))
                .unwrap_or_default();
            let key = entry.key();
            let name = key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default();
            let what = format!("record {number}{name}");
            let fault = damage::corrupt(&self.path, &what, entry.place_of(broken), broken.why())
                .detail("record", number);
            match key {
                Some(key) => fault.detail("id", key.as_ref()),
                None => fault,
            }
        })
    }

    /// Takes a file's text apart: is it whole, and where are its records? What they mean is found out when somebody
    /// asks; for those whose text did not change since `before` it is known already.
    fn parse(
        path: &Path,
        text: String,
        stamp: Stamp,
        before: Option<&Self>,
    ) -> Result<Self, Error> {
        let text = Arc::new(text);
        let shape: Shape<'_> =
            serde_json::from_str(&text).map_err(|error| misfit(path, &text, &error))?;
        let entries = shape.records.iter().enumerate().map(|(index, raw)| {
            let begin = offset_in(&text, raw);
            let piece = JsonText::within(&text, begin..begin + raw.get().len());
            let same = before.and_then(|old| old.entries.get(index));
            Arc::new(Entry::found(piece, same.map(|same| &**same)))
        });
        let entries = entries.collect();
        let extra = shape.extra.into_iter().map(|(key, raw)| (key, raw.to_owned())).collect();
        let content = Self {
            path: path.to_owned(),
            stamp: Some(stamp),
            revision: shape.revision,
            extra,
            entries,
        };
        content.refuse_twins()?;
        Ok(content)
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
                    damage::corrupt(&self.path, &what, entry.begins(), why).detail("id", &*id)
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

/// A document's file.
pub(super) struct Document<R> {
    dir: DataDir,
    path: PathBuf,
    gate: Gate,
    replace: fn(&Path, &[u8], bool) -> Result<Stamp, Error>,
    cache: Arc<Mutex<Cache<R>>>,
}

struct Cache<R> {
    content: Option<Arc<Content<R>>>,
    swept: bool,
}

/// A turn to write a document, and what is in it meanwhile.
pub(super) struct Writing<R> {
    /// What is there; nobody changes it while this lives.
    pub(super) content: Arc<Content<R>>,
    turn: Turn,
}

impl<R: Record> Writing<R> {
    /// Finds out what every record means, as [`Document::read_all`] does.
    pub(super) async fn understand(&self) -> Result<(), Error> {
        understand(&self.content).await
    }
}

impl<R: Record> Document<R> {
    /// The document in `<dir>/<name>.json`.
    pub(super) fn new(dir: &DataDir, name: &str) -> Self {
        Self {
            dir: dir.clone(),
            path: dir.join(format!("{name}.json")),
            gate: Gate::new(dir, name),
            replace: files::replace,
            cache: Arc::new(Mutex::new(Cache { content: None, swept: false })),
        }
    }

    /// The same, of something that a power cut ends anyway: the version before the last write will do after it.
    pub(super) fn for_now(dir: &DataDir, name: &str) -> Self {
        Self { replace: files::replace_for_now, ..Self::new(dir, name) }
    }

    /// What is in it now. Errors: `store_corrupt`, `store_foreign`, `internal`.
    pub(super) async fn read(&self) -> Result<Arc<Content<R>>, Error> {
        let (path, cache) = (self.path.clone(), Arc::clone(&self.cache));
        blocking(move || load(&path, &cache)).await
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

    /// As [`Self::read`], for who wants to know of every record what it means: found out by all processors, where there are many.
    pub(super) async fn read_all(&self) -> Result<Arc<Content<R>>, Error> {
        let content = self.read().await?;
        understand(&content).await?;
        Ok(content)
    }

    /// Waits for a turn to write. Dropping it writes nothing.
    pub(super) async fn write(&self) -> Result<Writing<R>, Error> {
        let turn = self.gate.enter().await?;
        Ok(Writing { content: self.read().await?, turn })
    }

    /// Writes anew, in one write, each record that `change` makes another one of, and hands back how many that are. One that cannot
    /// be read stays as it is.
    pub(super) async fn rewrite(
        &self,
        mut change: impl FnMut(&Entry<R>, &R) -> Option<R>,
    ) -> Result<usize, Error> {
        let writing = self.write().await?;
        let mut entries = writing.content.entries.clone();
        let mut count = 0;
        for entry in &mut entries {
            let changed = entry.read().ok().and_then(|record| change(entry, record));
            if let Some(changed) = changed {
                *entry = Arc::new(Entry::new(changed, Some(entry))?);
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
        entries: Vec<Arc<Entry<R>>>,
    ) -> Result<(), Error> {
        self.commit_after(writing, entries, || Ok(())).await
    }

    /// As [`Self::commit`], with other file work before it in the same turn. Nothing is written if that fails.
    pub(super) async fn commit_after(
        &self,
        writing: Writing<R>,
        entries: Vec<Arc<Entry<R>>>,
        first: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (dir, path, cache) = (self.dir.clone(), self.path.clone(), Arc::clone(&self.cache));
        let replace = self.replace;
        blocking(move || {
            let Writing { content: old, turn } = writing;
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
            drop(turn);
            Ok(())
        })
        .await
    }
}

/// Records that a thread of their own is worth.
const SHARE: usize = 200;
/// Threads that read records, at most.
const READERS: usize = 4;

/// Finds out what records mean. One that cannot be read is as it was: who asks for it is told.
async fn understand<R: Record>(content: &Arc<Content<R>>) -> Result<(), Error> {
    let unread = content.entries.iter().filter(|entry| !entry.is_read()).count();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let readers = (unread / SHARE).min(processors).min(READERS);
    if readers < 2 {
        return Ok(());
    }
    let share = content.entries.len().div_ceil(readers);
    let shares = (0..readers).map(|number| {
        let content = Arc::clone(content);
        blocking(move || {
            for entry in content.entries.iter().skip(number * share).take(share) {
                // Kept with the entry, whatever it says.
                let _ = entry.read();
            }
            Ok(())
        })
    });
    futures_util::future::try_join_all(shares).await.map(|_| ())
}

fn lock<R>(cache: &Mutex<Cache<R>>) -> std::sync::MutexGuard<'_, Cache<R>> {
    // Only whole values are ever put in: one that a panic left is as good as any.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the file, unless it is the one that was read last.
fn load<R: Record>(path: &Path, cache: &Mutex<Cache<R>>) -> Result<Arc<Content<R>>, Error> {
    let Some((_, stamp)) = files::open_stamped(path)? else {
        return if files::backup_of(path).exists() {
            Err(damage::missing(path))
        } else {
            Ok(Arc::new(Content::empty(path)))
        };
    };
    let before = lock(cache).content.clone();
    if let Some(content) = &before
        && content.stamp == Some(stamp)
    {
        return Ok(Arc::clone(content));
    }
    let Some((bytes, stamp)) = files::read_whole(path)? else { return load(path, cache) };
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = Place::of(error.as_bytes(), error.utf8_error().valid_up_to());
        damage::corrupt(path, "its text", place, error.utf8_error())
    })?;
    let content = Arc::new(Content::parse(path, text, stamp, before.as_deref())?);
    lock(cache).content = Some(Arc::clone(&content));
    Ok(content)
}

/// A file's bytes as text, or `store_corrupt` with the place of the first byte that is none.
pub(super) fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        damage::corrupt(path, "its text", Place::of(bytes, error.valid_up_to()), error)
    })
}

fn offset_in(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr() as usize - text.as_ptr() as usize
}
