//! `adopt`: records of what hosts have and no record knows; and `import`: what the earlier Python tool kept.

use super::args::{AdoptArgs, ImportEarlierArgs};
use super::bulk::{BulkItem, report};
use super::confirm::{Question, allow};
use super::interrupt::awaited;
use super::output::{Context, Outcome};
use super::table;
use crate::client::{AdoptRequest, Adopted, ImportRequest};
use crate::present::question;
use crate::present::upkeep::{ADOPTED, adopted};

pub(super) async fn adopt(context: &mut Context<'_>, args: &AdoptArgs) -> Outcome {
    let request = AdoptRequest {
        hosts: args.hosts.clone(),
        owner: args.owner.clone(),
        dry_run: args.dry_run,
    };
    if let Some(id) = args.owner.as_deref().filter(|_| !args.dry_run) {
        let question = Question {
            verb: "take over",
            note: Some(
                "What bears this id becomes yours. The console that it came from removes nothing any more where a host \
                 could be told."
                    .to_owned(),
            ),
            about: question::owner(id),
            yes: args.yes,
            needs_yes: Some("--owner".to_owned()),
        };
        allow(context, &question).await?;
    }
    let client = context.client;
    let (left, rest) =
        ("left before everything was adopted", "sandboxer adopt goes on with the rest");
    let work =
        awaited(context, async |running| running.or_left(client.adopt(request), left, rest).await);
    let things = work.await??;
    let nothing = if args.dry_run {
        "nothing is to be adopted"
    } else {
        "nothing is to be adopted; --dry-run also shows what other owners have on the hosts"
    };
    answer(context, &things, nothing)
}

pub(super) async fn import(context: &mut Context<'_>, args: &ImportEarlierArgs) -> Outcome {
    let things = context.client.import(ImportRequest { dry_run: args.dry_run }).await?;
    answer(context, &things, "nothing of the earlier tool is in this data directory")
}

fn answer(context: &mut Context<'_>, things: &[Adopted], nothing: &str) -> Outcome {
    let item = |thing: &Adopted| BulkItem::new(thing.id.as_str(), thing.error.clone());
    let items: Vec<BulkItem> = things.iter().map(item).collect();
    report(context, things, &items, |context| {
        if things.is_empty() {
            context.remark(nothing);
            return Ok(());
        }
        table::print(context, ADOPTED, things, |thing| adopted(thing).0)
    })
}
