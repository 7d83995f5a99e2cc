//! The house rules of `docs/architecture.md`, read off the source: who imports whom, who spawns, how long a file gets.
//!
//! Every `use crate::…`, `use super::…` and every such path in code is resolved to the module it reaches, and looked up in
//! [`FLOORS`]. An exception stands in a table here, with its reason; one that nothing needs any more is a failure too.

mod circles;
mod matches;
mod places;
mod rust_source;
mod strings;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rust_source::{House, SourceFile, Token, read, root, rust_files, shown, tracked};

// ---- the tables ----------------------------------------------------------------------------------------------------

/// A module and everything below it, and what that may import. A target with `=` in front is that module alone, without what
/// is below it. The longest matching entry counts. `failpoint` and `log` are open to all.
const FLOORS: &[(&str, &[&str])] = &[
    ("domain", &["domain"]),
    ("transport", &["domain", "transport"]),
    ("yaml", &["domain", "yaml"]),
    ("extensions", &["domain", "yaml", "transport", "extensions"]),
    ("store", &["domain", "yaml", "store"]),
    ("manager", &["domain", "manager", "=store", "=transport", "transport::probe"]),
    ("client", &["domain", "client"]),
    ("client::local", &["domain", "client", "manager"]),
    ("present", &["domain", "client", "present"]),
    ("cli", &["domain", "client", "present", "cli"]),
    ("http", &["domain", "client", "present", "http"]),
    ("tui", &["domain", "client", "present", "tui"]),
    // Plain data: it knows the keys' names, and nothing of drawing, effects or the terminal.
    ("tui::model", &["domain", "client", "present", "tui::model", "tui::keymap"]),
    ("tui::view", &["present", "tui::view", "tui::model", "tui::keymap"]),
    ("config", &["domain", "yaml", "config"]),
    (
        "app",
        &[
            "app",
            "cli",
            "client",
            "config",
            "domain",
            "extensions",
            "http",
            "manager",
            "store",
            "transport",
            "tui",
        ],
    ),
    ("failpoint", &[]),
    ("log", &[]),
    // The binary; `crate::` is spelt `sandboxer::` there.
    ("main", &["app", "cli", "client", "config", "domain", "http", "tui"]),
];

/// Open to everyone: a named point that a test can stop at, and where the log goes.
const OPEN: &[&str] = &["failpoint", "log"];

/// Imports that [`FLOORS`] forbids and that are right all the same: who, what, why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "manager",
        "store::catalogue",
        "the catalogue is read once, at the start, and never written: values, not a store to be exchanged",
    ),
    (
        "tui::view",
        "domain::text",
        "text from hosts is cleaned and measured where it enters the screen",
    ),
    ("tui::view::picker", "client", "what is chosen from are the client's views of profiles"),
    (
        "tui::view::snapshots",
        "domain",
        "a row's state is the domain's, and its glyph is chosen by matching on it",
    ),
    (
        "tui::view",
        "domain::error",
        "an error in place of rows is the domain's, and painted by its parts",
    ),
];

/// Who may spawn a task or a thread (rule 3): each is the one owner of what it starts, hears "stop", and waits for it.
const SPAWNERS: &[&str] = &[
    "manager::operation::jobs",
    "transport::shell",
    "transport::ssh",
    "tui::effects",
    "tui",
    "client::remote",
    "http",
    "app",
];

/// Who may hand blocking work to a thread and wait for it on the spot: files and trees have no asynchronous form.
const BLOCKING: &[&str] =
    &["store", "transport::hub", "transport::transfer", "extensions", "tui::effects"];

