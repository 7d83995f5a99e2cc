//! Doctor: checks of the stores, the installation, what dead processes left, the hosts.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::error::Error;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::HostName;
use crate::domain::operation::OperationState;
use crate::domain::request::{Check, CheckState};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::text::plural;
use crate::manager::credits::account::check_ledger;
use crate::manager::deps::Deps;
use crate::manager::hosts::check::probe_host;
use crate::manager::hosts::places::{PlaceReading, owner_counter, used_places};
use crate::manager::hub::check::check_hub;
use crate::manager::operation::dead::is_alive;
use crate::manager::sandboxes::manifest::has_manifest;
use crate::manager::sandboxes::observe::refresh_services;
use crate::manager::upkeep::claim::claim;
use crate::manager::upkeep::ownership::{CLAIM_HINT, ownership, ownership_words};
use crate::manager::upkeep::recover_snapshots::needs_recovery;
use crate::manager::upkeep::unswept::{SWEEP_HINT, last_sweep};
use crate::store::{Ownership, UnreadableLines};

/// A host's clock may differ by this many seconds before somebody should look (contract 4).
const CLOCK_OFFSET_S: f64 = 2.0;

const LINES_SHOWN: usize = 10;

/// Looks at everything; with `claim` makes this data directory this machine's first. A host that is down is a
/// check that failed, not an error.
///
/// Errors: a claim that cannot be written.
pub(crate) async fn doctor(deps: &Deps, claim: bool) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    if claim {
        checks.push(claim_directory(deps).await?);
    }
    // First, because a host may say that this data directory is an old copy.
    let hosts = deps.transports.hosts();
    let hosts = join_all(hosts.iter().map(|spec| check_one_host(deps, spec.name.as_str()))).await;
    for view in hosts.iter().filter(|check| check.state != CheckState::Failed) {
        let name = view.name.trim_start_matches("host ");
        if let Err(error) = refresh_services(deps, name).await {
            tracing::debug!(host = name, %error, "its services could not be asked for");
        }
    }
    let places =
        join_all(used_places(deps).await.into_iter().map(|it| check_place(deps, it))).await;
    checks.push(check_installation(deps).await);
    match deps.sandboxes.list().await {
        Ok(records) => {
            checks.push(ok("sandboxes", plural(records.len() as u64, "record", "records")));
            checks.extend(check_work(deps, &records).await);
            checks.push(check_sweep(deps, &records).await);
        }
        Err(error) => checks.push(failed("sandboxes", &error)),
    }
    checks.extend(check_snapshots(deps).await);
    checks.push(match deps.patches.list().await {
        Ok(patches) => ok("patches", plural(patches.len() as u64, "record", "records")),
        Err(error) => failed("patches", &error),
    });
    checks.push(
        match tokio::try_join!(deps.sandboxes.history(), deps.sandboxes.unreadable_lines()) {
            Ok((records, unreadable_lines)) => lines(
                "history",
                plural(records.len() as u64, "record", "records"),
                &unreadable_lines,
            ),
            Err(error) => failed("history", &error),
        },
    );
    checks.push(check_pinned_profiles(deps).await);
    checks.push(match deps.hosts.get(&HostName::new(HostName::LOCAL)).await {
        Ok(_) => ok("known hosts", "what is known of them can be read".to_owned()),
        Err(error) => failed("known hosts", &error),
    });
    checks.extend(check_ledger(deps).await);
    checks.push(check_operations(deps).await);
    checks.push(match tokio::try_join!(deps.events.last_seq(), deps.events.unreadable_lines()) {
        Ok((last, unreadable_lines)) => {
            lines("events", format!("{last} so far"), &unreadable_lines)
        }
        Err(error) => failed("events", &error),
    });
    checks.extend(check_hub(deps).await);
    checks.extend(hosts);
    checks.extend(places);
    Ok(checks)
}

async fn claim_directory(deps: &Deps) -> Result<Check, Error> {
    let untold = claim(deps).await?;
    let message =
        "this data directory is this machine's from now on; every other copy of it is behind"
            .to_owned();
    Ok(if untold.is_empty() {
        ok("claim", message)
    } else {
        let hosts: Vec<&str> = untold.iter().map(AsRef::as_ref).collect();
        let message =
            format!("{message}, but where nobody could tell the host: {}", hosts.join(", "));
        warning("claim", message).hint(
            "a copy that works with these may still remove there; claim again when they answer",
        )
    })
}

async fn check_installation(deps: &Deps) -> Check {
    match ownership(deps).await {
        Ok(Ownership::Own) => ok("installation", ownership_words(&Ownership::Own)),
        Ok(ownership) => Check {
            name: "installation".to_owned(),
            state: CheckState::Failed,
            message: format!("{}; nothing is removed from here", ownership_words(&ownership)),
            hint: Some(CLAIM_HINT.to_owned()),
        },
        Err(error) => failed("installation", &error),
    }
}

