//! Names that a project declares.

use std::collections::{BTreeMap, BTreeSet};

/// Names that services may refer to.
pub(super) struct Declared {
    pub services: BTreeSet<String>,
    pub volumes: BTreeSet<String>,
    pub networks: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    pub configs: BTreeSet<String>,
    /// Image names in the file that the project builds itself, and what they are called in the sandbox.
    pub built: BTreeMap<String, String>,
}
