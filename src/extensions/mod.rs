//! How to make a sandbox. Extensions know domain and transport only: they return handles and report progress, and
//! write no state.

mod archives;
pub mod compose_ssh;
pub(crate) mod saas_stub;
pub(crate) mod vm_packer;
mod workspace;

/// The extensions that this build implements. The catalogue shows the others as not available.
pub const AVAILABLE: &[&str] = &[compose_ssh::ID, saas_stub::ID, vm_packer::ID];
