//! Words: those that were replaced (`docs/glossary.md`) do not come back to the rooms that were rewritten.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::rust_source::{House, SourceFile, read, root};
use super::within;

/// The rooms in which the list holds. A room that is rewritten is added.
const ROOMS: &[&str] =
    &["app", "client", "cli", "present", "tui::effects", "tui::message", "tui::update", "yaml"];

/// A word that is not used any more.
struct Replaced {
    /// In small letters with `_`: part of a name. With a capital: the whole name of a type.
    word: &'static str,
    /// What is said instead.
    instead: &'static str,
    /// Rooms that still have it, and are to lose it.
    still: &'static [&'static str],
}

const fn gone(word: &'static str, instead: &'static str) -> Replaced {
    Replaced { word, instead, still: &[] }
}

const fn going(
    word: &'static str,
    instead: &'static str,
    still: &'static [&'static str],
) -> Replaced {
    Replaced { word, instead, still }
}

/// Replaced in names and in comments: nobody means anything else by them.
const EVERYWHERE: &[Replaced] = &[
    gone("bygone", "gc"),
    gone("called_off", "cancelled"),
    gone("checkpoint", "snapshot"),
    gone("note_owed", "refresh_patch_state"),
    gone("patch_pass", "patches::apply"),
    going("recipe", "profile, pinned profile", &["domain", "manager", "store"]),
];

/// Replaced in names alone: sentences may need them.
const IN_NAMES: &[Replaced] = &[
    gone("abandon", "fail_after_panic"),
    going("arrival", "receive", &["manager"]),
    gone("attend", "exec"),
    gone("back_to_observed", "reconcile"),
    gone("census", "inspect"),
    gone("clear_up", "cleanup"),
    gone("course", "progress, way"),
    going("fault", "error", &["app", "domain", "store", "yaml"]),
    gone("endings", "disconnect"),
    gone("for_now", "non_durable"),
    gone("glance", "inspect"),
    gone("in_memory_of", "deletion_record"),
    gone("lane", "session_pool"),
    gone("leave_as_seen", "reconcile"),
    gone("may_follow", "check_can_start"),
    gone("owed", "pending"),
    gone("owing", "pending"),
    gone("run_held", "Op::run"),
    gone("said_of", "last_error_for"),
    gone("stay_deleting", "stay_in_deleting"),
    gone("survey", "inspect"),
    gone("take_back", "cleanup"),
    gone("turn_on", "change_power_state"),
    gone("verbatim", "raw_json"),
    gone("widening", "privilege_diff"),
    gone("Alike", "SameArchives"),
    gone("Course", "Progress, a verb's own way"),
    gone("Deaf", "Disconnected"),
    gone("Dice", "random_u32"),
    gone("Ears", "EventSource"),
    gone("Elsewhere", "external_operations"),
    gone("ExtensionError", "Error"),
    gone("Face", "Context"),
    going("Fault", "Error", &["yaml"]),
    gone("Frozen", "ExpectedRevision"),
    gone("Gate", "FileLock"),
    gone("Handover", "foreground_process"),
    gone("Lane", "SessionPool"),
    gone("Later", "Timer"),
    gone("Link", "Connection"),
    gone("Look", "OutputOptions"),
    gone("Master", "ControlMaster"),
    gone("Meter", "ProgressDisplay"),
    gone("Needle", "SearchPattern"),
    gone("OldRule", "RetentionRule"),
    gone("OperationError", "Error"),
    gone("Owed", "PendingPatches"),
    gone("Paper", "TextBlock"),
    gone("Parts", "Dependencies"),
    gone("Problem", "Error"),
    gone("Remembered", "SavedState"),
    gone("ActionForm", "Form"),
    gone("Sheet", "Form"),
    going("Stop", "CliError", &["manager"]),
];

/// Whether a name or a text has a word.
fn has(text: &str, word: &str) -> bool {
    if word.starts_with(char::is_uppercase) {
        text == word
    } else {
        format!("_{}_", snake(text)).contains(&format!("_{word}_"))
    }
}

