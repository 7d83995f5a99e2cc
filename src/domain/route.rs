//! Route: which candidate of a profile takes a request, and why not the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::{Code, Error, Failure, Kind};
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// Reason for which a request goes past a candidate.
    pub enum RouteCondition {
        /// None of its hosts can be used: they do not answer, are not configured or forbidden, or not the ones that they were.
        HostUnreachable = "host-unreachable",
        /// Hosts of it that answer are full, or above their limits.
        Saturated = "saturated",
        /// Candidate lacks what the request takes.
        Unsupported = "unsupported",
        /// Price is above `max_cost_usd`, or above the credits, or one of these cannot be told.
        OverBudget = "over-budget",
    }
}

impl RouteCondition {
    /// Condition that the refusal of a candidate fulfils; none where what was asked for is refused, whoever the candidate.
    pub(crate) fn of_refusal(error: &Error) -> Option<Self> {
        match (&error.kind, &error.code) {
            (Kind::Saturated, _) => Some(Self::Saturated),
            (Kind::Lacking, _) | (_, Code::Unsupported | Code::MissingDependency) => {
                Some(Self::Unsupported)
            }
            (Kind::OverBudget, _) | (_, Code::InsufficientCredits) => Some(Self::OverBudget),
            (_, Code::HostUnreachable | Code::HostChanged | Code::Timeout | Code::Forbidden) => {
                Some(Self::HostUnreachable)
            }
            _ => None,
        }
    }

    /// Condition that a candidate fulfils whose price, or whether the credits are there for it, cannot be told; none where what was
    /// asked for is wrong.
    pub(crate) fn of_unpriced(error: &Error) -> Option<Self> {
        match error.code {
            Code::InvalidInput | Code::InvalidProfile | Code::Cancelled => None,
            _ => Some(Self::of_refusal(error).unwrap_or(Self::OverBudget)),
        }
    }
}

/// Result of a candidate that was considered, as far as those behind it go by that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passed {
    /// Candidate was refused for this.
    Refused(RouteCondition),
    /// Candidate was tried, and failed before its sandbox was ready.
    Failed,
}

/// Whether a candidate is considered, by what came of those before it. One that was tried and failed counts for whatever `when` names.
pub(crate) fn is_considered(when: &[RouteCondition], passed: &[Passed]) -> bool {
    let holds = |passed: &Passed| match passed {
        Passed::Refused(condition) => when.contains(condition),
        Passed::Failed => true,
    };
    when.is_empty() || passed.iter().any(holds)
}

/// Whether an establishment failed in a way that another candidate may mend: not because somebody cancelled it, what was asked for
/// is wrong, credits are missing, or our own files fail.
pub(crate) fn may_fall_back(error: &Error) -> bool {
    !matches!(
        error.code,
        Code::Cancelled
            | Code::InvalidInput
            | Code::InvalidProfile
            | Code::InsufficientCredits
            | Code::Internal
            | Code::StoreCorrupt
            | Code::StoreForeign
    )
}

/// Why a host was or was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The host.
    pub host: HostName,
    /// Whether it can take the sandbox.
    pub ok: bool,
    /// Sentence.
    pub reason: String,
}

/// Host that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The host that was chosen.
    pub host: HostName,
    /// Sentence.
    pub reason: String,
    /// Verdict on each candidate.
    pub verdicts: Vec<Verdict>,
    /// Remarks on the choice for whoever asked, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Verdict on each candidate of the profile's `routing`, in its order; empty where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateVerdict>,
}

/// Verdict on a candidate of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateVerdict {
    /// The backend.
    pub extension: ExtensionId,
    /// Whether it can take the sandbox.
    pub ok: bool,
    /// Condition that its refusal fulfils; null where it can take it, or was not asked.
    pub condition: Option<RouteCondition>,
    /// A sentence.
    pub reason: String,
    /// Price; null where it costs nothing, or none was asked for.
    pub quote_usd: Option<Usd>,
    /// Verdict on each of its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

impl CandidateVerdict {
    /// The verdict in a line, such as `ext.compose-ssh (saturated): host a is full`.
    pub fn sentence(&self) -> String {
        let word = match &self.condition {
            Some(condition) => format!(" ({condition})"),
            None => String::new(),
        };
        format!("{}{word}: {}", self.extension, self.reason)
    }
}

