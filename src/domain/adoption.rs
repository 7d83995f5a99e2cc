//! Adoption: records of what hosts have and no record knows, made from the manifests there (semantics 5); and the import of what
//! the earlier Python tool kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::words::string_enum;

/// Request for an adoption.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdoptRequest {
    /// Only these hosts; none: all.
    pub hosts: Vec<String>,
    /// An installation's id that becomes one of ours.
    pub owner: Option<String>,
    /// Whether it is only said what would be adopted.
    pub dry_run: bool,
}

string_enum! {
    /// Kind of what is adopted.
    pub enum AdoptedKind {
        /// A sandbox.
        Sandbox = "sandbox",
        /// A snapshot.
        Snapshot = "snapshot",
        /// A host that could not be read, or not be told.
        Host = "host",
        /// An installation's id that becomes one of ours, on a host.
        Owner = "owner",
        /// A file of the earlier tool.
        File = "file",
    }
}

/// Thing that was met by an adoption or an import.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Adopted {
    /// Id.
    pub id: String,
    /// Kind.
    pub kind: AdoptedKind,
    /// Whether nothing went wrong with it.
    pub ok: bool,
    /// Whether there is a record of it now; in a dry run, whether there would be. False where all is well: it is only listed, and
    /// left as it is.
    pub adopted: bool,
    /// Host.
    pub host: HostName,
    /// Name.
    pub name: Option<String>,
    /// The owner that it bears.
    pub owner: Option<String>,
    /// Sentence on what it is now, and what only the lost store knew.
    pub message: String,
    /// Reason why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Request for an import of the earlier tool's stores.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportRequest {
    /// Whether it is only said what would be imported.
    pub dry_run: bool,
}
