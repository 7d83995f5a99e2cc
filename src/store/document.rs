//! A file of records: `{"schema": 1, "revision": N, "records": [...]}`, shared by processes.
//!
//! Readers take no lock: a file is only ever replaced whole. Writers take its lock, read what is there then, and
//! write everything anew; records they do not touch keep their bytes, whatever a newer version put into them.

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::domain::fault::Fault;
use crate::store::damage::{self, Foreign, Place, START};
use crate::store::files::{self, DataDir, Stamp, blocking};
use crate::store::lock::{Gate, Turn};
use crate::store::merge::merge_unknown;

/// The schema this version reads and writes.
const SCHEMA: u64 = 1;

/// What a document can hold.
pub(super) trait Record: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its key in the document.
    fn key(&self) -> &str;
}

/// One record: its bytes as they are in the file, and what they mean.
pub(super) struct Entry<R> {
    raw: Box<RawValue>,
    read: Result<R, Broken>,
}

/// Why a record has no meaning for this version.
struct Broken {
    key: Option<String>,
    number: usize,
    place: Place,
    why: String,
}

impl<R: Record> Entry<R> {
    /// A record to write. What it replaces may hold fields of a newer version: they stay.
    pub(super) fn new(record: R, replaces: Option<&Self>) -> Result<Self, Fault> {
        let unfit = |error| Fault::internal("a record cannot be written as JSON").because(error);
        let mut value = serde_json::to_value(&record).map_err(unfit)?;
        if let Some(old) = replaces
            && let Ok(known) = &old.read
        {
            let raw = serde_json::from_str(old.raw.get()).map_err(unfit)?;
            let known = serde_json::to_value(known).map_err(unfit)?;
            value = merge_unknown(&raw, &known, value);
        }
        Ok(Self { raw: serde_json::value::to_raw_value(&value).map_err(unfit)?, read: Ok(record) })
    }

    /// What it means; `None` if this version cannot read it.
    pub(super) fn record(&self) -> Option<&R> {
        self.read.as_ref().ok()
    }

    /// Its key, as far as it can be told.
    pub(super) fn key(&self) -> Option<&str> {
        match &self.read {
            Ok(record) => Some(record.key()),
            Err(broken) => broken.key.as_deref(),
        }
    }

