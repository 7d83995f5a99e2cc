//! Batches: removals on one host that one call does together. A removal starts an engine's client a dozen times, of some 50 ms of
//! a processor each, whether it is of one sandbox or of 24.
//!
//! The first removal begins at once. Whoever comes while one is under way waits a moment for others and goes with them. The call is
//! driven by those who wait for it; when one of them leaves, it is cut off, and the others try again.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{Notify, mpsc};

use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::transport::{Command, Output, Source, Transport};

/// Sandboxes that one call removes at most.
const BATCH_SIZE: usize = 32;
/// Time in which nobody else came, after which a batch begins.
const QUIET: Duration = Duration::from_millis(100);
/// Pause before the rest of a batch that was cut off is tried again: its host notices a moment after us.
const AFTER_CUT: Duration = Duration::from_secs(1);
/// Time that each further sandbox adds to the limit of a call.
const LIMIT_EACH: Duration = Duration::from_secs(10);

/// The way to the host and the parameters that all sandboxes of a batch share.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) script: &'static str,
    pub(super) words: Vec<String>,
    /// How long it may take for one.
    pub(super) limit: Duration,
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

#[derive(Clone)]
struct Batch {
    state: Arc<BatchState>,
    call: Shared<BoxFuture<'static, Ended>>,
}

#[derive(Default)]
struct BatchState {
    members: Mutex<Vec<Member>>,
    /// Told when a member leaves after it began.
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
    /// Removes it in one call with others. Its own lines, and those that are about all, go to `take` as they come.
    ///
    /// `None`: another member left, and the call was cut off: try again.
    pub(super) async fn remove(
        &self,
        call: &Call,
        own: &Own,
        take: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Option<Result<Output, Error>> {
        let (sender, mut lines) = mpsc::unbounded_channel();
        let batch = self.join(call, Member { own: own.clone(), lines: sender });
        let mut place = Place { state: Arc::clone(&batch.state), id: own.id.clone(), waits: true };
        let mut running = batch.call;
        let ended = loop {
            tokio::select! {
                biased;
                Some(line) = lines.recv() => take(&line),
                ended = &mut running => break ended,
            }
        };
        place.waits = false;
        while let Ok(line) = lines.try_recv() {
            take(&line);
        }
        match ended {
            Ended::Ran(output) => Some(output),
            Ended::Cut => {
                tokio::time::sleep(AFTER_CUT).await;
                None
            }
        }
    }

    /// The batch that waits for others, or a new one.
    fn join(&self, call: &Call, member: Member) -> Batch {
        let alone = member.own.alone.then(|| member.own.id.clone());
        let key = (call.transport.spec().name.to_string(), call.words.clone(), alone);
        let mut queues = locked(&self.0);
        let queue = queues.entry(key.clone()).or_default();
        if let Some(open) = &queue.open {
            let mut members = locked(&open.state.members);
            if members.len() < BATCH_SIZE && members.iter().all(|one| one.own.id != member.own.id) {
                members.push(member);
                return open.clone();
            }
        }
        let state = Arc::new(BatchState::default());
        locked(&state.members).push(member);
        let others = queue.running > 0;
        let work = self.clone().run(key, call.clone(), Arc::clone(&state), others);
        let batch = Batch { state, call: work.boxed().shared() };
        queue.open = Some(batch.clone());
        batch
    }

    fn run(
        self,
        key: Key,
        call: Call,
        state: Arc<BatchState>,
        others: bool,
    ) -> impl Future<Output = Ended> + Send + 'static {
        async move {
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
    }

    /// Takes no more members.
    fn begin(&self, key: Key, state: &Arc<BatchState>) -> Begun {
        let mut queues = locked(&self.0);
        let queue = queues.entry(key.clone()).or_default();
        queue.running += 1;
        if queue.open.as_ref().is_some_and(|open| Arc::ptr_eq(&open.state, state)) {
            queue.open = None;
        }
        let members = std::mem::take(&mut *locked(&state.members));
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
struct Place {
    state: Arc<BatchState>,
    id: SandboxId,
    waits: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        let mut members = locked(&self.state.members);
        match members.iter().position(|one| one.own.id == self.id) {
            Some(at) => drop(members.remove(at)),
            None => self.state.cut.notify_one(),
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
    let further = u32::try_from(members.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let limit = call.limit + LIMIT_EACH * further;
    let mut about = About::All;
    let mut on_line = |source: Source, line: &[u8]| {
        if source == Source::Stderr {
            return;
        }
        match line.strip_prefix(b"of=") {
            Some(b"") => about = About::All,
            Some(id) => about = About::of(members, id),
            // Whoever left does not hear it.
            None => about.members(members).for_each(|one| drop(one.lines.send(line.to_vec()))),
        }
    };
    call.transport.stream(&command, limit, &mut on_line).await
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