/// Files of more than [`LONG`] or [`LONG_TESTS`] lines, and why they are one file.
const LONG_FILES: &[(&str, &str)] = &[
    (
        "src/cli/complete.rs",
        "one verb: `__complete`, its kinds of words, its scripts and their table of tests",
    ),
    (
        "src/domain/error.rs",
        "one type: the codes, the error that carries one, how it is written and read",
    ),
    ("src/domain/sandbox.rs", "one record, with the moves of its state"),
    (
        "src/extensions/compose_ssh/mask.rs",
        "one promise: no value of a rendered file in what a tool says",
    ),
    (
        "src/extensions/compose_ssh/render/interpolate.rs",
        "one grammar: `$` in compose files, and a table of tests",
    ),
    (
        "src/extensions/compose_ssh/render/merge.rs",
        "one rule per key: how compose lays files over each other, and a table of tests",
    ),
    ("src/extensions/compose_ssh/render/services.rs", "one service, key by key"),
    (
        "src/extensions/compose_ssh/render/shapes/table.rs",
        "one table: every key, and what it may hold",
    ),
    (
        "src/extensions/archives/import/rewrite/tests.rs",
        "one table: every hostile archive, and what becomes of it",
    ),
    ("src/manager/mod.rs", "one list: a line for each verb, with what it promises"),
    (
        "src/manager/snapshots/create.rs",
        "one verb: from its request to the archive, and what a failure leaves",
    ),
    ("src/store/mod.rs", "one list: a trait for each store, which is its contract"),
    ("src/transport/transfer/plan.rs", "one question: what of a tree would go onto a host"),
    (
        "src/transport/watchdog.rs",
        "one frame: a command, its end, its watchdog, and a table of tests",
    ),
    (
        "tests/it/dashboard/update.rs",
        "one function, one suite: every message and what it does to the model",
    ),
    (
        "tests/it/dashboard/snapshots.rs",
        "one pane, one suite: its tree, every verb on a snapshot, and their screens",
    ),
    (
        "tests/it/dashboard/screens.rs",
        "one screen, one suite: every overlay at every size, from one set of models",
    ),
    ("tests/lab/lab.rs", "one lab, one door: what every lab test does on the two hosts"),
    ("tests/it/cli_face/mod.rs", "one face, one suite: every verb's snapshot in one world"),
    ("tests/it/cli_face/snapshots.rs", "one noun, one suite: every verb on snapshots, as printed"),
    ("tests/it/manager/patches.rs", "one promise, one suite: what a patch's application is"),
    ("tests/it/manager/recover.rs", "one verb, one suite: every state that recover finds"),
    ("tests/it/manager/snapshots.rs", "one promise, one suite: what a snapshot's life is"),
    ("tests/it/manager/verbs.rs", "one promise, one suite: every verb's steps and refusals"),
    ("tests/lab/stale/walk.rs", "one walk: its steps, and the rules that hold after each"),
];

/// Lines above which a file of `src` needs a reason; of tests, whose snapshots and tables are long, more.
const LONG: usize = 400;
const LONG_TESTS: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc"];

/// Directories in which a clone may lie without its path saying anything about a machine.
const ANYWHERE: &[&str] =
    &["/", "/tmp", "/var/tmp", "/home", "/root", "/srv", "/opt", "/usr/src", "/src", "/mnt"];

// ---- the rules -----------------------------------------------------------------------------------------------------

#[test]
fn imports_go_down_or_sideways() {
    let house = House::read();
    let mut wrong = String::new();
    let mut used = BTreeSet::new();
    for file in &house.files {
        let allowed = floor(&file.module)
            .unwrap_or_else(|| panic!("{}: a module without a floor", file.shown));
        for (line, path) in file.paths() {
            let Some(target) = house.reached(&path) else { continue };
            if OPEN.iter().any(|open| within(&target, open))
                || allowed.iter().any(|allow| permits(allow, &target))
            {
                continue;
            }
            match EXCEPTIONS
                .iter()
                .position(|(who, what, _)| within(&file.module, who) && within(&target, what))
            {
                Some(at) => {
                    used.insert(at);
                }
                None => {
                    let _ =
                        writeln!(wrong, "{}:{line}: {} imports {target}", file.shown, file.module);
                }
            }
        }
    }
    for (at, (who, what, _)) in EXCEPTIONS.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
        // A room that is not built yet cannot use its exception.
        if house.modules.contains(*who) {
            let _ = writeln!(
                wrong,
                "exception {at}, {who} → {what}, is not needed any more: remove it"
            );
        }
    }
    assert!(wrong.is_empty(), "imports that go up (see docs/architecture.md):\n{wrong}");
}

