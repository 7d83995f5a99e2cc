//! Delivery to the State Hub: behind a dashboard, after a command, and on demand. No operation waits for it.

use std::time::Duration;

use tokio::time::Instant;

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::hub::FlushReport;
use crate::domain::outbox::LONGEST_WAIT_S;
use crate::manager::deps::{Deps, Hub};
use crate::manager::hub::backlog::backlog;
use crate::manager::hub::drain::{DrainLimits, Waits, drain};
use crate::manager::upkeep::flush::flush_all_pending;

/// Time that a command has for the hub after its work (contract 8).
const AFTER_COMMAND: Duration = Duration::from_secs(1);

/// Time that the background has after that to write down what became of it.
const NOTING: Duration = Duration::from_millis(250);

/// Pause between two looks whether the background is done.
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// Pause between two looks at the log; one `stat` each time.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// Pause after an outbox that could not be read or written, and for what this process lacks.
const AFTER_ERROR: Duration = Duration::from_mins(1);

/// Delivers as long as this process lives.
pub(crate) async fn follow(deps: &Deps) {
    let Some(hub) = &deps.hub else { return };
    let limits = DrainLimits { until: None, waits: Waits::Respected };
    loop {
        // Read first: what is appended during the drain is news for the next look.
        let last = deps.events.last_seq().await.ok();
        let due = match drain(deps, hub, limits).await {
            // A token that is not there may come.
            Ok(Some(drained)) => drained
                .next_try_at
                .or_else(|| drained.error.map(|_| deps.now().plus_seconds(AFTER_ERROR.as_secs()))),
            Ok(None) => Some(deps.now()),
            Err(error) => {
                tracing::warn!(%error, causes = ?error.causes, "the outbox cannot be used");
                tokio::time::sleep(AFTER_ERROR).await;
                continue;
            }
        };
        loop {
            tokio::time::sleep(FOLLOW_EVERY).await;
            if due.is_some_and(|due| is_due(due, deps.now()))
                || deps.events.last_seq().await.ok() != last
            {
                break;
            }
        }
    }
}

/// Whether a time has come. One further ahead than any wait is a clock that went back.
fn is_due(due: Time, now: Time) -> bool {
    due <= now || due > now.plus_seconds(LONGEST_WAIT_S)
}

/// Gives the hub the time that it has after a command, if the command changed something, or `always`: then this process may
/// deliver in the background already, and what it is at has the same time.
pub(crate) async fn after_command(deps: &Deps, always: bool) {
    let Some(hub) = deps.hub.as_ref().filter(|_| always || deps.has_changed_something()) else {
        return;
    };
    let until = Instant::now() + AFTER_COMMAND;
    deps.delivery_end.send_replace(Some(until));
    let limits = DrainLimits { until: Some(until), waits: Waits::Respected };
    loop {
        match drain(deps, hub, limits).await {
            Ok(None) if always && Instant::now() < until + NOTING => {
                tokio::time::sleep(LOCK_EVERY).await;
            }
            Ok(_) => return,
            // Its own end says nothing of the hub: `doctor` and the next delivery do.
            Err(error) => {
                tracing::warn!(%error, causes = ?error.causes, "the outbox cannot be used");
                return;
            }
        }
    }
}

/// Delivers what waits, whatever wait runs after a failed try.
///
/// Errors: `invalid_config` where no hub is configured or its token is not there, `busy` where another process delivers.
pub(crate) async fn flush_events(deps: &Deps) -> Result<FlushReport, Error> {
    let hub = configured(deps)?;
    hub.endpoint.check().await?;
    flush_all_pending(deps).await?;
    let limits = DrainLimits { until: None, waits: Waits::Ignored };
    let Some(drained) = drain(deps, hub, limits).await? else {
        return Err(Error::new(Code::Busy, "another process delivers to the State Hub right now")
            .hint(
                "what waits is delivered by it; `sandboxer events flush` again shows what is left",
            ));
    };
    Ok(FlushReport {
        delivered: drained.delivered,
        dead: drained.dead,
        backlog: backlog(deps).await?.unwrap_or_default(),
        error: drained.error.map(|error| with_way(error, hub)),
    })
}

/// An error with the address that it is about, and what becomes of the rest.
fn with_way(error: Error, hub: &Hub) -> Error {
    let address = hub.endpoint.address();
    let error = error.detail("url", address);
    if error.hint.is_some() {
        return error;
    }
    error.hint(format!(
        "look after {address}; what waits is kept, and tried again by commands, sweeps and dashboards"
    ))
}

fn configured(deps: &Deps) -> Result<&Hub, Error> {
    deps.hub.as_ref().ok_or_else(|| {
        let message = format!("no State Hub is configured in {}", deps.settings.config_file);
        Error::new(Code::InvalidConfig, message)
            .hint("add `state_hub: {url: http://HOST/events, token_env: STATE_HUB_TOKEN}` there")
    })
}
