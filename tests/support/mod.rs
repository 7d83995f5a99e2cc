//! Tools of both binaries of tests.

pub(crate) mod base_path;
pub(crate) mod busy_machine;
pub(crate) mod json_assertions;
pub(crate) mod pty;
