//! Errors: a closed list of codes that scripts rely on, and the one type that carries one, from a script on a host to a face.
//!
//! Every layer returns an [`Error`]: a code, one sentence, where it helps a hint, and its causes beside the sentence, never
//! spliced into it. Code that has to decide on more than the code matches on [`Kind`]; `details` are for scripts.
//! `client::problem` has the exit and HTTP status of each code.

use std::error::Error as StdError;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::words::string_enum;

string_enum! {
    /// The error codes of the contract (section 4). Exit and HTTP status follow from them in `client::problem`.
    pub enum Code {
        /// Bug in sandboxer itself.
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
        /// Console may only look.
        ReadOnly = "read_only",
        /// Too many requests.
        Overloaded = "overloaded",
        /// The operator cancelled it.
        Cancelled = "cancelled",
    }
}

/// Particular that names the field of a request that is refused.
const FIELD: &str = "field";
/// Particular that says how a cancelled operation was left.
const OUTCOME: &str = "cancel_outcome";
/// Particular that says why a prune leaves something out.
const PASSED_OVER: &str = "skipped";

/// Word of a record that no other may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    Id,
    Name,
    /// The key that its request was made under.
    IdempotencyKey,
}

impl Unique {
    /// Name of the field, as scripts read it in `details.field`.
    pub fn field(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Name => "name",
            Self::IdempotencyKey => "idempotency_key",
        }
    }
}

/// Decisions that a code alone does not tell apart, known where the error is made. Not part of its JSON, which has what scripts
/// read in `details`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kind {
    /// Nothing beyond its code.
    #[default]
    Plain,
    /// Another record has this already.
    Taken(Unique),
    /// A setting of the configuration is wrong: its name.
    Setting(String),
    /// An archive is not what is recorded of it.
    ArchiveAltered,
    /// An archive is not where it is recorded.
    ArchiveMissing,
    /// The bytes of a transfer came as something else than is recorded: they were so where they came from, or became so on the
    /// way. A reading of that archive tells which.
    ArrivedOtherwise,
    /// Reader of the bytes wanted no more.
    NobodyReads,
    /// Source of the bytes could not be read to its end.
    SourceUnread,
    /// Profile is nowhere any more.
    ProfileLost,
    /// A host has a higher counter of this installation than is known here: this one.
    Behind(u64),
    /// No undo snapshot could be taken, and so nothing was removed.
    NoUndoSnapshot,
    /// Nothing of a patch's script ran.
    NeverBegan,
    /// Records that depend on it.
    Needed(Vec<String>),
    /// A prune leaves it out, which is no failure: why.
    PassedOver(String),
    /// Somebody asked for its end: how that left it.
    Cancelled(CancelOutcome),
    /// Record is not as it was when the asker looked: nothing was done.
    Stale,
    /// A host that answers is full, or above its limits; of several, at least one is, and none can take it.
    Saturated,
    /// A price is above what the profile allows.
    OverBudget,
    /// A host that answers lacks what is asked of it; of several, at least one does, and none can take it.
    Lacking,
}

/// The evidence of a failed step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The step's name.
    pub step: String,
    /// The program's exit status, where one ran.
    pub exit_status: Option<i32>,
    /// The last lines it wrote (at most 200), exactly.
    pub output: String,
}

/// An error (contract, section 4). `Display` prints the sentence only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Error {
    /// Code, for scripts and for the exit status.
    pub code: Code,
    /// Sentence, without the causes.
    pub message: String,
    /// The sentences of its causes, outermost first.
    #[serde(default)]
    pub causes: Vec<String>,
    /// Next step for the user, where that is known.
    pub hint: Option<String>,
    /// Whether the same request may succeed later without a change.
    #[serde(default)]
    pub retryable: bool,
    /// Machine-readable particulars (a field's name, a holder's pid), null when there are none.
    #[serde(default)]
    pub details: serde_json::Value,
    /// Kind, by which code decides.
    #[serde(skip)]
    pub kind: Kind,
    /// The step that failed, where that is known; scripts read it in `details.step`.
    #[serde(skip)]
    pub step: Option<Box<str>>,
    /// The failed step's evidence, where a program ran.
    #[serde(skip)]
    pub evidence: Option<Box<Failure>>,
    /// Whether it is certain that nothing was made on the host, or removed there. Nothing made: then there is nothing to tear
    /// down, and what has this sandbox's name there is somebody else's.
    #[serde(skip)]
    pub untouched: bool,
}

impl Error {
    /// Message and its causes, in one line.
    pub fn sentence(&self) -> String {
        self.sentences().join(": ")
    }

