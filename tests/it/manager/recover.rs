//! What killed processes, dead hosts and copied data directories leave, and how it is brought into order: held
//! against a scripted extension and the real files. A killed process is a runtime that is shut down: its tasks stop
//! where they are, and the kernel's locks are free.

use std::fmt::Display;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::fixture::service;
use crate::test_env::script::{Act, Scripted};
use crate::test_env::{self, TestEnv, of, test_env, with_sandbox};
use futures_util::StreamExt;
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::request::{
    CreateRequest, DestroyRequest, LabelRequest, ListQuery, Recovered, SnapshotCopyRequest,
};
use sandboxer::domain::sandbox::{Reason, SandboxRecord, State};
use sandboxer::domain::update::Update;
use sandboxer::domain::{Code, Error, OperationState};
use sandboxer::manager::SandboxManager;

/// Starts something in another process, as it were, and kills that process once the extension was asked `until`.
pub(crate) fn killed<F, W, T>(house: &TestEnv, until: &'static str, start: W)
where
    W: FnOnce(SandboxManager) -> F + Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let (folder, script) = (house.folder.path().to_owned(), Arc::clone(&house.script));
    let start = async move { start(test_env::manager(&folder, &script)).await.map(drop).unwrap() };
    die(&house.script, until, start);
}

/// Does this in another process, as it were, and kills that process once this script was asked `until`.
pub(crate) fn die<T>(
    script: &Arc<Scripted>,
    until: &'static str,
    start: impl Future<Output = T> + Send + 'static,
) {
    let script = Arc::clone(script);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let before = script.asked().len();
        runtime.block_on(async {
            start.await;
            script.until_asked_since(until, before).await;
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
    })
    .join()
    .unwrap();
}

fn killed_create(house: &TestEnv) {
    house.script(&[Act::Hang], &[], &[]);
    killed(
        house,
        "provision",
        |manager| async move { manager.create(CreateRequest::default()).await },
    );
}

impl TestEnv {
    /// A copy by another process, which dies once the script was asked `until`.
    pub(crate) fn killed_copy(&self, snapshot: &str, host: &str, until: &'static str) {
        let request = SnapshotCopyRequest { id: snapshot.to_owned(), host: host.to_owned() };
        killed(self, until, |manager| async move { manager.copy_snapshot(&request).await });
    }

    /// What a recover did, all of it well.
    pub(crate) async fn recover(&self) -> Vec<Recovered> {
        let items = self.other.recover().await.unwrap();
        assert!(items.iter().all(|item| item.ok), "{items:?}");
        items
    }

    async fn only(&self) -> SandboxRecord {
        let mut records = self.manager.list(&everything()).await.unwrap();
        assert_eq!(records.len(), 1);
        SandboxRecord::clone(&records.pop().unwrap())
    }

    async fn recovered(&self) -> Recovered {
        let mut items = self.manager.recover().await.unwrap();
        assert_eq!(items.len(), 1, "{items:?}");
        items.pop().unwrap()
    }

    async fn in_order(&self) {
        assert_eq!(self.manager.recover().await.unwrap(), [], "a second recover has nothing to do");
        self.assert_nothing_runs().await;
        let all = self.manager.list(&everything()).await.unwrap();
        assert!(all.iter().all(|record| record.operation.is_none()));
    }

    /// Makes the data directory look as if it had been made elsewhere.
    pub(crate) fn copy_from_elsewhere(&self) {
        self.edit("owner", |owner| owner["machine_id"] = "elsewhere".into());
    }

    async fn forget(&self, id: impl Display) -> SandboxRecord {
        let request = DestroyRequest { forget: true, ..of(id) };
        self.finished(self.manager.destroy(&request).await).await.1
    }
}

fn everything() -> ListQuery {
    ListQuery { all: true, ..ListQuery::default() }
}

