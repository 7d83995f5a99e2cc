//! `list` and `get`.

use super::args::ListArgs;
use super::lineage::{self, SandboxDetail};
use super::output::{Face, Outcome, Stop};
use super::{record, table, values};
use crate::client::ListQuery;
use crate::domain::SandboxRecord;

pub(super) async fn list(face: &mut Face<'_>, args: &ListArgs) -> Outcome {
    let query = ListQuery {
        states: args.states.clone(),
        host: args.host.clone(),
        profile: args.profile.clone(),
        labels: values::map_of("--label", args.labels.clone())?,
        all: args.all,
    };
    // For a program that reads it the records go from the store to the pipe as they are; a person gets them indented.
    if face.look.json && !face.io.terminals.stdout {
        let records = face.client.list_json(query).await?;
        face.array(&records)?;
        return Ok(0);
    }
    let everything = query == ListQuery::default();
    let records = face.client.list(query).await?;
    if face.look.json {
        face.document(&records.iter().map(|record| &**record).collect::<Vec<_>>())?;
    } else if records.is_empty() && everything {
        face.remark("no sandboxes; create one: sandboxer create --profile sandbox-canary");
    } else if records.is_empty() {
        face.remark("no sandbox matches");
    } else {
        let now = face.now();
        let rows: Vec<_> = records.iter().map(|one| record::row(one, now)).collect();
        table::print(face, &["ID", "NAME", "STATE!", "PROFILE", "HOST", "AGE!", "LEFT!"], &rows)?;
    }
    Ok(0)
}

pub(super) async fn get(face: &mut Face<'_>, reference: &str) -> Outcome {
    let record = face.client.get(reference).await?;
    let lineage = face.client.lineage(record.id.as_str()).await;
    if face.look.json {
        let (lineage, unread) = match lineage {
            Ok(lineage) => (Some(lineage), None),
            Err(problem) => (None, Some(problem)),
        };
        face.document(&SandboxDetail { record, lineage, unread })?;
        return Ok(0);
    }
    let mut fields = record::fields(&record, face.now());
    let further = match lineage {
        Ok(lineage) => lineage::fields(face.client, &record, &lineage).await,
        Err(problem) => Err(problem),
    };
    match further {
        Ok(further) => fields.extend(further),
        Err(problem) => face.remark(&face.look.clean(&lineage::unread(&problem), 1000)),
    }
    record::block(face, &fields)?;
    for line in record::evidence(&record, face.look) {
        face.line(&line)?;
    }
    // Where the patch was what failed, that is the evidence.
    let stuck = if record.failure.is_none() {
        record::standing_in_the_way(face.client, &record).await
    } else {
        Vec::new()
    };
    let look = face.look;
    for line in stuck.iter().flat_map(|applied| record::patch_output(applied, look)) {
        face.line(&line)?;
    }
    Ok(0)
}

/// Prints one record, whole as JSON or as a block.
pub(super) fn show(face: &mut Face<'_>, found: &SandboxRecord) -> Result<(), Stop> {
    if face.look.json { face.document(found) } else { record::print(face, found) }
}
