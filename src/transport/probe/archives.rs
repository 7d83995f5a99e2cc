//! Archives that an inventory found, and what the manifest beside each says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::lines::{below, fingerprint};
use crate::domain::facts::InventoryArchive;
use crate::domain::text::clean_line;

/// Takes down a directory of `snapshots`.
pub(super) fn archive(archives: &mut BTreeMap<String, InventoryArchive>, root: &str, name: &str) {
    let Some(id) = name.strip_prefix("snapshots/") else { return };
    archives.entry(id.to_owned()).or_insert_with(|| InventoryArchive {
        snapshot_id: id.to_owned(),
        sandbox_id: None,
        owner: None,
        directory: below(root, name),
        created_at: None,
        bytes: None,
        name: None,
        expires_at: None,
        protected: false,
        fingerprint: fingerprint(&BTreeSet::from([below(root, name)])),
    });
}

/// Chosen lines of an archive's manifest: `  "owner": "own-1",`.
pub(super) fn archive_manifest(archive: &mut InventoryArchive, lines: &[&str]) {
    // The first of each: what is deeper in the manifest stands behind it.
    let field = |name: &str| {
        let lines = lines.iter().filter_map(|line| {
            let line = line.strip_prefix(name)?.strip_prefix(": ")?;
            serde_json::from_str::<Value>(line.trim_end().trim_end_matches(',')).ok()
        });
        lines.into_iter().next()
    };
    let text = |name: &str| field(name).and_then(|value| Some(value.as_str()?.to_owned()));
    archive.fingerprint =
        fingerprint(&BTreeSet::from([archive.directory.clone(), lines.join("\n")]));
    if text("  \"id\"").as_deref() != Some(&archive.snapshot_id) {
        return;
    }
    archive.owner = text("  \"owner\"").filter(|owner| !owner.is_empty());
    archive.sandbox_id = text("    \"sandbox_id\"");
    archive.created_at = text("    \"created_at\"").and_then(|time| time.parse().ok());
    archive.bytes = field("    \"bytes\"").and_then(|bytes| bytes.as_u64());
    archive.name = text("    \"name\"").map(|name| clean_line(&name, 100));
    archive.expires_at = text("    \"expires_at\"").and_then(|time| time.parse().ok());
    archive.protected = text("      \"protect\"").as_deref() == Some("true");
}
