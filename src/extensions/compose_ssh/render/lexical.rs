//! Paths as texts: what can be said of one without looking.

/// A path without `.`, `..` and doubled slashes; `..` at the root of an absolute path stays there.
pub(in crate::extensions::compose_ssh) fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let absolute = path.starts_with('/');
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if absolute => {}
            _ => parts.push(part),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, parts.join("/"))
}

/// The folder of a relative file path; empty for the workspace.
pub(super) fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalize_is_lexical() {
        for (path, want) in [
            ("/a/./b//c", "/a/b/c"),
            ("/a/../../b", "/b"),
            ("a/../b", "b"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("./", ""),
            ("/", "/"),
        ] {
            assert_eq!(normalize(path), want, "{path}");
        }
    }
}
