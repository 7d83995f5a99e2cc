//! `hosts list` and `check`.

pub(super) mod choice;
mod deep;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::bulk::{self, BulkItem};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome};
use super::table;
use crate::client::problem::exit_status;
use crate::client::{Client, Error};
use crate::domain::Code;
use crate::domain::host_view::{HostState, HostView};
use crate::present::host;

/// How many are probed at a time.
pub(super) const AT_ONCE: usize = 32;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.hosts().await?;
    show(context, &views).map(|()| 0)
}

/// Probes hosts. The status is 0 when all are up, that of `partial` when some are not, and when none is, the one of what all of
/// them are, else that of `host_unreachable`.
pub(super) async fn check(context: &mut Context<'_>, names: &[String], deep: bool) -> Outcome {
    if deep {
        return deep::check(context, names).await;
    }
    let client = context.client;
    let checked = until_interrupted(context, probe(client, names)).await??;
    conclude(context, checked, show)
}

/// Shows hosts that were asked, and says of the others why not; the status of all of them.
pub(super) fn conclude<'a>(
    context: &mut Context<'a>,
    asked: Vec<(String, Result<HostView, Error>)>,
    show: impl FnOnce(&mut Context<'a>, &[HostView]) -> Result<(), CliError>,
) -> Outcome {
    let items: Vec<BulkItem> = asked.iter().map(item).collect();
    let views: Vec<HostView> = asked.into_iter().filter_map(|(_, view)| view.ok()).collect();
    if !views.is_empty() || context.options.json {
        show(context, &views)?;
    }
    let Some(problem) = not_up(&items) else { return Ok(0) };
    if context.options.json || items.len() == 1 {
        return Err(problem.into());
    }
    for item in &items {
        bulk::complain(context, item, false);
    }
    Ok(exit_status(&problem.code))
}

/// Whether a host that was probed is up, and if not, why.
fn item((name, checked): &(String, Result<HostView, Error>)) -> BulkItem {
    match checked {
        Err(problem) => BulkItem::new(name.as_str(), Some(problem.clone())),
        Ok(view) => BulkItem::new(view.name.as_str(), is_up(view).err()),
    }
}

fn is_up(view: &HostView) -> Result<(), Error> {
    Err(match view.state {
        HostState::Up | HostState::Slow => return Ok(()),
        HostState::Forbidden => {
            let why = view.message.as_deref().unwrap_or("forbidden by the configuration");
            let hint =
                "its `forbid` in the configuration says so; nothing is done there while it stands";
            Error::new(Code::Forbidden, format!("host {} is {why}", view.name)).hint(hint)
        }
        HostState::Unknown | HostState::Connecting | HostState::Down | HostState::Other(_) => {
            let mut problem =
                Error::new(Code::HostUnreachable, format!("no answer from {}", view.name));
            problem.causes.extend(view.message.clone());
            problem.hint.clone_from(&view.hint);
            problem
        }
    })
}

async fn probe(
    client: &dyn Client,
    names: &[String],
) -> Result<Vec<(String, Result<HostView, Error>)>, Error> {
    let names = choice::wanted(client, names).await?;
    let probe = async |name: &String| {
        let view = client.check_host(name).await?;
        if matches!(view.state, HostState::Up | HostState::Slow) {
            // Whoever looks at a host wants to know which services died there; that it cannot be told fails no check.
            let _ = client.refresh_services(name).await;
        }
        Ok::<_, Error>(view)
    };
    let probes = stream::iter(names).map(async |name| {
        let checked = probe(&name).await;
        (name, checked)
    });
    Ok(probes.buffered(AT_ONCE).collect().await)
}

/// The one problem that stands for all hosts that are not up.
fn not_up(items: &[BulkItem]) -> Option<Error> {
    let problems: Vec<&Error> = items.iter().filter_map(|item| item.error.as_ref()).collect();
    let first = *problems.first()?;
    if items.len() == 1 {
        return Some(first.clone());
    }
    let some_are_up = problems.len() < items.len();
    let code = bulk::common_code(&problems, some_are_up, Code::HostUnreachable);
    let words: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let mut problem = Error::new(code, words.join("; "));
    problem.retryable = problems.iter().all(|problem| problem.retryable);
    let failed: Vec<&BulkItem> = items.iter().filter(|item| !item.ok).collect();
    problem.details = serde_json::json!({"failed": failed});
    Some(problem)
}

fn show(context: &mut Context<'_>, views: &[HostView]) -> Result<(), CliError> {
    if context.options.json {
        return context.document(views);
    }
    table::print(context, host::COLUMNS, views, host::role)
}
