//! Create: refuse what can be refused, write ahead, then let a job establish the sandbox (semantics 2).

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{MeterQuote, OwnerStamp, ProvisionRequest};
use crate::domain::name::{HostName, SandboxId, check_label, check_name};
use crate::domain::operation::{Operation, OperationKind, Subject};
use crate::domain::patch::{PatchState, settled_state};
use crate::domain::profile::{Profile, Seconds};
use crate::domain::request::{CreateRequest, Decision, Started};
use crate::domain::root::KnownRoots;
use crate::domain::sandbox::{ProfileRef, Route, SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::failpoint;
use crate::manager::establish::Establishment;
use crate::manager::hosts::{fullness, host_full};
use crate::manager::placement::Placed;
use crate::manager::record::running;
use crate::manager::{SandboxManager, random_id};
use crate::store::Held;

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

/// A create whose request was checked as far as that needs no host.
pub(super) struct Resolved {
    pub(super) profile: Profile,
    pub(super) hash: String,
    pub(super) inputs: BTreeMap<String, String>,
    pub(super) id: Option<SandboxId>,
    pub(super) ttl_s: Option<u64>,
}

/// What is written down before the first remote command.
pub(super) struct Ahead<'a> {
    pub(super) request: &'a CreateRequest,
    pub(super) resolved: &'a Resolved,
    pub(super) route: Route,
    pub(super) quote: Option<MeterQuote>,
    pub(super) request_hash: Option<String>,
    /// The snapshot that it is made from.
    pub(super) base: Option<&'a SnapshotRecord>,
}

impl SandboxManager {
    /// What a create would do; touches nothing.
    pub async fn plan_create(&self, request: &CreateRequest) -> Result<Decision, Error> {
        let resolved = self.resolve(request).await?;
        let extension = self.extension(&resolved.profile.extension)?;
        let mut draft = self.draft(&resolved, request, HostName::new(HostName::LOCAL));
        let mut preview = extension.preview(&draft).await.map_err(|error| error.fault)?;
        // In the order in which a create comes to them: what is wrong whatever the host is, then the host, then what is wrong
        // there.
        let refused = preview.check().err();
        let taken = self.taken(request).await.err();
        let quote = self.quote(&resolved).await?;
        let Placed { verdicts, on } =
            self.place(&resolved.profile, request.host.as_deref(), true).await?;
        let (route, unfit) = match on {
            Ok((route, compose)) => {
                draft.host = route.host.clone();
                draft.compose_host = compose;
                let asked = extension.preview_on_host(&mut draft, &mut preview).await;
                (
                    Some(route),
                    asked.map_err(|error| error.fault).and_then(|()| preview.check()).err(),
                )
            }
            Err(fault) => (None, Some(fault)),
        };
        let error = refused.or(unfit).or(taken).map(Error::from);
        Ok(Decision {
            ok: error.is_none(),
            error,
            profile: resolved.profile.id.to_string(),
            version: resolved.profile.version.to_string(),
            extension: resolved.profile.extension.to_string(),
            inputs: resolved.inputs,
            route,
            verdicts,
            quote_usd: quote.map(|quote| quote.usd),
            ttl_s: resolved.ttl_s,
            preview,
        })
    }

    /// Writes the record, starts the work, and returns at once.
    pub async fn create(&self, request: CreateRequest) -> Result<Started, Error> {
        self.create_marked(request, None).await
    }

