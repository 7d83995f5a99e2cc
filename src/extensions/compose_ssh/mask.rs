//! Masking of what a tool says: without the values that the rendered file gave it. podman-compose prints each command line, and
//! with them `-e NAME=VALUE`.
//!
//! A value is masked where its name says that it is one (`NAME=VALUE`, `"NAME": "VALUE"`), however short. Anywhere else it is
//! masked where it is long enough to be nothing else, or where its name is that of a secret. A name of a service, an image or
//! a volume is never masked: without those nobody understands what a tool says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::transport::{LINE_LIMIT, Output};

/// Mask in the place of a value.
const MASK: &str = "***";
/// So long is a value that is masked wherever it stands; bytes.
const LONG: usize = 6;
/// So long is one of a secret; bytes.
const LONG_SECRET: usize = 3;
/// Words that many variables have as their value, and that every tool says.
const COMMON: [&str; 10] = [
    "true",
    "false",
    "yes",
    "none",
    "null",
    "default",
    "enabled",
    "disabled",
    "localhost",
    "0.0.0.0",
];
/// A text that was cut within a value ends or begins with so much of it at least; bytes.
const CUT: usize = 4;

/// Masker: the values that are masked in a text.
#[derive(Debug, Default)]
pub(super) struct Masker {
    /// The values of each name in each form in which a tool may write them, the longest first.
    named: BTreeMap<String, Vec<String>>,
    /// Values that are masked wherever they stand, by their first byte, the longest first.
    anywhere: BTreeMap<u8, Vec<String>>,
}

impl Masker {
    /// For the words of who is given this file. `variables`: what the file was filled in with.
    ///
    /// `None`: the text is no file that was rendered here.
    pub(super) fn of_file(yaml: &str, variables: &BTreeMap<String, String>) -> Option<Self> {
        // A comment stands before the JSON.
        let (_, json) = yaml.split_once('\n')?;
        let project: Map<String, Value> = serde_json::from_str(json).ok()?;
        let mut found = Found::default();
        found.variables(variables);
        found.project(&project);
        Some(found.masker())
    }

    /// For what the renderer says of a file that was filled in with these: what is named like a secret.
    pub(super) fn of_variables(variables: &BTreeMap<String, String>) -> Self {
        let mut found = Found::default();
        let secrets = variables.iter().filter(|(name, _)| is_secret(name));
        found.variables(&secrets.map(|(name, value)| (name.clone(), value.clone())).collect());
        found.masker()
    }

    /// A whole text, or a line of one.
    pub(super) fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let before = &text[..text.len() - rest.len()];
            if let Some(length) = self.starts(rest) {
                out.push_str(MASK);
                rest = &rest[length..];
                continue;
            }
            out.push(next);
            rest = &rest[next.len_utf8()..];
            let value = match next {
                '=' => self.assigned(before, rest),
                ':' if rest.starts_with("//") => address(rest),
                ':' => self.member(before, rest),
                ' ' => flagged(before, rest),
                _ => None,
            };
            if let Some((at, length)) = value.filter(|(_, length)| *length > 0) {
                out.push_str(&rest[..at]);
                out.push_str(MASK);
                rest = &rest[at + length..];
            }
        }
        out
    }

    /// A text of which the beginning or the end may have been cut off, within a value.
    pub(super) fn cut(&self, text: &str) -> String {
        let values = || self.anywhere.values().flatten().map(String::as_str);
        let whole =
            |value: &str, length: usize| length < value.len() && value.is_char_boundary(length);
        let begins = values()
            .filter_map(|value| {
                (CUT..value.len()).rev().find(|length| {
                    let at = value.len() - length;
                    value.is_char_boundary(at) && text.starts_with(&value[at..])
                })
            })
            .max();
        let ends = values()
            .filter_map(|value| {
                (CUT..value.len())
                    .rev()
                    .find(|length| whole(value, *length) && text.ends_with(&value[..*length]))
            })
            .max();
        let (from, to) = (begins.unwrap_or(0), text.len() - ends.unwrap_or(0));
        let mask = |cut: Option<usize>| cut.map_or("", |_| MASK);
        match text.get(from..to) {
            Some(middle) => format!("{}{}{}", mask(begins), self.text(middle), mask(ends)),
            None => MASK.to_owned(),
        }
    }

    /// A line as it comes; a long one was cut.
    pub(super) fn line(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        if line.len() < LINE_LIMIT { self.text(&text) } else { self.cut(&text) }
    }

    /// All that a command said.
    pub(super) fn output(&self, output: &Output) -> Output {
        let words = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            if output.truncated { self.cut(&text) } else { self.text(&text) }
        };
        Output {
            stdout: words(&output.stdout).into(),
            stderr: words(&output.stderr).into(),
            ..*output
        }
    }

    /// How much of the text's beginning is a value that is masked anywhere.
    fn starts(&self, text: &str) -> Option<usize> {
        let values = self.anywhere.get(text.as_bytes().first()?)?;
        values.iter().find(|value| text.starts_with(value.as_str())).map(String::len)
    }

    /// How much of the text's beginning is a value of this name.
    fn value_of(&self, name: &str, text: &str) -> Option<usize> {
        self.named.get(name)?.iter().find(|value| text.starts_with(value.as_str())).map(String::len)
    }

    /// The value in `NAME=VALUE`: where it is in what stands behind the sign.
    fn assigned(&self, before: &str, after: &str) -> Option<(usize, usize)> {
        let name = name_before(before);
        if name.is_empty() {
            return None;
        }
        let quote = usize::from(after.starts_with(['"', '\'']));
        let known = self.value_of(name, after).map(|length| (0, length));
        let known = known.or_else(|| Some((quote, self.value_of(name, &after[quote..])?)));
        known.or_else(|| {
            let head =
                before[..before.len() - name.len()].trim_end_matches(['"', '\'', ' ', ',', '=']);
            let given = ["-e", "--env", "--build-arg"].iter().any(|option| head.ends_with(option));
            (given || is_secret(name)).then(|| (quote, word(&after[quote..], after.get(..quote))))
        })
    }

    /// The value in `"NAME": "VALUE"`, and in `NAME: VALUE` where it is known.
    fn member(&self, before: &str, after: &str) -> Option<(usize, usize)> {
        let name = name_before(before.trim_end_matches(['"', '\'']));
        let quoted = before.ends_with(['"', '\'']);
        let blank = after.len() - after.trim_start_matches(' ').len();
        let quote = usize::from(after[blank..].starts_with(['"', '\'']));
        let at = blank + quote;
        if let Some(length) = self.value_of(name, &after[at..]) {
            let ends =
                after[at + length..].chars().next().is_none_or(|next| !next.is_alphanumeric());
            return ((blank > 0 || quoted) && ends).then_some((at, length));
        }
        (quoted && quote == 1 && is_secret(name))
            .then(|| (at, word(&after[at..], after.get(blank..at))))
    }
}

