//! `hosts check --deep`: everything tried on each host, a row for each step.

use futures_util::stream::{self, StreamExt as _};

use super::choice::wanted;
use crate::cli::bulk::{self, BulkItem};
use crate::cli::interrupt::{Running, awaited};
use crate::cli::output::{CliError, Context, Outcome};
use crate::cli::{document, table};
use crate::client::problem::exit_status;
use crate::client::{Client, Error, HostCheckRequest, Request};
use crate::domain::Code;
use crate::domain::host_view::HostView;
use crate::present::host::{STEPS, StepRow, step_role};
use crate::present::{Document, failure};

/// How many are tried at a time: each is work on a host, and traffic of this machine.
const AT_ONCE: usize = 3;

/// The status is 0 when every step of every host worked or was skipped for a reason, else that of the hosts' first failures.
pub(super) async fn check(context: &mut Context<'_>, names: &[String]) -> Outcome {
    let client = context.client;
    let checked = awaited(context, async |running| try_all(client, running, names).await);
    let checked = checked.await??;
    let (mut views, mut items) = (Vec::new(), Vec::new());
    for (name, ended) in checked {
        let (name, error) = match ended {
            Ok(view) => {
                let error = view.deep.as_ref().and_then(|deep| deep.error()).cloned();
                let name = view.name.to_string();
                views.push(view);
                (name, error)
            }
            Err(problem) => (name, Some(problem)),
        };
        items.push(BulkItem::new(name, error));
    }
    let printed = show(context, &views, &items);
    let outcome = bulk::end(context, &items, printed);
    match items
        .iter()
        .find_map(|item| item.error.as_ref().filter(|problem| problem.code == Code::Cancelled))
    {
        // Whatever became of the others: it was cancelled.
        Some(problem) if context.options.json => Err(problem.clone().into()),
        Some(problem) => Ok(exit_status(&problem.code)),
        None => outcome,
    }
}

type Checked = (String, Result<HostView, Error>);

async fn try_all(
    client: &dyn Client,
    running: &Running<'_>,
    names: &[String],
) -> Result<Vec<Checked>, Error> {
    let names = wanted(client, names).await?;
    let one = async |name: String| {
        let ended = async {
            if let Some(cancelled) = running.cancelled() {
                return Err(cancelled);
            }
            let request = HostCheckRequest { host: name.clone() };
            running.run(Request::CheckHost(request)).await?.into_host()
        };
        let ended = ended.await;
        (name, ended)
    };
    Ok(stream::iter(names).map(one).buffered(AT_ONCE).collect().await)
}

fn show(context: &mut Context<'_>, views: &[HostView], items: &[BulkItem]) -> Result<(), CliError> {
    if context.options.json {
        return context.document(views);
    }
    let steps = |view: &HostView| {
        let deep = view.deep.as_ref().map(|deep| deep.steps.clone()).unwrap_or_default();
        deep.into_iter().map(|step| (view.name.clone(), step)).collect::<Vec<StepRow>>()
    };
    let rows: Vec<StepRow> = views.iter().flat_map(steps).collect();
    if !rows.is_empty() {
        table::print(context, STEPS, &rows, step_role)?;
    }
    for item in items {
        evidence(context, item);
        bulk::complain(context, item, items.len() == 1);
    }
    Ok(())
}

/// Output of the program that failed: part of the error, shown with --quiet too.
fn evidence(context: &mut Context<'_>, item: &BulkItem) {
    let problem = item.error.as_ref().filter(|problem| problem.code != Code::Cancelled);
    let Some(problem) = problem else { return };
    let Some(failed) = problem.recorded_failure() else { return };
    let mut document = Document::default();
    failure::section(&mut document, &failed, &problem.sentences());
    document::evidence(context, &document);
}
