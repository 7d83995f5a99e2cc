//! Nouns and rules. No I/O, no clock, no async runtime, no colours: time comes in as an argument.
//!
//! Everything a face shows and a store keeps is a type of this folder, serialised as the contract names it.

pub mod actor;
pub mod adoption;
pub mod archive;
pub mod canary;
pub(crate) mod child_process;
pub mod clock;
pub mod compose_host;
pub mod credit;
pub mod deep_check;
pub(crate) mod diff;
pub(crate) mod earlier;
pub mod error;
pub mod event;
pub mod extension;
pub mod facts;
pub(crate) mod figures;
pub mod headroom;
pub mod host;
pub mod host_report;
pub(crate) mod host_sight;
pub mod host_view;
pub mod hub;
pub mod lineage;
pub mod manifest;
pub(crate) mod manifest_claim;
pub mod meter;
pub mod name;
pub mod operation;
pub mod outbox;
pub mod output;
pub mod patch;
pub mod pending_patches;
pub(crate) mod problem;
pub mod profile;
pub mod raw_json;
pub mod record;
pub mod reporter;
pub mod request;
pub mod retention;
pub mod root;
pub mod route;
pub mod sandbox;
pub mod sandbox_manifest;
pub mod secret;
pub mod settlement;
pub mod snapshot;
pub mod stale;
pub mod sweep;
pub mod teardown;
pub mod telemetry;
pub(crate) mod telling;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
pub mod time;
pub mod undo;
pub mod update;
pub(crate) mod usd;
pub(crate) mod words;

pub use actor::Actor;
pub use error::{Code, Error};
pub use event::{Event, EventKind};
pub use name::{
    EventId, ExtensionId, HostName, OperationId, PatchId, ProfileId, SandboxId, SnapshotId,
};
pub use operation::{Operation, OperationKind, OperationState};
pub use patch::Patch;
pub use sandbox::{SandboxRecord, State};
pub(crate) use snapshot::SnapshotRecord;
pub use time::Time;
pub(crate) use update::Progress;
pub use usd::Usd;
