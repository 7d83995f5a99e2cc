//! Verbs on snapshots, and where their archives are.

pub(super) mod archive_facts;
pub(super) mod archives;
pub(super) mod bring_back;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod diff;
pub(super) mod export;
pub(super) mod find;
pub(super) mod gc;
pub(super) mod import;
pub(super) mod import_identity;
pub(super) mod inspect;
pub(super) mod integrity;
pub(super) mod pinned_profile;
pub(super) mod prune;
pub(super) mod replicate;
pub(super) mod restore;
pub(super) mod restore_archive;
pub(super) mod transfer;
pub(super) mod undo;
pub(super) mod undo_retention;
pub(super) mod verify;
