//! Adoption of one sandbox: its manifest is read and judged, its host is asked how it is, and a record is made of both.

use std::time::Duration;

use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::extension::{AdoptClaim, AdoptLook, Capability, Target};
use crate::domain::facts::{HostFacts, InventoryItem};
use crate::domain::host_view::HostView;
use crate::domain::manifest_claim::{Believed, FoundAt, LEAST_LIFE_S, believe};
use crate::domain::meter::CostMeter;
use crate::domain::name::{HostName, OwnerId, SandboxId, is_hex8};
use crate::domain::profile::Profile;
use crate::domain::root::KnownRoots;
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::domain::sandbox_manifest::{SCHEMA, SandboxManifest};
use crate::domain::teardown::TeardownLine;
use crate::domain::text::clean_line;
use crate::manager::credits::hold::{give_back, hold_for};
use crate::manager::credits::quote::quote_run;
use crate::manager::deps::Deps;
use crate::manager::hosts::places::{check_works_at, manifest_text};
use crate::manager::hosts::roots::learn_root;
use crate::manager::journal::{JournalRecord as _, publish_pending};
use crate::manager::operation::locks::sandbox_busy_error;
use crate::manager::sandboxes::inspect::attach_tunnels;
use crate::manager::stale::adopt_item::no_name;
use crate::manager::stale::adopt_trust::{roots_to_look, trusted_profile};
use crate::manager::upkeep::ownership::count_change;
use crate::store::Held;

/// Remark on a sandbox that was met while a snapshot held it.
const PAUSED: &str = "containers of it are paused, by a snapshot that another console takes or that was cut off: where none is \
                      at work any more, `sandboxer sleep` and then `sandboxer wake` set them going";

/// Sandbox on a host that no record knows, and whose owner counts as ours.
#[derive(Clone, Copy)]
pub(crate) struct FoundSandbox<'a> {
    pub(crate) host: &'a HostName,
    pub(crate) facts: &'a HostFacts,
    pub(crate) item: &'a InventoryItem,
    pub(crate) owners: &'a [OwnerId],
    pub(crate) is_dry: bool,
}

/// Record that was made of a sandbox, not written yet.
pub(crate) struct SandboxDraft {
    pub(crate) record: SandboxRecord,
    pub(crate) profile: Profile,
    /// Remarks on what was left out or changed, a sentence each.
    pub(crate) remarks: Vec<String>,
    /// Host that its manifest names: one of several names of a host may be the one that it was made under.
    pub(crate) claimed_host: Option<HostName>,
}

/// Makes a record of a sandbox that a host has and no record knows, and writes it.
///
/// Errors: `conflict` where it is another installation's, or its id was used here; whatever keeps its manifest from being
/// believed, or its host from being asked.
pub(crate) async fn adopt_found(
    deps: &Deps,
    host: &HostView,
    item: &InventoryItem,
) -> Result<SandboxRecord, Error> {
    let facts = host.facts.as_ref();
    let facts = facts.ok_or_else(|| Error::internal(format!("{} said nothing", host.name)))?;
    let owners = deps.installation.owners().await?;
    let found = FoundSandbox { host: &host.name, facts, item, owners: &owners, is_dry: false };
    let _lock = lock_unrecorded(deps, &SandboxId::parse(&item.sandbox_id)?).await?;
    let draft = read_found(deps, found).await?;
    Box::pin(insert_adopted(deps, draft)).await.map(|(record, _)| record)
}

/// Lock of a sandbox that no record knows, to be held from the look at it until it has a record.
///
/// Errors: `busy` where somebody works on a sandbox of this id, `conflict` where there is a record of it by now.
pub(crate) async fn lock_unrecorded(deps: &Deps, id: &SandboxId) -> Result<Box<dyn Held>, Error> {
    let Some(lock) = deps.locks.try_lock(id).await? else {
        return Err(sandbox_busy_error(deps, id).await);
    };
    if deps.sandboxes.get(id).await?.is_some() {
        let message = format!("there is a record of sandbox {id} by now");
        return Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale));
    }
    Ok(lock)
}

