//! The verbs: [`SandboxManager`] over traits only. It decides what is legal, writes the record before the host is
//! touched, runs the work as a job, and writes down what came of it.

mod archives;
mod attend;
mod begin;
mod busy;
mod bygone;
mod checkpoint;
mod claim;
mod compare;
mod copy;
mod course;
mod create;
mod damage;
mod deep_check;
mod doctor;
mod establish;
mod events;
mod forget;
mod host_events;
mod hosts;
mod import;
mod inputs;
pub mod jobs;
mod labels;
pub mod ledger;
mod lifecycle;
mod outcome;
mod owing;
mod patch_pass;
mod patches;
mod placement;
mod prune;
mod recipe;
mod record;
mod recover;
mod recreate;
mod repeated;
mod reporter;
mod restore;
mod rollout;
mod roots;
mod services;
mod settling;
mod sleep;
mod snapshots;
mod standing;
mod survey;
mod target;
mod unwritten;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};

use crate::domain::error::{Code, Error};
use crate::domain::event::Actor;
use crate::domain::extension::SandboxExtension;
use crate::domain::facts::HostView;
use crate::domain::name::{ExtensionId, HostName, OperationId, SandboxId, SnapshotId, is_hex8};
use crate::domain::operation::{Operation, OperationState};
use crate::domain::record::Record;
use crate::domain::request::ListQuery;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::text::nearest;
use crate::domain::time::Time;
use crate::domain::verbatim::JsonText;
use crate::manager::jobs::Jobs;
use crate::manager::ledger::Ledger;
use crate::store::catalogue::Catalogue;
use crate::store::{
    EventLog, HostStore, Installation, Locks, OperationStore, PatchStore, RecipeStore,
    SandboxStore, SnapshotStore,
};
use crate::transport::Transports;

/// The present moment. The manager asks it; the domain is told.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The catalogue, read when it is first asked for.
pub type LazyCatalogue = Arc<LazyLock<Catalogue, Box<dyn FnOnce() -> Catalogue + Send>>>;

/// 32 random bits, for ids.
pub type Dice = Arc<dyn Fn() -> u32 + Send + Sync>;

/// Whether a process of this machine is there, by its number, and was at that time: a number is used again.
pub type Alive = Arc<dyn Fn(u32, Time) -> bool + Send + Sync>;

/// What the manager takes from the configuration and the environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The profile of a create without one.
    pub default_profile: String,
    /// The host behind the profile's list.
    pub default_host: HostName,
    /// `SANDBOXER_HOST`.
    pub environment_host: Option<String>,
    /// `SANDBOXER_COMPOSE_CMD`.
    pub compose_cmd: Option<String>,
    /// The operator's home directory, refused as a `directory` input.
    pub home: Option<PathBuf>,
    /// This machine's name, for who holds an operation.
    pub machine: String,
    /// Who acts.
    pub actor: Actor,
    /// The configuration file, for hints.
    pub config_file: String,
    /// Where this machine keeps what is needed for a moment.
    pub temporary: PathBuf,
}

/// What the manager stands on. `app.rs` fills it in.
pub struct Parts {
    /// The sandboxes.
    pub sandboxes: Arc<dyn SandboxStore>,
    /// The snapshots.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// The patches.
    pub patches: Arc<dyn PatchStore>,
    /// The operations.
    pub operations: Arc<dyn OperationStore>,
    /// The hosts, as they said last.
    pub hosts: Arc<dyn HostStore>,
    /// The event log.
    pub events: Arc<dyn EventLog>,
    /// Locks across processes.
    pub locks: Arc<dyn Locks>,
    /// Owner ids and counter.
    pub installation: Arc<dyn Installation>,
    /// Recipes by content.
    pub recipes: Arc<dyn RecipeStore>,
    /// Profiles and extension manifests.
    pub catalogue: LazyCatalogue,
    /// The extensions this build has.
    pub extensions: BTreeMap<ExtensionId, Arc<dyn SandboxExtension>>,
    /// The ways to hosts.
    pub transports: Arc<dyn Transports>,
    /// Credits.
    pub ledger: Arc<dyn Ledger>,
    /// The present moment.
    pub clock: Clock,
    /// Random bits.
    pub dice: Dice,
    /// Whether a process of this machine is there.
    pub alive: Alive,
    /// From configuration and environment.
    pub settings: Settings,
}

/// The core: every verb, over traits only. Cheap to clone.
#[derive(Clone)]
pub struct SandboxManager {
    parts: Arc<Parts>,
    jobs: Arc<Jobs>,
    /// Snapshots that this process deleted, as they were.
    deleted: Arc<Mutex<BTreeMap<SnapshotId, SnapshotRecord>>>,
    seen_hosts: Arc<Mutex<BTreeMap<String, HostView>>>,
    /// Findings of deep checks whose ends are about to be told.
    deeply_checked: Arc<Mutex<BTreeMap<OperationId, HostView>>>,
    host_sights: Arc<tokio::sync::Mutex<host_events::HostSights>>,
    log_grew: Arc<tokio::sync::Notify>,
    following: Arc<std::sync::Once>,
}

