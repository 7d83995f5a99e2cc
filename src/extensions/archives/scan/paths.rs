//! Names of entries as paths: their parts, and what no host can make of them.

use crate::domain::text::clean_line;
use crate::extensions::archives::scan::{Refusal, no};

/// How long a part of a path may be; bytes. No file system of a host has longer ones.
const PART_LIMIT: usize = 255;
/// How long a path, or what a link says, may be; bytes. The kernel takes no longer one.
pub(super) const PATH_LIMIT: usize = 4095;

/// A path's parts, without those that say nothing.
pub(super) fn parts(name: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    if name.first() == Some(&b'/') {
        return no(format!("{} is absolute", shown(name)));
    }
    if name.contains(&0) {
        return no(format!("{} has a zero byte in it", shown(name)));
    }
    let parts: Vec<&[u8]> =
        name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
    if parts.contains(&b"..".as_slice()) {
        return no(format!("{} leads upwards", shown(name)));
    }
    if parts.is_empty() {
        return no("an entry has no name");
    }
    let length = parts.iter().map(|part| part.len() + 1).sum::<usize>() - 1;
    if length > PATH_LIMIT || parts.iter().any(|part| part.len() > PART_LIMIT) {
        return no(format!("{} is longer than a name on a host can be", shown(name)));
    }
    Ok(parts)
}

/// Refuses a name with parts that say nothing. A host's tar is asked for `workspace` and passes over `./workspace`, without a
/// word; and a file that ends in `/.` cannot be made.
pub(super) fn as_tar_writes_it(name: &[u8]) -> Result<(), Refusal> {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    if name.split(|byte| *byte == b'/').any(|part| part.is_empty() || part == b".") {
        return no(format!(
            "{} is written as no snapshot writes it: with `.` or nothing between slashes",
            shown(name)
        ));
    }
    Ok(())
}

/// What a hard link must not leave: the workspace, or its volume. Each is unpacked by itself.
pub(super) fn tree_of<'a>(parts: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let depth = if parts[0] == b"volumes" { 2 } else { 1 };
    parts.iter().take(depth).copied().collect()
}

/// A name for a sentence.
pub(super) fn shown(name: &[u8]) -> String {
    clean_line(&String::from_utf8_lossy(name), 120)
}
