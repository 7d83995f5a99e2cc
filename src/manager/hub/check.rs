//! Doctor's checks of the State Hub: whether it can be asked, what waits for it, what it refused.

use crate::domain::error::Error;
use crate::domain::figures::age_of;
use crate::domain::hub::HubBacklog;
use crate::domain::request::{Check, CheckState};
use crate::domain::text::plural;
use crate::domain::time::Time;
use crate::manager::deps::{Deps, Hub};
use crate::manager::hub::backlog::backlog;
use crate::store::CursorFound;

/// Checks; none where no hub is configured.
pub(crate) async fn check_hub(deps: &Deps) -> Vec<Check> {
    let Some(hub) = &deps.hub else { return Vec::new() };
    let mut checks = vec![check_way(hub).await];
    match backlog(deps).await {
        Ok(found) => checks.extend(found.map(|backlog| check_backlog(&backlog, deps.now()))),
        Err(error) => checks.push(failed("hub backlog", &error)),
    }
    if matches!(deps.outbox.cursor().await, Ok(CursorFound::Unreadable)) {
        let message = "outbox/cursor.json cannot be read, so nobody knows what was delivered";
        let hint = "the next delivery begins with the oldest event that is kept, each with the id that it had; the file stays \
                    beside as cursor.json.unreadable";
        checks.push(warning("hub cursor", message.to_owned(), hint));
    }
    match deps.outbox.dead().await {
        Ok((0, _)) => {}
        Ok((dead, file)) => {
            let message =
                plural(dead, "event will not be delivered", "events will not be delivered");
            let hint =
                format!("{file} has each with its reason; move it away once it was looked at");
            checks.push(warning("hub dead letter", message, &hint));
        }
        Err(error) => checks.push(failed("hub dead letter", &error)),
    }
    checks
}

async fn check_way(hub: &Hub) -> Check {
    let address = hub.endpoint.address();
    match hub.endpoint.check().await {
        Ok(remarks) if remarks.is_empty() => ok("state hub", address.to_owned()),
        Ok(remarks) => {
            let hint = "see `state_hub` in the guide";
            warning("state hub", format!("{address}: {}", remarks.join("; ")), hint)
        }
        Err(error) => failed("state hub", &error),
    }
}

fn check_backlog(backlog: &HubBacklog, now: Time) -> Check {
    let name = "hub backlog";
    if backlog.waiting == 0 {
        return ok(name, "nothing waits".to_owned());
    }
    let mut words = vec![plural(backlog.waiting, "event waits", "events wait")];
    words.extend(backlog.oldest_at.map(|oldest| format!("the oldest for {}", age_of(oldest, now))));
    let next = backlog.next_try_at.map(|next| format!("the next try is in {}", age_of(now, next)));
    words.extend(next);
    let Some(error) = &backlog.last_error else {
        return ok(name, words.join(", "));
    };
    let hint = "`sandboxer events flush` tries now; nothing else waits for the hub";
    warning(name, format!("{}\n{error}", words.join(", ")), hint)
}

fn ok(name: &str, message: String) -> Check {
    Check { name: name.to_owned(), state: CheckState::Ok, message, hint: None }
}

fn warning(name: &str, message: String, hint: &str) -> Check {
    Check { state: CheckState::Warning, hint: Some(hint.to_owned()), ..ok(name, message) }
}

fn failed(name: &str, error: &Error) -> Check {
    Check { state: CheckState::Failed, hint: error.hint.clone(), ..ok(name, error.sentence()) }
}