/// Checks of records that wait: stuck operations, removals, tombstones.
async fn check_work(deps: &Deps, records: &[Arc<SandboxRecord>]) -> Vec<Check> {
    let ids = |wanted: &dyn Fn(&SandboxRecord) -> bool| -> Vec<String> {
        records.iter().filter(|record| wanted(record)).map(|record| record.id.to_string()).collect()
    };
    let mut stuck = Vec::new();
    for record in records.iter().filter(|record| record.operation.is_some()) {
        if matches!(deps.locks.try_lock(&record.id).await, Ok(Some(_))) {
            stuck.push(record.id.to_string());
        }
    }
    let unfinished = ids(&|record| record.state == State::Destroying && record.operation.is_none());
    let forgotten = ids(&|record| record.state == State::Forgotten);
    let degraded = ids(&|record| record.degraded().next().is_some());
    let lists = [
        ("stuck operations", stuck, "`sandboxer recover` brings them into order"),
        ("unfinished removals", unfinished, "`sandboxer recover` tries again"),
        (
            "tombstones",
            forgotten,
            "what is left of these is removed when their hosts are next reached",
        ),
        ("degraded sandboxes", degraded, "`sandboxer logs ID` shows why a service ended"),
    ];
    let check = |(name, list, hint): (&str, Vec<String>, &str)| match list.as_slice() {
        [] => ok(name, "none".to_owned()),
        list => warning(name, list.join(", ")).hint(hint),
    };
    lists.into_iter().map(check).collect()
}

/// Whether somebody ends what expires, where anything does.
async fn check_sweep(deps: &Deps, records: &[Arc<SandboxRecord>]) -> Check {
    let (name, last) = ("sweep", last_sweep(deps).await);
    let dated = records.iter().filter(|record| {
        record.expires_at.is_some() && (has_manifest(record) || record.operation.is_some())
    });
    match dated.count() as u64 {
        0 => ok(name, format!("{}; nothing has a deadline", last.words())),
        _ if !last.is_too_long_ago() => ok(name, last.words()),
        count => {
            let who = plural(count, "sandbox has a deadline", "sandboxes have a deadline");
            warning(name, format!("{}, and {who}", last.words())).hint(SWEEP_HINT)
        }
    }
}

/// Snapshots over which a process died, and those whose archives are known to be damaged.
async fn check_snapshots(deps: &Deps) -> Vec<Check> {
    let records = match deps.snapshots.list().await {
        Ok(records) => records,
        Err(error) => return vec![failed("snapshots", &error)],
    };
    let mut stuck = Vec::new();
    for record in records.iter().filter(|record| needs_recovery(record)) {
        if matches!(deps.locks.try_lock_snapshot(&record.id).await, Ok(Some(_))) {
            stuck.push(record.id.to_string());
        }
    }
    let left = match stuck.as_slice() {
        [] => ok("snapshots", plural(records.len() as u64, "record", "records")),
        stuck => warning("snapshots", format!("left unfinished: {}", stuck.join(", ")))
            .hint("`sandboxer recover` finishes them or takes them away"),
    };
    let damaged = records.iter().filter(|record| record.damaged().next().is_some());
    let damaged: Vec<String> = damaged
        .map(|record| format!("{} ({})", record.id, record.replica_words().join(", ")))
        .collect();
    let damaged = match damaged.as_slice() {
        [] => ok("damaged archives", "none known".to_owned()),
        damaged => warning("damaged archives", damaged.join(", ")).hint(
            "`sandboxer snapshots verify ID` looks again; `snapshots get ID` says what was found",
        ),
    };
    vec![left, damaged]
}

/// Check of the pinned profiles that sandboxes and snapshots are made again with.
async fn check_pinned_profiles(deps: &Deps) -> Check {
    let records = async { tokio::try_join!(deps.sandboxes.list(), deps.snapshots.list()) };
    // Checked already.
    let (sandboxes, snapshots) = records.await.unwrap_or_default();
    let hashes = sandboxes
        .iter()
        .filter(|record| !record.state.is_over())
        .map(|record| &record.profile.hash);
    let hashes: BTreeSet<&String> =
        hashes.chain(snapshots.iter().map(|record| &record.profile.hash)).collect();
    for hash in &hashes {
        if let Err(error) = deps.pinned_profiles.get(hash).await {
            return failed("pinned profiles", &error);
        }
    }
    ok("pinned profiles", format!("{} in use", hashes.len()))
}

