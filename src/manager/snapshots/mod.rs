//! Verbs on snapshots, and where their archives are.

pub(super) mod archives;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod diff;
pub(super) mod export;
pub(super) mod find;
pub(super) mod import;
pub(super) mod pinned_profile;
pub(super) mod prune;
pub(super) mod remove;
pub(super) mod replicate;
pub(super) mod restore;
pub(super) mod restore_archive;
pub(super) mod undo;
pub(super) mod undo_snapshot;
pub(super) mod verify;
