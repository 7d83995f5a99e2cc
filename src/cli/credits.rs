//! `credits`: the balance, grants, the entries of the ledger.

use super::args::{CreditsCommand, GrantArgs};
use super::output::{Context, Outcome, Tone};
use super::table::{self, Line};
use super::{CliError, record};
use crate::client::{Credits, GrantRequest, HistoryEntry};
use crate::domain::credit::EntryKind;
use crate::domain::figures::age;

pub(super) async fn credits(
    context: &mut Context<'_>,
    command: Option<&CreditsCommand>,
) -> Outcome {
    match command {
        None | Some(CreditsCommand::Balance) => {
            let credits = context.client.credits().await?;
            show(context, &credits)?;
        }
        Some(CreditsCommand::Grant(GrantArgs { usd, note })) => {
            let request = GrantRequest { usd: *usd, note: note.clone() };
            let credits = context.client.grant_credits(request).await?;
            show(context, &credits)?;
        }
        Some(CreditsCommand::History) => history(context).await?,
    }
    Ok(0)
}

fn show(context: &mut Context<'_>, credits: &Credits) -> Result<(), CliError> {
    if context.options.json {
        return context.document(credits);
    }
    let burn = format!("{} per hour", credits.burn_usd_per_h);
    let mut fields = vec![
        ("balance", credits.balance_usd.to_string()),
        ("held", credits.held_usd.to_string()),
        ("burn", burn),
    ];
    fields.extend(credits.lasts().map(|lasts| ("lasts", age(lasts.as_secs()))));
    record::block(context, &fields)
}

async fn history(context: &mut Context<'_>) -> Result<(), CliError> {
    let entries = context.client.credit_history().await?;
    if context.options.json {
        return context.document(&entries);
    }
    if entries.is_empty() {
        context.remark("the ledger has no entries; `sandboxer credits grant USD` adds credits");
        return Ok(());
    }
    let rows: Vec<_> = entries.iter().map(row).collect();
    table::print(context, &["TIME", "KIND!", "USD!", "BALANCE!", "SANDBOX!", "BY", "NOTE"], &rows)
}

fn row(HistoryEntry { entry, balance_usd }: &HistoryEntry) -> Line {
    let tone = if entry.kind == EntryKind::Shortfall { Tone::Bad } else { Tone::Plain };
    let cells = vec![
        entry.time.to_string(),
        entry.kind.to_string(),
        entry.usd.plain(),
        balance_usd.plain(),
        entry.sandbox_id.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        entry.actor.to_string(),
        entry.note.clone().unwrap_or_default(),
    ];
    Line { tone, cells }
}
