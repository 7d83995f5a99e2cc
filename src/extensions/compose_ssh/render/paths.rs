//! Where a path really points: inside the workspace or out of it, through every link.

use std::collections::VecDeque;
use std::io;

use super::lexical::normalize;
use super::tree::{Entry, Tree};

/// Links followed before a path counts as a loop.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To something in the workspace: its path without links.
    Inside(String, Entry),
    /// To nothing yet, at a place in the workspace.
    Missing(String),
    /// Out of the workspace; why, as the end of a sentence.
    Outside(String),
}

/// A workspace and the absolute path it will have on the host.
pub(super) struct Workspace<'a> {
    pub tree: &'a dyn Tree,
    workdir: String,
}

impl<'a> Workspace<'a> {
    pub(super) fn new(tree: &'a dyn Tree, workdir: &str) -> Self {
        Self { tree, workdir: normalize(workdir) }
    }

    /// A path from a file in the folder `base` as the host will see it. `~` is left for the judge to refuse.
    pub(super) fn anchor(&self, base: &str, path: &str) -> String {
        if path.starts_with('~') {
            path.to_owned()
        } else if path.starts_with('/') {
            normalize(path)
        } else {
            normalize(&format!("{}/{base}/{path}", self.workdir))
        }
    }

    /// The absolute path of a workspace-relative one.
    pub(super) fn absolute(&self, relative: &str) -> String {
        self.anchor("", relative)
    }

    /// Where an anchored path leads.
    ///
    /// # Errors
    /// The tree cannot be read there.
    pub(super) fn locate(&self, anchored: &str) -> io::Result<Target> {
        if anchored.contains('\0') {
            return Ok(Target::Outside("holds a NUL byte".to_owned()));
        }
        if anchored.starts_with('~') {
            return Ok(Target::Outside("is in a home directory".to_owned()));
        }
        let Some(relative) = anchored
            .strip_prefix(self.workdir.as_str())
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return Ok(Target::Outside("is outside the workspace".to_owned()));
        };
        self.follow(relative)
    }

    /// Walks a relative path component by component. An absolute link counts as leading out even when it points
    /// into the workspace here: on the host the same text points somewhere else.
    pub(super) fn follow(&self, relative: &str) -> io::Result<Target> {
        let mut todo: VecDeque<String> = relative.split('/').map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        let mut last = self.tree.entry("")?;
        while let Some(part) = todo.pop_front() {
            match part.as_str() {
                "" | "." => continue,
                ".." if done.pop().is_none() => {
                    return Ok(Target::Outside("leads out of the workspace".to_owned()));
                }
                ".." => {
                    last = Entry::Directory;
                    continue;
                }
                _ => done.push(part),
            }
            let here = done.join("/");
            last = self.tree.entry(&here)?;
            match &last {
                Entry::Link(text) if text.starts_with('/') => {
                    return Ok(Target::Outside(format!(
                        "goes through the link `{here}`, which points to the absolute path `{text}`"
                    )));
                }
                Entry::Link(text) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Ok(Target::Outside(format!(
                            "goes through the link `{here}`, which never ends"
                        )));
                    }
                    done.pop();
                    for part in text.rsplit('/') {
                        todo.push_front(part.to_owned());
                    }
                }
                Entry::OddLink => {
                    return Ok(Target::Outside(format!(
                        "goes through the link `{here}`, whose text is not UTF-8"
                    )));
                }
                Entry::Missing => return Ok(lexical(done, todo)),
                Entry::Other if !todo.is_empty() => {
                    return Ok(Target::Outside(format!(
                        "goes through `{here}`, which is no directory"
                    )));
                }
                Entry::Other | Entry::File | Entry::Directory => {}
            }
        }
        Ok(Target::Inside(done.join("/"), last))
    }
}

fn lexical(mut done: Vec<String>, todo: VecDeque<String>) -> Target {
    for part in todo {
        if part == ".." {
            if done.pop().is_none() {
                return Target::Outside("leads out of the workspace".to_owned());
            }
        } else if !matches!(part.as_str(), "" | ".") {
            done.push(part);
        }
    }
    Target::Missing(done.join("/"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::super::tree::{LocalTree, MemoryTree};
    use super::*;

    fn verdicts(tree: &dyn Tree) {
        let workspace = Workspace::new(tree, "/x/sbx-1/workspace/");
        let inside = [
            ("", "dir/file", "dir/file"),
            ("dir", "./file", "dir/file"),
            ("dir", "../dir/file", "dir/file"),
            ("", ".", ""),
            ("", "/x/sbx-1/workspace/dir", "dir"),
            ("", "in/file", "dir/file"),
            ("", "dir/up", "dir/file"),
            ("", "chain", "dir/file"),
        ];
        for (base, path, want) in inside {
            let target = workspace.locate(&workspace.anchor(base, path)).unwrap();
            assert!(matches!(&target, Target::Inside(at, _) if at == want), "{path}: {target:?}");
        }
        let outside = [
            "..",
            "../x",
            "dir/../../x",
            "/etc",
            "~",
            "~/x",
            "~root",
            "/x/sbx-1/workspace2",
            "/x/sbx-1",
            "/",
            "out",
            "out/deep",
            "abs",
            "abs/file",
            "loop",
            "dir/climb",
            "mixed",
            "in/../climb",
            "a\0b",
        ];
        for path in outside {
            let target = workspace.locate(&workspace.anchor("", path)).unwrap();
            let climbs = path == "in/../climb";
            assert!(matches!(target, Target::Outside(_)) != climbs, "{path}: {target:?}");
        }
        assert_eq!(
            workspace.locate("/x/sbx-1/workspace/new/deep").unwrap(),
            Target::Missing("new/deep".into())
        );
    }

    const LINKS: &[(&str, &str)] = &[
        ("in", "dir"),
        ("dir/up", "../in/file"),
        ("chain", "in/up"),
        ("out", "../../etc"),
        ("abs", "/x/sbx-1/workspace/dir"),
        ("loop", "loop"),
        ("dir/climb", "../../secret"),
        ("mixed", "new/../../y"),
    ];

    #[test]
    fn links_are_followed_and_absolute_ones_lead_out() {
        let mut tree = MemoryTree::default();
        tree.insert("dir/file", Entry::File, "x");
        for (path, to) in LINKS {
            tree.insert(path, Entry::Link((*to).to_owned()), "");
        }
        verdicts(&tree);
    }

    #[test]
    fn a_local_directory_gives_the_same_verdicts() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("dir")).unwrap();
        fs::write(root.path().join("dir/file"), "x").unwrap();
        for (path, to) in LINKS {
            std::os::unix::fs::symlink(to, root.path().join(path)).unwrap();
        }
        let tree = LocalTree::new(root.path());
        verdicts(&tree);
        let odd = std::ffi::OsStr::from_bytes(b"\xff/../../../etc");
        std::os::unix::fs::symlink(odd, root.path().join("odd")).unwrap();
        let workspace = Workspace::new(&tree, "/x/sbx-1/workspace/");
        for path in ["odd", "odd/passwd"] {
            let target = workspace.locate(&workspace.anchor("", path)).unwrap();
            assert!(matches!(target, Target::Outside(_)), "{path}: {target:?}");
        }
        assert_eq!(tree.read("dir/file").unwrap(), b"x");
        assert_eq!(tree.entry("dir/file/below").unwrap(), Entry::Missing);
    }
}
