//! Runs effects on the client, each in a task of its own, and answers with a message: on failure too, and on a
//! panic. The tasks are owned here: they hear "stop" and are waited for.

mod complete;
mod follow;
mod questions;
mod scripts;
mod verbs;

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use std::os::unix::fs::DirBuilderExt as _;

use crate::client::{Client, Error, EventQuery, ListQuery, LogsRequest, SnapshotQuery};
use crate::domain::error::Code;
use crate::domain::event::Event;
use crate::domain::name::{PatchId, SandboxId, SnapshotId};
use crate::domain::{State, Time};
use crate::tui::effects::scripts::add_patch;
use crate::tui::message::{Effect, Msg, Timer};
use crate::tui::model::{Entry, EventRows, JobId, LastLook, LogText, SavedState};

/// How many targets of a bulk are begun at once.
const AT_ONCE: usize = 8;
/// How many destroyed sandboxes are shown.
const DESTROYED: usize = 1000;
/// How many kept events are handed over.
const EVENTS: usize = 300;

/// Runs effects.
pub struct Effects {
    client: Arc<dyn Client>,
    queue: mpsc::Sender<Msg>,
    tasks: TaskTracker,
    stop: CancellationToken,
    begun: Arc<Semaphore>,
    state_file: Option<PathBuf>,
    /// Ends the log that is followed.
    followed: Mutex<CancellationToken>,
    /// Ends the waiting for rollouts.
    rollouts: Mutex<HashMap<JobId, CancellationToken>>,
}

impl Effects {
    /// Effects on a client; their answers go into the queue.
    pub fn new(
        client: Arc<dyn Client>,
        queue: mpsc::Sender<Msg>,
        state_file: Option<PathBuf>,
    ) -> Self {
        Self {
            client,
            queue,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            begun: Arc::new(Semaphore::new(AT_ONCE)),
            state_file,
            followed: Mutex::default(),
            rollouts: Mutex::default(),
        }
    }

    /// The client that they work on.
    pub fn client(&self) -> Arc<dyn Client> {
        Arc::clone(&self.client)
    }