/// `PatchPass`, `patch-pass` and `Patch pass` as `patch_pass`.
fn snake(text: &str) -> String {
    let mut found = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if c.is_alphanumeric() {
            if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
                found.push('_');
            }
            found.extend(c.to_lowercase());
        } else if !found.ends_with('_') {
            found.push('_');
        }
        before = c;
    }
    found
}

/// The comments of a source, paragraph by paragraph: the line on which each begins, and its words.
fn comments(source: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut follows = false;
    for (number, line) in source.lines().enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        let at = if is_comment { line.find("//") } else { line.find(" // ") };
        let Some(at) = at else {
            follows = false;
            continue;
        };
        let text = line[at..].trim_start_matches([' ', '/', '!']);
        match found.last_mut().filter(|_| follows && is_comment) {
            Some((_, paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            None => found.push((number + 1, text.to_owned())),
        }
        follows = is_comment;
    }
    found
}

/// Where a file has a replaced word: its place, and the name or comment.
fn uses(file: &SourceFile, source: &str, word: &str, in_comments: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for part in file.module.split("::").filter(|part| has(part, word)) {
        found.push((1, format!("module {part}")));
    }
    for token in file.tokens.iter().filter(|token| has(&token.text, word)) {
        found.push((token.line, token.text.clone()));
    }
    if in_comments {
        let said = comments(source).into_iter().filter(|(_, text)| has(text, word));
        found.extend(said.map(|(line, _)| (line, "a comment".to_owned())));
    }
    found
}

#[test]
fn replaced_words_do_not_come_back() {
    let mut wrong = String::new();
    let mut used = BTreeSet::new();
    let lists = [(EVERYWHERE, true), (IN_NAMES, false)];
    for file in &House::read().files {
        let Some(room) = ROOMS.iter().find(|room| within(&file.module, room)) else { continue };
        let source = read(&root().join(&file.shown));
        for (replaced, in_comments) in
            lists.iter().flat_map(|(list, inside)| list.iter().map(move |word| (word, *inside)))
        {
            for (line, name) in uses(file, &source, replaced.word, in_comments) {
                if replaced.still.contains(room) {
                    used.insert((replaced.word, *room));
                    continue;
                }
                let _ = writeln!(
                    wrong,
                    "{}:{line}: {name} has `{}`: {}",
                    file.shown, replaced.word, replaced.instead
                );
            }
        }
    }
    for replaced in EVERYWHERE.iter().chain(IN_NAMES) {
        for room in replaced.still.iter().filter(|room| !used.contains(&(replaced.word, **room))) {
            let _ = writeln!(wrong, "`{}` is gone from {room}: take the room out", replaced.word);
        }
    }
    assert!(wrong.is_empty(), "words that were replaced (docs/glossary.md):\n{wrong}");
}

#[test]
fn a_word_is_found_in_names_and_not_within_words() {
    assert!(has("PatchPass", "patch_pass") && has("run_patch_pass_again", "patch_pass"));
    assert!(has("was Called\noff.", "called_off") && !has("was recalled off", "called_off"));
    assert!(has("Stop", "Stop") && !has("Stopped", "Stop") && !has("stop", "Stop"));
    assert!(!has("default", "fault") && has("IoFault", "fault"));
    let source = "//! One called\n//! off.\nlet x = 1; // bygone\nlet y = \"https://x\";\n/// Two";
    assert_eq!(
        comments(source),
        [(1, "One called off.".to_owned()), (3, "bygone".to_owned()), (5, "Two".to_owned())]
    );
}

#[test]
fn the_glossary_names_places_that_exist() {
    let glossary = read(&root().join("docs/glossary.md"));
    let mut wrong = String::new();
    let mut checked = 0;
    for row in glossary.lines().filter(|line| line.starts_with("| ")) {
        let Some(places) = row.trim_end_matches([' ', '|']).rsplit(" | ").next() else { continue };
        for place in places.split('`').skip(1).step_by(2) {
            checked += 1;
            if !root().join("src").join(place).exists() {
                let _ = writeln!(wrong, "src/{place}: {row}");
            }
        }
    }
    assert!(checked > 50, "the glossary has no table any more");
    assert!(wrong.is_empty(), "places of the glossary that do not exist:\n{wrong}");
}
