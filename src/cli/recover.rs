//! `recover`: brings into order what killed processes left.

use super::bulk::{BulkItem, complain, end};
use super::interrupt::{Running, with_progress};
use super::output::{CliError, Context, Outcome, Tone};
use super::table::{self, Line};
use crate::client::{Error, Recovered};
use crate::domain::Code;

pub(super) async fn recover(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let running = Running::new(client);
    let work = async {
        tokio::select! {
            done = client.recover() => done,
            // What is half done is what the next `recover` finds; nothing has to be rolled back.
            () = running.asked_to_stop() => Err(Error::new(Code::Cancelled, "left before everything was in order")
                .hint("sandboxer recover goes on with the rest")),
        }
    };
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
    let rows: Vec<_> = things.iter().map(row).collect();
    table::print(context, &["ID", "STATE!", "WAS", "DONE"], &rows)?;
    for item in items {
        complain(context, item, false);
    }
    Ok(())
}

fn row(thing: &Recovered) -> Line {
    let tone = if thing.ok { Tone::Plain } else { Tone::Bad };
    let state = thing.state.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    Line { tone, cells: vec![thing.id.clone(), state, thing.was.clone(), thing.message.clone()] }
}
