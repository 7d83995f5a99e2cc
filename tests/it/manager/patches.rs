//! Patches on snapshots: once in each sandbox that is based on it, in order, stopping at the first failure; and never twice
//! without somebody saying so.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use sandboxer::domain::error::Kind;
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::patch::{Patch, PatchState};
use sandboxer::domain::request::{
    ApplyRequest, CreateRequest, PatchRequest, RecreateRequest, RestoreRequest, SleepRequest,
};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Code, Error, OperationState, SandboxRecord};
use tokio::sync::Notify;

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, from_snapshot, of, test_env, with_restored, with_snapshot};

impl TestEnv {
    /// A snapshot of a sandbox whose profile gives a patch, and a pass, so much time.
    async fn base_within(&self, timeout: &str, pass_timeout: &str) -> String {
        let profile = include_str!("../../../profiles/sandbox-canary.yaml")
            .replace("profile.sandbox-canary", "profile.short");
        std::fs::create_dir(self.folder.path().join("profiles")).unwrap();
        let limits = format!("patches: {{timeout: {timeout}, pass_timeout: {pass_timeout}}}\n");
        std::fs::write(self.folder.path().join("profiles/short.yaml"), profile + &limits).unwrap();
        let request =
            CreateRequest { profile: Some("profile.short".into()), ..CreateRequest::default() };
        let record = self.made(request).await;
        Box::pin(self.snapshot(&record.id, "my-env")).await.unwrap().id.to_string()
    }

    pub(crate) async fn add(&self, snapshot: impl Display, script: &str) -> Patch {
        self.manager.add_patch(&patch(snapshot, script)).await.unwrap()
    }

    pub(crate) async fn restored(&self, snapshot: impl Display) -> SandboxRecord {
        let (record, ended) = self.restore(snapshot).await;
        assert_eq!((ended, &record.state), (Ok(()), &State::Ready));
        record
    }

    async fn sleep_and_wake(&self, id: impl Display) -> SandboxRecord {
        self.sleep(&id).await.1.unwrap();
        let (record, ended) = self.wake(id).await;
        assert_eq!(ended, Ok(()), "a patch that fails takes no sandbox away");
        assert_eq!(record.state, State::Ready, "a patch that fails takes no sandbox away");
        record
    }

    pub(crate) fn scripts(&self, scripts: &[Script]) {
        self.script.patch.extend(scripts.iter().cloned());
    }

    /// Sequences that were run on a sandbox, in the order in which they were.
    pub(crate) fn ran(&self, id: impl Display) -> Vec<u64> {
        let on = format!(" on {id}");
        let asked = self.script.asked();
        let runs = asked
            .iter()
            .filter_map(|asked| asked.strip_prefix("patch ")?.strip_suffix(on.as_str()));
        runs.map(|sequence| sequence.parse().unwrap()).collect()
    }

    async fn sequences(&self, snapshot: &str) -> Vec<u64> {
        let view = self.manager.snapshot_view(snapshot).await.unwrap();
        view.patches.iter().map(|patch| patch.sequence).collect()
    }
}

pub(crate) fn patch(snapshot: impl Display, script: &str) -> PatchRequest {
    PatchRequest {
        snapshot: snapshot.to_string(),
        script: script.to_owned(),
        ..PatchRequest::default()
    }
}

fn has(record: &SandboxRecord) -> Vec<(u64, &str)> {
    record.applied_patches.iter().map(|run| (run.sequence, run.state.as_str())).collect()
}

