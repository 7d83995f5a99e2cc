//! Variables in compose files: `$V ${V} ${V:-d} ${V-d} ${V:?e} ${V?e} ${V:+r} ${V+r} $$`. Any other `$` is only a `$`, but for one
//! before a brace.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::findings::Findings;
use crate::domain::problem::join;

/// Deepest nesting of defaults: `${A:-${B:-…}}`.
const MAX_DEPTH: usize = 32;
/// Limit of one value, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The variables a file sees. The process environment is never one of them.
pub(super) type Variables = BTreeMap<String, String>;

/// Substitutes `text`. Names that were needed and have no value are added to `unset`.
///
/// # Errors
/// A sentence: a malformed expression, or a required variable without a value.
pub(super) fn substitute(
    text: &str,
    variables: &Variables,
    unset: &mut Vec<String>,
) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut scan = Scan { variables, unset, lenient: false };
    scan.expand(text, &mut out, 0)?;
    Ok(out)
}

/// [`substitute`] for values in environment files, where a `$` before a brace that holds no variable is only a `$`, too.
pub(super) fn substitute_lenient(text: &str, variables: &Variables) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut scan = Scan { variables, unset: &mut Vec::new(), lenient: true };
    scan.expand(text, &mut out, 0)?;
    Ok(out)
}

/// Doubles every `$`, since the engine's compose interpolates the rendered file once more.
pub(in crate::extensions::compose_ssh) fn escape(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('$') => *text = text.replace('$', "$$"),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(map) => map.values_mut().for_each(escape),
        _ => {}
    }
}

/// Reversal of [`escape`].
pub(super) fn unescape(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("$$") => *text = text.replace("$$", "$"),
        Value::Array(items) => items.iter_mut().for_each(unescape),
        Value::Object(map) => map.values_mut().for_each(unescape),
        _ => {}
    }
}

/// Substitutes every string below `value` (keys stay, as in compose). Failures become refusals, missing
/// variables are listed as rewrites. What is filled in is taken off `left`.
pub(super) fn interpolate(
    value: Value,
    variables: &Variables,
    findings: &mut Findings,
    left: &mut usize,
) -> Value {
    let mut walk = Walk { variables, findings, left };
    walk.value(value, "")
}

/// Refusal of what grows beyond all bounds when variables are filled in.
pub(super) const TOO_LONG: &str =
    "the project grows too large when its variables are filled in; use shorter values";

struct Walk<'a> {
    variables: &'a Variables,
    findings: &'a mut Findings,
    left: &'a mut usize,
}

impl Walk<'_> {
    fn value(&mut self, value: Value, path: &str) -> Value {
        match value {
            Value::String(text) if text.contains('$') => Value::String(self.text(&text, path)),
            Value::Array(items) => {
                let walked = items
                    .into_iter()
                    .enumerate()
                    .map(|(i, item)| self.value(item, &format!("{path}[{i}]")));
                Value::Array(walked.collect())
            }
            Value::Object(map) => {
                let walked: Map<_, _> = map
                    .into_iter()
                    .map(|(k, v)| {
                        let v = self.value(v, &join(path, &k));
                        (k, v)
                    })
                    .collect();
                Value::Object(walked)
            }
            other => other,
        }
    }

    fn text(&mut self, text: &str, path: &str) -> String {
        let mut unset = Vec::new();
        let result = substitute(text, self.variables, &mut unset);
        for name in unset {
            self.findings.rewrite(
                path,
                format!(
                    "`{name}` is set neither in .env nor in the profile: replaced with nothing"
                ),
            );
        }
        match result {
            Ok(out) if out.len() <= *self.left => {
                *self.left -= out.len();
                out
            }
            Ok(_) => {
                self.findings.refuse(path, None, TOO_LONG);
                String::new()
            }
            Err(message) => {
                self.findings.refuse(path, None, message);
                String::new()
            }
        }
    }
}

struct Scan<'a> {
    variables: &'a Variables,
    unset: &'a mut Vec<String>,
    lenient: bool,
}

