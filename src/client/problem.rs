//! Errors as a face shows them, and the one table from a code to an exit status and an HTTP status.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::fault::{Code, Fault};
use crate::domain::operation::{CancelOutcome, OperationError};

/// An error as every face shows it (contract, section 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What kind.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The sentences of its causes, outermost first.
    pub causes: Vec<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Machine-readable particulars, or null.
    pub details: serde_json::Value,
}

impl Problem {
    /// A problem of this code with this sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Fault::new(code, message).into()
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// How an operation was left that ended with this, if it was cancelled.
    pub fn cancel_outcome(&self) -> Option<CancelOutcome> {
        CancelOutcome::of(&self.code, &self.details)
    }

    /// The process's exit status.
    pub fn exit_status(&self) -> u8 {
        statuses(&self.code).0
    }

    /// The HTTP status.
    pub fn http_status(&self) -> u16 {
        statuses(&self.code).1
    }
}

/// Exit status and HTTP status of a code (contract, section 4).
fn statuses(code: &Code) -> (u8, u16) {
    match code {
        Code::Internal | Code::StoreCorrupt | Code::StoreForeign | Code::Other(_) => (1, 500),
        Code::OperationFailed => (1, 502),
        Code::Usage | Code::InvalidInput | Code::InvalidConfig | Code::InvalidProfile => (2, 400),
        Code::NotFound => (3, 404),
        Code::Conflict | Code::Busy | Code::InUse => (4, 409),
        Code::HostUnreachable | Code::ServerUnreachable => (5, 502),
        Code::HostChanged => (5, 409),
        Code::Timeout => (5, 504),
        Code::InsufficientCredits => (6, 402),
        Code::Unsupported | Code::MissingDependency => (7, 422),
        Code::Partial => (8, 200),
        Code::Unauthorized => (9, 401),
        Code::Forbidden | Code::ReadOnly => (9, 403),
        Code::Overloaded => (9, 429),
        Code::Cancelled => (130, 409),
    }
}

/// Every exit status that a code has, and the codes that have it.
pub fn codes_by_exit_status() -> BTreeMap<u8, Vec<&'static Code>> {
    let mut table = BTreeMap::<_, Vec<_>>::new();
    for code in Code::ALL {
        table.entry(statuses(code).0).or_default().push(code);
    }
    table
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let causes = fault.causes();
        Self {
            code: fault.code,
            message: fault.message,
            causes,
            hint: fault.hint,
            retryable: fault.retryable,
            details: fault.details,
        }
    }
}

impl From<OperationError> for Problem {
    fn from(error: OperationError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            causes: error.causes,
            hint: error.hint,
            retryable: error.retryable,
            details: error.details,
        }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let mut fault = Self::new(problem.code, problem.message).retryable(problem.retryable);
        (fault.hint, fault.details) = (problem.hint, problem.details);
        if problem.causes.is_empty() { fault } else { fault.because(problem.causes.join(": ")) }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_contracts_statuses() {
        let table: Vec<String> = Code::ALL
            .iter()
            .map(|code| {
                let problem = Problem::new(code.clone(), "");
                format!("{code} {} {}", problem.exit_status(), problem.http_status())
            })
            .collect();
        insta::assert_snapshot!(table.join("\n"), @r"
        internal 1 500
        store_corrupt 1 500
        store_foreign 1 500
        operation_failed 1 502
        usage 2 400
        invalid_input 2 400
        invalid_config 2 400
        invalid_profile 2 400
        not_found 3 404
        conflict 4 409
        busy 4 409
        in_use 4 409
        host_unreachable 5 502
        host_changed 5 409
        timeout 5 504
        server_unreachable 5 502
        insufficient_credits 6 402
        unsupported 7 422
        missing_dependency 7 422
        partial 8 200
        unauthorized 9 401
        forbidden 9 403
        read_only 9 403
        overloaded 9 429
        cancelled 130 409
        ");
    }
}