/// The acceptance list of semantics 7, from its first line to its last.
#[tokio::test]
async fn the_acceptance_list() {
    let (house, base) = with_snapshot().await;
    assert_eq!(house.add(&base, "one").await.sequence, 1);
    let one = house.restored(&base).await;
    assert_eq!((has(&one), one.last_patch_sequence), (vec![(1, "applied")], 1));
    let run = &one.applied_patches[0];
    assert_eq!(
        (run.exit_status, run.took_ms, run.output.as_deref()),
        (Some(0), Some(2000), Some("ran one\n"))
    );
    assert!(run.started_at.is_some() && one.patch_state == PatchState::Applied);
    let id = one.id.as_str();

    house.add(&base, "two").await;
    let waits = house.record(id).await;
    assert_eq!(house.ran(id), vec![1], "adding one runs nothing");
    assert_eq!(waits.patch_state, PatchState::Pending, "adding one runs nothing");
    let one = house.sleep_and_wake(id).await;
    assert_eq!((has(&one), house.ran(id)), (vec![(1, "applied"), (2, "applied")], vec![1, 2]));

    house.add(&base, "three").await;
    house.add(&base, "four").await;
    house.scripts(&[Script::Exits(7)]);
    let one = house.sleep_and_wake(id).await;
    assert_eq!(house.ran(id), vec![1, 2, 3], "the fourth was not begun");
    assert_eq!(one.last_patch_sequence, 2, "the fourth was not begun");
    assert_eq!(one.patch_state, PatchState::Failed);
    assert_eq!(one.applied_patches[2].exit_status, Some(7));
    let error = one.patch_error.clone().unwrap();
    for words in [
        "patch 3 (pat-",
        "exit status 7",
        "patches remove my-env 3",
        &format!("patches apply {id} --retry"),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let again = house.sleep_and_wake(id).await;
    assert_eq!(house.ran(id).len(), 3, "it does not run again by itself");
    assert_eq!(again.patch_error, one.patch_error, "it does not run again by itself");

    house.manager.remove_patch(&base, "3").await.unwrap();
    assert_eq!(house.sequences(&base).await, [1, 2, 4]);
    let one = house.sleep_and_wake(id).await;
    assert_eq!((house.ran(id), &one.patch_error), (vec![1, 2, 3, 4], &None));
    assert_eq!((&one.patch_state, one.last_patch_sequence), (&PatchState::Applied, 4));
    house.manager.remove_patch(&base, "3").await.unwrap_err().coded(Code::NotFound);
    house.manager.remove_patch(&base, "4").await.unwrap();
    assert_eq!(house.add(&base, "five").await.sequence, 5);
    let kinds = house.kinds().await;
    let count = |kind: &str| kinds.iter().filter(|k| *k == kind).count();
    assert_eq!((count("patch.added"), count("patch.removed")), (5, 2));
    assert_eq!((count("patch.applied"), count("patch.failed")), (3, 1));
}

/// The picture of semantics 7: it reaches 1 and 2; never B, never 3, never the sandbox that A was taken from.
#[tokio::test]
async fn a_patch_goes_one_level_deep() {
    let house = test_env();
    let source = house.ready().await;
    let a = house.snapshot(&source, "my-env").await.unwrap().id.to_string();
    let (one, two) = (house.restored(&a).await, house.restored(&a).await);
    let b = house.snapshot(&one.id, "frozen").await.unwrap();
    let three = house.restored(&b.id).await;
    house.add(&a, "fix").await;
    for id in [source.as_str(), one.id.as_str(), two.id.as_str(), three.id.as_str()] {
        house.sleep_and_wake(id).await;
    }
    let ran = |record: &SandboxRecord| house.ran(&record.id).len();
    assert_eq!((ran(&one), ran(&two), ran(&three), house.ran(&source).len()), (1, 1, 0, 0));
    let b = house.manager.snapshot_view("frozen").await.unwrap();
    assert_eq!(b.patches.len(), 0, "an artifact, and a new level");
    assert_eq!(b.record.next_patch_sequence, 1, "an artifact, and a new level");
    let later = house.snapshot(&one.id, "later").await.unwrap();
    assert_eq!((later.patch_level, later.next_patch_sequence), (1, 1), "what it was taken with");
}

#[tokio::test]
async fn a_recreate_applies_them_all_again() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    let record = house.restored(&base).await;
    let again = of(&record.id);
    let (_, record) = house.finished(house.manager.recreate(&again).await).await;
    assert_eq!(house.ran(&record.id), [1, 2, 1, 2]);
    // One that fails half-way has none of them.
    house.script(&[Act::fails("no disk")], &[], &[]);
    let (_, failed) = house.finished(house.manager.recreate(&again).await).await;
    assert_eq!(
        (has(&failed), &failed.patch_state, &failed.state),
        (vec![], &PatchState::Pending, &State::Failed)
    );
    assert_eq!(has(&record), vec![(1, "applied"), (2, "applied")]);
    assert_eq!(record.patch_state.clone(), PatchState::Applied);
}

