//! Batches: removals on one host that one call does together. A removal starts an engine's client a dozen times, of some 50 ms of
//! a processor each, whether it is of one sandbox or of 24.
//!
//! The first removal begins at once. Whoever comes while one is under way waits a moment for others and goes with them. The call is
//! driven by those who wait for it. One whose sandbox is finished goes on alone; when one leaves before that, the call is cut off,
//! and the others try again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::name::SandboxId;
use crate::transport::{Command, Output, Source, Transport};

/// Sandboxes that one call removes at most.
const BATCH_SIZE: usize = 32;
/// Time in which nobody else came, after which a batch begins.
const QUIET: Duration = Duration::from_millis(100);
/// Pause before the rest of a batch that was cut off is tried again: its host notices a moment after us.
const AFTER_CUT: Duration = Duration::from_secs(1);

/// The way to the host and the parameters that all sandboxes of a batch share.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) script: &'static str,
    pub(super) words: Vec<String>,
    /// How long it may take for one, and how long it may say nothing.
    pub(super) limit: Duration,
    /// How much longer it may say nothing for each further one: an engine that stops one container after another.
    pub(super) further: Duration,
}

/// Sandbox of a batch, with the parameters that are its own.
#[derive(Clone)]
pub(super) struct Own {
    pub(super) id: SandboxId,
    pub(super) words: [String; 2],
    /// Whether no other sandbox may be in its call.
    pub(super) alone: bool,
}

/// Host, shared parameters, and the sandbox that goes alone.
type Key = (String, Vec<String>, Option<SandboxId>);

/// Batches of an extension that are under way.
#[derive(Clone, Default)]
pub(crate) struct Removals(Arc<Mutex<HashMap<Key, Queue>>>);

#[derive(Default)]
struct Queue {
    /// Calls that run.
    running: usize,
    /// Batch that has not begun.
    open: Option<Batch>,
}

impl Queue {
    /// Whether this batch is the one that has not begun.
    fn is_open(&self, state: &Arc<BatchState>) -> bool {
        self.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.state, state))
    }
}

#[derive(Clone)]
struct Batch {
    state: Arc<BatchState>,
    call: Shared<BoxFuture<'static, Ended>>,
}

#[derive(Default)]
struct BatchState {
    /// Until it begins.
    members: Mutex<Vec<Member>>,
    /// Members that are not finished, once it began.
    unfinished: AtomicUsize,
    /// Told when such a member leaves.
    cut: Notify,
}

struct Member {
    own: Own,
    lines: mpsc::UnboundedSender<Vec<u8>>,
}

/// How a call ended.
#[derive(Clone)]
enum Ended {
    Ran(Result<Output, Error>),
    /// A member left.
    Cut,
}

impl Removals {
    /// Removes it in one call with others. Its own lines, and those that are about all, go to `take` as they come, which says
    /// whether that was the last one of this sandbox.
    ///
    /// `None`: another member left, and the call was cut off: try again. It may have begun to remove.
    pub(super) async fn remove(
        &self,
        call: &Call,
        own: &Own,
        take: &mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> Option<Result<Output, Error>> {
        let (sender, mut lines) = mpsc::unbounded_channel();
        let (key, batch) = self.join(call, Member { own: own.clone(), lines: sender });
        let state = Arc::clone(&batch.state);
        let mut place = Place { removals: self, key, state, id: own.id.clone(), waits: true };
        let mut running = batch.call;
        let mut finished = false;
        let ended = loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => if take(&line) {
                    (finished, place.waits) = (true, false);
                    // The last one waits for the end of the call.
                    if place.state.unfinished.fetch_sub(1, Ordering::AcqRel) > 1 {
                        return Some(Ok(Output::default()));
                    }
                },
                ended = &mut running => break ended,
            }
        };
        place.waits = false;
        while let Ok(line) = lines.try_recv() {
            finished |= take(&line);
        }
        match ended {
            // What came of the others, and of the call, is nothing to one that is finished.
            _ if finished => Some(Ok(Output::default())),
            Ended::Ran(output) => Some(output),
            Ended::Cut => {
                tokio::time::sleep(AFTER_CUT).await;
                None
            }
        }
    }

    /// The batch that waits for others, or a new one.
    fn join(&self, call: &Call, member: Member) -> (Key, Batch) {
        let alone = member.own.alone.then(|| member.own.id.clone());
        let key = (call.transport.spec().name.to_string(), call.words.clone(), alone);
        let mut queues = locked(&self.0);
        let queue = queues.entry(key.clone()).or_default();
        if let Some(open) = &queue.open {
            let mut members = locked(&open.state.members);
            if members.len() < BATCH_SIZE && members.iter().all(|one| one.own.id != member.own.id) {
                members.push(member);
                let open = open.clone();
                drop(members);
                return (key, open);
            }
        }
        let state = Arc::new(BatchState::default());
        locked(&state.members).push(member);
        let others = queue.running > 0;
        let work = self.clone().run(key.clone(), call.clone(), Arc::clone(&state), others);
        let batch = Batch { state, call: work.boxed().shared() };
        queue.open = Some(batch.clone());
        (key, batch)
    }

    async fn run(self, key: Key, call: Call, state: Arc<BatchState>, others: bool) -> Ended {
        if others {
            gathered(&state).await;
        }
        let begun = self.begin(key, &state);
        let ended = drive(&call, &begun.members);
        tokio::select! {
            biased;
            () = state.cut.notified() => Ended::Cut,
            output = ended => Ended::Ran(output),
        }
    }

    /// Takes no more members.
    fn begin(&self, key: Key, state: &Arc<BatchState>) -> Begun {
        let mut queues = locked(&self.0);
        let queue = queues.entry(key.clone()).or_default();
        queue.running += 1;
        if queue.is_open(state) {
            queue.open = None;
        }
        let members = std::mem::take(&mut *locked(&state.members));
        state.unfinished.store(members.len(), Ordering::Release);
        Begun { removals: self.clone(), key, members }
    }
}

