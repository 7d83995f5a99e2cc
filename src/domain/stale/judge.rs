//! Judgement: whether a record, or something that a host has, is stale, and what is done about it by default. Pure: what was seen
//! comes in.

use crate::domain::facts::{Engine, InventoryArchive, InventoryItem, NO_ENGINE};
use crate::domain::name::{HostName, OwnerId, SandboxId, SnapshotId};
use crate::domain::profile::Seconds;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::stale::{ReapAction, StaleClass, StaleItem, StaleSettings};
use crate::domain::teardown::Resource;
use crate::domain::time::Time;

/// Standpoint of a judgement: when, by which rules, and as whom.
#[derive(Debug, Clone)]
pub(crate) struct Standpoint {
    /// The moment, by the console's clock.
    pub now: Time,
    /// The rules.
    pub settings: StaleSettings,
    /// Owner ids that count as ours.
    pub owners: Vec<OwnerId>,
    /// Owner ids of ours under which another console works on this host: nothing of theirs is reaped.
    pub owners_ahead: Vec<OwnerId>,
}

/// Record of a sandbox, as it was looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordSight<'a> {
    pub record: &'a SandboxRecord,
    /// Remains of a dead process, with what `recover` would do.
    pub left_by_dead: Option<&'a LeftByDead>,
    /// Whether its proved host has nothing of it.
    pub is_gone: bool,
    /// Things of it that its host was seen to have.
    pub found: Option<&'a InventoryItem>,
    /// Why its host cannot be judged by.
    pub unjudged: Option<&'a str>,
}

/// Remains of a dead process, and what `recover` does about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftByDead {
    /// Operation or state, for a person.
    pub was: String,
    /// `destroy`, `close` or `recover`.
    pub action: ReapAction,
}

/// Judgement of a record: its class, its action, and why.
struct Verdict {
    class: StaleClass,
    action: ReapAction,
    why: String,
}

/// The item of a record that is stale; none where it is in order.
pub(crate) fn judge_record(sight: RecordSight<'_>, from: &Standpoint) -> Option<StaleItem> {
    let record = sight.record;
    let Verdict { class, action, why } = verdict(sight, from)?;
    let protected = record.is_protected();
    let is_ahead = from.owners_ahead.contains(&record.owner);
    let held = match sight.unjudged {
        _ if protected => Some("it is labelled protect=true".to_owned()),
        _ if is_ahead => Some(OWNER_AHEAD.to_owned()),
        Some(unjudged) => Some(unjudged.to_owned()),
        None => None,
    };
    let (possible, action, why) = match held {
        Some(held) => (Vec::new(), ReapAction::Keep, format!("{why}; kept: {held}")),
        None => (vec![action.clone()], action, why),
    };
    Some(StaleItem {
        class,
        action,
        possible,
        host: record.host.clone(),
        sandbox_id: Some(record.id.to_string()),
        snapshot_id: None,
        name: record.name.clone(),
        owner: Some(record.owner.to_string()),
        profile: Some(record.profile.id.to_string()),
        state: Some(record.state.clone()),
        created_at: Some(record.created_at),
        expires_at: record.expires_at,
        age_s: Some(age(from.now, record.created_at)),
        bytes: sight.found.and_then(|found| found.bytes),
        protected,
        resources: sight.found.map(resources).unwrap_or_default(),
        identity: format!("revision {}", record.revision),
        why,
    })
}

fn verdict(sight: RecordSight<'_>, from: &Standpoint) -> Option<Verdict> {
    let record = sight.record;
    if matches!(record.state, State::Destroyed | State::Forgotten | State::Other(_)) {
        return None;
    }
    let has_deadline = record.state != State::Failed || record.kept_failed;
    let passed = record.expires_at.filter(|deadline| has_deadline && *deadline <= from.now);
    let ending = record.state == State::Destroying;
    if let Some(deadline) = passed.filter(|_| !ending) {
        let ago = rounded(age(from.now, deadline));
        let why = format!("its time was over {ago} ago, at {deadline}");
        return Some(Verdict { class: StaleClass::Expired, action: ReapAction::Destroy, why });
    }
    if let Some(LeftByDead { was, action }) = sight.left_by_dead {
        let why = format!("nobody works on it any more: {was}");
        return Some(Verdict { class: StaleClass::Stuck, action: action.clone(), why });
    }
    let since = age(from.now, record.since);
    if record.state == State::Failed && !record.kept_failed {
        let limit = from.settings.failed_after;
        let why = format!("it failed {} ago; failed ones are kept for {limit}", rounded(since));
        let is_old = since >= limit.get();
        return is_old.then_some(Verdict {
            class: StaleClass::Failed,
            action: ReapAction::Destroy,
            why,
        });
    }
    sight.is_gone.then(|| Verdict {
        class: StaleClass::Lost,
        action: ReapAction::Close,
        why: format!("{} has nothing of it any more", record.host),
    })
}

/// Something that a host has and no live record knows, as it was looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundSight<'a> {
    pub host: &'a HostName,
    /// Things of it that the host has.
    pub found: &'a InventoryItem,
    pub answering: &'a [Engine],
    /// Why an engine of the host may have more of it than was seen.
    pub silent: Option<&'a str>,
    /// When a sandbox of this id was destroyed, by its record.
    pub destroyed_at: Option<Time>,
}