    /// Message and its causes, one by one.
    pub fn sentences(&self) -> Vec<&str> {
        std::iter::once(&self.message).chain(&self.causes).map(String::as_str).collect()
    }

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
            step: None,
            evidence: None,
            untouched: false,
        }
    }

    /// An error of sandboxer itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// An input that is refused; `field` names it in `details.field`.
    pub(crate) fn invalid_input(field: &str, message: impl Into<String>) -> Self {
        Self::new(Code::InvalidInput, message).detail(FIELD, field)
    }

    /// A conflict: another record has this already. `details.field` names it.
    pub fn taken(what: Unique, message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message).detail(FIELD, what.field()).of_kind(Kind::Taken(what))
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what else to do next.
    #[must_use]
    pub(crate) fn and_hint(self, more: &str) -> Self {
        let hint = self.hint.as_ref().map_or_else(String::new, |first| format!("{first}; "));
        self.hint(format!("{hint}{more}"))
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

    /// Leaves out of a prune what this is about, for this reason.
    #[must_use]
    pub fn passed_over(self, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        self.detail(PASSED_OVER, reason.as_str()).of_kind(Kind::PassedOver(reason))
    }

    /// Sets the step that failed.
    #[must_use]
    pub fn step(mut self, step: impl Into<Box<str>>) -> Self {
        let step = step.into();
        self.step = Some(step.clone());
        self.detail("step", &*step)
    }

    #[must_use]
    pub(crate) fn evidence(mut self, failure: Failure) -> Self {
        self.evidence = Some(Box::new(failure));
        self
    }

    /// Certainty that nothing was made or removed on the host.
    #[must_use]
    pub fn untouched(mut self) -> Self {
        self.untouched = true;
        self
    }

    /// Error of work of which that was only a part: the evidence, and what was untouched, are the part's.
    #[must_use]
    pub(crate) fn of_a_part(self) -> Self {
        Self { evidence: None, untouched: false, ..self }
    }

    /// Whether it was refused to begin. A host that does not answer refuses nothing.
    pub(crate) fn is_refusal(&self) -> bool {
        self.untouched && !matches!(self.code, Code::HostUnreachable | Code::Timeout)
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

    /// Name of the input that is refused, for the form that has it.
    pub fn field(&self) -> Option<&str> {
        self.text(FIELD)
    }

    /// Failed step of what a deep check made, as the host's store keeps it.
    pub(crate) fn recorded_failure(&self) -> Option<Failure> {
        Failure::deserialize(self.details.get("failure")?).ok()
    }

    /// Outcome for an operation that was cancelled and ended with this. Without word of it, it may be half done.
    pub fn cancel_outcome(&self) -> Option<CancelOutcome> {
        match &self.kind {
            Kind::Cancelled(outcome) => Some(outcome.clone()),
            _ => (self.code == Code::Cancelled).then_some(CancelOutcome::Stopped),
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.details.get(key)?.as_str()
    }

    /// Kind of an error that was read: operations end in other processes too.
    fn told_kind(&self) -> Kind {
        match (self.text(OUTCOME), self.text(PASSED_OVER)) {
            (Some(word), _) => Kind::Cancelled(CancelOutcome::from_word(word)),
            (None, Some(reason)) => Kind::PassedOver(reason.to_owned()),
            (None, None) => Kind::Plain,
        }
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Serialised form of an error.
        #[derive(Deserialize)]
        struct Written {
            code: Code,
            message: String,
            #[serde(default)]
            causes: Vec<String>,
            hint: Option<String>,
            #[serde(default)]
            retryable: bool,
            #[serde(default)]
            details: serde_json::Value,
        }
        let Written { code, message, causes, hint, retryable, details } =
            Written::deserialize(deserializer)?;
        let read = Self { causes, hint, retryable, details, ..Self::new(code, message) };
        Ok(Self { kind: read.told_kind(), ..read })
    }
}

string_enum! {
    /// State in which a cancelled operation was left.
    pub enum CancelOutcome {
        /// Everything is as before.
        Undone = "undone",
        /// Work was cut off and may be half done; the error's hint says what to look at.
        Stopped = "stopped",
        /// Work came to its own end first.
        Done = "done",
    }
}

impl CancelOutcome {
    /// The error of an operation that was cancelled and left like this.
    pub fn error(&self, message: impl Into<String>) -> Error {
        self.noted_on(Error::new(Code::Cancelled, message))
    }

    /// Error of something cancelled, with this outcome noted on it. Other errors stay as they are.
    #[must_use]
    pub(crate) fn noted_on(&self, error: Error) -> Error {
        if error.code != Code::Cancelled {
            return error;
        }
        error.detail(OUTCOME, self.as_str()).of_kind(Kind::Cancelled(self.clone()))
    }

    /// The outcome for people.
    pub fn words(&self) -> &str {
        match self {
            Self::Undone => "undone: as before",
            Self::Stopped => "stopped: may be half done",
            Self::Done => "done anyway",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_known_of_an_error_that_was_written_and_read() {
        let read = |error: &Error| -> Error {
            serde_json::from_str(&serde_json::to_string(error).unwrap()).unwrap()
        };
        let cancelled = CancelOutcome::Undone.error("it was cut off");
        let passed_over = Error::new(Code::Conflict, "it stays").passed_over("kept");
        for error in [cancelled, passed_over, Error::invalid_input("ttl", "too long")] {
            assert_eq!(read(&error), error);
        }
        let bare = Error::new(Code::Cancelled, "it was cut off");
        assert_eq!(read(&bare).cancel_outcome(), Some(CancelOutcome::Stopped));
        let failed = Error::new(Code::OperationFailed, "no").step("up").untouched();
        let back = read(&failed);
        assert_eq!((&back.details, back.step, back.untouched), (&failed.details, None, false));
    }
}