/// Reads a sandbox's manifest and looks at it on its host.
pub(crate) async fn read_found(
    deps: &Deps,
    found: FoundSandbox<'_>,
) -> Result<SandboxDraft, Error> {
    let (host, item) = (found.host, found.item);
    let (manifest, workdir) = read_manifest(deps, found).await?;
    let (profile, replaced) =
        trusted_profile(deps, manifest.pinned_profile.as_deref(), &manifest.profile)?;
    let at = FoundAt { host, workdir: &workdir, now: deps.now(), actor: &deps.actor() };
    let Believed { mut record, mut remarks } = believe(&manifest, &profile, at);
    remarks.extend(replaced);
    let extension = deps.extension(&record.extension)?;
    if extension.place().is_some_and(|place| !place.same(host.as_str())) {
        let id = &record.id;
        let message = format!(
            "the manifest of sandbox {id} on {host} names {}, which makes nothing there",
            record.extension
        );
        return Err(
            Error::new(Code::Conflict, message).hint("nothing was touched; look at it there")
        );
    }
    extension.ensure(&Capability::Adopt, "adopt sandboxes")?;
    check_works_at(deps, extension.as_ref(), host)?;
    let silent = found.facts.silent_engines();
    let claim = AdoptClaim {
        handle: manifest.sandbox.as_ref().and_then(|record| record.handle.as_ref()),
        machine_id: &found.facts.machine_id,
        engines: &found.facts.engines,
        silent: &silent,
        runtimes: &found.facts.runtimes,
    };
    let roots = roots_to_look(deps, host, found.is_dry).await;
    let target = target(&record, &profile, found.owners, roots);
    let look = extension.adopt(&target, claim).await?;
    // Nobody can tell here whether the console that paused them is alive: resuming would end its snapshot.
    if look.seen.services.iter().any(|service| service.state == "paused") {
        remarks.push(PAUSED.to_owned());
    }
    if !look.seen.resources.iter().any(|one| one.kind == "directory") {
        let message = format!("{} has no directory of sandbox {} any more", host, item.sandbox_id);
        return Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale));
    }
    if let Some(root) = look.seen.root.clone().filter(|_| !found.is_dry) {
        learn_root(deps, host, root).await;
    }
    remarks.extend(look.remarks.iter().cloned());
    remarks.extend(look.seen.foreign.iter().filter_map(TeardownLine::left_alone));
    remarks.extend(drop_distant_base(deps, &mut record).await?);
    note_look(deps, &mut record, look, found.is_dry).await;
    let claimed_host = manifest.sandbox.map(|claimed| claimed.host);
    Ok(SandboxDraft { record, profile, remarks, claimed_host })
}

/// The manifest, where it is this sandbox's and this owner's; and its directory.
async fn read_manifest(
    deps: &Deps,
    found: FoundSandbox<'_>,
) -> Result<(SandboxManifest, String), Error> {
    let (host, item) = (found.host, found.item);
    let id = SandboxId::parse(&item.sandbox_id)?;
    let refuse = |why: String| Err(Error::new(Code::OperationFailed, why));
    if ["snap-", "pat-", "op-", "plan-"]
        .iter()
        .any(|other| id.as_str().strip_prefix(other).is_some_and(is_hex8))
    {
        return refuse(format!("{id} is no sandbox's id"));
    }
    let ours = found.owners.iter().find(|owner| item.owner.as_deref() == Some(owner.as_str()));
    let Some(owner) = ours else {
        let message =
            format!("sandbox {id} on {host} is another installation's, or nobody can tell whose");
        return Err(Error::new(Code::Conflict, message));
    };
    let Some(workdir) = item.directory.clone() else {
        let message =
            format!("{host} has no directory of sandbox {id}, and nothing else says what it was");
        return Err(Error::new(Code::Unsupported, message).hint(
            "`sandboxer inspect stale` shows what is left of it, and `reap-stale` removes that",
        ));
    };
    let Some(text) = manifest_text(deps, host, &workdir).await? else {
        return refuse(format!("{workdir} on {host} has no manifest.json that can be read"));
    };
    let manifest: SandboxManifest = match serde_json::from_str(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let message = format!("the manifest of sandbox {id} on {host} cannot be read");
            return Err(Error::new(Code::OperationFailed, message)
                .hint("nothing was touched; look at it there")
                .because(clean_line(&error.to_string(), 200)));
        }
    };
    let named = manifest.sandbox.as_ref().is_none_or(|record| record.id == id);
    if manifest.id != id || manifest.owner != *owner || !named {
        return refuse(format!(
            "the manifest in {workdir} on {host} names another sandbox, or another installation"
        ));
    }
    if manifest.schema > SCHEMA {
        let message = format!(
            "the manifest of sandbox {id} on {host} is of a newer sandboxer (schema {})",
            manifest.schema
        );
        return Err(Error::new(Code::Unsupported, message).hint("adopt it with that"));
    }
    Ok((manifest, workdir))
}

fn target(
    record: &SandboxRecord,
    profile: &Profile,
    owners: &[OwnerId],
    roots: KnownRoots,
) -> Target {
    let mut owners: Vec<OwnerId> =
        owners.iter().filter(|owner| **owner != record.owner).cloned().collect();
    owners.push(record.owner.clone());
    Target {
        id: record.id.clone(),
        owners,
        host: record.host.clone(),
        profile: profile.clone().for_extension(&record.extension),
        inputs: record.inputs.clone(),
        handle: None,
        workdir: record.workdir.clone(),
        host_identity: None,
        stamp: None,
        roots,
        start_output: None,
    }
}