impl Scan<'_> {
    fn expand(&mut self, text: &str, out: &mut String, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "defaults are nested deeper than {MAX_DEPTH}; simplify the expression"
            ));
        }
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            rest = self.reference(after, out, depth)?;
            if out.len() > MAX_OUTPUT {
                return Err(
                    "the value grows beyond 1 MiB when its variables are filled in; use shorter values".to_owned()
                );
            }
        }
        out.push_str(rest);
        Ok(())
    }

    /// Reads what follows a `$` and returns what follows that.
    fn reference<'t>(
        &mut self,
        after: &'t str,
        out: &mut String,
        depth: usize,
    ) -> Result<&'t str, String> {
        if let Some(rest) = after.strip_prefix('$') {
            out.push('$');
            return Ok(rest);
        }
        let name = name_of(after);
        if !name.is_empty() {
            self.plain(name, out);
            return Ok(&after[name.len()..]);
        }
        if let Some(end) = after.strip_prefix('{').and_then(closing_brace) {
            let inner = &after[1..=end];
            match self.braced(inner, out, depth) {
                Err(Braced::Malformed) if self.lenient => out.extend(["${", inner, "}"]),
                Err(Braced::Malformed) => return Err(malformed(&after[..end + 2])),
                Err(Braced::Failed(message)) => return Err(message),
                Ok(()) => {}
            }
            return Ok(&after[end + 2..]);
        }
        if self.lenient || !after.starts_with('{') {
            // Dollar that begins no variable: compose takes it as it is.
            out.push('$');
            return Ok(after);
        }
        Err(malformed(after))
    }

    fn plain(&mut self, name: &str, out: &mut String) {
        match self.variables.get(name) {
            Some(value) => out.push_str(value),
            None => self.unset.push(name.to_owned()),
        }
    }

    fn braced(&mut self, inner: &str, out: &mut String, depth: usize) -> Result<(), Braced> {
        let name = name_of(inner);
        let tail = &inner[name.len()..];
        if name.is_empty() {
            return Err(Braced::Malformed);
        }
        let (colon, tail) = tail.strip_prefix(':').map_or((false, tail), |tail| (true, tail));
        let value = self.variables.get(name).filter(|value| !(colon && value.is_empty()));
        let mut chars = tail.chars();
        match (chars.next(), value) {
            (None, _) if !colon => self.plain(name, out),
            (Some('-' | '?'), Some(value)) => out.push_str(value),
            (Some('+'), None) => {}
            (Some('-'), None) | (Some('+'), Some(_)) => {
                self.expand(chars.as_str(), out, depth + 1).map_err(Braced::Failed)?;
            }
            (Some('?'), None) => return Err(Braced::Failed(required(name, chars.as_str()))),
            _ => return Err(Braced::Malformed),
        }
        Ok(())
    }
}

enum Braced {
    Malformed,
    Failed(String),
}

fn required(name: &str, message: &str) -> String {
    let why =
        if message.trim().is_empty() { String::new() } else { format!(" ({})", message.trim()) };
    format!(
        "`{name}` is required{why}; set it in the workspace's .env or among the profile's variables"
    )
}

fn malformed(found: &str) -> String {
    let shown: String = found.chars().take(24).collect();
    format!("`${shown}` is no variable; write its `$` twice, as in `$${{`, if no variable is meant")
}

fn name_of(text: &str) -> &str {
    let end = text
        .bytes()
        .enumerate()
        .find(|(i, b)| !(b.is_ascii_alphabetic() || *b == b'_' || (*i > 0 && b.is_ascii_digit())))
        .map_or(text.len(), |(i, _)| i);
    &text[..end]
}

