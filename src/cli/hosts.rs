//! `hosts list` and `check`.

mod deep;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::bulk::{self, BulkItem};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome, Tone};
use super::table::{self, Line};
use crate::client::problem::exit_status;
use crate::client::{Client, Error};
use crate::domain::facts::{HostFacts, Runtime};
use crate::domain::figures::{age_of, bytes};
use crate::domain::host_view::{HostState, HostView};
use crate::domain::{Code, Time};

/// How many are probed at a time.
pub(super) const AT_ONCE: usize = 32;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.hosts().await?;
    show(context, &views)?;
    Ok(0)
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
        Err(problem) => BulkItem::new(name.as_str(), Err(problem.clone())),
        Ok(view) => BulkItem::new(view.name.as_str(), is_up(view)),
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

/// Each of these once; all that are known where none is named.
pub(super) async fn wanted(client: &dyn Client, names: &[String]) -> Result<Vec<String>, Error> {
    let mut names = names.to_vec();
    if names.is_empty() {
        let known = client.hosts().await?.into_iter();
        // Out of bounds means that not even a probe goes there.
        names = known
            .filter(|view| view.state != HostState::Forbidden)
            .map(|view| view.name.to_string())
            .collect();
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.to_ascii_lowercase()));
    Ok(names)
}

async fn probe(
    client: &dyn Client,
    names: &[String],
) -> Result<Vec<(String, Result<HostView, Error>)>, Error> {
    let names = wanted(client, names).await?;
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
    let code = if problems.len() < items.len() {
        Code::Partial
    } else if problems.iter().all(|problem| problem.code == first.code) {
        first.code.clone()
    } else {
        Code::HostUnreachable
    };
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
    let now = context.now();
    let rows: Vec<_> = views.iter().map(|view| row(view, now)).collect();
    table::print(
        context,
        &[
            "HOST",
            "STATE!",
            "SANDBOXES",
            "LATENCY",
            "SEEN",
            "LOAD",
            "MEM FREE",
            "DISK FREE",
            "REMARK",
        ],
        &rows,
    )
}

/// Facts of a host that answers, with what its engine is known for.
fn remark(facts: &HostFacts) -> String {
    let escape = facts.runtimes.first().and_then(Runtime::builds_escape);
    facts.os.clone().into_iter().chain(escape).collect::<Vec<_>>().join("; ")
}

fn row(view: &HostView, now: Time) -> Line {
    let dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let facts = view.facts.as_ref();
    let tone = match view.state {
        HostState::Down => Tone::Bad,
        HostState::Slow | HostState::Connecting => Tone::Busy,
        HostState::Forbidden | HostState::Unknown => Tone::Faint,
        HostState::Up | HostState::Other(_) => Tone::Plain,
    };
    let cells = vec![
        view.name.to_string(),
        view.state.to_string(),
        view.max_sandboxes
            .map_or_else(|| view.sandboxes.to_string(), |max| format!("{}/{max}", view.sandboxes)),
        dash(view.latency_ms.map(|ms| format!("{ms}ms"))),
        dash(view.checked_at.map(|at| format!("{} ago", age_of(at, now)))),
        dash(facts.map(|facts| format!("{:.2}", facts.load1))),
        dash(facts.map(|facts| bytes(facts.mem_available_bytes))),
        dash(facts.and_then(|facts| facts.disk.as_ref()).map(|disk| bytes(disk.available_bytes))),
        view.message.clone().unwrap_or_else(|| facts.map(remark).unwrap_or_default()),
    ];
    Line { tone, cells }
}
