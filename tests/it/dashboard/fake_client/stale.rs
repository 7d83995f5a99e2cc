//! Stale things of the fake, of every class, and what becomes of a plan of them.

use super::*;
use sandboxer::domain::stale::{
    HostPass, PassState, ReapAction, ReapItem, ReapOutcome, ReapRequest, StaleClass, StaleItem,
};
use sandboxer::domain::undo::UndoRequest;

/// Owner of what is ours.
pub const OURS: &str = "own-11111111";

/// Something stale, as the host or the record has it.
pub fn stale_item(
    class: StaleClass,
    action: ReapAction,
    (id, name, host): (&str, Option<&str>, &str),
    why: &str,
    now: Time,
) -> StaleItem {
    StaleItem {
        possible: vec![action.clone()],
        class,
        action,
        host: HostName::new(host),
        sandbox_id: Some(id.to_owned()),
        snapshot_id: None,
        name: name.map(str::to_owned),
        owner: Some(OURS.to_owned()),
        profile: Some("profile.compose-e2e".to_owned()),
        state: None,
        created_at: Some(now.minus_seconds(93_600)),
        expires_at: None,
        age_s: Some(93_600),
        bytes: Some(120_000_000),
        protected: false,
        resources: vec![Resource { kind: "directory".to_owned(), id: format!("sbx-{id}") }],
        identity: format!("sha256:{id}"),
        why: why.to_owned(),
    }
}

/// Something stale that a record tells of.
pub fn stale_record(
    class: StaleClass,
    action: ReapAction,
    record: &SandboxRecord,
    why: &str,
    now: Time,
) -> StaleItem {
    let place = (record.id.as_str(), record.name.as_deref(), record.host.as_str());
    StaleItem {
        state: Some(record.state.clone()),
        identity: format!("revision {}", record.revision),
        expires_at: record.expires_at,
        ..stale_item(class, action, place, why, now)
    }
}

/// A world with twelve stale things of every class over three hosts, one of which could not be read.
pub fn stale_world(now: Time) -> Scenario {
    let mut world = world(now);
    let mut over = ready(
        record("e1e1e1e1", Some("shop-3"), "compose-e2e", "sandboxer01", State::Ready, now),
        now.minus_seconds(20_000),
    );
    over.expires_at = Some(now.minus_seconds(5600));
    let mut stuck = held(
        ready(
            record("57c57c57", Some("half"), "compose-e2e", "local", State::Provisioning, now),
            now.minus_seconds(9000),
        ),
        OperationKind::Create,
        now,
    );
    stuck.state = State::Provisioning;
    let lost = record("1057aaaa", None, "compose-e2e", "coulombcore", State::Lost, now);
    world.records.extend([over, stuck, lost]);
    let items = items(&world.records, now);
    let hosts = passes(&world.hosts);
    world.stale =
        Some(StaleReport { at: now, hosts: hosts.clone(), held_back: None, items: items.clone() });
    world.plan = Some(ReapPlan {
        id: PlanId::from_random(0x1a2b_3c4d),
        at: now,
        valid_until: now.plus_seconds(3600),
        actor: operator(),
        hosts,
        held_back: None,
        items,
    });
    world
}

fn passes(hosts: &[HostView]) -> Vec<HostPass> {
    let pass = |view: &HostView| {
        let down = view.state == HostState::Down;
        HostPass {
            host: view.name.clone(),
            state: if down { PassState::Unread } else { PassState::Read },
            machine_id: None,
            error: down.then(|| {
                Error::new(Code::HostUnreachable, "connect to host vm-haskell: connection refused")
            }),
        }
    };
    hosts.iter().map(pass).collect()
}

fn items(records: &[SandboxRecord], now: Time) -> Vec<StaleItem> {
    use ReapAction as A;
    use StaleClass as C;
    let known = |id: &str| records.iter().find(|record| record.id.as_str() == id).unwrap();
    let of = |class, action, id: &str, why: &str| stale_record(class, action, known(id), why, now);
    let on = |class, action, id: &str, name, host: &str, why: &str| {
        stale_item(class, action, (id, name, host), why, now)
    };
    let orphan = StaleItem {
        possible: vec![A::Adopt, A::Remove],
        expires_at: Some(now.plus_seconds(7200)),
        ..on(
            C::OrphanStack,
            A::Adopt,
            "0a0a0a01",
            Some("lost-env"),
            "sandboxer01",
            "no record knows it; its deadline is in 2h",
        )
    };
    let archive = StaleItem {
        possible: vec![A::Adopt, A::Remove],
        sandbox_id: None,
        snapshot_id: Some("snap-0badcafe".to_owned()),
        ..on(
            C::OrphanSnapshot,
            A::Keep,
            "",
            Some("old-env"),
            "coulombcore",
            "no record knows this archive; archives are removed only where that is asked for",
        )
    };
    let never = |item: StaleItem, owner: Option<&str>| StaleItem {
        possible: Vec::new(),
        owner: owner.map(str::to_owned),
        ..item
    };
    let protected = StaleItem {
        protected: true,
        possible: Vec::new(),
        ..on(
            C::OrphanDir,
            A::Keep,
            "0a0a0a04",
            Some("archive"),
            "coulombcore",
            "no record knows it; it is labelled protect=true",
        )
    };
    vec![
        of(C::Expired, A::Destroy, "e1e1e1e1", "expired 1h33 ago"),
        of(C::Failed, A::Destroy, "0b1c2d3e", "failed 26h ago"),
        of(C::Stuck, A::Recover, "57c57c57", "its create's process 4711 on desk-2 is dead"),
        of(C::Lost, A::Close, "1057aaaa", "coulombcore has nothing of it"),
        orphan,
        on(
            C::OrphanStack,
            A::Remove,
            "0a0a0a02",
            None,
            "coulombcore",
            "no record knows it; its deadline passed 3h ago",
        ),
        on(
            C::OrphanDir,
            A::Remove,
            "0a0a0a03",
            Some("try"),
            "coulombcore",
            "no record knows it; its deadline passed 22h ago",
        ),
        archive,
        protected,
        never(
            on(
                C::Foreign,
                A::Keep,
                "f0f0f0f0",
                Some("theirs"),
                "coulombcore",
                "it is another owner's",
            ),
            Some("own-99999999"),
        ),
        never(
            on(C::Foreign, A::Keep, "f0f0f0f1", None, "sandboxer01", "it is another owner's"),
            Some("own-99999999"),
        ),
        never(
            on(
                C::Unreadable,
                A::Keep,
                "????",
                None,
                "local",
                "its manifest cannot be read: expected value at line 1 column 1",
            ),
            None,
        ),
    ]
}

