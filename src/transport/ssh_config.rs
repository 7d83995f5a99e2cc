//! Does the user's SSH configuration name a host? What it says of the host is left to ssh itself.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Depth to which ssh itself follows `Include`.
const DEPTH: usize = 16;

/// The `Host` lines of a configuration with what it includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    lines: Vec<Vec<String>>,
}

impl Names {
    /// Reads a configuration file and what it includes. Relative includes are sought beside it, `~` is the folder
    /// above, as for `~/.ssh/config`. What cannot be read names nobody: ssh will say so when it is used.
    pub(crate) fn read(config: &Path) -> Self {
        let mut names = Self::default();
        let folder = config.parent().unwrap_or(Path::new("/"));
        names.read_file(config, folder, 0, &mut HashSet::new());
        names
    }

    /// The `Host` lines of one text; `Include` is not followed.
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Self {
        let host = |line| if let Line::Host(patterns) = line { Some(patterns) } else { None };
        Self { lines: parse(text).filter_map(host).collect() }
    }

    /// Spelling of this host in the configuration, if it is there. Case does not count here, but it does for ssh.
    ///
    /// A pattern of wildcards alone (`*`) names nobody, and a negated one that matches takes its line away.
    pub(crate) fn find(&self, host: &str) -> Option<String> {
        self.lines.iter().find_map(|patterns| {
            if patterns
                .iter()
                .any(|pattern| pattern.strip_prefix('!').is_some_and(|not| matches(not, host)))
            {
                return None;
            }
            let named = |pattern: &&String| {
                pattern.contains(char::is_alphanumeric) && matches(pattern, host)
            };
            let pattern =
                patterns.iter().filter(|pattern| !pattern.starts_with('!')).find(named)?;
            Some(if pattern.contains(['*', '?']) { host.to_owned() } else { pattern.clone() })
        })
    }

    fn read_file(&mut self, file: &Path, folder: &Path, depth: usize, seen: &mut HashSet<PathBuf>) {
        if depth > DEPTH || !seen.insert(file.to_owned()) {
            return;
        }
        let Ok(bytes) = fs::read(file) else { return };
        for line in parse(&String::from_utf8_lossy(&bytes)) {
            match line {
                Line::Host(patterns) => self.lines.push(patterns),
                Line::Include(paths) => {
                    for included in paths.iter().flat_map(|path| expand(path, folder)) {
                        self.read_file(&included, folder, depth + 1, seen);
                    }
                }
            }
        }
    }
}

enum Line {
    Host(Vec<String>),
    Include(Vec<String>),
}

fn parse(text: &str) -> impl Iterator<Item = Line> + '_ {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
        let rest = line[end..].trim_start();
        let words = words(rest.strip_prefix('=').unwrap_or(rest));
        match line[..end].to_ascii_lowercase().as_str() {
            "host" => Some(Line::Host(words)),
            "include" => Some(Line::Include(words)),
            _ => None,
        }
    })
}

/// The words of a line: separated by blanks, `"` around one that holds blanks, `#` begins a comment.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        if !word.is_empty() {
            words.push(word.to_owned());
        }
        rest = after.trim_start();
    }
    words
}

/// Whether a pattern with `*` and `?` matches all of a text; ASCII case does not count.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where to go on when the last star has to take one byte more.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted.eq_ignore_ascii_case(&text[t]) => {
                (p, t) = (p + 1, t + 1);
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The files that an `Include` path with wildcards means, in order.
fn expand(path: &str, folder: &Path) -> Vec<PathBuf> {
    let full = match path.strip_prefix("~/") {
        Some(rest) => folder.parent().unwrap_or(folder).join(rest),
        None => folder.join(path),
    };
    let mut found = vec![PathBuf::new()];
    for part in full.components() {
        let pattern = match part {
            Component::Normal(name) => name.to_str().filter(|name| name.contains(['*', '?'])),
            _ => None,
        };
        found = match pattern {
            None => found.into_iter().map(|base| base.join(part)).collect(),
            Some(pattern) => found.iter().flat_map(|base| children(base, pattern)).collect(),
        };
    }
    found
}

fn children(base: &Path, pattern: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(base) else { return Vec::new() };
    let fits =
        |name: &str| matches(pattern, name) && (!name.starts_with('.') || pattern.starts_with('.'));
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
# Host commented
Host sandboxer01 coulombcore  # two of them
  HostName 10.0.0.1
HOST=Quoted \"with blank\"
\thost\tlab-* !lab-secret
Host *
  User me
Host * !never
Match host matched
Hostname notahost
Host
";

    #[test]
    fn host_lines_name_hosts_and_nothing_else_does() {
        let names = Names::parse(CONFIG);
        for (asked, spelled) in [
            ("sandboxer01", "sandboxer01"),
            ("SandBoxer01", "sandboxer01"),
            ("coulombcore", "coulombcore"),
            ("quoted", "Quoted"),
            ("with blank", "with blank"),
            ("lab-7", "lab-7"),
        ] {
            assert_eq!(names.find(asked).as_deref(), Some(spelled), "{asked}");
        }
        for asked in [
            "commented",
            "elsewhere",
            "lab-secret",
            "never",
            "matched",
            "notahost",
            "#",
            "two",
            "*",
            "",
            "10.0.0.1",
        ] {
            assert_eq!(names.find(asked), None, "{asked}");
        }
    }

    #[test]
    fn wildcards_match_as_in_ssh() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbd", false),
            ("?", "", false),
            ("a?", "ab", true),
            ("*b*", "abc", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn includes_are_followed_through_globs_and_circles() {
        let home = tempfile::tempdir().unwrap();
        let ssh = home.path().join(".ssh");
        fs::create_dir_all(ssh.join("conf.d/.hidden")).unwrap();
        fs::write(
            ssh.join("config"),
            "Include conf.d/*.conf ~/extra\nInclude config\nInclude missing/*\nHost top\n",
        )
        .unwrap();
        fs::write(ssh.join("conf.d/a.conf"), "Host inner\n").unwrap();
        fs::write(ssh.join("conf.d/b.other"), "Host unseen\n").unwrap();
        fs::write(home.path().join("extra"), "Host extra\n").unwrap();
        let names = Names::read(&ssh.join("config"));
        assert!(
            names.find("inner").is_some()
                && names.find("extra").is_some()
                && names.find("top").is_some()
        );
        assert!(names.find("unseen").is_none());
        assert_eq!(Names::read(&ssh.join("absent")), Names::default());
    }
}