#[tokio::test]
async fn a_create_whose_process_was_killed_is_removed_from_its_host() {
    let house = test_env();
    killed_create(&house);
    let stuck = house.only().await;
    assert_eq!(stuck.state, State::Provisioning);
    let dead = stuck.operation.unwrap();
    let item = house.recovered().await;
    assert!(item.ok && item.id == stuck.id.as_str(), "{item:?}");
    assert_eq!(item.was, format!("create by process {} on here", dead.pid));
    let record = house.only().await;
    assert_eq!((&record.state, &record.reason), (&State::Destroyed, &Some(Reason::CrashRecovered)));
    assert_eq!(house.teardowns(), 1);
    let operation = house.manager.operation(dead.id.as_str()).await.unwrap();
    assert_eq!(operation.state, OperationState::Failed);
    operation.error.unwrap().says("died");
    assert_eq!(house.kinds().await[2..], ["sandbox.destroying", "sandbox.destroyed"]);
    house.in_order().await;
}

#[tokio::test]
async fn a_record_of_which_no_host_has_heard_is_closed_without_asking_one() {
    let house = test_env();
    killed_create(&house);
    house.edit("sandboxes.json", |stored| stored["records"][0]["state"] = "requested".into());
    assert!(house.recovered().await.ok);
    assert_eq!((house.only().await.state, house.teardowns()), (State::Destroyed, 0));
    house.in_order().await;
}

