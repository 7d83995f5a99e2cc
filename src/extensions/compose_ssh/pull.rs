//! Images before a recreate: found or pulled while the sandbox that is there still runs. One that is nowhere must not cost it
//! and its volumes.

use std::time::Duration;

use crate::domain::extension::{ExtensionError, ProvisionRequest, Report, Reporter, Target};
use crate::domain::fault::{Code, Fault};
use crate::extensions::compose_ssh::mask::Masker;
use crate::extensions::compose_ssh::render::{HostContext, Pull, judge_rendered};
use crate::extensions::compose_ssh::{ComposeSsh, host, provision, source};
use crate::extensions::workspace::said::Said;
use crate::extensions::workspace::{failed, step};
use crate::transport::{Command, Source, Transport};

const PULL_SH: &str = include_str!("scripts/pull.sh");
const RENDERED_SH: &str = include_str!("scripts/rendered.sh");

/// Has every image on the host that the stack is started or built from. One that is made again from its archive (`restored`: as
/// it stands) is judged by the file that came of that archive before.
///
/// Errors: `operation_failed` naming each one that is not there and cannot be pulled. Nothing else was changed.
pub(super) async fn pull(
    extension: &ComposeSsh,
    request: &ProvisionRequest,
    restored: Option<&Target>,
    reporter: &dyn Reporter,
) -> Result<(), ExtensionError> {
    let Some(found) = request.compose_host.clone() else { return Ok(()) };
    let report = Report { stage: "images", ..Report::default() };
    reporter.report(report.clone());
    let transport = extension.open(&request.host).await?;
    let engine = found.runtime.engine.clone();
    let variables = source::variables(&request.profile);
    let (pulls, masker) = match restored {
        None => {
            let rendering = host::render(request, source::PREVIEW_WORKDIR, found, transport.as_ref()).await?.0;
            let rendered = rendering.result.map_err(|error| provision::refused(&error))?;
            let masker = Masker::of_file(&rendered.yaml, &rendered.variables);
            (rendered.pulls, masker)
        }
        Some(target) => {
            let Some(text) = rendered(transport.as_ref(), target).await? else { return Ok(()) };
            let pulls = judge_rendered(&text, &request.profile.compose, &HostContext::from(&found));
            (pulls.map_err(|error| provision::refused(&error))?, Masker::of_file(&text, &variables))
        }
    };
    if pulls.is_empty() {
        return Ok(());
    }
    let masker = masker.unwrap_or_else(|| Masker::of_variables(&variables));
    let words = pulls.iter().flat_map(|pull| [pull.policy.as_str(), &pull.image, &pull.platform]);
    let command = Command::script(PULL_SH).arg(&engine).args(words);
    let mut on_line = |_: Source, line: &[u8]| {
        let message = Some(masker.line(line));
        reporter.report(Report { message, ..report.clone() });
    };
    let limit: Duration = request.profile.ready_timeout.duration();
    let output = transport.stream(&command, limit, &mut on_line).await.map_err(|fault| late(fault, request))?;
    let text = output.text();
    let said = Said::read(&text);
    let lacking: Vec<&str> = said.entries().filter(|entry| entry.key == "lacking").map(|entry| entry.value).collect();
    if output.ok() && lacking.is_empty() && said.value("images") == Some("there") {
        return Ok(());
    }
    let names: Vec<String> = pulls.iter().filter(|pull| lacking.contains(&pull.image.as_str())).map(told).collect();
    let host = &transport.spec().name;
    let message = match names.as_slice() {
        [] => format!("{engine} of {host} cannot say which images it has"),
        names => format!("{host} lacks {}", names.join(", ")),
    };
    let error = failed("images", message, &masker.output(&output));
    Err(ExtensionError { untouched: true, ..error })
}

/// What a sandbox was started from; none where it came to no start.
async fn rendered(transport: &dyn Transport, target: &Target) -> Result<Option<String>, ExtensionError> {
    let Some(workdir) = &target.workdir else { return Ok(None) };
    let output = step(transport, "images", &Command::script(RENDERED_SH).arg(workdir)).await?;
    Ok(Some(output.text()).filter(|text| !text.is_empty()))
}

/// An image that is lacking, with who wants it and why it is not pulled.
fn told(pull: &Pull) -> String {
    let why = if pull.policy.as_str() == "never" { "is never pulled" } else { "cannot be pulled" };
    format!("the image {} of {}, which {why}", pull.image, pull.path)
}

fn late(fault: Fault, request: &ProvisionRequest) -> Fault {
    if fault.code != Code::Timeout {
        return fault.detail("step", "images");
    }
    let limit = request.profile.ready_timeout;
    Fault::new(Code::Timeout, format!("the images were not there within the profile's ready_timeout of {limit}"))
        .detail("step", "images")
        .because(fault)
}