/// The variables in a text of lines, about as compose reads them.
pub(super) fn assignments(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.trim().split_once('='));
    let pairs = lines.map(|(name, value)| {
        let value = value.trim();
        let quoted =
            ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        (name.trim().trim_start_matches("export ").to_owned(), quoted.unwrap_or(value).to_owned())
    });
    pairs.collect()
}

/// The name that a text ends with.
fn name_before(text: &str) -> &str {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    let name = &text[text.trim_end_matches(is_name).len()..];
    name.trim_start_matches('-')
}

/// How long the word is that a text begins with: to its closing quote, or the next blank.
fn word(text: &str, quote: Option<&str>) -> usize {
    let ends = |c: char| match quote.and_then(|quote| quote.chars().next()) {
        Some(quote) => c == quote,
        None => c.is_whitespace() || matches!(c, '"' | '\''),
    };
    text.find(ends).unwrap_or(text.len())
}

/// The password in `//USER:PASSWORD@HOST`.
fn address(after: &str) -> Option<(usize, usize)> {
    let end = after[2..]
        .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?'))
        .map(|at| at + 2);
    let authority = &after[2..end.unwrap_or(after.len())];
    let (user, _) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    Some((2 + name.len() + 1, password.len()))
}

/// The word behind a flag like `--password`.
fn flagged(before: &str, after: &str) -> Option<(usize, usize)> {
    let name = name_before(before);
    let flag = before[..before.len() - name.len()].ends_with('-');
    let plain = name.to_ascii_lowercase().replace(['-', '_'], "");
    let secret = ["password", "passwd", "passphrase", "requirepass", "token", "apikey"];
    if !flag || after.starts_with('-') || !secret.iter().any(|word| plain.ends_with(word)) {
        return None;
    }
    let quote = usize::from(after.starts_with(['"', '\'']));
    Some((quote, word(&after[quote..], after.get(..quote))))
}

/// Whether a variable is named like a secret.
fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 12] = [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "token",
        "credential",
        "apikey",
        "privatekey",
        "accesskey",
        "authkey",
        "basicauth",
        "connectionstring",
    ];
    const WORDS: [&str; 8] = ["pass", "pw", "pwd", "auth", "key", "dsn", "pin", "cookie"];
    let lower = name.to_ascii_lowercase();
    let plain: String = lower.chars().filter(|c| c.is_alphanumeric()).collect();
    if PARTS.iter().any(|part| plain.contains(part)) {
        return true;
    }
    let public = lower.contains("public");
    lower.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word)) && !public
}

/// Values and names of a file and its variables.
#[derive(Default)]
struct Found {
    values: BTreeSet<(String, String)>,
    /// Contents of secrets, which have no name in a tool's words.
    contents: BTreeSet<String>,
    /// Names of services, images, networks and volumes.
    names: BTreeSet<String>,
    /// All other words of the file: who is told of them must recognize them.
    words: String,
}

