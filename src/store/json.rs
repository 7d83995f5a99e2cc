//! The stores in files of the data directory (contract, section 1), opened together.

use std::path::Path;
use std::sync::Arc;

use crate::domain::error::Error;
use crate::store::credits::CreditFile;
use crate::store::document::Document;
use crate::store::earlier::EarlierFolder;
use crate::store::event_file::EventFile;
use crate::store::files::DataDir;
use crate::store::history::History;
use crate::store::hosts::HostFile;
use crate::store::installation::{OwnerFile, this_machine};
use crate::store::lock::LockFolder;
use crate::store::named_files::NamedFiles;
use crate::store::operations::OperationFile;
use crate::store::outbox::OutboxFolder;
use crate::store::patches::PatchFile;
use crate::store::pinned_profiles::PinnedProfileFolder;
use crate::store::plans::PlanFolder;
use crate::store::sandboxes::SandboxFile;
use crate::store::snapshots::SnapshotFile;
use crate::store::sweeps::SweepFile;

/// Every store of one data directory. Several processes may have it open.
#[derive(Clone)]
pub struct JsonStores {
    /// `sandboxes.json` and `history.jsonl`.
    pub sandboxes: Arc<SandboxFile>,
    /// `snapshots.json`.
    pub snapshots: Arc<SnapshotFile>,
    /// `patches.json`.
    pub patches: Arc<PatchFile>,
    /// `operations.json`.
    pub operations: Arc<OperationFile>,
    /// `hosts.json`.
    pub hosts: Arc<HostFile>,
    /// `sweep.json`.
    pub sweeps: Arc<SweepFile>,
    /// `plans/`.
    pub plans: Arc<PlanFolder>,
    /// `events.jsonl`.
    pub events: Arc<EventFile>,
    /// `credits.jsonl`.
    pub credits: Arc<CreditFile>,
    /// `outbox/`.
    pub outbox: Arc<OutboxFolder>,
    /// `locks/`.
    pub locks: Arc<LockFolder>,
    /// `owner`.
    pub installation: Arc<OwnerFile>,
    /// `pinned/`.
    pub pinned_profiles: Arc<PinnedProfileFolder>,
    /// Files of the earlier tool.
    pub earlier: Arc<EarlierFolder>,
}

impl JsonStores {
    /// Opens the stores in a directory. Makes nothing: the first write does.
    ///
    /// Errors: `invalid_config` when the path cannot be a data directory.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        Self::open_on(data_dir, &this_machine())
    }

    /// [`Self::open`], on a machine with this id.
    pub fn open_on(data_dir: &Path, machine_id: &str) -> Result<Self, Error> {
        let dir = DataDir::open(data_dir)?;
        let files = NamedFiles {
            sandboxes: Arc::new(Document::new(&dir, "sandboxes")),
            history: History::new(&dir),
            snapshots: Arc::new(Document::new(&dir, "snapshots")),
        };
        Ok(Self {
            sandboxes: Arc::new(SandboxFile::new(&files)),
            snapshots: Arc::new(SnapshotFile::new(&files)),
            patches: Arc::new(PatchFile::new(&dir)),
            operations: Arc::new(OperationFile::new(&dir)),
            hosts: Arc::new(HostFile::new(&dir)),
            sweeps: Arc::new(SweepFile::new(&dir)),
            plans: Arc::new(PlanFolder::new(&dir)),
            events: Arc::new(EventFile::new(&dir)),
            credits: Arc::new(CreditFile::new(&dir)),
            outbox: Arc::new(OutboxFolder::new(&dir)),
            locks: Arc::new(LockFolder::new(&dir)),
            installation: Arc::new(OwnerFile::new(&dir, machine_id)),
            pinned_profiles: Arc::new(PinnedProfileFolder::new(&dir)),
            earlier: Arc::new(EarlierFolder::new(&dir)),
        })
    }
}
