//! `events`: what happened, and with `--follow` what happens.

use futures_util::StreamExt as _;

use super::args::EventsArgs;
use super::interrupt::INTERRUPTED;
use super::output::{CliError, Context, Outcome};
use super::values::Since;
use crate::client::{EventQuery, Update};
use crate::domain::{Actor, Event};
use crate::present::event_particulars;

/// How often it is asked whether anybody still reads.
const LOOK: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) async fn events(context: &mut Context<'_>, args: &EventsArgs) -> Outcome {
    let query = query(context, args).await?;
    if args.follow {
        return follow(context, query, args.since.is_some()).await;
    }
    let events = context.client.events(query).await?;
    context.reply(&events, |context| {
        if events.is_empty() {
            context.remark("no events");
        }
        events.iter().try_for_each(|event| show(context, event))
    })
}

async fn query(context: &Context<'_>, args: &EventsArgs) -> Result<EventQuery, CliError> {
    let sandbox = match &args.sandbox {
        Some(reference) => Some(context.client.get(reference).await?.id),
        None => None,
    };
    let actor = match &context.global.actor {
        Some(text) => Some(Actor::parse(text)?.to_string()),
        None => None,
    };
    let (after_seq, since) = match args.since {
        None => (None, None),
        Some(Since::Seq(seq)) => (Some(seq), None),
        Some(Since::Time(time)) => (None, Some(time)),
        Some(Since::Ago(ago)) => (None, Some(context.now().minus_seconds(ago.get()))),
    };
    Ok(EventQuery { after_seq, since, sandbox, kinds: args.kinds.clone(), actor, newest: None })
}

/// Prints what is kept (only with `--since`), then what comes. Ends when nobody reads stdout, or with Ctrl-C.
async fn follow(context: &mut Context<'_>, mut query: EventQuery, kept: bool) -> Outcome {
    // Listening begins before the kept ones are read: what happens in between is then in both, and the numbers
    // tell it apart.
    let mut updates = context.client.subscribe().await?;
    if kept {
        catch_up(context, &mut query).await?;
    }
    let mut look = tokio::time::interval(LOOK);
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            // Nothing may happen for hours: a reader that went away must not be waited for so long.
            _ = look.tick() => if (context.io.reader_left)() { return Ok(0) } else { continue },
            Some(()) = context.io.interrupts.next() => return Ok(INTERRUPTED),
        };
        let Some(update) = update else { return Ok(0) };
        if let Update::Event(event) = &update
            && passes(&query, event)
        {
            query.after_seq = Some(event.seq);
            show_one(context, event)?;
        }
        // Without a number that was seen, everything ever kept would come.
        if matches!(update, Update::Resync) && (query.after_seq.is_some() || query.since.is_some())
        {
            catch_up(context, &mut query).await?;
        }
    }
}

async fn catch_up(context: &mut Context<'_>, query: &mut EventQuery) -> Result<(), CliError> {
    for event in context.client.events(query.clone()).await? {
        query.after_seq = Some(event.seq);
        show_one(context, &event)?;
    }
    Ok(())
}

fn passes(query: &EventQuery, event: &Event) -> bool {
    query.after_seq.is_none_or(|seq| event.seq > seq)
        && query.since.is_none_or(|since| event.time >= since)
        && query.sandbox.as_ref().is_none_or(|id| event.sandbox_id.as_ref() == Some(id))
        && (query.kinds.is_empty() || query.kinds.contains(&event.kind))
        && query.actor.as_ref().is_none_or(|actor| event.actor.to_string() == *actor)
}

/// Event as it comes, written out at once.
fn show_one(context: &mut Context<'_>, event: &Event) -> Result<(), CliError> {
    if context.options.json {
        return context.json_line(event);
    }
    show(context, event)?;
    Ok(context.io.stdout.flush()?)
}

/// A line for a person. Fixed columns, since with `--follow` nobody knows the widest.
fn show(context: &mut Context<'_>, event: &Event) -> Result<(), CliError> {
    let words = event_particulars(event, event.text("reason").unwrap_or_default());
    let sandbox = event.sandbox_id.as_ref().map_or("-", |id| id.as_str());
    let text = format!(
        "{}  {:>6}  {:<20}  {sandbox:<8}  {}  {words}",
        event.time, event.seq, event.kind, event.actor
    );
    let line = context.options.clean(text.trim_end(), context.io.width.unwrap_or(1000));
    context.line(&line)
}