impl SandboxManager {
    /// A manager over these parts. Starts nothing.
    pub fn new(parts: Parts) -> Self {
        Self {
            parts: Arc::new(parts),
            jobs: Arc::default(),
            deleted: Arc::default(),
            seen_hosts: Arc::default(),
            deeply_checked: Arc::default(),
            host_sights: Arc::default(),
            log_grew: Arc::default(),
            following: Arc::new(std::sync::Once::new()),
        }
    }

    /// Who acts.
    pub fn actor(&self) -> Actor {
        self.parts.settings.actor.clone()
    }

    /// Profiles and extension manifests.
    pub fn catalogue(&self) -> &Catalogue {
        &self.parts.catalogue
    }

    fn now(&self) -> Time {
        (self.parts.clock)()
    }

    /// Sandboxes that pass, oldest first. Those that are over only with `all` or when such a state is named.
    pub async fn list(&self, query: &ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        refuse_unknown_states(query)?;
        let mut records =
            if with_over(query) { self.parts.sandboxes.history().await? } else { Vec::new() };
        records.extend(self.parts.sandboxes.list().await?);
        records.retain(|record| passes(query, record));
        records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(records)
    }

    /// As [`Self::list`], for whoever only hands the records on.
    pub async fn list_json(&self, query: &ListQuery) -> Result<Vec<JsonText>, Error> {
        if !with_over(query) {
            refuse_unknown_states(query)?;
            let query = query.clone();
            return self
                .parts
                .sandboxes
                .list_json(Arc::new(move |record| passes(&query, record)))
                .await;
        }
        let texts: Result<_, _> =
            self.list(query).await?.iter().map(|record| JsonText::of(&**record)).collect();
        texts.map_err(|error| Error::internal("a record cannot be written as JSON").because(error))
    }

    /// The sandbox a reference means: exact id, exact name, unique prefix of an id (4 or more), in this order.
    pub async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        if let Ok(id) = SandboxId::parse(reference)
            && let Some(found) = self.parts.sandboxes.get(&id).await?
        {
            return Ok(found);
        }
        let live = self.parts.sandboxes.list().await?;
        if let Some(found) = exact(&live, reference) {
            return Ok(SandboxRecord::clone(found));
        }
        let history = self.parts.sandboxes.history().await?;
        if let Some(found) = exact(&history, reference) {
            return Ok(SandboxRecord::clone(found));
        }
        for records in [&live, &history] {
            if let Some(found) = by_prefix(records, reference)? {
                return Ok(SandboxRecord::clone(found));
            }
        }
        Err(not_found(reference, &live))
    }

    /// Operations that run and the last day's, oldest first, with what this process knows of their progress.
    pub async fn operations(&self) -> Result<Vec<Operation>, Error> {
        let mut operations = self.parts.operations.list().await?;
        for operation in &mut operations {
            if let Some(progress) = self.jobs.latest(&operation.id) {
                operation.stage = Some(progress.stage);
                operation.done = progress.done;
                operation.of = progress.of;
                operation.bytes = progress.bytes;
            }
        }
        Ok(operations)
    }

    /// One operation: exact id, or a unique beginning of it (`op-` plus 4 characters or more).
    pub async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        let operations = self.operations().await?;
        if let Some(exact) = operations.iter().find(|operation| operation.id.as_str() == reference)
        {
            return Ok(exact.clone());
        }
        let long = reference.strip_prefix("op-").is_some_and(|rest| rest.len() >= 4);
        let mut matches = operations
            .iter()
            .filter(|operation| long && operation.id.as_str().starts_with(reference));
        match (matches.next(), matches.next()) {
            (Some(one), None) => Ok(one.clone()),
            (Some(_), Some(_)) => Err(Error::new(
                Code::Conflict,
                format!("several operations begin with {reference}"),
            )
            .hint("write more of the id")),
            _ => Err(Error::new(Code::NotFound, format!("there is no operation {reference:?}"))
                .hint("`sandboxer operations list` shows those that run and the last day's")),
        }
    }

    /// Asks for an operation's end: of one of this process directly, of another's through its record.
    pub async fn cancel(&self, id: &OperationId) -> Result<(), Error> {
        if self.jobs.cancel(id) {
            return Ok(());
        }
        let operation = self.parts.operations.get(id).await?.ok_or_else(|| {
            Error::new(Code::NotFound, format!("there is no operation {id}"))
                .hint("the dashboard's J lists them")
        })?;
        match operation.subject.sandbox() {
            Some(sandbox) if operation.state == OperationState::Running => {
                self.request_cancel(sandbox, Some(id)).await.map(|_| ())
            }
            // One that works on a snapshot alone looks for this by itself.
            None if operation.state == OperationState::Running => {
                self.parts.operations.request_cancel(id).await.map(|_| ())
            }
            // It has ended by itself.
            _ => Ok(()),
        }
    }

    /// Waits for an operation's end, whichever process runs it; what it worked on as it is then, or what went wrong.
    pub async fn wait(&self, id: &OperationId) -> Result<Record, Error> {
        match self.jobs.ended(id).await {
            Some(ended) => ended.outcome,
            None => outcome::outcome_of(self, &self.watch_elsewhere(id).await?).await,
        }
    }

    /// Waits for an operation's end; the operation, and the sandbox that it worked on, as they are then.
    pub async fn finish(
        &self,
        id: &OperationId,
    ) -> Result<(Operation, Option<SandboxRecord>), Error> {
        let operation = match self.jobs.ended(id).await {
            Some(ended) => ended.operation,
            None => self.watch_elsewhere(id).await?,
        };
        let record = match operation.subject.sandbox() {
            Some(sandbox) => Some(self.get(sandbox.as_str()).await?),
            None => None,
        };
        Ok((operation, record))
    }

    /// Rolls back what runs, ends followers, closes connections.
    pub async fn close(&self) {
        self.jobs.close().await;
        self.parts.transports.close().await;
    }

    fn extension(&self, id: &ExtensionId) -> Result<Arc<dyn SandboxExtension>, Error> {
        self.parts.extensions.get(id.as_str()).cloned().ok_or_else(|| {
            Error::new(Code::Unsupported, format!("this version of sandboxer has no {id}"))
                .hint("`sandboxer extensions list` shows what is available")
        })
    }

    /// What the manifest of an extension says of its version.
    fn extension_version(&self, id: &ExtensionId) -> Option<String> {
        let manifest =
            self.parts.catalogue.extension(id.as_str()).and_then(|entry| entry.definition());
        manifest.ok().map(|manifest| manifest.version.to_string())
    }
}