#[tokio::test]
async fn a_script_over_its_time_has_failed() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "slow").await;
    house.scripts(&[Script::TimedOut]);
    let record = house.restored(&base).await;
    assert_eq!(has(&record), [(1, "failed")]);
    assert!(record.patch_error.unwrap().contains("was ended after 300 s"));
}

#[tokio::test]
async fn a_patch_that_comes_after_the_passs_time_waits_for_the_next() {
    let house = test_env();
    let base = house.base_within("4s", "4s").await;
    for script in ["one", "two", "three"] {
        house.add(&base, script).await;
    }
    // Less than a second is left for the third: it would be ended before it could do anything.
    house.scripts(&[
        Script::Takes(Duration::from_millis(300)),
        Script::Takes(Duration::from_millis(3200)),
    ]);
    let record = house.restored(&base).await;
    assert_eq!(has(&record), vec![(1, "applied"), (2, "applied")]);
    assert_eq!(record.patch_state, PatchState::Pending);
    let error = record.patch_error.as_ref().unwrap();
    assert!(error.contains("patch 3 (pat-"), "{error}");
    assert!(error.contains("not begun: the pass may take 4s"), "{error}");
    assert!(error.contains("patches apply"), "{error}");
    let (record, ended) = house.apply(&record.id, false).await;
    assert_eq!((ended, has(&record).len(), record.patch_error), (Ok(()), 3, None));
}

/// The last patch of a pass gets what is left of its time, and not its own whole limit.
#[tokio::test]
async fn a_pass_ends_within_its_time_whatever_a_patch_may_take() {
    let house = test_env();
    let base = house.base_within("4s", "4s").await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    house.scripts(&[
        Script::Works(Duration::from_millis(500)),
        Script::Works(Duration::from_secs(10)),
    ]);
    let record = house.restored(&base).await;
    // What they were given, and not how long it took: the machine may be busy.
    let limits = house.script.limits.get();
    assert_eq!(limits.len(), 2, "{limits:?}");
    assert!(limits[1] <= Duration::from_millis(3500), "{limits:?}");
    assert_eq!(has(&record), vec![(1, "applied"), (2, "failed")]);
    assert_eq!(record.patch_state, PatchState::Failed);
    let error = record.patch_error.as_ref().unwrap();
    assert!(error.contains("patch 2 (pat-") && error.contains("was ended after"), "{error}");
}

#[tokio::test]
async fn one_of_which_nobody_knows_how_it_ended_runs_again_only_on_request() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    house.scripts(&[Script::LinkBreaks]);
    let record = house.restored(&base).await;
    let id = record.id.as_str();
    assert_eq!((has(&record), &record.patch_state), (vec![(1, "unknown")], &PatchState::Unknown));
    assert!(record.patch_error.unwrap().contains("the link broke"));
    let record = house.sleep_and_wake(id).await;
    assert_eq!(house.ran(id), vec![1], "what comes behind it waits too");
    assert_eq!(record.patch_state, PatchState::Unknown, "what comes behind it waits too");
    assert_eq!(house.apply(id, false).await.1, Err(Code::OperationFailed));
    let (record, ended) = house.apply(id, true).await;
    assert_eq!((ended, has(&record)), (Ok(()), vec![(1, "applied"), (2, "applied")]));
    assert_eq!((house.ran(id), record.patch_error), (vec![1, 1, 2], None));
}

