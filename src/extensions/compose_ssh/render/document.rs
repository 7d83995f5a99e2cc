//! One YAML file as a JSON value, with the place of every entry.

use std::collections::HashMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::RenderError;

/// Largest YAML or environment file that is read, in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// Longest key: `PyYAML` refuses a simple key beyond 1024 characters.
const MAX_KEY_CHARS: usize = 512;

/// A parsed file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Path of the file, relative to the workspace.
    pub file: String,
    /// Its content, anchors and merge keys resolved.
    pub value: Value,
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
            max_depth: 48, max_recorded_anchor_events: 100_000, max_recorded_anchor_bytes: 4 * MAX_BYTES, max_merge_keys: 2_000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000, max_replay_stack_depth: 32 },
        // `restart: no` is a word to every compose, and 0755 is octal.
        strict_booleans: true,
        legacy_octal_numbers: true,
        // `!reset` and `!override` change a merge: ignoring them would start something else than was asked for.
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let root: Spanned<Raw> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| refuse(file, &error))?;
    let mut document = Document { file: file.to_owned(), value: Value::Null, places: HashMap::new() };
    document.value = settle(root.value, "", &mut document.places);
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
        let message = "it has more entries, levels or aliases than a compose file needs; split it or write fewer";
        return RenderError::TooLarge { file, message: message.to_owned() };
    }
    RenderError::NotYaml { file, message: sentence(text), place }
}

/// The parser's words where a reader would not know what to do about them.
fn sentence(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set Dup").next().unwrap_or(rest);
        format!("the key `{key}` stands twice; keep one")
    } else if text.starts_with("unsupported tag") {
        format!("{text}; write the value without it")
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

fn settle(raw: Raw, path: &str, places: &mut HashMap<String, (u64, u64)>) -> Value {
    match raw {
        Raw::Scalar(value) => value,
        Raw::Sequence(items) => {
            let settled = items.into_iter().enumerate().map(|(index, item)| {
                let path = format!("{path}[{index}]");
                places.insert(path.clone(), (item.referenced.line(), item.referenced.column()));
                settle(item.value, &path, places)
            });
            Value::Array(settled.collect())
        }
        Raw::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let path = child(path, &key.value);
                places.insert(path.clone(), (key.referenced.line(), key.referenced.column()));
                map.insert(key.value, settle(value.value, &path, places));
            }
            Value::Object(map)
        }
    }
}

enum Raw {
    Scalar(Value),
    Sequence(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
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

    fn visit_str<E>(self, v: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::String(v.to_owned())))
    }

    fn visit_string<E>(self, v: String) -> Result<Raw, E> {
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
        let mut entries: Vec<(Spanned<String>, Spanned<Raw>)> = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            if key.value.chars().count() > MAX_KEY_CHARS {
                return Err(de::Error::custom(format!("a key is longer than {MAX_KEY_CHARS} characters; shorten it")));
            }
            if key.value.chars().any(char::is_control) {
                return Err(de::Error::custom("a key holds a line break or another control character; remove it"));
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
        let got = value("a: no\nb: true\nc: 0755\nd: 22:22\ne: 1.5\nf: ~\ng: '1'\nh: 80\ni: 2020-01-01\n9: x\n");
        let want = json!({"a": "no", "b": true, "c": 493, "d": "22:22", "e": 1.5, "f": null, "g": "1", "h": 80, "i": "2020-01-01", "9": "x"});
        assert_eq!(got, want);
    }

    #[test]
    fn anchors_and_merge_keys_are_resolved() {
        let got = value("x-a: &a {image: i, tty: true}\nservices:\n  w:\n    <<: *a\n    tty: false\n  v: *a\n");
        assert_eq!(got["services"], json!({"w": {"image": "i", "tty": false}, "v": {"image": "i", "tty": true}}));
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
        let long_key = format!("{}: 1", "k".repeat(2000));
        let cases: &[(&str, &str)] = &[
            ("unclosed", "a: [1, 2"),
            ("tab", "a:\n\t- b"),
            ("duplicate", "a: 1\na: 2\n"),
            ("two documents", "a: 1\n---\nb: 2\n"),
            ("tag", "a: !reset null\n"),
            ("deep", &deep),
            ("laughs", &laughs),
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
