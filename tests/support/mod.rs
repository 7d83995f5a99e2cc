//! Tools of both binaries of tests.

pub(crate) mod base_path;
pub(crate) mod pty;
