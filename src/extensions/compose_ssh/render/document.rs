//! One YAML file as a JSON value, with the place of every entry.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned, Tagged};

use super::RenderError;

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

thread_local! {
    /// Bytes that the text of the file at hand may still have. The parser bounds how many values aliases become and not how long
    /// these are, and a visitor of values has no state of its own.
    static TEXT_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Tag that changes a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// `!reset`: what lies below goes, and nothing takes its place.
    Reset,
    /// `!override`: what lies below goes, and this takes its place.
    Override,
}

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
    /// `services.web.image` → 1-based line and column.
    pub places: HashMap<String, (u64, u64)>,
}

/// Appends a key to a dotted path.
pub(super) fn child(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
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
    TEXT_LEFT.set(MAX_TEXT);
    let root: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(file, &error))?;
    let mut document = Document {
        file: file.to_owned(),
        value: Value::Null,
        replaced: Vec::new(),
        entries: 0,
        places: HashMap::new(),
    };
    document.entries = (MAX_TEXT - TEXT_LEFT.get()) / ENTRY_BYTES;
    let (raw, _) = document.judge_tag(root, false)?;
    document.value = document.settle(raw, "", Some(&[]))?;
    Ok(document)
}

fn refuse(file: &str, error: &serde_saphyr::Error) -> RenderError {
    let file = file.to_owned();
    let text = error.without_snippet().to_string();
    // The place is reported apart.
    let text = text.split(" at line ").next().unwrap_or_default();
    let place = error.location().map(|location| (location.line(), location.column()));
    let bounded = text.contains("budget breached") || text.contains("limit");
    if bounded && !text.contains("Documents") {
        return too_many(&file);
    }
    RenderError::NotYaml { file, message: sentence(text), place }
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
    /// A value and its tag. Nothing but the value of a key (`replaces`) has a place in a file below.
    fn judge_tag<T>(&self, node: Node<T>, replaces: bool) -> Result<(T, Option<Tag>), RenderError> {
        let Spanned { value: Tagged(value, tag), referenced, .. } = node;
        let (tag, message) = match tag.as_deref() {
            // YAML's own say what the value is already.
            None | Some("!") => return Ok((value, None)),
            Some(core) if core.starts_with("tag:yaml.org,2002:") => return Ok((value, None)),
            Some(name @ "!reset") => (Tag::Reset, misplaced(name)),
            Some(name @ "!override") => (Tag::Override, misplaced(name)),
            Some(other) => {
                return Err(self.refuse(
                    format!("unsupported tag `{other}`; write the value without it"),
                    referenced,
                ));
            }
        };
        if replaces { Ok((value, Some(tag))) } else { Err(self.refuse(message, referenced)) }
    }

    fn refuse(&self, message: String, location: Location) -> RenderError {
        let place = Some((location.line(), location.column()));
        RenderError::NotYaml { file: self.file.clone(), message, place }
    }

    fn note(&mut self, path: &str, location: Location) -> Result<(), RenderError> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(too_many(&self.file));
        }
        self.places.insert(path.to_owned(), (location.line(), location.column()));
        Ok(())
    }

    /// Value without tags; `keys` lead to it, and nothing leads into a list.
    fn settle(
        &mut self,
        raw: Raw,
        path: &str,
        keys: Option<&[&str]>,
    ) -> Result<Value, RenderError> {
        match raw {
            Raw::Scalar(value) => Ok(value),
            Raw::Sequence(items) => {
                let mut settled = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    self.note(&path, item.referenced)?;
                    let (raw, _) = self.judge_tag(item, false)?;
                    settled.push(self.settle(raw, &path, None)?);
                }
                Ok(Value::Array(settled))
            }
            Raw::Mapping(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let location = key.referenced;
                    let (key, _) = self.judge_tag(key, false)?;
                    let (path, keys) =
                        (child(path, &key), keys.map(|above| [above, &[key.as_str()]].concat()));
                    self.note(&path, location)?;
                    let (raw, tag) = self.judge_tag(value, keys.is_some())?;
                    if let (Some(_), Some(keys)) = (tag, &keys) {
                        self.replaced.push(keys.iter().map(|key| (*key).to_owned()).collect());
                    }
                    if tag == Some(Tag::Reset) {
                        continue;
                    }
                    let settled = self.settle(raw, &path, keys.as_deref())?;
                    map.insert(key, settled);
                }
                Ok(Value::Object(map))
            }
        }
    }
}

fn misplaced(tag: &str) -> String {
    format!("`{tag}` stands before the value of a key, as in `ports: {tag} []`; move it there")
}

fn too_many(file: &str) -> RenderError {
    let message =
        "it has more entries, levels or aliases than a compose file needs; split it or write fewer";
    RenderError::TooLarge { file: file.to_owned(), message: message.to_owned() }
}

type Node<T = Raw> = Spanned<Tagged<T>>;

enum Raw {
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<(Node<String>, Node)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

/// Counts text before it is kept.
fn take_text<E: de::Error>(text: &str) -> Result<(), E> {
    let left = TEXT_LEFT
        .get()
        .checked_sub(text.len())
        .ok_or_else(|| E::custom("its text is beyond the limit"))?;
    TEXT_LEFT.set(left);
    Ok(())
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Bool(v)))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(v.into()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::String(v.to_string())))
    }

    fn visit_u128<E>(self, v: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::String(v.to_string())))
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Raw, E> {
        Number::from_f64(v)
            .map(|number| Raw::Scalar(Value::Number(number)))
            .ok_or_else(|| E::custom("a number that is not finite; quote it if a word is meant"))
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Raw, E> {
        take_text(v)?;
        Ok(Raw::Scalar(Value::String(v.to_owned())))
    }

    fn visit_string<E: de::Error>(self, v: String) -> Result<Raw, E> {
        take_text(&v)?;
        Ok(Raw::Scalar(Value::String(v)))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries: Vec<(Node<String>, Node)> = Vec::new();
        while let Some(key) = access.next_key::<Node<String>>()? {
            let Tagged(word, _) = &key.value;
            take_text(word)?;
            if word.chars().count() > MAX_KEY_CHARS {
                return Err(de::Error::custom(format!(
                    "a key is longer than {MAX_KEY_CHARS} characters; shorten it"
                )));
            }
            if word.chars().any(char::is_control) {
                return Err(de::Error::custom(
                    "a key holds a line break or another control character; remove it",
                ));
            }
            entries.push((key, access.next_value()?));
        }
        Ok(Raw::Mapping(entries))
    }
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
        assert_eq!(document.places["services.web.ports"], (3, 5));
        assert_eq!(document.places["services.web.ports[0]"], (4, 9));
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
