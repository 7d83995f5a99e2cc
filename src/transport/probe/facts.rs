//! The host's own figures, read from what `scripts/probe.sh` printed.

use std::collections::BTreeMap;

use crate::domain::facts::{Disk, HostFacts};
use crate::domain::text::clean_line;
use crate::domain::time::Time;

use super::lines::ScriptEntry;
use super::sample::{self, memory};

/// The key under which [`HostFacts::tools`] has the path of a tar that is GNU tar.
pub(crate) const GNU_TAR: &str = "gnu-tar";

/// The facts, but for runtimes, inventory and clock.
pub(super) fn parse(entries: &[ScriptEntry<'_>], at: Time) -> HostFacts {
    let value =
        |key: &str| entries.iter().find(|entry| entry.key == key).map_or("", |entry| entry.value);
    let (uid, user) = account(value("id"));
    HostFacts {
        at,
        machine_id: clean_line(value("machine_id").trim(), 64),
        hostname: clean_line(value("hostname"), 255),
        kernel: clean_line(value("kernel"), 255),
        os: Some(clean_line(&unquoted(value("os")), 255)).filter(|os| !os.is_empty()),
        user,
        uid,
        cpus: value("cpus").trim().parse().unwrap_or(0),
        load1: value("load")
            .split(' ')
            .next()
            .and_then(|load| load.parse().ok())
            .filter(|load: &f64| load.is_finite())
            .unwrap_or(0.0),
        mem_total_bytes: memory(entries, "MemTotal").unwrap_or(0),
        mem_available_bytes: memory(entries, "MemAvailable").unwrap_or_else(|| {
            // Kernels before 3.14 have no such figure.
            ["MemFree", "Buffers", "Cached"].iter().filter_map(|name| memory(entries, name)).sum()
        }),
        disk: disk(entries),
        workspace_root: value("root").to_owned(),
        clock_offset_s: None,
        tools: tools(entries),
        boot_id: boot_id(value("boot_id")),
        engines: Vec::new(),
        runtimes: Vec::new(),
        findings: entries
            .iter()
            .filter(|entry| entry.key == "disk.late")
            .map(|_| "the workspace root's file system did not answer in 5 s".to_owned())
            .collect(),
        inventory: None,
    }
}

/// The kernel's UUID of this start.
fn boot_id(value: &str) -> Option<String> {
    let id = value.trim();
    let is_uuid = id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uuid.then(|| id.to_owned())
}

/// `uid=0(root) gid=...`
fn account(id: &str) -> (u32, String) {
    let rest = id.strip_prefix("uid=").unwrap_or_default();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let uid = rest[..digits].parse().unwrap_or(u32::MAX);
    let name = rest[digits..]
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") ").or_else(|| rest.split_once(')')));
    (uid, name.map_or_else(|| rest[..digits].to_owned(), |(name, _)| clean_line(name, 64)))
}

/// A value of os-release without its quotes and escapes.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner =
        ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inner.unwrap_or(value).replace("\\\"", "\"")
}

fn disk(entries: &[ScriptEntry<'_>]) -> Option<Disk> {
    let found = entries.iter().filter(|entry| entry.key == "disk").find_map(sample::disk);
    if let Some(found) = found {
        return Some(Disk {
            path: found.path,
            total_bytes: found.total_bytes,
            available_bytes: found.available_bytes,
        });
    }
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key);
    let path = entry("root")?.value.to_owned();
    // df's last line: NAME BLOCKS USED AVAILABLE PERCENT MOUNT, in blocks of 1024; the name may hold blanks.
    let line = entry("disk.df")?.text();
    let words: Vec<&str> = line.split_whitespace().collect();
    let percent = words
        .iter()
        .position(|word| word.strip_suffix('%').is_some_and(|n| n.parse::<u8>().is_ok()))?;
    let total: u64 = words.get(percent.checked_sub(3)?)?.parse().ok()?;
    let available: u64 = words.get(percent.checked_sub(1)?)?.parse().ok()?;
    Some(Disk {
        path,
        total_bytes: total.saturating_mul(1024),
        available_bytes: available.saturating_mul(1024),
    })
}

/// Programs with their path. What the shell has built in, or calls an alias, is no program.
fn tools(entries: &[ScriptEntry<'_>]) -> BTreeMap<String, String> {
    let mut tools: BTreeMap<String, String> = entries
        .iter()
        .filter_map(|entry| Some((entry.key.strip_prefix("tool.")?, entry.value)))
        .filter(|(_, path)| path.starts_with('/'))
        .map(|(name, path)| (name.to_owned(), path.to_owned()))
        .collect();
    let is_gnu = entries.iter().any(|entry| entry.key == "tar" && entry.value.contains("GNU tar"));
    if let Some(path) = tools.get("tar").cloned().filter(|_| is_gnu) {
        tools.insert(GNU_TAR.to_owned(), path);
    }
    tools
}
