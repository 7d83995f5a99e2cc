//! Claim of a manifest: the record that a sandbox's manifest makes, as far as it is believed. Whoever works in a sandbox can rewrite
//! its manifest, so each field is judged as if a stranger had typed it; where the sandbox is, on which machine and engine, and how
//! it is, is the host's to say.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::actor::Actor;
use crate::domain::name::{
    ExtensionId, HostName, SandboxId, SnapshotId, check_label, check_name, is_hex8,
};
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::pending_patches::settled_state;
use crate::domain::profile::{Profile, Seconds};
use crate::domain::sandbox::{ProfileRef, RecordStart, SandboxRecord, State};
use crate::domain::sandbox_manifest::SandboxManifest;
use crate::domain::text::{clean_line, plural};
use crate::domain::time::Time;

/// Seconds that an adopted sandbox lives at least.
pub(crate) const LEAST_LIFE_S: u64 = 3600;

/// The most labels, inputs and patches that are taken from a manifest.
const MOST: usize = 200;

/// The longest value of an input that is taken from a manifest, in bytes.
const LONGEST_INPUT: usize = 4096;

/// Place and moment at which a manifest was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundAt<'a> {
    pub(crate) host: &'a HostName,
    pub(crate) workdir: &'a str,
    pub(crate) now: Time,
    pub(crate) actor: &'a Actor,
}

/// Record that a manifest makes, and what of it was not believed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Believed {
    /// The record, without what its host has to say.
    pub(crate) record: SandboxRecord,
    /// Remarks on what was left out or changed, a sentence each.
    pub(crate) remarks: Vec<String>,
}

/// Makes a record of a manifest, for a sandbox of this profile.
pub(crate) fn believe(manifest: &SandboxManifest, profile: &Profile, at: FoundAt<'_>) -> Believed {
    let mut remarks = Vec::new();
    let claimed = manifest.sandbox.as_deref();
    let created_at = manifest.created_at.min(at.now);
    let ready_at = claimed.and_then(|record| record.ready_at);
    let ready_at = ready_at.filter(|ready| (created_at..=at.now).contains(ready));
    let (expires_at, max_expires_at) =
        lifetime(manifest, profile, ready_at.unwrap_or(created_at), at.now, &mut remarks);
    let ttl_s = claimed.map_or(profile.ttl, |record| record.ttl_s.map(Seconds));
    let most = profile.max_ttl.unwrap_or(Seconds::MAX);
    let ttl = ttl_s.or(profile.max_ttl.and(profile.ttl)).map(|ttl| ttl.min(most).max(Seconds(1)));
    let applied = applied_patches(claimed, &mut remarks);
    let has = applied.iter().filter(|patch| patch.state == PatchState::Applied);
    let last_patch_sequence = has.map(|patch| patch.sequence).max().unwrap_or(0);
    let based_on = claimed.and_then(|record| record.based_on_snapshot.clone());
    let undo_of = claimed.and_then(|record| record.undo_of.clone());
    let actor = claimed.map(|record| record.actor.clone());
    let actor = actor.filter(|actor| Actor::parse(&actor.to_string()).as_ref() == Ok(actor));
    let mut record = SandboxRecord {
        name: believed_name(claimed, &mut remarks),
        labels: believed_labels(manifest, &mut remarks),
        workdir: Some(at.workdir.to_owned()),
        state: State::Failed,
        since: at.now,
        observed_at: Some(at.now),
        inputs: believed_inputs(claimed, profile, &mut remarks),
        ready_at,
        expires_at,
        max_expires_at,
        // The deadline may be another one, and what was not believed is to be gone there too.
        manifest_pending: true,
        ttl_s: ttl.map(Seconds::get),
        based_on_snapshot: based_on.filter(|id| SnapshotId::is_one(id.as_str())),
        applied_patches: applied,
        last_patch_sequence,
        undo_of: undo_of.filter(|id| SandboxId::parse(id.as_str()).is_ok()),
        not_preserved: believed_counts(claimed),
        kept_failed: claimed.is_some_and(|record| record.kept_failed),
        adopted_at: Some(at.now),
        ..SandboxRecord::new(RecordStart {
            id: manifest.id.clone(),
            profile: ProfileRef {
                id: profile.id.clone(),
                version: profile.version.to_string(),
                hash: profile.hash(),
            },
            extension: believed_extension(claimed, profile),
            host: at.host.clone(),
            owner: manifest.owner.clone(),
            actor: actor.unwrap_or_else(|| at.actor.clone()),
            created_at,
        })
    };
    record.patch_state = settled_state(&record, &[]);
    Believed { record, remarks }
}