    /// As [`Self::create`], with a label of sandboxer's own, which nobody else can give.
    pub(super) async fn create_marked(
        &self,
        mut request: CreateRequest,
        mark: Option<(&str, String)>,
    ) -> Result<Started, Error> {
        let hash = self.request_hash(&request);
        if let Some(found) = self.repeated(&request, &hash).await? {
            return Ok(found);
        }
        let resolved = self.resolve(&request).await?;
        let extension = self.extension(&resolved.profile.extension)?;
        let mut draft = self.draft(&resolved, &request, HostName::new(HostName::LOCAL));
        let mut preview = extension.preview(&draft).await.map_err(|error| error.fault)?;
        preview.check()?;
        let quote = self.quote(&resolved).await?;
        let (route, compose) =
            self.place(&resolved.profile, request.host.as_deref(), false).await?.on?;
        draft.host = route.host.clone();
        draft.compose_host = compose;
        extension.preview_on_host(&mut draft, &mut preview).await.map_err(|error| error.fault)?;
        preview.check()?;
        // Whoever only ever uses one-shot commands must not keep every sandbox that ever was in the live file.
        if let Err(fault) = self.archive().await {
            tracing::warn!(%fault, "the history could not be written");
        }
        self.parts.recipes.put(&resolved.profile).await?;
        request.labels.extend(mark.map(|(key, value)| (key.to_owned(), value)));
        let ahead = Ahead {
            request: &request,
            resolved: &resolved,
            route,
            quote,
            request_hash: Some(hash.clone()),
            base: None,
        };
        let written = match self.write_ahead(ahead).await {
            // The same request came in twice at once: the other one was first.
            Err(fault)
                if fault.code == Code::Conflict && fault.details["field"] == "idempotency_key" =>
            {
                return self.repeated(&request, &hash).await?.ok_or(fault);
            }
            written => written?,
        };
        let (record, operation, held) = written;
        failpoint::reached("create.requested");
        let sandbox = record.clone();
        let work = Establishment {
            provision: ProvisionRequest {
                host: record.host.clone(),
                id: record.id.clone(),
                created_at: record.created_at,
                ..draft
            },
            ready_timeout: resolved.profile.ready_timeout.duration(),
            ttl_s: resolved.ttl_s,
            keep_failed: request.keep_failed,
            recreate: false,
            from: None,
        };
        self.start_establishment(operation.clone(), work, held);
        Ok(Started { operation: Some(operation.id), sandbox })
    }

    /// Whether the id, name or key that a plan asks for is used already. A create is told by the store.
    async fn taken(&self, request: &CreateRequest) -> Result<(), Error> {
        if let Some(first) = self.repeated(request, &self.request_hash(request)).await? {
            return self.repeated_error(&first).await?.map_or(Ok(()), Err);
        }
        let used = |field: &str, word: &str| {
            Err(Error::new(Code::Conflict, format!("the {field} {word} is taken"))
                .detail("field", field))
        };
        let mut records = self.parts.sandboxes.list().await?;
        let mut names: BTreeSet<String> =
            records.iter().filter_map(|record| record.name_in_use().map(str::to_owned)).collect();
        records.extend(self.parts.sandboxes.history().await?);
        let is_id = |word: &str| records.iter().any(|record| record.id.as_str() == word);
        if let Some(name) =
            request.name.as_ref().filter(|name| names.contains(*name) || is_id(name))
        {
            return used("name", name);
        }
        for snapshot in self.parts.snapshots.list().await? {
            names.extend(snapshot.name_in_use().map(str::to_owned));
            names.insert(snapshot.id.to_string());
        }
        let id = request.id.as_ref().or_else(|| request.inputs.get("sandbox_id"));
        match id.filter(|id| names.contains(*id) || is_id(id)) {
            Some(id) => used("id", id),
            None => Ok(()),
        }
    }

