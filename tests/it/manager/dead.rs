//! Operations that begin over one whose process died: what that one left is never hidden from `recover`.

use sandboxer::domain::patch::PatchState;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{Code, Error};
use sandboxer::manager::SandboxManager;

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, of, test_env, there, with_sandbox};

async fn begin(manager: &SandboxManager, verb: &str, id: &str) -> Result<(), Error> {
    match verb {
        "patch" => manager.apply_patches(&of(id)).await.map(drop),
        "snapshot" => manager.snapshot(&of(id)).await.map(drop),
        "recreate" => manager.recreate(&of(id)).await.map(drop),
        "sleep" => manager.sleep(&of(id)).await.map(drop),
        _ => manager.wake(&of(id)).await.map(drop),
    }
}

impl TestEnv {
    /// A sandbox that owes a patch, and over which an operation died.
    async fn dead_over(&self, verb: &'static str) -> String {
        let base = self.base("my-env").await;
        let id = self.restored(&base).await.id.to_string();
        self.add(&base, "one").await;
        match verb {
            "patch" => self.scripts(&[Script::Hangs]),
            "snapshot" => self.script.shelf.capture.push(Act::Hang),
            "recreate" => self.script.shelf.verify.push(Act::Hang),
            "sleep" => self.script.sleep.push(Act::Hang),
            _ => {
                self.sleep(&id).await.1.unwrap();
                self.script.wake.push(Act::Hang);
            }
        }
        let of = id.clone();
        let until = if verb == "recreate" { "verify" } else { verb };
        killed(self, until, move |manager| async move { begin(&manager, verb, &of).await });
        assert_eq!(self.record(&id).await.operation.unwrap().kind.as_str(), verb);
        id
    }

    async fn nothing_is_hidden(&self) {
        assert_eq!(self.manager.recover().await.unwrap(), []);
        self.assert_nothing_runs().await;
    }
}

/// Whatever comes next, nobody knows whether the script ran.
#[tokio::test]
async fn a_dead_patch_is_unknown_to_whoever_comes_next() {
    for verb in ["snapshot", "recreate", "sleep"] {
        let house = test_env();
        let id = house.dead_over("patch").await;
        // A recreate that is refused touches nothing.
        house.script.shelf.verify.push(Act::Altered);
        begin(&house.manager, verb, &id).await.unwrap();
        let operation = house.record(&id).await.operation;
        if let Some(operation) = operation {
            house.manager.finish(&operation.id).await.unwrap();
        }
        let record = house.record(&id).await;
        assert_eq!(record.operation, None, "{verb}");
        assert_eq!(record.patch_state, PatchState::Unknown, "{verb}");
        assert_eq!(record.applied_patches[0].state, PatchState::Unknown);
        assert!(record.patch_error.unwrap().contains("--retry"));
        house.nothing_is_hidden().await;
    }
}

/// Containers may be paused, or the sandbox neither awake nor asleep: that is what `recover` brings in order.
#[tokio::test]
async fn nothing_begins_over_what_only_recover_brings_in_order() {
    for (dead, refused) in [
        ("wake", &["snapshot", "recreate"][..]),
        ("sleep", &["snapshot", "recreate", "patch"]),
        ("snapshot", &["snapshot", "recreate", "patch", "sleep"]),
    ] {
        let house = test_env();
        let id = house.dead_over(dead).await;
        let before = house.record(&id).await;
        for verb in refused {
            let fault = begin(&house.manager, verb, &id).await.unwrap_err();
            assert_eq!(fault.code, Code::Conflict, "{verb} over a dead {dead}: {fault}");
            fault.says(&format!("{dead} by process")).hints("sandboxer recover");
        }
        assert_eq!(house.record(&id).await, before, "a refused one writes nothing");
        house.script.seen.set(there(dead == "snapshot", false));
        let (slept, resumed) = (house.script.count("sleep"), house.script.count("resume"));
        let items = house.manager.recover().await.unwrap();
        assert!(
            items.iter().any(|item| item.id == id && item.ok && item.was.starts_with(dead)),
            "{items:?}"
        );
        if dead == "snapshot" {
            assert_eq!(house.script.count("resume"), resumed + 1);
        } else {
            let found = house.script.count("sleep");
            assert_eq!(found, slept + 1, "it is put to sleep, from where a wake does all of it");
        }
        house.nothing_is_hidden().await;
        begin(&house.manager, "snapshot", &id).await.unwrap();
    }
}

