//! Words for events, the same wherever one is shown.

use super::Role;
use crate::domain::event::{Event, EventKind};
use crate::domain::text::clean_line;

/// An event in a sentence about something of this name, with who caused it where that is not this operator.
pub fn event_sentence(event: &Event, name: Option<&str>, me: &str) -> String {
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
    let mut text = verb(&event.kind);
    if let Some(subject) = subject(event, name) {
        text = format!("{text} {subject}");
    }
    let labels = event.label_changes();
    if !labels.is_empty() {
        text = format!("{text}  {}", labels.join(" "));
    }
    particulars(event, text, name)
}

/// What became of a host.
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
pub(super) fn event_words(event: &Event) -> String {
    let mut text = verb(&event.kind);
    if event.kind.is_of_patch()
        && let Some(subject) = subject(event, None)
    {
        text = format!("{text} {subject}");
    }
    clean_line(&format!("{}  {}", particulars(event, text, None), event.actor), 400)
}

pub(super) fn verb(kind: &EventKind) -> String {
    let verb = kind.as_str();
    verb.strip_prefix("sandbox.").unwrap_or(verb).replace('.', " ")
}

fn particulars(event: &Event, mut text: String, name: Option<&str>) -> String {
    for key in ["name", "host", "profile", "reason", "message"] {
        if let Some(value) = event.text(key).filter(|value| Some(*value) != name) {
            text = format!("{text}  {}", value.strip_prefix("profile.").unwrap_or(value));
        }
    }
    text
}

/// What an event is about: a snapshot and its sandbox, a patch and where it is or ran, or a sandbox.
fn subject(event: &Event, name: Option<&str>) -> Option<String> {
    let snapshot = event.snapshot_name().or(event.snapshot_id()).map(str::to_owned);
    let id = event.sandbox_id.as_ref().map(ToString::to_string);
    let sandbox = name.map(str::to_owned).or(id);
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
pub(super) fn event_glyph(kind: &EventKind) -> (char, Role) {
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
        EventKind::SandboxSleeping
        | EventKind::SandboxAdopted
        | EventKind::SandboxExtended
        | EventKind::SandboxLabelled
        | EventKind::SandboxDestroyed
        | EventKind::SandboxForgotten
        | EventKind::SnapshotCopied
        | EventKind::SnapshotDeleted
        | EventKind::PatchAdded
        | EventKind::PatchRemoved
        | EventKind::CreditsHeld
        | EventKind::CreditsCharged
        | EventKind::CreditsReleased
        | EventKind::CreditsGranted
        | EventKind::ReapPlanned
        | EventKind::ReapApplied
        | EventKind::Other(_) => ('·', Role::Dim),
    }
}