    async fn resolve(&self, request: &CreateRequest) -> Result<Resolved, Error> {
        let id = request.profile.as_deref().unwrap_or(&self.parts.settings.default_profile);
        let entry = self.parts.catalogue.profile(id).map_err(|fault| match request.profile {
            Some(_) => fault,
            None => fault
                .hint(format!("it is the default_profile of {}", self.parts.settings.config_file)),
        })?;
        let profile = entry.definition()?.clone();
        entry.ensure_available()?;
        let mut given = request.inputs.clone();
        let input_id = given.remove("sandbox_id");
        let mut inputs = profile.check_inputs(&given).map_err(|problems| {
            let list: Vec<serde_json::Value> = problems
                .iter()
                .map(|p| serde_json::json!({"field": p.field, "message": p.message}))
                .collect();
            let first = problems.into_iter().next();
            let (field, message) = first.map_or_else(Default::default, |p| (p.field, p.message));
            Error::invalid_input(&field, message)
                .hint(format!("`sandboxer profiles show {}` lists its inputs", profile.id))
                .detail("problems", list)
        })?;
        self.settle_directories(&profile, &mut inputs).await?;
        let id = match (request.id.as_deref(), input_id.as_deref()) {
            (Some(a), Some(b)) if a != b => {
                return Err(Error::invalid_input(
                    "id",
                    "--id and the input sandbox_id name different ids",
                ));
            }
            (Some(id), _) | (None, Some(id)) => Some(SandboxId::parse(id)?),
            (None, None) => None,
        };
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        for (key, value) in &request.labels {
            check_label(key, value)?;
        }
        if request
            .idempotency_key
            .as_ref()
            .is_some_and(|key| key.is_empty() || key.len() > 255 || key.contains(char::is_control))
        {
            return Err(Error::invalid_input(
                "idempotency_key",
                "an idempotency key is 1 to 255 bytes without control characters",
            ));
        }
        let ttl_s = profile.parse_ttl(request.ttl.as_deref())?.map(Seconds::get);
        Ok(Resolved { hash: profile.hash(), profile, inputs, id, ttl_s })
    }

    /// The request to the extension, but for what only the written record knows.
    pub(super) fn draft(
        &self,
        resolved: &Resolved,
        request: &CreateRequest,
        host: HostName,
    ) -> ProvisionRequest {
        ProvisionRequest {
            id: resolved.id.clone().unwrap_or_else(|| SandboxId::from_random(0)),
            owner: OwnerStamp { owner: "".into(), machine_id: String::new(), counter: 0 },
            host,
            profile: resolved.profile.clone(),
            inputs: resolved.inputs.clone(),
            created_at: self.now(),
            expires_at: None,
            allow_large: request.yes,
            compose_host: None,
            roots: KnownRoots::default(),
        }
    }

    pub(super) async fn quote(&self, resolved: &Resolved) -> Result<Option<MeterQuote>, Error> {
        let extension = self.extension(&resolved.profile.extension)?;
        let seconds = resolved.ttl_s.unwrap_or(3600);
        extension
            .estimate_cost(
                &resolved.profile,
                &resolved.inputs,
                std::time::Duration::from_secs(seconds),
            )
            .await
            .map_err(|error| error.fault)
    }