/// A recreate that died while it still read its archive had removed nothing.
#[tokio::test]
async fn a_recreate_that_had_touched_nothing_is_in_nobodys_way() {
    let house = test_env();
    let id = house.dead_over("recreate").await;
    house.snapshot(&id, "after").await.unwrap();
    house.nothing_is_hidden().await;
}

#[tokio::test]
async fn a_wake_over_a_dead_one_does_all_of_it_or_leaves_it_to_recover() {
    let house = test_env();
    let id = house.dead_over("wake").await;
    house.script.wake.push(Act::no_route());
    house.script.sleep.push(Act::no_route());
    house.script(&[], &[Act::no_route()], &[]);
    let (record, ended) = house.wake(&id).await;
    assert_eq!((ended, &record.state), (Err(Code::HostUnreachable), &State::Sleeping));
    assert_eq!(record.operation.unwrap().kind.as_str(), "wake", "nobody knows what runs there");
    let (record, ended) = house.wake(&id).await;
    assert_eq!((ended, &record.state, &record.operation), (Ok(()), &State::Ready, &None));
    assert_eq!(record.patch_state, PatchState::Applied);
    house.nothing_is_hidden().await;
}

/// What nobody could resume is resumed by `recover`, also while the process that could not lives on; a host that is away does
/// it by itself.
#[tokio::test]
async fn containers_that_a_snapshot_could_not_resume_are_left_to_recover() {
    for (code, left) in [(Code::OperationFailed, true), (Code::HostUnreachable, false)] {
        let (house, id) = with_sandbox().await;
        house.script.shelf.capture.push(Act::full());
        house.script.shelf.resume.push(Act::Fail(code, "cannot unpause"));
        let fault = house.snapshot(&id, "base").await.unwrap_err();
        assert_eq!(fault.details["paused"], true);
        assert_eq!(fault.hint.unwrap().contains("recover"), left);
        let record = house.record(&id).await;
        assert!(record.message.unwrap().contains("may still be paused"));
        assert_eq!(record.operation.is_some(), left);
        house.script.seen.set(there(true, false));
        let (items, resumed) =
            (house.manager.recover().await.unwrap(), house.script.count("resume"));
        if left {
            assert!(items.iter().any(|item| item.id == id && item.ok), "{items:?}");
            assert_eq!(resumed, 2, "it is tried again");
        } else {
            assert!(items.is_empty(), "{items:?}");
        }
        house.nothing_is_hidden().await;
        house.snapshot(&id, "next").await.expect("it is in order");
    }
}

/// Whoever recovers may die over it.
#[tokio::test]
async fn a_recover_that_dies_leaves_what_the_dead_one_left() {
    let house = test_env();
    let id = house.dead_over("snapshot").await;
    house.script.seen.set(there(true, false));
    house.script(&[], &[Act::Hang], &[]);
    killed(&house, "inspect", |manager| async move {
        tokio::spawn(async move { manager.recover().await });
        Ok(())
    });
    assert!(house.record(&id).await.operation.is_some());
    let resumed = house.script.count("resume");
    let items = house.manager.recover().await.unwrap();
    assert!(items.iter().any(|item| item.id == id && item.ok), "{items:?}");
    assert_eq!(house.script.count("resume"), resumed + 1, "its containers may still be paused");
    house.nothing_is_hidden().await;
}

#[tokio::test]
async fn a_removal_ends_whatever_died_before_it() {
    for forget in [false, true] {
        let house = test_env();
        let id = house.dead_over("snapshot").await;
        let request = sandboxer::domain::request::DestroyRequest { forget, ..of(id) };
        let started = house.manager.destroy(&request).await.unwrap();
        assert!(house.manager.finish(&started.operation.unwrap()).await.unwrap().0.error.is_none());
        house.assert_nothing_runs().await;
    }
}
