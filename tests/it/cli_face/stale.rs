//! `inspect stale`: for a person and a script; and stale things for the tests of a reap.

use insta::assert_snapshot;
use sandboxer::client::Error;
use sandboxer::domain::stale::{
    HostPass, PassState, ReapAction, StaleClass, StaleItem, StaleReport,
};
use sandboxer::domain::sweep::{HeldBack, HoldReason};
use sandboxer::domain::{Code, HostName};
use serde_json::json;

use super::cli_world::*;
use super::fits;
use crate::test_env::hosts::Machine;

pub(super) fn item(id: &str, class: StaleClass, action: ReapAction, why: &str) -> StaleItem {
    StaleItem {
        possible: vec![action.clone()],
        class,
        action,
        host: HostName::new("coulombcore"),
        sandbox_id: Some(id.into()),
        snapshot_id: None,
        name: None,
        owner: Some("0123456789abcdef0123456789abcdef".into()),
        profile: None,
        state: None,
        created_at: Some(now().minus_seconds(7200)),
        expires_at: None,
        age_s: Some(7200),
        bytes: None,
        protected: false,
        resources: Vec::new(),
        identity: "revision 7".into(),
        why: why.into(),
    }
}

pub(super) fn expired() -> StaleItem {
    let why = "its time was over 5m ago";
    StaleItem {
        name: Some("nightly".into()),
        bytes: Some(1_288_490_188),
        ..item("a0000001", StaleClass::Expired, ReapAction::Destroy, why)
    }
}

pub(super) fn orphan() -> StaleItem {
    let why = "no record knows it, and its time was over 1d ago";
    item("a0000002", StaleClass::OrphanStack, ReapAction::Remove, why)
}

pub(super) fn foreign() -> StaleItem {
    let why = "it is another installation's";
    StaleItem {
        name: Some("\u{1b}[2Jtheirs\u{202e}".into()),
        owner: Some("\u{1b}]0;x\u{7}ffffffffffff".into()),
        ..item("b0000001", StaleClass::Foreign, ReapAction::Keep, why)
    }
}

pub(super) fn archive() -> StaleItem {
    let why = "no record knows it; kept: only --snapshots removes it";
    StaleItem {
        sandbox_id: None,
        snapshot_id: Some("snap-0000000a".into()),
        ..item("", StaleClass::OrphanSnapshot, ReapAction::Keep, why)
    }
}

pub(super) fn pass(host: &str, state: PassState) -> HostPass {
    let error = match state {
        PassState::Read => None,
        PassState::Forbidden => {
            Some(Error::new(Code::Forbidden, format!("{host} is forbidden: production")))
        }
        PassState::Changed => {
            Some(Error::new(Code::HostChanged, format!("{host}: this is machine x")))
        }
        _ => {
            let message = format!("{host} does not answer\u{1b}[2J");
            Some(Error::new(Code::HostUnreachable, message).hint("is sshd running?"))
        }
    };
    HostPass { host: HostName::new(host), state, machine_id: None, error }
}

pub(super) fn read() -> Vec<HostPass> {
    vec![pass("coulombcore", PassState::Read)]
}

pub(super) fn half_read() -> Vec<HostPass> {
    vec![pass("coulombcore", PassState::Read), pass("sandboxer01", PassState::Unread)]
}

pub(super) fn a_copy() -> HeldBack {
    HeldBack {
        reason: HoldReason::NotOwn,
        message: "nothing is reaped from here: this is a copy".into(),
        hint: Some("`sandboxer doctor --claim`".into()),
    }
}

async fn stale(
    items: Vec<StaleItem>,
    hosts: Vec<HostPass>,
    held_back: Option<HeldBack>,
) -> Console {
    nothing().await.answers("stale", StaleReport { at: now(), hosts, held_back, items })
}

#[tokio::test]
async fn inspect_stale_shows_each_item_the_sum_and_why_nothing_may_be_reaped() {
    let items = vec![expired(), orphan(), archive(), foreign()];
    let console = stale(items.clone(), read(), None).await;
    assert_snapshot!("inspect_stale", run(&console, "inspect stale --host coulombcore").await);
    let asked = json!({"hosts": ["coulombcore"], "as_last_seen": false});
    assert_eq!(console.last(), ("stale".to_owned(), asked));
    let ran = run(&stale(items.clone(), read(), Some(a_copy())).await, "inspect stale").await;
    let remark =
        "remark: nothing is reaped from here: this is a copy; `sandboxer doctor --claim`\n";
    assert!(ran.status == 0 && ran.stderr.ends_with(remark), "{ran}");
    let ran = run(&stale(items, read(), Some(a_copy())).await, "inspect stale --json").await;
    assert_eq!((ran.status, ran.json().as_array().unwrap().len()), (0, 4));
    fits("stale", &ran.json());
}

#[tokio::test]
async fn inspect_stale_of_many_hosts_ends_by_those_that_could_not_be_read() {
    let (read, unread, changed, forbidden) =
        (PassState::Read, PassState::Unread, PassState::Changed, PassState::Forbidden);
    for (states, status, code) in [
        (vec![], 0, ""),
        (vec![&read], 0, ""),
        (vec![&read, &forbidden], 0, ""),
        (vec![&forbidden], 0, ""),
        (vec![&unread], 5, "host_unreachable"),
        (vec![&unread, &changed], 5, "host_unreachable"),
        (vec![&changed, &forbidden], 5, "host_changed"),
        (vec![&read, &unread], 8, "partial"),
        (vec![&read, &changed, &forbidden], 8, "partial"),
    ] {
        let hosts =
            || (0..).zip(&states).map(|(n, state)| pass(&format!("h{n}"), (*state).clone()));
        let ran = run(&stale(vec![], hosts().collect(), None).await, "inspect stale").await;
        assert_eq!(ran.out(), (status, ""), "{states:?}: {ran}");
        assert!(!ran.stderr.contains('\u{1b}'), "{ran}");
        // Nothing is said of what was not read.
        assert_eq!(ran.stderr.contains("nothing is stale\n"), status == 0, "{states:?}: {ran}");
        let ran = run(&stale(vec![], hosts().collect(), None).await, "inspect stale --json").await;
        assert_eq!(ran.out(), (status, "[]\n"), "{states:?}: {ran}");
        if status != 0 {
            assert_eq!(ran.error()["code"], code, "{states:?}: {ran}");
            assert!(ran.error()["causes"][0].as_str().unwrap().starts_with('h'), "{ran}");
        }
    }
    let hosts = vec![pass("coulombcore", PassState::Read), pass("old", PassState::Unread)];
    let ran = run(&stale(vec![expired()], hosts, None).await, "inspect stale").await;
    assert_snapshot!("inspect_stale_half_read", ran);
}

#[tokio::test]
async fn a_forbidden_host_that_is_asked_for_by_name_is_forbidden() {
    let prod = vec![pass("prod", PassState::Forbidden)];
    let ran = run(&stale(vec![], prod, None).await, "inspect stale --host PROD").await;
    assert_eq!(ran.status, 9, "{ran}");
}

#[tokio::test]
async fn ctrl_c_leaves_a_look_at_what_is_stale() {
    let console = fleet().await;
    console.script.machines.lock().unwrap().insert("coulombcore".to_owned(), Machine::Hangs);
    let ran = run_in(World { presses: 1, ..World::default() }, &console, "inspect stale").await;
    assert_eq!((ran.status, ran.left_at_once), (130, false), "{ran}");
    assert!(ran.stderr.contains("nothing was changed"), "{ran}");
}
