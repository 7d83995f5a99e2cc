//! The labels by which a sandbox's resources are found again.

use serde_json::{Map, Value};

use super::findings::Findings;
use super::merge::{self, assignments, scalar};
use crate::domain::problem::join;

/// Prefixes by which engines, composes and we find what belongs together. A user's label with one of these could
/// hand this sandbox's containers to another project, or another's to this one.
const RESERVED: [&str; 7] = [
    "sandboxer.",
    "com.docker.compose.",
    "com.docker.stack.",
    "com.docker.swarm.",
    "io.containers.",
    "io.podman.",
    // podman's updater restarts the unit of the host that is named here.
    "podman_systemd_unit",
];

/// Labels as a mapping of strings, reserved ones dropped and listed.
pub(super) fn mapping(labels: Value, path: &str, findings: &mut Findings) -> Map<String, Value> {
    for name in merge::contradictions(&labels) {
        findings.refuse(
            path,
            None,
            format!("the label `{name}` is set twice, and not to the same; keep one"),
        );
    }
    let entries = match assignments(labels) {
        Value::Object(entries) => entries,
        Value::Null => return Map::new(),
        _ => {
            findings.refuse(
                path,
                None,
                "write labels as a mapping `name: value` or as a list of `name=value`",
            );
            return Map::new();
        }
    };
    let mut kept = Map::new();
    for (name, value) in entries {
        let here = join(path, &name);
        if RESERVED.iter().any(|prefix| name.trim_start().to_ascii_lowercase().starts_with(prefix))
        {
            findings.rewrite(&here, "is a reserved label: left out");
        } else if value.is_object() || value.is_array() {
            findings.refuse(&here, None, "a label's value is one word or number; quote it");
        } else {
            kept.insert(name, scalar(&value).into());
        }
    }
    kept
}
