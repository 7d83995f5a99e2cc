//! Verbs on sandboxes of the account: make one, start it, change it, find it.

use std::time::Duration;

use super::account::Account;
use super::files::{
    Found, Power, StubSandbox, check_recorded, identity, proved, raise, sandbox, unreadable,
    workdir,
};
use super::provider::Provider;
use super::sandboxes::{Sight, look, ours, reachability, scripted, taken};
use super::wishes::{Fail, Wishes};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ProvisionRequest, Provisioned, Readiness, Target, Unsettled};
use crate::domain::facts::HostIdentity;
use crate::domain::name::SandboxId;
use crate::domain::reporter::{Learnt, Report, Reporter};
use crate::extensions::workspace::manifest::manifest_of;
use crate::failpoint;

/// Writes a sandbox down, with the owner's counter.
pub(super) async fn make(
    provider: &Provider,
    request: &ProvisionRequest,
    wishes: &Wishes,
    made_in: Option<HostIdentity>,
    reporter: &dyn Reporter,
) -> Result<Provisioned, Error> {
    let (manifest, stamp) = (manifest_of(request), request.owner.clone());
    let id = request.id.clone();
    let roots = request.roots.unmarked.iter().map(|root| root.machine_id.clone());
    let recorded: Vec<String> = roots.filter(|id| !id.is_empty()).collect();
    let checked = provider.open(move |account| check_recorded(account, &recorded));
    checked.await.map_err(Error::untouched)?;
    let written = provider.make(move |account| {
        check_free(account, &id, made_in.as_ref()).map_err(Error::untouched)?;
        let had = raise(account, &stamp)?;
        StubSandbox::new(manifest).write(account)?;
        Ok((identity(account), had.filter(|had| *had >= stamp.counter)))
    });
    let (identity, counter_ahead) = written.await?;
    failpoint::reached("stub.provisioned");
    let workdir = workdir(request.id.as_str());
    reporter.learnt(&Learnt {
        workdir: workdir.clone(),
        identity: identity.clone(),
        rewrites: Vec::new(),
    });
    Ok(Provisioned {
        handle: serde_json::json!({"region": wishes.region}),
        workdir,
        identity,
        rewrites: Vec::new(),
        report: None,
        counter_ahead,
        start_output: None,
        ready: None,
    })
}

/// Refuses an account that is another one than a snapshot's, and an id that is used in it.
fn check_free(
    account: &Account,
    id: &SandboxId,
    made_in: Option<&HostIdentity>,
) -> Result<(), Error> {
    proved(Some(account), made_in)?;
    match sandbox(account, id.as_str())? {
        Found::Absent => Ok(()),
        Found::There(..) => Err(taken(id)),
        Found::Unreadable(why) => Err(unreadable(&format!("sandbox {id}"), &why)),
    }
}

/// Waits as long as a start takes, at most for a limit, and has it run.
pub(super) async fn start(
    provider: &Provider,
    target: &Target,
    wishes: &Wishes,
    limit: Duration,
    reporter: &dyn Reporter,
) -> Result<Readiness, Error> {
    let of = wishes.startup.as_secs();
    for done in 0..of {
        if done >= limit.as_secs() {
            let message = format!("sandbox {} is not ready after {} s", target.id, limit.as_secs());
            return Err(Error::new(Code::Timeout, message)
                .step("ready")
                .hint("its startup_s is longer than the profile's ready_timeout"));
        }
        let report = Report { stage: "ready", ..Report::default() };
        reporter.report(Report { done: Some(done), of: Some(of), ..report });
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    if wishes.fail == Fail::Ready {
        return Err(scripted("ready"));
    }
    change(provider, target, |found| found.power = Power::Running).await?;
    Ok(Readiness {
        reachability: reachability(&target.id, wishes),
        services: Vec::new(),
        unsettled: Unsettled::None,
    })
}

/// Changes a sandbox that is there and ours.
pub(super) async fn change(
    provider: &Provider,
    target: &Target,
    change: impl FnOnce(&mut StubSandbox) + Send + 'static,
) -> Result<(), Error> {
    let target = target.clone();
    provider
        .open(move |account| {
            let (account, mut found) = ours(account, &target)?;
            if let Some(stamp) = &target.stamp {
                raise(account, stamp)?;
            }
            change(&mut found);
            found.write(account)
        })
        .await
}

/// Report of what a removal finds; the sandbox, where it is there and ours.
pub(super) async fn find(provider: &Provider, target: &Target) -> Result<Sight, Error> {
    let target = target.clone();
    provider.open(move |account| look(account, &target)).await
}
