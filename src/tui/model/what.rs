//! The last column of the list: what is being done, else what is wrong with a sandbox, in as few words as there is room for.

use super::{Entry, Job, JobState, Model, Role, age, age_of, many, rate, standings};
use crate::domain::State;
use crate::domain::patch::PatchState;
use crate::domain::telling::last_telling_line;
use crate::domain::text::columns;

/// Cells of a bar.
const BAR: usize = 5;

impl Model {
    /// What the last column says of a row, in `width` cells.
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
        if let Some(words) = at_work(self, entry, job) {
            return (Role::Busy, words);
        }
        match record.state {
            State::Failed => (Role::Bad, failure(entry, width)),
            State::Lost | State::Destroying => {
                let ago = age_of(record.since, self.now);
                let message = record.message.as_deref().unwrap_or("nothing of it is left");
                (Role::Warn, format!("{ago} ago: {message}"))
            }
            _ => standing(self, entry),
        }
    }
}

/// How a sandbox is that is neither worked on nor gone: patches, services, protection.
fn standing(model: &Model, entry: &Entry) -> (Role, String) {
    let record = &entry.record;
    let patches = patches(model, entry);
    let stuck = patches.contains(&PatchState::Failed) || patches.contains(&PatchState::Unknown);
    if entry.degraded > 0 {
        // A patch that failed may be why; there is no room for two sentences.
        let patch = if stuck { ", patch failed" } else { "" };
        return (Role::Warn, format!("{}{patch}", degraded(entry)));
    }
    if stuck {
        let error = record.patch_error.as_deref().unwrap_or("a patch failed");
        return (Role::Bad, error.to_owned());
    }
    let waiting = patches.iter().filter(|state| **state == PatchState::Pending).count();
    if waiting > 0 {
        return (Role::Warn, format!("{} pending", many(waiting, "patch", "patches")));
    }
    if record.is_protected() {
        return (Role::Dim, "protected".to_owned());
    }
    (Role::Plain, String::new())
}

/// `3/6 transfer ▓▓▓░░ 45% 12MB/s`, of what was begun by this process, or tells how far it is.
pub(super) fn stage(job: &Job) -> Option<String> {
    let cancelling = if job.state == JobState::Cancelling { "cancelling: " } else { "" };
    let Some((stage, step, steps)) = &job.stage else {
        return job.external.is_none().then(|| format!("{cancelling}starting"));
    };
    let mut words = format!("{cancelling}{step}/{steps} {stage}");
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
fn at_work(model: &Model, entry: &Entry, job: Option<&Job>) -> Option<String> {
    let cancelling = |yes: bool| if yes { "cancelling " } else { "" };
    if let Some((job, external)) = job.and_then(|job| Some((job, job.external.as_ref()?))) {
        let word = cancelling(job.state == JobState::Cancelling);
        let since = age(job.seconds(model.now));
        return Some(format!("{word}{} {since} by {}", job.kind, external.actor.name));
    }
    let running = entry.record.operation.as_ref()?;
    let since = age_of(running.started_at, model.now);
    let word = cancelling(running.cancel_requested);
    Some(format!("{word}{} {since} by {}", running.kind, running.actor.name))
}

/// `not seen for 2m`: since its host answered last, or somebody else saw it.
pub(super) fn not_seen(model: &Model, entry: &Entry) -> String {
    let host = model.hosts.get(entry.record.host.as_str());
    match host.and_then(|host| host.answered).max(entry.record.observed_at) {
        Some(at) => format!("not seen for {}", age_of(at, model.now)),
        None => "never seen".to_owned(),
    }
}

/// `up: connection refused`: the step, and of what it wrote the end of the line that says why.
fn failure(entry: &Entry, width: usize) -> String {
    let record = &entry.record;
    let message = record.message.as_deref().unwrap_or("it failed");
    let Some(failure) = &record.failure else { return message.to_owned() };
    let line = last_telling_line(&failure.output).unwrap_or(message);
    let room = width.saturating_sub(columns(&failure.step) + 2);
    format!("{}: {}", failure.step, ending(line, room))
}

/// The end of a sentence of the form `where: what: why`, from the first part from which on it fits; at least its last part.
pub(super) fn ending(line: &str, room: usize) -> &str {
    let mut rest = line;
    while columns(rest) > room
        && let Some((_, shorter)) = rest.split_once(": ")
    {
        rest = shorter;
    }
    rest
}

/// `db exit 137, web restarting`.
pub(super) fn degraded(entry: &Entry) -> String {
    let words = entry.record.degraded().map(|service| match service.exit_code {
        Some(code) => format!("{} exit {code}", service.name),
        None => format!("{} {}", service.name, service.state),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// How the patches stand that a sandbox is based on. One that was taken away stands nowhere, whatever the record tells.
pub(super) fn patches(model: &Model, entry: &Entry) -> Vec<PatchState> {
    match model.snapshots.of_sandbox(&entry.record.id) {
        Some((view, based)) => standings(view, based, Some(&entry.record)),
        None => vec![entry.record.patch_state.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_is_too_long_keeps_its_end() {
        let line = "Error: pinging container registry: connection refused";
        assert_eq!(ending(line, 80), line);
        assert_eq!(ending(line, 40), "connection refused");
        assert_eq!(ending(line, 48), "pinging container registry: connection refused");
        assert_eq!(ending(line, 3), "connection refused");
    }
}