impl Found {
    fn value(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.values.insert((name.to_owned(), value.to_owned()));
        }
    }

    fn variables(&mut self, variables: &BTreeMap<String, String>) {
        for (name, value) in variables.iter().filter(|(name, _)| !name.starts_with("COMPOSE_")) {
            self.value(name, value);
        }
    }

    fn project(&mut self, project: &Map<String, Value>) {
        for (section, content) in project {
            let Some(content) = content.as_object() else { continue };
            for (name, one) in content {
                self.names.insert(name.clone());
                let Some(one) = one.as_object() else { continue };
                match section.as_str() {
                    "services" => self.service(one),
                    "secrets" => {
                        let text = one.get("content").and_then(Value::as_str);
                        self.contents.extend(text.map(plain));
                    }
                    _ => one
                        .iter()
                        .filter(|(key, _)| *key != "content")
                        .for_each(|(_, value)| self.word(value)),
                }
            }
        }
    }

    fn service(&mut self, service: &Map<String, Value>) {
        for (key, value) in service {
            match key.as_str() {
                "environment" => self.pairs(value),
                // Variables that were filled in stand within these; they are known by themselves.
                "command" | "entrypoint" | "healthcheck" | "post_start" | "pre_stop" => {}
                "labels" | "annotations" => self.labels(value),
                "build" => self.build(value),
                "image" | "container_name" => {
                    self.names.extend(value.as_str().map(plain));
                    self.word(value);
                }
                _ => self.word(value),
            }
        }
    }

    fn build(&mut self, build: &Value) {
        for (key, value) in build.as_object().into_iter().flatten() {
            match key.as_str() {
                "args" => self.pairs(value),
                "labels" => self.labels(value),
                "dockerfile_inline" => {}
                _ => self.word(value),
            }
        }
    }

    fn labels(&mut self, labels: &Value) {
        let ours = |name: &str| {
            ["sandboxer.", "com.docker.", "io.podman."].iter().any(|ours| name.starts_with(ours))
        };
        for (name, value) in
            labels.as_object().into_iter().flatten().filter(|(name, _)| !ours(name))
        {
            self.value(name, &value.as_str().map_or_else(|| value.to_string(), plain));
        }
    }

    fn pairs(&mut self, pairs: &Value) {
        for (name, value) in pairs.as_object().into_iter().flatten() {
            self.value(name, &value.as_str().map_or_else(|| value.to_string(), plain));
        }
    }

    fn word(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.words.push_str(text);
                self.words.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| self.word(item)),
            Value::Object(map) => map.values().for_each(|item| self.word(item)),
            _ => {}
        }
    }

    fn masker(self) -> Masker {
        let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut anywhere = BTreeSet::new();
        for (name, value) in &self.values {
            named.entry(name.clone()).or_default().extend(forms(value));
            let secret = is_secret(name);
            for piece in pieces(value).into_iter().filter(|piece| self.is_told(piece, secret)) {
                anywhere.extend(forms(piece));
            }
        }
        for content in &self.contents {
            for piece in pieces(content).into_iter().filter(|piece| self.is_told(piece, true)) {
                anywhere.extend(forms(piece));
            }
        }
        let mut by_first: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for value in anywhere {
            by_first.entry(value.as_bytes()[0]).or_default().push(value);
        }
        let mut named: BTreeMap<String, Vec<String>> =
            named.into_iter().map(|(name, values)| (name, values.into_iter().collect())).collect();
        for values in named.values_mut().chain(by_first.values_mut()) {
            values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        }
        Masker { named, anywhere: by_first }
    }

    /// Whether a value is masked wherever it stands.
    fn is_told(&self, value: &str, secret: bool) -> bool {
        let long = value.len() >= if secret { LONG_SECRET } else { LONG };
        let common = COMMON.iter().any(|word| value.eq_ignore_ascii_case(word));
        let known = self.names.contains(value) || !secret && self.words.contains(value);
        long && !common && !known
    }
}

/// A value of the file as it is: a `$` is doubled there.
fn plain(text: &str) -> String {
    text.replace("$$", "$")
}

/// A value, and its lines: a tool that prints it prints several.
fn pieces(value: &str) -> Vec<&str> {
    let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
    std::iter::once(value).chain(lines).collect()
}

/// A value as tools write it: as it is, as JSON, as Python's or Go's literal, in a shell's quotes.
fn forms(value: &str) -> BTreeSet<String> {
    let json = serde_json::to_string(value).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let python =
        value.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    let forms = [
        value.to_owned(),
        value.trim().to_owned(),
        json,
        python.replace('\'', "\\'"),
        python,
        value.replace('\'', "'\"'\"'"),
        value.replace('\'', "'\\''"),
    ];
    let doubled = forms.clone().map(|form| form.replace('$', "$$"));
    forms.into_iter().chain(doubled).filter(|form| !form.is_empty()).collect()
}

#[cfg(test)]
mod tests;
