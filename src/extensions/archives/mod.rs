//! Snapshots as archives on their sandbox's host (contract, section 6): writing one, making a sandbox of one, and what is
//! done with one that is there.

mod arrival;
mod bundle;
pub(crate) mod capture;
pub(crate) mod entries;
mod import;
pub(crate) mod keeper;
mod listing;
pub(crate) mod measure;
mod passage;
mod reading;
pub(crate) mod restore;
mod scan;
mod shelf;