/// Leaves out a base whose archives are on other hosts: else whoever rewrites a manifest has a stranger's snapshot brought to
/// him by the next recreate. One that nobody knows stays: it may be known again.
async fn drop_distant_base(
    deps: &Deps,
    record: &mut SandboxRecord,
) -> Result<Option<String>, Error> {
    let Some(base) = record.based_on_snapshot.clone() else { return Ok(None) };
    let Some(snapshot) = deps.snapshots.get(&base).await? else { return Ok(None) };
    if snapshot.hosts().any(|host| host.same(record.host.as_str())) {
        return Ok(None);
    }
    record.based_on_snapshot = None;
    Ok(Some(format!("the snapshot {base} that its manifest names is not on its host: left out")))
}

/// Writes on the record what its host has of it.
async fn note_look(deps: &Deps, record: &mut SandboxRecord, look: AdoptLook, is_dry: bool) {
    let now = deps.now();
    let AdoptLook { handle, identity, mut seen, .. } = look;
    let stood = record.ready_at.is_some() && !record.kept_failed && !seen.services.is_empty();
    record.state = if seen.ready || (stood && !seen.asleep) {
        State::Ready
    } else if seen.asleep {
        State::Sleeping
    } else {
        State::Failed
    };
    record.handle = handle;
    record.host_identity = Some(identity);
    record.reason = Some(Reason::User);
    if record.state == State::Failed {
        // A create whose console died half-way, or one that was kept: somebody may want to look at it.
        record.kept_failed = true;
        record.expires_at.get_or_insert(now.plus_seconds(LEAST_LIFE_S));
    } else {
        record.kept_failed = false;
        record.ready_at.get_or_insert(now);
    }
    record.services = seen.services;
    if let Some(there) = &mut seen.reachability
        && !is_dry
    {
        attach_tunnels(deps, &record.id, there).await;
    }
    record.reachability = seen.reachability;
}

/// Writes the record, whose lock the caller holds since before the look; without its name where that is another's. What is said
/// of that, with the record as it is then.
///
/// Errors: `conflict` where its id was used here; `insufficient_credits` for a metered one until its deadline.
pub(crate) async fn insert_adopted(
    deps: &Deps,
    draft: SandboxDraft,
) -> Result<(SandboxRecord, Vec<String>), Error> {
    let SandboxDraft { mut record, profile, mut remarks, .. } = draft;
    deps.pinned_profiles.put(&profile).await?;
    let (reading, deadline) = (deps.read_clocks(), record.expires_at);
    // A part of a second counts as a whole one.
    let seconds = |left: Duration| left.as_secs() + u64::from(left.subsec_nanos() > 0);
    let left_s = deadline.map(|end| seconds(end.since(reading.wall)));
    let quote = quote_run(deps, &record.extension, &profile, &record.inputs, left_s).await?;
    let hold = hold_for(deps, &record.id, quote.as_ref()).await?;
    if let Some(quote) = &quote {
        // From here on it costs this installation.
        let mut meter = CostMeter::new(left_s);
        meter.begin(reading, deadline.is_some());
        (record.quote_usd, record.meter) = (Some(quote.usd), Some(meter));
    }
    let data = serde_json::json!({
        "host": record.host, "state": record.state, "owner": record.owner, "profile": record.profile.id,
    });
    loop {
        let mut draft = record.clone();
        draft.message = Some(message(&record, &remarks));
        let adopted = (EventKind::SandboxAdopted, data.clone());
        let adopted = draft.event(adopted, &deps.actor(), deps.now());
        draft.pending = vec![adopted];
        if let Some(hold) = &hold {
            hold.note_on(&mut draft);
        }
        match deps.sandboxes.insert(draft).await {
            Ok(written) => {
                publish_pending(deps, &written.pending).await;
                count_change(deps, &written.host).await;
                return Ok((written, remarks));
            }
            Err(error) if error.kind == Kind::Taken(Unique::Name) && record.name.is_some() => {
                remarks.push(no_name(record.name.take(), &error));
            }
            Err(error) if error.kind == Kind::Taken(Unique::Id) => {
                let error = give_back(deps, hold, error).await;
                return Err(error.hint(
                    "an id is used once: what is on the host is left of that one, or a copy; `sandboxer inspect stale` shows it",
                ));
            }
            Err(error) => return Err(give_back(deps, hold, error).await),
        }
    }
}

pub(crate) fn message(record: &SandboxRecord, remarks: &[String]) -> String {
    let how = match (&record.state, record.degraded().next()) {
        (State::Failed, _) => "it never became ready, and is kept to be looked at",
        (State::Ready, Some(_)) => "not all of its services run",
        _ => "as its host says",
    };
    let words: Vec<&str> = std::iter::once(how).chain(remarks.iter().map(String::as_str)).collect();
    format!("adopted from its manifest on {}: {}", record.host, words.join("; "))
}
