//! Record of what an operation works on, of whichever kind.

use crate::domain::error::Error;
use crate::domain::host_view::HostView;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::stale::ReapReport;

/// Record of what an operation works on: as it is when the operation has begun, or when it has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Sandbox(Box<SandboxRecord>),
    /// A snapshot. Of one that was deleted, its last record.
    Snapshot(Box<SnapshotRecord>),
    /// A host, with what was found on it.
    Host(Box<HostView>),
    /// A reap, with what is done by then.
    Reap(Box<ReapReport>),
}

impl Record {
    /// The sandbox.
    ///
    /// Errors: `internal` for an operation on something else.
    pub fn into_sandbox(self) -> Result<SandboxRecord, Error> {
        match self {
            Self::Sandbox(record) => Ok(*record),
            Self::Snapshot(_) | Self::Host(_) | Self::Reap(_) => Err(other("sandbox")),
        }
    }

    /// The snapshot.
    ///
    /// Errors: `internal` for an operation on something else.
    pub fn into_snapshot(self) -> Result<SnapshotRecord, Error> {
        match self {
            Self::Snapshot(record) => Ok(*record),
            Self::Sandbox(_) | Self::Host(_) | Self::Reap(_) => Err(other("snapshot")),
        }
    }

    /// The host.
    ///
    /// Errors: `internal` for an operation on something else.
    pub fn into_host(self) -> Result<HostView, Error> {
        match self {
            Self::Host(view) => Ok(*view),
            Self::Sandbox(_) | Self::Snapshot(_) | Self::Reap(_) => Err(other("host")),
        }
    }

    /// The reap.
    ///
    /// Errors: `internal` for an operation on something else.
    pub(crate) fn into_reap(self) -> Result<ReapReport, Error> {
        match self {
            Self::Reap(report) => Ok(*report),
            Self::Sandbox(_) | Self::Snapshot(_) | Self::Host(_) => Err(other("reap")),
        }
    }
}

impl From<SandboxRecord> for Record {
    fn from(record: SandboxRecord) -> Self {
        Self::Sandbox(Box::new(record))
    }
}

impl From<SnapshotRecord> for Record {
    fn from(record: SnapshotRecord) -> Self {
        Self::Snapshot(Box::new(record))
    }
}

impl From<ReapReport> for Record {
    fn from(report: ReapReport) -> Self {
        Self::Reap(Box::new(report))
    }
}

impl From<HostView> for Record {
    fn from(view: HostView) -> Self {
        Self::Host(Box::new(view))
    }
}

fn other(wanted: &str) -> Error {
    Error::internal(format!("the operation is on no {wanted}"))
}
