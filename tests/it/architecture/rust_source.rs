//! Reading Rust source for the architecture test: files, words, and the paths that they name. No syntax tree: words and marks
//! are enough, and every rule stays in a screenful.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file's text.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A path as messages name it.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// The Rust files below a folder, sorted.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What git tracks or would track; without git, everything but what tools leave behind.
pub fn tracked(root: &Path) -> Vec<PathBuf> {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    if let Ok(output) = git.output()
        && output.status.success()
    {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        return names
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(|name| root.join(name))
            .collect();
    }
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir()
                && (name == "target"
                    || (name.starts_with('.') && name != ".ci" && name != ".config"))
            {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

/// All of `src`.
pub struct House {
    pub files: Vec<SourceFile>,
    pub modules: BTreeSet<String>,
}

/// One file of it.
pub struct SourceFile {
    /// Its path in the repository.
    pub shown: String,
    /// `tui::view::form`; the empty text for `lib.rs`.
    pub module: String,
    /// Whether it is compiled for tests only.
    pub is_test: bool,
    pub tokens: Vec<Token>,
}

/// A word or a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

impl House {
    /// Reads it from the repository.
    pub fn read() -> Self {
        let folder = root().join("src");
        let files: Vec<SourceFile> = rust_files(&folder)
            .iter()
            .filter(|path| !path.ends_with("src/lib.rs"))
            .map(|path| {
                let inside = path.strip_prefix(&folder).unwrap().with_extension("");
                let mut parts: Vec<String> = inside
                    .components()
                    .map(|part| part.as_os_str().to_string_lossy().into_owned())
                    .collect();
                if parts.last().is_some_and(|last| last == "mod") {
                    parts.pop();
                }
                SourceFile::new(shown(path), parts.join("::"), &read(path))
            })
            .collect();
        assert!(files.len() > 50, "the source was not found");
        let modules = files.iter().map(|file| file.module.clone()).collect();
        Self { files, modules }
    }

    /// The module that a path from the crate's root reaches; none for what `lib.rs` itself has.
    pub fn reached(&self, path: &[String]) -> Option<String> {
        (1..=path.len())
            .rev()
            .map(|length| path[..length].join("::"))
            .find(|module| self.modules.contains(module))
    }
}

impl SourceFile {
    /// The file of a module; those named `tests`, or below such a folder, are tests.
    pub fn new(shown: String, module: String, source: &str) -> Self {
        let is_test = module.split("::").any(|part| part == "tests");
        Self { shown, module, is_test, tokens: tokens(source) }
    }

    /// Every path that begins with `crate`, `super` or (in the binary) `sandboxer`, from the crate's root, with its line.
    pub fn paths(&self) -> Vec<(usize, Vec<String>)> {
        paths(&self.tokens, &self.module, &BTreeSet::new())
    }

    /// The code that is compiled outside of tests: without items under `#[cfg(test)]`.
    pub fn outside_tests(&self) -> Vec<Token> {
        let mut kept = Vec::new();
        let tokens = &self.tokens;
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at].text == "#" && tokens.get(at + 1).is_some_and(|token| token.text == "[") {
                let end = closing(tokens, at + 1);
                let attribute: Vec<&str> =
                    tokens[at + 2..end].iter().map(|token| token.text.as_str()).collect();
                let of_tests = attribute.first() == Some(&"cfg")
                    && attribute.contains(&"test")
                    && !attribute.contains(&"not");
                if of_tests || attribute == ["test"] {
                    at = item_end(tokens, end + 1);
                    continue;
                }
            }
            kept.push(tokens[at].clone());
            at += 1;
        }
        kept
    }
}

/// Every path in `tokens` of a file that begins with `crate`, `super`, `self`, (in the binary) `sandboxer`, or the name of one
/// of `modules` that is below the file's own; from the crate's root, with its line.
pub fn paths(
    tokens: &[Token],
    module: &str,
    modules: &BTreeSet<String>,
) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut inside: Vec<String> = module.split("::").map(str::to_owned).collect();
    let mut blocks: Vec<bool> = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "mod" if text(at + 2) == "{" => {
                inside.push(text(at + 1).to_owned());
                blocks.push(true);
                at += 2;
            }
            "{" => blocks.push(false),
            "}" if blocks.pop() == Some(true) => drop(inside.pop()),
            word if text(at + 1) == "::" && (at == 0 || text(at - 1) != "::") => {
                let is_visibility = at > 2 && text(at - 1) == "in" && text(at - 3) == "pub";
                let base = match word {
                    _ if is_visibility => None,
                    "crate" => Some(Vec::new()),
                    "sandboxer" if module == "main" => Some(Vec::new()),
                    "super" => Some(inside[..inside.len().saturating_sub(1)].to_vec()),
                    "self" => Some(inside.clone()),
                    child if modules.contains(&format!("{}::{child}", inside.join("::"))) => {
                        Some([inside.as_slice(), &[child.to_owned()]].concat())
                    }
                    _ => None,
                };
                if let Some(base) = base {
                    at = tree(tokens, at + 2, &base, &mut found);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads a path or a `use` tree behind its first `::`, adds what it names, and says where it ends.
fn tree(
    tokens: &[Token],
    mut at: usize,
    base: &[String],
    found: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut path = base.to_vec();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match text(at) {
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | "") {
                    at = tree(tokens, at, &path, found);
                    // `as name`, and the comma.
                    while !matches!(text(at), "," | "}" | "") {
                        at += 1;
                    }
                    if text(at) == "," {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "super" => drop(path.pop()),
            "self" | "*" => {}
            word if is_word(word) => path.push(word.to_owned()),
            _ => break,
        }
        at += 1;
        if text(at) != "::" {
            break;
        }
        at += 1;
    }
    found.push((line, path));
    at
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The place of the bracket that closes the one at `open`.
pub fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The place behind an item: past its other attributes, to its `;` or its closing brace.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            "{" => return closing(tokens, at) + 1,
            ";" | "," => return at + 1,
            "(" | "[" => at = closing(tokens, at) + 1,
            _ => at += 1,
        }
    }
    at
}

