//! Snapshots as archives on their sandbox's host (contract, section 6): writing one, making a sandbox of one, and what is
//! done with one that is there.

pub(crate) mod capture;
pub(crate) mod entries;
pub(crate) mod keeper;
pub(crate) mod restore;