    /// Its bytes.
    pub(super) fn raw(&self) -> &str {
        self.raw.get()
    }
}

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
        Self { path: path.to_owned(), stamp: None, revision: 0, extra: Vec::new(), entries: Vec::new() }
    }

    /// All records. A list that left one out would make what it has on a host look like nobody's.
    pub(super) fn records(&self) -> Result<Vec<&R>, Fault> {
        self.entries.iter().map(|entry| self.meaning(entry)).collect()
    }

    /// The record with this key and where it is.
    pub(super) fn find(&self, key: &str) -> Result<Option<(usize, &R)>, Fault> {
        let Some(index) = self.entries.iter().position(|entry| entry.key() == Some(key)) else { return Ok(None) };
        Ok(Some((index, self.meaning(&self.entries[index])?)))
    }

    fn meaning<'a>(&self, entry: &'a Entry<R>) -> Result<&'a R, Fault> {
        entry.read.as_ref().map_err(|broken| {
            let name = broken.key.as_ref().map(|key| format!(" ({key})")).unwrap_or_default();
            let fault = damage::corrupt(
                &self.path,
                &format!("record {}{name}", broken.number),
                broken.place,
                broken.why.as_str(),
            )
            .detail("record", broken.number);
            match &broken.key {
                Some(key) => fault.detail("id", key.as_str()),
                None => fault,
            }
        })
    }

    /// Reads a file's text. Records whose bytes did not change since `before` are not parsed again.
    fn parse(path: &Path, text: &str, stamp: Stamp, before: Option<&Self>) -> Result<Self, Fault> {
        let shape: Shape<'_> = serde_json::from_str(text).map_err(|error| misfit(path, text, &error))?;
        let entries = shape
            .records
            .iter()
            .enumerate()
            .map(|(index, raw)| {
                if let Some(same) = before.and_then(|old| old.entries.get(index))
                    && same.raw.get() == raw.get()
                    && same.read.is_ok()
                {
                    return Arc::clone(same);
                }
                Arc::new(Entry { raw: (*raw).to_owned(), read: read_record(text, index, raw) })
            })
            .collect();
        let extra = shape.extra.into_iter().map(|(key, raw)| (key, raw.to_owned())).collect();
        let content = Self { path: path.to_owned(), stamp: Some(stamp), revision: shape.revision, extra, entries };
        content.refuse_twins(text, &shape.records)?;
        Ok(content)
    }

    /// Two records with one key cannot be told apart: no write could be right.
    fn refuse_twins(&self, text: &str, raws: &[&RawValue]) -> Result<(), Fault> {
        let mut seen = std::collections::HashSet::with_capacity(self.entries.len());
        for (index, entry) in self.entries.iter().enumerate() {
            if let Some(key) = entry.key()
                && !seen.insert(key)
            {
                let place = Place::of(text.as_bytes(), offset_in(text, raws[index]));
                let why = "another record has the same id";
                return Err(
                    damage::corrupt(&self.path, &format!("record {} ({key})", index + 1), place, why).detail("id", key)
                );
            }
        }
        Ok(())
    }

    fn render(&self) -> Result<Vec<u8>, Fault> {
        let unfit = |error| Fault::internal("a document cannot be written as JSON").because(error);
        let size: usize = self.entries.iter().map(|entry| entry.raw.get().len() + 2).sum();
        let mut out = Vec::with_capacity(size + 128);
        // The revision stands within the first bytes: a reader's stamp of the file relies on it.
        out.extend_from_slice(format!("{{\"schema\":{SCHEMA},\"revision\":{},", self.revision).as_bytes());
        for (key, raw) in &self.extra {
            serde_json::to_writer(&mut out, key).map_err(unfit)?;
            out.push(b':');
            out.extend_from_slice(raw.get().as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(b"\"records\":[");
        for (index, entry) in self.entries.iter().enumerate() {
            out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
            out.extend_from_slice(entry.raw.get().as_bytes());
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

impl<R: Record> Document<R> {
    /// The document in `<dir>/<name>.json`.
    pub(super) fn new(dir: &DataDir, name: &str) -> Self {
        Self {
            dir: dir.clone(),
            path: dir.join(format!("{name}.json")),
            gate: Gate::new(dir, name),
            cache: Arc::new(Mutex::new(Cache { content: None, swept: false })),
        }
    }

    /// What is in it now. Errors: `store_corrupt`, `store_foreign`, `internal`.
    pub(super) async fn read(&self) -> Result<Arc<Content<R>>, Fault> {
        let (path, cache) = (self.path.clone(), Arc::clone(&self.cache));
        blocking(move || load(&path, &cache)).await
    }

    /// A number that another content does not have.
    pub(super) async fn version(&self) -> Result<u64, Fault> {
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
    pub(super) async fn write(&self) -> Result<Writing<R>, Fault> {
        let turn = self.gate.enter().await?;
        Ok(Writing { content: self.read().await?, turn })
    }

    /// Writes these records in place of what was read, and ends the turn. Runs to its end once begun.
    pub(super) async fn commit(&self, writing: Writing<R>, entries: Vec<Arc<Entry<R>>>) -> Result<(), Fault> {
        self.commit_after(writing, entries, || Ok(())).await
    }

    /// As [`Self::commit`], with other file work before it in the same turn. Nothing is written if that fails.
    pub(super) async fn commit_after(
        &self,
        writing: Writing<R>,
        entries: Vec<Arc<Entry<R>>>,
        first: impl FnOnce() -> Result<(), Fault> + Send + 'static,
    ) -> Result<(), Fault> {
        let (dir, path, cache) = (self.dir.clone(), self.path.clone(), Arc::clone(&self.cache));
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
            next.stamp = Some(files::replace(&path, &bytes, true)?);
            lock(&cache).content = Some(Arc::new(next));
            drop(turn);
            Ok(())
        })
        .await
    }
}

fn lock<R>(cache: &Mutex<Cache<R>>) -> std::sync::MutexGuard<'_, Cache<R>> {
    // Only whole values are ever put in: one that a panic left is as good as any.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the file, unless it is the one that was read last.
fn load<R: Record>(path: &Path, cache: &Mutex<Cache<R>>) -> Result<Arc<Content<R>>, Fault> {
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
    let text = utf8(path, &bytes)?;
    let content = Arc::new(Content::parse(path, text, stamp, before.as_deref())?);
    lock(cache).content = Some(Arc::clone(&content));
    Ok(content)
}

/// A file's bytes as text, or `store_corrupt` with the place of the first byte that is none.
pub(super) fn utf8<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes)
        .map_err(|error| damage::corrupt(path, "its text", Place::of(bytes, error.valid_up_to()), error))
}

fn offset_in(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr() as usize - text.as_ptr() as usize
}

fn read_record<R: Record>(text: &str, index: usize, raw: &RawValue) -> Result<R, Broken> {
    #[derive(Deserialize)]
    struct OnlyId {
        id: String,
    }
    serde_json::from_str(raw.get()).map_err(|error| Broken {
        key: serde_json::from_str(raw.get()).ok().map(|OnlyId { id }| id),
        number: index + 1,
        place: Place::of_json(&error, Place::of(text.as_bytes(), offset_in(text, raw))),
        why: damage::words(&error),
    })
}

/// Says why a text is no document of ours: broken JSON, or whole JSON of another kind.
fn misfit(path: &Path, text: &str, error: &serde_json::Error) -> Fault {
    let corrupt = |error: &serde_json::Error| {
        let what = if text.is_empty() { "an empty file" } else { "the file" };
        damage::corrupt(path, what, Place::of_json(error, START), damage::words(error))
    };
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(broken) => return corrupt(&broken),
    };
    match value.get("schema").map(serde_json::Value::as_u64) {
        Some(Some(SCHEMA)) => corrupt(error),
        Some(Some(newer)) if newer > SCHEMA => damage::foreign(path, Foreign::Newer(newer)),
        Some(_) => damage::foreign(path, Foreign::Unknown),
        None => damage::foreign(path, shape_of(&value)),
    }
}

