//! Command line at the moment when completion is asked for.

/// Kind of thing that a value names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sandboxes,
    Removed,
    Snapshots,
    Patches,
    Services,
    Hosts,
    Profiles,
    Extensions,
    Operations,
}

/// Word that is being typed.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    pub(super) kinds: &'static [Kind],
    /// The values before it that belong to no option.
    pub(super) operands: Vec<String>,
    /// The word, up to the cursor.
    pub(super) word: String,
}
