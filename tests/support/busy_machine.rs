//! Limits of hosts in tests: the machine that runs them is busy and its disk may be full, which is no matter of theirs.

use std::path::Path;

/// The key `limits` of a host, under which nothing is ever refused.
pub(crate) const LIMITS: &str =
    "    limits: {disk_used_pct: 100, mem_used_pct: 100, load_per_core: 1000}\n";

/// Has this machine take sandboxes however busy it is, for whoever has this home.
pub(crate) fn take_all(home: &Path) {
    let folder = home.join(".config/sandboxer");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.yaml"), format!("hosts:\n  local:\n{LIMITS}")).unwrap();
}