    /// Ends all tasks and waits for them, but not for ever: what they wait for may never answer.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(Duration::from_millis(500), self.tasks.wait()).await;
    }

    /// From now on no target of a bulk is begun that was not begun before.
    pub fn begin_nothing(&self) {
        self.begun.close();
    }

    /// Runs one effect. Those of the terminal are the loop's and do nothing here.
    pub fn run(&self, effect: Effect) {
        let client = Arc::clone(&self.client);
        match effect {
            Effect::After(wait, timer) => self.after(wait, *timer),
            Effect::List => self.answer(Msg::Listed, async move {
                let records = client.list(ListQuery::default()).await?;
                // The filter's texts are made here, off the UI's thread.
                Ok(records.into_iter().map(|record| Arc::new(Entry::new(record))).collect())
            }),
            Effect::ListDestroyed(since) => {
                let read = async move { destroyed(client.as_ref(), since).await };
                self.answer(Msg::ListedDestroyed, read);
            }
            Effect::Get(id) => {
                let of = id.clone();
                self.answer(move |answer| Msg::Got(of, answer), async move {
                    client.get(id.as_str()).await.map(|record| Box::new(Entry::new(record)))
                });
            }
            Effect::Hosts => self.answer(Msg::Hosts, async move { client.hosts().await }),
            Effect::CheckHost(name) => self.check_host(name),
            Effect::SampleHost(name) => self.sample_host(name),
            Effect::Events(of, since) => {
                let about = of.clone();
                self.answer(move |answer| Msg::Events(about, answer), async move {
                    events(client.as_ref(), of, since).await
                });
            }
            Effect::SinceLastLook(look, since) => self.since_last_look(look, since),
            Effect::Profiles => self.answer(Msg::Profiles, async move { client.profiles().await }),
            Effect::Plan(generation, request) => {
                self.answer(move |answer| Msg::Planned(generation, answer), async move {
                    client.plan_create(*request).await.map(Box::new)
                });
            }
            Effect::Subscribe => self.listen(),
            Effect::Discard(old) => {
                self.tasks.spawn_blocking(move || drop(old));
            }
            Effect::SaveState(saved_state) => self.save_state(saved_state),
            Effect::Operations => {
                self.answer(Msg::Operations, async move { client.operations().await });
            }
            Effect::Stale => self.stale(),
            Effect::PlanReap(number) => self.plan_reap(number),
            Effect::InspectStale(number) => self.inspect_stale(number),
            Effect::Sweep(number) => self.sweep(number),
            Effect::RefreshServices(name) => self.refresh_services(name),
            Effect::Follow(generation, request) => self.follow(generation, request),
            Effect::Unfollow => drop(self.next_followed()),
            Effect::SaveLog(form, path, lines) => self.save(form, path, lines),
            Effect::Complete(typed, home, folders) => self.complete(typed, home, folders),
            Effect::Start(job, request) => self.start(job, request),
            Effect::Cancel(job, operation) => {
                self.answer(move |answer| Msg::CancelAsked(job, answer), async move {
                    client.cancel(&operation).await
                });
            }
            Effect::Label(request) => self.label(request),
            Effect::Extend(form, request) => self.extend(form, request),
            Effect::Snapshots => self.answer(Msg::Snapshots, async move {
                client.snapshots(SnapshotQuery { all: true }).await
            }),
            Effect::EventLog(since) => self.event_log(since),
            Effect::HubBacklog => {
                self.answer(Msg::HubBacklog, async move { client.hub_backlog().await });
            }
            Effect::Credits(now) => self.credits(now),
            Effect::Grant(form, request) => self.grant(form, request),
            Effect::Extensions => {
                self.answer(Msg::Extensions, async move { client.extensions().await });
            }
            Effect::Compare(number, request) => {
                self.answer(move |answer| Msg::Compared(number, answer), async move {
                    client.diff_snapshot(request).await.map(Box::new)
                });
            }
            Effect::PatchStatus(id) => {
                let of = id.clone();
                self.answer(move |answer| Msg::PatchStatus(of, answer), async move {
                    client.patch_status(id.as_str()).await
                });
            }
            Effect::AddPatch(number, request, file) => {
                self.answer(move |answer| Msg::PatchAdded(number, answer), async move {
                    add_patch(client.as_ref(), request, file).await
                });
            }
            Effect::RemovePatch(snapshot, patch) => self.remove_patch(snapshot, patch),
            Effect::RollOut(job, request) => self.roll_out(job, request),
            Effect::StopRollout(job) => self.stop_rollout(job),
            // The loop's.
            Effect::Quit
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Copy(_)
            | Effect::Notify(_)
            | Effect::Mouse(_)
            | Effect::Shell(..)
            | Effect::Write(_) => {}
        }
    }

    fn remove_patch(&self, snapshot: SnapshotId, patch: PatchId) {
        let client = Arc::clone(&self.client);
        self.answer(Msg::PatchRemoved, async move {
            client.remove_patch(snapshot.as_str(), patch.as_str()).await.map(Box::new)
        });
    }

    fn event_log(&self, since: Time) {
        let client = Arc::clone(&self.client);
        self.answer(Msg::EventLog, async move {
            // One more than is kept tells that there are older ones. The rows are made here, off the UI's thread.
            let newest = Some(EventRows::KEPT + 1);
            let query = EventQuery { since: Some(since), newest, ..EventQuery::default() };
            client.events(query).await.map(|events| Box::new(EventRows::of(&events)))
        });
    }

    fn after(&self, wait: Duration, timer: Timer) {
        self.task(|_| Msg::Disconnected, async move {
            tokio::time::sleep(wait).await;
            Msg::Due(timer)
        });
    }

    /// Reads the events since a look. By the number, not the time: what a crash left is appended late. Of a look that is long
    /// past, only what is told is read.
    fn since_last_look(&self, look: LastLook, since: Time) {
        let client = Arc::clone(&self.client);
        self.answer(move |answer| Msg::SinceLastLook(look, answer), async move {
            let after_seq = (since == look.at).then_some(look.seq);
            let since = after_seq.is_none().then_some(since);
            let query = EventQuery { after_seq, since, ..EventQuery::default() };
            client.events(query).await
        });
    }

    fn complete(&self, typed: String, home: Option<PathBuf>, folders: bool) {
        self.on_thread(move || {
            let completion = complete::complete(&typed, home.as_deref(), folders);
            Msg::Completed(typed, completion)
        });
    }

    /// Work on files, on a thread of its own, that ends with one message.
    fn on_thread(&self, work: impl FnOnce() -> Msg + Send + 'static) {
        let queue = self.queue.clone();
        self.tasks.spawn_blocking(move || {
            let _ = queue.blocking_send(work());
        });
    }

    /// A task that asks the client and tells what it answered, or why it could not.
    fn answer<T, M, F>(&self, told: M, work: F)
    where
        M: FnOnce(Result<T, Error>) -> Msg + Clone + Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let failed = told.clone();
        self.task(move |problem| failed(Err(problem)), async move { told(work.await) });
    }

    /// A task that ends with one message; a panic in it becomes that message's failure.
    fn task<F>(&self, failed: impl FnOnce(Error) -> Msg + Send + 'static, work: F)
    where
        F: Future<Output = Msg> + Send + 'static,
    {
        let (queue, stop) = (self.queue.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                ended = AssertUnwindSafe(work).catch_unwind() => {
                    let msg = ended.unwrap_or_else(|panic| failed(panicked(panic.as_ref())));
                    // The loop is gone: nobody is left to be told.
                    let _ = queue.send(msg).await;
                }
            }
        });
    }

    /// Forwards the event stream. A full queue makes the stream lag, and the client says so with a resync.
    fn listen(&self) {
        let client = Arc::clone(&self.client);
        let queue = self.queue.clone();
        self.task(|_| Msg::Disconnected, async move {
            let mut stream = match client.subscribe().await {
                Ok(stream) => stream,
                Err(problem) => return Msg::Subscribed(Err(problem)),
            };
            let _ = queue.send(Msg::Subscribed(Ok(()))).await;
            while let Some(heard) = stream.next().await {
                if queue.send(Msg::Heard(Box::new(heard))).await.is_err() {
                    break;
                }
            }
            Msg::Disconnected
        });
    }

    /// Ends the log that is followed; what ends the next one.
    fn next_followed(&self) -> CancellationToken {
        let next = self.stop.child_token();
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *followed, next.clone()).cancel();
        next
    }

    fn follow(&self, generation: u64, request: LogsRequest) {
        let (client, queue) = (Arc::clone(&self.client), self.queue.clone());
        let closed = self.next_followed();
        self.task(move |problem| Msg::LogEnded(generation, Err(problem)), async move {
            tokio::select! {
                ended = follow::follow(client, request, generation, queue) => Msg::LogEnded(generation, ended),
                // The stream is dropped with the rest of this; nobody listens to this end any more.
                () = closed.cancelled() => Msg::LogEnded(generation, Ok(())),
            }
        });
    }

    fn save(&self, form: u64, path: PathBuf, lines: Vec<Arc<LogText>>) {
        self.on_thread(move || {
            let saved = save_log(&path, &lines).map_err(|error| {
                let why = match error.kind() {
                    std::io::ErrorKind::AlreadyExists => {
                        "is there already: choose another name".to_owned()
                    }
                    _ => format!("cannot be written: {error}"),
                };
                Error::invalid_input("log_file", format!("{} {why}", path.display()))
            });
            Msg::LogSaved(form, path, saved.map(|()| lines.len()))
        });
    }

    /// Writes what is remembered; that it cannot be written is no reason to disturb anyone.
    fn save_state(&self, saved_state: SavedState) {
        let Some(path) = self.state_file.clone() else { return };
        self.tasks.spawn_blocking(move || {
            if let Err(error) = write_state(&path, &saved_state) {
                tracing::debug!(%error, path = %path.display(), "the dashboard's state was not written");
            }
        });
    }
}