/// Call that runs, until it is dropped.
struct Begun {
    removals: Removals,
    key: Key,
    members: Vec<Member>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut queues = locked(&self.removals.0);
        let Some(queue) = queues.get_mut(&self.key) else { return };
        queue.running -= 1;
        if queue.running == 0 && queue.open.is_none() {
            queues.remove(&self.key);
        }
    }
}

/// Member that waits for its batch. Dropped meanwhile it leaves, which cuts off what has begun.
struct Place<'a> {
    removals: &'a Removals,
    key: Key,
    state: Arc<BatchState>,
    id: SandboxId,
    waits: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        let mut queues = locked(&self.removals.0);
        let mut members = locked(&self.state.members);
        let Some(at) = members.iter().position(|one| one.own.id == self.id) else {
            return self.state.cut.notify_one();
        };
        members.remove(at);
        // Nobody is left who would begin it.
        if members.is_empty()
            && let Some(queue) = queues.get_mut(&self.key)
            && queue.is_open(&self.state)
        {
            queue.open = None;
            if queue.running == 0 {
                queues.remove(&self.key);
            }
        }
    }
}

/// Waits until nobody else comes.
async fn gathered(state: &BatchState) {
    let mut count = 0;
    loop {
        let now = locked(&state.members).len();
        if now == count || now >= BATCH_SIZE {
            return;
        }
        count = now;
        tokio::time::sleep(QUIET).await;
    }
}

async fn drive(call: &Call, members: &[Member]) -> Result<Output, Error> {
    let words = members.iter().flat_map(|one| {
        let [first, second] = &one.own.words;
        [one.own.id.as_str(), first, second]
    });
    let command = Command::script(call.script).args(&call.words).args(words);
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let silence = call.limit + call.further * count.saturating_sub(1);
    let heard = Mutex::new(Instant::now());
    let mut about = About::All;
    let mut on_line = |source: Source, line: &[u8]| {
        if source == Source::Stderr {
            return;
        }
        *locked(&heard) = Instant::now();
        match line.strip_prefix(b"of=") {
            Some(b"") => about = About::All,
            Some(id) => about = About::of(members, id),
            // Whoever left does not hear it.
            None => about.members(members).for_each(|one| drop(one.lines.send(line.to_vec()))),
        }
    };
    tokio::select! {
        biased;
        ended = call.transport.stream(&command, silence * count, &mut on_line) => ended,
        () = silent(&heard, silence) => {
            let host = &call.transport.spec().name;
            let message = format!("the removal on {host} did nothing for {} s", silence.as_secs());
            Err(Error::new(Code::Timeout, message))
        }
    }
}

/// Waits until nothing was heard for so long.
async fn silent(heard: &Mutex<Instant>, limit: Duration) {
    loop {
        let until = *locked(heard) + limit;
        if until <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

/// Sandboxes that the next lines are about.
#[derive(Clone, Copy)]
enum About {
    All,
    One(usize),
    Nobody,
}

impl About {
    fn of(members: &[Member], id: &[u8]) -> Self {
        let at = members.iter().position(|one| one.own.id.as_str().as_bytes() == id);
        at.map_or(Self::Nobody, Self::One)
    }

    fn members(self, all: &[Member]) -> impl Iterator<Item = &Member> {
        let some = match self {
            Self::All => all,
            Self::One(at) => &all[at..=at],
            Self::Nobody => &[],
        };
        some.iter()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
