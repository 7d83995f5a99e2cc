//! Manifest of a sandbox as its host has it: its text, and what it says that somebody with another copy of the records may have
//! written there.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::error::{Code, Error};
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::time::Time;
use crate::transport::{Command, Transport};

const MANIFEST_SH: &str = include_str!("../scripts/manifest.sh");

const LIMIT: Duration = Duration::from_secs(20);

/// The longest manifest that is read, in bytes.
const LONGEST: usize = 128 * 1024;

/// Words of a manifest against the end of its sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostManifest {
    /// Deadline.
    pub expires_at: Option<Time>,
    /// Whether it is labelled `protect=true`.
    pub protected: bool,
}

#[derive(Deserialize)]
struct ManifestHead {
    id: String,
    owner: String,
    expires_at: Option<Time>,
    #[serde(default)]
    protect: bool,
    #[serde(default)]
    sandbox: Option<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    #[serde(default)]
    labels: serde_json::Map<String, serde_json::Value>,
}

/// The text of the manifest in a sandbox's directory; none where there is none, or no regular file.
///
/// Errors: the transport's, and `operation_failed` for one that is too long or no text.
pub(crate) async fn manifest_text(
    transport: &dyn Transport,
    workdir: &str,
) -> Result<Option<String>, Error> {
    let command = Command::script(MANIFEST_SH).arg(workdir).arg((LONGEST + 1).to_string());
    let output = transport.run(&command, LIMIT).await?;
    let unfit = |why: &str| {
        let message = format!("the manifest in {workdir} on {} {why}", transport.spec().name);
        Err(Error::new(Code::OperationFailed, message))
    };
    match String::from_utf8(output.stdout.clone()) {
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) if text.len() > LONGEST => unfit("is longer than any of sandboxer's"),
        Ok(text) => Ok(Some(text)),
        Err(_) => unfit("is no text"),
    }
}

/// Manifest in a sandbox's directory, where that is this sandbox's and this owner's; none where it cannot be read.
///
/// Errors: the transport's.
pub(crate) async fn read_manifest(
    transport: &dyn Transport,
    workdir: &str,
    id: &SandboxId,
    owner: &OwnerId,
) -> Result<Option<HostManifest>, Error> {
    let command = Command::script(MANIFEST_SH).arg(workdir).arg(LONGEST.to_string());
    let output = transport.run(&command, LIMIT).await?;
    Ok(HostManifest::of(&output.text(), id, owner))
}

impl HostManifest {
    /// Words of a manifest's text, where that is this sandbox's and this owner's.
    pub(crate) fn of(text: &str, id: &SandboxId, owner: &OwnerId) -> Option<Self> {
        let head: Option<ManifestHead> = serde_json::from_str(text).ok();
        let ours = head.filter(|found| found.id == id.as_str() && found.owner == owner.as_str());
        ours.map(|found| {
            let protect = found.sandbox.as_ref().and_then(|sandbox| sandbox.labels.get("protect"));
            Self {
                expires_at: found.expires_at,
                protected: found.protect
                    || protect.and_then(serde_json::Value::as_str) == Some("true"),
            }
        })
    }
}

/// Whether a manifest says whose it is as every verb reads it: each on a line of its own, once.
pub(super) fn is_plain(text: &str, id: &str, owner: &str) -> bool {
    let lines = |key: &str| {
        let start = format!("  \"{key}\":");
        text.lines().filter(move |line| line.starts_with(&start)).map(str::to_owned).collect()
    };
    let is_line = |key: &str, value: &str| {
        let lines: Vec<String> = lines(key);
        lines == [format!("  \"{key}\": \"{value}\",")]
    };
    let deadlines: Vec<String> = lines("expires_at");
    is_line("id", id) && is_line("owner", owner) && deadlines.len() <= 1
}
