//! Words: those that were replaced (`docs/glossary.md`) do not come back.

use std::fmt::Write as _;

use super::rust_source::{House, read, root};
use super::within;

/// Word that is not used any more: in small letters with `_` as a part of a name, with a capital as the whole name of a type;
/// and what is said instead.
type Replaced = (&'static str, &'static str);

/// Replaced in names and in comments: nobody means anything else by them.
const EVERYWHERE: &[Replaced] = &[
    ("bygone", "gc"),
    ("called_off", "cancelled"),
    ("checkpoint", "snapshot"),
    ("note_owed", "refresh_patch_state"),
    ("patch_pass", "patches::apply"),
    ("recipe", "profile, pinned profile"),
];

/// Replaced in names alone: sentences may need them.
const IN_NAMES: &[Replaced] = &[
    ("abandon", "fail_after_panic"),
    ("arrival", "receive"),
    ("attend", "exec"),
    ("back_to_observed", "reconcile"),
    ("census", "inspect"),
    ("clear_up", "cleanup"),
    ("course", "progress, way"),
    ("fault", "error"),
    ("endings", "disconnect"),
    ("for_now", "non_durable"),
    ("glance", "inspect"),
    ("in_memory_of", "deletion_record"),
    ("lane", "session_pool"),
    ("leave_as_seen", "reconcile"),
    ("may_follow", "check_can_start"),
    ("owed", "pending"),
    ("owing", "pending"),
    ("run_held", "Op::run"),
    ("said_of", "last_error_for"),
    ("stay_deleting", "stay_in_deleting"),
    ("survey", "inspect"),
    ("take_back", "cleanup"),
    ("turn_on", "change_power_state"),
    ("verbatim", "raw_json"),
    ("widening", "privilege_diff"),
    ("Alike", "SameArchives"),
    ("Course", "Progress, a verb's own way"),
    ("Deaf", "Disconnected"),
    ("Dice", "random_u32"),
    ("Ears", "EventSource"),
    ("Elsewhere", "external_operations"),
    ("ExtensionError", "Error"),
    ("Face", "Context"),
    ("Fault", "Error"),
    ("Frozen", "ExpectedRevision"),
    ("Gate", "FileLock"),
    ("Handover", "foreground_process"),
    ("Lane", "SessionPool"),
    ("Later", "Timer"),
    ("Master", "ControlMaster"),
    ("Meter", "ProgressDisplay"),
    ("Needle", "SearchPattern"),
    ("OldRule", "RetentionRule"),
    ("OperationError", "Error"),
    ("Owed", "PendingPatches"),
    ("Paper", "TextBlock"),
    ("Parts", "Dependencies"),
    ("Problem", "Error"),
    ("Remembered", "SavedState"),
    ("ActionForm", "Form"),
    ("Sheet", "Form"),
    ("Way", "OpenTransport"),
    ("Keeper", "ArchiveStore"),
    ("Kept", "RawJson"),
    ("shelf", "archive_dir"),
];

/// Words that no comment of an item opens with: its noun does.
const NO_NOUNS: &[&str] = &["What", "One", "Who", "Those", "It", "As"];

/// Files in which comments are the help of commands and flags.
const HELP: &[&str] = &["cli::args", "cli::global"];

/// Name or text, with its words in small letters between `_`.
struct Spoken {
    text: String,
    words: String,
}

impl Spoken {
    fn of(text: &str) -> Self {
        Self { text: text.to_owned(), words: format!("_{}_", snake(text)) }
    }

    fn has(&self, word: &str) -> bool {
        if word.starts_with(char::is_uppercase) {
            self.text == word
        } else {
            self.words.contains(&format!("_{word}_"))
        }
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

#[test]
fn replaced_words_do_not_come_back() {
    let mut wrong = String::new();
    for file in &House::read().files {
        let source = read(&root().join(&file.shown));
        let modules = file.module.split("::").map(|part| (1, Spoken::of(part)));
        let tokens = file.tokens.iter().map(|token| (token.line, Spoken::of(&token.text)));
        let names: Vec<_> = modules.chain(tokens).collect();
        let comments: Vec<_> =
            comments(&source).into_iter().map(|(line, text)| (line, Spoken::of(&text))).collect();
        let lists = [(EVERYWHERE, &names), (EVERYWHERE, &comments), (IN_NAMES, &names)];
        for ((word, instead), spoken) in
            lists.iter().flat_map(|(list, spoken)| list.iter().map(move |word| (word, *spoken)))
        {
            for (line, found) in spoken.iter().filter(|(_, spoken)| spoken.has(word)) {
                let (shown, text) = (&file.shown, &found.text);
                let _ = writeln!(wrong, "{shown}:{line}: `{word}` in {text:?}: {instead}");
            }
        }
    }
    assert!(wrong.is_empty(), "words that were replaced (docs/glossary.md):\n{wrong}");
}

#[test]
fn comments_open_with_their_noun() {
    let mut wrong = String::new();
    for file in &House::read().files {
        if HELP.iter().any(|room| within(&file.module, room)) {
            continue;
        }
        let source = read(&root().join(&file.shown));
        let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
        for (line, text) in comments(&source) {
            let is_of_item = ["///", "//!"].iter().any(|mark| lines[line - 1].starts_with(mark));
            let opening = text.split(' ').next().unwrap_or_default();
            if is_of_item && NO_NOUNS.contains(&opening) {
                let _ = writeln!(wrong, "{}:{line}: {text}", file.shown);
            }
        }
    }
    assert!(wrong.is_empty(), "comments that open with no noun:\n{wrong}");
}

#[test]
fn a_word_is_found_in_names_and_not_within_words() {
    let has = |text: &str, word: &str| Spoken::of(text).has(word);
    assert!(has("PatchPass", "patch_pass") && has("run_patch_pass_again", "patch_pass"));
    assert!(has("was Called\noff.", "called_off") && !has("was recalled off", "called_off"));
    assert!(has("Keeper", "Keeper") && !has("Keepers", "Keeper") && !has("keeper", "Keeper"));
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
