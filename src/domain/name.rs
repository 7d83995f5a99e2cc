//! Ids and names: one newtype each, from one macro, and the rules that a chosen one must keep.

use crate::domain::error::Error;

/// Defines a newtype over a string: ordered, hashable, serialised as the bare string.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text without checking it (a stored or already checked one).
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

id! {
    /// A sandbox's id: 8 lowercase hex digits, or what `--id` set.
    SandboxId
}
id! {
    /// A snapshot's id: `snap-` plus 8 hex digits.
    SnapshotId
}
id! {
    /// A patch's id: `pat-` plus 8 hex digits.
    PatchId
}
id! {
    /// An operation's id: `op-` plus 8 hex digits.
    OperationId
}
id! {
    /// A reap plan's id: `plan-` plus 8 hex digits.
    PlanId
}
id! {
    /// An event's id: a UUID.
    EventId
}
id! {
    /// An installation's id; resources on hosts carry it.
    OwnerId
}
id! {
    /// A profile's id, such as `profile.compose-e2e`.
    ProfileId
}
id! {
    /// An extension's id, such as `ext.compose-ssh`.
    ExtensionId
}
id! {
    /// A host's name as configured. Compare with [`HostName::same`]: case does not count.
    HostName
}

impl HostName {
    /// The host that always exists: this machine, without SSH.
    pub const LOCAL: &'static str = "local";

    /// Whether both name the same host.
    pub fn same(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// Whether this is the machine sandboxer runs on.
    pub fn is_local(&self) -> bool {
        self.same(Self::LOCAL)
    }
}

impl SandboxId {
    /// The name of everything that belongs to it on a host: directory and compose project.
    pub fn project(&self) -> String {
        format!("sbx-{}", self.0)
    }

    /// An id of 8 hex digits from 32 random bits.
    pub fn from_random(bits: u32) -> Self {
        Self(format!("{bits:08x}"))
    }

    /// Checks an id that an operator chooses for a new sandbox: none that reads as a snapshot's, a patch's, an operation's or a plan's.
    pub(crate) fn choose(text: &str) -> Result<Self, Error> {
        let kinds = ["snap-", "pat-", "op-", "plan-"];
        if let Some(kind) = kinds.iter().find(|kind| text.strip_prefix(**kind).is_some_and(is_hex8))
        {
            let message = format!("a sandbox id may not be `{kind}` and 8 hex digits");
            return Err(Error::invalid_input("id", message)
                .hint("choose an id with another letter or length"));
        }
        Self::parse(text)
    }

    /// Checks an id: `^[a-z0-9][a-z0-9-]{0,30}$`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let head = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let body = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if head && body && text.len() <= 31 {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::invalid_input(
                "id",
                "a sandbox id is 1 to 31 characters of a-z, 0-9 and '-', and begins with a letter or digit",
            ))
        }
    }
}

impl OperationId {
    /// An id from 32 random bits.
    pub fn from_random(bits: u32) -> Self {
        Self(format!("op-{bits:08x}"))
    }
}

impl SnapshotId {
    /// An id from 32 random bits.
    pub fn from_random(bits: u32) -> Self {
        Self(format!("snap-{bits:08x}"))
    }

    /// Whether a text is one: `snap-` plus 8 hex digits. What comes from elsewhere becomes a path on hosts.
    pub(crate) fn is_one(text: &str) -> bool {
        text.strip_prefix("snap-").is_some_and(is_hex8)
    }
}

impl PlanId {
    /// An id from 32 random bits.
    pub fn from_random(bits: u32) -> Self {
        Self(format!("plan-{bits:08x}"))
    }

    /// Whether a text is one. What comes from elsewhere becomes a file's name.
    pub(crate) fn is_one(text: &str) -> bool {
        text.strip_prefix("plan-").is_some_and(is_hex8)
    }
}

impl PatchId {
    /// An id from 32 random bits.
    pub fn from_random(bits: u32) -> Self {
        Self(format!("pat-{bits:08x}"))
    }
}

