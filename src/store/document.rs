//! A file of records: `{"schema": 1, "revision": N, "records": [...]}`, shared by processes.
//!
//! Readers take no lock: a file is only ever replaced whole. Writers take its lock, read what is there then, and
//! write everything anew; records they do not touch keep their bytes, whatever a newer version put into them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::error::Error;
use crate::store::content::Content;
use crate::store::corruption::{self, Position};
use crate::store::document_entry::{DocumentEntry, Record};
use crate::store::files::{self, DataDir, Stamp, blocking};
use crate::store::lock::FileLock;
use crate::store::reserve;
use crate::store::writing::Writing;

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
        Ok(self.read_file().await?.0)
    }

    /// Content of the file, and its text.
    async fn read_file(&self) -> Result<(Arc<Content<R>>, Arc<String>), Error> {
        let path = self.path.clone();
        let Some((bytes, stamp)) = blocking(move || files::read_whole(&path)).await? else {
            if files::backup_of(&self.path).exists() {
                return Err(corruption::missing(&self.path));
            }
            return Ok((Arc::new(Content::empty(&self.path)), Arc::default()));
        };
        let text = Arc::new(String::from_utf8(bytes).map_err(|error| {
            let place = Position::of(error.as_bytes(), error.utf8_error().valid_up_to());
            corruption::corrupt(&self.path, "its text", place, error.utf8_error())
        })?);
        let before = lock(&self.cache).content.clone();
        if let Some(same) = before.as_ref().filter(|before| before.stamp == Some(stamp)) {
            return Ok((Arc::clone(same), text));
        }
        let content = Arc::new(Content::parse(&self.path, &text, stamp, before).await?);
        lock(&self.cache).content = Some(Arc::clone(&content));
        Ok((content, text))
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
        let (content, file) = self.read_file().await?;
        Ok(Writing::new(content, file, guard))
    }

    /// Writes anew, in one write, each record that `change` makes another one of, and hands back how many that are. One that cannot
    /// be read stays as it is.
    pub(super) async fn rewrite(
        &self,
        mut change: impl FnMut(&DocumentEntry<R>, &R) -> Option<R>,
    ) -> Result<usize, Error> {
        let mut writing = self.write().await?;
        let content = Arc::clone(&writing.content);
        let mut count = 0;
        for (index, entry) in content.entries.iter().enumerate() {
            let changed = entry.read().ok().and_then(|record| change(entry, record));
            if let Some(changed) = changed {
                writing.replace(index, changed)?;
                count += 1;
            }
        }
        if count > 0 {
            self.commit(writing).await?;
        }
        Ok(count)
    }

    /// Writes the records of a turn in place of what was read, and ends it. Runs to its end once begun.
    pub(super) async fn commit(&self, writing: Writing<R>) -> Result<(), Error> {
        self.commit_after(writing, || Ok(())).await
    }

    /// [`Self::commit`], with other file work before it in the same turn. Nothing is written if that fails.
    pub(super) async fn commit_after(
        &self,
        writing: Writing<R>,
        first: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (dir, path, cache) = (self.dir.clone(), self.path.clone(), Arc::clone(&self.cache));
        let replace = self.replace;
        blocking(move || {
            dir.prepare(None)?;
            first()?;
            let (mut next, bytes) = writing.content.next(&writing.entries, &writing.file)?;
            if !std::mem::replace(&mut lock(&cache).swept, true) {
                files::remove_leftovers(&path);
            }
            next.stamp = Some(replace(&path, &bytes, true)?);
            reserve::keep(path.parent().unwrap_or(&path), bytes.len());
            // Where a broken one is now is found out by whoever reads it.
            lock(&cache).content = next.is_whole().then(|| Arc::new(next));
            drop(writing);
            Ok(())
        })
        .await
    }
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
