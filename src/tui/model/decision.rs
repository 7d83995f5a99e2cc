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
    for candidate in &decision.candidates {
        let taken = decision.extension == candidate.extension.as_str() && candidate.ok;
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
