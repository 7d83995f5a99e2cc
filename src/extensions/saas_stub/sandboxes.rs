//! Sandboxes of the account: how each is seen, whose it is, and its removal.

use super::account::{Account, Room};
use super::files::{Found, PLACE, StubSandbox, counter, proved, sandbox, workdir};
use super::wishes::{Fail, Wishes};
use crate::domain::error::{Code, Error, Failure};
use crate::domain::extension::Target;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::{Endpoint, Reachability};
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use crate::failpoint;

/// Sandbox of a target, as it was seen.
pub(super) struct Sight {
    /// The sandbox, where it is there and ours.
    pub(super) found: Option<StubSandbox>,
    /// Line of a removal's report on it.
    pub(super) line: TeardownLine,
    /// Counter of the target's owner.
    pub(super) counter: Option<u64>,
    /// Whether it is there and cannot be understood.
    pub(super) unreadable: bool,
}

/// Looks at a sandbox.
///
/// Errors: `host_changed`, and why the account cannot be read.
pub(super) fn look(account: Option<&Account>, target: &Target) -> Result<Sight, Error> {
    let line = |outcome, reason| TeardownLine { resource: resource(&target.id), outcome, reason };
    let absent = Sight {
        found: None,
        line: line(TeardownOutcome::Absent, None),
        counter: None,
        unreadable: false,
    };
    let Some(account) = proved(account, target.host_identity.as_ref())? else { return Ok(absent) };
    let stamp = target.stamp.as_ref();
    let counter = stamp.map(|stamp| counter(account, &stamp.owner)).transpose()?.flatten();
    Ok(match sandbox(account, target.id.as_str())? {
        Found::Absent => Sight { counter, ..absent },
        Found::Unreadable(why) => Sight {
            line: line(TeardownOutcome::Failed, Some(why)),
            counter,
            unreadable: true,
            ..absent
        },
        Found::There(found, _) if !target.owners.contains(&found.manifest.owner) => {
            let reason = format!("it is of the owner {}", found.manifest.owner);
            Sight { line: line(TeardownOutcome::Foreign, Some(reason)), counter, ..absent }
        }
        Found::There(found, _) => Sight {
            found: Some(*found),
            line: line(TeardownOutcome::Removed, None),
            counter,
            unreadable: false,
        },
    })
}

/// Sandbox of a target, which is to be there.
pub(super) fn ours<'a>(
    account: Option<&'a Account>,
    target: &Target,
) -> Result<(&'a Account, StubSandbox), Error> {
    let sight = look(account, target)?;
    if let (Some(account), Some(found)) = (account, sight.found) {
        return Ok((account, found));
    }
    let message = format!("{PLACE} has no sandbox {} of this installation", target.id);
    let why = sight.line.reason.unwrap_or_else(|| "somebody removed it".to_owned());
    Err(Error::new(Code::OperationFailed, message).because(why))
}

/// Error of an id that is used.
pub(super) fn taken(id: &SandboxId) -> Error {
    let message = format!("{PLACE} has a sandbox {id} already, of which no record is here");
    Error::new(Code::Conflict, message)
        .hint("`sandboxer adopt` makes a record of it; or choose another id")
}

/// Error that an input asked for.
pub(super) fn scripted(step: &str) -> Error {
    let output = format!("{PLACE}: error 503: the input `fail` asked for this");
    let failure = Failure { step: step.to_owned(), exit_status: None, output };
    Error::new(Code::OperationFailed, format!("{PLACE} failed at {step}, as its input `fail` says"))
        .step(step)
        .evidence(failure)
        .hint("without the input `fail` it does not")
}

/// Sandbox as what a host would have of it.
pub(super) fn resource(id: &SandboxId) -> Resource {
    Resource { kind: "directory".to_owned(), id: workdir(id.as_str()) }
}

/// Way to a sandbox. It leads nowhere: nobody can have a name below `.invalid`.
pub(super) fn reachability(id: &SandboxId, wishes: &Wishes) -> Reachability {
    let url = format!("https://{id}.{}.{PLACE}.invalid/", wishes.region);
    Reachability {
        host: HostName::new(PLACE),
        ssh: String::new(),
        workdir: workdir(id.as_str()),
        endpoints: vec![Endpoint {
            service: "app".to_owned(),
            container_port: 443,
            host_port: 443,
            protocol: "tcp".to_owned(),
            url,
            tunnel: None,
        }],
        attachments: Vec::new(),
    }
}

/// Removes a sandbox if it is still ours, and reads back.
pub(super) fn remove(
    account: Option<&Account>,
    target: &Target,
    fail: Fail,
) -> Result<TeardownReport, Error> {
    let Sight { found, line, .. } = look(account, target)?;
    let report = |line: TeardownLine| {
        let is_left = line.outcome == TeardownOutcome::Failed;
        let leftovers = if is_left { vec![line.resource.clone()] } else { Vec::new() };
        TeardownReport { lines: vec![line], leftovers, untouched: is_left }
    };
    let Some(account) = account else { return Ok(report(line)) };
    let Some(mut found) = found else {
        if line.outcome == TeardownOutcome::Absent {
            // With what a write that was cut off left.
            account.remove(Room::Sandboxes, target.id.as_str())?;
        }
        return Ok(report(line));
    };
    let fails = match fail {
        Fail::TeardownAlways => true,
        Fail::Teardown => !found.removal_failed,
        Fail::Never
        | Fail::Provision
        | Fail::Ready
        | Fail::Snapshot
        | Fail::Restore
        | Fail::Sleep
        | Fail::Wake => false,
    };
    if fails {
        found.removal_failed = true;
        found.write(account)?;
        let reason = Some(scripted("teardown").message);
        return Ok(report(TeardownLine { outcome: TeardownOutcome::Failed, reason, ..line }));
    }
    account.remove(Room::Sandboxes, target.id.as_str())?;
    failpoint::reached("stub.removed");
    let left = look(Some(account), target)?;
    if left.line.outcome == TeardownOutcome::Absent {
        return Ok(report(line));
    }
    let reason = Some("it is there again".to_owned());
    Ok(report(TeardownLine { outcome: TeardownOutcome::Failed, reason, ..line }))
}
