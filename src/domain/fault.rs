//! What can go wrong, as a closed list of codes that scripts rely on, and the error type that carries one.
//!
//! Every layer returns a [`Fault`]: a code the caller can act on, one sentence, where it helps a hint, and the
//! cause as [`std::error::Error::source`], never spliced into the sentence. `client::problem` turns it into what
//! a face prints.

use std::error::Error;
use std::fmt;

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

/// An error with a code. Display prints the sentence only; the cause is the source.
#[derive(Debug)]
pub struct Fault {
    /// What kind of error, for scripts and for the exit status.
    pub code: Code,
    /// One sentence, without its cause.
    pub message: String,
    /// What to do next, where that is known.
    pub hint: Option<String>,
    /// Machine-readable particulars (a field's name, a holder's pid), `null` when there are none.
    pub details: serde_json::Value,
    /// Whether the same request may succeed later without a change.
    pub retryable: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Fault {
    /// A fault of this code with this sentence. `retryable` follows the code.
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
            hint: None,
            details: serde_json::Value::Null,
            retryable,
            source: None,
        }
    }

    /// A fault of sandboxer itself.
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

    /// Sets the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The sentences of the causes, outermost first.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = self.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if causes.last() != Some(&text) {
                causes.push(text);
            }
            next = cause.source();
        }
        causes
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}
