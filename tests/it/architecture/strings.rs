//! Strings: nothing is decided on a detail by its name, on a message, or on a sentence, but where one is read.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::rust_source::{House, SourceFile, Token};

/// Fields whose entries have names: an entry is read in one place, which hands on what it means.
const BAGS: &[&str] = &["details", "data"];

/// Sentences for people.
const SENTENCES: &[&str] =
    &["message", "hint", "error", "problem", "fault", "stderr", "finding", "patch_error"];

/// Questions to a text.
const QUESTIONS: &[&str] = &[
    "contains",
    "starts_with",
    "ends_with",
    "strip_prefix",
    "strip_suffix",
    "find",
    "split_once",
    "eq_ignore_ascii_case",
    "matches",
];

/// Places that look into one all the same: the file, what it asks, and why.
const READERS: &[(&str, &str, &str)] = &[
    ("src/domain/error.rs", "details", "the one place that reads what an error carries"),
    ("src/domain/event.rs", "data", "the one place that reads an event's particulars"),
    (
        "src/transport/ssh/session_pool.rs",
        "to_string",
        "the one place that reads why the mux refused a session: the library has only a sentence",
    ),
    ("src/transport/transfer/rsync.rs", "stderr", "the one place that reads rsync's words"),
    (
        "src/cli/bulk.rs",
        "message",
        "decides on nothing but whether a line says twice what it is about: errors do not know what they are about",
    ),
    (
        "src/extensions/compose_ssh/host.rs",
        "finding",
        "second half: what was found of a runtime becomes a variant, of which being silent is one",
    ),
];

/// Every place where code looks into a bag or a sentence.
fn decisions(tokens: &[Token]) -> Vec<(usize, String)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let word = token.text.as_str();
        let next = [text(at + 1), text(at + 2), text(at + 3)];
        let is_field = at > 0 && text(at - 1) == ".";
        if BAGS.contains(&word) {
            let written = text(at + 4) == "=" && text(at + 5) != "=";
            match next {
                ["[", "\"", "]"] if !written => found.push((token.line, format!("{word}[\"…\"]"))),
                [".", "get" | "pointer", "("] if is_field => {
                    found.push((token.line, format!("{word}.{}(…)", text(at + 2))));
                }
                _ => {}
            }
        }
        if SENTENCES.contains(&word) {
            match next {
                [".", question, "("] if QUESTIONS.contains(&question) => {
                    found.push((token.line, format!("{word}.{question}(…)")));
                }
                ["=" | "!", "=", _] if is_field && text(at + 3) != "None" => {
                    found.push((token.line, format!("{word} {}=", text(at + 1))));
                }
                _ => {}
            }
        }
        if word == "to_string"
            && next[..2] == ["(", ")"]
            && text(at + 3) == "."
            && QUESTIONS.contains(&text(at + 4))
        {
            found.push((token.line, format!("to_string().{}(…)", text(at + 4))));
        }
    }
    found
}

#[test]
fn nothing_is_decided_on_strings() {
    let mut wrong = String::new();
    let mut used = BTreeSet::new();
    for file in House::read().files.iter().filter(|file| !file.is_test) {
        for (line, what) in decisions(&file.outside_tests()) {
            let allowed = READERS
                .iter()
                .position(|(path, asked, _)| file.shown == *path && what.starts_with(asked));
            match allowed {
                Some(at) => drop(used.insert(at)),
                None => {
                    let _ = writeln!(wrong, "{}:{line}: {what}", file.shown);
                }
            }
        }
    }
    for (at, (path, asked, _)) in READERS.iter().enumerate() {
        if !used.contains(&at) {
            let _ = writeln!(wrong, "{path} reads no {asked} any more: take it out");
        }
    }
    assert!(wrong.is_empty(), "a decision is a variant (rule 7 of docs/architecture.md):\n{wrong}");
}

#[test]
fn a_decision_on_a_string_is_told_from_writing_and_showing_one() {
    let source = r#"
        fn a() { if error.details["step"] == "up" {} data["was"] = x; body.insert("data", y); f(details.get("x")); }
        fn b() { event.data.get("host"); self.details.get(KEY)?; let data = &bytes; data.get(1..2); }
        fn c() { problem.message.contains(&id); show(&problem.message); fault.to_string().starts_with("x"); message.len(); }
        fn d() { problem.message == "gone"; left.message != None; record.patch_error.is_none(); Form { message: x }; }
        #[cfg(test)] fn t() { assert!(error.message.contains("x")); }"#;
    let file = SourceFile::new(String::new(), "x".to_owned(), source);
    let found: Vec<String> =
        decisions(&file.outside_tests()).into_iter().map(|(_, what)| what).collect();
    assert_eq!(
        found,
        [
            "details[\"…\"]",
            "data.get(…)",
            "details.get(…)",
            "message.contains(…)",
            "to_string().starts_with(…)",
            "message ==",
        ]
    );
}