/// Checks a sandbox's or snapshot's name: `^[a-z0-9][a-z0-9_.-]{0,62}$`, and nothing that reads as an id.
pub fn check_name(text: &str) -> Result<(), Error> {
    let head = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let body = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-'));
    if !(head && body && text.len() <= 63) {
        return Err(Error::invalid_input(
            "name",
            "a name is 1 to 63 characters of a-z, 0-9, '_', '.' and '-', and begins with a letter or digit",
        ));
    }
    let bare = text.strip_prefix("snap-").unwrap_or(text);
    if is_hex8(bare) {
        return Err(Error::invalid_input(
            "name",
            "a name may not look like an id (8 hex digits, or `snap-` and these)",
        )
        .hint("choose a name with another letter or length"));
    }
    Ok(())
}

/// Whether a text is 8 lowercase hex digits, as a random id is.
pub(crate) fn is_hex8(text: &str) -> bool {
    text.len() == 8 && text.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

/// Checks a label's key and value: key `^[a-z0-9][a-z0-9_./-]{0,62}$`, value at most 255 bytes without control
/// characters. `sandboxer.` is reserved for what is written on hosts.
pub(crate) fn check_label(key: &str, value: &str) -> Result<(), Error> {
    let head = key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let body = key.chars().all(|c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-' | '/')
    });
    if !(head && body && key.len() <= 63) {
        return Err(Error::invalid_input(
            "label",
            "a label's key is 1 to 63 characters of a-z, 0-9, '_', '.', '/' and '-', and begins with a letter or digit",
        ));
    }
    if key.starts_with("sandboxer.") {
        return Err(Error::invalid_input(
            "label",
            "labels that begin with 'sandboxer.' are sandboxer's own",
        ));
    }
    // A word that looks like protection and protects nothing would cost somebody a sandbox.
    if key == "protect" && !matches!(value, "true" | "false") {
        return Err(Error::invalid_input("label", "the label 'protect' is 'true' or 'false'"));
    }
    if value.len() > 255 || value.chars().any(char::is_control) {
        return Err(Error::invalid_input(
            "label",
            "a label's value is at most 255 bytes without control characters",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::error::Code;

    #[test]
    fn ids_and_names_keep_the_contracts_patterns() {
        for good in ["a", "0", "a-b", "a1b2c3d4", &"a".repeat(31)] {
            assert!(SandboxId::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "-a", "A", "a b", "a\n", "$(x)", "a_b", "ä", &"a".repeat(32), &"a".repeat(10_000)]
        {
            assert!(SandboxId::parse(bad).is_err(), "{bad}");
            assert!(SandboxId::choose(bad).is_err(), "{bad}");
        }
        for taken in ["snap-12345678", "pat-12345678", "op-deadbeef", "plan-deadbeef"] {
            let error = SandboxId::choose(taken).unwrap_err();
            assert_eq!(
                (error.code, error.details["field"].as_str()),
                (Code::InvalidInput, Some("id"))
            );
            assert!(SandboxId::parse(taken).is_ok(), "{taken}: one that is there can be destroyed");
        }
        for fine in ["snap-1", "plan-b", "op-deadbeef0", "deadbeef"] {
            assert!(SandboxId::choose(fine).is_ok(), "{fine}");
        }
        for good in ["my-env", "a.b_c-d", "deadbeef1", &"n".repeat(63)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "-x",
            ".x",
            "deadbeef",
            "snap-deadbeef",
            "Up",
            "a b",
            "a'b",
            "\u{1b}[31m",
            &"n".repeat(64),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_refuse_control_characters_and_our_prefix() {
        assert!(check_label("protect", "true").is_ok());
        assert!(check_label("team/zone", "$(reboot) 'x' \"y\"").is_ok());
        for (key, value) in [
            ("", "x"),
            ("-k", "x"),
            ("sandboxer.id", "x"),
            ("k", "a\nb"),
            ("k", "\u{1b}[2J"),
            ("k", &"v".repeat(256)),
        ] {
            assert!(check_label(key, value).is_err(), "{key}={value}");
        }
    }
}
