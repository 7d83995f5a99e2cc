//! Mounts as one word, and their options.

use super::words::{PATH, is_path, is_size, is_target, sentence, shown};

/// Why a mount in the short syntax is refused. Its parts have no `:`; what is in them is judged here.
pub(super) fn short_mount(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, mode) = match parts.as_slice() {
        [target] => (None, *target, ""),
        [target, mode] if target.starts_with('/') && !mode.starts_with('/') => {
            (None, *target, *mode)
        }
        [source, target] => (Some(*source), *target, ""),
        [source, target, mode] => (Some(*source), *target, *mode),
        _ => {
            return Some(format!(
                "`{}` has more than two `:`; write `source:/target[:ro]`",
                shown(text)
            ));
        }
    };
    if let Some(source) = source.filter(|source| !is_path(source)) {
        return Some(sentence(source, PATH));
    }
    if !is_target(target) {
        return Some(sentence(target, PATH));
    }
    mount_options(mode).err()
}

/// Options of a mount of which at most one may stand there.
const EXCLUSIVE: &[&[&str]] = &[
    &["ro", "rw"],
    &["z", "Z"],
    &["cached", "delegated", "consistent"],
    &["private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable"],
    &["exec", "noexec"],
    &["dev", "nodev"],
    &["suid", "nosuid"],
    &["bind", "rbind"],
    &["atime", "noatime", "relatime"],
    &["sync", "async"],
    &["tmpcopyup", "notmpcopyup"],
];

/// The options between the commas, none twice and none against another: tools differ in which one counts.
pub(in super::super) fn mount_options(mode: &str) -> Result<Vec<&str>, String> {
    let mut options: Vec<&str> = Vec::new();
    for option in mode.split(',').filter(|_| !mode.is_empty()) {
        let name = option.split('=').next().unwrap_or_default();
        for earlier in &options {
            let other = earlier.split('=').next().unwrap_or_default();
            if other == name {
                return Err(format!(
                    "`{}` stands twice in `{}`; write it once",
                    shown(name),
                    shown(mode)
                ));
            }
            if EXCLUSIVE.iter().any(|group| group.contains(&other) && group.contains(&name)) {
                return Err(format!(
                    "`{other}` and `{name}` exclude each other, and tools differ in which counts; keep one"
                ));
            }
        }
        options.push(option);
    }
    Ok(options)
}

/// Options of a file system in memory.
pub(in super::super) fn tmpfs_options(text: &str) -> Result<(), String> {
    let plain = [
        "",
        "rw",
        "ro",
        "exec",
        "noexec",
        "dev",
        "nodev",
        "suid",
        "nosuid",
        "atime",
        "noatime",
        "relatime",
        "sync",
        "async",
        "tmpcopyup",
        "notmpcopyup",
        "defaults",
    ];
    for option in mount_options(text)? {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let fits = match name {
            "size" => is_size(value.trim_end_matches('%')),
            "mode" => !value.is_empty() && value.chars().all(|c| ('0'..='7').contains(&c)),
            "uid" | "gid" | "nr_inodes" | "nr_blocks" | "inodes" => is_size(value),
            _ => plain.contains(&option),
        };
        if !fits {
            return Err(format!(
                "`{}` is no option of a file system in memory; known are size=, mode=, uid=, gid=, nr_inodes=, ro, noexec, nodev, nosuid",
                shown(option)
            ));
        }
    }
    Ok(())
}

/// `/path[:options]` of `tmpfs`.
pub(super) fn is_tmpfs(text: &str) -> bool {
    let (target, options) = text.split_once(':').unwrap_or((text, ""));
    is_target(target) && tmpfs_options(options).is_ok()
}
