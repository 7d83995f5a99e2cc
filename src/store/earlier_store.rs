//! Store of the earlier Python tool, which lies where our records are: the trait behind which its files are.

use async_trait::async_trait;

use crate::domain::earlier::EarlierEntry;
use crate::domain::error::Error;

/// Kind of the earlier Python tool's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierKind {
    /// `sandboxes.json`.
    Sandboxes,
    /// `snapshots.json`.
    Snapshots,
}

/// File of the earlier Python tool that is still to be imported.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierFile {
    pub path: String,
    pub entries: Vec<EarlierEntry>,
    /// Whether it was set aside already: an import of it did not come to its end.
    pub is_aside: bool,
}

/// Store of the earlier Python tool.
#[async_trait]
pub trait EarlierStore: Send + Sync {
    /// A file of its that is still to be imported; none where there is none.
    ///
    /// Errors: `store_corrupt` for one that cannot be read, `conflict` where another one was set aside before.
    async fn file(&self, kind: EarlierKind) -> Result<Option<EarlierFile>, Error>;
    /// Sets it aside under another name, never over what is there. One that is aside is nothing to do.
    async fn set_aside(&self, kind: EarlierKind) -> Result<(), Error>;
    /// Notes that it is imported.
    async fn done(&self, kind: EarlierKind) -> Result<(), Error>;
}
