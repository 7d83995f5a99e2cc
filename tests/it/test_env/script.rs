//! What a test has the world do, and what it was asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::archive::ARRIVED_OTHERWISE;
use sandboxer::domain::error::Kind;
use sandboxer::domain::extension::{
    HostAnswer, Inspection, MeterQuote, Preview, Readiness, Target, Unsettled,
};
use sandboxer::domain::host_report::{HostReport, RuntimeDetection};
use sandboxer::domain::hub::HubFormat;
use sandboxer::domain::output::{ExecOutput, LogLine};
use sandboxer::domain::reporter::{Report, Reporter};
use sandboxer::domain::root::{KnownRoots, MarkedRoot};
use sandboxer::domain::sandbox::{SandboxRecord, Service};
use sandboxer::domain::undo::{Footprint, UndoSettings};
use sandboxer::domain::{Code, Error, HostName, SandboxId, Time};
use sandboxer::transport::hub::HubToken;
use tokio::sync::Notify;

use super::archives::Shelf;
use super::hosts::Machine;

/// What the scripted extension does at a step.
#[derive(Clone)]
pub(crate) enum Act {
    Well,
    Fail(Code, &'static str),
    Untouched(Code),
    Panic,
    Hang,
    /// A removal waits for its turn on its host, and has not begun.
    InLine,
    Slow,
    /// It waits until it is let go.
    Until(Arc<Notify>),
    LeaveNetwork,
    Refuse,
    /// The archive is proved to be another one.
    Altered,
    /// What was copied did not arrive as it was sent.
    Otherwise,
}

impl Act {
    /// The host does not answer.
    pub(crate) fn no_route() -> Self {
        Self::Fail(Code::HostUnreachable, "no route")
    }

    /// The host's disk is full.
    pub(crate) fn full() -> Self {
        Self::Fail(Code::OperationFailed, "No space left on device")
    }

    pub(crate) fn fails(words: &'static str) -> Self {
        Self::Fail(Code::OperationFailed, words)
    }
}

/// How a patch's script ends.
#[derive(Clone)]
pub(crate) enum Script {
    Exits(i32),
    /// Its time is over.
    TimedOut,
    /// Nobody knows how.
    LinkBreaks,
    /// It is not even begun.
    NotBegun,
    Hangs,
    /// It takes so long, and exits 0.
    Takes(Duration),
    /// It takes until it is let go, and exits 0.
    Until(Arc<Notify>),
    /// It takes so long, and is ended when its time is over, as a host does it.
    Works(Duration),
}

/// What services log.
#[derive(Clone, Default)]
pub(crate) enum LogScript {
    #[default]
    Nothing,
    /// These lines, then nothing, until nobody wants more.
    Open(Vec<LogLine>),
    /// These lines, and the end.
    Ended(Vec<LogLine>),
    /// It cannot be opened.
    Refused(Error),
    /// These lines, and then it breaks.
    Broken(Vec<LogLine>, Error),
    /// This line for ever, as fast as it is taken.
    Flood(LogLine),
}

/// Value that a test sets and the world reads, or the other way round.
#[derive(Default)]
pub(crate) struct Locked<T>(Mutex<T>);

/// What the next calls do, the first of them first.
pub(crate) type Queue<T> = Locked<VecDeque<T>>;

impl<T> Deref for Locked<T> {
    type Target = Mutex<T>;

    fn deref(&self) -> &Mutex<T> {
        &self.0
    }
}

impl<T> From<T> for Locked<T> {
    fn from(value: T) -> Self {
        Self(Mutex::new(value))
    }
}

impl<T> Locked<T> {
    pub(crate) fn set(&self, value: T) {
        *self.0.lock().unwrap() = value;
    }
}

impl<T: Clone> Locked<T> {
    pub(crate) fn get(&self) -> T {
        self.0.lock().unwrap().clone()
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&self, next: T) {
        self.0.lock().unwrap().push_back(next);
    }

    pub(crate) fn extend(&self, next: impl IntoIterator<Item = T>) {
        self.0.lock().unwrap().extend(next);
    }

