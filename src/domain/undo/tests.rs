use super::*;
use crate::domain::tests as examples;

const GIB: u64 = 1 << 30;

#[test]
fn none_is_taken_of_what_is_large_or_of_a_host_without_room() {
    let settings = UndoSettings::default();
    let limits = Limits::default();
    let seen = |bytes, free_bytes, disk_used_pct| Footprint { bytes, free_bytes, disk_used_pct };
    for (footprint, refused) in [
        (seen(GIB, 2 * GIB, 90.0), None),
        (seen(0, 0, 0.0), None),
        (seen(GIB + 1, 100 * GIB, 1.0), Some("undo.max_bytes is 1GiB")),
        (seen(GIB, 2 * GIB - 1, 1.0), Some("twice its size is 2GiB")),
        (seen(1, 100 * GIB, 90.04), Some("the host's disk is 90.0 % used, and its limit is 90 %")),
        (seen(u64::MAX / 2 + 1, u64::MAX, 1.0), Some("undo.max_bytes")),
    ] {
        let said = settings.refusal(&footprint, &limits);
        match refused {
            None => assert_eq!(said, None, "{footprint:?}"),
            Some(words) => {
                let said = said.unwrap();
                assert!(said.contains(words), "{footprint:?}: {said}");
            }
        }
    }
    let boundless = UndoSettings { max_bytes: Bytes(u64::MAX), ..UndoSettings::default() };
    assert!(boundless.refusal(&seen(u64::MAX, u64::MAX - 1, 1.0), &limits).is_some());
}

#[test]
fn a_name_is_tried_as_it_was_then_with_a_suffix_that_fits() {
    assert_eq!(names_for(None), [None]);
    let names = names_for(Some("shop"));
    let first: Vec<_> = names.iter().flatten().take(4).map(String::as_str).collect();
    assert_eq!(first, ["shop", "shop-undo", "shop-undo-2", "shop-undo-3"]);
    assert_eq!(names.len(), 100);
    let long = "x".repeat(63);
    for name in names_for(Some(&long)).iter().flatten() {
        assert!(crate::domain::name::check_name(name).is_ok(), "{name}");
    }
}

#[test]
fn of_what_patches_wrote_the_end_is_kept_and_of_many_that_of_the_newest() {
    let run = |sequence: u64, output: &str| AppliedPatch {
        id: format!("pat-{sequence:08x}").as_str().into(),
        sequence,
        state: crate::domain::patch::PatchState::Applied,
        started_at: None,
        took_ms: None,
        exit_status: Some(0),
        output: Some(output.to_owned()),
    };
    let mut long = "é".repeat(3000);
    long.push('!');
    let runs: Vec<_> = (1..=20).map(|sequence| run(sequence, &long)).collect();
    let mut record = examples::sandbox(serde_json::json!({"ttl_s": 60}));
    record.applied_patches = runs;
    let facts = UndoFacts::of(&record, OperationKind::Destroy);
    assert_eq!((facts.ttl_s, facts.applied_patches.len()), (Some(60), 20));
    let outputs: Vec<_> =
        facts.applied_patches.iter().map(|run| run.output.as_ref().unwrap()).collect();
    assert!(outputs.iter().all(|output| long.ends_with(output.as_str())));
    assert!(outputs[19].len() <= 4096 && outputs[19].len() > 4090 && outputs[0].is_empty());
    assert!(outputs.iter().map(|output| output.len()).sum::<usize>() <= 64 * 1024);
}
