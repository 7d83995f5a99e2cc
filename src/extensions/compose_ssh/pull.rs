//! Images before a recreate: found or pulled while the sandbox that is there still runs. One that is nowhere must not cost it
//! and its volumes.

use std::time::Duration;

use crate::domain::compose_host::ComposeHost;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, Target};
use crate::domain::reporter::{Report, Reporter};
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::mask::Masker;
use crate::extensions::compose_ssh::render::{
    Dialect, HostContext, Pull, RenderError, Rendered, ServicePlan,
};
use crate::extensions::compose_ssh::{host, provision, source};
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{self, failed, step};
use crate::transport::{Command, Source, Transport};

const PULL_SH: &str = include_str!("scripts/pull.sh");
const NAMES_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/names.sh")
);
const RENDERED_SH: &str = include_str!("scripts/rendered.sh");

/// Has every image on the host that the stack is started or built from. One that is made again from its archive (`restored`: as
/// it stands) is judged by the file that came of that archive before.
///
/// Errors: `invalid_input` for a file that is refused, `conflict` for a container's name that is somebody's, `operation_failed`
/// naming each one that is not there and cannot be pulled. Nothing else was changed.
pub(super) async fn pull(
    deps: &Deps,
    request: &ProvisionRequest,
    restored: Option<&Target>,
    reporter: &dyn Reporter,
) -> Result<(), Error> {
    let Some(found) = request.compose_host.clone() else { return Ok(()) };
    let report = Report { stage: "images", ..Report::default() };
    reporter.report(report.clone());
    let transport = deps.open(&request.host).await?;
    let engine = found.runtime.engine.clone();
    let dialect = Dialect::of(&found.runtime);
    let rendered = match restored {
        None => {
            host::render(request, source::PREVIEW_WORKDIR, found, transport.as_ref())
                .await?
                .0
                .result
        }
        Some(target) => match again(transport.as_ref(), request, target, found).await? {
            Some(judged) => judged,
            None => return Ok(()),
        },
    };
    let rendered = rendered.map_err(|error| provision::refused(&error))?;
    names_are_free(transport.as_ref(), request, &engine, &rendered, dialect).await?;
    let variables = source::variables(&request.profile);
    let masker = Masker::of_file(&rendered.yaml, &rendered.variables);
    let pulls = rendered.pulls;
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
    let output = transport
        .stream(&command, limit, &mut on_line)
        .await
        .map_err(|error| late(error, request))?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    let lacking: Vec<&str> =
        said.entries().filter(|entry| entry.key == "lacking").map(|entry| entry.value).collect();
    if output.ok() && lacking.is_empty() && said.value("images") == Some("there") {
        return Ok(());
    }
    let names: Vec<String> =
        pulls.iter().filter(|pull| lacking.contains(&pull.image.as_str())).map(told).collect();
    let host = &transport.spec().name;
    let message = match names.as_slice() {
        [] => format!("{engine} of {host} cannot say which images it has"),
        names => format!("{host} lacks {}", names.join(", ")),
    };
    let error = failed("images", message, &masker.output(&output));
    Err(error.untouched())
}

/// Rendered file of a restored sandbox, judged for the host as it is now; none where it came to no start.
async fn again(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    target: &Target,
    mut found: ComposeHost,
) -> Result<Option<Result<Rendered, RenderError>>, Error> {
    let Some(workdir) = &target.workdir else { return Ok(None) };
    let output = step(transport, "images", &Command::script(RENDERED_SH).arg(workdir)).await?;
    if output.truncated {
        let message = format!(
            "the file that it was started from cannot be read whole on {}",
            transport.spec().name
        );
        return Err(failed("images", message, &output));
    }
    let text = output.text();
    if text.is_empty() {
        return Ok(None);
    }
    let workspace = workspace::workspace(workdir);
    let judge = |host: &ComposeHost| {
        source::judge_rendered(&text, request, &workspace, &HostContext::from(host))
    };
    let judged = judge(&found);
    if !host::wants_addresses(&judged, &found) {
        return Ok(Some(judged));
    }
    found.taken = Some(host::taken(transport, &found.runtime, request).await?);
    Ok(Some(judge(&found)))
}