/// Writes a log into a file that is not there yet, the service before each line.
fn save_log(path: &std::path::Path, lines: &[Arc<LogText>]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    // What services write may be secret.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut out = std::io::BufWriter::new(file);
    for line in lines {
        let mark = if line.stderr { '!' } else { '|' };
        match &line.service {
            Some(service) => writeln!(out, "{service} {mark} {}", line.text)?,
            None => writeln!(out, "{}", line.text)?,
        }
    }
    out.flush()
}

/// Writes the state file by way of a temporary one.
pub fn write_state(path: &std::path::Path, saved_state: &SavedState) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| std::path::Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = tempfile::NamedTempFile::new_in(folder)?;
    std::fs::write(file.path(), saved_state.to_json())?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

/// Sandboxes that were destroyed since, the newest first.
async fn destroyed(client: &dyn Client, since: Time) -> Result<Vec<Arc<Entry>>, Error> {
    let query = ListQuery { states: vec![State::Destroyed], all: true, ..ListQuery::default() };
    let mut records = client.list(query).await?;
    records.retain(|record| record.state == State::Destroyed && record.since >= since);
    records.sort_by_key(|record| std::cmp::Reverse(record.since));
    records.truncate(DESTROYED);
    Ok(records.into_iter().map(|record| Arc::new(Entry::new(record))).collect())
}

async fn events(
    client: &dyn Client,
    of: Option<SandboxId>,
    since: Option<Time>,
) -> Result<Vec<Event>, Error> {
    let mut events =
        client.events(EventQuery { sandbox: of, since, ..EventQuery::default() }).await?;
    events.drain(..events.len().saturating_sub(EVENTS));
    Ok(events)
}

/// A panic as a problem.
fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason was given".to_owned());
    let mut problem = Error::new(Code::Internal, "a task of the dashboard panicked")
        .hint("this is an error of sandboxer; its log file has the place");
    problem.causes = vec![text];
    problem
}
