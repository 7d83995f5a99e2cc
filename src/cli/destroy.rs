//! `destroy` of one or many, and `recreate`.

use std::collections::{BTreeSet, HashSet};

use super::args::{DestroyArgs, RecreateArgs};
use super::bulk::{BulkItem, Target, bulk, each, resolve};
use super::confirm::{Question, allow, needs_yes};
use super::create::make;
use super::interrupt::Running;
use super::output::{CliError, Context, Outcome};
use super::sandboxes;
use super::sleep::warn_of_patches;
use crate::client::{DestroyRequest, Error, RecreateRequest, Request};
use crate::domain::teardown::TeardownLine;
use crate::domain::{Code, SandboxRecord, State};
use crate::present::question;

pub(super) async fn destroy(context: &mut Context<'_>, args: &DestroyArgs) -> Outcome {
    let client = context.client;
    let find = async |reference: String| client.get(&reference).await;
    let targets = resolve(&args.ids, find, |record| record.id.to_string()).await;
    let asked = agree(context, args, &targets).await?;
    let ended = each(context, &targets, async |running, record: &SandboxRecord| {
        let ended = destroy_one(running, request(record, args, asked)).await;
        let forgotten = matches!(ended, Ok((State::Forgotten, _)));
        let (error, left, message) = match ended {
            Ok((_, left)) => {
                let alone = left.teardown.iter().filter_map(TeardownLine::left_alone);
                (None, alone.collect(), left.message)
            }
            Err(problem) => (Some(problem), Vec::new(), None),
        };
        let item = BulkItem::new(record.id.as_str(), error);
        (BulkItem { message, ..item }, (forgotten, left))
    });
    let (items, told): (Vec<_>, Vec<(bool, Vec<_>)>) = ended.await?.into_iter().unzip();
    let of = items.iter().zip(&told);
    let forgotten: HashSet<_> = of.filter(|(_, (is, _))| *is).map(|(item, _)| &item.id).collect();
    let options = context.options;
    let kept = items.iter().filter_map(|item| item.message.as_ref());
    let lines = told.iter().flat_map(|(_, left)| left).chain(kept);
    for line in lines.filter(|_| !options.json) {
        context.say(line)?;
    }
    bulk(
        context,
        &items,
        |item| if forgotten.contains(&item.id) { "forgotten" } else { "destroyed" },
    )
}

fn request(record: &SandboxRecord, args: &DestroyArgs, asked: bool) -> DestroyRequest {
    DestroyRequest {
        id: record.id.to_string(),
        // Only somebody who was shown the record agreed to that revision.
        revision: asked.then_some(record.revision),
        forget: args.forget,
        no_undo: args.no_undo,
        force_protected: args.force_protected,
    }
}

/// Returns `destroyed`, or `forgotten` where that was asked for, with its record.
async fn destroy_one(
    running: &Running<'_>,
    request: DestroyRequest,
) -> Result<(State, SandboxRecord), Error> {
    if let Some(problem) = running.cancelled() {
        return Err(problem);
    }
    let forget = request.forget;
    let left = running.run(Request::Destroy(request)).await?.into_sandbox()?;
    match left.state {
        State::Destroyed => Ok((State::Destroyed, left)),
        State::Forgotten if forget => Ok((State::Forgotten, left)),
        // Never report destroyed for something that nobody saw gone.
        state => {
            let message = left.message.unwrap_or_else(|| format!("it is {state}, not destroyed"));
            Err(Error::new(Code::OperationFailed, message))
        }
    }
}

async fn agree(
    context: &mut Context<'_>,
    args: &DestroyArgs,
    targets: &[Target<SandboxRecord>],
) -> Result<bool, CliError> {
    let flags = [(args.force_protected, "--force-protected"), (args.forget, "--forget")];
    let needs_yes = needs_yes(targets, flags, |one| (one.id.as_str(), one.name.as_deref()));
    // There is nothing to agree to where nothing is left.
    let known = targets.iter().filter_map(|(_, target)| target.as_ref().ok());
    let records: Vec<_> = known.filter(|one| one.state.may_be_destroyed()).collect();
    let note = args.forget.then(|| unseen(&records));
    let verb = if args.forget { "forget" } else { "destroy" };
    let about = question::sandboxes(&records, context.now());
    allow(context, &Question { verb, note, about, yes: args.yes, needs_yes }).await
}

/// Meaning of a forgotten sandbox, in a sentence.
fn unseen(records: &[&SandboxRecord]) -> String {
    let hosts: BTreeSet<_> = records.iter().map(|record| record.host.as_str()).collect();
    let hosts = hosts.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "Nobody will look at {hosts}: what is there goes on until the next contact with it, and is removed then."
    )
}

pub(super) async fn recreate(context: &mut Context<'_>, args: &RecreateArgs) -> Outcome {
    let client = context.client;
    let before = client.get(&args.id).await?;
    let about = question::sandboxes(&[&before], context.now());
    let needs_yes = Some("recreate".to_owned());
    let asked =
        allow(context, &Question { verb: "recreate", note: None, about, yes: args.yes, needs_yes })
            .await?;
    let request = RecreateRequest {
        id: before.id.to_string(),
        revision: asked.then_some(before.revision),
        no_undo: args.no_undo,
        force_protected: args.force_protected,
        patches: None,
    };
    let ready = make(context, Request::Recreate(request)).await?;
    let shown = sandboxes::show(context, &ready)?;
    warn_of_patches(context, &ready);
    Ok(shown)
}