    pub(crate) fn next(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }
}

impl Queue<Act> {
    /// Does what comes next; where nothing was said, all is well.
    pub(super) async fn act(&self) -> Result<(), Error> {
        Scripted::act(self.next().unwrap_or(Act::Well)).await
    }
}

/// What the world does, and what it was asked.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) provision: Queue<Act>,
    pub(crate) ready: Queue<Act>,
    /// What is to be waited for beyond that, and how that goes.
    pub(crate) unsettled: Locked<Unsettled>,
    pub(crate) settled: Queue<Act>,
    pub(crate) dated: Queue<Act>,
    pub(crate) teardown: Queue<Act>,
    /// Hosts on which nothing is torn down or dated: they do not answer.
    pub(crate) down: Locked<BTreeSet<&'static str>>,
    /// Milliseconds by which the wall clock and the monotonic one are ahead of this machine's.
    pub(crate) wall_ahead: AtomicI64,
    pub(crate) monotonic_ahead: AtomicI64,
    /// Whether the configuration forbids `third`.
    pub(crate) third_is_forbidden: AtomicBool,
    /// The moment at which everything happens, but for what passed since; none: now.
    pub(crate) standing: Locked<Option<Time>>,
    /// Actor of managers that are made from then on.
    pub(crate) actor: Locked<Option<Actor>>,
    /// The id that was made last, where ids are counted.
    pub(crate) counted_ids: Locked<Option<u32>>,
    /// Hosts that are no machines, by name.
    pub(crate) machines: Locked<BTreeMap<String, Machine>>,
    /// Progress that is told by whatever is made, captured, restored or removed, before it goes on.
    pub(crate) progress: Locked<Vec<Report>>,
    /// What services log; how many logs are followed, and how many lines were taken of them.
    pub(crate) log: Locked<LogScript>,
    pub(crate) open_logs: AtomicUsize,
    pub(crate) log_lines: AtomicU64,
    /// What happens right before the next locks of sandboxes are asked for.
    pub(crate) before_lock: Queue<BoxFuture<'static, ()>>,
    pub(crate) preview: Queue<Act>,
    /// What previews say where nothing is refused.
    pub(crate) previewed: Locked<Preview>,
    /// How what is made can be reached.
    pub(crate) readiness: Locked<Option<Readiness>>,
    /// Services that the next looks at one sandbox find, before they find what is known.
    pub(crate) looks: Queue<Vec<Service>>,
    /// What commands in sandboxes write, and their end; without one they run on. None: they do as a deep check needs it.
    pub(crate) exec: Locked<Option<Vec<Result<ExecOutput, Error>>>>,
    /// What the last of them read.
    pub(crate) read: Locked<Option<Vec<u8>>>,
    /// The words of a shell.
    pub(crate) shell: Locked<Vec<&'static str>>,
    /// How the next scripts of patches end, and what the next sleeps and wakes do.
    pub(crate) patch: Queue<Script>,
    /// The time that each of them was given.
    pub(crate) limits: Locked<Vec<Duration>>,
    pub(crate) sleep: Queue<Act>,
    pub(crate) wake: Queue<Act>,
    /// What the next to read the patches do before they go on.
    pub(crate) list: Queue<Act>,
    /// What the next commands in sandboxes print; then, what was written last is there to be read.
    pub(crate) says: Queue<&'static str>,
    pub(crate) written: Locked<String>,
    /// What `inspect` finds, and what `services` reports of each sandbox that it is asked about.
    pub(crate) seen: Locked<Inspection>,
    /// Services of sandboxes of which it knows them, instead of those.
    pub(crate) services: Locked<BTreeMap<SandboxId, Vec<Service>>>,
    /// Sandboxes of which their host has nothing when it is asked for one.
    pub(crate) gone: Locked<BTreeSet<SandboxId>>,
    /// Whether the host has nothing of any sandbox.
    pub(crate) nothing_there: Locked<bool>,
    /// Whether what has a workspace only has containers all the same.
    pub(crate) has_containers: Locked<bool>,
    /// Whether the process that an operation names lives.
    pub(crate) lives: Locked<bool>,
    /// The counter that the host has of the installation.
    pub(crate) host_counter: Locked<u64>,
    /// The root that the host says it has, where that is not known to who asks.
    pub(crate) root: Locked<Option<MarkedRoot>>,
    /// What makers and removers were told of roots.
    pub(crate) told: Locked<Vec<KnownRoots>>,
    /// Where sandboxes are instead of `/srv`.
    pub(crate) workdirs: Locked<Option<PathBuf>>,
    /// What hosts answer before anything is made, by name.
    pub(crate) hosts: Locked<BTreeMap<String, Result<HostAnswer, Error>>>,
    /// Hosts that were asked so, in order.
    pub(crate) examined: Locked<Vec<String>>,
    /// What it was told of detections when it asked hosts.
    pub(crate) known: Locked<Vec<Option<RuntimeDetection>>>,
    /// What a host says of itself when something is made there, and what makers were told that it said last.
    pub(crate) report: Locked<Option<HostReport>>,
    pub(crate) reports: Locked<Vec<Option<HostReport>>>,
    /// The State Hub of managers that are made from then on.
    pub(crate) hub: Locked<Option<(String, HubToken, HubFormat)>>,
    /// What undo snapshots may take, in managers that are made from then on.
    pub(crate) undo: Locked<UndoSettings>,
    /// Micro-dollars per second that sandboxes cost; none: nothing.
    pub(crate) price: Locked<Option<i64>>,
    /// Micro-dollars that each cost in all, where that is not by the price, and how the next questions for it go.
    pub(crate) cost: Locked<Option<i64>>,
    pub(crate) metered: Queue<Act>,
    /// How large sandboxes are, and what their host has room for.
    pub(crate) footprint: Locked<Footprint>,
    /// How the next questions for that go.
    pub(crate) measure: Queue<Act>,
    /// What its host keeps of snapshots.
    pub(crate) shelf: Shelf,
    pub(crate) asked: Locked<Vec<String>>,
    /// Records as the manifests on hosts have them.
    pub(crate) manifests: Locked<BTreeMap<SandboxId, SandboxRecord>>,
    /// Script of a second extension, `ext.saas-stub`, in managers that are made from then on.
    pub(crate) paid: Locked<Option<Arc<Scripted>>>,
    /// Place of its own.
    pub(crate) place: Locked<Option<HostName>>,
    /// Price of a sandbox, where that is not by the second.
    pub(crate) quote: Locked<Option<MeterQuote>>,
    /// `config` that it was given with each that it made.
    pub(crate) configs: Locked<Vec<String>>,
}

