//! Compose file as a value, with the place of every entry.

use std::collections::HashMap;

use serde_json::Value;
use serde_saphyr::DuplicateKeyPolicy;

use super::error::RenderError;
use crate::yaml::tree::{self, Fault, Limits, Place, Span, TagUse};

/// Largest YAML or environment file that is read, in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// Longest key: `PyYAML` refuses a simple key beyond 1024 characters.
const MAX_KEY_CHARS: usize = 512;

/// Most entries of one file, aliases counted as often as they are used.
pub(super) const MAX_ENTRIES: usize = 200_000;

/// So many bytes of text count as an entry.
pub(super) const ENTRY_BYTES: usize = 64;
/// Limit of one file's text with its aliases, in bytes.
const MAX_TEXT: usize = 8 * MAX_BYTES;

/// A parsed file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Path of the file, relative to the workspace.
    pub file: String,
    /// Its content, anchors and merge keys resolved; what is reset is not in it.
    pub value: Value,
    /// The keys that lead to what it resets or replaces in a file below it.
    pub replaced: Vec<Vec<String>>,
    /// Entries that it has, aliases counted as often as they are used, and one more for each [`ENTRY_BYTES`] of text.
    pub entries: usize,
    /// `services.web.image` → where it stands.
    pub places: HashMap<String, Span>,
}

/// Parses `bytes` under limits that no honest compose file meets.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Document, RenderError> {
    if bytes.len() > MAX_BYTES {
        return Err(RenderError::TooLarge {
            file: file.to_owned(),
            message: format!("it has {} bytes; at most {MAX_BYTES} are read", bytes.len()),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| RenderError::NotYaml {
        file: file.to_owned(),
        message: format!("it is not UTF-8 from byte {} on; save it as UTF-8", error.valid_up_to()),
        place: None,
    })?;
    let tree = tree::parse(text, &limits()).map_err(|fault| refuse(file, fault))?;
    let entries = tree.entries + tree.text / ENTRY_BYTES;
    if entries > MAX_ENTRIES {
        return Err(too_many(file));
    }
    let mut document = Document {
        file: file.to_owned(),
        value: tree.value,
        replaced: Vec::new(),
        entries,
        places: tree.places,
    };
    let mut reset: Vec<Vec<String>> = Vec::new();
    for used in tree.tags {
        if !used.keys.as_ref().is_some_and(|keys| reset.iter().any(|gone| keys.starts_with(gone))) {
            document.apply(used, &mut reset)?;
        }
    }
    Ok(document)
}

fn limits() -> Limits {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 1, max_nodes: 20_000, max_events: 100_000, max_aliases: 5_000, max_anchors: 1_000,
            max_depth: 48, max_recorded_anchor_events: 100_000, max_recorded_anchor_bytes: 4 * MAX_BYTES, max_merge_keys: 5_000,
            // One anchor for the settings of hundreds of services is honest: what aliases become is counted below.
            enforce_alias_anchor_ratio: false,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ENTRIES, max_replay_stack_depth: 32 },
        // `restart: no` is a word to every compose, and 0755 is octal.
        strict_booleans: true,
        legacy_octal_numbers: true,
        // `!reset` and `!override` change a merge; all others are refused where they are met.
        reject_unsupported_tags: false,
        with_snippet: false,
    };
    Limits { options, text: MAX_TEXT, entries: MAX_ENTRIES, key: key_fault }
}

fn key_fault(key: &str) -> Option<String> {
    if key.chars().count() > MAX_KEY_CHARS {
        return Some(format!("a key is longer than {MAX_KEY_CHARS} characters; shorten it"));
    }
    key.chars()
        .any(char::is_control)
        .then(|| "a key holds a line break or another control character; remove it".to_owned())
}

fn refuse(file: &str, fault: Fault) -> RenderError {
    let error = match fault {
        Fault::Parser(error) => error,
        Fault::TooMany => return too_many(file),
        Fault::Refused(message, place) => return not_yaml(file, message, place),
    };
    let text = error.without_snippet().to_string();
    // The place is reported apart.
    let text = text.split(" at line ").next().unwrap_or_default();
    let place = error.location().map(|location| (location.line(), location.column()));
    let bounded = text.contains("budget breached") || text.contains("limit");
    if bounded && !text.contains("Documents") {
        return too_many(file);
    }
    RenderError::NotYaml { file: file.to_owned(), message: sentence(text), place }
}

fn not_yaml(file: &str, message: String, place: Place) -> RenderError {
    let place = Some((place.line.into(), place.column.into()));
    RenderError::NotYaml { file: file.to_owned(), message, place }
}

/// The parser's words where a reader would not know what to do about them.
fn sentence(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set Dup").next().unwrap_or(rest);
        format!("the key `{key}` stands twice; keep one")
    } else if text.contains("Documents") {
        "the file holds several documents; keep one".to_owned()
    } else if text.starts_with("recursive references") {
        "an alias refers to itself; write the value out".to_owned()
    } else if text.contains("null into string") || text.starts_with("expected string scalar") {
        "a key is empty or not a word; name it".to_owned()
    } else {
        text.to_owned()
    }
}