/// The earlier Python tool kept `{"<id>": {...}}`, or a list of objects.
fn shape_of(value: &serde_json::Value) -> Foreign {
    let python = match value {
        serde_json::Value::Array(items) => items.iter().all(serde_json::Value::is_object),
        serde_json::Value::Object(items) => items.values().all(serde_json::Value::is_object),
        _ => false,
    };
    if python { Foreign::Python } else { Foreign::Unknown }
}

/// The document's outside, its records still bytes.
struct Shape<'a> {
    revision: u64,
    records: Vec<&'a RawValue>,
    extra: Vec<(String, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Shape<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Outside<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Outside<'a> {
            type Value = Shape<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `schema`, `revision` and `records`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<'a>, A::Error> {
                let (mut schema, mut revision, mut records, mut extra) = (None, None, None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    let twice = match key.as_str() {
                        "schema" => schema.replace(map.next_value::<u64>()?).is_some(),
                        "revision" => revision.replace(map.next_value()?).is_some(),
                        "records" => records.replace(map.next_value()?).is_some(),
                        _ => {
                            extra.push((key.clone(), map.next_value()?));
                            false
                        }
                    };
                    if twice {
                        return Err(de::Error::custom(format_args!("the key `{key}` is there twice")));
                    }
                }
                if schema.ok_or_else(|| de::Error::missing_field("schema"))? != SCHEMA {
                    return Err(de::Error::custom("a schema that this version does not know"));
                }
                Ok(Shape {
                    revision: revision.ok_or_else(|| de::Error::missing_field("revision"))?,
                    records: records.ok_or_else(|| de::Error::missing_field("records"))?,
                    extra,
                })
            }
        }

        deserializer.deserialize_map(Outside(PhantomData))
    }
}
