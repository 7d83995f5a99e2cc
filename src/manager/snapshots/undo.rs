//! Undo: brings a removed sandbox back, as a new one, from the undo snapshot that was taken before (semantics 5).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::domain::error::{Code, Error};
use crate::domain::extension::Capability;
use crate::domain::figures::age_of;
use crate::domain::name::SandboxId;
use crate::domain::operation::OperationKind;
use crate::domain::profile::Seconds;
use crate::domain::request::Started;
use crate::domain::retention::oldest_first;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::time::Time;
use crate::domain::undo::{UndoRequest, names_for};
use crate::manager::deps::Deps;
use crate::manager::sandboxes::create::Origin;
use crate::manager::sandboxes::find::find_sandbox;
use crate::manager::snapshots::archives::profile_of_snapshot;
use crate::manager::snapshots::pinned_profile::pinned_profile_as_known;
use crate::manager::snapshots::restore::{RestorePlan, start_restore};

/// Starts to bring a removed sandbox back and returns at once: with its labels, inputs, base and patches, its name where nobody
/// has that, and the time to live that it had, anew. A removal that is named is taken back as often as somebody asks; without
/// a name the last one of which nothing came back yet.
///
/// Errors: `not_found` with why there is nothing to bring back, and whatever a restore refuses.
pub(crate) async fn undo(deps: &Deps, request: &UndoRequest) -> Result<Started, Error> {
    let known = Known::read(deps).await?;
    let snapshot = match &request.id {
        Some(reference) => match known.named(deps, reference).await {
            Some(snapshot) => snapshot,
            None => return Err(nothing_of(deps, &known, reference).await),
        },
        None => known.last().ok_or_else(|| nothing_at_all(deps, &known))?,
    };
    let extension = deps.extension(&snapshot.extension)?;
    extension.ensure(&Capability::Snapshots, "restore snapshots")?;
    let profile = profile_of_snapshot(deps, snapshot).await?;
    let ttl_s = match &snapshot.undo {
        Some(facts) => facts.ttl_s,
        None => profile.parse_ttl(None)?.map(Seconds::get),
    };
    let plan = RestorePlan {
        origin: Origin::Removed(snapshot),
        host: snapshot.host.as_str(),
        names: known.free(names_for(snapshot.sandbox_name.as_deref())),
        labels: snapshot.labels.clone(),
        ttl_s,
        profile,
        strict: false,
        require_patches: false,
    };
    start_restore(deps, snapshot, plan).await
}

/// Undo snapshots, and the sandboxes that were and are.
struct Known {
    /// Undo snapshots that are whole and kept still, the newest first.
    kept: Vec<SnapshotRecord>,
    /// Undo snapshots of which that is not so.
    others: Vec<SnapshotRecord>,
    live: Vec<Arc<SandboxRecord>>,
    /// Names and ids that no sandbox may be called.
    taken: BTreeSet<String>,
}

impl Known {
    async fn read(deps: &Deps) -> Result<Self, Error> {
        let now = deps.now();
        let snapshots = deps.snapshots.list_by_insertion().await?;
        let (live, history) = tokio::try_join!(deps.sandboxes.list(), deps.sandboxes.history())?;
        let names = live.iter().filter_map(|record| record.name_in_use().map(str::to_owned));
        let ids = live.iter().chain(&history).map(|record| record.id.to_string());
        let taken = names
            .chain(ids)
            .chain(snapshots.iter().map(|snapshot| snapshot.id.to_string()))
            .collect();
        let undo = snapshots.iter().filter(|snapshot| snapshot.kind == SnapshotKind::Undo);
        let newest_first = oldest_first(undo).into_iter().rev().cloned();
        let (kept, others) = newest_first.partition(|snapshot| {
            let ready = snapshot.state == SnapshotState::Ready && !snapshot.is_lost();
            ready && snapshot.expires_at.is_none_or(|end| end > now)
        });
        Ok(Self { kept, others, live, taken })
    }

