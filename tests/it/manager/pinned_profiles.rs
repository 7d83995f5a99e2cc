//! The profile of a snapshot: the one that was recorded, wherever that is still to be had, and never another.

use std::fmt::Display;

use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::SnapshotRecord;
use sandboxer::domain::{Code, Error};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, from_snapshot, manager, of, test_env};

/// A profile of the operator's, as it was when the snapshot was taken.
const AS_IT_WAS: &str = "ttl: 30m";

impl TestEnv {
    /// Writes the operator's profile, or takes it away; both managers begin anew, as later processes do.
    fn profile(&mut self, ttl: Option<&str>) {
        let folder = self.folder.path().join("profiles");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("mine.yaml");
        match ttl {
            None => std::fs::remove_file(file).unwrap(),
            Some(ttl) => {
                let text = include_str!("../../../profiles/sandbox-canary.yaml");
                let text =
                    text.replace("profile.sandbox-canary", "profile.mine").replace("ttl: 1h", ttl);
                std::fs::write(file, text).unwrap();
            }
        }
        self.manager = manager(self.folder.path(), &self.script);
        self.other = manager(self.folder.path(), &self.script);
    }

    /// A snapshot of a sandbox that was made with the operator's profile.
    async fn of_mine(&mut self) -> SnapshotRecord {
        self.profile(Some(AS_IT_WAS));
        let request =
            CreateRequest { profile: Some("mine".to_owned()), ..CreateRequest::default() };
        let record = self.made(request).await;
        Box::pin(self.snapshot(&record.id, "my-env")).await.unwrap()
    }

    fn lose_pinned_profiles(&self) {
        // There may be none: a profile that the catalogue has is not written again.
        let _ = std::fs::remove_dir_all(self.folder.path().join("pinned"));
    }

    /// Restores it: it lives as long as the recorded profile says, and its message is returned.
    async fn restored_as_recorded(&self, id: impl Display) -> String {
        let (record, ended) = self.restore(id).await;
        assert_eq!((ended, &record.state), (Ok(()), &State::Ready));
        assert_eq!(record.expires_at.unwrap(), record.ready_at.unwrap().plus_seconds(1800), "30m");
        record.message.unwrap_or_default()
    }
}

/// A restore goes by it when the profile is nowhere else any more.
#[tokio::test]
async fn a_profile_that_was_changed_beside_its_archive_is_found_by_verify() {
    let mut house = test_env();
    let snapshot = house.of_mine().await;
    let id = snapshot.id.as_str();
    house.verify(id).await.unwrap();
    house.script.shelf.alter(|manifest| manifest.profile.summary = "another one".to_owned());
    let fault = house.verify(id).await.unwrap_err();
    fault.coded(Code::OperationFailed).says("profile");
    assert_eq!(fault.details["kind"], "altered");
    let record = house.manager.snapshot_view(id).await.unwrap().record;
    assert!(record.is_lost(), "it is not listed as if nothing were known");
}

#[tokio::test]
async fn a_changed_profile_does_not_change_what_is_restored() {
    let mut house = test_env();
    let snapshot = house.of_mine().await;
    let id = snapshot.id.as_str();
    assert_eq!(house.restored_as_recorded(id).await, "", "nothing to say");
    for lost in [false, true] {
        house.profile(Some("ttl: 2h"));
        if lost {
            house.lose_pinned_profiles();
        }
        let said = house.restored_as_recorded(id).await;
        assert!(said.contains("the profile that was recorded"), "{said}");
        assert!(said.contains("another one by now"), "{said}");
    }
}

#[tokio::test]
async fn a_profile_that_is_gone_does_not_keep_a_snapshot_from_anything() {
    let mut house = test_env();
    let snapshot = house.of_mine().await;
    let id = snapshot.id.as_str();
    for lost in [false, true] {
        if !lost {
            house.profile(None);
        }
        let again = |house: &TestEnv| {
            if lost {
                house.lose_pinned_profiles();
            }
        };
        again(&house);
        let said = house.restored_as_recorded(id).await;
        assert!(said.contains("the profile that was recorded"), "{said}");
        assert!(said.contains("has it no more"), "{said}");
        again(&house);
        house.verify(id).await.unwrap();
        let file = house.export(id).await;
        assert_eq!(file.profile.hash(), snapshot.profile.hash);
    }
}