#[tokio::test]
async fn one_that_was_not_begun_is_as_if_it_had_not_been_tried() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.scripts(&[Script::NotBegun]);
    let record = house.restored(&base).await;
    assert_eq!((has(&record), &record.patch_state), (vec![], &PatchState::Pending));
    assert!(record.patch_error.unwrap().contains("could not be begun: no route"));
    let (record, ended) = house.apply(&record.id, false).await;
    assert_eq!((ended, has(&record)), (Ok(()), vec![(1, "applied")]));
    // With its patch goes what was said of it.
    house.scripts(&[Script::NotBegun]);
    let other = house.restored(&base).await;
    assert!(other.patch_error.is_some());
    house.manager.remove_patch(&base, "1").await.unwrap();
    let other = house.record(&other.id).await;
    assert_eq!((&other.patch_state, &other.patch_error), (&PatchState::None, &None));
}

#[tokio::test]
async fn one_that_is_taken_away_while_the_pass_runs_is_not_run_any_more() {
    let (house, base) = with_snapshot().await;
    for script in ["one", "two", "three"] {
        house.add(&base, script).await;
    }
    let go_on = Arc::new(Notify::new());
    house.scripts(&[Script::Until(Arc::clone(&go_on))]);
    let started = house.manager.restore(&from_snapshot(&base)).await.unwrap();
    let id = started.sandbox.id.to_string();
    assert_eq!(started.sandbox.patch_state, PatchState::Pending, "it owes them from the beginning");
    house.script.until_asked("patch").await;
    house.other.remove_patch(&base, "2").await.unwrap();
    go_on.notify_one();
    let (_, record) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    let record = record.unwrap();
    assert_eq!((house.ran(&id), has(&record)), (vec![1, 3], vec![(1, "applied"), (3, "applied")]));
    assert_eq!((record.patch_state, record.patch_error), (PatchState::Applied, None));
}

/// Whoever dies between `applying` and the end leaves a patch that is not run again by itself.
#[tokio::test]
async fn a_dead_processs_patch_is_unknown_and_not_run_again() {
    for recover in [true, false] {
        let (house, base, record) = with_restored().await;
        let id = record.id.to_string();
        house.add(&base, "one").await;
        house.scripts(&[Script::Hangs]);
        let request = of(&id);
        killed(&house, "patch 1", |manager| async move { manager.apply_patches(&request).await });
        let dead = house.record(&id).await;
        assert_eq!((has(&dead), &dead.patch_state), (vec![(1, "applying")], &PatchState::Applying));
        if recover {
            let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
            house.script.seen.set(Inspection { resources, ready: true, ..Inspection::default() });
            assert!(house.manager.recover().await.unwrap()[0].ok);
            let record = house.record(&id).await;
            assert_eq!((&record.state, has(&record)), (&State::Ready, vec![(1, "unknown")]));
            assert!(record.patch_error.unwrap().contains("--retry"));
        }
        let record = house.sleep_and_wake(&id).await;
        assert_eq!((house.ran(&id), &record.patch_state), (vec![1], &PatchState::Unknown));
        assert!(record.patch_error.unwrap().contains("--retry"));
        assert_eq!(house.apply(&id, true).await.1, Ok(()));
        assert_eq!(house.ran(&id), [1, 1]);
    }
}