#[test]
fn the_model_knows_no_ratatui_and_only_the_dashboard_knows_the_view() {
    let house = House::read();
    let mut wrong = String::new();
    for file in &house.files {
        if within(&file.module, "tui::model") || within(&file.module, "present") {
            for token in file.tokens.iter().filter(|token| token.text == "ratatui") {
                let _ =
                    writeln!(wrong, "{}:{}: words and model name ratatui", file.shown, token.line);
            }
        }
        if within(&file.module, "tui::view") || file.module == "tui" {
            continue;
        }
        for (line, path) in file.paths() {
            if house.reached(&path).is_some_and(|target| within(&target, "tui::view")) {
                let _ = writeln!(wrong, "{}:{line}: {} imports the view", file.shown, file.module);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn only_owners_spawn() {
    let mut wrong = String::new();
    for file in House::read().files.iter().filter(|file| !file.is_test) {
        for (line, what) in spawns(&file.outside_tests()) {
            let allowed = if what == "spawn_blocking" { BLOCKING } else { SPAWNERS };
            // `transport::ssh` is one file, not the folder's every helper; only blocking work is allowed by folder.
            let permitted = allowed.iter().any(|who| {
                if what == "spawn_blocking" || *who == "http" {
                    within(&file.module, who)
                } else {
                    file.module == *who
                }
            });
            if !permitted {
                let _ = writeln!(wrong, "{}:{line}: {what}", file.shown);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "tasks and threads that nobody owns (rule 3 of docs/architecture.md):\n{wrong}"
    );
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    let mut wrong = String::new();
    for file in House::read().files.iter().filter(|file| !file.is_test) {
        for call in file.outside_tests().windows(3) {
            let called = matches!(call[0].text.as_str(), "." | "::") && call[2].text == "(";
            if called
                && matches!(
                    call[1].text.as_str(),
                    "unwrap" | "expect" | "unwrap_err" | "expect_err"
                )
            {
                let _ = writeln!(wrong, "{}:{}: {}", file.shown, call[1].line, call[1].text);
            }
        }
    }
    assert!(wrong.is_empty(), "an error is a value, not a panic:\n{wrong}");
}

#[test]
fn a_long_file_has_a_reason() {
    let mut wrong = String::new();
    let mut long = BTreeSet::new();
    for path in rust_files(&root().join("src")).into_iter().chain(rust_files(&root().join("tests")))
    {
        let lines = read(&path).lines().count();
        let shown = shown(&path);
        let is_test = !shown.starts_with("src/") || shown.contains("/tests");
        let most = if is_test { LONG_TESTS } else { LONG };
        if lines > most && !LONG_FILES.iter().any(|(file, _)| *file == shown) {
            let _ = writeln!(
                wrong,
                "{shown}: {lines} lines; a concept is missing, or its reason in LONG_FILES"
            );
        } else if lines > most {
            long.insert(shown);
        }
    }
    // A suite grows and shrinks; a file of `src` that shrank has lost its reason.
    for (file, _) in
        LONG_FILES.iter().filter(|(file, _)| file.starts_with("src/") && !long.contains(*file))
    {
        let _ = writeln!(wrong, "{file} is not long any more: take it out of LONG_FILES");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_module_has_a_name_that_says_something() {
    for path in rust_files(&root().join("src")) {
        for part in path.strip_prefix(root()).unwrap().with_extension("").components() {
            let name = part.as_os_str().to_string_lossy();
            assert!(
                !EMPTY_NAMES.contains(&name.as_ref()),
                "{}: a module named {name}",
                shown(&path)
            );
        }
    }
}

#[test]
fn the_justfile_runs_what_ci_runs() {
    let ci = read(&root().join(".ci/run"));
    let profiles = read(&root().join("justfile"));
    let mut checked = 0;
    for profile in ["lint:", "shellcheck:", "doc:"] {
        let lines = profiles.lines().skip_while(|line| *line != profile).skip(1);
        for line in lines.take_while(|line| line.starts_with(' ')) {
            let command = &line[line.find("cargo ").or_else(|| line.find("tests/")).unwrap()..];
            assert!(ci.contains(command), "{profile} has `{command}`, and .ci/run has not");
            checked += 1;
        }
    }
    assert_eq!(checked, 5);
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let root = std::fs::canonicalize(root()).unwrap();
    let mut needles = vec![root.to_string_lossy().into_owned()];
    if let Some(parent) = root.parent().map(|parent| parent.to_string_lossy().into_owned())
        && !ANYWHERE.contains(&parent.as_str())
    {
        needles.push(format!("{parent}/"));
    }
    let mut wrong = String::new();
    for path in tracked(&root) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            if needles.iter().any(|needle| names(line, needle)) {
                let _ = writeln!(
                    wrong,
                    "{}:{}: {line}",
                    path.strip_prefix(&root).unwrap().display(),
                    number + 1
                );
            }
        }
    }
    assert!(wrong.is_empty(), "paths of this machine:\n{wrong}");
}

/// Whether a line names an absolute path; `/srv/clone/x` does not name `/clone/`.
fn names(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}>)*".contains(c))
    })
}

fn floor(module: &str) -> Option<&'static [&'static str]> {
    let entries = FLOORS.iter().filter(|(name, _)| within(module, name));
    entries.max_by_key(|(name, _)| name.len()).map(|(_, allowed)| *allowed)
}

fn permits(allow: &str, target: &str) -> bool {
    allow.strip_prefix('=').map_or_else(|| within(target, allow), |exact| target == exact)
}

/// Whether a module is another or below it.
fn within(module: &str, above: &str) -> bool {
    module.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Where tasks and threads are started. Starting a child process (`command.spawn()`) is none of it.
fn spawns(tokens: &[Token]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    for (at, token) in tokens.iter().enumerate() {
        let path_of = |name: &str| at >= 2 && text(at - 1) == "::" && text(at - 2) == name;
        let what = match token.text.as_str() {
            "spawn_blocking" => "spawn_blocking",
            "spawn_local" => "spawn_local",
            "JoinSet" => "JoinSet",
            "spawn" | "scope" | "Builder" if path_of("thread") => "a thread",
            "spawn" if path_of("tokio") || path_of("task") || path_of("Handle") => "tokio::spawn",
            // A child process's `spawn` takes nothing.
            "spawn" if text(at + 1) == "(" && text(at + 2) != ")" => "spawn(…)",
            _ => continue,
        };
        found.push((token.line, what));
    }
    found
}

#[test]
fn a_path_is_named_only_where_it_begins() {
    assert!(
        names("see /clone/x", "/clone/")
            && names("\"/clone/x\"", "/clone/")
            && names("/clone/x", "/clone/")
    );
    assert!(
        !names("sbx-1/clone/x", "/clone/")
            && !names("<id>/clone/x", "/clone/")
            && !names("~/clone/x", "/clone/")
    );
    assert!(
        within("a::b", "a")
            && within("a", "a")
            && !within("ab", "a")
            && permits("=a", "a")
            && !permits("=a", "a::b")
    );
}

#[test]
fn the_reader_leaves_tests_out_and_tells_tasks_from_processes() {
    let source = "
        #[cfg(test)] mod tests { fn t() { x.unwrap(); tokio::spawn(y); } }
        #[cfg(not(test))] fn kept() {}
        #[cfg(all(test, unix))] #[allow(dead_code)] fn gone(a: [u8; 2]) -> u8 { 0 }
        fn code() { command.spawn()?; self.tasks.spawn(async {}); std::thread::spawn(f); tokio::task::spawn_blocking(g); }
        #[cfg(test)] use a::b;
        fn last() {}";
    let file = SourceFile::new(String::new(), "x".to_owned(), source);
    let kept = file.outside_tests();
    let words: Vec<&str> = kept.iter().map(|token| token.text.as_str()).collect();
    for word in ["kept", "code", "last"] {
        assert!(words.contains(&word), "{word}");
    }
    for word in ["unwrap", "gone", "b"] {
        assert!(!words.contains(&word), "{word}");
    }
    let what: Vec<&str> = spawns(&kept).into_iter().map(|(_, what)| what).collect();
    assert_eq!(what, ["spawn(…)", "a thread", "spawn_blocking"]);
}
