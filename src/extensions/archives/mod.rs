//! Snapshots as archives on their sandbox's host (contract, section 6): writing one, making a sandbox of one, and what is
//! done with one that is there.

mod archive_dir;
pub(crate) mod capture;
pub(crate) mod entries;
mod export;
mod export_format;
mod import;
pub(crate) mod listing;
pub(crate) mod measure;
pub(crate) mod restore;
pub(crate) mod store;
mod stream;
mod transfer;
mod verify;
