//! `recover`: brings into order what killed processes left.

use super::bulk::{BulkItem, complain, end};
use super::interrupt::{Running, attend};
use super::output::{Face, Outcome, Stop, Tone};
use super::table::{self, Line};
use crate::client::{Error, Recovered};
use crate::domain::Code;

pub(super) async fn recover(face: &mut Face<'_>) -> Outcome {
    let client = face.client;
    let running = Running::new(client);
    let work = async {
        tokio::select! {
            done = client.recover() => done,
            // What is half done is what the next `recover` finds; nothing has to be rolled back.
            () = running.asked_to_stop() => Err(Error::new(Code::Cancelled, "left before everything was in order")
                .hint("sandboxer recover goes on with the rest")),
        }
    };
    let things = Box::pin(attend(face, &running, work)).await??;
    let items: Vec<_> = things.iter().map(item).collect();
    let printed = print(face, &things, &items);
    end(face, &items, printed)
}

fn item(thing: &Recovered) -> BulkItem {
    let ended = match &thing.error {
        _ if thing.ok => Ok(()),
        Some(error) => Err(error.clone()),
        None => Err(Error::new(Code::OperationFailed, thing.message.clone())),
    };
    BulkItem::new(thing.id.as_str(), ended)
}

fn print(face: &mut Face<'_>, things: &[Recovered], items: &[BulkItem]) -> Result<(), Stop> {
    if face.look.json {
        return face.document(things);
    }
    if things.is_empty() {
        face.remark("nothing was left behind");
        return Ok(());
    }
    let rows: Vec<_> = things.iter().map(row).collect();
    table::print(face, &["ID", "STATE!", "WAS", "DONE"], &rows)?;
    for item in items {
        complain(face, item, false);
    }
    Ok(())
}

fn row(thing: &Recovered) -> Line {
    let tone = if thing.ok { Tone::Plain } else { Tone::Bad };
    let state = thing.state.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    Line { tone, cells: vec![thing.id.clone(), state, thing.was.clone(), thing.message.clone()] }
}
