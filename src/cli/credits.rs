//! `credits`: the balance, grants, the entries of the ledger.

use super::args::{CreditsCommand, GrantArgs};
use super::output::{CliError, Context, Outcome};
use super::{document, table};
use crate::client::{Credits, GrantRequest};
use crate::domain::credit::EntryKind;
use crate::present::credit::{AMOUNT, BALANCE, BY, KIND, NOTE, SANDBOX, TIME, sums};
use crate::present::{Document, Role};

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
    let mut document = Document::default();
    sums(&mut document, credits);
    document::print(context, &document)
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
    table::print(context, &[TIME, KIND, AMOUNT, BALANCE, SANDBOX, BY, NOTE], &entries, |entry| {
        if entry.entry.kind == EntryKind::Shortfall { Role::Bad } else { Role::Plain }
    })
}
