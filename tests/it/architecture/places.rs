//! Places: what stands in one place only.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use super::rust_source::{House, SourceFile, Token, read, root, rust_files, shown};

/// Folders of scripts that hosts run: those named `scripts` below these.
const SCRIPT_ROOMS: &[&str] = &["src/extensions", "src/transport"];

#[test]
fn verbs_are_free_functions_and_the_manager_is_one_file() {
    let mut wrong = String::new();
    for file in House::read().files.iter().filter(|file| file.shown != "src/manager/mod.rs") {
        for line in implements(&file.tokens, "SandboxManager") {
            let _ = writeln!(wrong, "{}:{line}: impl SandboxManager", file.shown);
        }
    }
    assert!(
        wrong.is_empty(),
        "a verb is a function over an `Op` or the dependencies it names (rule 4 of docs/architecture.md):\n{wrong}"
    );
}

/// Lines of `impl` blocks of a type, its traits' included.
fn implements(tokens: &[Token], name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "impl") {
        let head =
            tokens[at..].iter().take_while(|token| !matches!(token.text.as_str(), "{" | ";"));
        let of: Vec<&str> = head.map(|token| token.text.as_str()).collect();
        let own = of.iter().position(|word| *word == "for").map_or(of.as_slice(), |at| &of[at..]);
        let own = own.split(|word| *word == "where").next().unwrap_or_default();
        // `impl Trait` in a signature is no block.
        let is_item =
            at == 0 || matches!(tokens[at - 1].text.as_str(), "}" | ";" | "]" | "{" | "unsafe");
        if is_item && own.contains(&name) {
            found.push(token.line);
        }
    }
    found
}

#[test]
fn child_processes_are_begun_where_secrets_are_withheld() {
    let mut wrong = String::new();
    let house = House::read();
    let files = house.files.iter().filter(|file| !file.is_test);
    for file in files.filter(|file| file.shown != "src/domain/child_process.rs") {
        for line in begun(&file.outside_tests()) {
            let _ = writeln!(wrong, "{}:{line}: a child process of its own", file.shown);
        }
    }
    assert!(
        wrong.is_empty(),
        "a child process is made by `domain::child_process::child`:\n{wrong}"
    );
    let lines = |source: &str| begun(&SourceFile::new(String::new(), String::new(), source).tokens);
    let other =
        "use crate::transport::Command; use std::process::Stdio; fn f() { Command::new(1); }";
    let found = [
        "use tokio::process::{Child, Command as Program}; fn f() { Program::new(1); }",
        "use std::process::Command; fn f() { Command::new(1); }",
        "fn f() { std::process::Command::new(1); }",
    ];
    assert!(lines(other).is_empty() && found.iter().all(|source| lines(source).len() == 1));
}

/// Lines that make a command of the standard library or of tokio, whatever it is called there.
fn begun(tokens: &[Token]) -> Vec<usize> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut names = Vec::new();
    for at in (0..tokens.len()).filter(|at| text(*at) == "process" && text(at + 1) == "::") {
        let rest = (at + 2..).take_while(|at| !matches!(text(*at), ";" | "" | "("));
        for at in rest.filter(|at| text(*at) == "Command") {
            names.push(if text(at + 1) == "as" { text(at + 2) } else { "Command" });
        }
    }
    let is_new = |at: &usize| text(at + 1) == "::" && text(at + 2) == "new";
    let made = (0..tokens.len()).filter(|at| names.contains(&text(*at))).filter(is_new);
    made.map(|at| tokens[at].line).collect()
}

#[test]
fn scripts_stand_in_their_folders() {
    let mut wrong = String::new();
    for script in files(&root().join("src"), "sh") {
        if !is_script_folder(&script) {
            let _ = writeln!(wrong, "{}: a script in another folder", shown(&script));
        }
    }
    for file in rust_files(&root().join("src")) {
        for (number, line) in read(&file).lines().enumerate() {
            for script in included_scripts(line) {
                // Cases of tests are no scripts of ours.
                let path = resolved(&file, script);
                if !is_script_folder(&path) && !shown(&path).starts_with("tests/cases/") {
                    let _ = writeln!(wrong, "{}:{}: includes {script}", shown(&file), number + 1);
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "scripts for hosts lie in a folder `scripts` of {SCRIPT_ROOMS:?}:\n{wrong}"
    );
}

/// What a line includes that ends in `.sh`.
fn included_scripts(line: &str) -> impl Iterator<Item = &str> {
    let paths = line.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
    paths.filter(|path| Path::new(path).extension().is_some_and(|kind| kind == "sh"))
}

fn is_script_folder(path: &Path) -> bool {
    let shown = shown(path);
    SCRIPT_ROOMS.iter().any(|room| shown.starts_with(&format!("{room}/")))
        && path.parent().is_some_and(|folder| folder.ends_with("scripts"))
}

/// A path as a file names it, from where that file is.
fn resolved(file: &Path, path: &str) -> PathBuf {
    let mut whole = file.parent().unwrap().to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// Scripts are put together by `concat!`, and all of sh is global: a function that another script defines under the same name
/// changes what that one does. (`sleep.sh` once took a `sbx_stands` from `let_go.sh`, and nothing was resumed.)
#[test]
fn no_function_stands_twice_in_scripts_that_are_put_together() {
    let mut faults = Vec::new();
    for file in rust_files(&root().join("src")) {
        let text = read(&file);
        for group in text.split("concat!(").skip(1) {
            let group = group.split(");").next().unwrap_or_default();
            let mut seen: std::collections::BTreeMap<String, String> =
                std::collections::BTreeMap::new();
            for part in group.split("include_str!(\"").skip(1) {
                let Some((path, _)) = part.split_once('"') else { continue };
                let script = file.parent().unwrap().join(path);
                let Ok(script) = std::fs::read_to_string(&script) else { continue };
                for name in script
                    .lines()
                    .filter_map(|line| line.split_once("() {"))
                    .map(|(name, _)| name.trim())
                {
                    if !name.starts_with("sbx_") || name.contains(' ') {
                        continue;
                    }
                    let before = seen.insert(name.to_owned(), path.to_owned());
                    if let Some(before) = before.filter(|before| before != path) {
                        faults.push(format!("{}: {name} of {before} and of {path}", shown(&file)));
                    }
                }
            }
        }
    }
    faults.sort();
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn blocks_and_scripts_are_told_from_what_looks_like_them() {
    let file = super::rust_source::SourceFile::new(
        String::new(),
        "x".to_owned(),
        "impl SandboxManager { fn f(&self) -> impl Into<SandboxManager> {} }
         impl<T> Verb<T> for SandboxManager where T: Copy {}
         impl From<SandboxManager> for Other {}
         fn g(of: impl AsRef<SandboxManager>) {}",
    );
    assert_eq!(implements(&file.tokens, "SandboxManager"), [1, 2]);
    let line =
        r#"concat!(include_str!("scripts/a.sh"), include_str!("b.zsh"), include_str!("../c.sh"))"#;
    assert_eq!(included_scripts(line).collect::<Vec<_>>(), ["scripts/a.sh", "../c.sh"]);
    let file = root().join("src/extensions/vm_packer.rs");
    assert!(is_script_folder(&resolved(&file, "workspace/scripts/a.sh")));
    assert!(is_script_folder(&resolved(&file, "../transport/scripts/a.sh")));
    assert!(!is_script_folder(&resolved(&file, "../manager/scripts/a.sh")));
    assert!(!is_script_folder(&resolved(&file, "workspace/a.sh")));
}
