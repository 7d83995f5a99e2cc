//! `plans/`: plans of reaps, an hour each; and the lock of the reap that wants to be alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use crate::domain::clock::ClockReading;
use crate::domain::error::Error;
use crate::domain::name::PlanId;
use crate::domain::stale::{PLAN_KEPT_S, ReapPlan};
use crate::store::files::{self, DataDir, blocking};
use crate::store::lock::try_lock_file;
use crate::store::{Held, PlanStore};

/// File with the clocks of the last plan.
const CLOCK: &str = "clock.json";

/// Plans, a file each.
pub struct PlanFolder {
    dir: DataDir,
    folder: PathBuf,
}

impl PlanFolder {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { dir: dir.clone(), folder: dir.join("plans") }
    }

    fn path(&self, id: &PlanId) -> Option<PathBuf> {
        PlanId::is_one(id.as_str()).then(|| self.folder.join(format!("{id}.json")))
    }
}

/// Removes plans that nobody may apply any more, by the clock of their files.
fn prune(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let kept = Duration::from_secs(PLAN_KEPT_S);
    for entry in entries.flatten() {
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let is_plan = entry.file_name().to_str().is_some_and(|name| name.starts_with("plan-"));
        if is_plan && age.is_some_and(|age| age > kept) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[async_trait]
impl PlanStore for PlanFolder {
    async fn put(&self, plan: &ReapPlan) -> Result<(), Error> {
        let Some(path) = self.path(&plan.id) else {
            return Err(Error::internal(format!("{} is no plan's id", plan.id)));
        };
        let dir = self.dir.clone();
        let mut text = serde_json::to_vec(plan)
            .map_err(|error| Error::internal("a plan cannot be written as JSON").because(error))?;
        text.push(b'\n');
        blocking(move || {
            dir.prepare(Some("plans"))?;
            if let Some(folder) = path.parent() {
                prune(folder);
            }
            files::replace_non_durable(&path, &text, false).map(|_| ())
        })
        .await
    }

    async fn get(&self, id: &PlanId) -> Result<Option<ReapPlan>, Error> {
        let Some(path) = self.path(id) else { return Ok(None) };
        blocking(move || {
            let Some((bytes, _)) = files::read_whole(&path)? else { return Ok(None) };
            // A plan that cannot be read is none: nothing is done by halves of one.
            Ok(serde_json::from_slice(&bytes)
                .inspect_err(|error| tracing::warn!(path = %path.display(), %error, "no plan"))
                .ok())
        })
        .await
    }

    async fn last(&self) -> Result<Option<ClockReading>, Error> {
        let path = self.folder.join(CLOCK);
        blocking(move || {
            let Some((bytes, _)) = files::read_whole(&path)? else { return Ok(None) };
            // A mark that cannot be read says nothing, and the next plan writes it anew.
            Ok(serde_json::from_slice(&bytes).ok())
        })
        .await
    }

    async fn note(&self, reading: &ClockReading) -> Result<(), Error> {
        let (dir, path) = (self.dir.clone(), self.folder.join(CLOCK));
        let text = serde_json::to_vec(reading)
            .map_err(|error| Error::internal("the clocks cannot be written").because(error))?;
        blocking(move || {
            dir.prepare(Some("plans"))?;
            files::replace_non_durable(&path, &text, false).map(|_| ())
        })
        .await
    }

    async fn try_lock(&self) -> Result<Option<Box<dyn Held>>, Error> {
        try_lock_file(&self.dir, "_reap-alone.lock").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::actor::{Actor, ActorType};
    use crate::domain::time::Time;

    #[tokio::test]
    async fn a_plan_is_kept_and_a_damaged_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let (store, other) = (PlanFolder::new(&dir), PlanFolder::new(&dir));
        let plan = ReapPlan {
            id: PlanId::from_random(7),
            at: Time::from_unix(1_800_000_000),
            valid_until: Time::from_unix(1_800_003_600),
            actor: Actor { kind: ActorType::Adm, name: "kim".into() },
            hosts: Vec::new(),
            held_back: None,
            items: Vec::new(),
        };
        assert_eq!(store.get(&plan.id).await.unwrap(), None);
        store.put(&plan).await.unwrap();
        assert_eq!(other.get(&plan.id).await.unwrap(), Some(plan.clone()));
        let path = folder.path().join("plans/plan-00000007.json");
        std::fs::write(&path, "{").unwrap();
        assert_eq!(other.get(&plan.id).await.unwrap(), None);
        // No id leads out of the folder.
        assert_eq!(other.get(&PlanId::new("../owner")).await.unwrap(), None);
        let old = SystemTime::now() - Duration::from_secs(PLAN_KEPT_S + 10);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        store.put(&ReapPlan { id: PlanId::from_random(8), ..plan }).await.unwrap();
        assert!(!path.exists(), "it is over");
        let held = store.try_lock().await.unwrap();
        assert!(held.is_some() && other.try_lock().await.unwrap().is_none());
    }
}
