//! Words for events, the same wherever one is shown.

use super::role::Role;
use super::sandbox::short_profile;
use crate::domain::event::{Event, EventKind};
use crate::domain::text::clean_line;

/// An event in a sentence about something of this name, with who caused it where that is not this operator.
pub(crate) fn event_sentence(event: &Event, name: Option<&str>, me: &str) -> String {
    let by = event.actor.to_string();
    let is_nobodys = matches!(
        event.kind,
        EventKind::HostDown | EventKind::HostUp | EventKind::HostChanged | EventKind::SandboxLost
    );
    let by = if by == me || is_nobodys { String::new() } else { format!("  by {by}") };
    clean_line(&format!("{}{by}", sentence(event, name)), 400)
}

/// An event in a sentence about something of this name.
fn sentence(event: &Event, name: Option<&str>) -> String {
    if let Some(sentence) = host_sentence(event) {
        return sentence;
    }
    let subject = subject(event, name).map(|subject| format!(" {subject}")).unwrap_or_default();
    with_particulars(format!("{}{subject}", verb(&event.kind)), event)
}

/// Sentence on what became of a host.
fn host_sentence(event: &Event) -> Option<String> {
    let host = event.host()?;
    let message = event.text("message").map(|text| format!(": {text}")).unwrap_or_default();
    match &event.kind {
        EventKind::HostDown => Some(format!("host {host} is down{message}")),
        EventKind::HostUp => Some(format!("host {host} answers again")),
        EventKind::HostChanged => {
            Some(format!("host {host} is another machine than before{message}"))
        }
        _ => None,
    }
}

/// An event in a sentence that stands where it is known what it is about.
pub(crate) fn event_words(event: &Event) -> String {
    let subject = subject(event, None).filter(|_| event.kind.is_of_patch());
    let subject = subject.map(|subject| format!(" {subject}")).unwrap_or_default();
    let text = with_particulars(format!("{}{subject}", verb(&event.kind)), event);
    clean_line(&format!("{text}  {}", event.actor), 400)
}

/// Name of an event, in a word or two.
pub(crate) fn verb(kind: &EventKind) -> String {
    let verb = kind.as_str();
    verb.strip_prefix("sandbox.").unwrap_or(verb).replace('.', " ")
}

fn with_particulars(text: String, event: &Event) -> String {
    match particulars(event, event.text("reason").unwrap_or_default()) {
        none if none.is_empty() => text,
        some => format!("{text}  {some}"),
    }
}

/// Rest of an event, beside what it is about: `$0.80  ttl_expired  on coulombcore`.
pub(crate) fn particulars(event: &Event, reason: &str) -> String {
    let amount = event.usd().map(|amount| amount.to_string()).unwrap_or_default();
    let labels = event.label_changes().join(" ");
    let on = event.host().map(|host| format!("on {host}")).unwrap_or_default();
    let text = |key| event.text(key).unwrap_or_default();
    let profile = short_profile(text("profile"));
    let words = [profile, &amount, reason, text("message"), &labels, text("note"), &on];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}

/// Subject of an event: a snapshot and its sandbox, a patch and where it is or ran, or a sandbox.
fn subject(event: &Event, name: Option<&str>) -> Option<String> {
    let snapshot = event.snapshot_name().or(event.snapshot_id()).map(str::to_owned);
    let id = event.sandbox_id.as_ref().map(ToString::to_string);
    let named = event.sandbox_name().filter(|_| !event.kind.is_of_snapshot());
    let sandbox = name.or(named).map(str::to_owned).or(id);
    match (&event.kind, event.patch_sequence()) {
        (EventKind::PatchAdded | EventKind::PatchRemoved, Some(number)) => Some(
            snapshot
                .map_or_else(|| number.to_string(), |snapshot| format!("{number} on {snapshot}")),
        ),
        (EventKind::PatchApplied | EventKind::PatchFailed, Some(number)) => Some(
            sandbox.map_or_else(|| number.to_string(), |sandbox| format!("{number} on {sandbox}")),
        ),
        (kind, _) if kind.is_of_snapshot() => match (snapshot, sandbox) {
            (Some(snapshot), Some(sandbox)) => Some(format!("{snapshot} of {sandbox}")),
            (snapshot, sandbox) => snapshot.or(sandbox),
        },
        _ => sandbox,
    }
}

/// An event's glyph and how it is meant.
pub(crate) fn event_glyph(kind: &EventKind) -> (char, Role) {
    match kind {
        EventKind::SandboxReady
        | EventKind::SandboxWoken
        | EventKind::SandboxRecreated
        | EventKind::SandboxRestored
        | EventKind::HostUp
        | EventKind::SnapshotReady
        | EventKind::PatchApplied => ('✓', Role::Good),
        EventKind::SandboxFailed
        | EventKind::HostDown
        | EventKind::SnapshotFailed
        | EventKind::PatchFailed
        | EventKind::HostChanged => ('✗', Role::Bad),
        EventKind::SandboxLost | EventKind::SandboxExpiring | EventKind::CreditsShortfall => {
            ('⚠', Role::Warn)
        }
        EventKind::SandboxRequested
        | EventKind::SandboxProvisioning
        | EventKind::SandboxDestroying => ('◐', Role::Busy),
        _ => ('·', Role::Dim),
    }
}
