//! teardown: one script that removes what the engine has, then the directory, then reads back (semantics 3).

mod batch;

use std::collections::HashSet;
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

/// How much longer an engine may be silent for each further sandbox, beyond the grace.
const FURTHER: Duration = Duration::from_secs(10);

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
    let grace = Duration::from_secs(target.profile.stop_grace.get());
    let call = Call {
        script: TEARDOWN_SH,
        words: shared_words(target, &root),
        limit: LIMIT + grace * 2,
        further: FURTHER + grace,
        transport,
    };
    let own = Own {
        id: target.id.clone(),
        words: [may_come(target).to_string(), built.join("\n")],
        // Its own directory may tell which engine it is, and a rollback has a time of its own.
        alone: engine(target).is_empty() || target.stamp.is_none(),
    };
    let transport = call.transport.as_ref();
    let (mut begun, mut earlier) = (false, Earlier::default());
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
            line == b"finished=yes"
        };
        if let Some(ended) = removals.remove(&call, &own, &mut on_line).await {
            break (heard, ended);
        }
        // Its host may have begun without our having heard of it.
        begun = true;
        reporter.began();
        earlier.learn(&ScriptOutput::read(heard.text()));
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
    Ok(earlier.completed(read(&said)))
}

/// Findings of calls that were cut off: what they removed, the last call does not find any more.
#[derive(Default)]
struct Earlier {
    /// Whether the engine had something of it.
    had: bool,
    removed: Vec<TeardownLine>,
}

impl Earlier {
    fn learn(&mut self, said: &ScriptOutput<'_>) {
        self.had |= said.value("had") == Some("yes");
        let lines = read(said).lines.into_iter();
        self.removed.extend(lines.filter(|line| line.outcome == TeardownOutcome::Removed));
    }

    /// Report of the last call, with what was removed before it.
    fn completed(mut self, mut report: TeardownReport) -> TeardownReport {
        let kinds: HashSet<String> =
            self.removed.iter().map(|line| line.resource.kind.clone()).collect();
        report.lines.retain(|line| {
            line.outcome != TeardownOutcome::Absent || !kinds.contains(&line.resource.kind)
        });
        self.removed.append(&mut report.lines);
        report.lines = self.removed;
        // Containers that were removed without a word of it.
        let is_absent = |line: &&mut TeardownLine| {
            line.resource.kind == "container" && line.outcome == TeardownOutcome::Absent
        };
        if self.had
            && let Some(line) = report.lines.iter_mut().find(is_absent)
        {
            line.outcome = TeardownOutcome::Removed;
        }
        report
    }
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
    fn what_a_call_that_was_cut_off_removed_is_in_the_report() {
        let mut earlier = Earlier::default();
        let cut = "begun=yes\nhad=yes\ndone=volume removed\n sbx-1_data\n";
        earlier.learn(&ScriptOutput::read(cut));
        let last = "begun=yes\ndone=container absent\n sbx-1\ndone=volume absent\n sbx-1_data\ndone=directory removed\n /srv/sbx-1\nfinished=yes\n";
        let report = earlier.completed(read(&ScriptOutput::read(last)));
        let lines = report.lines.iter();
        let told: Vec<_> = lines.map(|one| (&*one.resource.kind, one.outcome.as_str())).collect();
        assert_eq!(
            told,
            [("volume", "removed"), ("container", "removed"), ("directory", "removed")]
        );
        let none = Earlier::default().completed(read(&ScriptOutput::read(last)));
        assert_eq!(none.lines[0].outcome, TeardownOutcome::Absent);
    }

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
