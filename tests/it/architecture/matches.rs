//! Matches: over messages, effects, requests and states each variant has its arm, so that a new one is thought of everywhere.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::rust_source::{House, SourceFile, Token, closing};
use super::within;

/// Enums of which a match has an arm for every variant, and none for the rest.
const NAMED: &[&str] = &["Msg", "Effect", "Request", "Update"];

/// Enums of states and outcomes: a match may say in one arm what holds of all the others, and what it says is not "nothing".
const STATES: &[&str] = &[
    "CancelOutcome",
    "CheckState",
    "DeepOutcome",
    "HostSight",
    "HostState",
    "JobState",
    "LogState",
    "LoopEnd",
    "OperationState",
    "Outcome",
    "PatchState",
    "Record",
    "ShellEnd",
    "SnapshotState",
    "State",
    "Subject",
    "TeardownOutcome",
    "Unsettled",
];

/// Rooms in which a match over anything passes nothing over in silence.
const ROOMS: &[&str] = &["tui", "client", "manager", "cli"];

/// Matches that do so all the same: the file, what they are over, and why.
const PASSED_OVER: &[(&str, &str, &str)] = &[
    (
        "src/tui/console.rs",
        "Effect",
        "the loop runs what needs the terminal, and hands on the rest, each to a match with every variant",
    ),
    (
        "src/tui/update",
        "Action",
        "the keymap hands an overlay actions of its modes; one that means nothing to it does nothing",
    ),
    ("src/tui/update", "KeyCode", "crossterm's keys, of which one without a meaning does nothing"),
    ("src/cli/complete.rs", "Shell", "clap's shells, a list that it may extend"),
];

/// A `match`.
struct Match {
    line: usize,
    /// The enums that its patterns name.
    enums: BTreeSet<String>,
    /// Its arm for all the rest, if it has one.
    rest: Option<Rest>,
}

/// What a match does with all that it does not name.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Does {
    /// `{}` or `()`.
    Nothing,
    /// `None`, `false`, `Vec::new()`, `return …` and the like.
    NextToNothing,
    Something,
}

struct Rest {
    line: usize,
    /// What it does, as far as that says whether it is nothing.
    does: Does,
}

fn matches(file: &SourceFile) -> Vec<Match> {
    let tokens = file.outside_tests();
    let starts = tokens.iter().enumerate().filter(|(_, token)| token.text == "match");
    starts.filter_map(|(at, _)| read_match(&tokens, at)).collect()
}

fn read_match(tokens: &[Token], start: usize) -> Option<Match> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = start + 1;
    while text(at) != "{" {
        at = match text(at) {
            "" | ";" => return None,
            "(" | "[" => closing(tokens, at) + 1,
            _ => at + 1,
        };
    }
    let end = closing(tokens, at);
    let mut found = Match { line: tokens[start].line, enums: BTreeSet::new(), rest: None };
    at += 1;
    while at < end {
        let from = at;
        while at < end && !(text(at) == "=" && text(at + 1) == ">") {
            at = if matches!(text(at), "(" | "[" | "{") { closing(tokens, at) + 1 } else { at + 1 };
        }
        let pattern = &tokens[from..at.min(end)];
        at += 2;
        let body = at;
        if text(at) == "{" {
            at = closing(tokens, at) + 1;
        }
        while at < end && text(at) != "," && (text(body) != "{" || at != closing(tokens, body) + 1)
        {
            at = if matches!(text(at), "(" | "[" | "{") { closing(tokens, at) + 1 } else { at + 1 };
        }
        let named = pattern.split(|token| token.text == "if").next().unwrap_or_default();
        found.enums.extend(enums(tokens, from, named));
        if is_rest(pattern) {
            let does = match (text(body), text(body + 1)) {
                ("{", "}") | ("(", ")") => Does::Nothing,
                ("return", "Err") => Does::Something,
                ("return" | "continue" | "break", _)
                | ("None" | "true" | "false", "," | "}")
                | ("Vec", "::") => Does::NextToNothing,
                _ => Does::Something,
            };
            found.rest = Some(Rest { line: tokens[from].line, does });
        }
        if text(at) == "," {
            at += 1;
        }
    }
    Some(found)
}

/// Enums that a pattern names; `Self` is the type whose `impl` it stands in.
fn enums(tokens: &[Token], at: usize, pattern: &[Token]) -> Vec<String> {
    let named = pattern.windows(2).filter(|pair| pair[1].text == "::").map(|pair| &pair[0].text);
    let types = named.filter(|name| name.starts_with(char::is_uppercase));
    types.map(|name| if name == "Self" { own_type(&tokens[..at]) } else { name.clone() }).collect()
}

