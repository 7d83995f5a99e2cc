//! Secrets: text that no screen, log, error or document shows.

use std::fmt;

/// Text that is shown nowhere: no `Display`, no `Serialize`, and a `Debug` without it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that sends it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of somebody who may repeat it, without it.
    pub(crate) fn masked(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[token]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("s3cr3t-token");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "Secret Some(Secret)");
        assert_eq!(secret.masked("no: s3cr3t-token, s3cr3t-token"), "no: [token], [token]");
        assert_eq!(Secret::new("").masked("as it is"), "as it is");
    }
}
