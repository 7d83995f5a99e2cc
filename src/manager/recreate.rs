//! Recreate: remove and make again under the same id (semantics 1).

use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{ExtensionError, ProvisionRequest, TeardownReport};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::patch::settled_state;
use crate::domain::request::{RecreateRequest, Started};
use crate::domain::root::KnownRoots;
use crate::domain::sandbox::{Reason, SandboxRecord, State};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::begin::may_follow;
use crate::manager::establish::{Establishment, unseen};
use crate::manager::lifecycle::{before_anything, check_protection, not_clean, note_teardown};
use crate::manager::record::Guard;
use crate::manager::reporter::JobReporter;
use crate::store::Held;

impl SandboxManager {
    /// Starts a recreate and returns at once: the same id, recipe and inputs.
    pub async fn recreate(&self, request: &RecreateRequest) -> Result<Started, Error> {
        let record = self.exactly(&request.id, request.revision).await?;
        let Some(held) = self.parts.locks.try_lock(&record.id).await? else {
            return Err(self.busy(&record.id).await);
        };
        if !record.state.may_be_recreated() {
            return Err(Error::new(Code::Conflict, format!("a {} sandbox cannot be recreated", record.state))
                .hint("recreate works on ready, sleeping, failed and lost ones; destroy works on every other")
                .detail("state", record.state.as_str()));
        }
        may_follow(&OperationKind::Recreate, &record)?;
        check_protection(&record, request.force_protected)?;
        self.ensure_patches_as_shown(&record, request.patches.as_deref()).await?;
        self.ensure_name_is_its_own(&record).await?;
        self.ensure_own().await?;
        let extension = self.extension(&record.extension)?;
        // Nothing is removed for a recreate that would be refused.
        let from = self.base_of(&record).await?;
        let target = self.target(&record).await?;
        let mut draft = ProvisionRequest {
            id: record.id.clone(),
            owner: crate::domain::extension::OwnerStamp {
                owner: record.owner.clone(),
                machine_id: String::new(),
                counter: 0,
            },
            host: record.host.clone(),
            profile: target.profile.clone(),
            inputs: record.inputs.clone(),
            created_at: record.created_at,
            expires_at: None,
            allow_large: true,
            compose_host: None,
            roots: KnownRoots::default(),
        };
        if from.is_none() {
            self.settle_directories(&draft.profile, &mut draft.inputs).await.map_err(untouched)?;
            let mut preview = extension.preview(&draft).await.map_err(|error| error.fault)?;
            preview.check().map_err(untouched)?;
            draft.compose_host =
                extension.ask_host(&draft.profile, &draft.host).await.map_err(untouched)?;
            extension
                .preview_on_host(&mut draft, &mut preview)
                .await
                .map_err(|error| untouched(error.fault))?;
            preview.check().map_err(untouched)?;
        } else {
            draft.compose_host =
                extension.ask_host(&draft.profile, &draft.host).await.map_err(untouched)?;
        }
        let (operation, record) = self.begin(OperationKind::Recreate, &record).await?;
        let work = Establishment {
            ready_timeout: draft.profile.ready_timeout.duration(),
            ttl_s: record.ttl_s,
            keep_failed: false,
            recreate: true,
            provision: draft,
            from,
        };
        self.start_recreate(operation.clone(), &record, work, held);
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    fn start_recreate(
        &self,
        operation: Operation,
        record: &SandboxRecord,
        work: Establishment,
        held: Box<dyn Held>,
    ) {
        let sandbox = record.id.clone();
        self.run_held(
            operation,
            held,
            Some(record.host.clone()),
            move |manager, operation, cancel| async move {
                Box::pin(manager.make_again(&operation, &sandbox, work, &cancel)).await
            },
        );
    }

    async fn make_again(
        &self,
        operation: &Operation,
        id: &SandboxId,
        work: Establishment,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mine = Guard::Operation(operation.id.clone());
        let reporter = JobReporter::new(&self.jobs, operation);
        let before = self.get(id.as_str()).await?;
        // The archive is read, images are found, and what is there is removed.
        let pulls = work.provision.compose_host.is_some();
        self.announce_steps(
            &work,
            1 + u32::from(work.from.is_some()) + u32::from(pulls),
            &reporter,
        )
        .await;
        if let Some(from) = &work.from
            && let Err(fault) = self.prove_base(operation, &before, from, cancel, &reporter).await
        {
            return Err(match fault.code {
                Code::HostChanged => {
                    self.recreate_not_begun(operation, &before, before_anything(fault)).await?
                }
                _ => {
                    self.left_as_it_was(operation, &before, CancelOutcome::Undone.noted_on(fault))
                        .await?
                }
            });
        }
        if let Err(fault) = self.nobody_else(&before).await {
            return Err(self
                .recreate_not_begun(operation, &before, before_anything(fault))
                .await?);
        }
        if pulls
            && let Err(error) =
                self.or_cancelled(id, cancel, self.pulled(&work, &before, &reporter)).await
        {
            // The record stays as it was, to the letter: nothing was found out about this sandbox.
            self.transition(id, mine, Vec::new(), |record| record.operation = None).await?;
            return Err(untouched(CancelOutcome::Undone.noted_on(error.fault)));
        }
        // Written first: whoever dies in the middle must not leave `ready` behind where nothing is.
        let ahead = self.transition(id, mine.clone(), Vec::new(), |record| {
            record.state = State::Provisioning;
            record.reason = Some(Reason::User);
        });
        let record = match ahead.await {
            Ok(record) => record,
            Err(fault) => {
                return Err(self
                    .recreate_not_begun(operation, &before, before_anything(fault))
                    .await?);
            }
        };
        failpoint::reached("recreate.begin");
        let begun = async || {
            let news = vec![(
                EventKind::SandboxDestroying,
                serde_json::json!({"host": before.host, "recreate": true}),
            )];
            self.transition(id, mine.clone(), news, |_| {}).await.map(|_| ())
        };
        let report = match self.tear_down_noting(&record, &reporter, cancel, begun).await {
            Ok(report) => report,
            Err(error) if error.untouched => {
                return Err(self.recreate_not_begun(operation, &before, error).await?);
            }
            Err(error) => return Err(self.broke_off(operation, &before, error.fault).await?),
        };
        failpoint::reached("recreate.torn_down");
        if !report.is_clean() {
            let fault = not_clean(id, &report);
            let message = fault.message.clone();
            let data =
                serde_json::json!({"code": fault.code, "step": "teardown", "message": message});
            self.transition(id, mine, vec![(EventKind::SandboxFailed, data)], move |record| {
                record.state = State::Failed;
                record.reason = Some(Reason::ProvisionFailed);
                record.message = Some(message);
                record.operation = None;
                note_teardown(record, Some(report));
            })
            .await?;
            return Err(fault);
        }
        self.begin_anew(id, mine, record.based_on_snapshot.as_ref(), report).await?;
        Box::pin(self.establish(operation, work, cancel, &reporter)).await.map(|_| ())
    }

    async fn pulled(
        &self,
        work: &Establishment,
        before: &SandboxRecord,
        reporter: &JobReporter,
    ) -> Result<(), ExtensionError> {
        let restored = match work.from {
            Some(_) => Some(self.target(before).await?),
            None => None,
        };
        let extension = self.extension(&work.provision.profile.extension)?;
        extension.pull(&work.provision, restored.as_ref(), reporter).await
    }

    /// Refuses where the host has something of somebody else's that bears its id or a name of it: it would stand in the way
    /// once the sandbox is removed. Where that cannot be told, nothing is removed.
    async fn nobody_else(&self, before: &SandboxRecord) -> Result<(), Error> {
        let extension = self.extension(&before.extension)?;
        let target = self.target_as_known(before).await?;
        let seen = match self.inspect(extension.as_ref(), &target).await {
            Ok(seen) => seen,
            // Nobody else's can be told from its own there.
            Err(fault) if fault.code == Code::Unsupported => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let Some(first) = seen.foreign.first() else { return Ok(()) };
        let (id, host) = (&before.id, &before.host);
        let message =
            format!("something on {host} looks like a part of sandbox {id} and is somebody else's");
        Err(Error::new(Code::Conflict, message)
            .hint(format!(
                "remove it on {host} by hand, or create another sandbox; nothing was removed"
            ))
            .because(first.left_alone().unwrap_or_default())
            .detail("foreign", serde_json::to_value(&seen.foreign).unwrap_or_default()))
    }

    /// Refuses one that failed and whose name another sandbox has by now.
    async fn ensure_name_is_its_own(&self, record: &SandboxRecord) -> Result<(), Error> {
        let Some(name) = record.name.as_deref().filter(|_| record.name_in_use().is_none()) else {
            return Ok(());
        };
        let records = self.parts.sandboxes.list().await?;
        match records
            .iter()
            .find(|other| other.id != record.id && other.name_in_use() == Some(name))
        {
            Some(other) => Err(Error::new(
                Code::Conflict,
                format!("its name {name} is sandbox {}'s by now", other.id),
            )
            .hint(format!("destroy {} first, or leave this one: nothing of it is there", other.id))
            .detail("field", "name")),
            None => Ok(()),
        }
    }

    /// Nothing is there any more: what the record said of it goes, and what the new one owes is on it.
    async fn begin_anew(
        &self,
        id: &SandboxId,
        mine: Guard,
        base: Option<&SnapshotId>,
        report: TeardownReport,
    ) -> Result<(), Error> {
        let patches = match base {
            Some(base) => self.patches_of(base).await?,
            None => Vec::new(),
        };
        let anew = self.transition(id, mine, Vec::new(), move |record| {
            record.handle = None;
            record.reachability = None;
            record.services.clear();
            record.kept_failed = false;
            record.applied_patches.clear();
            record.last_patch_sequence = 0;
            record.patch_state = settled_state(record, &patches);
            record.patch_error = None;
            note_teardown(record, Some(report));
        });
        anew.await.map(|_| ())
    }

    /// A recreate before anything was removed, and why: the record is what it was. Of a host that does not answer it says so.
    async fn recreate_not_begun(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        error: ExtensionError,
    ) -> Result<Error, Error> {
        let message = (!error.is_refusal()).then(|| error.fault.message.clone());
        let was = before.clone();
        self.transition(
            &before.id,
            Guard::Operation(operation.id.clone()),
            Vec::new(),
            move |record| {
                record.state = was.state;
                record.reason = was.reason;
                record.since = was.since;
                record.operation = None;
                if message.is_some() {
                    record.message = message;
                }
            },
        )
        .await?;
        self.saw_fault_of(&before.host, &error.fault).await;
        Ok(error.fault)
    }

    /// A removal that broke off, and why: nobody knows what is still there.
    async fn broke_off(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        fault: Error,
    ) -> Result<Error, Error> {
        let (id, why) = (&before.id, fault.message.clone());
        let reason =
            if fault.code == Code::Cancelled { Reason::Cancelled } else { Reason::HostLost };
        let data = serde_json::json!({"code": fault.code, "step": "teardown", "message": why});
        let news = vec![(EventKind::SandboxFailed, data)];
        let report = unseen(id, &why);
        self.transition(id, Guard::Operation(operation.id.clone()), news, move |record| {
            record.state = State::Failed;
            record.reason = Some(reason);
            record.message = Some(format!("its removal broke off: {why}"));
            record.operation = None;
            record.reachability = None;
            record.services.clear();
            record.expires_at = None;
            note_teardown(record, Some(report));
        })
        .await?;
        self.saw_fault_of(&before.host, &fault).await;
        Ok(fault
            .hint(format!("`sandboxer recreate {id}` tries again; `destroy` removes what is left")))
    }

    /// Writes down why nothing was touched; the fault, for whoever asked.
    async fn left_as_it_was(
        &self,
        operation: &Operation,
        before: &SandboxRecord,
        fault: Error,
    ) -> Result<Error, Error> {
        let message = format!("it was not made again: {}", fault.message);
        let mine = Guard::Operation(operation.id.clone());
        self.transition(&before.id, mine, Vec::new(), move |record| {
            record.operation = None;
            record.message = Some(message);
        })
        .await?;
        self.saw_fault_of(&before.host, &fault).await;
        Ok(fault)
    }
}

/// A fault before anything was removed: whoever reads it fears for the sandbox.
fn untouched(fault: Error) -> Error {
    let hint = fault.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    fault.hint(format!("nothing of the sandbox was touched{hint}"))
}