/// Deadline, and what no `extend` passes. It has an hour at least, and none where the profile allows none.
fn lifetime(
    manifest: &SandboxManifest,
    profile: &Profile,
    since: Time,
    now: Time,
    remarks: &mut Vec<String>,
) -> (Option<Time>, Option<Time>) {
    let least = now.plus_seconds(LEAST_LIFE_S);
    let max = profile.max_ttl.map(|max| since.plus_seconds(max.get()).max(least));
    let latest = max.unwrap_or_else(|| now.plus_seconds(Seconds::MAX.get()));
    let deadline = match manifest.expires_at {
        Some(deadline) => Some(deadline.clamp(least, latest)),
        None => max,
    };
    if deadline != manifest.expires_at
        && let Some(deadline) = deadline
    {
        let was =
            manifest.expires_at.map_or_else(|| "none".to_owned(), |deadline| deadline.to_string());
        remarks.push(format!("its deadline is {deadline}, and was {was}"));
    }
    (deadline, max)
}

/// Extension that made it, of those that the profile may use.
fn believed_extension(claimed: Option<&SandboxRecord>, profile: &Profile) -> ExtensionId {
    let extension = claimed.map(|record| &record.extension);
    extension.filter(|id| profile.may_use(id)).unwrap_or(&profile.extension).clone()
}

fn believed_name(claimed: Option<&SandboxRecord>, remarks: &mut Vec<String>) -> Option<String> {
    let name = claimed?.name.as_ref()?;
    if check_name(name).is_ok() {
        return Some(name.clone());
    }
    remarks.push(format!("the name {:?} in its manifest is none: left out", clean_line(name, 40)));
    None
}

fn believed_labels(
    manifest: &SandboxManifest,
    remarks: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let claimed = manifest.sandbox.as_deref().map_or_else(BTreeMap::new, |it| it.labels.clone());
    let mut labels: BTreeMap<String, String> = claimed
        .iter()
        .filter(|(key, value)| check_label(key, value).is_ok())
        .take(MOST)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // Beyond the most of them, and without them, too: whoever lost it would lose the sandbox.
    if manifest.is_protected() {
        labels.insert("protect".to_owned(), "true".to_owned());
    }
    let refused = claimed.keys().filter(|key| !labels.contains_key(*key)).count();
    if refused > 0 {
        let what = plural(refused as u64, "label", "labels");
        remarks.push(format!("{what} in its manifest cannot be given to a sandbox: left out"));
    }
    labels
}

fn believed_inputs(
    claimed: Option<&SandboxRecord>,
    profile: &Profile,
    remarks: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let Some(claimed) = claimed else {
        if !profile.inputs.is_empty() {
            remarks.push("its manifest does not say its inputs".to_owned());
        }
        return BTreeMap::new();
    };
    let mut inputs = claimed.inputs.clone();
    let refused = profile.check_inputs(&inputs).err().unwrap_or_default();
    let refused: BTreeSet<String> = refused.into_iter().map(|problem| problem.field).collect();
    inputs.retain(|name, value| !refused.contains(name) && value.len() <= LONGEST_INPUT);
    let left_out = claimed.inputs.len() - inputs.len();
    if left_out > 0 {
        let what = plural(left_out as u64, "input", "inputs");
        remarks
            .push(format!("{what} in its manifest are none that {} takes: left out", profile.id));
    }
    inputs
}

fn believed_counts(claimed: Option<&SandboxRecord>) -> BTreeMap<String, u64> {
    let counts = claimed.map(|record| record.not_preserved.clone()).unwrap_or_default();
    let is_word = |text: &str| text.len() <= 40 && text.bytes().all(|b| b.is_ascii_lowercase());
    counts.into_iter().filter(|(kind, _)| is_word(kind)).take(MOST).collect()
}

/// Patches that it says it has. A script whose end its manifest does not know is `unknown`.
fn applied_patches(
    claimed: Option<&SandboxRecord>,
    remarks: &mut Vec<String>,
) -> Vec<AppliedPatch> {
    let Some(claimed) = claimed else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let is_one = |patch: &AppliedPatch| {
        patch.id.as_str().strip_prefix("pat-").is_some_and(is_hex8) && patch.sequence > 0
    };
    let mut patches: Vec<AppliedPatch> = claimed
        .applied_patches
        .iter()
        .filter(|patch| is_one(patch) && seen.insert(patch.id.clone()))
        .take(MOST)
        .map(|patch| AppliedPatch {
            state: match patch.state {
                PatchState::Applied => PatchState::Applied,
                PatchState::Failed => PatchState::Failed,
                _ => PatchState::Unknown,
            },
            output: None,
            ..patch.clone()
        })
        .collect();
    patches.sort_by(|a, b| (a.sequence, &a.id).cmp(&(b.sequence, &b.id)));
    let refused = claimed.applied_patches.len() - patches.len();
    if refused > 0 {
        let what = plural(refused as u64, "patch", "patches");
        remarks.push(format!("{what} in its manifest are none: left out"));
    }
    patches
}

#[cfg(test)]
mod tests;
