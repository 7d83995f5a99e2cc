//! The stores: a contract that every implementation passes, and what files must stand besides.

mod snapshots;
#[macro_use]
mod contract;
mod credits;
mod damage;
mod folder;
mod hosts;
mod processes;
mod slim;
mod small;

use std::path::Path;
use std::sync::Arc;

use sandboxer::domain::{SandboxId, SandboxRecord, Time};
use sandboxer::store::Change;
use sandboxer::store::json::JsonStores;
use sandboxer::store::sandboxes::SandboxFile;

/// A moment; `n` seconds after the first one.
fn moment(n: i64) -> Time {
    Time::from_unix(1_700_000_000 + n)
}

/// A record with this id, made at `n`.
fn record(id: &str, n: i64) -> SandboxRecord {
    serde_json::from_value(serde_json::json!({
        "id": id, "profile": {"id": "profile.compose-e2e", "version": "1.0.0", "hash": "00"},
        "extension": "ext.compose-ssh", "host": "local", "state": "requested", "since": moment(n), "revision": 0,
        "created_at": moment(n), "actor": {"type": "adm", "name": "ops"}, "owner": "0123456789abcdef"
    }))
    .unwrap()
}

/// The stores in a folder.
fn stores(dir: &Path) -> JsonStores {
    JsonStores::open(dir).unwrap()
}

fn id(text: &str) -> SandboxId {
    SandboxId::new(text)
}

/// A change that is never refused.
fn by<'a>(change: impl FnOnce(&mut SandboxRecord) + Send + 'a) -> Change<'a, SandboxRecord> {
    Box::new(|record| {
        change(record);
        Ok(())
    })
}

/// A store in a folder of its own.
fn fresh_file_store() -> (Arc<SandboxFile>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (stores(dir.path()).sandboxes, dir)
}

sandbox_store_contract!(in_files, super::fresh_file_store());
