//! A workspace on a host: `<root>/sbx-<id>` with our manifest in it and, beneath, the files that somebody works on.
//!
//! Parts that a sandbox has whatever runs in it: the prepare call, the transfer of the input `repo`, the manifest, the
//! removal with its read-back, and the words to get there. Where containers belong to a sandbox, the calls name the engine;
//! without one that part is skipped.

pub(crate) mod exec;
pub(crate) mod inspect;
pub(crate) mod manifest;
pub(crate) mod patch;
pub(crate) mod prepare;
pub(crate) mod reachability;
pub(crate) mod repo;
pub(crate) mod script_output;
pub(crate) mod teardown;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::extension::Target;
use crate::domain::facts::HostIdentity;
use crate::domain::name::OwnerId;
use crate::domain::profile::Profile;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::root::{KnownRoots, RootMark};
use crate::domain::sandbox::Failure;
use crate::domain::text::last_lines;
use crate::transport::{Command, Output, Transport};

/// How long a small remote step may take.
const STEP_LIMIT: Duration = Duration::from_mins(1);

/// Lines of a failed step's output that are kept as evidence.
pub(crate) const EVIDENCE_LINES: usize = 200;

/// The folder of a sandbox's directory that somebody works in.
const WORKSPACE: &str = "workspace";

/// The folder of a sandbox's directory that somebody works in.
pub(crate) fn workspace(workdir: &str) -> String {
    format!("{workdir}/{WORKSPACE}")
}

/// The owner ids that are ours, as our scripts take them: blanks between.
pub(crate) fn owners(target: &Target) -> String {
    joined(&target.owners)
}

/// Owner ids as our scripts take them.
pub(crate) fn joined(owners: &[OwnerId]) -> String {
    owners.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(" ")
}

/// Whether records say that something is in the root that a script is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Something is recorded there, as far as a folder is.
    Yes,
    /// Nobody knows whether anything was made there yet.
    No,
}

/// Expectations of a host, as `sbx_prove_host` of place.sh takes it: the machine, and the roots that are known.
pub(crate) fn expected(
    identity: Option<&HostIdentity>,
    roots: &KnownRoots,
    recorded: Recorded,
) -> String {
    let machine = identity.map_or("", |identity| identity.machine_id.as_str());
    let spare = roots.spare.as_ref().map_or("", RootMark::as_str);
    let recorded = if recorded == Recorded::Yes { "recorded" } else { "" };
    let mut text = format!("{machine}\n{recorded} {spare}");
    let marked = roots.marked.iter().map(|root| (root.mark.as_str(), &root.machine_id, &root.path));
    let unmarked = roots.unmarked.iter().map(|root| ("-", &root.machine_id, &root.path));
    // Lines of words: what is none has no line.
    let is_word = |text: &str| !text.contains(char::is_whitespace);
    for (mark, machine, path) in marked.chain(unmarked) {
        if is_word(machine) && !path.contains('\n') {
            let machine = if machine.is_empty() { "-" } else { machine };
            text = format!("{text}\n{mark} {machine} {path}");
        }
    }
    text
}

/// Expectations of a sandbox's host.
pub(crate) fn expected_of(target: &Target) -> String {
    let recorded = if target.workdir.is_some() { Recorded::Yes } else { Recorded::No };
    expected(target.host_identity.as_ref(), &target.roots, recorded)
}

/// The recorded directory.
pub(crate) fn workdir(target: &Target) -> Result<&str, Error> {
    target
        .workdir
        .as_deref()
        .ok_or_else(|| Error::internal(format!("sandbox {} has no directory yet", target.id)))
}

/// Where the profile wants its sandboxes, instead of the host's `workspace_root`.
pub(crate) fn configured_root(profile: &Profile) -> Option<&str> {
    profile.config["root"].as_str()
}

/// `<root>` of `<root>/sbx-<id>`: as recorded, else as the profile or the host says.
pub(crate) fn root<'a>(target: &'a Target, configured: &'a str) -> &'a str {
    let recorded =
        target.workdir.as_deref().and_then(|path| path.rsplit_once('/')).map(|(root, _)| root);
    let recorded = recorded.map(|root| if root.is_empty() { "/" } else { root });
    recorded.or_else(|| configured_root(&target.profile)).unwrap_or(configured)
}

/// Steps of a provision, for the reports.
pub(crate) struct Steps<'a> {
    /// Where they are told.
    pub(crate) reporter: &'a dyn Reporter,
    count: u32,
    at: AtomicU64,
}

impl<'a> Steps<'a> {
    /// So many.
    pub(crate) fn new(reporter: &'a dyn Reporter, count: u32) -> Self {
        Self { reporter, count, at: AtomicU64::new(0) }
    }

    /// Begins the next one and tells so.
    pub(crate) fn next(&self, stage: &'static str) -> Report {
        let step = self.at.fetch_add(1, Ordering::Relaxed) as u32 + 1;
        let report = Report { stage, step, steps: self.count, ..Report::default() };
        self.reporter.report(report.clone());
        report
    }
}

/// Runs one of our scripts; an exit status other than 0 is a failed step with the evidence.
pub(crate) async fn step(
    transport: &dyn Transport,
    name: &str,
    command: &Command,
) -> Result<Output, Error> {
    let output = transport.run(command, STEP_LIMIT).await.map_err(|error| error.step(name))?;
    if output.ok() {
        return Ok(output);
    }
    Err(failed(name, format!("step {name} failed on {}", transport.spec().name), &output))
}

/// A failed step: the error, and the last lines as evidence.
pub(crate) fn failed(step: &str, message: String, output: &Output) -> Error {
    let mut text = output.text();
    let errors = output.error_text();
    if !errors.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&errors);
    }
    let mut error = Error::new(Code::OperationFailed, message).step(step);
    if let Some(last) = errors.lines().chain(text.lines()).rfind(|line| !line.trim().is_empty()) {
        error = error.because(last.trim().to_owned());
    }
    error.evidence(Failure {
        step: step.to_owned(),
        exit_status: Some(output.status),
        output: last_lines(&text, EVIDENCE_LINES),
    })
}
