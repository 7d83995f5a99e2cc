//! Places and sentences: what YAML itself can get wrong, and what a value can.

mod manifest;
mod profile;
mod routing;

use super::document::MAX_FILE_BYTES;
use super::{Document, read_profile};
use crate::domain::problem::shown;

const HEAD: &str = "id: profile.x\nversion: 1.0.0\nextension: ext.compose-ssh\n";

fn problems(source: &str) -> Vec<String> {
    match read_profile("profiles/x.yaml", source) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// Errors of the fourth line and on.
fn after_head(rest: &str) -> String {
    problems(&format!("{HEAD}{rest}")).join("\n")
}

#[test]
fn every_kind_of_error_has_its_place_and_the_nearest_name() {
    for (rest, wanted) in [
        ("", ""),
        (
            "compose:\n  prots: keep\n",
            "profiles/x.yaml:5:3: unknown key 'prots', did you mean 'ports'?",
        ),
        ("entirely_unknown: 1\n", "profiles/x.yaml:4:1: unknown key 'entirely_unknown'"),
        ("5: x\n", "profiles/x.yaml:4:1: unknown key '5'"),
        (
            "ttl: 4x\n",
            "profiles/x.yaml:4:6: '4x' is not a duration: write for example 90s, 30m, 1h30m or 2d",
        ),
        ("ttl: 4\n", "profiles/x.yaml:4:6: '4' has no unit: write for example 4s, 4m or 4h"),
        (
            "ttl: 1mo\n",
            "profiles/x.yaml:4:6: '1mo': months and years have no fixed length: write for example 90s, 30m, 1h30m or 2d",
        ),
        ("ttl: 1.5s\n", "profiles/x.yaml:4:6: '1.5s': a duration is whole seconds"),
        (
            "ttl: -4h\n",
            "profiles/x.yaml:4:6: '-4h' is not a duration: write for example 90s, 30m, 1h30m or 2d",
        ),
        ("ttl: 99999999w\n", "profiles/x.yaml:4:6: '99999999w' is longer than ten years"),
        ("ttl: 3700d\n", "profiles/x.yaml:4:6: '3700d' is longer than ten years"),
        (
            "ttl: [1]\n",
            "profiles/x.yaml:4:6: 'ttl' must be a duration such as 90s or 4h, not a list",
        ),
        ("ttl:\n", "profiles/x.yaml:4:4: 'ttl' needs a value: a duration, or none"),
        (
            "undo: yes\n",
            "profiles/x.yaml:4:7: 'undo' must be true or false, not 'yes', did you mean 'true'?",
        ),
        (
            "undo: 'true'\n",
            "profiles/x.yaml:4:7: 'undo' must be true or false, not a text; write it without quotes",
        ),
        ("undo: 1\n", "profiles/x.yaml:4:7: 'undo' must be true or false, not a number"),
        (
            "snapshot: {keep: '1'}\n",
            "profiles/x.yaml:4:18: 'snapshot.keep' must be a whole number, not a text; write it without quotes",
        ),
        (
            "snapshot: {keep: -1}\n",
            "profiles/x.yaml:4:18: 'snapshot.keep' must be a whole number from 0",
        ),
        ("snapshot: {keep: 1.5}\n", "profiles/x.yaml:4:18: 'snapshot.keep' must be a whole number"),
        ("snapshot: {keep: 4294967296}\n", "profiles/x.yaml:4:18: 'snapshot.keep' is too large"),
        (
            "snapshot: {mode: paused}\n",
            "profiles/x.yaml:4:18: 'paused' is not one of live, pause, stop, did you mean 'pause'?",
        ),
        ("snapshot: {keep: 1.0}\n", "profiles/x.yaml:4:18: 'snapshot.keep' must be a whole number"),
        (
            "patches: {timeout: 4}\n",
            "profiles/x.yaml:4:20: '4' has no unit: write for example 4s, 4m or 4h",
        ),
        // Nothing is as if the key were not there; in a list it is something.
        ("compose:\nundo:\nmax_ttl:\ninputs: {a: }\n", ""),
        (
            "sync: {exclude: [~]}\n",
            "profiles/x.yaml:4:18: 'sync.exclude[0]' must be a text, not nothing",
        ),
        // Of what is understood by a word that is wrong, nothing more is said.
        (
            "inputs: {a: {kind: choise, choices: [x]}}\n",
            "profiles/x.yaml:4:20: 'choise' is not one of string, directory, integer, boolean, choice, did you mean 'choice'?",
        ),
        ("compose: [1]\n", "profiles/x.yaml:4:10: 'compose' must be a mapping, not a list"),
        (
            "sync: {exclude: .git}\n",
            "profiles/x.yaml:4:17: 'sync.exclude' must be a list, not a text",
        ),
        (
            "sync: {exclude: [a, 5]}\n",
            "profiles/x.yaml:4:21: 'sync.exclude[1]' must be a text, not a number; put it in quotes",
        ),
        ("ttl: 1h\nttl: 2h\n", "profiles/x.yaml:5:1: duplicate key 'ttl', first set at line 4"),
        (
            "config: {a: [{c: 1, c: 2}]}\n",
            "profiles/x.yaml:4:21: duplicate key 'c', first set at line 4",
        ),
        (
            "routing: {max_cost_usd: -1}\n",
            "profiles/x.yaml:4:25: 'routing.max_cost_usd' is out of range for an amount in USD",
        ),
        (
            "routing: {max_cost_usd: 0.0000001}\n",
            "profiles/x.yaml:4:25: 'routing.max_cost_usd' has more than six decimals",
        ),
        (
            "summary: 1.10\n",
            "profiles/x.yaml:4:10: 'summary' must be a text, not a number; put it in quotes",
        ),
    ] {
        assert_eq!(after_head(rest), wanted, "{rest}");
    }
}

#[test]
fn what_is_not_yaml_says_where() {
    for (rest, wanted) in [
        (
            "config: {a: *nope}\n",
            "profiles/x.yaml:4:13: not valid YAML: alias references unknown anchor",
        ),
        (
            "sync: {exclude: [.git, target\n",
            "profiles/x.yaml:4:17: not valid YAML: unclosed bracket '['",
        ),
        (
            " bad: indent\n",
            "profiles/x.yaml:4:5: not valid YAML: mapping values are not allowed in this context",
        ),
        (
            "\tx: 1\n",
            "profiles/x.yaml:3:12: not valid YAML: while scanning a plain scalar, found a tab",
        ),
        (
            "---\na: 1\n",
            "profiles/x.yaml:5:1: the file holds several documents ('---'), one is expected",
        ),
        ("config: &a {b: *a}\n", "profiles/x.yaml:4:16: an alias ('*name') refers to itself"),
        (
            "summary: !custom hi\n",
            "profiles/x.yaml:4:18: not valid YAML: unsupported tag `!custom`",
        ),
        ("summary: a\0b\n", "profiles/x.yaml:4:11: the file holds a NUL character"),
    ] {
        assert_eq!(after_head(rest), wanted, "{rest}");
    }
    assert_eq!(problems(""), ["profiles/x.yaml:1:1: the file is empty"]);
    assert_eq!(problems("[1, 2]"), ["profiles/x.yaml:1:1: the file must be a mapping, not a list"]);
}

#[test]
fn several_problems_come_together_in_the_files_order() {
    let source =
        "version: 1.0\nextenson: ext.x\nttl: 2d\nmax_ttl: 1d\nstop_grace: 1h\nunod: true\n";
    assert_eq!(
        problems(source),
        [
            "profiles/x.yaml:1:1: missing key 'id'",
            "profiles/x.yaml:1:10: 'version' must be a version of three numbers, as in 1.0.0, not a number",
            "profiles/x.yaml:2:1: unknown key 'extenson', did you mean 'extension'?",
            "profiles/x.yaml:3:6: 'ttl' (2d) is above 'max_ttl' (1d)",
            "profiles/x.yaml:5:13: 'stop_grace' is at most 10m",
            "profiles/x.yaml:6:1: unknown key 'unod', did you mean 'undo'?",
        ]
    );
    assert_eq!(
        problems("id: 5\nversion: '1.0'\nextension: ~\n"),
        [
            "profiles/x.yaml:1:5: 'id' must be a text, not a number; put it in quotes",
            "profiles/x.yaml:2:10: '1.0' is not a version of three numbers, as in 1.0.0",
            "profiles/x.yaml:3:12: 'extension' needs a value",
        ]
    );
}

#[test]
fn what_is_the_extensions_is_kept_as_it_is() {
    let profile = read_profile("x.yaml", &format!("{HEAD}config: {{a: ~, b: [1.0, {{c: ~}}]}}\n"));
    assert_eq!(profile.unwrap().config.to_string(), r#"{"a":null,"b":[1.0,{"c":null}]}"#);
}

#[test]
fn the_snippet_marks_the_place() {
    let problems = read_profile("x.yaml", &format!("{HEAD}compose:\n  prots: keep\n")).unwrap_err();
    assert_eq!(
        format!("{:#}", problems[0]),
        "x.yaml:5:3: unknown key 'prots', did you mean 'ports'?\n  5 |   prots: keep\n    |   ^"
    );
    // Columns count characters, so the mark stands right behind letters of several bytes.
    let problems = read_profile("x.yaml", &format!("{HEAD}sync: {{größe: 1}}\n")).unwrap_err();
    assert_eq!(
        format!("{:#}", problems[0]),
        "x.yaml:4:8: unknown key 'größe'\n  4 | sync: {größe: 1}\n    |        ^"
    );
    let long = format!("{HEAD}config: {{a: '{}', a: 1}}\n", "y".repeat(5000));
    let shown = format!("{:#}", read_profile("x.yaml", &long).unwrap_err()[0]);
    assert!(shown.len() < 400, "{shown}");
    assert!(shown.contains("a: 1}\n"), "{shown}");
}

#[test]
fn foreign_words_cannot_write_on_the_terminal() {
    let text = after_head("\"\\e[31mred\\u202e\": x\n");
    assert_eq!(text, "profiles/x.yaml:4:1: unknown key '\u{fffd}[31mred\u{fffd}'");
    assert!(shown(&"k".repeat(10_000)).chars().count() < 100);
    let raw = read_profile("x.yaml", &format!("{HEAD}summary: [\u{1b}]\n")).unwrap_err();
    assert!(!format!("{:#}", raw[0]).contains('\u{1b}'));
}

#[test]
fn growth_without_bound_is_refused_at_once() {
    let mut bomb = vec!["a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned()];
    bomb.extend("bcdefghij".chars().zip("abcdefghi".chars()).map(|(next, last)| {
        format!("{next}: &{next} [{}]\n", vec![format!("*{last}"); 9].join(", "))
    }));
    let long = "s".repeat(500_000);
    let copies = format!("{HEAD}config: {{a: &a '{long}', b: [{}]}}\n", vec!["*a"; 900].join(", "));
    let deep = format!("{HEAD}config: {}", "[".repeat(20_000));
    let wide = format!("{HEAD}config: {{a: [{}1]}}", "1, ".repeat(100_000));
    for source in [bomb.concat(), copies, deep, wide] {
        let started = std::time::Instant::now();
        let found = problems(&source);
        assert!(
            found[0].ends_with(
                "the file is too large or too deep once its aliases ('*name') are expanded"
            ),
            "{found:?}"
        );
        assert!(started.elapsed().as_secs() < 5);
    }
}

#[test]
fn a_file_over_the_limit_or_not_utf_8_is_refused() {
    let big = vec![b'#'; MAX_FILE_BYTES as usize + 1];
    assert_eq!(
        Document::from_bytes("x.yaml", &big).unwrap_err().to_string(),
        "x.yaml: the file is over 1 MiB"
    );
    let at_limit = vec![b'#'; MAX_FILE_BYTES as usize];
    assert!(Document::from_bytes("x.yaml", &at_limit).is_ok());
    let latin = b"id: profile.x\nsummary: caf\xe9\n";
    assert_eq!(
        Document::from_bytes("x.yaml", latin).unwrap_err().to_string(),
        "x.yaml:2:13: the file is not UTF-8 text"
    );
}

#[test]
fn merge_keys_anchors_and_a_byte_order_mark_work() {
    assert_eq!(after_head("<<: {undo: true}\n"), "");
    assert_eq!(after_head("sync: &s {exclude: [a]}\nsnapshot: {exclude: [b]}\n"), "");
    assert_eq!(problems(&format!("\u{feff}{HEAD}")), [""; 0]);
}

#[test]
fn places_are_found_by_path() {
    let document =
        Document::parse("c.yaml", "hosts:\n  a.b:\n    ssh: x\n  a: {ssh: y}\nlist: [1, {k: 2}]\n")
            .unwrap();
    for (path, place) in [
        ("hosts.a.b.ssh", (3, 10)),
        ("hosts.a.ssh", (4, 12)),
        ("hosts.a.nothing", (4, 6)),
        ("list[1].k", (5, 15)),
        ("list[9]", (5, 7)),
        ("", (1, 1)),
    ] {
        let problem = document.problem(path, "m");
        assert_eq!((problem.line, problem.column), place, "{path}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_every_place_is_in_the_text(
        cut in 0_usize..2000,
        piece in "[ -~\n\t\u{e9}]{0,12}",
        at in 0_usize..2000,
    ) {
        let whole = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/compose-e2e.yaml"));
        let mut text: String = whole.chars().take(cut).collect();
        let spot = text.char_indices().map(|(spot, _)| spot).nth(at).unwrap_or(text.len());
        text.insert_str(spot, &piece);
        if let Err(problems) = read_profile("x.yaml", &text) {
            proptest::prop_assert!(!problems.is_empty());
            for problem in problems {
                proptest::prop_assert!(problem.line as usize <= text.lines().count() + 1, "{problem:#}");
            }
        }
    }
}
