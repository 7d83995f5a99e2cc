//! Reporter: where an extension's progress goes while it works, with what it learns of the host on the way.

use crate::domain::facts::HostIdentity;
use crate::domain::root::MarkedRoot;
use crate::domain::sandbox::Rewrite;

/// Facts that `provision` learnt of the host before it made anything that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The directory.
    pub workdir: String,
    pub identity: HostIdentity,
    /// Changes to what the user wrote, as soon as they are known.
    pub rewrites: Vec<Rewrite>,
}

/// Report of progress from an extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The step's name.
    pub stage: &'static str,
    /// The step's number, from 1.
    pub step: u32,
    /// Steps that the verb has; 0: the step follows the one before it.
    pub steps: u32,
    /// Part of the step that is done.
    pub done: Option<u64>,
    /// Out of how much.
    pub of: Option<u64>,
    /// Bytes moved so far.
    pub bytes: Option<u64>,
    /// A line that the step's program wrote.
    pub message: Option<String>,
}

/// Where an extension's progress goes. Never blocks; may drop reports.
pub trait Reporter: Send + Sync {
    /// Takes one report.
    fn report(&self, report: Report);

    /// Takes that `teardown` has proved all that it proves, and removes the first thing now.
    fn began(&self) {}

    /// Takes what `provision` learnt of the host, so that the record has it although the call is dropped or fails.
    fn learnt(&self, _learnt: &Learnt) {}

    /// Takes the mark of a root that was not known, at once: before anything is made in it, or the last is removed from it.
    fn found_root(&self, _root: &MarkedRoot) {}
}