/// The item of something that a host has and no live record knows; none where it is too young to be judged.
pub(crate) fn judge_found(sight: FoundSight<'_>, from: &Standpoint) -> Option<StaleItem> {
    let FoundSight { host, found, .. } = sight;
    let is_stack = !found.engines.is_empty();
    let ours = owner_of(found.owner.as_deref(), from);
    let class = match (&ours, SandboxId::parse(&found.sandbox_id)) {
        (Whose::Nobodys, _) | (_, Err(_)) => StaleClass::Unreadable,
        (Whose::Anothers, Ok(_)) => StaleClass::Foreign,
        (Whose::Ours | Whose::Ahead, Ok(_)) if is_stack => StaleClass::OrphanStack,
        (Whose::Ours | Whose::Ahead, Ok(_)) => StaleClass::OrphanDir,
    };
    if !class.is_never_reaped() && is_young(found.created_at, from) {
        return None;
    }
    let (possible, action, why) = match (&class, ours) {
        (StaleClass::Unreadable, _) => kept("nothing tells whose it is"),
        (StaleClass::Foreign, _) => kept("it is another installation's"),
        (_, Whose::Ahead) => kept(&format!("no record knows it; kept: {OWNER_AHEAD}")),
        _ => orphan_action(sight, &class, from),
    };
    Some(StaleItem {
        class,
        action,
        possible,
        host: host.clone(),
        sandbox_id: Some(found.sandbox_id.clone()),
        snapshot_id: None,
        name: found.name.clone(),
        owner: found.owner.clone(),
        profile: found.profile.clone(),
        state: None,
        created_at: found.created_at,
        expires_at: found.expires_at,
        age_s: found.created_at.map(|made| age(from.now, made)),
        bytes: found.bytes,
        protected: found.protected,
        resources: resources(found),
        identity: found.fingerprint.clone(),
        why,
    })
}

/// Engine that a sandbox was made on and that does not answer: it may have more of it than was seen.
fn unanswered<'a>(sight: &FoundSight<'a>) -> Option<&'a str> {
    let made_on = sight.found.made_on.as_deref().filter(|engine| *engine != NO_ENGINE)?;
    let answers = sight.answering.iter().any(|engine| engine.program == made_on);
    (!answers).then_some(made_on)
}

/// Actions for a sandbox of ours that no live record knows: possible ones, the default, and why.
fn orphan_action(
    sight: FoundSight<'_>,
    class: &StaleClass,
    from: &Standpoint,
) -> (Vec<ReapAction>, ReapAction, String) {
    let found = sight.found;
    let can_adopt = found.directory.is_some() && sight.destroyed_at.is_none();
    let adopt = can_adopt.then_some(ReapAction::Adopt);
    if let Some(engine) = unanswered(&sight) {
        return kept(&format!(
            "no record knows it; kept: it was made on {engine}, which does not answer there"
        ));
    }
    if found.protected {
        let why = "no record knows it; kept: its manifest says protect=true".to_owned();
        return (adopt.into_iter().collect(), ReapAction::Keep, why);
    }
    let possible = std::iter::once(ReapAction::Remove).chain(adopt).collect();
    let by_class = format!("`--class {class}` removes it");
    // A stack of which the directory says nothing may be on an engine that says nothing.
    let unseen = sight.silent.filter(|_| found.directory.is_some() && found.made_on.is_none());
    let ago = |then| rounded(age(from.now, then));
    let (remove, why) = match (sight.destroyed_at, found.expires_at) {
        (Some(destroyed), _) => {
            (true, format!("it was destroyed {} ago, and is here all the same", ago(destroyed)))
        }
        (None, Some(deadline)) if deadline <= from.now => {
            (true, format!("no record knows it, and its time was over {} ago", ago(deadline)))
        }
        (None, Some(deadline)) => {
            (false, format!("no record knows it, and it may live until {deadline}"))
        }
        (None, None) if can_adopt => {
            (false, "no record knows it, and it has no deadline".to_owned())
        }
        (None, None) => {
            (false, format!("no record knows it, and nothing says when it may go: {by_class}"))
        }
    };
    let (action, why) = match (remove, unseen) {
        (true, Some(unseen)) => (ReapAction::Keep, format!("{why}; kept: {unseen}; {by_class}")),
        (true, None) => (ReapAction::Remove, why),
        (false, _) if can_adopt => (ReapAction::Adopt, why),
        (false, _) => (ReapAction::Keep, why),
    };
    (possible, action, why)
}

