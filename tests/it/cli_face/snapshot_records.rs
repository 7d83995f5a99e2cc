//! Snapshots and patches to put into a world, and the sandboxes that are based on them.

use sandboxer::domain::patch::{AppliedPatch, PatchState};
use sandboxer::domain::snapshot::{CapturedVolume, SnapshotRecord};
use sandboxer::domain::{Patch, SandboxRecord, SnapshotId, State};
use serde_json::json;

use super::cli_world::*;
use crate::test_env::fixture::{Fixture, snapshot_of};

/// A snapshot that is ready, three hours old.
pub(crate) fn snapshot(id: &str, name: Option<&str>, of: &str) -> SnapshotRecord {
    let source = named(of, "my-env", State::Ready);
    let mut made = snapshot_of(&source, id, name, now().minus_seconds(10_800));
    made.archive.captured_volumes = vec![CapturedVolume { name: "data".into() }];
    SnapshotRecord { actor: tester(), ..made }
}

pub(crate) fn patch(
    sequence: u64,
    snapshot: &str,
    script: &str,
    description: Option<&str>,
) -> Patch {
    let value = json!({
        "id": format!("pat-0000000{sequence}"), "snapshot_id": snapshot, "sequence": sequence, "script": script,
        "description": description, "run_in": "workspace", "created_at": now().minus_seconds(60),
        "actor": {"type": "adm", "name": "tester"}, "revision": 1,
    });
    serde_json::from_value(value).unwrap()
}

pub(crate) const A: &str = "snap-0000000a";
pub(crate) const B: &str = "snap-1000000b";

pub(crate) fn based(id: &str, name: &str, on: &str) -> SandboxRecord {
    SandboxRecord { based_on_snapshot: Some(SnapshotId::new(on)), ..named(id, name, State::Ready) }
}

/// A run of a patch, as a record has it.
pub(crate) fn run_of(sequence: u64, state: &str, output: &str) -> AppliedPatch {
    let (took, exit) = match state {
        "applied" => (Some(75_000), Some(0)),
        "failed" => (Some(75_000), Some(7)),
        _ => (None, None),
    };
    let value = json!({"id": format!("pat-0000000{sequence}"), "sequence": sequence, "state": state,
        "started_at": now(), "took_ms": took, "exit_status": exit, "output": output});
    serde_json::from_value(value).unwrap()
}

/// The picture of semantics 7: A of my-env; one and two are based on A; B is taken of one; three is based on B.
pub(crate) fn relatives() -> Fixture {
    let mut one = based("b1b1b1b1", "one", A);
    one.applied_patches = vec![run_of(1, "applied", "")];
    one.last_patch_sequence = 1;
    one.patch_state = PatchState::Pending;
    let records =
        vec![ready("a1b2c3d4"), one, based("b2b2b2b2", "two", A), based("b3b3b3b3", "three", B)];
    let mut b = snapshot(B, None, "b1b1b1b1");
    (b.sandbox_name, b.parent_snapshot, b.patch_level) =
        (Some("one".into()), Some(SnapshotId::new(A)), 1);
    let a = SnapshotRecord { next_patch_sequence: 3, ..snapshot(A, Some("base"), "a1b2c3d4") };
    let patches = vec![
        patch(1, A, "true", Some("newer certificates\u{1b}[2J")),
        patch(2, A, "make fix", None),
    ];
    Fixture { records, hosts: hosts(), snapshots: vec![a, b], patches, ..Fixture::default() }
}

pub(crate) async fn family() -> Console {
    env_of(relatives()).await
}
