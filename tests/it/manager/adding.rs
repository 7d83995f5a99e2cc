//! Adding a patch: what is refused at once, and its number.

use sandboxer::domain::Code;
use sandboxer::domain::request::PatchRequest;
use serde_json::json;

use super::patches::patch;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::with_snapshot;

#[tokio::test]
async fn a_patch_for_a_service_that_the_snapshot_has_not_is_refused_at_once() {
    let (house, snapshot) = with_snapshot().await;
    let into = |service: &str| PatchRequest {
        run_in: Some(service.to_owned()),
        ..patch(&snapshot, "true")
    };
    let fault = house.manager.add_patch(&into("wep")).await.unwrap_err();
    assert_eq!((&fault.code, fault.field()), (&Code::InvalidInput, Some("run_in")));
    assert_eq!(fault.message, "snapshot my-env has no service wep");
    assert_eq!(fault.hint.as_deref(), Some("did you mean web? it has web"));
    let found = house.manager.add_patch(&into("web")).await.unwrap().sequence;
    assert_eq!(found, 1, "a refused one takes no number");
    house.add(&snapshot, "true").await;
}

/// No restore could apply it, and no wake could pass it.
#[tokio::test]
async fn a_patch_for_a_service_of_what_is_a_workspace_alone_is_refused_at_once() {
    let (house, snapshot) = with_snapshot().await;
    house.edit("snapshots.json", |stored| stored["records"][0]["images"] = json!({}));
    let into = PatchRequest { run_in: Some("web".to_owned()), ..patch(&snapshot, "true") };
    let fault = house.manager.add_patch(&into).await.unwrap_err();
    assert_eq!((&fault.code, fault.field()), (&Code::InvalidInput, Some("run_in")));
    fault.says("my-env has no services: profile.sandbox-canary");
    assert_eq!(house.add(&snapshot, "true").await.sequence, 1, "a refused one takes no number");
    // Of a profile that is not here nobody knows what it has.
    let lost = "0".repeat(64);
    house.edit("snapshots.json", |stored| stored["records"][0]["profile"]["hash"] = lost.into());
    assert_eq!(house.manager.add_patch(&into).await.unwrap().sequence, 2);
}

#[tokio::test]
async fn the_numbers_of_patches_end_and_never_begin_again() {
    let (house, snapshot) = with_snapshot().await;
    for (next, last) in [
        (1_000_000_u64, Ok(1_000_000)),
        (1_000_001, Err(Code::Conflict)),
        (u64::MAX, Err(Code::Conflict)),
    ] {
        house.edit("snapshots.json", |stored| {
            stored["records"][0]["next_patch_sequence"] = next.into();
        });
        let added = house.manager.add_patch(&patch(&snapshot, "true")).await;
        if let Err(fault) = &added {
            fault.says("no number left for a patch");
        }
        assert_eq!(added.map(|patch| patch.sequence).map_err(|fault| fault.code), last, "{next}");
    }
}
