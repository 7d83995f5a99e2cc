//! Difference between two trees, from their listings alone. Contents are not looked at: a file of the same size and time
//! counts as the same.

use std::collections::BTreeMap;

use crate::domain::archive::{EntryKind, TreeEntry};
use crate::domain::request::{Change, SnapshotDiff};

/// How many changes are told; the rest is only counted.
pub(crate) const CHANGES_LIMIT: usize = 10_000;

/// Changes from `a` to `b`, each a snapshot's or a sandbox's id and its entries, by path. `notes` say what could not be
/// compared.
pub(crate) fn compare(
    (a, before): (&str, &[TreeEntry]),
    (b, after): (&str, &[TreeEntry]),
    notes: Vec<String>,
) -> SnapshotDiff {
    let (before, after) = (Tree::of(before), Tree::of(after));
    let mut diff = SnapshotDiff {
        a: a.to_owned(),
        b: b.to_owned(),
        added: 0,
        removed: 0,
        changed: 0,
        bytes: after.bytes().saturating_sub(before.bytes()),
        changes: Vec::new(),
        truncated: false,
        notes,
    };
    let mut paths: Vec<&str> = before.entries.keys().chain(after.entries.keys()).copied().collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let (old, new) = (before.entries.get(path), after.entries.get(path));
        let (change, differs) = match (old, new) {
            (Some(old), Some(new)) => {
                let differs = differs(&before.meant(old), &after.meant(new));
                if differs.is_empty() {
                    continue;
                }
                diff.changed += 1;
                ("changed", differs)
            }
            (None, _) => {
                diff.added += 1;
                ("added", Vec::new())
            }
            (_, None) => {
                diff.removed += 1;
                ("removed", Vec::new())
            }
        };
        if diff.changes.len() == CHANGES_LIMIT {
            diff.truncated = true;
            continue;
        }
        diff.changes.push(Change {
            path: path.to_owned(),
            change: change.to_owned(),
            differs,
            a: old.map(|entry| (*entry).clone()),
            b: new.map(|entry| (*entry).clone()),
        });
    }
    diff
}

/// Entries by path.
struct Tree<'a> {
    entries: BTreeMap<&'a str, &'a TreeEntry>,
}

impl<'a> Tree<'a> {
    fn of(entries: &'a [TreeEntry]) -> Self {
        Self { entries: entries.iter().map(|entry| (entry.path.as_str(), entry)).collect() }
    }

    /// Which of a file's names is the file and which are links to it is chance: the order in which a folder is read. Each
    /// counts as the file.
    fn meant(&self, entry: &TreeEntry) -> TreeEntry {
        let file = Some(entry).filter(|entry| entry.kind == EntryKind::HardLink).and_then(|link| {
            self.entries
                .get(link.target.as_deref()?)
                .filter(|file| file.kind != EntryKind::HardLink)
        });
        match file {
            Some(file) => TreeEntry { path: entry.path.clone(), ..TreeEntry::clone(file) },
            None => entry.clone(),
        }
    }

    /// The sizes of its files. A file counts once, whatever names it has.
    fn bytes(&self) -> i64 {
        let files = self.entries.values().filter(|entry| entry.kind == EntryKind::File);
        files.fold(0, |sum: i64, file| {
            sum.saturating_add(i64::try_from(file.size).unwrap_or(i64::MAX))
        })
    }
}