#[tokio::test]
async fn a_pass_that_is_called_off_frees_its_sandbox() {
    let (house, base, record) = with_restored().await;
    house.add(&base, "one").await;
    house.scripts(&[Script::Hangs]);
    let operation = house.manager.apply_patches(&of(&record.id)).await.unwrap().operation.unwrap();
    house.script.until_asked("patch").await;
    let during = house.other.get(record.id.as_str()).await.unwrap();
    assert_eq!(during.state, State::Ready, "it stays ready");
    assert_eq!(during.patch_state, PatchState::Applying, "it stays ready");
    assert_eq!(during.operation.unwrap().kind.as_str(), "patch");
    house.other.cancel(&operation).await.unwrap();
    let (operation, record) = house.manager.finish(&operation).await.unwrap();
    let record = record.unwrap();
    assert_eq!((operation.state, &record.operation), (OperationState::Cancelled, &None));
    assert_eq!((&record.state, has(&record)), (&State::Ready, vec![(1, "unknown")]));
}

#[tokio::test]
async fn patches_are_applied_to_what_is_ready_and_based_on_a_snapshot() {
    let (house, base, record) = with_restored().await;
    house.sleep(&record.id).await.1.unwrap();
    let code = async |id: &str| house.manager.apply_patches(&of(id)).await.unwrap_err();
    let asleep = code(record.id.as_str()).await;
    asleep.coded(Code::Conflict).hints("wake");
    let source = house.manager.snapshot_view(&base).await.unwrap().record.sandbox_id;
    assert_eq!(code(source.as_str()).await.code, Code::Conflict);
    assert_eq!(code("nosuch00").await.code, Code::NotFound);
}

