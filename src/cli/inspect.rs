//! `inspect host`: what hosts are, what they have left, and what of sandboxes is on them.

use futures_util::stream::{self, StreamExt as _};

use super::hosts::{self, AT_ONCE};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome};
use super::{document, table};
use crate::client::Error;
use crate::domain::SandboxId;
use crate::domain::host_view::HostView;
use crate::present::host::{FOUND, FoundRow, figures, inventory, placement, role, said};
use crate::present::{Document, Role, age_of};

/// Inspects hosts. Each is shown when it has answered: who is late holds nobody up. The status is that of `hosts check`.
pub(super) async fn host(context: &mut Context<'_>, names: &[String]) -> Outcome {
    let client = context.client;
    let names = until_interrupted(context, hosts::choice::wanted(client, names)).await??;
    let inspected = stream::iter(names).map(async |name| {
        let view = client.inspect_host(&name).await;
        (name, view)
    });
    let mut inspected = std::pin::pin!(inspected.buffer_unordered(AT_ONCE));
    let mut all: Vec<(String, Result<HostView, Error>)> = Vec::new();
    while let Some(one) = until_interrupted(context, inspected.next()).await? {
        if let (Ok(view), false) = (&one.1, context.options.json) {
            if all.iter().any(|(_, shown)| shown.is_ok()) {
                context.line("")?;
            }
            show(context, view)?;
        }
        all.push(one);
    }
    if context.options.json {
        // By name, whoever answered first.
        all.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    }
    hosts::conclude(context, all, |context, views| {
        if context.options.json { context.document(views) } else { Ok(()) }
    })
}

fn show(context: &mut Context<'_>, view: &HostView) -> Result<(), CliError> {
    let now = context.now();
    let mut document = Document::default();
    let seen = view.checked_at.map(|at| format!(", seen {} ago", age_of(at, now)));
    let latency = view.latency_ms.map(|ms| format!(", {ms}ms"));
    let (latency, seen) = (latency.unwrap_or_default(), seen.unwrap_or_default());
    document.plain("host", &view.name);
    document.pair("state", role(view), format!("{}{latency}{seen}", view.state));
    document.maybe("message", Role::Plain, view.message.as_deref());
    document.maybe("hint", Role::Key, view.hint.as_deref());
    placement(&mut document, view);
    if view.sample.is_some() || view.facts.is_some() {
        figures(&mut document, view, None, now);
    }
    if let Some(facts) = &view.facts {
        said(&mut document, facts, now);
    }
    let found = view.facts.as_ref().and_then(|facts| facts.inventory.as_ref());
    if let Some(found) = found {
        inventory(&mut document, found, now);
    }
    document::print(context, &document)?;
    let sampled = view.sample.as_ref().map(|sample| &sample.sandboxes);
    let rows = found.iter().flat_map(|found| &found.sandboxes).map(|item| {
        let id = SandboxId::new(item.sandbox_id.as_str());
        let used = sampled.and_then(|sandboxes| sandboxes.get(&id));
        (item.clone(), used.map(|used| used.memory_bytes))
    });
    let rows: Vec<FoundRow> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    table::print(context, FOUND, &rows, |(item, _)| {
        if item.expires_at.is_some_and(|at| at <= now) { Role::Bad } else { Role::Plain }
    })
}