    /// The newest undo snapshot that a reference means: a sandbox's id, its own id, or the name that a sandbox had.
    async fn named(&self, deps: &Deps, reference: &str) -> Option<&SnapshotRecord> {
        let newest = |means: &dyn Fn(&SnapshotRecord) -> bool| {
            self.kept.iter().find(|kept| means(kept) && self.was_removed(kept))
        };
        let exactly = newest(&|kept| kept.sandbox_id.as_str() == reference)
            .or_else(|| newest(&|kept| kept.id.as_str() == reference))
            .or_else(|| newest(&|kept| kept.sandbox_name.as_deref() == Some(reference)));
        if exactly.is_some() {
            return exactly;
        }
        let record = find_sandbox(deps, reference).await.ok()?;
        newest(&|kept| kept.sandbox_id == record.id)
    }

    /// The newest undo snapshot of which no sandbox came yet that is still there.
    fn last(&self) -> Option<&SnapshotRecord> {
        let is_open = |kept: &&SnapshotRecord| {
            self.was_removed(kept) && !self.was_tried(kept) && !self.came_back(kept)
        };
        self.kept.iter().find(is_open)
    }

    /// The newest undo snapshot of a sandbox, of those that are not younger than something.
    fn newest_of(&self, sandbox: &SandboxId, until: Option<Time>) -> Option<&SnapshotRecord> {
        let is_before = |kept: &&SnapshotRecord| until.is_none_or(|end| kept.created_at <= end);
        self.kept.iter().filter(is_before).find(|kept| kept.sandbox_id == *sandbox)
    }

    /// Whether the removal for which it was taken did not come about, and a later one did: a sandbox is destroyed once.
    fn was_tried(&self, kept: &SnapshotRecord) -> bool {
        let again = kept.undo.as_ref().is_some_and(|facts| facts.before == OperationKind::Recreate);
        !again && self.newest_of(&kept.sandbox_id, None).is_some_and(|newest| newest.id != kept.id)
    }

    fn live(&self, kept: &SnapshotRecord) -> Option<&SandboxRecord> {
        self.live.iter().find(|record| record.id == kept.sandbox_id).map(|record| &**record)
    }

    /// Whether the removal for which it was taken began: it was destroyed since, or made again.
    fn was_removed(&self, kept: &SnapshotRecord) -> bool {
        let Some(record) = self.live(kept) else { return true };
        match &record.state {
            State::Ready | State::Sleeping => {
                record.ready_at.is_some_and(|ready_at| ready_at > kept.created_at)
            }
            State::Requested
            | State::Provisioning
            | State::Failed
            | State::Lost
            | State::Destroying
            | State::Destroyed
            | State::Forgotten
            | State::Other(_) => true,
        }
    }

    /// Whether a sandbox is there that came from it.
    fn came_back(&self, kept: &SnapshotRecord) -> bool {
        self.live.iter().any(|record| {
            let from = || self.newest_of(&kept.sandbox_id, Some(record.created_at));
            record.undo_of.as_ref() == Some(&kept.sandbox_id)
                && !record.state.is_over()
                && record.state != State::Failed
                && from().is_some_and(|from| from.id == kept.id)
        })
    }

    /// Names without those that somebody has by now; all of them are tried where that is all.
    fn free(&self, names: Vec<Option<String>>) -> Vec<Option<String>> {
        let is_free =
            |name: &Option<String>| name.as_ref().is_none_or(|name| !self.taken.contains(name));
        let free: Vec<_> = names.iter().filter(|name| is_free(name)).cloned().collect();
        if free.is_empty() { names } else { free }
    }
}

/// Hint at what keeps undo snapshots.
fn kept_hint(deps: &Deps) -> String {
    let window = deps.settings.undo.window;
    format!(
        "undo snapshots are taken where the profile has `undo: true`, and kept for {window}; `sandboxer snapshots list --all` shows what there is"
    )
}

fn nothing_at_all(deps: &Deps, known: &Known) -> Error {
    if let Some(newest) = known.kept.iter().find(|kept| known.came_back(kept)) {
        let message = "every removal of which something is kept was taken back already";
        return Error::new(Code::NotFound, message).hint(format!(
            "`sandboxer undo {}` makes another copy of the last one",
            newest.sandbox_id
        ));
    }
    Error::new(Code::NotFound, "there is nothing to undo: nothing is kept of any removed sandbox")
        .hint(kept_hint(deps))
}