impl Scripted {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.asked.lock().unwrap().push(what.into());
    }

    pub(super) fn find_root(&self, known: &KnownRoots, reporter: &dyn Reporter) {
        self.told.lock().unwrap().push(known.clone());
        let found = self.root.get().filter(|root| !known.marked.contains(root));
        if let Some(root) = found {
            reporter.found_root(&root);
        }
    }

    /// The moment by the wall clock.
    pub(crate) fn wall(&self) -> Time {
        let base = self.standing.get().map_or_else(jiff::Timestamp::now, Time::timestamp);
        let ahead = self.wall_ahead.load(Ordering::SeqCst);
        Time::new(base + jiff::SignedDuration::from_millis(ahead))
    }

    /// The next id.
    pub(crate) fn random_u32(&self) -> u32 {
        match &mut *self.counted_ids.lock().unwrap() {
            Some(last) => {
                *last += 1;
                last.wrapping_mul(2_654_435_761)
            }
            None => uuid::Uuid::new_v4().as_fields().0,
        }
    }

    pub(super) fn tell(&self, reporter: &dyn Reporter) {
        for report in self.progress.get() {
            reporter.report(report);
        }
    }

    /// Time passes.
    pub(crate) fn pass(&self, seconds: i64) {
        self.wall_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
        self.monotonic_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// The wall clock jumps: it was set, or the machine slept.
    pub(crate) fn jump(&self, seconds: i64) {
        self.wall_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    pub(super) fn check_up(&self, target: &Target) -> Result<(), Error> {
        if self.down.lock().unwrap().contains(target.host.as_str()) {
            return Err(Error::new(Code::HostUnreachable, "no route").untouched());
        }
        Ok(())
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.get()
    }

    pub(crate) async fn act(act: Act) -> Result<(), Error> {
        match act {
            Act::Fail(code, words) => Err(Error::new(code, words)),
            Act::Untouched(code) => Err(Error::new(code, "before anything").untouched()),
            Act::Altered => {
                let fault = Error::new(Code::OperationFailed, "the archive was cut short");
                Err(fault.of_kind(Kind::ArchiveAltered).detail("kind", "altered"))
            }
            Act::Otherwise => {
                let fault = Error::new(
                    Code::OperationFailed,
                    "the archive did not arrive on second as it was sent",
                );
                Err(fault.of_kind(Kind::ArrivedOtherwise).detail("kind", ARRIVED_OTHERWISE))
            }
            Act::Until(go_on) => {
                go_on.notified().await;
                Ok(())
            }
            Act::Panic => panic!("a scripted panic"),
            Act::Hang | Act::InLine => {
                tokio::time::sleep(Duration::from_hours(1)).await;
                Ok(())
            }
            Act::Slow => {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
