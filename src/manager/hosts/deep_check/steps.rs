//! The list of a check's steps, as it grows.

use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::domain::deep_check::{DeepOutcome, DeepStage, DeepStep};
use crate::domain::error::{Code, Error};
use crate::domain::name::HostName;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::time::took_ms;
use crate::manager::operation::progress::ProgressReporter;

/// Outcome of a step that did not fail.
pub(crate) enum StepOutcome<T> {
    /// Success, with a summary.
    Well(T, Option<String>),
    /// Reason why it was not tried.
    Skipped(String),
}

/// Failure of a step: only the ending steps follow it.
pub(crate) struct StepFailed;

/// Steps of a check, with their outcomes so far.
pub(crate) struct DeepCheckSteps<'a> {
    progress: &'a ProgressReporter,
    host: &'a HostName,
    cancel: &'a CancellationToken,
    list: Vec<DeepStep>,
}

impl<'a> DeepCheckSteps<'a> {
    pub(crate) fn new(
        progress: &'a ProgressReporter,
        host: &'a HostName,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { progress, host, cancel, list: Vec::new() }
    }

    /// Does a step, unless the check was cancelled before it; none for one that is skipped.
    pub(crate) async fn run<T>(
        &mut self,
        stage: &'static DeepStage,
        work: BoxFuture<'_, Result<StepOutcome<T>, Error>>,
    ) -> Result<Option<T>, StepFailed> {
        if self.cancel.is_cancelled() {
            let _ = self.add::<T>(
                stage,
                0,
                Err(Error::new(Code::Cancelled, format!("cancelled before the step {stage}"))),
            );
            return Err(StepFailed);
        }
        self.finish(stage, work).await
    }

    /// Does a step that nobody can cancel.
    pub(crate) async fn finish<T>(
        &mut self,
        stage: &'static DeepStage,
        work: BoxFuture<'_, Result<StepOutcome<T>, Error>>,
    ) -> Result<Option<T>, StepFailed> {
        let at = DeepStage::ALL.iter().position(|one| one == stage).unwrap_or_default();
        self.progress.report(Report {
            stage: stage.as_str(),
            step: u32::try_from(at + 1).unwrap_or_default(),
            steps: u32::try_from(DeepStage::ALL.len()).unwrap_or_default(),
            message: Some(self.host.to_string()),
            ..Report::default()
        });
        let began = Instant::now();
        let outcome = work.await;
        self.add(stage, took_ms(began.elapsed()), outcome)
    }

    fn add<T>(
        &mut self,
        stage: &DeepStage,
        took_ms: u64,
        outcome: Result<StepOutcome<T>, Error>,
    ) -> Result<Option<T>, StepFailed> {
        let step = |outcome, message| DeepStep {
            stage: stage.clone(),
            outcome,
            took_ms,
            message,
            error: None,
        };
        let (step, outcome) = match outcome {
            Ok(StepOutcome::Well(value, message)) => {
                (step(DeepOutcome::Ok, message), Ok(Some(value)))
            }
            Ok(StepOutcome::Skipped(why)) => (step(DeepOutcome::Skipped, Some(why)), Ok(None)),
            Err(error) => {
                let error = Some(Box::new(error));
                (DeepStep { error, ..step(DeepOutcome::Failed, None) }, Err(StepFailed))
            }
        };
        self.list.push(step);
        outcome
    }

    /// Fills in what was not come to, but for the `last` ones.
    pub(crate) fn skip_to(&mut self, last: &[DeepStage]) {
        let failed = self.list.iter().find(|step| step.error.is_some());
        let why = failed.map_or_else(String::new, |step| format!("the step {} failed", step.stage));
        for stage in DeepStage::ALL.iter().filter(|stage| !last.contains(stage)) {
            if !self.list.iter().any(|step| step.stage == *stage) {
                let _ = self.add::<()>(stage, 0, Ok(StepOutcome::Skipped(why.clone())));
            }
        }
    }

    pub(crate) fn into_list(self) -> Vec<DeepStep> {
        self.list
    }
}

/// The steps that come after everything was tried, whatever came of it.
pub(crate) const ENDING: [DeepStage; 2] = [DeepStage::Destroy, DeepStage::Host];
