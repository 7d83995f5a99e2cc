//! The list of a check's steps, as it grows.

use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::domain::deep_check::{DeepOutcome, DeepStage, DeepStep};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{Report, Reporter};
use crate::domain::name::HostName;
use crate::domain::time::took_ms;
use crate::manager::operation::progress::ProgressReporter;

/// What a step came to, if it did not fail.
pub(crate) enum Came<T> {
    /// It worked; what was done, in a few words.
    Well(T, Option<String>),
    /// It was not tried; why.
    Skipped(String),
}

/// A step failed: none but those at the end come after it.
pub(crate) struct Stopped;

pub(crate) struct Steps<'a> {
    progress: &'a ProgressReporter,
    host: &'a HostName,
    cancel: &'a CancellationToken,
    list: Vec<DeepStep>,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(
        progress: &'a ProgressReporter,
        host: &'a HostName,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self { progress, host, cancel, list: Vec::new() }
    }

    /// Does a step, unless the check was called off before it; none for one that is skipped.
    pub(crate) async fn run<T>(
        &mut self,
        stage: &'static DeepStage,
        work: BoxFuture<'_, Result<Came<T>, Error>>,
    ) -> Result<Option<T>, Stopped> {
        if self.cancel.is_cancelled() {
            let _ = self.add::<T>(
                stage,
                0,
                Err(Error::new(Code::Cancelled, format!("cancelled before the step {stage}"))),
            );
            return Err(Stopped);
        }
        self.finish(stage, work).await
    }

    /// Does a step that nobody can call off.
    pub(crate) async fn finish<T>(
        &mut self,
        stage: &'static DeepStage,
        work: BoxFuture<'_, Result<Came<T>, Error>>,
    ) -> Result<Option<T>, Stopped> {
        let at = DeepStage::ALL.iter().position(|one| one == stage).unwrap_or_default();
        self.progress.report(Report {
            stage: stage.as_str(),
            step: u32::try_from(at + 1).unwrap_or_default(),
            steps: u32::try_from(DeepStage::ALL.len()).unwrap_or_default(),
            message: Some(self.host.to_string()),
            ..Report::default()
        });
        let began = Instant::now();
        let came = work.await;
        self.add(stage, took_ms(began.elapsed()), came)
    }

    fn add<T>(
        &mut self,
        stage: &DeepStage,
        took_ms: u64,
        came: Result<Came<T>, Error>,
    ) -> Result<Option<T>, Stopped> {
        let step = |outcome, message| DeepStep {
            stage: stage.clone(),
            outcome,
            took_ms,
            message,
            error: None,
        };
        let (step, came) = match came {
            Ok(Came::Well(value, message)) => (step(DeepOutcome::Ok, message), Ok(Some(value))),
            Ok(Came::Skipped(why)) => (step(DeepOutcome::Skipped, Some(why)), Ok(None)),
            Err(error) => {
                let error = Some(Box::new(error));
                (DeepStep { error, ..step(DeepOutcome::Failed, None) }, Err(Stopped))
            }
        };
        self.list.push(step);
        came
    }

    /// Fills in what was not come to, but for the `last` ones.
    pub(crate) fn skip_to(&mut self, last: &[DeepStage]) {
        let failed = self.list.iter().find(|step| step.error.is_some());
        let why = failed.map_or_else(String::new, |step| format!("the step {} failed", step.stage));
        for stage in DeepStage::ALL.iter().filter(|stage| !last.contains(stage)) {
            if !self.list.iter().any(|step| step.stage == *stage) {
                let _ = self.add::<()>(stage, 0, Ok(Came::Skipped(why.clone())));
            }
        }
    }

    pub(crate) fn into_list(self) -> Vec<DeepStep> {
        self.list
    }
}

/// The steps that come after everything was tried, whatever came of it.
pub(crate) const ENDING: [DeepStage; 2] = [DeepStage::Destroy, DeepStage::Host];