fn own_type(before: &[Token]) -> String {
    let head = before.iter().rposition(|token| token.text == "impl").unwrap_or(0);
    let head: Vec<&str> = before[head..]
        .iter()
        .map(|token| token.text.as_str())
        .take_while(|word| *word != "{")
        .collect();
    let of = head.iter().rposition(|word| *word == "for").map_or(head.as_slice(), |at| &head[at..]);
    let name = of.iter().find(|word| word.starts_with(char::is_uppercase));
    name.map_or_else(String::new, |name| (*name).to_owned())
}

/// Whether a pattern takes whatever the others left: `_`, `(_, _)` or a name; with a guard it takes only some of it.
fn is_rest(pattern: &[Token]) -> bool {
    let words: Vec<&str> = pattern.iter().map(|token| token.text.as_str()).collect();
    let name = |word: &str| word.starts_with(|c: char| c.is_lowercase());
    match words.as_slice() {
        [word] => *word == "_" || (name(word) && !matches!(*word, "true" | "false")),
        [] => false,
        words => words.iter().all(|word| matches!(*word, "_" | "(" | ")" | "," | ".")),
    }
}

/// What is wrong with a match of a file, if something is.
fn fault(module: &str, found: &Match) -> Option<String> {
    let rest = found.rest.as_ref()?;
    let of = |names: &[&str]| found.enums.iter().find(|name| names.contains(&name.as_str()));
    if let Some(name) = of(NAMED) {
        return Some(format!("an arm for the rest of {name}"));
    }
    if let Some(name) = of(STATES).filter(|_| rest.does != Does::Something) {
        return Some(format!("an arm that passes over the rest of {name}"));
    }
    let in_room = ROOMS.iter().any(|room| within(module, room));
    (in_room && rest.does == Does::Nothing).then(|| "an arm that does nothing".to_owned())
}

#[test]
fn no_match_passes_over_a_message_an_effect_a_request_or_a_state() {
    let mut wrong = String::new();
    let mut used = BTreeSet::new();
    for file in House::read().files.iter().filter(|file| !file.is_test) {
        for found in matches(file) {
            let Some(fault) = fault(&file.module, &found) else { continue };
            let line = found.rest.as_ref().map_or(found.line, |rest| rest.line);
            let allowed = PASSED_OVER.iter().position(|(path, name, _)| {
                file.shown.starts_with(path) && found.enums.contains(*name)
            });
            match allowed {
                Some(at) => drop(used.insert(at)),
                None => {
                    let _ = writeln!(wrong, "{}:{line}: {fault}", file.shown);
                }
            }
        }
    }
    for (_, (path, name, _)) in PASSED_OVER.iter().enumerate().filter(|(at, _)| !used.contains(at))
    {
        let _ = writeln!(wrong, "{path} passes over no {name} any more: take it out");
    }
    assert!(wrong.is_empty(), "name each variant (rule 6 of docs/architecture.md):\n{wrong}");
}

#[test]
fn an_arm_for_the_rest_is_told_from_one_that_names() {
    let source = "
        impl fmt::Display for State { fn f(&self) -> bool { match self { Self::Ready => true, _ => false } } }
        fn a() { match effect { Effect::A(x) if x == State::Ready => { f(); } other => self.run(other), } }
        fn b() { match (x, Foo { y: 1 }.y) { (Update::A, _) => match z { Some(_) => {} None => {} }, (_, Msg::B { .. }) => {} } }
        fn c() { match key { Key::A => g(|| match h { _ => {} }), Key::B | Key::C => {} _ => {} } }
        fn d() { match state { State::Lost => 1, _ => 2 } }
        #[cfg(test)] fn t() { match effect { Effect::A => {} _ => {} } }";
    let file = SourceFile::new(String::new(), "tui::x".to_owned(), source);
    let faults: Vec<_> = matches(&file)
        .iter()
        .map(|found| fault("tui::x", found).unwrap_or_else(|| "right".to_owned()))
        .collect();
    assert_eq!(
        faults,
        [
            "an arm that passes over the rest of State",
            "an arm for the rest of Effect",
            "right",
            "right",
            "an arm that does nothing",
            "an arm that does nothing",
            "right",
        ]
    );
}
