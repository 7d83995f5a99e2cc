//! `recover`: brings into order what killed processes left.

use super::bulk::{BulkItem, report};
use super::interrupt::awaited;
use super::output::{Context, Outcome};
use super::table;
use crate::client::{Error, Recovered};
use crate::domain::Code;
use crate::present::Role;
use crate::present::upkeep::RECOVERED;

pub(super) async fn recover(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let (left, rest) =
        ("left before everything was in order", "sandboxer recover goes on with the rest");
    let work =
        awaited(context, async |running| running.or_left(client.recover(), left, rest).await);
    let things = work.await??;
    let items: Vec<_> = things.iter().map(item).collect();
    report(context, &things, &items, |context| {
        if things.is_empty() {
            context.remark("nothing was left behind");
            return Ok(());
        }
        let role = |thing: &Recovered| if thing.ok { Role::Plain } else { Role::Bad };
        table::print(context, RECOVERED, &things, role)
    })
}

fn item(thing: &Recovered) -> BulkItem {
    let unsaid = || Error::new(Code::OperationFailed, thing.message.clone());
    let error = (!thing.ok).then(|| thing.error.clone().unwrap_or_else(unsaid));
    BulkItem::new(thing.id.as_str(), error)
}