#[tokio::test]
async fn a_sandbox_that_somebody_works_on_is_left_to_them() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started = house.manager.create(CreateRequest::default()).await.unwrap();
    assert_eq!(house.other.recover().await.unwrap(), []);
    assert_eq!(house.teardowns(), 0);
    house.manager.cancel(&started.operation.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_destroy_whose_process_was_killed_is_finished() {
    let (house, id) = with_sandbox().await;
    house.script(&[], &[], &[Act::Hang]);
    killed(&house, "teardown", move |manager| async move { manager.destroy(&of(id)).await });
    // Whether the host had said by then that it removes something or not.
    let record = house.only().await;
    let found = record.operation.as_ref().map(|running| &running.kind);
    assert_eq!(found, Some(&OperationKind::Destroy), "{record:?}");
    assert!(house.recovered().await.ok);
    assert_eq!(house.only().await.state, State::Destroyed);
    house.in_order().await;
}

async fn killed_recreate(house: &TestEnv) -> String {
    let id = house.ready().await;
    house.script(&[], &[], &[Act::Hang]);
    let request = of(&id);
    killed(house, "teardown", move |manager| async move { manager.recreate(&request).await });
    assert_eq!(house.only().await.state, State::Provisioning);
    id
}

#[tokio::test]
async fn a_recreate_that_died_before_it_removed_anything_is_ready_again() {
    let house = test_env();
    killed_recreate(&house).await;
    let web = service("web", "running", None);
    house.script.seen.set(Inspection {
        ready: true,
        services: vec![web.clone()],
        ..Inspection::default()
    });
    assert!(house.recovered().await.ok);
    let record = house.only().await;
    assert_eq!((&record.state, &record.reason), (&State::Ready, &Some(Reason::CrashRecovered)));
    assert_eq!((record.services, house.teardowns()), (vec![web], 1), "nothing more was removed");
    house.in_order().await;
}

#[tokio::test]
async fn a_recreate_that_died_half_way_leaves_a_failed_one_that_can_be_made_again() {
    let house = test_env();
    let id = killed_recreate(&house).await;
    let item = house.recovered().await;
    assert!(item.ok && item.message.contains("sandboxer recreate"), "{item:?}");
    let record = house.only().await;
    assert_eq!((&record.state, &record.reason), (&State::Failed, &Some(Reason::CrashRecovered)));
    assert!(record.reachability.is_none(), "what is not there is not reached");
    house.in_order().await;
    let (_, again) = house.finished(house.manager.recreate(&of(id)).await).await;
    assert_eq!(again.state, State::Ready);
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_asked_again_by_the_next_recover() {
    let house = test_env();
    killed_create(&house);
    let down = || Act::no_route();
    house.script(&[], &[], &[down(), down(), down()]);
    let item = house.recovered().await;
    assert_eq!((item.ok, item.error.unwrap().code), (false, Code::HostUnreachable));
    let record = house.only().await;
    assert_eq!((&record.state, &record.reason), (&State::Destroying, &Some(Reason::HostLost)));
    assert!(house.recovered().await.ok);
    assert_eq!(house.only().await.state, State::Destroyed);
    house.in_order().await;
}

#[tokio::test]
async fn a_recreate_stays_as_it_was_left_while_its_host_cannot_be_asked() {
    let house = test_env();
    killed_recreate(&house).await;
    house.script(&[], &[Act::Fail(Code::HostChanged, "another machine")], &[]);
    let item = house.recovered().await;
    assert_eq!((item.ok, item.error.unwrap().code), (false, Code::HostChanged));
    assert_eq!(house.only().await.state, State::Provisioning);
    assert!(house.kinds().await.contains(&"host.changed".to_owned()));
    assert!(house.recovered().await.ok, "it is found again");
}

#[tokio::test]
async fn an_operation_without_a_record_is_ended() {
    let house = test_env();
    killed_create(&house);
    fs::remove_file(house.folder.path().join("sandboxes.json")).unwrap();
    let _ = fs::remove_file(house.folder.path().join("sandboxes.json.bak"));
    let item = house.recovered().await;
    assert!(
        item.ok && item.id.starts_with("op-") && item.was.starts_with("create by process"),
        "{item:?}"
    );
    house.in_order().await;
}

/// Another machine's, and one that came without the file that says whose it is: the next create makes that anew, and counts nothing of
/// what the original did since.
#[tokio::test]
async fn a_copied_data_directory_removes_nothing_until_it_is_claimed() {
    for (without_owner, says) in [(false, "another machine"), (true, "does not name")] {
        let (house, id) = with_sandbox().await;
        killed_create(&house);
        if without_owner {
            for name in ["owner", "owner.bak"] {
                let _ = fs::remove_file(house.folder.path().join(name));
            }
            house.ready().await;
        } else {
            house.copy_from_elsewhere();
        }
        let fault = house.manager.recover().await.unwrap_err();
        fault.coded(Code::Conflict).says(says).hints("doctor --claim");
        house.manager.destroy(&of(&id)).await.unwrap_err().coded(Code::Conflict);
        house.manager.recreate(&of(&id)).await.unwrap_err().coded(Code::Conflict);
        assert_eq!((house.teardowns(), house.record(&id).await.state), (0, State::Ready));

        let checks = house.manager.doctor(false).await.unwrap();
        let installation = checks.iter().find(|check| check.name == "installation").unwrap();
        assert_eq!(installation.state.as_str(), "failed", "{says}");
        // Nor does a broken snapshots.json stand in its way.
        let snapshots = house.folder.path().join("snapshots.json");
        fs::write(&snapshots, "{").unwrap();
        house.manager.doctor(true).await.unwrap();
        fs::remove_file(&snapshots).unwrap();
        assert!(house.recovered().await.ok, "{says}");
        assert_eq!(house.destroy(&id).await.1, Ok(()), "{says}");
    }
}

#[tokio::test]
async fn events_that_cannot_be_written_are_told_by_recover() {
    let house = test_env();
    let id = house.ready().await;
    let events = house.folder.path().join("events.jsonl");
    fs::rename(&events, house.folder.path().join("away")).unwrap();
    fs::create_dir(&events).unwrap();
    let request = LabelRequest { set: [("x".to_owned(), "2".to_owned())].into(), ..of(&id) };
    house.manager.label(request).await.unwrap();
    let item = house.recovered().await;
    assert!(!item.ok && item.was == "events that wait" && item.error.is_some(), "{item:?}");
    fs::remove_dir(&events).unwrap();
    fs::rename(house.folder.path().join("away"), &events).unwrap();
    house.in_order().await;
}

#[tokio::test]
async fn a_doctor_names_the_lines_that_nobody_can_read() {
    let house = test_env();
    house.ready().await;
    let file = |name: &str| house.folder.path().join(name).display().to_string();
    let mut events = std::fs::read_to_string(file("events.jsonl")).unwrap();
    let whole = events.lines().count();
    events.push_str("{\n");
    std::fs::write(file("events.jsonl"), &events).unwrap();
    let mut history = "not JSON\n\n{}\n".to_owned();
    (0..20).for_each(|_| history.push_str("[]\n"));
    std::fs::write(file("history.jsonl"), &history).unwrap();

    let checks = house.manager.doctor(false).await.unwrap();
    let said = |name: &str| {
        let check = checks.iter().find(|check| check.name == name).unwrap();
        assert_eq!((check.state.as_str(), check.hint.is_some()), ("warning", true), "{check:?}");
        check.message.lines().nth(1).unwrap_or_default().to_owned()
    };
    let events_said =
        format!("{}: line {} cannot be read; the rest is used", file("events.jsonl"), whole + 1);
    assert_eq!(said("events"), events_said);
    let lines = "lines 1, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 12 more";
    assert_eq!(
        said("history"),
        format!("{}: {lines} cannot be read; the rest is used", file("history.jsonl"))
    );
    let found = std::fs::read_to_string(file("history.jsonl")).unwrap();
    assert_eq!(found, history, "it is left as it is");
}

#[tokio::test]
async fn a_restored_backup_removes_nothing_until_it_is_claimed() {
    let (house, id) = with_sandbox().await;
    // The host has heard of more creations than this directory knows of.
    house.script.host_counter.set(40);
    let (record, ended) = house.destroy(&id).await;
    assert_eq!((ended, house.teardowns(), record.state), (Err(Code::Conflict), 0, State::Ready));
    killed_create(&house);
    house.manager.recover().await.unwrap_err().coded(Code::Conflict);
    assert_eq!(house.teardowns(), 0);
    house.manager.doctor(true).await.unwrap();
    assert_eq!(house.manager.recover().await.unwrap().len(), 1);
    assert_eq!(house.destroy(&id).await.0.state, State::Destroyed);
}

#[tokio::test]
async fn a_copy_does_not_recover_what_its_process_still_works_on() {
    let house = test_env();
    killed_create(&house);
    house.script.lives.set(true);
    let item = house.recovered().await;
    assert_eq!((item.ok, item.error.unwrap().code), (false, Code::Conflict));
    assert!(item.message.contains("this is a copy"), "{}", item.message);
    assert_eq!((house.teardowns(), house.only().await.state), (0, State::Provisioning));
    house.script.lives.set(false);
    assert!(house.recovered().await.ok);
}

#[tokio::test]
async fn a_copy_made_during_a_create_does_not_remove_what_is_ready_by_now() {
    let house = test_env();
    killed_create(&house);
    // The original went on: ready counts as a change of its own, and the host was told.
    house.script.host_counter.set(2);
    let item = house.recovered().await;
    assert_eq!((item.ok, item.error.unwrap().code), (false, Code::Conflict));
    assert_eq!(house.teardowns(), 0, "nothing was decided");
    assert_eq!(house.only().await.state, State::Provisioning, "nothing was decided");
    let found = house.manager.recover().await.unwrap_err().code;
    assert_eq!(found, Code::Conflict, "and it is remembered");
}

#[tokio::test]
async fn a_removal_that_found_its_host_away_is_finished_at_the_next_contact() {
    let (house, id) = with_sandbox().await;
    let down = || Act::no_route();
    house.script(&[], &[], &[down(), down(), down()]);
    assert_eq!(house.destroy(&id).await.1, Err(Code::HostUnreachable));
    assert_eq!(house.record(&id).await.state, State::Destroying);
    house.ready().await;
    assert_eq!(house.record(&id).await.state, State::Destroyed);
}

#[tokio::test]
async fn a_counter_that_another_process_of_ours_raised_is_no_old_copy() {
    let (house, id) = with_sandbox().await;
    house.ready().await;
    house.script.host_counter.set(2);
    assert_eq!(house.destroy(&id).await.1, Ok(()));
}

#[tokio::test]
async fn a_forgotten_sandbox_is_removed_when_its_host_is_next_reached() {
    let (house, id) = with_sandbox().await;
    let record = house.forget(&id).await;
    assert_eq!((&record.state, house.teardowns()), (&State::Forgotten, 0));
    assert!(record.message.unwrap().contains("without a look"));
    let listed = house.manager.list(&ListQuery::default()).await.unwrap();
    assert!(listed.is_empty(), "it is no live sandbox: {listed:?}");
    // Whatever reaches the host collects it.
    house.ready().await;
    assert_eq!(house.record(&id).await.state, State::Destroyed);
    let kinds = house.kinds().await;
    assert!(kinds.contains(&"sandbox.forgotten".to_owned()));
    assert_eq!(kinds.last().unwrap(), "sandbox.destroyed");
}

#[tokio::test]
async fn a_tombstone_stays_while_its_host_cannot_remove_it_and_destroy_tries_at_once() {
    let (house, id) = with_sandbox().await;
    house.forget(&id).await;
    house.script(&[], &[], &[Act::LeaveNetwork]);
    house.ready().await;
    let record = house.record(&id).await;
    assert_eq!((&record.state, record.leftovers.len()), (&State::Forgotten, 1));
    assert_eq!(house.destroy(&id).await.1, Ok(()));
    assert_eq!(house.record(&id).await.state, State::Destroyed);
    let request = DestroyRequest { forget: true, ..of(id) };
    assert!(
        house.manager.destroy(&request).await.unwrap().operation.is_none(),
        "there is nothing to forget"
    );
}

#[tokio::test]
async fn forgetting_ends_the_create_of_another_process() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started = house.other.create(CreateRequest::default()).await.unwrap();
    let record = house.forget(&started.sandbox.id).await;
    assert_eq!(record.state, State::Forgotten);
    let (operation, _) = house.other.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
}

#[tokio::test]
async fn a_service_that_dies_later_marks_the_sandbox_and_is_told() {
    let (house, id) = with_sandbox().await;
    let mut updates = house.manager.subscribe().await.unwrap();
    let died = service("web", "exited", Some(137));
    house.script.seen.lock().unwrap().services = vec![died.clone()];
    house.manager.refresh_services("LOCAL").await.unwrap();
    let record = house.record(&id).await;
    assert_eq!(record.state, State::Ready);
    assert_eq!(record.degraded().collect::<Vec<_>>(), vec![&died]);
    let told = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Some(Update::Record(told)) = updates.next().await {
                return told;
            }
        }
    });
    assert_eq!(told.await.unwrap().services, [died]);
    let before = record.revision;
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.revision, before, "what is the same is not written");
}

