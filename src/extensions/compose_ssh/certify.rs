//! What a host's compose runtime is worth: the canary tries it with a project that cannot start.

use std::time::Duration;

use crate::domain::extension::ExtensionError;
use crate::domain::facts::{Certificate, HostFacts};
use crate::domain::name::SandboxId;
use crate::extensions::workspace::failed;
use crate::extensions::workspace::said::Said;
use crate::transport::{Command, Transport};

const CERTIFY_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("scripts/certify.sh")
);

/// Four calls of the compose tool, each with a limit of its own in the script.
const LIMIT: Duration = Duration::from_secs(150);

pub(super) async fn certify(
    transport: &dyn Transport,
    id: &SandboxId,
    workdir: &str,
    facts: &HostFacts,
) -> Result<Certificate, ExtensionError> {
    let Some(runtime) = facts.runtimes.first().cloned() else {
        return Ok(Certificate {
            at: facts.at,
            runtime: None,
            exit_codes_trusted: None,
            ps_format: None,
            findings: vec!["no compose runtime works on this host; compose profiles cannot be used there".to_owned()],
        });
    };
    let command =
        Command::script(CERTIFY_SH).arg(workdir).arg(id.project()).arg(&runtime.engine).args(&runtime.command);
    let output = transport.stream(&command, LIMIT, &mut |_, _| {}).await?;
    let text = output.text();
    let said = Said::read(&text);
    if !output.ok() || said.value("certified") != Some("yes") {
        return Err(failed("certify", "the compose runtime could not be certified".to_owned(), &output));
    }
    let up: Option<i32> = said.value("up").and_then(|status| status.parse().ok());
    let ps: Option<i32> = said.value("ps").and_then(|status| status.parse().ok());
    let format = ps_format(ps, &said.text("ps_text").unwrap_or_default(), &runtime.version);
    let trusted = up.map(|status| status != 0);
    let mut findings = vec![match trusted {
        Some(true) => format!("`up` with an image that is not there ended with status {}", up.unwrap_or_default()),
        _ => "`up` with an image that is not there ended with status 0: its exit status says nothing".to_owned(),
    }];
    findings.push(match format.as_str() {
        "none" => "`ps --format json` does not work: the engine is asked instead".to_owned(),
        format => format!("`ps --format json` prints {format}"),
    });
    if said.value("network_left").is_some() {
        findings.push("`down -v` left the project's network".to_owned());
    }
    Ok(Certificate {
        at: facts.at,
        runtime: Some(runtime),
        exit_codes_trusted: trusted,
        ps_format: Some(format),
        findings,
    })
}

/// An array, or an object a line since compose 2.21; without containers both may print nothing at all.
fn ps_format(status: Option<i32>, text: &str, version: &str) -> String {
    let text = text.trim_start();
    if status != Some(0) {
        return "none".to_owned();
    }
    if text.starts_with('[') {
        return "json-array".to_owned();
    }
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if text.starts_with('{') || (major, minor) >= (2, 21) { "json-lines" } else { "json-array" }.to_owned()
}
