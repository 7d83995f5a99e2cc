//! Adding a patch: what is refused at once, and its number.

use sandboxer::domain::Code;
use sandboxer::domain::request::PatchRequest;

use super::patches::patch;
use crate::test_env::test_env;

#[tokio::test]
async fn a_patch_for_a_service_that_the_snapshot_has_not_is_refused_at_once() {
    let house = test_env();
    let snapshot = house.base("my-env").await;
    let into = |service: &str| PatchRequest {
        run_in: Some(service.to_owned()),
        ..patch(&snapshot, "true")
    };
    let fault = house.manager.add_patch(&into("wep")).await.unwrap_err();
    assert_eq!((fault.code, fault.details["field"].as_str()), (Code::InvalidInput, Some("run_in")));
    assert_eq!(fault.message, "snapshot my-env has no service wep");
    assert_eq!(fault.hint.as_deref(), Some("did you mean web? it has web"));
    assert_eq!(
        house.manager.add_patch(&into("web")).await.unwrap().sequence,
        1,
        "a refused one takes no number"
    );
    house.add(&snapshot, "true").await;
}

/// No restore could apply it, and no wake could pass it.
#[tokio::test]
async fn a_patch_for_a_service_of_what_is_a_workspace_alone_is_refused_at_once() {
    let house = test_env();
    let snapshot = house.base("my-env").await;
    let file = house.folder.path().join("snapshots.json");
    let mut stored: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    stored["records"][0]["images"] = serde_json::json!({});
    std::fs::write(&file, stored.to_string()).unwrap();
    let into = PatchRequest { run_in: Some("web".to_owned()), ..patch(&snapshot, "true") };
    let fault = house.manager.add_patch(&into).await.unwrap_err();
    assert_eq!((fault.code, fault.details["field"].as_str()), (Code::InvalidInput, Some("run_in")));
    assert!(
        fault.message.contains("my-env has no services: profile.sandbox-canary"),
        "{}",
        fault.message
    );
    assert_eq!(house.add(&snapshot, "true").await.sequence, 1, "a refused one takes no number");
    // Of a profile that is not here nobody knows what it has.
    stored["records"][0]["profile"]["hash"] = "0".repeat(64).into();
    stored["records"][0]["next_patch_sequence"] = 2.into();
    std::fs::write(&file, stored.to_string()).unwrap();
    assert_eq!(house.manager.add_patch(&into).await.unwrap().sequence, 2);
}

#[tokio::test]
async fn the_numbers_of_patches_end_and_never_begin_again() {
    let house = test_env();
    let snapshot = house.base("my-env").await;
    let file = house.folder.path().join("snapshots.json");
    let text = std::fs::read_to_string(&file).unwrap();
    for (next, last) in [
        (1_000_000_u64, Ok(1_000_000)),
        (1_000_001, Err(Code::Conflict)),
        (u64::MAX, Err(Code::Conflict)),
    ] {
        let mut stored: serde_json::Value = serde_json::from_str(&text).unwrap();
        stored["records"][0]["next_patch_sequence"] = next.into();
        std::fs::write(&file, stored.to_string()).unwrap();
        let added = house.manager.add_patch(&patch(&snapshot, "true")).await;
        if let Err(fault) = &added {
            assert!(fault.message.contains("no number left for a patch"), "{fault}");
        }
        assert_eq!(added.map(|patch| patch.sequence).map_err(|fault| fault.code), last, "{next}");
    }
}
