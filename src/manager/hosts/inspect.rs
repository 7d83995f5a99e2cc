//! Host looked at closely: its inventory, how it is now, and the sizes of its directories where they come soon.

use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::host_view::{HostState, HostView};
use crate::manager::deps::Deps;
use crate::manager::hosts::check::check_host;
use crate::manager::hosts::sample::sample_host;

/// Time that the answer waits for sizes: they are measured at idle priority, and one answer may go without.
const SIZES_WAIT: Duration = Duration::from_millis(300);

/// Checks a host and samples it once. A host that is down is a view that says so.
pub(crate) async fn inspect_host(deps: &Deps, name: &str) -> Result<HostView, Error> {
    let mut view = check_host(deps, name).await?;
    if !matches!(view.state, HostState::Up | HostState::Slow) {
        return Ok(view);
    }
    let measured = deps.measured.notified();
    let wait = async {
        tokio::pin!(measured);
        // Measurements tell of every host: only this one's matters.
        while deps.telemetry.with(&view.name, |host| host.is_measuring()) {
            measured.as_mut().await;
            measured.set(deps.measured.notified());
        }
    };
    let (sample, _) = tokio::join!(sample_host(deps, name), tokio::time::timeout(SIZES_WAIT, wait));
    match sample {
        Ok(sample) => view.sample = Some(sample),
        Err(error) => {
            view.message.get_or_insert(format!("it could not be sampled: {}", error.message));
        }
    }
    if let Some(inventory) = view.facts.as_mut().and_then(|facts| facts.inventory.as_mut()) {
        deps.telemetry.with(&view.name, |host| host.fill_sizes(inventory));
    }
    Ok(view)
}
