//! Tools of both binaries of tests.

pub(crate) mod base_path;
pub(crate) mod busy_machine;
pub(crate) mod pty;
pub(crate) mod said;
