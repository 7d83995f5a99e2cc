//! teardown: one script that removes what the engine has, then the directory, then reads back (semantics 3).

mod batch;

use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::extension::Target;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use crate::extensions::workspace::script_output::{OutputBuffer, ScriptOutput};
use crate::extensions::workspace::{expected_of, failed, owners, root};
use crate::failpoint;
use crate::transport::{Source, Transports};

pub(crate) use batch::Removals;
use batch::{Call, Own};

const TEARDOWN_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/engine.sh"),
    include_str!("scripts/belonging.sh"),
    include_str!("scripts/bind.sh"),
    include_str!("scripts/processes.sh"),
    include_str!("scripts/teardown.sh")
);

/// How long a teardown may take beyond the grace that containers get.
const LIMIT: Duration = Duration::from_mins(2);

/// Seconds for which a directory that is not there may still come. Of one that was never made to its end, the call that makes and
/// fills it may have been cut off just now: its host notices that with the watchdog's next beat.
fn may_come(target: &Target) -> u32 {
    if target.handle.is_none() { 3 } else { 1 }
}

/// Removes what the host has of a sandbox, and these images that were built for it, and reads back.
pub(crate) async fn teardown(
    removals: &Removals,
    transports: &dyn Transports,
    target: &Target,
    built: &[String],
    reporter: &dyn Reporter,
) -> Result<TeardownReport, Error> {
    let report = Report { stage: "teardown", ..Report::default() };
    reporter.report(report.clone());
    let transport = transports.open(&target.host).await.map_err(Error::untouched)?;
    let root = root(target, &transport.spec().workspace_root).to_owned();
    let call = Call {
        script: TEARDOWN_SH,
        words: shared_words(target, &root),
        limit: LIMIT + Duration::from_secs(target.profile.stop_grace.get() * 2),
        transport,
    };
    let own = Own {
        id: target.id.clone(),
        words: [may_come(target).to_string(), built.join("\n")],
        // Its own directory may tell which engine it is.
        alone: engine(target).is_empty(),
    };
    let transport = call.transport.as_ref();
    let mut begun = false;
    let (heard, ended) = loop {
        let mut heard = OutputBuffer::default();
        let mut on_line = |line: &[u8]| {
            heard.line(Source::Stdout, line);
            if line == b"begun=yes" {
                begun = true;
                reporter.began();
            }
            if let Some(done) = line.strip_prefix(b"done=") {
                let message = Some(String::from_utf8_lossy(done).into_owned());
                reporter.report(Report { message, ..report.clone() });
            }
        };
        if let Some(ended) = removals.remove(&call, &own, &mut on_line).await {
            break (heard, ended);
        }
    };
    let output = ended.map_err(|error| error.step("teardown"))?;
    failpoint::reached("compose.torn_down");
    let said = heard.said().map_err(|error| error.step("teardown"))?;
    if let Some(root) = said.marked_root() {
        reporter.found_root(&root);
    }
    // Which host and engine it is, whether it knows more than we do, and whose the directory is, is asked before anything is
    // touched.
    said.check("teardown", transport, &root)
        .map_err(|error| if begun { error } else { error.untouched() })?;
    if said.value("finished") != Some("yes") {
        let message = format!("the removal on {} did not come to its end", transport.spec().name);
        return Err(failed("teardown", message, &output));
    }
    Ok(read(&said))
}

/// Name of the engine's program; empty where none is known.
fn engine(target: &Target) -> &str {
    let identity = target.host_identity.as_ref();
    identity.and_then(|identity| identity.engine.as_deref()).unwrap_or_default()
}

/// The script's parameters before those of each sandbox.
fn shared_words(target: &Target, root: &str) -> Vec<String> {
    let identity = target.host_identity.as_ref();
    let stamp = target.stamp.as_ref();
    vec![
        root.to_owned(),
        owners(target),
        expected_of(target),
        engine(target).to_owned(),
        identity.and_then(|identity| identity.engine_id.clone()).unwrap_or_default(),
        target.profile.stop_grace.get().to_string(),
        stamp.map_or_else(String::new, |ours| format!("{} {}", ours.owner, ours.counter)),
    ]
}

fn read(said: &ScriptOutput<'_>) -> TeardownReport {
    let mut report = TeardownReport::default();
    for entry in said.entries() {
        match entry.key {
            "done" => {
                let (kind, outcome) =
                    entry.value.split_once(' ').unwrap_or((entry.value, "failed"));
                report.lines.push(TeardownLine {
                    resource: Resource { kind: kind.to_owned(), id: entry.text() },
                    outcome: TeardownOutcome::from_word(outcome),
                    reason: None,
                });
            }
            "why" => {
                let why = entry.text();
                if let Some(line) = report.lines.last_mut().filter(|_| !why.is_empty()) {
                    line.reason = Some(why);
                }
            }
            "left" => {
                report.leftovers.push(Resource { kind: entry.value.to_owned(), id: entry.text() });
            }
            _ => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_a_line_per_resource_and_what_is_left() {
        let text = "machine=1\ndone=container removed\n sbx-1-web-1\ndone=network failed\n sbx-1_default\nwhy=\n network in use\n\ndone=directory removed\n /srv/sbx-1\nleft=network\n sbx-1_default\nfinished=yes\n";
        let report = read(&ScriptOutput::read(text));
        assert_eq!(report.lines.len(), 3);
        assert_eq!(report.lines[1].outcome, TeardownOutcome::Failed);
        assert_eq!(report.lines[1].reason.as_deref(), Some("network in use"));
        assert_eq!(
            report.leftovers,
            [Resource { kind: "network".into(), id: "sbx-1_default".into() }]
        );
        assert!(!report.is_clean());
    }
}
