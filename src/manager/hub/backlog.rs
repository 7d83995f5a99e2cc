//! Backlog of the State Hub: what waits, since when, and why.

use crate::domain::error::Error;
use crate::domain::hub::HubBacklog;
use crate::manager::deps::Deps;
use crate::manager::hub::drain::load_cursor;
use crate::store::EventPage;

/// Backlog; `None` where no hub is configured. Takes no lock, and asks nobody.
pub(crate) async fn backlog(deps: &Deps) -> Result<Option<HubBacklog>, Error> {
    if deps.hub.is_none() {
        return Ok(None);
    }
    let (dead, _) = deps.outbox.dead().await?;
    let cursor = load_cursor(deps).await?;
    let waiting = cursor.waiting(deps.events.last_seq().await?);
    if waiting == 0 {
        return Ok(Some(HubBacklog { dead, ..HubBacklog::default() }));
    }
    let page = EventPage { after: cursor.after, up_to: None, of: None, at_most: 1 };
    let first = deps.events.page(page).await?.first().map(|event| event.time);
    let now = deps.now();
    let backoff = cursor.next_backoff(now);
    Ok(Some(HubBacklog {
        waiting,
        oldest_at: first.into_iter().chain(cursor.held_since()).min(),
        dead,
        next_try_at: backoff.filter(|backoff| backoff.runs(now)).map(|backoff| backoff.next_try_at),
        last_error: backoff.map(|backoff| backoff.error.clone()),
    }))
}
