//! The lines that the probe's scripts print: `key=value`, then, each after a blank, lines of free text that belong to it.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use crate::domain::text::hex;

/// Key, what stands behind it, and the text beneath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptEntry<'a> {
    /// Before the first `=`.
    pub(crate) key: &'a str,
    /// Behind it, to the end of the line.
    pub(crate) value: &'a str,
    /// The lines beneath, without their first blank.
    pub(crate) body: Vec<&'a str>,
}

impl ScriptEntry<'_> {
    /// The text beneath as it was before it was indented.
    pub(crate) fn text(&self) -> String {
        self.body.join("\n").trim_end_matches('\n').to_owned()
    }
}

/// Splits a script's output. Lines that are neither a key nor text beneath one are skipped: a host may print a banner.
pub(crate) fn entries(text: &str) -> Vec<ScriptEntry<'_>> {
    let mut found: Vec<ScriptEntry<'_>> = Vec::new();
    // Not `lines()`: a carriage return before the line break may be part of a name.
    for line in text.split('\n') {
        if let Some(rest) = line.strip_prefix(' ') {
            if let Some(entry) = found.last_mut() {
                entry.body.push(rest);
            }
        } else if let Some((key, value)) = line.split_once('=') {
            found.push(ScriptEntry { key, value, body: Vec::new() });
        }
    }
    found
}

/// Hash of the texts that were read of something.
pub(super) fn fingerprint(read: &BTreeSet<String>) -> String {
    let mut hash = Sha256::new();
    for text in read {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    hex(&hash.finalize())
}

/// A path below a root.
pub(super) fn below(root: &str, name: &str) -> String {
    format!("{}/{name}", root.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_text_is_never_taken_for_a_key() {
        let found = entries("Welcome!\na=1=2\nb=\n now=3\n  indented\n\nc=x\r\n");
        assert_eq!(
            found,
            [
                ScriptEntry { key: "a", value: "1=2", body: vec![] },
                ScriptEntry { key: "b", value: "", body: vec!["now=3", " indented"] },
                ScriptEntry { key: "c", value: "x\r", body: vec![] },
            ]
        );
        assert_eq!(found[1].text(), "now=3\n indented");
    }
}