/// Fields that are not the same of two entries of one path.
fn differs(a: &TreeEntry, b: &TreeEntry) -> Vec<String> {
    // A folder's time and size are of what is in it; a link cannot be changed, only made anew, and has no mode.
    let file = a.kind == EntryKind::File && b.kind == EntryKind::File;
    let link = a.kind == EntryKind::Symlink && b.kind == EntryKind::Symlink;
    [
        ("kind", a.kind != b.kind),
        ("mode", !link && a.mode != b.mode),
        ("owner", a.owner != b.owner),
        ("size", file && a.size != b.size),
        ("modified", file && a.modified != b.modified),
        ("target", a.target != b.target),
    ]
    .into_iter()
    .filter(|(_, other)| *other)
    .map(|(word, _)| word.to_owned())
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: EntryKind, size: u64) -> TreeEntry {
        TreeEntry {
            path: path.to_owned(),
            kind,
            mode: "rw-r--r--".to_owned(),
            owner: "self/self".to_owned(),
            size,
            modified: "2026-11-28T07:00:00Z".to_owned(),
            target: None,
        }
    }

    fn file(path: &str, size: u64) -> TreeEntry {
        entry(path, EntryKind::File, size)
    }

    fn link(path: &str, kind: EntryKind, target: &str) -> TreeEntry {
        TreeEntry { target: Some(target.to_owned()), ..entry(path, kind, 0) }
    }

    fn diff(a: &[TreeEntry], b: &[TreeEntry]) -> SnapshotDiff {
        compare(("a", a), ("b", b), Vec::new())
    }

    #[test]
    fn what_came_went_and_changed_is_told_by_path() {
        let a = [file("workspace/z", 1), file("workspace/gone", 10), file("workspace/same", 5)];
        let b = [file("workspace/same", 5), file("workspace/new", 7), file("workspace/z", 3)];
        let diff = diff(&a, &b);
        assert_eq!((diff.added, diff.removed, diff.changed, diff.bytes), (1, 1, 1, -1));
        let told: Vec<_> =
            diff.changes.iter().map(|c| (c.path.as_str(), c.change.as_str())).collect();
        assert_eq!(
            told,
            [("workspace/gone", "removed"), ("workspace/new", "added"), ("workspace/z", "changed")]
        );
        assert_eq!(diff.changes[2].differs, ["size"]);
        assert_eq!(
            (diff.changes[2].a.as_ref().unwrap().size, diff.changes[2].b.as_ref().unwrap().size),
            (1, 3)
        );
        assert!(!diff.truncated);
    }

    #[test]
    fn each_thing_that_differs_is_named() {
        let old = file("p", 1);
        let other = |change: fn(&mut TreeEntry)| {
            let mut new = old.clone();
            change(&mut new);
            diff(std::slice::from_ref(&old), &[new])
                .changes
                .pop()
                .map(|change| change.differs.join(","))
        };
        assert_eq!(other(|_| {}), None);
        assert_eq!(other(|new| new.mode = "rwxr-xr-x".into()).as_deref(), Some("mode"));
        assert_eq!(other(|new| new.owner = "7/7".into()).as_deref(), Some("owner"));
        assert_eq!(
            other(|new| new.modified = "2026-11-28T07:00:01Z".into()).as_deref(),
            Some("modified")
        );
        assert_eq!(other(|new| new.kind = EntryKind::Fifo).as_deref(), Some("kind"));
        let (to_x, to_y) = (link("p", EntryKind::Symlink, "x"), link("p", EntryKind::Symlink, "y"));
        assert_eq!(diff(&[to_x], &[to_y]).changes[0].differs, ["target"]);
    }

    #[test]
    fn a_folder_is_not_changed_by_what_is_in_it() {
        let old = entry("workspace", EntryKind::Directory, 0);
        let new = TreeEntry { modified: "2027-01-01T00:00:00Z".to_owned(), ..old.clone() };
        assert!(diff(&[old], &[new]).changes.is_empty());
    }

    #[test]
    fn which_name_of_a_file_comes_first_is_no_difference() {
        let a = [file("workspace/x", 9), link("workspace/y", EntryKind::HardLink, "workspace/x")];
        let b = [file("workspace/y", 9), link("workspace/x", EntryKind::HardLink, "workspace/y")];
        let diff = diff(&a, &b);
        assert!(diff.changes.is_empty(), "{:?}", diff.changes);
        assert_eq!(diff.bytes, 0);
    }

    #[test]
    fn beyond_the_limit_changes_are_counted_only() {
        let many: Vec<TreeEntry> =
            (0..CHANGES_LIMIT + 5).map(|n| file(&format!("workspace/{n:06}"), 1)).collect();
        let diff = diff(&[], &many);
        assert_eq!(
            (diff.added as usize, diff.changes.len(), diff.truncated),
            (CHANGES_LIMIT + 5, CHANGES_LIMIT, true)
        );
    }
}