#[tokio::test]
async fn what_is_no_patch_is_refused_and_uses_up_no_number() {
    let (house, base) = with_snapshot().await;
    let field = async |request: PatchRequest| {
        let fault: Error = house.manager.add_patch(&request).await.unwrap_err();
        (fault.code, fault.details["field"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(field(patch(&base, " \n")).await, (Code::InvalidInput, "script".into()));
    let nowhere = PatchRequest { run_in: Some("a b".into()), ..patch(&base, "true") };
    assert_eq!(field(nowhere).await, (Code::InvalidInput, "run_in".into()));
    assert_eq!(field(patch("snap-00000000", "true")).await.0, Code::NotFound);
    assert_eq!(field(patch("my-env", "true")).await.0, Code::NotFound, "an exact id is asked for");
    house.script.shelf.capture.push(Act::fails("full"));
    let id = house.ready().await;
    house.snapshot(&id, "broken").await.unwrap_err();
    let broken = house.manager.snapshot_view("broken").await.unwrap().record.id;
    assert_eq!(field(patch(broken.as_str(), "true")).await.0, Code::Conflict);
    assert_eq!(house.add(&base, "true").await.sequence, 1);
}

#[tokio::test]
async fn patches_added_at_once_get_numbers_of_their_own() {
    let (house, base) = with_snapshot().await;
    let request = patch(&base, "true");
    let adds = (0..6).map(|n| {
        if n % 2 == 0 { house.manager.add_patch(&request) } else { house.other.add_patch(&request) }
    });
    let mut got: Vec<u64> = futures_util::future::join_all(adds)
        .await
        .into_iter()
        .map(|added| added.unwrap().sequence)
        .collect();
    got.sort_unstable();
    assert_eq!(got, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn status_says_who_has_it_will_get_it_or_failed() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.add(&base, "two").await;
    let well = house.restored(&base).await;
    house.scripts(&[Script::Exits(1)]);
    let badly = house.restored(&base).await;
    let third = house.add(&base, "three").await;
    let status = house.manager.patch_status(&base).await.unwrap();
    assert_eq!(status.iter().map(|line| line.patch.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    let of = |at: usize, record: &SandboxRecord| {
        let line = status[at].sandboxes.iter().find(|line| line.id == record.id).unwrap();
        (
            line.state.as_str().to_owned(),
            line.blocked,
            line.run.as_ref().and_then(|run| run.exit_status),
        )
    };
    assert_eq!(of(0, &well), ("applied".into(), false, Some(0)));
    assert_eq!(of(2, &well), ("pending".into(), false, None));
    assert_eq!(of(0, &badly), ("failed".into(), false, Some(1)));
    assert_eq!(of(1, &badly), ("pending".into(), true, None));
    house.destroy(&badly.id).await.1.unwrap();
    let status = house.manager.patch_status(&base).await.unwrap();
    assert!(
        status.iter().all(|line| line.sandboxes.len() == 1),
        "what is over gets nothing any more"
    );
    house.manager.remove_patch(&base, third.id.as_str()).await.unwrap();
    let well = house.record(&well.id).await;
    assert_eq!(well.patch_state, PatchState::Applied, "it owes nothing any more");
}

/// What was said of a patch ends with it, or with its snapshot.
#[tokio::test]
async fn nobody_advises_on_a_patch_that_is_gone() {
    for forced in [false, true] {
        let (house, base) = with_snapshot().await;
        house.add(&base, "one").await;
        house.scripts(&[Script::Exits(3)]);
        let id = house.restored(&base).await.id.to_string();
        if forced {
            house.delete(&base, true).await.unwrap();
        } else {
            house.manager.remove_patch(&base, "1").await.unwrap();
        }
        let record = house.record(&id).await;
        assert_eq!((record.patch_state, record.patch_error), (PatchState::None, None));
        assert_eq!(record.applied_patches[0].exit_status, Some(3), "what ran, ran");
    }
}

/// A restore fails over a patch only when it is told to. The sandbox is gone by then: nothing can be applied to it again.
#[tokio::test]
async fn a_restore_that_wants_all_patches_says_what_helps() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.scripts(&[Script::Exits(3), Script::Exits(3)]);
    assert_eq!(house.restored(&base).await.patch_state, PatchState::Failed, "it can be used");
    let request = RestoreRequest { require_patches: true, ..from_snapshot(&base) };
    let (operation, record) = house.finished(house.manager.restore(&request).await).await;
    let error = operation.error.unwrap();
    error.coded(Code::OperationFailed).hints("patches remove").hints("restore again");
    assert!(error.message.ends_with("failed with exit status 3"), "{}", error.message);
    assert!(!error.hint.unwrap().contains("--retry"));
    assert_eq!(record.state, State::Failed);
    let failure = record.failure.unwrap();
    assert_eq!(
        (failure.step.as_str(), failure.exit_status, failure.output.as_str()),
        ("patch 1", Some(3), "ran one")
    );
    assert!(!record.patch_error.unwrap().contains("--retry"));
    // The same for what was not begun.
    house.scripts(&[Script::NotBegun]);
    let (operation, _) = house.finished(house.manager.restore(&request).await).await;
    let error = operation.error.unwrap();
    assert!(error.message.ends_with("no route"), "{error:?}");
    assert!(!error.hint.as_ref().unwrap().contains(record.id.as_str()), "{error:?}");
}

/// Whoever was shown patches gets those, or nothing.
#[tokio::test]
async fn a_patch_that_the_asker_was_not_shown_is_not_applied() {
    let (house, snapshot) = with_snapshot().await;
    let shown = house.add(&snapshot, "true").await;
    let id = house.restored(&snapshot).await.id.to_string();
    house.add(&snapshot, "rm -rf data").await;
    let patches = Some(vec![shown.id]);
    let apply = ApplyRequest { patches: patches.clone(), ..of(&id) };
    let again = RecreateRequest { patches: patches.clone(), ..of(&id) };
    let refused = [
        house.manager.apply_patches(&apply).await.unwrap_err(),
        house.manager.recreate(&again).await.unwrap_err(),
        {
            house.sleep(&id).await.1.unwrap();
            let wake = SleepRequest { patches, ..of(&id) };
            house.manager.wake(&wake).await.unwrap_err()
        },
    ];
    for error in refused {
        assert_eq!((error.code, error.kind), (Code::Conflict, Kind::Stale), "{}", error.message);
    }
    let record = house.record(&id).await;
    assert_eq!((record.state, record.applied_patches.len()), (State::Sleeping, 1));
}