/// Docker's compose calls a container `sbx-ID-SERVICE-N`: `b-c` of `a` has the names that `c` of `a-b` has, and would be found
/// out when this sandbox is gone. Other composes part them by `_`, which no id has.
///
/// Errors: `conflict` with whose it is.
async fn names_are_free(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    engine: &str,
    rendered: &Rendered,
    dialect: Dialect,
) -> Result<(), Error> {
    if dialect != Dialect::Full || engine != "docker" {
        return Ok(());
    }
    let project = request.id.project();
    let output =
        step(transport, "images", &Command::script(NAMES_SH).arg(engine).arg(&project)).await?;
    let host = &transport.spec().name;
    let text = output.text();
    if !output.ok() || output.truncated {
        return Err(failed(
            "images",
            format!("{engine} of {host} cannot say which containers it has"),
            &output,
        ));
    }
    match clash(&text, &project, &rendered.services) {
        None => Ok(()),
        Some((name, service)) => {
            let message = format!(
                "the service `{service}` of sandbox {} would be the container {name} on {host}, which is somebody else's",
                request.id
            );
            let error = Error::new(Code::Conflict, message)
                .hint("give the service another name, or remove that container")
                .step("images");
            Err(error.untouched())
        }
    }
}

/// The first name that a service gets and that a container of another project has. `rows`: of belonging.sh.
fn clash<'a>(rows: &str, project: &str, services: &'a [ServicePlan]) -> Option<(String, &'a str)> {
    rows.lines().find_map(|row| {
        let mut fields = row
            .split('\u{1f}')
            .skip(3)
            .map(|field| serde_json::from_str::<String>(field).unwrap_or_default());
        let (of, names) = (fields.next()?, fields.next()?);
        names.split(',').filter(|_| of != project).find_map(|name| {
            let service = services.iter().find(|service| {
                let number = name.strip_prefix(project).and_then(|rest| rest.strip_prefix('-'));
                let number =
                    number.and_then(|rest| rest.strip_prefix(&service.name)?.strip_prefix('-'));
                number
                    .and_then(|number| number.parse::<u32>().ok())
                    .is_some_and(|n| (1..=service.replicas).contains(&n))
            })?;
            Some((name.to_owned(), service.name.as_str()))
        })
    })
}

/// An image that is lacking, with who wants it and why it is not pulled.
fn told(pull: &Pull) -> String {
    let why = if pull.policy.as_str() == "never" { "is never pulled" } else { "cannot be pulled" };
    format!("the image {} of {}, which {why}", pull.image, pull.path)
}

fn late(error: Error, request: &ProvisionRequest) -> Error {
    if error.code != Code::Timeout {
        return error.step("images");
    }
    let limit = request.profile.ready_timeout;
    Error::new(
        Code::Timeout,
        format!("the images were not there within the profile's ready_timeout of {limit}"),
    )
    .step("images")
    .because(error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_container_of_another_project_is_in_the_way_of_the_service_that_gets_its_name() {
        let service = |name: &str, replicas| ServicePlan {
            name: name.to_owned(),
            image: String::new(),
            built: false,
            replicas,
            ports: Vec::new(),
            has_healthcheck: false,
            restart: String::new(),
            one_shot: false,
            needs: BTreeMap::new(),
        };
        let services = [service("web", 1), service("b-c", 2)];
        for (names, of, met) in [
            ("sbx-a-b-c-1", "sbx-a-b", Some("sbx-a-b-c-1")),
            ("other,sbx-a-b-c-2", "", Some("sbx-a-b-c-2")),
            ("sbx-a-b-c-3", "sbx-a-b", None),
            ("sbx-a-b-c-1", "sbx-a", None),
            ("sbx-a-b-c", "sbx-a-b", None),
            ("sbx-ab-c-1", "sbx-ab", None),
            // A label is one field, whatever somebody wrote into it.
            ("other", "x\nsbx-a-b-c-1 y\u{1f}\"sbx-a-b-c-1\"", None),
        ] {
            let row = format!(
                "c1\u{1f}\"\"\u{1f}\"\"\u{1f}{}\u{1f}\"{names}\"\u{1f}Up",
                serde_json::json!(of)
            );
            assert_eq!(
                clash(&row, "sbx-a", &services),
                met.map(|name| (name.to_owned(), "b-c")),
                "{row}"
            );
        }
    }
}
