//! `list` and `get`.

use super::args::ListArgs;
use super::lineage::{self, SandboxDetail};
use super::output::{CliError, Context, Outcome};
use super::{record, table, values};
use crate::client::ListQuery;
use crate::domain::{SandboxRecord, figures};

pub(super) async fn list(context: &mut Context<'_>, args: &ListArgs) -> Outcome {
    let query = ListQuery {
        states: args.states.clone(),
        host: args.host.clone(),
        profile: args.profile.clone(),
        labels: values::map_of("--label", args.labels.clone())?,
        all: args.all,
    };
    // For a program that reads it the records go from the store to the pipe as they are; a person gets them indented.
    if context.options.json && !context.io.terminals.stdout {
        let records = context.client.list_json(query).await?;
        context.array(&records)?;
        return Ok(0);
    }
    let everything = query == ListQuery::default();
    let records = context.client.list(query).await?;
    if context.options.json {
        context.document(&records.iter().map(|record| &**record).collect::<Vec<_>>())?;
    } else if records.is_empty() && everything {
        context.remark("no sandboxes; create one: sandboxer create --profile sandbox-canary");
    } else if records.is_empty() {
        context.remark("no sandbox matches");
    } else {
        let now = context.now();
        let mut rows: Vec<_> = records.iter().map(|one| record::row(one, now)).collect();
        let mut titles = vec!["ID", "NAME", "STATE!", "PROFILE", "HOST", "AGE!", "TTL!"];
        if records.iter().any(|one| one.cost_usd.is_some()) {
            titles.push("COST!");
            for (row, one) in rows.iter_mut().zip(&records) {
                row.cells.push(one.cost_usd.map_or_else(|| "-".to_owned(), figures::usd));
            }
        }
        table::print(context, &titles, &rows)?;
    }
    Ok(0)
}

pub(super) async fn get(context: &mut Context<'_>, reference: &str) -> Outcome {
    let record = context.client.get(reference).await?;
    let lineage = context.client.lineage(record.id.as_str()).await;
    if context.options.json {
        let (lineage, unread) = match lineage {
            Ok(lineage) => (Some(lineage), None),
            Err(problem) => (None, Some(problem)),
        };
        context.document(&SandboxDetail { record, lineage, unread })?;
        return Ok(0);
    }
    let mut fields = record::fields(&record, context.now());
    let further = match lineage {
        Ok(lineage) => lineage::fields(context.client, &record, &lineage).await,
        Err(problem) => Err(problem),
    };
    match further {
        Ok(further) => fields.extend(further),
        Err(problem) => context.remark(&context.options.clean(&lineage::unread(&problem), 1000)),
    }
    record::block(context, &fields)?;
    for line in record::evidence(&record, context.options) {
        context.line(&line)?;
    }
    // Where the patch was what failed, that is the evidence.
    let stuck = if record.failure.is_none() {
        record::standing_in_the_way(context.client, &record).await
    } else {
        Vec::new()
    };
    let options = context.options;
    for line in stuck.iter().flat_map(|applied| record::patch_output(applied, options)) {
        context.line(&line)?;
    }
    Ok(0)
}

/// Prints one record, whole as JSON or as a block.
pub(super) fn show(context: &mut Context<'_>, found: &SandboxRecord) -> Result<(), CliError> {
    if context.options.json { context.document(found) } else { record::print(context, found) }
}
