//! Drain of the outbox: each event that waits is posted, and the cursor goes on behind it.
//!
//! Crash rule. An event counts when the cursor is written behind it; who dies before has it posted again, under the same id. A
//! letter stands in the dead letter before the cursor passes it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::hub::{FailureScope, HubFailure, HubReply, Receipt};
use crate::domain::name::OwnerId;
use crate::domain::outbox::{Cursor, DeadLetter, EventsOf, FAILURES_OF_A_HUB};
use crate::failpoint;
use crate::manager::deps::{Deps, Hub};
use crate::store::{CursorFound, EventPage};

/// Time that a hub may take for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Events that are read from the log at once.
const PAGE: usize = 256;

/// Events after which the cursor is written, and how long it may stay unwritten: what is posted again after a crash.
const UNWRITTEN: usize = 64;
const UNWRITTEN_FOR: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy)]
pub(super) struct DrainLimits {
    /// When it ends, delivered or not.
    pub(super) until: Option<Instant>,
    /// Whether waits after failed tries count.
    pub(super) waits: Waits,
}

/// Treatment of waits that are not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Respected,
    /// Each is tried once all the same: somebody asked for it.
    Ignored,
}

#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) delivered: u64,
    pub(super) dead: u64,
    /// Failure that ended it, or the last one of a sandbox's.
    pub(super) error: Option<Error>,
    /// When the next try is due; none where nothing failed.
    pub(super) next_try_at: Option<Time>,
}

/// Cursor as it is, or as it begins where there is none: with the oldest event that is kept.
pub(super) async fn load_cursor(deps: &Deps) -> Result<Cursor, Error> {
    if let CursorFound::Cursor(cursor) = deps.outbox.cursor().await? {
        // Behind a log that has lower numbers it is the cursor of another log.
        let last = deps.events.last_seq().await?;
        if cursor.after <= last || last == 0 {
            return Ok(cursor);
        }
        tracing::warn!(after = cursor.after, last, "the outbox's cursor is of another event log");
    }
    let after = oldest(deps).await?.map_or(0, |oldest| oldest.saturating_sub(1));
    Ok(Cursor { after, ..Cursor::default() })
}

/// Number of the oldest event that is kept.
async fn oldest(deps: &Deps) -> Result<Option<u64>, Error> {
    let page = EventPage { after: 0, up_to: None, of: None, at_most: 1 };
    Ok(deps.events.page(page).await?.first().map(|event| event.seq))
}

/// Delivers what is due. `None`: another process does.
///
/// Errors: what of the log or the outbox cannot be read or written. Why the hub took nothing is in the outcome.
pub(super) async fn drain(
    deps: &Deps,
    hub: &Hub,
    limits: DrainLimits,
) -> Result<Option<Drained>, Error> {
    let Some(_lock) = deps.outbox.try_lock().await? else { return Ok(None) };
    let mut drain = Drain {
        deps,
        hub,
        limits,
        owner: None,
        cursor: load_cursor(deps).await?,
        page: VecDeque::new(),
        tried: Vec::new(),
        failures: 0,
        slowest: None,
        unwritten: 0,
        written_at: None,
        drained: Drained::default(),
    };
    let delivered = drain.deliver().await;
    // Whatever ended it: what the hub has is written down.
    let written = if drain.unwritten > 0 { drain.write().await } else { Ok(()) };
    delivered.and(written)?;
    let next = drain.cursor.next_backoff(deps.now());
    drain.drained.next_try_at = next.map(|backoff| backoff.next_try_at);
    if drain.drained.delivered > 0 {
        deps.events.drop_delivered().await?;
    }
    Ok(Some(drain.drained))
}

enum AfterEvent {
    GoesOn,
    Ends,
}

struct Drain<'a> {
    deps: &'a Deps,
    hub: &'a Hub,
    limits: DrainLimits,
    owner: Option<OwnerId>,
    cursor: Cursor,
    /// Events behind the cursor that were read.
    page: VecDeque<Event>,
    /// Numbers of those that failed in this drain.
    tried: Vec<u64>,
    failures: u32,
    /// Longest that the hub took for an answer.
    slowest: Option<Duration>,
    /// Events behind which the cursor is not written yet.
    unwritten: usize,
    written_at: Option<Instant>,
    drained: Drained,
}

