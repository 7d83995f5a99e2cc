//! Words for jobs, the same wherever one is shown: Activity, the list of jobs, a toast.

use std::time::Duration;

use super::job::{Job, JobResult, JobState};
use super::{Model, Role, bytes, took};
use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::domain::telling::last_telling_line;
use crate::domain::{OperationKind, State, Time};
use crate::present::error::hinted;
use crate::present::operation::step_words;

/// How far apart the end of an operation and of what it worked on may be.
const SAME_END: Duration = Duration::from_secs(10);

impl Job {
    /// Words for what it does, and on what.
    pub fn what(&self) -> String {
        format!("{} {}", self.kind, self.title)
    }

    /// How it stands, as a sign and how that is meant.
    pub fn sign(&self) -> (char, Role) {
        match (&self.state, &self.result) {
            (JobState::Starting, _) => ('◌', Role::Busy),
            (JobState::Running, _) => ('◐', Role::Busy),
            (JobState::Cancelling, _) => ('◐', Role::Warn),
            (JobState::Succeeded, JobResult::Done | JobResult::Told(_)) => ('✓', Role::Good),
            (JobState::DoneAnyway, _) => ('✓', Role::Warn),
            (JobState::Undone(_), _) => ('○', Role::Warn),
            (JobState::Succeeded, JobResult::Warned(_))
            | (JobState::Stopped(_) | JobState::Skipped(_), _) => ('⚠', Role::Warn),
            (JobState::Failed(_), _) => ('✗', Role::Bad),
        }
    }

    /// Items of a reap that are done, of how many.
    fn count_words(&self) -> Option<String> {
        let (done, of) = self.part.filter(|_| self.kind == OperationKind::Reap)?;
        Some(format!("{done}/{of}"))
    }

    /// The step that it is at: `3/6 transfer`.
    pub fn stage_words(&self) -> Option<String> {
        self.stage.as_ref().map(|(stage, step, steps)| step_words(stage, *step, *steps))
    }

    /// How long it took, as its end tells it.
    fn took_words(&self, now: Time) -> String {
        took(self.ran(now))
    }
}

impl Model {
    /// Name of a sandbox, whether it is in the list or only an operation tells of it.
    pub fn name_of(&self, id: &SandboxId) -> Option<String> {
        let listed = self.sandboxes.get(id).map(|entry| entry.record.title().to_owned());
        listed.or_else(|| {
            let job = self.jobs.list().find(|job| job.sandbox.as_ref() == Some(id));
            job.map(|job| job.title.clone())
        })
    }

    /// How a job stands, or what came of it, in a few words.
    pub fn job_words(&self, job: &Job) -> String {
        match &job.state {
            JobState::Starting | JobState::Cancelling => job.state.word().to_owned(),
            JobState::Running => job.count_words().or(job.stage_words()).unwrap_or_default(),
            JobState::Succeeded => match &job.result {
                JobResult::Done => self.made(job).unwrap_or_else(|| "done".to_owned()),
                JobResult::Told(told) => told.clone(),
                JobResult::Warned(warned) => format!("done, but {warned}"),
            },
            JobState::DoneAnyway => "done anyway: the cancel came too late".to_owned(),
            JobState::Undone(problem) => format!("undone: {}", problem.message),
            JobState::Stopped(problem) => {
                format!("{}: {}", job.state.word(), hinted(&problem.message, problem.hint.as_ref()))
            }
            JobState::Skipped(reason) => format!("skipped: {reason}"),
            JobState::Failed(problem) => self.why(job, problem),
        }
    }

    /// The sentence of a job's end; none of one that runs.
    pub fn job_sentence(&self, job: &Job) -> Option<String> {
        let (what, took) = (job.what(), job.took_words(self.now));
        let sentence = match &job.state {
            JobState::Starting | JobState::Running | JobState::Cancelling => return None,
            JobState::Succeeded => match &job.result {
                JobResult::Done => format!("{what}  done in {took}"),
                JobResult::Told(told) => format!("{what}  {told} in {took}"),
                JobResult::Warned(warned) => format!("{what}  done in {took}, but {warned}"),
            },
            JobState::DoneAnyway => {
                format!("{what}  done anyway in {took}: the cancel came too late")
            }
            JobState::Undone(problem) => {
                format!("{what}  undone after {took}: {}", problem.message)
            }
            JobState::Stopped(problem) => format!(
                "{what}  stopped after {took}, may be half done: {}",
                hinted(&problem.message, problem.hint.as_ref())
            ),
            JobState::Skipped(_) => format!("{what}  {}", self.job_words(job)),
            JobState::Failed(problem) => format!("{what}  failed: {}", self.why(job, problem)),
        };
        Some(sentence)
    }

    /// Why a job failed: its step and the line that says most, where there are such.
    fn why(&self, job: &Job, problem: &Error) -> String {
        let line = job.error_line().or_else(|| self.recorded_line(job));
        match (&problem.step, line) {
            (Some(step), Some(line)) => format!("{step}: {}", bare(&line)),
            (None, Some(line)) => format!("{}: {}", problem.message, bare(&line)),
            (_, None) => problem.message.clone(),
        }
    }

    /// The line that says most of why, as the record of what it failed to make has it.
    fn recorded_line(&self, job: &Job) -> Option<String> {
        use OperationKind::{Create, Recreate, Restore};
        let makes = matches!(job.kind, Create | Recreate | Restore);
        let entry = self.sandboxes.get(job.sandbox.as_ref().filter(|_| makes)?)?;
        let record = &entry.record;
        // The failure of that time, not one of a later operation.
        let (first, last) = (record.since.min(job.end()), record.since.max(job.end()));
        let same = record.state == State::Failed && last.since(first) <= SAME_END;
        let failure = record.failure.as_ref().filter(|_| same)?;
        last_telling_line(&failure.output).map(str::to_owned)
    }

    /// Result of a snapshot: its name and size.
    fn made(&self, job: &Job) -> Option<String> {
        let id = job.snapshot.as_ref().filter(|_| job.kind == OperationKind::Snapshot)?;
        let record = &self.snapshots.get(id)?.record;
        let size = record.archive.bytes.map(|size| format!(" {}", bytes(size)));
        Some(format!("{}{}", record.title(), size.unwrap_or_default()))
    }
}

/// A line without the word that says that it is an error: the sign before it does.
fn bare(line: &str) -> &str {
    let word = line.get(..6).filter(|word| word.eq_ignore_ascii_case("error:"));
    word.map_or(line, |word| line[word.len()..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_without_the_word_error() {
        for (line, told) in [
            ("Error: connection refused", "connection refused"),
            ("error:x", "x"),
            ("errors: two", "errors: two"),
            ("Err", "Err"),
            ("ERROR: ", ""),
            ("éééé: x", "éééé: x"),
        ] {
            assert_eq!(bare(line), told, "{line}");
        }
    }
}
