//! What both binaries of tests work with.

pub(crate) mod base_path;
pub(crate) mod pty;
