//! Values that a sandbox's containers were given, as its host has them: engines quote them where they fail, and nobody is told.
//! Nothing of it is kept on this side.

use crate::domain::error::{Code, Error};
use crate::domain::extension::Target;
use crate::domain::profile::Profile;
use crate::domain::teardown::TeardownReport;
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::mask::{self, Masker};
use crate::extensions::compose_ssh::source;
use crate::extensions::workspace::{EVIDENCE_LINES, step, workdir};
use crate::transport::{Command, Transport};

const GIVEN_SH: &str = include_str!("scripts/given.sh");

/// So much of an engine's words comes from a script at most (says.sh); the rest was cut off. Bytes.
const WORDS: usize = 4000;

/// `None`: there is no rendered file on the host, or it cannot be read.
pub(super) async fn masker(transport: &dyn Transport, target: &Target) -> Option<Masker> {
    let command = Command::script(GIVEN_SH).arg(workdir(target).ok()?);
    let output =
        step(transport, "ready", &command).await.ok().filter(|output| !output.truncated)?;
    let text = output.text();
    let (file, variables) = text.split_once("\n# .env\n")?;
    let mut variables = mask::assignments(variables);
    variables.extend(source::variables(&target.profile));
    Masker::of_file(file, &variables)
}

/// [`Deps::told`], before there is a rendered file on the host.
pub(super) fn told_of<T>(profile: &Profile, answer: Result<T, Error>) -> Result<T, Error> {
    answer.map_err(|error| if quotes(&error) { without(error, &known(profile)) } else { error })
}

impl Deps {
    /// An answer of which the error quotes nothing that the containers were given.
    pub(super) async fn told<T>(
        &self,
        target: &Target,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        match answer {
            Err(error) if quotes(&error) => {
                let silent =
                    matches!(error.code, Code::HostUnreachable | Code::HostChanged | Code::Timeout);
                let masker = if silent { known(&target.profile) } else { of(self, target).await };
                Err(without(error, &masker))
            }
            answer => answer,
        }
    }

    /// A removal's report without what the containers were given. Where the file went with the folder, the engine's words are
    /// about what is left, and what is named like a secret is masked in them.
    pub(super) async fn told_left(
        &self,
        target: &Target,
        mut report: TeardownReport,
    ) -> TeardownReport {
        if report.lines.iter().any(|line| line.reason.is_some()) {
            let masker = of(self, target).await;
            for reason in report.lines.iter_mut().filter_map(|line| line.reason.as_mut()) {
                *reason = masked(&masker, reason);
            }
        }
        report
    }
}

async fn of(deps: &Deps, target: &Target) -> Masker {
    let found = match deps.open(&target.host).await {
        Ok(transport) => masker(transport.as_ref(), target).await,
        Err(_) => None,
    };
    found.unwrap_or_else(|| known(&target.profile))
}

fn known(profile: &Profile) -> Masker {
    Masker::of_variables(&source::variables(profile))
}

fn quotes(error: &Error) -> bool {
    error.evidence.is_some() || !error.causes.is_empty()
}

/// The sentence itself is ours; what a tool said is its cause, and the evidence.
fn without(mut error: Error, masker: &Masker) -> Error {
    if let Some(failure) = error.evidence.as_mut() {
        failure.output = masked(masker, &failure.output);
    }
    let told: Vec<String> = error.causes.iter().map(|cause| masked(masker, cause)).collect();
    if told == error.causes { error } else { error.because(told.join(": ")) }
}

fn masked(masker: &Masker, words: &str) -> String {
    let may_be_cut = words.len() + 4 > WORDS || words.lines().count() >= EVIDENCE_LINES;
    if may_be_cut { masker.cut(words) } else { masker.text(words) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::sandbox::Failure;

    #[test]
    fn an_error_keeps_its_sentence_and_loses_what_was_given() {
        let file = "# ours\n{\"services\": {\"web\": {\"image\": \"app:1\", \"environment\": {\"API_TOKEN\": \"tok-5e1f9a\"}}}}";
        let masker = Masker::of_file(file, &BTreeMap::new()).unwrap();
        let said = "sbx-1-web-1 cannot be started: exec: \"/tools/tok-5e1f9a\": no such file";
        let error =
            Error::new(Code::OperationFailed, "sandbox 1 could not be started").step("start");
        let failure =
            Failure { step: "start".to_owned(), exit_status: Some(1), output: format!("{said}\n") };
        let error = without(error.because(said).evidence(failure), &masker);
        let told = "sbx-1-web-1 cannot be started: exec: \"/tools/***\": no such file";
        assert_eq!(error.message, "sandbox 1 could not be started");
        assert_eq!(error.details["step"], "start");
        assert_eq!(error.causes, [told]);
        assert_eq!(error.evidence.unwrap().output, format!("{told}\n"));
        let long = format!("{}tok-5e1", "x ".repeat(WORDS / 2));
        assert!(masked(&masker, &long).ends_with("x ***"), "its end was cut off within a value");
    }
}
