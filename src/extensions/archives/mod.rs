//! Snapshots as archives on their sandbox's host (contract, section 6): writing one, making a sandbox of one, and what is
//! done with one that is there.

pub(crate) mod capture;
pub(crate) mod entries;
mod export;
mod export_format;
mod import;
pub(crate) mod keeper;
mod listing;
pub(crate) mod measure;
pub(crate) mod restore;
mod shelf;
mod stream;
mod transfer;
mod verify;