#[tokio::test]
async fn what_its_host_has_nothing_of_is_lost_and_comes_back_with_it() {
    let (house, id) = with_sandbox().await;
    house.script.nothing_there.set(true);
    // Who cannot be asked loses nothing.
    house.script(&[], &[Act::Fail(Code::HostChanged, "another machine")], &[]);
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Ready);
    house.manager.refresh_services("local").await.unwrap();
    let record = house.record(&id).await;
    assert_eq!((&record.state, &record.reason), (&State::Lost, &None));
    assert!(record.reachability.is_none() && house.kinds().await.last().unwrap() == "sandbox.lost");
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.revision, record.revision, "it is lost once");
    house.script.seen.set(Inspection { ready: true, ..Inspection::default() });
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Ready);
    house.script.seen.set(Inspection::default());
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Lost);
    assert_eq!(house.destroy(&id).await.1, Ok(()), "a lost one is closed by destroy");
}

#[tokio::test]
async fn labels_are_set_and_removed_beside_a_running_operation() {
    let (house, id) = with_sandbox().await;
    house.script.sleep.push(Act::Hang);
    let started = house.manager.sleep(&of(&id)).await.unwrap();
    // From here on it writes nothing.
    while house.other.get(&id).await.unwrap().operation.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let change = |set: &[(&str, &str)], remove: &[&str]| LabelRequest {
        id: id.clone(),
        revision: None,
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        remove: remove.iter().map(|key| (*key).to_owned()).collect(),
    };
    let record =
        house.other.label(change(&[("team", "a"), ("protect", "true")], &[])).await.unwrap();
    assert!(record.is_protected() && record.labels["team"] == "a");
    let record =
        house.other.label(change(&[("team", "b")], &["protect", "nothing"])).await.unwrap();
    assert_eq!((record.is_protected(), record.labels["team"].as_str()), (false, "b"));
    let same = house.other.label(change(&[("team", "b")], &["nothing"])).await.unwrap();
    assert_eq!(same.revision, record.revision, "nothing to do writes nothing");
    house.other.label(change(&[("a b", "c")], &[])).await.unwrap_err().coded(Code::InvalidInput);
    house.other.label(change(&[("x", "c")], &["x"])).await.unwrap_err().coded(Code::InvalidInput);
    let stale = LabelRequest { revision: Some(1), ..change(&[("x", "y")], &[]) };
    house.other.label(stale).await.unwrap_err().coded(Code::Conflict);
    house.manager.cancel(&started.operation.unwrap()).await.unwrap();
}