impl FakeClient {
    /// Begins a reap: each item to do takes a step.
    pub(super) fn begin_reap(&self, request: &ReapRequest) -> Result<ReapStarted, Error> {
        let PlanSource::Plan(plan) = &request.plan else {
            return Err(Error::new(Code::NotFound, "the fake keeps no plans"));
        };
        let to_do: Vec<StaleItem> = plan.to_do().cloned().collect();
        let count = to_do.len() as u64;
        let words: Vec<String> =
            to_do.iter().map(|item| format!("{} {}", item.action, item.id())).collect();
        self.asked.lock().unwrap().push(format!("reap {}: {}", plan.id, words.join(", ")));
        let report = ReapReport { plan: plan.id.clone(), items: Vec::new() };
        self.inner.lock().unwrap().reap = report.clone();
        let operation =
            self.spawn("reap".to_owned(), move |client, operation, cancelled| async move {
                for item in to_do {
                    tokio::time::sleep(client.scenario.pace).await;
                    if *cancelled.borrow() {
                        return Err(
                            CancelOutcome::Stopped.error("cancelled; the rest of the plan is left")
                        );
                    }
                    let done = done(&item);
                    client.inner.lock().unwrap().reap.items.push(done.clone());
                    let progress = Progress {
                        operation: operation.clone(),
                        kind: OperationKind::Reap,
                        sandbox_id: None,
                        snapshot_id: None,
                        stage: "reap".to_owned(),
                        step: 1,
                        steps: 1,
                        done: Some(client.inner.lock().unwrap().reap.items.len() as u64),
                        of: Some(count),
                        bytes: None,
                        message: Some(format!("{} {}: {}", done.id, done.outcome, done.message)),
                    };
                    let _ = client.updates.send(Update::Reaped(operation.clone(), Box::new(done)));
                    let _ = client.updates.send(Update::Progress(progress));
                    if item.state.is_some() && item.action == ReapAction::Destroy {
                        let id = SandboxId::new(item.id());
                        client.change(&id, EventKind::SandboxDestroyed, |record| {
                            record.state = State::Destroyed;
                        });
                    }
                }
                Ok(())
            });
        Ok(ReapStarted { operation: Some(operation), report })
    }
}

/// What became of an item.
pub fn done(item: &StaleItem) -> ReapItem {
    let (outcome, message) = match item.action {
        ReapAction::Recover => (ReapOutcome::Recovered, "back to what its host says: ready"),
        ReapAction::Close => (ReapOutcome::Closed, "its record is closed"),
        ReapAction::Adopt => (ReapOutcome::Adopted, "there is a record of it now"),
        _ if item.class == StaleClass::OrphanDir => {
            (ReapOutcome::Failed, "rm: cannot remove 'data': Permission denied")
        }
        _ if item.id() == "0a0a0a02" => (ReapOutcome::Skipped, "a container came since the plan"),
        _ => (ReapOutcome::Removed, "nothing of it is left"),
    };
    ReapItem {
        id: item.id().to_owned(),
        ok: outcome != ReapOutcome::Failed,
        class: item.class.clone(),
        host: item.host.clone(),
        action: item.action.clone(),
        error: (outcome == ReapOutcome::Failed).then(|| Error::new(Code::OperationFailed, message)),
        outcome,
        message: message.to_owned(),
    }
}

impl FakeClient {
    /// Begins to bring a removed sandbox back.
    pub(super) fn begin_undo(&self, request: &UndoRequest) -> Result<OnSandbox, Error> {
        let old = request.id.clone().unwrap_or_default();
        self.asked.lock().unwrap().push(format!("undo {old}"));
        let snapshot = {
            let mut inner = self.inner.lock().unwrap();
            inner.next += 1;
            let found = inner.snapshots.get(&SnapshotId::new(old.as_str())).cloned();
            found.ok_or_else(|| Error::new(Code::NotFound, format!("nothing is kept of {old}")))?
        };
        let name = snapshot.sandbox_name.as_deref();
        let id = SandboxId::from_random(0xbacc_0000 + self.inner.lock().unwrap().next);
        let mut record =
            record(id.as_str(), name, "compose-e2e", "local", State::Requested, self.now());
        record.undo_of = Some(snapshot.sandbox_id);
        self.insert(record.clone());
        let operation = self.start(OperationKind::Restore, &id);
        Ok(OnSandbox { operation: Some(operation), sandbox: record })
    }
}