/// Attempt to establish a sandbox, or the verdict on a host that was not tried. Records of earlier versions have `host`, `ok` and
/// `reason` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The place.
    pub host: HostName,
    /// Whether it took the sandbox.
    pub ok: bool,
    /// A sentence.
    pub reason: String,
    /// The backend, where it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionId>,
    /// When it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Evidence of the step that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Charge for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}

impl Attempt {
    /// Attempt of a backend at a place that has not come to anything yet.
    pub fn of(extension: &ExtensionId, host: &HostName, at: Time) -> Self {
        Self {
            host: host.clone(),
            ok: false,
            reason: String::new(),
            extension: Some(extension.clone()),
            at: Some(at),
            failure: None,
            cost_usd: None,
        }
    }
}

impl From<Verdict> for Attempt {
    fn from(verdict: Verdict) -> Self {
        let Verdict { host, ok, reason } = verdict;
        Self { host, ok, reason, extension: None, at: None, failure: None, cost_usd: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_condition_by_its_code_and_kind_alone() {
        use RouteCondition::{HostUnreachable, OverBudget, Saturated, Unsupported};
        let plain = |code| Error::new(code, "full: unsupported, unreachable");
        let none = || Error::new(Code::HostUnreachable, "no host can take the sandbox");
        let full = || Error::new(Code::Conflict, "host a is full");
        for (error, refused) in [
            (plain(Code::HostUnreachable), Some(HostUnreachable)),
            (plain(Code::HostChanged), Some(HostUnreachable)),
            (plain(Code::Forbidden), Some(HostUnreachable)),
            (plain(Code::Timeout), Some(HostUnreachable)),
            (full().of_kind(Kind::Saturated), Some(Saturated)),
            (none().of_kind(Kind::Saturated), Some(Saturated)),
            (none().of_kind(Kind::Lacking), Some(Unsupported)),
            (plain(Code::Unsupported), Some(Unsupported)),
            (plain(Code::MissingDependency), Some(Unsupported)),
            (plain(Code::InsufficientCredits), Some(OverBudget)),
            (full().of_kind(Kind::OverBudget), Some(OverBudget)),
            (full(), None),
            (plain(Code::InvalidInput), None),
            (plain(Code::OperationFailed), None),
            (plain(Code::Internal), None),
            (plain(Code::Cancelled), None),
        ] {
            assert_eq!(RouteCondition::of_refusal(&error), refused, "{:?}", error.code);
        }
    }

    #[test]
    fn a_price_that_cannot_be_told_is_over_budget_unless_what_was_asked_for_is_wrong() {
        for (code, condition) in [
            (Code::StoreCorrupt, Some(RouteCondition::OverBudget)),
            (Code::StoreForeign, Some(RouteCondition::OverBudget)),
            (Code::OperationFailed, Some(RouteCondition::OverBudget)),
            (Code::HostUnreachable, Some(RouteCondition::HostUnreachable)),
            (Code::InvalidInput, None),
        ] {
            assert_eq!(
                RouteCondition::of_unpriced(&Error::new(code.clone(), "")),
                condition,
                "{code}"
            );
        }
    }

    #[test]
    fn a_candidate_is_considered_where_an_earlier_one_failed_or_was_refused_for_what_it_names() {
        use RouteCondition::{HostUnreachable, OverBudget, Saturated};
        let full = [Saturated, HostUnreachable];
        let refused = Passed::Refused;
        for (when, passed, considered) in [
            (&[][..], &[][..], true),
            (&[], &[refused(OverBudget)], true),
            (&full, &[], false),
            (&full, &[refused(OverBudget)], false),
            (&full, &[refused(Saturated)], true),
            (&full, &[refused(OverBudget), refused(HostUnreachable)], true),
            (&full, &[refused(OverBudget), Passed::Failed], true),
        ] {
            assert_eq!(is_considered(when, passed), considered, "{when:?} {passed:?}");
        }
    }

    #[test]
    fn what_was_asked_for_wrongly_is_no_reason_to_try_another() {
        for (code, may) in [
            (Code::Cancelled, false),
            (Code::InvalidInput, false),
            (Code::InsufficientCredits, false),
            (Code::Internal, false),
            (Code::StoreCorrupt, false),
            (Code::OperationFailed, true),
            (Code::Timeout, true),
            (Code::HostUnreachable, true),
            (Code::MissingDependency, true),
        ] {
            assert_eq!(may_fall_back(&Error::new(code.clone(), "")), may, "{code}");
        }
    }
}
