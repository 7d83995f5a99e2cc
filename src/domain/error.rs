//! Errors: a closed list of codes that scripts rely on, and the one type that carries one, from a script on a host to a face.
//!
//! Every layer returns an [`Error`]: a code, one sentence, where it helps a hint, and its causes beside the sentence, never
//! spliced into it. Code that has to decide on more than the code matches on [`Kind`]; `details` are for scripts.
//! `client::problem` has the exit and HTTP status of each code.

use std::error::Error as StdError;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::operation::CancelOutcome;

use crate::domain::words::string_enum;

string_enum! {
    /// The error codes of the contract (section 4). Exit and HTTP status follow from them in `client::problem`.
    pub enum Code {
        /// A fault of sandboxer itself.
        Internal = "internal",
        /// A store's file cannot be parsed; it is left alone.
        StoreCorrupt = "store_corrupt",
        /// A store's file is of another shape, a newer schema, or another program's.
        StoreForeign = "store_foreign",
        /// The backend did not do what was asked.
        OperationFailed = "operation_failed",
        /// The command line, or a request's shape, is wrong.
        Usage = "usage",
        /// An input's value is refused.
        InvalidInput = "invalid_input",
        /// The configuration file is wrong.
        InvalidConfig = "invalid_config",
        /// A profile or extension manifest is wrong.
        InvalidProfile = "invalid_profile",
        /// There is no such thing.
        NotFound = "not_found",
        /// Somebody else changed or took it first.
        Conflict = "conflict",
        /// Another operation holds the sandbox.
        Busy = "busy",
        /// Something depends on it.
        InUse = "in_use",
        /// The host does not answer, or refuses the connection.
        HostUnreachable = "host_unreachable",
        /// The host is not the one of the record, or its key changed.
        HostChanged = "host_changed",
        /// A deadline passed.
        Timeout = "timeout",
        /// The sandboxer server does not answer.
        ServerUnreachable = "server_unreachable",
        /// The balance does not cover the hold.
        InsufficientCredits = "insufficient_credits",
        /// The extension, host or build cannot do this.
        Unsupported = "unsupported",
        /// A program that is needed is not installed where it is needed.
        MissingDependency = "missing_dependency",
        /// A bulk operation in which some failed.
        Partial = "partial",
        /// No or wrong credentials for the server.
        Unauthorized = "unauthorized",
        /// The credentials do not allow it.
        Forbidden = "forbidden",
        /// This console may only look.
        ReadOnly = "read_only",
        /// Too many requests.
        Overloaded = "overloaded",
        /// The operator cancelled it.
        Cancelled = "cancelled",
    }
}

/// Decisions that a code alone does not tell apart. Known where the error is made; not part of its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kind {
    /// Nothing beyond its code.
    #[default]
    Plain,
    /// What it is about is not as it was when the asker looked: nothing was done.
    Stale,
}

/// An error (contract, section 4). `Display` prints the sentence only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    /// Its code, for scripts and for the exit status.
    pub code: Code,
    /// Its sentence, without the causes.
    pub message: String,
    /// The sentences of its causes, outermost first.
    #[serde(default)]
    pub causes: Vec<String>,
    /// What to do next, where that is known.
    pub hint: Option<String>,
    /// Whether the same request may succeed later without a change.
    #[serde(default)]
    pub retryable: bool,
    /// Machine-readable particulars (a field's name, a holder's pid), null when there are none.
    #[serde(default)]
    pub details: serde_json::Value,
    /// What code decides on.
    #[serde(skip)]
    pub kind: Kind,
}

impl Error {
    /// An error of this code with this sentence. `retryable` follows the code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retryable = matches!(
            code,
            Code::Busy
                | Code::HostUnreachable
                | Code::Timeout
                | Code::ServerUnreachable
                | Code::Overloaded
        );
        Self {
            code,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
            retryable,
            details: serde_json::Value::Null,
            kind: Kind::Plain,
        }
    }

    /// An error of sandboxer itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// An input that is refused; `field` names it in `details.field`.
    pub fn invalid_input(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidInput, message).detail("field", field)
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds one machine-readable particular.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        if !self.details.is_object() {
            self.details = serde_json::Value::Object(serde_json::Map::new());
        }
        if let Some(map) = self.details.as_object_mut() {
            map.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Sets whether trying again may help.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Sets what code decides on.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the cause, with its own causes.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let cause = cause.into();
        let mut next: Option<&(dyn StdError + 'static)> = Some(&*cause);
        self.causes.clear();
        while let Some(cause) = next {
            let inner = cause.downcast_ref::<Self>();
            let inner = inner.map(|error| error.causes.as_slice()).unwrap_or_default();
            for text in std::iter::once(&cause.to_string()).chain(inner) {
                if self.causes.last() != Some(text) {
                    self.causes.push(text.clone());
                }
            }
            next = cause.source();
        }
        self
    }

    /// How an operation was left that ended with this, if it was cancelled.
    pub fn cancel_outcome(&self) -> Option<CancelOutcome> {
        CancelOutcome::of(&self.code, &self.details)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}
