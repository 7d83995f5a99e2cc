//! Worth of a host's compose runtime: the canary tries it with a project that cannot start.

use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::facts::{Certificate, HostFacts};
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::profile::Allowance;
use crate::extensions::workspace::failed;
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::transport::{Command, Transport};

const CERTIFY_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/certify.sh")
);

/// Four calls of the compose tool, each with a limit of its own in the script.
const LIMIT: Duration = Duration::from_secs(150);

pub(super) async fn certify(
    transport: &dyn Transport,
    id: &SandboxId,
    owner: &OwnerId,
    workdir: &str,
    facts: &HostFacts,
) -> Result<Certificate, Error> {
    let Some(runtime) = facts.runtimes.first().cloned() else {
        return Ok(Certificate {
            at: facts.at,
            runtime: None,
            exit_codes_trusted: None,
            ps_format: None,
            findings: vec![
                "no compose runtime works on this host; compose profiles cannot be used there"
                    .to_owned(),
            ],
        });
    };
    let command = Command::script(CERTIFY_SH)
        .args([workdir, id.as_str(), owner.as_str(), &runtime.engine])
        .args(&runtime.command);
    let output = transport.stream(&command, LIMIT, &mut |_, _| {}).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    said.check("certify", transport, workdir)?;
    if !output.ok() || said.value("certified") != Some("yes") {
        return Err(failed(
            "certify",
            "the compose runtime could not be certified".to_owned(),
            &output,
        ));
    }
    let up: Option<i32> = said.value("up").and_then(|status| status.parse().ok());
    let ps: Option<i32> = said.value("ps").and_then(|status| status.parse().ok());
    let format = ps_format(ps, &said.text("ps_text").unwrap_or_default(), &runtime.version);
    let trusted = up.map(|status| status != 0);
    let mut findings = vec![match trusted {
        Some(true) => format!(
            "`up` with an image that is not there ended with status {}",
            up.unwrap_or_default()
        ),
        _ => {
            "`up` with an image that is not there ended with status 0: its exit status says nothing"
                .to_owned()
        }
    }];
    findings.push(match format {
        "none" => "`ps --format json` does not work: the engine is asked instead".to_owned(),
        format => format!("`ps --format json` prints {format}"),
    });
    if said.value("network_left").is_some() {
        findings.push("`down -v` left the project's network".to_owned());
    }
    if let Some(escape) = runtime.builds_escape() {
        findings.push(format!(
            "{escape}: a build is refused unless the profile allows `{}`",
            Allowance::Builds
        ));
    }
    Ok(Certificate {
        at: facts.at,
        runtime: Some(runtime),
        exit_codes_trusted: trusted,
        ps_format: Some(format.to_owned()),
        findings,
    })
}

/// An array, or an object a line since compose 2.21, which prints nothing at all without containers.
/// docker-compose 1.29 prints its usage and ends with 0.
fn ps_format(status: Option<i32>, text: &str, version: &str) -> &'static str {
    let text = text.trim_start();
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match text.chars().next() {
        _ if status != Some(0) => "none",
        Some('[') => "json-array",
        Some('{') => "json-lines",
        // Before 2.21 an empty list.
        Some(_) if text.starts_with("null") => "json-array",
        None if (major, minor) >= (2, 21) => "json-lines",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_ps_is_what_was_printed() {
        for (status, text, version, format) in [
            (0, "", "2.26.1-4", "json-lines"),
            (0, "", "5.6.1", "json-lines"),
            (0, "{\"Name\":1}\n", "2.26.1", "json-lines"),
            (0, "[]\n", "1.6.0", "json-array"),
            (0, "[]", "2.20.0", "json-array"),
            (0, "null\n", "2.3.3", "json-array"),
            // docker-compose 1.29 says how it is used, on stderr.
            (0, "", "1.29.2", "none"),
            (2, "", "1.0.3", "none"),
            (1, "[]", "2.26.1", "none"),
        ] {
            assert_eq!(ps_format(Some(status), text, version), format, "{version} {text:?}");
        }
        assert_eq!(ps_format(None, "[]", "2.26.1"), "none");
    }
}