/// Error for a reference of which nothing is kept: why.
async fn nothing_of(deps: &Deps, known: &Known, reference: &str) -> Error {
    let now = deps.now();
    let shown: String = reference.chars().take(80).collect();
    let record = find_sandbox(deps, reference).await.ok();
    let id = record.as_ref().map_or(reference, |record| record.id.as_str());
    let is_meant = |snapshot: &&SnapshotRecord| {
        snapshot.sandbox_id.as_str() == id
            || snapshot.id.as_str() == reference
            || snapshot.sandbox_name.as_deref() == Some(reference)
    };
    if let Some(kept) = known.kept.iter().find(is_meant) {
        let message =
            format!("sandbox {} is there as it was: there is nothing to undo", kept.sandbox_id);
        return Error::new(Code::Conflict, message)
            .hint(format!("`sandboxer restore {}` makes a copy of it", kept.id));
    }
    let lives = record
        .as_ref()
        .is_some_and(|record| !record.state.is_over() && record.state != State::Destroying);
    // Of one that lives only what was made before it was made again tells something.
    let tells = |other: &&SnapshotRecord| {
        is_meant(other)
            && (!lives || other.state == SnapshotState::Ready && known.was_removed(other))
    };
    if let Some(other) = known.others.iter().find(tells) {
        return not_kept(other, now);
    }
    let Some(record) = &record else {
        return Error::new(Code::NotFound, format!("nothing is kept of any sandbox {shown:?}"))
            .hint(kept_hint(deps));
    };
    if lives {
        let message = format!("sandbox {id} is {}: there is nothing to undo", record.state);
        return Error::new(Code::Conflict, message).detail("state", record.state.as_str());
    }
    let error = Error::new(Code::NotFound, format!("nothing is kept of sandbox {id}"));
    if !pinned_profile_as_known(deps, record).await.undo {
        let why = format!("its profile, {}, has `undo: false`", record.profile.id);
        return error.because(why).hint(
            "`undo: true` in the profile keeps a snapshot of each sandbox that is made from then on",
        );
    }
    let window = deps.settings.undo.window;
    let removed = format!("it was removed {} ago", age_of(record.since, now));
    let why = match &record.message {
        Some(message) => format!("{removed}; {message}"),
        None => removed,
    };
    error.because(why).hint(format!(
        "undo snapshots are kept for {window}, the oldest go first where all of a host take more than {}, and none is taken of what is larger than {} or with --no-undo",
        deps.settings.undo.max_total, deps.settings.undo.max_bytes
    ))
}

/// Error for an undo snapshot that is not whole, or not kept any more.
fn not_kept(snapshot: &SnapshotRecord, now: Time) -> Error {
    let (id, sandbox) = (&snapshot.id, &snapshot.sandbox_id);
    let error = |why: String| {
        Error::new(Code::NotFound, format!("nothing is kept of sandbox {sandbox}")).because(why)
    };
    match &snapshot.state {
        SnapshotState::Creating => Error::new(
            Code::Busy,
            format!("the undo snapshot of sandbox {sandbox}, {id}, is still being made"),
        )
        .hint("its removal follows; then try again"),
        SnapshotState::Ready if snapshot.is_lost() => {
            error(format!("its undo snapshot {id} is {}", snapshot.replica_words().join(", ")))
                .hint(format!("`sandboxer snapshots verify {id}` looks at it again"))
        }
        SnapshotState::Ready => {
            let over = snapshot.expires_at.map_or("-".to_owned(), |end| age_of(end, now));
            error(format!("the window of its undo snapshot {id} has been over for {over}"))
                .hint(format!("as long as it is there, `sandboxer restore {id}` makes a sandbox from its files"))
        }
        state => error(match &snapshot.message {
            Some(message) => format!("its undo snapshot {id} is {state}: {message}"),
            None => format!("its undo snapshot {id} is {state}"),
        })
        .hint("`sandboxer snapshots list --all` shows what there is"),
    }
}
