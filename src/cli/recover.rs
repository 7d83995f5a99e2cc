//! `recover`: brings into order what killed processes left.

use super::bulk::{BulkItem, complain, end};
use super::interrupt::{Running, with_progress};
use super::output::{CliError, Context, Outcome};
use super::table;
use crate::client::{Error, Recovered};
use crate::domain::Code;
use crate::present::Role;
use crate::present::upkeep::RECOVERED;

pub(super) async fn recover(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let running = Running::new(client);
    let work = running.or_left(
        client.recover(),
        "left before everything was in order",
        "sandboxer recover goes on with the rest",
    );
    let things = Box::pin(with_progress(context, &running, work)).await??;
    let items: Vec<_> = things.iter().map(item).collect();
    let printed = print(context, &things, &items);
    end(context, &items, printed)
}

fn item(thing: &Recovered) -> BulkItem {
    let ended = match &thing.error {
        _ if thing.ok => Ok(()),
        Some(error) => Err(error.clone()),
        None => Err(Error::new(Code::OperationFailed, thing.message.clone())),
    };
    BulkItem::new(thing.id.as_str(), ended)
}

fn print(
    context: &mut Context<'_>,
    things: &[Recovered],
    items: &[BulkItem],
) -> Result<(), CliError> {
    if context.options.json {
        return context.document(things);
    }
    if things.is_empty() {
        context.remark("nothing was left behind");
        return Ok(());
    }
    let role = |thing: &Recovered| if thing.ok { Role::Plain } else { Role::Bad };
    table::print(context, RECOVERED, things, role)?;
    for item in items {
        complain(context, item, false);
    }
    Ok(())
}
