//! Decision on a create, in lines: where it would go, what that costs, and why not the others.

use super::{Role, bytes, many};
use crate::client::Decision;
use crate::domain::route::{CandidateVerdict, Verdict};

/// Lines of a decision, the outcome first.
pub fn decision_lines(decision: &Decision) -> Vec<(Role, String)> {
    let mut lines = vec![outcome(decision)];
    if let Some(error) = decision.error.as_ref().filter(|_| !decision.ok) {
        lines.push((Role::Bad, format!("  {}", error.message)));
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
pub(super) fn place_of_taker(candidates: &[CandidateVerdict]) -> Option<usize> {
    candidates.iter().position(|candidate| candidate.ok)
}

/// Line of a candidate: whether it can, on which condition it is passed over, why, its price.
pub(super) fn candidate_line(candidate: &CandidateVerdict, taken: bool) -> (Role, String) {
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
            let decision = serde_json::from_value(serde_json::json!({
                "profile": "profile.burst",
                "version": "1.0.0",
                "extension": "ext.compose-ssh",
                "inputs": {},
                "route": route,
                "verdicts": [],
                "candidates": candidates,
                "quote_usd": null,
                "ttl_s": null,
                "preview": Preview::default(),
                "ok": route.is_some(),
                "error": null,
            }));
            let decision: Decision = decision.unwrap();
            let lines = decision_lines(&decision);
            let shown = lines.iter().filter(|(_, line)| line.contains("ext.compose-ssh"));
            let shown: Vec<char> = shown.filter_map(|(_, line)| line.chars().nth(2)).collect();
            assert_eq!(shown, glyphs, "{lines:?}");
        }
    }
}
