//! The one table from an error's code to an exit status and an HTTP status.

use std::collections::BTreeMap;

use crate::domain::error::Code;

/// The process's exit status for a code.
pub fn exit_status(code: &Code) -> u8 {
    statuses(code).0
}

/// The HTTP status for a code.
pub fn http_status(code: &Code) -> u16 {
    statuses(code).1
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
pub(crate) fn codes_by_exit_status() -> BTreeMap<u8, Vec<&'static Code>> {
    let mut table = BTreeMap::<_, Vec<_>>::new();
    for code in Code::ALL {
        table.entry(statuses(code).0).or_default().push(code);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_contracts_statuses() {
        let table: Vec<String> = Code::ALL
            .iter()
            .map(|code| format!("{code} {} {}", exit_status(code), http_status(code)))
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