impl Drain<'_> {
    async fn deliver(&mut self) -> Result<(), Error> {
        let now = self.deps.now();
        let waits = self.limits.waits == Waits::Respected;
        if waits && self.cursor.backoff.as_ref().is_some_and(|backoff| backoff.runs(now)) {
            return Ok(());
        }
        self.read_page().await?;
        while let Some(limit) = self.time_left()
            && let Some(event) = self.next_event().await?
        {
            if self.written_at.is_none() {
                // Where nothing can be written, nothing is posted either: it would be posted again and again.
                self.write().await?;
            }
            let receipt = self.post(&event, limit).await?;
            match self.note(event, receipt).await? {
                AfterEvent::GoesOn => {}
                AfterEvent::Ends => break,
            }
        }
        Ok(())
    }

    /// Time that the hub has for the next answer; none where the rest is too short for one.
    fn time_left(&self) -> Option<Duration> {
        let limit = failpoint::limit("outbox.answer", ANSWER);
        let Some(until) = self.until() else { return Some(limit) };
        let left = until.saturating_duration_since(Instant::now());
        let needed = self.slowest.map_or(Duration::ZERO, |slowest| slowest * 2);
        (left > needed).then_some(left.min(limit))
    }

    /// When it ends, by its bounds or because a command is done.
    fn until(&self) -> Option<Instant> {
        let end = *self.deps.delivery_end.borrow();
        self.limits.until.into_iter().chain(end).min()
    }

    /// Next event: behind the cursor, and after each page of these what is held back and due.
    async fn next_event(&mut self) -> Result<Option<Event>, Error> {
        loop {
            while let Some(event) = self.page.pop_front() {
                self.give_up_before(event.seq).await?;
                if !self.cursor.pass_over(&event) {
                    return Ok(Some(event));
                }
                self.unwritten += 1;
            }
            if let Some(event) = self.next_held().await? {
                return Ok(Some(event));
            }
            self.read_page().await?;
            if self.page.is_empty() {
                return Ok(None);
            }
        }
    }

    async fn next_held(&mut self) -> Result<Option<Event>, Error> {
        let now = self.deps.now();
        let due = (self.limits.waits == Waits::Respected).then_some(now);
        while let Some(held) = self.cursor.next_held(due, &self.tried) {
            let (of, from) = (held.of(), held.from);
            let found = self.held_events(of.clone(), from.saturating_sub(1), 1).await?.pop();
            if let Some(event) = found.filter(|event| event.seq == from) {
                return Ok(Some(event));
            }
            let left = self.held_events(of, from, usize::MAX).await?;
            let oldest = oldest(self.deps).await?.unwrap_or(self.cursor.after.saturating_add(1));
            self.give_up(|cursor| cursor.give_up_held(from, &left, oldest, now)).await?;
        }
        Ok(None)
    }

    /// Gives up what is missing in the log between the cursor and the next event: lines that cannot be read, or a file that is
    /// not kept any more.
    async fn give_up_before(&mut self, next: u64) -> Result<(), Error> {
        if next <= self.cursor.after.saturating_add(1) {
            return Ok(());
        }
        let now = self.deps.now();
        let is_oldest = oldest(self.deps).await? == Some(next);
        self.give_up(|cursor| {
            if is_oldest {
                cursor.give_up_behind(next, now)
            } else {
                cursor.give_up_unreadable(next, now)
            }
        })
        .await
    }

    /// Events of one order between a number and the cursor.
    async fn held_events(
        &self,
        of: EventsOf,
        after: u64,
        at_most: usize,
    ) -> Result<Vec<Event>, Error> {
        let up_to = Some(self.cursor.after);
        self.deps.events.page(EventPage { after, up_to, of: Some(of), at_most }).await
    }

    async fn read_page(&mut self) -> Result<(), Error> {
        let after = self.cursor.after;
        let page = EventPage { after, up_to: None, of: None, at_most: PAGE };
        self.page = self.deps.events.page(page).await?.into();
        Ok(())
    }

    async fn post(&mut self, event: &Event, limit: Duration) -> Result<Receipt, Error> {
        let owner = self.owner().await?;
        let message = self.hub.format.message(event, &owner)?;
        let began = Instant::now();
        let answer = self.hub.endpoint.post(message, self.hub.format.media_type(), limit);
        let late =
            |began: Instant| HubReply::TimedOut(format!("{} ms", began.elapsed().as_millis()));
        let reply = tokio::select! {
            reply = timeout(limit, answer) => reply.unwrap_or_else(|_| late(began)),
            () = self.ended() => late(began),
        };
        self.slowest = self.slowest.max(Some(began.elapsed()));
        Ok(Receipt::of(reply, self.deps.now()))
    }

    /// Waits until delivery ends because a command is done.
    async fn ended(&self) {
        let mut end = self.deps.delivery_end.subscribe();
        match end.wait_for(Option::is_some).await.map(|end| *end) {
            Ok(Some(until)) => tokio::time::sleep_until(until).await,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Id of this installation, which is made when it is first asked for.
    async fn owner(&mut self) -> Result<OwnerId, Error> {
        if self.owner.is_none() {
            self.owner = self.deps.installation.owners().await?.into_iter().next();
        }
        self.owner.clone().ok_or_else(|| Error::internal("this installation has no owner id"))
    }

    async fn note(&mut self, event: Event, receipt: Receipt) -> Result<AfterEvent, Error> {
        match receipt {
            Receipt::Taken => {
                failpoint::reached("outbox.delivered");
                self.drained.delivered += 1;
                self.done(&event).await?;
                Ok(AfterEvent::GoesOn)
            }
            Receipt::Refused(status, reason) => {
                tracing::warn!(seq = event.seq, %reason, "an event goes to the dead letter");
                let letter = DeadLetter::refused(event.clone(), status, reason, self.deps.now());
                self.give_up(|_| Some(letter)).await?;
                failpoint::reached("outbox.given_up");
                self.done(&event).await?;
                Ok(AfterEvent::GoesOn)
            }
            Receipt::Failed(failure) => self.failed(&event, *failure).await,
            Receipt::NotSent(error) => {
                self.drained.error = Some(*error);
                Ok(AfterEvent::Ends)
            }
        }
    }

    async fn done(&mut self, event: &Event) -> Result<(), Error> {
        self.failures = 0;
        let is_held = event.seq <= self.cursor.after;
        let next = if is_held {
            self.held_events(EventsOf::event(event), event.seq, 1).await?.pop()
        } else {
            None
        };
        if is_held && next.is_none() {
            let oldest = oldest(self.deps).await?.unwrap_or(event.seq);
            let now = self.deps.now();
            self.give_up(|cursor| cursor.give_up_with(event, oldest, now)).await?;
        }
        self.cursor.done(event, next.as_ref());
        self.unwritten += 1;
        let is_old = self.written_at.is_none_or(|then| then.elapsed() >= UNWRITTEN_FOR);
        if self.unwritten >= UNWRITTEN || is_old { self.write().await } else { Ok(()) }
    }

    async fn failed(
        &mut self,
        event: &Event,
        mut failure: HubFailure,
    ) -> Result<AfterEvent, Error> {
        // The hub works, and the time of a command was too short for one more.
        if self.until().is_some_and(|until| Instant::now() >= until) && self.drained.delivered > 0 {
            return Ok(AfterEvent::Ends);
        }
        tracing::warn!(seq = event.seq, error = %failure.error, causes = ?failure.error.causes, "an event was not delivered");
        let (now, random) = (self.deps.now(), (self.deps.random_u32)());
        self.tried.push(event.seq);
        self.failures += 1;
        let mut scope = self.cursor.failed(event, &failure, now, random);
        if scope == FailureScope::Sandbox && self.failures >= FAILURES_OF_A_HUB {
            failure.scope = FailureScope::Hub;
            scope = self.cursor.failed(event, &failure, now, random);
        }
        self.drained.error = Some(failure.error);
        self.write().await?;
        Ok(match scope {
            FailureScope::Sandbox => AfterEvent::GoesOn,
            FailureScope::Hub => AfterEvent::Ends,
        })
    }

    /// Gives up what the cursor lets go of. It stays where it was if the letter of that cannot be written.
    async fn give_up(
        &mut self,
        letter: impl FnOnce(&mut Cursor) -> Option<DeadLetter>,
    ) -> Result<(), Error> {
        let mut cursor = self.cursor.clone();
        let Some(letter) = letter(&mut cursor) else { return Ok(()) };
        let count = letter.count();
        self.deps.outbox.give_up(vec![letter]).await?;
        self.cursor = cursor;
        self.drained.dead = self.drained.dead.saturating_add(count);
        self.unwritten += 1;
        Ok(())
    }

    async fn write(&mut self) -> Result<(), Error> {
        self.deps.outbox.write(&self.cursor).await?;
        (self.unwritten, self.written_at) = (0, Some(Instant::now()));
        Ok(())
    }
}
