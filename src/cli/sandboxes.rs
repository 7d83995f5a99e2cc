//! `list` and `get`.

use super::args::ListArgs;
use super::lineage::{self, SandboxDetail};
use super::output::{Context, Outcome};
use super::{document, table, values};
use crate::client::ListQuery;
use crate::domain::SandboxRecord;
use crate::present::{Document, Present, sandbox};

pub(super) async fn list(context: &mut Context<'_>, args: &ListArgs) -> Outcome {
    let query = ListQuery {
        states: args.states.clone(),
        host: args.host.clone(),
        profile: args.profile.clone(),
        labels: values::map_of("--label", args.labels.clone())?,
        all: args.all,
    };
    let everything = query == ListQuery::default();
    let records = context.client.list(query).await?;
    if context.options.json {
        context.document(&records.iter().map(|record| &**record).collect::<Vec<_>>())?;
    } else if records.is_empty() && everything {
        context.remark("no sandboxes; create one: sandboxer create --profile sandbox-canary");
    } else if records.is_empty() {
        context.remark("no sandbox matches");
    } else {
        let records: Vec<&SandboxRecord> = records.iter().map(|record| &**record).collect();
        let mut columns = vec![
            sandbox::ID,
            sandbox::NAME,
            sandbox::PROFILE,
            sandbox::HOST,
            sandbox::STATE,
            sandbox::AGE,
            sandbox::TTL,
        ];
        columns.extend(records.iter().any(|it| it.cost_usd.is_some()).then_some(sandbox::COST));
        columns.push(sandbox::WHAT_IS);
        table::print(context, &columns, records, sandbox::role)?;
    }
    Ok(0)
}

pub(super) async fn get(context: &mut Context<'_>, reference: &str) -> Outcome {
    let record = context.client.get(reference).await?;
    let found = context.client.lineage(record.id.as_str()).await;
    if context.options.json {
        let (lineage, unread) = match found {
            Ok(lineage) => (Some(lineage), None),
            Err(problem) => (None, Some(problem)),
        };
        context.document(&SandboxDetail { record, lineage, unread })?;
        return Ok(0);
    }
    let present = context.present();
    let mut document = Document::default();
    summary(&mut document, &record, present);
    let told = match found {
        Ok(found) => lineage::tell(context.client, &mut document, &record, &found, present).await,
        Err(problem) => Err(problem),
    };
    if let Err(problem) = told {
        context.remark(&lineage::unread(&problem));
    }
    sandbox::settings(&mut document, &record, present);
    document::print(context, &document)?;
    Ok(0)
}

/// Lines of a record on the sandbox itself: what it is, how it is, how it is reached, what failed and what is left.
fn summary(document: &mut Document, record: &SandboxRecord, present: Present<'_>) {
    sandbox::identity(document, record, present);
    sandbox::overview(document, record, present);
    sandbox::reach(document, record);
    sandbox::rewrites(document, record);
    sandbox::evidence(document, record, record.message.as_deref().as_slice());
}

/// Prints one record, whole as JSON or in short.
pub(super) fn show(context: &mut Context<'_>, found: &SandboxRecord) -> Outcome {
    document::reply(context, found, |document, present| {
        summary(document, found, present);
        sandbox::credits(document, found);
    })
}
