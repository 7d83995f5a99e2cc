//! Assertions about values as they are written as JSON: parts of any, and code and words of errors.

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

/// Assertions of a test about a value; each says where it is not so.
pub(crate) trait JsonAssertions: Serialize {
    /// It has these parts: each a path as in `details.kind` or `replicas.0.state`, with what is there; null is the same as nothing.
    #[track_caller]
    fn has(&self, parts: Value) -> &Self {
        let value = serde_json::to_value(self).unwrap();
        for (path, part) in parts.as_object().unwrap() {
            let found = value.pointer(&format!("/{}", path.replace('.', "/")));
            assert_eq!(found.unwrap_or(&Value::Null), part, "{path} of {value:#}");
        }
        self
    }

    /// It is an error of this code.
    #[track_caller]
    fn coded(&self, code: impl Display) -> &Self {
        let value = serde_json::to_value(self).unwrap();
        assert_eq!(value["code"], code.to_string(), "{value:#}");
        self
    }

    /// Its message has these words.
    #[track_caller]
    fn says(&self, words: &str) -> &Self {
        self.has_words("message", words)
    }

    /// Its hint has these words.
    #[track_caller]
    fn hints(&self, words: &str) -> &Self {
        self.has_words("hint", words)
    }

    #[track_caller]
    fn has_words(&self, part: &str, words: &str) -> &Self {
        let value = serde_json::to_value(self).unwrap();
        let text = value[part].as_str().unwrap_or_default();
        assert!(text.contains(words), "{words:?} is not in the {part} of {value:#}");
        self
    }
}

impl<T: Serialize + ?Sized> JsonAssertions for T {}