/// Words and marks of Rust source, `::` as one, without comments; of texts only the quote stays.
fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut line = 1;
    let bytes: Vec<char> = source.chars().collect();
    let at_is = |at: usize, text: &str| {
        text.chars().enumerate().all(|(n, c)| bytes.get(at + n) == Some(&c))
    };
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        let start = at;
        let from = line;
        if at_is(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if at_is(at, "/*") {
            let mut depth = 0;
            while at < bytes.len() {
                if at_is(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if at_is(at, "*/") {
                    depth -= 1;
                    at += 2;
                } else {
                    at += 1;
                }
                if depth == 0 {
                    break;
                }
            }
        } else if let Some(hashes) = raw_text(&bytes, at) {
            at += bytes[at..].iter().position(|c| *c == '"').unwrap() + 1;
            let end = format!("\"{}", "#".repeat(hashes));
            while at < bytes.len() && !at_is(at, &end) {
                at += 1;
            }
            at += end.len();
            found.push(Token { text: "\"".to_owned(), line: from });
        } else if c == '"' {
            at += 1;
            while at < bytes.len() && bytes[at] != '"' {
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
            found.push(Token { text: "\"".to_owned(), line: from });
        } else if c == '\'' {
            // A character, or a lifetime.
            if bytes.get(at + 1) == Some(&'\\') {
                at += 3;
                while at < bytes.len() && bytes[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if bytes.get(at + 2) == Some(&'\'') {
                at += 3;
            } else {
                at += 1;
            }
        } else if c.is_alphanumeric() || c == '_' {
            while at < bytes.len() && (bytes[at].is_alphanumeric() || bytes[at] == '_') {
                at += 1;
            }
            found.push(Token { text: bytes[start..at].iter().collect(), line: from });
        } else if at_is(at, "::") {
            at += 2;
            found.push(Token { text: "::".to_owned(), line: from });
        } else {
            at += 1;
            if !c.is_whitespace() {
                found.push(Token { text: c.to_string(), line: from });
            }
        }
        line += bytes[start..at.min(bytes.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// How many `#` a raw text that begins here has.
fn raw_text(bytes: &[char], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let mut at = at;
    if matches!(bytes[at], 'b' | 'c') {
        at += 1;
    }
    if bytes.get(at) != Some(&'r') {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|c| **c == '#').count();
    (bytes.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

#[test]
fn the_reader_finds_every_path_and_nothing_in_texts() {
    let source = r##"
//! crate::comment::no
use crate::domain::{self, name::{HostName, SandboxId as Id}, time::*};
use super::sister;
/* crate::block::no /* nested */ crate::still::no */
fn f<'a>(x: &'a str) -> crate::domain::error::Error {
    let quote = '"'; let text = "crate::text::no \" crate::no"; let raw = r#"crate::raw::no "#;
    macro_path!($crate::store::Held); let c = '\''; crate::transport::Output::default()
}
mod tests { use super::*; use super::super::cousin::Thing; }
"##;
    let file = SourceFile::new(String::new(), "manager::create".to_owned(), source);
    let found: std::collections::BTreeMap<String, usize> =
        file.paths().into_iter().map(|(line, path)| (path.join("::"), line)).collect();
    let expected = [
        ("domain", 3),
        ("domain::error::Error", 6),
        ("domain::name::HostName", 3),
        ("domain::name::SandboxId", 3),
        ("domain::time", 3),
        ("manager::cousin::Thing", 10),
        ("manager::create", 10),
        ("manager::sister", 4),
        ("store::Held", 8),
        ("transport::Output::default", 8),
    ];
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        expected.map(|(path, line)| (path.to_owned(), line))
    );
}
