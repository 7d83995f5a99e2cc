//! `sweep.json`: when something swept last, by which clocks; and the lock of the sweep that wants to be alone.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::domain::clock::ClockReading;
use crate::domain::error::Error;
use crate::store::files::{self, DataDir, blocking};
use crate::store::lock::try_lock_file;
use crate::store::{Held, SweepStore};

const SCHEMA: u64 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Swept {
    schema: u64,
    #[serde(flatten)]
    reading: ClockReading,
}

/// The last sweep, in a file.
pub struct SweepFile {
    dir: DataDir,
    path: PathBuf,
}

impl SweepFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone(), path: dir.join("sweep.json") }
    }
}

/// Content of the file. What cannot be read says nothing, and the next sweep writes it anew.
fn read(path: &Path) -> Result<Option<ClockReading>, Error> {
    let Some((bytes, _)) = files::read_whole(path)? else { return Ok(None) };
    match serde_json::from_slice::<Swept>(&bytes) {
        Ok(swept) if swept.schema == SCHEMA => Ok(Some(swept.reading)),
        Ok(Swept { schema, .. }) => {
            tracing::warn!(path = %path.display(), schema, "written by another version");
            Ok(None)
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "no record of a sweep");
            Ok(None)
        }
    }
}

#[async_trait]
impl SweepStore for SweepFile {
    async fn last(&self) -> Result<Option<ClockReading>, Error> {
        let path = self.path.clone();
        blocking(move || read(&path)).await
    }

    async fn note(&self, reading: &ClockReading) -> Result<(), Error> {
        let (dir, path) = (self.dir.clone(), self.path.clone());
        let swept = Swept { schema: SCHEMA, reading: reading.clone() };
        let mut text = serde_json::to_vec(&swept)
            .map_err(|error| Error::internal("a sweep cannot be written as JSON").because(error))?;
        text.push(b'\n');
        blocking(move || {
            dir.prepare(None)?;
            files::replace_non_durable(&path, &text, false).map(|_| ())
        })
        .await
    }

    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error> {
        // A sandbox's id begins with no `_`.
        try_lock_file(&self.dir, "_sweep-alone.lock").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::clock::MonotonicTime;
    use crate::domain::time::Time;

    #[tokio::test]
    async fn a_sweep_is_remembered_and_a_damaged_note_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let (store, other) = (SweepFile::new(&dir), SweepFile::new(&dir));
        assert_eq!(store.last().await.unwrap(), None);
        let monotonic = MonotonicTime { boot: "b".into(), elapsed_ms: 7 };
        let reading = ClockReading { wall: Time::from_unix(1_800_000_000), monotonic };
        store.note(&reading).await.unwrap();
        assert_eq!(other.last().await.unwrap(), Some(reading.clone()));
        for text in ["", "{", "[]", "{\"schema\":2}", "\u{fffd}"] {
            std::fs::write(folder.path().join("sweep.json"), text).unwrap();
            assert_eq!(other.last().await.unwrap(), None, "{text:?}");
        }
        store.note(&reading).await.unwrap();
        assert_eq!(other.last().await.unwrap(), Some(reading));
        let held = store.try_lock().await.unwrap();
        assert!(held.is_some() && other.try_lock().await.unwrap().is_none());
        drop(held);
        assert!(other.try_lock().await.unwrap().is_some());
    }
}
