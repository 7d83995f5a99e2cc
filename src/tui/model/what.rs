//! The last column of the list: what is being done, else what is wrong with a sandbox, in as few words as there is room for.

use super::{Entry, Job, JobState, Model, Role, age, age_of, rate, standings};
use crate::domain::patch::PatchState;
use crate::present::sandbox;

/// Cells of a bar.
const BAR: usize = 5;

impl Model {
    /// Text of a row's last column, in `width` cells.
    pub fn what(&self, entry: &Entry, silent: bool, width: usize) -> (Role, String) {
        let record = &entry.record;
        let job = self.jobs.of_sandbox(&record.id);
        if let Some(stage) = job.and_then(stage) {
            return (Role::Busy, stage);
        }
        if silent {
            return (Role::Warn, not_seen(self, entry));
        }
        let stale = self.stale_word(entry);
        if let Some(words) = stale.filter(|_| self.sandboxes.conditions().is_left_behind(entry)) {
            return words;
        }
        if let Some(words) = job.and_then(|job| elsewhere(self, job)) {
            return (Role::Busy, words);
        }
        sandbox::what(record, &patches(self, entry), self.now, width)
    }
}

/// `3/6 transfer ▓▓▓░░ 45% 12MB/s`, of what was begun by this process, or tells how far it is.
pub(super) fn stage(job: &Job) -> Option<String> {
    let cancelling = if job.state == JobState::Cancelling { "cancelling: " } else { "" };
    let Some(stage) = job.stage_words() else {
        return job.external.is_none().then(|| format!("{cancelling}starting"));
    };
    let mut words = format!("{cancelling}{stage}");
    if let Some(part) = job.fraction() {
        let full = (part * BAR as f64).round() as usize;
        let bar = format!("{}{}", "▓".repeat(full.min(BAR)), "░".repeat(BAR - full.min(BAR)));
        words = format!("{words} {bar} {:.0}%", part * 100.0);
    }
    if let Some(fast) = job.rate.filter(|rate| *rate >= 1.0) {
        words = format!("{words} {}", rate(fast));
    }
    Some(words)
}

/// `recreate 40s by nightly`: what another process does, which tells no stages.
fn elsewhere(model: &Model, job: &Job) -> Option<String> {
    let external = job.external.as_ref()?;
    let word = if job.state == JobState::Cancelling { "cancelling " } else { "" };
    let since = age(job.seconds(model.now));
    Some(format!("{word}{} {since} by {}", job.kind, external.actor.name))
}

/// `not seen for 2m`: since its host answered last, or somebody else saw it.
pub(super) fn not_seen(model: &Model, entry: &Entry) -> String {
    let host = model.hosts.get(entry.record.host.as_str());
    match host.and_then(|host| host.answered).max(entry.record.observed_at) {
        Some(at) => format!("not seen for {}", age_of(at, model.now)),
        None => "never seen".to_owned(),
    }
}

/// How the patches stand that a sandbox is based on. One that was taken away stands nowhere, whatever the record tells.
pub(super) fn patches(model: &Model, entry: &Entry) -> Vec<PatchState> {
    match model.snapshots.of_sandbox(&entry.record.id) {
        Some((view, based)) => standings(view, based, Some(&entry.record)),
        None => vec![entry.record.patch_state.clone()],
    }
}
