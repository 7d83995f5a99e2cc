//! A host, as text to be read: how it stands and why, what it says of itself, what is on it.

use std::collections::BTreeMap;

use super::hosts::{Host, Hosts, Standing, standing_glyph};
use super::sandboxes::Sandboxes;
use super::stale::Stale;
use super::text_block::TextBlock;
use crate::client::StaleItem;
use crate::domain::Time;
use crate::domain::facts::{Certificate, Inventory, InventoryItem};
use crate::domain::name::HostName;
use crate::domain::raw_json::RawJson;
use crate::present::host::{owner, things};
use crate::present::stale::{is_counted, stale_sentence};
use crate::present::{self, Document, Role, age_of, state_glyph, state_role};

/// The overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDetails {
    /// Which host.
    pub name: HostName,
    /// The first line on the screen.
    pub offset: usize,
}

impl HostDetails {
    /// Opens a host.
    pub fn new(name: HostName) -> Self {
        Self { name, offset: 0 }
    }

    /// Facts on it as lines of a width.
    pub fn block(
        &self,
        width: usize,
        now: Time,
        (hosts, sandboxes, judged): (&Hosts, &Sandboxes, &Stale),
    ) -> TextBlock {
        let mut document = Document::default();
        let Some(host) = hosts.get(self.name.as_str()) else {
            document.text(Role::Warn, 0, "it is not in the configuration: nobody asks it");
            recorded(&mut document, &self.name, sandboxes, None, now);
            stale(&mut document, judged.on_host(self.name.as_str()));
            return TextBlock::of(&document, width);
        };
        standing(&mut document, host, now);
        let view = &host.view;
        present::host::placement(&mut document, view);
        present::host::figures(&mut document, view, host.history.last(), now);
        let inventory = view.facts.as_ref().and_then(|facts| facts.inventory.as_ref());
        recorded(&mut document, &self.name, sandboxes, inventory, now);
        stale(&mut document, judged.on_host(self.name.as_str()));
        if let Some(found) = inventory {
            present::host::inventory(&mut document, found, now);
        }
        if let Some(facts) = &view.facts {
            present::host::said(&mut document, facts, now);
        }
        if let Some(certificate) = newest_certificate(&self.name, sandboxes) {
            present::host::certified(&mut document, &certificate, now);
        } else {
            document.heading("Certificate of the compose runtime");
            document.text(Role::Dim, 2, "none yet: a canary on this host makes one");
        }
        TextBlock::of(&document, width)
    }
}

/// How a host stands; of one that is down ssh's words, what to do, and when it is tried next.
pub(super) fn standing(document: &mut Document, host: &Host, now: Time) {
    let since = |time: Option<Time>| {
        time.map(|time| format!(" for {}", age_of(time, now))).unwrap_or_default()
    };
    let latency = host.view.latency_ms.map(|ms| format!(", {ms}ms")).unwrap_or_default();
    let state = match host.standing(now) {
        Standing::Up => format!("up{latency}"),
        Standing::Slow => format!("slow{latency}"),
        Standing::Connecting => format!("connecting{}", since(host.asked)),
        Standing::Forbidden => "forbidden by the configuration".to_owned(),
        Standing::Down => format!("down{}", since(host.down_since)),
    };
    document.signed("state", standing_glyph(host.standing(now)), state);
    document.maybe("says", Role::Plain, host.view.message.as_deref());
    document.maybe("hint", Role::Key, host.view.hint.as_deref());
    if host.standing(now) == Standing::Down {
        let next = match (host.asked, host.next) {
            (Some(_), _) => "being tried now".to_owned(),
            (None, Some(next)) if next > now => format!("in {}", age_of(now, next)),
            (None, _) => "in a moment".to_owned(),
        };
        document.pair("next try", Role::Dim, next);
        let last = host.answered.map(|at| format!("{} ago", age_of(at, now)));
        let last = last.unwrap_or_else(|| "not since this console started".to_owned());
        document.pair("answered", Role::Dim, last);
    }
    document.maybe(
        "ssh",
        Role::Code,
        host.view.ssh.as_deref().map(|target| format!("ssh {target}")),
    );
    let error = host
        .services_error
        .as_ref()
        .map(|problem| format!("cannot be asked for: {}", problem.message));
    document.maybe("services", Role::Warn, error);
}

/// Sandboxes of ours that the records place there, and what else the host has of sandboxes.
fn recorded(
    document: &mut Document,
    host: &HostName,
    sandboxes: &Sandboxes,
    inventory: Option<&Inventory>,
    now: Time,
) {
    let ours = sandboxes.all().filter(|entry| entry.record.host.same(host.as_str()));
    let mut there: BTreeMap<&str, &InventoryItem> = inventory
        .into_iter()
        .flat_map(|found| &found.sandboxes)
        .map(|item| (item.sandbox_id.as_str(), item))
        .collect();
    document.heading("Sandboxes on it");
    let before = document.pieces().len();
    for entry in ours {
        let record = &entry.record;
        let name = record.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let old = age_of(record.created_at, now);
        let found = match (there.remove(record.id.as_str()), inventory) {
            (Some(item), _) => format!("  {}", things(item)),
            (None, Some(_)) => "  nothing of it seen there".to_owned(),
            (None, None) => String::new(),
        };
        let words = format!("{}{name}  {}  {old} old", record.id, record.state);
        let sign = (state_glyph(&record.state), state_role(&record.state));
        document.line(sign, [(Role::Plain, words), (Role::Dim, found)]);
    }
    for (id, item) in there {
        let owner = owner(item.owner.as_deref());
        let old = item.created_at.map(|at| format!("  {} old", age_of(at, now)));
        let old = old.unwrap_or_default();
        let found = (Role::Dim, format!("  {}", things(item)));
        document.line(('·', Role::Dim), [(Role::Plain, format!("{id}  of {owner}{old}")), found]);
    }
    if document.pieces().len() == before {
        let text = if inventory.is_some() { "none" } else { "none by our records" };
        document.text(Role::Dim, 2, text);
    }
}

/// Stale things on the host, recorded or not, and what is never reaped, each with its reason.
fn stale<'a>(document: &mut Document, items: impl Iterator<Item = &'a StaleItem>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    document.heading("Stale on it");
    for item in items {
        let role = if is_counted(item) { Role::Warn } else { Role::Dim };
        let name = item.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let words = format!("{}{name}  {}", item.id(), item.class);
        document.line(('◷', role), [(Role::Plain, words)]);
        document.text(Role::Dim, 4, stale_sentence(item));
    }
}

/// The newest certificate that a canary on this host brought back.
fn newest_certificate(host: &HostName, sandboxes: &Sandboxes) -> Option<Certificate> {
    let there = sandboxes.all().filter(|entry| entry.record.host.same(host.as_str()));
    there
        .filter_map(|entry| entry.record.certificate.as_ref().and_then(RawJson::read))
        .max_by_key(|certificate| certificate.at)
}
