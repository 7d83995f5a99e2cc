//! `pinned/<hash>.json`: the profiles that sandboxes were made from, each written once.

use async_trait::async_trait;

use crate::domain::error::Error;
use crate::domain::profile::Profile;
use crate::store::PinnedProfileStore;
use crate::store::corruption::{self, Position, START};
use crate::store::document::utf8;
use crate::store::files::{self, DataDir, blocking};

const FOLDER: &str = "pinned";

/// Name of the folder in earlier versions, which is read.
const EARLIER_FOLDER: &str = "recipes";

/// The profiles, a file each.
#[derive(Debug)]
pub struct PinnedProfileFolder {
    dir: DataDir,
}

impl PinnedProfileFolder {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone() }
    }
}

/// The file of a hash in a folder. `None` for what is no hash: it must not become a path.
fn file_of(dir: &DataDir, folder: &str, hash: &str) -> Option<std::path::PathBuf> {
    let is_hash =
        hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| dir.join(folder).join(format!("{hash}.json")))
}

#[async_trait]
impl PinnedProfileStore for PinnedProfileFolder {
    async fn put(&self, profile: &Profile) -> Result<(), Error> {
        let unfit = |error| Error::internal("a profile cannot be written as JSON").because(error);
        let text = serde_json::to_vec_pretty(profile.as_written()).map_err(unfit)?;
        let hash = profile.hash();
        let dir = self.dir.clone();
        blocking(move || {
            let path = file_of(&dir, FOLDER, &hash)
                .ok_or_else(|| Error::internal("a profile's hash is not a SHA-256"))?;
            // The name says what is in it: two writers at once write the same.
            if path.is_file() {
                return Ok(());
            }
            dir.prepare(Some(FOLDER))?;
            files::replace(&path, &text, false).map(|_| ())
        })
        .await
    }

    async fn get(&self, hash: &str) -> Result<Option<Profile>, Error> {
        let Some(path) = file_of(&self.dir, FOLDER, hash) else { return Ok(None) };
        let earlier = file_of(&self.dir, EARLIER_FOLDER, hash);
        blocking(move || {
            let (path, bytes) = match (files::read_whole(&path)?, earlier) {
                (Some((bytes, _)), _) => (path, bytes),
                (None, None) => return Ok(None),
                (None, Some(earlier)) => match files::read_whole(&earlier)? {
                    Some((bytes, _)) => (earlier, bytes),
                    None => return Ok(None),
                },
            };
            let text = utf8(&path, &bytes)?;
            serde_json::from_str(text).map(Some).map_err(|error| {
                corruption::corrupt(
                    &path,
                    "the profile",
                    Position::of_json(&error, START),
                    corruption::words(&error),
                )
            })
        })
        .await
    }
}
