//! `destroy` of one or many, and `recreate`.

use futures_util::StreamExt as _;
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::{DestroyArgs, RecreateArgs};
use super::confirm::{Question, allow};
use super::create::failed;
use super::interrupt::{Running, attend};
use super::output::{Face, Outcome, Stop};
use super::sandboxes;
use crate::client::{Client, DestroyRequest, Problem, RecreateRequest};
use crate::domain::{Code, SandboxRecord, State};

/// How many are worked on at a time; a host limits its own sessions below that.
const AT_ONCE: usize = 16;

/// What became of one target of a bulk verb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkItem {
    /// The sandbox's id; what was typed, where it names none.
    pub id: String,
    /// Whether it is done.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
}

impl BulkItem {
    pub(super) fn new(id: impl Into<String>, ended: Result<(), Problem>) -> Self {
        Self { id: id.into(), ok: ended.is_ok(), error: ended.err() }
    }
}

/// One target: what was typed, and what it names.
type Target = (String, Result<SandboxRecord, Problem>);

pub(super) async fn destroy(face: &mut Face<'_>, args: &DestroyArgs) -> Outcome {
    let targets = resolve(face.client, &args.ids).await;
    let asked = agree(face, args, &targets).await?;
    let client = face.client;
    let running = Running::new(client);
    let work = stream::iter(&targets)
        .map(|(typed, target)| {
            let running = &running;
            async move {
                let record = match target {
                    Ok(record) => record,
                    Err(problem) => return BulkItem::new(typed.as_str(), Err(problem.clone())),
                };
                let ended = destroy_one(client, running, request(record, args, asked)).await;
                BulkItem::new(record.id.as_str(), ended)
            }
        })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>();
    let items = attend(face, &running, work).await?;
    bulk(face, "destroyed", &items)
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

async fn destroy_one(client: &dyn Client, running: &Running<'_>, request: DestroyRequest) -> Result<(), Problem> {
    if let Some(problem) = running.cancelled() {
        return Err(problem);
    }
    let forget = request.forget;
    let left = running.finish(client.destroy(request).await?).await?;
    match left.state {
        State::Destroyed => Ok(()),
        State::Forgotten if forget => Ok(()),
        // Never report destroyed for something that nobody saw gone.
        state => {
            let message = left.message.unwrap_or_else(|| format!("it is {state}, not destroyed"));
            Err(Problem::new(Code::OperationFailed, message))
        }
    }
}

/// Finds what each reference names; the same sandbox twice is one target.
async fn resolve(client: &dyn Client, references: &[String]) -> Vec<Target> {
    let found = stream::iter(references)
        .map(|reference| async move { (reference.clone(), client.get(reference).await) })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let mut seen = std::collections::HashSet::new();
    found
        .into_iter()
        .filter(|(typed, target)| match target {
            Ok(record) => seen.insert((true, record.id.to_string())),
            Err(_) => seen.insert((false, typed.clone())),
        })
        .collect()
}

/// Whether a reference is only the beginning of the id it names.
fn is_prefix(typed: &str, record: &SandboxRecord) -> bool {
    typed != record.id.as_str() && record.name.as_deref() != Some(typed)
}

async fn agree(face: &mut Face<'_>, args: &DestroyArgs, targets: &[Target]) -> Result<bool, Stop> {
    let known = targets.iter().filter_map(|(typed, target)| target.as_ref().ok().map(|record| (typed, record)));
    let prefix = known.clone().find(|(typed, record)| is_prefix(typed, record));
    let needs_yes = match prefix {
        _ if args.force_protected => Some("--force-protected".to_owned()),
        Some((typed, record)) => Some(format!("'{typed}', the beginning of {},", record.id)),
        None => None,
    };
    // There is nothing to agree to where nothing is left.
    let records: Vec<_> = known.map(|(_, record)| record).filter(|one| one.state.may_be_destroyed()).collect();
    allow(face, &Question { verb: "destroy", records: &records, yes: args.yes, needs_yes }).await
}

/// Prints what became of each, and ends with the status of all: 0, the one code that all failures have when all
/// failed, else `partial`.
pub(super) fn bulk(face: &mut Face<'_>, done: &str, items: &[BulkItem]) -> Outcome {
    let problem = summary(items);
    let status = problem.as_ref().map_or(0, Problem::exit_status);
    match print_bulk(face, done, items) {
        // What failed, failed, whether or not anybody read the list.
        Err(Stop::PipeClosed) => return Ok(status),
        other => other?,
    }
    match problem {
        Some(problem) if face.look.json => Err(problem.into()),
        _ => Ok(status),
    }
}

fn print_bulk(face: &mut Face<'_>, done: &str, items: &[BulkItem]) -> Result<(), Stop> {
    if face.look.json {
        return face.document(items);
    }
    for item in items {
        let id = face.look.clean(&item.id, 200);
        match &item.error {
            None => face.line(&format!("{done} {id}"))?,
            Some(problem) if items.len() == 1 => face.error(problem),
            Some(problem) => {
                let mut problem = problem.clone();
                if !problem.message.contains(&item.id) {
                    problem.message = format!("{id}: {}", problem.message);
                }
                face.error(&problem);
            }
        }
    }
    Ok(())
}

/// The one problem that stands for all failures.
fn summary(items: &[BulkItem]) -> Option<Problem> {
    let problems: Vec<_> = items.iter().filter_map(|item| item.error.as_ref()).collect();
    let first = *problems.first()?;
    if items.len() == 1 {
        return Some(first.clone());
    }
    let same = problems.len() == items.len() && problems.iter().all(|problem| problem.code == first.code);
    let code = if same { first.code.clone() } else { Code::Partial };
    let mut problem = Problem::new(code, format!("{} of {} failed", problems.len(), items.len()));
    problem.retryable = problems.iter().all(|problem| problem.retryable);
    Some(problem)
}

pub(super) async fn recreate(face: &mut Face<'_>, args: &RecreateArgs) -> Outcome {
    let client = face.client;
    let before = client.get(&args.id).await?;
    let records = [&before];
    let needs_yes = Some("recreate".to_owned());
    let asked = allow(face, &Question { verb: "recreate", records: &records, yes: args.yes, needs_yes }).await?;
    let request = RecreateRequest {
        id: before.id.to_string(),
        revision: asked.then_some(before.revision),
        no_undo: args.no_undo,
        force_protected: args.force_protected,
    };
    let running = Running::new(client);
    let made = attend(face, &running, async {
        let started = client.recreate(request).await.map_err(|problem| (problem, false))?;
        running.finish(started).await.map_err(|problem| (problem, true))
    });
    match Box::pin(made).await? {
        Ok(ready) => sandboxes::show(face, &ready).map(|()| 0),
        Err((problem, false)) => Err(problem.into()),
        Err((problem, true)) => Err(failed(face, problem, &before.id).await),
    }
}