/// Index of the `}` that closes a brace already open, counting every brace as compose does.
fn closing_brace(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'{' => open += 1,
            b'}' if open == 1 => return Some(i),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn variables() -> Variables {
        [("A", "a"), ("E", ""), ("LONG_1", "l")].map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    }

    #[test]
    fn every_form_means_what_it_means_to_compose() {
        let cases = [
            ("$A", "a"),
            ("${A}", "a"),
            ("x${A}y$A", "xaya"),
            ("$LONG_1-", "l-"),
            ("$$A", "$A"),
            ("$$$A", "$a"),
            ("$$$$", "$$"),
            ("${N:-d}", "d"),
            ("${N-d}", "d"),
            ("${E:-d}", "d"),
            ("${E-d}", ""),
            ("${A:-d}", "a"),
            ("${A-d}", "a"),
            ("${A:?no}", "a"),
            ("${E?no}", ""),
            ("${A:+r}", "r"),
            ("${E:+r}", ""),
            ("${E+r}", "r"),
            ("${N+r}", ""),
            ("${N:-a${M:-b$A}c}d", "abacd"),
            ("${N:-{\"x\":1}}", "{\"x\":1}"),
            ("${N:-}", ""),
            ("${N:-$$x}", "$x"),
            ("$N", ""),
            ("${N}", ""),
            ("${A:-${X}", "${A:-${X}"),
            ("ä$A→", "äa→"),
            ("^a$", "^a$"),
            ("$1", "$1"),
            ("$2b$10$A", "$2b$10a"),
            ("$-x $(id) $é$", "$-x $(id) $é$"),
        ];
        for (text, want) in cases {
            if text == "${A:-${X}" {
                assert!(substitute(text, &variables(), &mut Vec::new()).is_err());
                continue;
            }
            assert_eq!(
                substitute(text, &variables(), &mut Vec::new()).as_deref(),
                Ok(want),
                "{text}"
            );
        }
    }

    #[test]
    fn errors_are_sentences_that_say_what_to_do() {
        let cases = [
            ("${N:?say why}", "`N` is required (say why); set it"),
            ("${E:?}", "`E` is required; set it"),
            ("${N?}", "`N` is required"),
            ("${}", "`${}` is no variable; write its `$` twice"),
            ("${A", "no variable"),
            ("${1A}", "no variable"),
            ("${A!}", "no variable"),
            ("${A:}", "no variable"),
            ("${A:x}", "no variable"),
        ];
        for (text, want) in cases {
            let message = substitute(text, &variables(), &mut Vec::new()).expect_err(text);
            assert!(message.contains(want), "{text}: {message}");
        }
        let deep = format!("{}{}", "${N:-".repeat(100), "}".repeat(100));
        assert!(substitute(&deep, &variables(), &mut Vec::new()).unwrap_err().contains("nested"));
    }

    #[test]
    fn a_hint_that_is_followed_works() {
        for text in ["${}", "${A", "a ${1A} b", "${A!}", "${A:}", "${A:x} ${A!}"] {
            let doubled = text.replace('$', "$$");
            assert_eq!(
                substitute(&doubled, &variables(), &mut Vec::new()).as_deref(),
                Ok(text),
                "{text}"
            );
        }
    }

    #[test]
    fn names_without_a_value_are_reported_unless_they_have_a_default() {
        let mut unset = Vec::new();
        substitute("$N ${M} ${O:-x} ${P:+x} $A $E", &variables(), &mut unset).unwrap();
        assert_eq!(unset, ["N", "M"]);
    }

    #[test]
    fn growth_is_bounded() {
        let variables: Variables = [("A".to_owned(), "x".repeat(100_000))].into();
        assert!(
            substitute(&"$A".repeat(1000), &variables, &mut Vec::new())
                .unwrap_err()
                .contains("1 MiB")
        );
    }

    #[test]
    fn environment_files_keep_a_lone_dollar() {
        for (text, want) in [
            ("abc$1x", "abc$1x"),
            ("$", "$"),
            ("${", "${"),
            ("${!}", "${!}"),
            ("$A", "a"),
            ("${N:-d}", "d"),
        ] {
            assert_eq!(substitute_lenient(text, &variables()).as_deref(), Ok(want), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[$\\{\\}:?+\\-AEN_1 ä\u{10348}]{0,40}") {
            let _ = substitute(&text, &variables(), &mut Vec::new());
            let _ = substitute_lenient(&text, &variables());
        }

        #[test]
        fn never_panics_on_anything(text in any::<String>()) {
            let _ = substitute(&text, &variables(), &mut Vec::new());
        }

        #[test]
        fn escaped_text_comes_back_unchanged(text in any::<String>()) {
            let mut value = Value::String(text.clone());
            escape(&mut value);
            prop_assert_eq!(&substitute(value.as_str().unwrap(), &variables(), &mut Vec::new()), &Ok(text.clone()));
            unescape(&mut value);
            prop_assert_eq!(value, Value::String(text));
        }
    }
}
