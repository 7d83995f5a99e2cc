//! Undo: which removed sandbox is meant, and what of it comes back.

use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::time::Time;

/// A removed sandbox that is to be brought back.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoTarget {
    /// Its id; what comes back has another one.
    pub id: SandboxId,
    /// Name that it had.
    pub title: String,
    /// Name that it will have, where it had one.
    pub name: Option<String>,
    /// The snapshot that was taken of it.
    pub snapshot: SnapshotId,
    pub taken: Time,
    /// How large it is.
    pub bytes: Option<u64>,
    pub host: String,
    /// The time to live that it had; none where that is not known.
    #[expect(clippy::option_option, reason = "no time to live is known as such")]
    pub ttl: Option<Option<u64>>,
    /// The sandbox that brought it back before.
    pub before: Option<String>,
}
