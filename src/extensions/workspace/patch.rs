//! A patch's script in the workspace: room is made beside it first, then it is run there, in a session of its own, with a limit that the host
//! keeps. What it writes stays on the host but for its end.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::domain::error::{Error, Kind};
use crate::domain::extension::{PatchOutcome, PatchRun, Target};
use crate::domain::patch::{KEPT_OUTPUT, RUN_IN_WORKSPACE};
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{exec, expected_of, failed, owners, root, step, workdir};
use crate::failpoint;
use crate::transport::{Command, Source, Transport};

/// Proves the place, and the engine where one is named, and makes room for the script.
const PUT_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/engine.sh"),
    include_str!("scripts/stand.sh"),
    include_str!("scripts/put_patch.sh")
);
const RUN_SH: &str = concat!(include_str!("scripts/kept.sh"), include_str!("scripts/run_patch.sh"));

/// How much longer than the script may run we wait for the host's word: it ends it by itself.
const SLACK: Duration = Duration::from_secs(45);

/// The exit status of a script that was not even begun, and would not be at the next try.
const NOT_BEGUN: i32 = 125;

/// Runs a patch's script in the workspace.
pub(crate) async fn run(
    transport: &dyn Transport,
    target: &Target,
    run: &PatchRun,
) -> Result<PatchOutcome, Error> {
    if run.patch.run_in != RUN_IN_WORKSPACE {
        return Ok(refused(exec::no_services(target).message));
    }
    put(transport, target, run, None).await.map_err(never_began)?;
    let command = Command::script(RUN_SH)
        .with_account_environment()
        .arg(workdir(target).map_err(never_began)?)
        .args(limits(run))
        .args(names(target, run))
        .arg(&run.patch.script);
    watch(transport, target, run, &command).await
}

/// Error of what could not be tried, told as a failure of the patch.
pub(crate) fn refused(sentence: String) -> PatchOutcome {
    PatchOutcome {
        exit_status: NOT_BEGUN,
        timed_out: false,
        output: sentence,
        duration: Duration::ZERO,
    }
}

/// An error before anything of the script ran.
pub(crate) fn never_began(error: Error) -> Error {
    error.detail("began", false).of_kind(Kind::NeverBegan)
}

/// Proves host, place and engine, and that there is room for the script. Nothing of it is there yet.
pub(crate) async fn put(
    transport: &dyn Transport,
    target: &Target,
    run: &PatchRun,
    engine: Option<&str>,
) -> Result<(), Error> {
    let identity = target.host_identity.as_ref();
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(PUT_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
        .arg(run.patch.script.len().to_string())
        .arg(engine.unwrap_or_default())
        .arg(identity.and_then(|identity| identity.engine_id.as_deref()).unwrap_or_default());
    let output = step(transport, "patch", &command).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    exec::stands(target, transport, root, "patch", &said)?;
    failpoint::reached("patch.placed");
    match said.text("put") {
        Some(_) => Ok(()),
        None => Err(failed(
            "patch",
            format!("no room was made for the script on {}", transport.spec().name),
            &output,
        )),
    }
}

/// Its time in seconds, the bytes that are kept of its output, and a word that marks its processes.
pub(crate) fn limits(run: &PatchRun) -> [String; 3] {
    [
        run.limit.as_secs().max(1).to_string(),
        KEPT_OUTPUT.to_string(),
        Uuid::new_v4().simple().to_string(),
    ]
}

/// Environment that tells it where it runs: the sandbox, the snapshot, its own place in the order.
pub(crate) fn names(target: &Target, run: &PatchRun) -> [String; 3] {
    [target.id.to_string(), run.patch.snapshot_id.to_string(), run.patch.sequence.to_string()]
}

/// Runs a script of ours that says `began=yes`, and at its end how the patch's ended.
///
/// Errors: `details.began` is false where it never said so and was there to say why; else nobody knows.
pub(crate) async fn watch(
    transport: &dyn Transport,
    target: &Target,
    run: &PatchRun,
    command: &Command,
) -> Result<PatchOutcome, Error> {
    let mut began = false;
    let started = Instant::now();
    let mut on_line =
        |source: Source, line: &[u8]| began |= source == Source::Stdout && line == b"began=yes";
    let output =
        transport.stream(command, run.limit + SLACK, &mut on_line).await.map_err(|error| {
            let error = error.step("patch");
            if began { error.detail("began", true) } else { error }
        })?;
    if let Some(ended) = read(&output.stdout) {
        return Ok(PatchOutcome { duration: started.elapsed(), ..ended });
    }
    let message = format!(
        "the script of patch {} in sandbox {} has not told its end",
        run.patch.sequence, target.id
    );
    let error = failed("patch", message, &output);
    Err(if began { error } else { never_began(error) })
}

/// How it ended. What it wrote stands last, as it is.
fn read(stdout: &[u8]) -> Option<PatchOutcome> {
    let mark = b"\noutput=\n";
    let at = stdout.windows(mark.len()).position(|bytes| bytes == mark)?;
    let head = String::from_utf8_lossy(&stdout[..at]);
    let said = ScriptOutput::read(&head);
    Some(PatchOutcome {
        exit_status: said.value("status")?.parse().ok()?,
        timed_out: said.value("late") == Some("yes"),
        output: String::from_utf8_lossy(&stdout[at + mark.len()..]).into_owned(),
        duration: Duration::ZERO,
    })
}