    /// Writes the record before the first remote command, under the sandbox's lock.
    pub(super) async fn write_ahead(
        &self,
        ahead: Ahead<'_>,
    ) -> Result<(SandboxRecord, Operation, Box<dyn Held>), Error> {
        let Ahead { request, resolved, route, quote, request_hash, base } = ahead;
        let kind = if base.is_some() { OperationKind::Restore } else { OperationKind::Create };
        let owners = self.parts.installation.owners().await?;
        let owner = owners
            .into_iter()
            .next()
            .ok_or_else(|| Error::internal("this installation has no owner id"))?;
        let patches = match base {
            Some(base) => self.patches_of(&base.id).await?,
            None => Vec::new(),
        };
        for _ in 0..ID_TRIES {
            let id = resolved.id.clone().unwrap_or_else(|| random_id(&self.parts.dice));
            let Some(held) = self.parts.locks.try_lock(&id).await? else {
                if resolved.id.is_some() {
                    return Err(self.busy(&id).await);
                }
                continue;
            };
            let mut operation = self.new_operation(kind.clone(), &id);
            if let Some(base) = base {
                operation.subject = Subject::SandboxAndSnapshot(id.clone(), base.id.clone());
            }
            let mut record = self.new_record(&id, request, resolved, &route, owner.clone());
            record.quote_usd = quote.as_ref().map(|quote| quote.usd);
            record.request_hash.clone_from(&request_hash);
            record.based_on_snapshot = operation.subject.snapshot().cloned();
            record.patch_state = settled_state(&record, &patches);
            record.operation = Some(running(&operation));
            record.pending.push(crate::domain::event::PendingEvent {
                id: crate::domain::event::derived_event_id(
                    id.as_str(),
                    1,
                    &EventKind::SandboxRequested,
                ),
                time: record.created_at,
                kind: EventKind::SandboxRequested,
                sandbox_id: Some(id.clone()),
                actor: self.actor(),
                data: serde_json::json!({
                    "profile": resolved.profile.id,
                    "host": route.host,
                    "name": request.name,
                    "snapshot_id": operation.subject.snapshot(),
                }),
            });
            // First the operation, then the record that names it: whoever reads the record can wait for its end.
            self.parts.operations.put(operation.clone()).await?;
            let spec = self.parts.transports.spec(&record.host);
            // Others may have been placed there since the host was chosen.
            let admit = |live: &[&SandboxRecord]| {
                let full = spec
                    .as_ref()
                    .and_then(|spec| Some((spec, fullness(spec, live.iter().copied())?)));
                full.map_or(Ok(()), |(spec, full)| Err(host_full(spec, &full)))
            };
            match self.parts.sandboxes.insert_if(record, &admit).await {
                Ok(record) => {
                    self.append_pending(&record).await;
                    if let Err(fault) = self.parts.ledger.hold(&id, quote.as_ref()).await {
                        // The record must not stay as if somebody worked on it.
                        self.abandon(
                            operation,
                            Error::new(fault.code.clone(), fault.message.clone()),
                        )
                        .await;
                        return Err(fault);
                    }
                    return Ok((record, operation, held));
                }
                Err(fault) => {
                    let again = fault.code == Code::Conflict
                        && resolved.id.is_none()
                        && fault.details["field"] == "id";
                    let told = Error::new(fault.code.clone(), fault.message.clone());
                    self.end_operation(operation, Err(told)).await;
                    if !again {
                        return Err(fault);
                    }
                }
            }
        }
        Err(Error::internal("no free sandbox id was found"))
    }

    fn new_record(
        &self,
        id: &SandboxId,
        request: &CreateRequest,
        resolved: &Resolved,
        route: &Route,
        owner: crate::domain::name::OwnerId,
    ) -> SandboxRecord {
        let now = self.now();
        let wait = resolved.profile.ready_timeout.get();
        SandboxRecord {
            id: id.clone(),
            name: request.name.clone(),
            labels: request.labels.clone(),
            profile: ProfileRef {
                id: resolved.profile.id.clone(),
                version: resolved.profile.version.to_string(),
                hash: resolved.hash.clone(),
            },
            extension: resolved.profile.extension.clone(),
            host: route.host.clone(),
            host_identity: None,
            workdir: None,
            state: State::Requested,
            reason: None,
            message: None,
            since: now,
            observed_at: None,
            revision: 0,
            operation: None,
            inputs: resolved.inputs.clone(),
            handle: None,
            reachability: None,
            services: Vec::new(),
            created_at: now,
            ready_at: None,
            expires_at: resolved.ttl_s.map(|ttl| now.plus_seconds(wait.saturating_add(ttl))),
            max_expires_at: None,
            ttl_s: resolved.ttl_s,
            based_on_snapshot: None,
            applied_patches: Vec::new(),
            last_patch_sequence: 0,
            patch_state: PatchState::None,
            patch_error: None,
            undo_of: None,
            quote_usd: None,
            hold_usd: None,
            cost_usd: None,
            route: Some(route.clone()),
            attempts: route.verdicts.clone(),
            rewrites: Vec::new(),
            failure: None,
            teardown: Vec::new(),
            leftovers: Vec::new(),
            not_preserved: BTreeMap::new(),
            telemetry: None,
            certificate: None,
            actor: self.actor(),
            owner,
            idempotency_key: request.idempotency_key.clone(),
            request_hash: None,
            kept_failed: false,
            pending: Vec::new(),
        }
    }
}
