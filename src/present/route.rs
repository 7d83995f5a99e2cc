//! Route: where a create would go, what that costs, and why not the others; which way a sandbox took.

use super::count::many;
use super::document::Document;
use super::failure::exit;
use super::moment::Present;
use super::role::Role;
use crate::client::Decision;
use crate::domain::SandboxRecord;
use crate::domain::figures::bytes;
use crate::domain::route::{Attempt, CandidateVerdict, Verdict};
use crate::domain::telling::last_telling_line;

/// Lines of a decision, the outcome first.
pub(crate) fn decision_lines(decision: &Decision) -> Vec<(Role, String)> {
    let mut lines = vec![outcome(decision)];
    if let Some(error) = decision.error.as_ref().filter(|_| !decision.ok) {
        // The host's line says it, where there is one host.
        let told =
            decision.verdicts.iter().any(|verdict| verdict.reason.starts_with(&error.message));
        if !told {
            lines.push((Role::Bad, format!("  {}", error.message)));
        }
        lines.extend(error.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
    }
    if let Some(missing) = decision.missing_usd {
        let words = "missing: grant that much first (`sandboxer credits grant`), or a shorter ttl";
        lines.push((Role::Bad, format!("  ✗ {missing} {words}")));
    }
    for refusal in &decision.preview.refusals {
        let allow = refusal
            .allow
            .as_ref()
            .map(|word| format!(" (the profile may allow it: {word})"))
            .unwrap_or_default();
        lines.push((Role::Bad, format!("  ✗ {}: {}{allow}", refusal.path, refusal.message)));
    }
    let chosen = decision.route.as_ref().map(|route| &route.host);
    if decision.candidates.is_empty() {
        let others = decision.verdicts.iter().filter(|verdict| chosen != Some(&verdict.host));
        lines.extend(others.map(|verdict| host_line(verdict, "  ")));
    }
    let place = place_of_taker(&decision.candidates);
    for (at, candidate) in decision.candidates.iter().enumerate() {
        let taken = place == Some(at);
        lines.push(candidate_line(candidate, taken));
        let others =
            candidate.verdicts.iter().filter(|verdict| !taken || chosen != Some(&verdict.host));
        lines.extend(others.map(|verdict| host_line(verdict, "      ")));
    }
    if !decision.preview.services.is_empty() {
        lines.push((Role::Dim, format!("  starts {}", decision.preview.services.join(", "))));
    }
    for rewrite in &decision.preview.rewrites {
        lines.push((Role::Dim, format!("  changes {}: {}", rewrite.path, rewrite.what)));
    }
    lines
}

fn outcome(decision: &Decision) -> (Role, String) {
    let price = decision.quote_usd.map(|price| format!("  costs {price}")).unwrap_or_default();
    let send = match (decision.preview.files, decision.preview.bytes) {
        (0, 0) => String::new(),
        (files, size) => {
            let files = many(usize::try_from(files).unwrap_or(usize::MAX), "file", "files");
            format!("  sends {files}, {}", bytes(size))
        }
    };
    match &decision.route {
        Some(route) if decision.ok => {
            (Role::Good, format!("✓ on {}: {}{send}{price}", route.host, route.reason))
        }
        Some(route) => {
            (Role::Bad, format!("✗ refused; it would go on {}{send}{price}", route.host))
        }
        None if decision.candidates.is_empty() => (Role::Bad, "✗ no host can take it".to_owned()),
        None => (Role::Bad, "✗ no candidate can take it".to_owned()),
    }
}

/// Place of the candidate that takes it: the first that can, whatever those behind it could. Several may be of its extension.
fn place_of_taker(candidates: &[CandidateVerdict]) -> Option<usize> {
    candidates.iter().position(|candidate| candidate.ok)
}

/// Line of a candidate: whether it can, on which condition it is passed over, why, its price.
fn candidate_line(candidate: &CandidateVerdict, taken: bool) -> (Role, String) {
    let (glyph, role) = match (taken, candidate.ok) {
        (true, _) => ('✓', Role::Good),
        (false, true) => ('·', Role::Dim),
        (false, false) => ('✗', Role::Warn),
    };
    let CandidateVerdict { extension, reason, .. } = candidate;
    let condition =
        candidate.condition.as_ref().map(|condition| format!("{condition}: ")).unwrap_or_default();
    let price = candidate.quote_usd.map(|price| format!("  {price}")).unwrap_or_default();
    (role, format!("  {glyph} {extension}  {condition}{reason}{price}"))
}

fn host_line(verdict: &Verdict, indent: &str) -> (Role, String) {
    let (glyph, role) = if verdict.ok { ('·', Role::Dim) } else { ('✗', Role::Warn) };
    (role, format!("{indent}{glyph} {}: {}", verdict.host, verdict.reason))
}

/// Adds which candidate took a sandbox's request and why not the others; how each attempt ended.
pub(crate) fn of_sandbox(document: &mut Document, record: &SandboxRecord, present: Present<'_>) {
    let candidates = record.route.as_ref().map_or(&[][..], |route| &route.candidates);
    let place = place_of_taker(candidates);
    for (at, candidate) in candidates.iter().enumerate() {
        if at == 0 {
            document.heading("Route");
        }
        let taken = place == Some(at);
        let (role, words) = candidate_line(candidate, taken);
        document.text(role, 0, words);
        for verdict in candidate.verdicts.iter().filter(|verdict| !taken || !verdict.ok) {
            let role = if verdict.ok { Role::Dim } else { Role::Warn };
            document.text(role, 6, format!("{}: {}", verdict.host, verdict.reason));
        }
    }
    // Records of earlier versions have verdicts there, of hosts on which nothing was tried.
    let tried = record.attempts.iter().filter(|attempt| attempt.extension.is_some());
    for (at, attempt) in tried.enumerate() {
        if at == 0 {
            document.heading("Attempts");
        }
        of_attempt(document, attempt, present);
    }
}

fn of_attempt(document: &mut Document, attempt: &Attempt, present: Present<'_>) {
    let extension = attempt.extension.as_ref().map(ToString::to_string).unwrap_or_default();
    let (glyph, role) = if attempt.ok { ('✓', Role::Good) } else { ('✗', Role::Bad) };
    let cost = attempt.cost_usd.map(|cost| format!("  cost {cost}")).unwrap_or_default();
    let Attempt { host, reason, .. } = attempt;
    document.text(role, 2, format!("{glyph} {extension} on {host}: {reason}{cost}"));
    let when = attempt.at.map(|at| present.ago(at));
    let step = attempt.failure.as_ref().map(|failed| {
        let said = last_telling_line(&failed.output).unwrap_or_default();
        format!("step {}{}: {said}", failed.step, exit(failed.exit_status))
    });
    for words in when.into_iter().chain(step) {
        document.text(Role::Dim, 6, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::extension::Preview;

    fn verdict(host: &str, ok: bool) -> CandidateVerdict {
        let reason = format!("on {host}");
        let host = Verdict { host: crate::domain::HostName::new(host), ok, reason: "up".into() };
        CandidateVerdict {
            extension: "ext.compose-ssh".into(),
            ok,
            condition: None,
            reason,
            quote_usd: None,
            verdicts: vec![host],
        }
    }

    fn decision(parts: serde_json::Value) -> Decision {
        let mut decision = serde_json::json!({
            "profile": "profile.p",
            "version": "1.0.0",
            "extension": "ext.compose-ssh",
            "inputs": {},
            "route": null,
            "verdicts": [],
            "quote_usd": null,
            "ttl_s": null,
            "preview": Preview::default(),
            "ok": false,
            "error": null,
        });
        let serde_json::Value::Object(parts) = parts else { panic!("{parts} is no object") };
        decision.as_object_mut().unwrap().extend(parts);
        serde_json::from_value(decision).unwrap()
    }

    #[test]
    fn of_several_candidates_of_one_extension_only_the_one_that_takes_it_is_shown_as_such() {
        for (candidates, glyphs) in [
            ([("a", true), ("b", true), ("c", true)], ['✓', '·', '·']),
            ([("a", false), ("b", true), ("c", true)], ['✗', '✓', '·']),
            ([("a", false), ("b", false), ("c", false)], ['✗', '✗', '✗']),
        ] {
            let candidates: Vec<_> =
                candidates.iter().map(|(host, ok)| verdict(host, *ok)).collect();
            let chosen =
                place_of_taker(&candidates).map(|at| candidates[at].verdicts[0].host.clone());
            let route =
                chosen.map(|host| serde_json::json!({"host": host, "reason": "", "verdicts": []}));
            let decision = decision(serde_json::json!({
                "route": route,
                "candidates": candidates,
                "ok": route.is_some(),
            }));
            let lines = decision_lines(&decision);
            let shown = lines.iter().filter(|(_, line)| line.contains("ext.compose-ssh"));
            let shown: Vec<char> = shown.filter_map(|(_, line)| line.chars().nth(2)).collect();
            assert_eq!(shown, glyphs, "{lines:?}");
        }
    }
    #[test]
    fn why_the_one_host_cannot_take_it_is_told_once() {
        let why = "ssh: connect to host a port 22: Connection timed out";
        let host = format!("  ✗ a: {why}: exit 255");
        for (message, told) in [(why, None), ("none can", Some("  none can"))] {
            let decision = decision(serde_json::json!({
                "verdicts": [{"host": "a", "ok": false, "reason": format!("{why}: exit 255")}],
                "error": {"code": "host_unreachable", "message": message, "hint": "try b"},
            }));
            let lines = decision_lines(&decision);
            let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
            let first = std::iter::once("✗ no host can take it").chain(told);
            assert_eq!(lines, first.chain(["  try b", host.as_str()]).collect::<Vec<_>>());
        }
    }
}