/// The item of an archive that no record knows; none where it is too young to be judged.
pub(crate) fn judge_archive(
    host: &HostName,
    found: &InventoryArchive,
    from: &Standpoint,
) -> Option<StaleItem> {
    let ours = owner_of(found.owner.as_deref(), from);
    let class = match &ours {
        Whose::Nobodys => StaleClass::Unreadable,
        _ if !SnapshotId::is_one(&found.snapshot_id) => StaleClass::Unreadable,
        Whose::Anothers => StaleClass::Foreign,
        Whose::Ours | Whose::Ahead => StaleClass::OrphanSnapshot,
    };
    if !class.is_never_reaped() && is_young(found.created_at, from) {
        return None;
    }
    let (possible, action, why) = match (&class, ours) {
        (StaleClass::Unreadable, _) => {
            kept("its archive is not whole, or nothing tells whose it is")
        }
        (StaleClass::Foreign, _) => kept("it is another installation's"),
        (_, Whose::Ahead) => kept(&format!("no record knows it; kept: {OWNER_AHEAD}")),
        _ if found.protected => (
            vec![ReapAction::Adopt],
            ReapAction::Keep,
            "no record knows it; kept: its manifest says protect=true".to_owned(),
        ),
        _ => (
            vec![ReapAction::Remove, ReapAction::Adopt],
            ReapAction::Keep,
            "no record knows it; `--snapshots` removes it, `sandboxer adopt` makes a record of it"
                .to_owned(),
        ),
    };
    Some(StaleItem {
        class,
        action,
        possible,
        host: host.clone(),
        sandbox_id: None,
        snapshot_id: Some(found.snapshot_id.clone()),
        name: found.name.clone(),
        owner: found.owner.clone(),
        profile: None,
        state: None,
        created_at: found.created_at,
        expires_at: found.expires_at,
        age_s: found.created_at.map(|made| age(from.now, made)),
        bytes: found.bytes,
        protected: found.protected,
        resources: vec![directory(&found.directory)],
        identity: found.fingerprint.clone(),
        why,
    })
}

/// The item of a snapshot that a dead process left.
pub(crate) fn judge_snapshot(record: &SnapshotRecord, was: &str, from: &Standpoint) -> StaleItem {
    StaleItem {
        class: StaleClass::Stuck,
        action: ReapAction::Recover,
        possible: vec![ReapAction::Recover],
        host: record.host.clone(),
        sandbox_id: None,
        snapshot_id: Some(record.id.to_string()),
        name: record.name.clone(),
        owner: Some(record.owner.to_string()),
        profile: Some(record.profile.id.to_string()),
        state: None,
        created_at: Some(record.created_at),
        expires_at: record.expires_at,
        age_s: Some(age(from.now, record.created_at)),
        bytes: record.archive.bytes,
        protected: record.is_protected(),
        resources: record
            .replicas
            .iter()
            .filter_map(|it| it.path.as_deref())
            .map(directory)
            .collect(),
        identity: format!("revision {}", record.revision),
        why: format!("nobody works on it any more: {was}"),
    }
}

/// Same item, kept for a reason that its class does not have.
pub(crate) fn keep(item: StaleItem, why: &str) -> StaleItem {
    let why = format!("{}; kept: {why}", item.why);
    StaleItem { action: ReapAction::Keep, possible: Vec::new(), why, ..item }
}

/// Owner of something, as seen from here.
enum Whose {
    Ours,
    /// Ours, and another console works under the same id.
    Ahead,
    Anothers,
    Nobodys,
}

/// Reason to keep what is of an owner whose counter is higher on the host than it is known here.
const OWNER_AHEAD: &str =
    "another console of the same owner has made more on this host than is known here";

fn owner_of(owner: Option<&str>, from: &Standpoint) -> Whose {
    let is_in =
        |owners: &[OwnerId], owner: &str| owners.iter().any(|known| known.as_str() == owner);
    match owner {
        None => Whose::Nobodys,
        Some(owner) if is_in(&from.owners_ahead, owner) => Whose::Ahead,
        Some(owner) if is_in(&from.owners, owner) => Whose::Ours,
        Some(_) => Whose::Anothers,
    }
}

fn kept(why: &str) -> (Vec<ReapAction>, ReapAction, String) {
    (Vec::new(), ReapAction::Keep, why.to_owned())
}

/// Whether something may still be on its way into a record. What claims to be of the future is old enough.
fn is_young(made: Option<Time>, from: &Standpoint) -> bool {
    let grace = from.settings.grace.get();
    made.is_some_and(|made| {
        made <= from.now.plus_seconds(grace) && from.now < made.plus_seconds(grace)
    })
}

fn age(now: Time, then: Time) -> u64 {
    now.since(then).as_secs()
}

/// A duration in words, of which nobody needs the seconds once it has hours.
fn rounded(seconds: u64) -> Seconds {
    Seconds(if seconds < 3600 { seconds } else { seconds / 60 * 60 })
}

fn directory(path: &str) -> Resource {
    Resource { kind: "directory".to_owned(), id: path.to_owned() }
}

fn resources(found: &InventoryItem) -> Vec<Resource> {
    let kinds = [
        ("container", &found.containers),
        ("network", &found.networks),
        ("volume", &found.volumes),
    ];
    let of_engines = kinds.into_iter().flat_map(|(kind, names)| {
        names.iter().map(move |name| Resource { kind: kind.to_owned(), id: name.clone() })
    });
    of_engines.chain(found.directory.as_deref().map(directory)).collect()
}

#[cfg(test)]
mod tests;
