//! `credits`: the balance, grants, the entries of the ledger.

use super::args::{CreditsCommand, GrantArgs};
use super::output::{Context, Outcome};
use super::{document, table};
use crate::client::GrantRequest;
use crate::domain::credit::EntryKind;
use crate::present::Role;
use crate::present::credit::{AMOUNT, BALANCE, BY, KIND, NOTE, SANDBOX, TIME, sums};

pub(super) async fn credits(
    context: &mut Context<'_>,
    command: Option<&CreditsCommand>,
) -> Outcome {
    let credits = match command {
        None | Some(CreditsCommand::Balance) => context.client.credits().await?,
        Some(CreditsCommand::Grant(GrantArgs { usd, note })) => {
            let request = GrantRequest { usd: *usd, note: note.clone() };
            context.client.grant_credits(request).await?
        }
        Some(CreditsCommand::History) => return history(context).await,
    };
    document::reply(context, &credits, |document, _| sums(document, &credits))
}

async fn history(context: &mut Context<'_>) -> Outcome {
    let entries = context.client.credit_history().await?;
    let nothing = "the ledger has no entries; `sandboxer credits grant USD` adds credits";
    let columns = [TIME, KIND, AMOUNT, BALANCE, SANDBOX, BY, NOTE];
    table::reply(context, &entries, nothing, &columns, |entry| {
        if entry.entry.kind == EntryKind::Shortfall { Role::Bad } else { Role::Plain }
    })
}