#[tokio::test]
async fn a_profile_that_is_lost_is_said_to_be_and_the_rest_is_done_without_it() {
    let mut house = test_env();
    let snapshot = house.of_mine().await;
    let id = snapshot.id.as_str();
    house.profile(Some("ttl: 2h"));
    house.lose_pinned_profiles();
    house.script.shelf.alter(|manifest| manifest.profile.summary.push('!'));
    let fault = house.manager.restore(&from_snapshot(id)).await.unwrap_err();
    assert_eq!((&fault.code, &fault.details["kind"]), (&Code::NotFound, &"profile_lost".into()));
    fault.says("my-env").says("is lost").hints(&snapshot.profile.hash);
    let Err(fault) = house.manager.export_snapshot(id).await else {
        panic!("an export has the profile in it")
    };
    assert_eq!(fault.details["kind"], "profile_lost");
    assert_eq!(house.verify(id).await.unwrap_err().details["differs"], "profile");
    house.delete(id, false).await.unwrap();
    assert!(house.there().is_empty() && house.listed().await.is_empty());
}

#[tokio::test]
async fn one_that_came_to_nothing_is_deleted_though_its_profile_is_lost() {
    let mut house = test_env();
    let snapshot = house.of_mine().await;
    house.script.shelf.capture.push(Act::fails("no space"));
    house.snapshot(&snapshot.sandbox_id, "second").await.unwrap_err();
    let failed = house.manager.snapshot_view("second").await.unwrap().record.id;
    house.profile(None);
    house.lose_pinned_profiles();
    house.delete(&failed, false).await.unwrap();
    assert_eq!(house.listed().await.len(), 1);
}

#[tokio::test]
async fn a_sandbox_goes_by_its_own_profile_or_by_none() {
    let mut house = test_env();
    house.profile(Some(AS_IT_WAS));
    let request = CreateRequest { profile: Some("mine".to_owned()), ..CreateRequest::default() };
    let id = house.create(request).await.0.id.to_string();
    // The catalogue has the same one still.
    house.lose_pinned_profiles();
    assert_eq!(house.recreate(&id).await.0.state, State::Ready);
    // By now it has another one: nothing is made with that, and nothing is touched.
    house.profile(Some("ttl: 2h"));
    house.lose_pinned_profiles();
    let teardowns = house.teardowns();
    let is_lost = |fault: Error| {
        assert_eq!(fault.code, Code::NotFound, "{fault}");
        assert_eq!(fault.details["kind"], "profile_lost", "{fault}");
        fault.says(&id).hints("pinned/");
    };
    is_lost(house.manager.recreate(&of(&id)).await.unwrap_err());
    is_lost(house.snapshot(&id, "made-with-what").await.unwrap_err());
    is_lost(house.manager.sleep(&of(&id)).await.unwrap_err());
    assert_eq!((house.teardowns(), house.record(&id).await.state), (teardowns, State::Ready));
    assert!(house.names().await.is_empty());
}

#[tokio::test]
async fn a_sandbox_whose_profile_is_lost_can_be_destroyed() {
    for damage in ["another", "gone", "unreadable"] {
        let mut house = test_env();
        house.profile(Some(AS_IT_WAS));
        let request =
            CreateRequest { profile: Some("mine".to_owned()), ..CreateRequest::default() };
        let record = house.create(request).await.0;
        match damage {
            "another" => house.profile(Some("ttl: 2h")),
            _ => house.profile(None),
        }
        house.lose_pinned_profiles();
        if damage == "unreadable" {
            let folder = house.folder.path().join("pinned");
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(format!("{}.json", record.profile.hash)), "{").unwrap();
        }
        let (record, ended) = house.destroy(&record.id).await;
        assert_eq!((ended, record.state), (Ok(()), State::Destroyed), "{damage}");
        assert_eq!(house.teardowns(), 1);
    }
}