async fn check_operations(deps: &Deps) -> Check {
    let operations = match deps.operations.list().await {
        Ok(operations) => operations,
        Err(error) => return failed("operations", &error),
    };
    let (mut running, mut dead) = (0, Vec::new());
    for operation in
        operations.iter().filter(|operation| operation.state == OperationState::Running)
    {
        match is_alive(deps, operation).await {
            Ok(false) => dead.push(operation.id.to_string()),
            _ => running += 1,
        }
    }
    match dead.as_slice() {
        [] => ok("operations", format!("{running} running")),
        dead => warning("operations", format!("their processes died: {}", dead.join(", ")))
            .hint("`sandboxer recover` brings them into order"),
    }
}

/// Notes the counter that a host has of this installation.
async fn compare_counter(deps: &Deps, host: &HostName) -> Result<(), Error> {
    let owner = deps.installation.stamp().await?.owner;
    if let Some(counter) = owner_counter(deps, host, &owner).await? {
        deps.installation.seen_on(host, counter).await?;
    }
    Ok(())
}

async fn check_one_host(deps: &Deps, name: &str) -> Check {
    let title = format!("host {name}");
    match probe_host(deps, name).await {
        Ok(view) => {
            if matches!(view.state, HostState::Up | HostState::Slow)
                && let Err(error) = compare_counter(deps, &view.name).await
            {
                tracing::warn!(host = %view.name, %error, "its counter could not be compared");
            }
            judge_host(&title, &view)
        }
        Err(error) => failed(&title, &error),
    }
}

/// Check of an extension's place at which something was made.
async fn check_place(deps: &Deps, reading: PlaceReading) -> Check {
    let PlaceReading { place, facts } = reading;
    let title = format!("place {place}");
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return failed(&title, &error),
    };
    if let Err(error) = compare_counter(deps, &place).await {
        return failed(&title, &error);
    }
    match facts.findings.as_slice() {
        [] => ok(&title, "up".to_owned()),
        findings => warning(&title, findings.join("; ")).hint(
            "`sandboxer inspect stale` shows what there is; nobody touches what cannot be read",
        ),
    }
}

fn judge_host(title: &str, view: &HostView) -> Check {
    let mut parts = vec![view.state.to_string()];
    parts.extend(view.latency_ms.map(|ms| format!("{ms} ms")));
    parts.extend(view.message.clone());
    let mut check = match view.state {
        HostState::Up | HostState::Forbidden => ok(title, parts.join(", ")),
        HostState::Slow => warning(title, parts.join(", ")),
        _ => Check { state: CheckState::Failed, ..ok(title, parts.join(", ")) },
    };
    check.hint.clone_from(&view.hint);
    let Some(facts) = &view.facts else { return check };
    if let Some(offset) = facts.clock_offset_s.filter(|offset| offset.abs() > CLOCK_OFFSET_S) {
        check.state = CheckState::Warning;
        check.message = format!("{}, its clock differs by {offset:.1} s", check.message);
        check.hint =
            Some("deadlines are judged by this machine's clock; set the host's right".to_owned());
    }
    match facts.runtimes.first() {
        Some(runtime) => {
            check.message = format!("{}, {} {}", check.message, runtime.flavour, runtime.version);
            if let Some(escape) = runtime.builds_escape() {
                check.message = format!("{}; {escape}", check.message);
            }
        }
        None => check.message = format!("{}, no compose runtime", check.message),
    }
    check
}

/// Check of a file of lines, with the lines that were passed over.
fn lines(name: &str, found: String, unreadable_lines: &[UnreadableLines]) -> Check {
    if unreadable_lines.is_empty() {
        return ok(name, found);
    }
    let mut words = vec![found];
    for UnreadableLines { file, lines } in unreadable_lines {
        let shown: Vec<String> = lines.iter().take(LINES_SHOWN).map(ToString::to_string).collect();
        let more = match lines.len().saturating_sub(LINES_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let word = if lines.len() == 1 { "line" } else { "lines" };
        words.push(format!(
            "{file}: {word} {}{more} cannot be read; the rest is used",
            shown.join(", ")
        ));
    }
    warning(name, words.join("\n"))
        .hint("the file is left as it is; look at these lines, and mend them or take them out")
}

fn ok(name: &str, message: String) -> Check {
    Check { name: name.to_owned(), state: CheckState::Ok, message, hint: None }
}

fn warning(name: &str, message: String) -> Check {
    Check { state: CheckState::Warning, ..ok(name, message) }
}

fn failed(name: &str, error: &Error) -> Check {
    let words: Vec<String> =
        std::iter::once(error.message.clone()).chain(error.causes.clone()).collect();
    Check { state: CheckState::Failed, hint: error.hint.clone(), ..ok(name, words.join(": ")) }
}

impl Check {
    fn hint(self, hint: &str) -> Self {
        Self { hint: Some(hint.to_owned()), ..self }
    }
}