impl Document {
    /// Does what a tag asks for. Nothing but the value of a key has a place in a file below.
    fn apply(&mut self, used: TagUse, reset: &mut Vec<Vec<String>>) -> Result<(), RenderError> {
        let TagUse { tag, keys, place } = used;
        let refused = |message| Err(not_yaml(&self.file, message, place));
        match (tag.as_str(), keys) {
            ("!reset", Some(keys)) => {
                self.take(&keys);
                self.replaced.push(keys.clone());
                reset.push(keys);
            }
            ("!override", Some(keys)) => self.replaced.push(keys),
            ("!reset" | "!override", None) => {
                return refused(format!(
                    "`{tag}` stands before the value of a key, as in `ports: {tag} []`; move it there"
                ));
            }
            (other, _) => {
                return refused(format!("unsupported tag `{other}`; write the value without it"));
            }
        }
        Ok(())
    }

    /// Takes a key out.
    fn take(&mut self, keys: &[String]) {
        let Some((last, above)) = keys.split_last() else { return };
        let mapping = above.iter().try_fold(&mut self.value, |value, key| value.get_mut(key));
        if let Some(Value::Object(map)) = mapping {
            map.shift_remove(last);
        }
    }
}

fn too_many(file: &str) -> RenderError {
    let message =
        "it has more entries, levels or aliases than a compose file needs; split it or write fewer";
    RenderError::TooLarge { file: file.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Value {
        parse("compose.yml", text.as_bytes()).unwrap().value
    }

    #[test]
    fn scalars_have_the_types_compose_gives_them() {
        let got = value(
            "a: no\nb: true\nc: 0755\nd: 22:22\ne: 1.5\nf: ~\ng: '1'\nh: 80\ni: 2020-01-01\n9: x\n",
        );
        let want = json!({"a": "no", "b": true, "c": 493, "d": "22:22", "e": 1.5, "f": null, "g": "1", "h": 80, "i": "2020-01-01", "9": "x"});
        assert_eq!(got, want);
    }

    #[test]
    fn anchors_and_merge_keys_are_resolved() {
        let got = value(
            "x-a: &a {image: i, tty: true}\nservices:\n  w:\n    <<: *a\n    tty: false\n  v: *a\n",
        );
        assert_eq!(
            got["services"],
            json!({"w": {"image": "i", "tty": false}, "v": {"image": "i", "tty": true}})
        );
    }

    #[test]
    fn tags_are_kept_with_the_keys_that_lead_to_them() {
        let text = "a: {b: !reset null, c.d: !override [1], e: !override 5}\nf: !reset {g: 1}\nh: !!str 1\n";
        let document = parse("c.yml", text.as_bytes()).unwrap();
        assert_eq!(document.value, json!({"a": {"c.d": [1], "e": 5}, "h": "1"}));
        let replaced: Vec<_> = document.replaced.iter().map(|keys| keys.join("/")).collect();
        assert_eq!(replaced, ["a/b", "a/c.d", "a/e", "f"]);
    }

    #[test]
    fn an_anchor_may_be_used_as_often_as_it_has_to() {
        let mut text = String::from("x-a: &a {image: i, tty: true}\nservices:\n");
        for n in 0..400 {
            let _ = writeln!(text, "  s{n}:\n    <<: *a\n    environment: *a");
        }
        assert_eq!(value(&text)["services"]["s399"]["image"], "i");
    }

    #[test]
    fn places_point_at_the_key() {
        let document = parse("c.yml", b"services:\n  web:\n    ports:\n      - 80\n").unwrap();
        let at = |path: &str| {
            let place = document.places[path].key;
            (place.line, place.column)
        };
        assert_eq!(at("services.web.ports"), (3, 5));
        assert_eq!(at("services.web.ports[0]"), (4, 9));
    }

    #[test]
    fn hostile_input_is_an_error_with_a_place_and_never_a_panic() {
        let deep = format!("a: {}1{}", "[".repeat(20_000), "]".repeat(20_000));
        let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for n in 1..12 {
            let alias = vec![format!("*a{}", n - 1); 10].join(",");
            let _ = writeln!(laughs, "a{n}: &a{n} [{alias}]");
        }
        let long =
            format!("a: &a '{}'\nb: [{}]\n", "x".repeat(900_000), vec!["*a"; 4_000].join(","));
        let long_key = format!("{}: 1", "k".repeat(2000));
        let cases: &[(&str, &str)] = &[
            ("unclosed", "a: [1, 2"),
            ("tab", "a:\n\t- b"),
            ("duplicate", "a: 1\na: 2\n"),
            ("two documents", "a: 1\n---\nb: 2\n"),
            ("tag", "a: !mine null\n"),
            ("tagged key", "!reset a: 1\n"),
            ("tagged entry", "a: [!reset 1]\n"),
            ("tagged below an entry", "a: [{b: !override 1}]\n"),
            ("tagged file", "!override {a: 1}\n"),
            ("deep", &deep),
            ("laughs", &laughs),
            ("one long laugh", &long),
            ("long key", &long_key),
            ("key with newline", "\"a\\nb\": 1"),
            ("map key", "? {a: 1}\n: 2"),
            ("null key", "~: 1"),
            ("infinite", "a: .inf"),
            ("self alias", "a: &a [*a]"),
        ];
        for (name, text) in cases {
            let error = parse("compose.yml", text.as_bytes()).expect_err(name);
            assert!(error.to_string().contains("compose.yml"), "{name}: {error}");
            assert!(!error.to_string().contains("Option"), "{name}: {error}");
        }
    }

    #[test]
    fn size_and_encoding_are_checked_first() {
        assert!(matches!(parse("c", &vec![b' '; 20 << 20]), Err(RenderError::TooLarge { .. })));
        assert!(parse("c", b"a: \xff").unwrap_err().to_string().contains("UTF-8"));
    }
}
