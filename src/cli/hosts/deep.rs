//! `hosts check --deep`: everything tried on each host, a row for each step.

use std::io::Write as _;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};

use super::wanted;
use crate::cli::bulk::{self, BulkItem};
use crate::cli::interrupt::{Running, with_progress};
use crate::cli::output::{CliError, Context, Outcome, Tone};
use crate::cli::record;
use crate::cli::table::{self, Line};
use crate::client::problem::exit_status;
use crate::client::{Client, Error, HostCheckRequest, Request};
use crate::domain::deep_check::{DeepOutcome, DeepStep};
use crate::domain::figures;
use crate::domain::host_view::HostView;
use crate::domain::{Code, HostName};

/// How many are tried at a time: each is work on a host, and traffic of this machine.
const AT_ONCE: usize = 3;

/// The status is 0 when every step of every host worked or was skipped for a reason, else that of the hosts' first failures.
pub(super) async fn check(context: &mut Context<'_>, names: &[String]) -> Outcome {
    let client = context.client;
    let running = Running::new(client);
    let checked = with_progress(context, &running, try_all(client, &running, names));
    let checked = Box::pin(checked).await??;
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
        items.push(BulkItem::new(name, error.map_or(Ok(()), Err)));
    }
    let printed = show(context, &views, &items);
    let outcome = bulk::end(context, &items, printed);
    match items
        .iter()
        .find_map(|item| item.error.as_ref().filter(|problem| problem.code == Code::Cancelled))
    {
        // Whatever became of the others: it was called off.
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
    let steps =
        |view: &HostView| view.deep.as_ref().map(|deep| deep.steps.clone()).unwrap_or_default();
    let rows: Vec<Line> = views
        .iter()
        .flat_map(|view| steps(view).into_iter().map(|step| row(&view.name, &step)))
        .collect();
    if !rows.is_empty() {
        table::print(context, &["HOST", "STEP!", "OUTCOME!", "TOOK", "REMARK"], &rows)?;
    }
    for item in items {
        evidence(context, item);
        bulk::complain(context, item, items.len() == 1);
    }
    Ok(())
}

fn row(host: &HostName, step: &DeepStep) -> Line {
    let tone = match step.outcome {
        DeepOutcome::Failed => Tone::Bad,
        DeepOutcome::Skipped => Tone::Faint,
        DeepOutcome::Ok | DeepOutcome::Other(_) => Tone::Plain,
    };
    let took = match (&step.outcome, step.took_ms) {
        (DeepOutcome::Skipped, _) => "-".to_owned(),
        (_, ms) => figures::took(Duration::from_millis(ms)),
    };
    let why = step.error.as_ref().map(|error| format!("{}: {}", error.code, error.message));
    let remark = why.or_else(|| step.message.clone()).unwrap_or_default();
    Line {
        tone,
        cells: vec![
            host.to_string(),
            step.stage.to_string(),
            step.outcome.to_string(),
            took,
            remark,
        ],
    }
}

/// What the program wrote that failed: part of the error, shown with --quiet too.
fn evidence(context: &mut Context<'_>, item: &BulkItem) {
    let problem = item.error.as_ref().filter(|problem| problem.code != Code::Cancelled);
    let Some(failure) = problem.and_then(Error::recorded_failure) else { return };
    for line in record::failure(&failure, context.options) {
        let _ = writeln!(context.io.stderr, "{line}");
    }
}