/// Whether a list also shows what is over.
fn with_over(query: &ListQuery) -> bool {
    query.all || query.states.iter().any(State::is_over)
}

fn passes(query: &ListQuery, record: &SandboxRecord) -> bool {
    let profile = query.profile.as_deref().map(|id| id.strip_prefix("profile.").unwrap_or(id));
    (with_over(query) || !record.state.is_over())
        && (query.states.is_empty() || query.states.contains(&record.state))
        && query.host.as_deref().is_none_or(|host| record.host.same(host))
        && profile.is_none_or(|id| record.profile.id.as_str().trim_start_matches("profile.") == id)
        && query.labels.iter().all(|(key, value)| record.labels.get(key) == Some(value))
}

fn refuse_unknown_states(query: &ListQuery) -> Result<(), Error> {
    match query.states.iter().find(|state| matches!(state, State::Other(_))) {
        Some(state) => Err(unknown_state(state)),
        None => Ok(()),
    }
}

/// The record with exactly this id or, if there is none, this name.
fn exact<'a>(records: &'a [Arc<SandboxRecord>], reference: &str) -> Option<&'a Arc<SandboxRecord>> {
    if let Some(record) = records.iter().find(|record| record.id.as_str() == reference) {
        return Some(record);
    }
    // A name may have been used again after its first bearer was destroyed, or came to nothing: the living one is meant.
    let named = || records.iter().rev().filter(|record| record.name.as_deref() == Some(reference));
    let living = named().find(|record| record.name_in_use().is_some());
    living.or_else(|| named().find(|record| !record.state.is_over())).or_else(|| named().next())
}

fn by_prefix<'a>(
    records: &'a [Arc<SandboxRecord>],
    reference: &str,
) -> Result<Option<&'a Arc<SandboxRecord>>, Error> {
    if reference.len() < 4 {
        return Ok(None);
    }
    let matches: Vec<&Arc<SandboxRecord>> =
        records.iter().filter(|record| record.id.as_str().starts_with(reference)).collect();
    match matches.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let ids: Vec<&str> = several.iter().map(|record| record.id.as_str()).collect();
            Err(Error::new(
                Code::Conflict,
                format!("several sandboxes begin with that: {}", ids.join(", ")),
            )
            .hint("write more of the id")
            .detail("matches", ids))
        }
    }
}

fn not_found(reference: &str, live: &[Arc<SandboxRecord>]) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let fault = Error::new(Code::NotFound, format!("there is no sandbox {shown:?}"));
    let there = live.iter().filter(|record| !record.state.is_over());
    let known =
        there.flat_map(|record| record.name.as_deref().into_iter().chain([record.id.as_str()]));
    match nearest(&shown, known) {
        Some(near) => fault.hint(format!("did you mean {near}?")),
        None if reference.len() < 4 && !reference.is_empty() && !is_hex8(reference) => fault.hint(
            "a prefix of an id needs 4 characters or more; `sandboxer list` shows what there is",
        ),
        None => fault.hint("`sandboxer list --all` shows what there is and was"),
    }
}

fn unknown_state(state: &State) -> Error {
    let known: Vec<&str> = State::ALL.iter().map(State::as_str).collect();
    let fault = Error::invalid_input("state", format!("there is no state {:?}", state.as_str()));
    match nearest(state.as_str(), known.iter().copied()) {
        Some(near) => fault.hint(format!("did you mean {near}?")),
        None => fault.hint(format!("states are {}", known.join(", "))),
    }
}

/// The id of a sandbox whose record an operation is about to write.
fn random_id(dice: &Dice) -> SandboxId {
    SandboxId::from_random(dice())
}
