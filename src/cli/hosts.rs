//! `hosts list` and `check`.

mod deep;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::interrupt::look_on;
use super::output::{Face, Outcome, Stop, Tone};
use super::table::{self, Line, age, size};
use crate::client::{Client, Problem};
use crate::domain::facts::{HostFacts, HostState, HostView, Runtime};
use crate::domain::{Code, Time};

/// How many are probed at a time.
const AT_ONCE: usize = 32;

pub(super) async fn list(face: &mut Face<'_>) -> Outcome {
    let views = face.client.hosts().await?;
    show(face, &views)?;
    Ok(0)
}

/// Probes hosts. The status is 0 when all answer, that of `host_unreachable` when none does, else of `partial`.
pub(super) async fn check(face: &mut Face<'_>, names: &[String], deep: bool) -> Outcome {
    if deep {
        return deep::check(face, names).await;
    }
    let client = face.client;
    let checked = look_on(face, probe(client, names)).await??;
    let (views, problems): (Vec<_>, Vec<_>) = checked.into_iter().partition(Result::is_ok);
    let views: Vec<HostView> = views.into_iter().flatten().collect();
    if !views.is_empty() || face.look.json {
        show(face, &views)?;
    }
    // A wrong name outweighs a host that is down: the command line is what has to change.
    if let Some(problem) = problems.into_iter().find_map(Result::err) {
        return Err(problem.into());
    }
    down(&views).map_or(Ok(0), |problem| Err(problem.into()))
}

/// Each of these once; all that are known where none is named.
async fn wanted(client: &dyn Client, names: &[String]) -> Result<Vec<String>, Problem> {
    let mut names = names.to_vec();
    if names.is_empty() {
        let known = client.hosts().await?.into_iter();
        // Out of bounds means that not even a probe goes there.
        names = known.filter(|view| view.state != HostState::Forbidden).map(|view| view.name.to_string()).collect();
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.to_ascii_lowercase()));
    Ok(names)
}

async fn probe(client: &dyn Client, names: &[String]) -> Result<Vec<Result<HostView, Problem>>, Problem> {
    let names = wanted(client, names).await?;
    let probe = async |name: &String| {
        let view = client.check_host(name).await?;
        if matches!(view.state, HostState::Up | HostState::Slow) {
            // Whoever looks at a host wants to know which services died there; that it cannot be told fails no check.
            let _ = client.refresh_services(name).await;
        }
        Ok::<_, Problem>(view)
    };
    let probes = stream::iter(&names).map(probe).buffered(AT_ONCE);
    Ok(probes.collect().await)
}

fn down(views: &[HostView]) -> Option<Problem> {
    let silent: Vec<_> = views.iter().filter(|view| !matches!(view.state, HostState::Up | HostState::Slow)).collect();
    let first = *silent.first()?;
    let code = if silent.len() == views.len() { Code::HostUnreachable } else { Code::Partial };
    let names: Vec<_> = silent.iter().map(|view| view.name.to_string()).collect();
    let mut problem = Problem::new(code, format!("no answer from {}", names.join(", ")));
    if let [only] = silent.as_slice() {
        problem.causes.extend(only.message.clone());
    }
    problem.hint.clone_from(&first.hint);
    Some(problem)
}

fn show(face: &mut Face<'_>, views: &[HostView]) -> Result<(), Stop> {
    if face.look.json {
        return face.document(views);
    }
    let now = face.now();
    let rows: Vec<_> = views.iter().map(|view| row(view, now)).collect();
    table::print(
        face,
        &["HOST", "STATE!", "SANDBOXES", "LATENCY", "SEEN", "LOAD", "MEM FREE", "DISK FREE", "REMARK"],
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
        _ => Tone::Plain,
    };
    let cells = vec![
        view.name.to_string(),
        view.state.to_string(),
        view.max_sandboxes.map_or_else(|| view.sandboxes.to_string(), |max| format!("{}/{max}", view.sandboxes)),
        dash(view.latency_ms.map(|ms| format!("{ms}ms"))),
        dash(view.checked_at.map(|at| format!("{} ago", age(at, now)))),
        dash(facts.map(|facts| format!("{:.2}", facts.load1))),
        dash(facts.map(|facts| size(facts.mem_available_bytes))),
        dash(facts.and_then(|facts| facts.disk.as_ref()).map(|disk| size(disk.available_bytes))),
        view.message.clone().unwrap_or_else(|| facts.map(remark).unwrap_or_default()),
    ];
    Line { tone, cells }
}
