use super::*;
use crate::domain::tests::{self as examples, patch};

fn patches(sequences: &[u64]) -> Vec<Patch> {
    sequences.iter().map(|sequence| patch(*sequence, "snap-a")).collect()
}

/// A sandbox on `snap-a` with these runs: sequence and state.
fn sandbox(runs: &[(u64, PatchState)]) -> SandboxRecord {
    let mut record = examples::sandbox(serde_json::json!({"based_on_snapshot": "snap-a"}));
    record.applied_patches = runs
        .iter()
        .map(|(sequence, state)| AppliedPatch {
            id: patch(*sequence, "snap-a").id,
            sequence: *sequence,
            state: state.clone(),
            started_at: None,
            took_ms: None,
            exit_status: None,
            output: None,
        })
        .collect();
    record
}

/// Blocking patch: the sequence of a failed one as a positive number, of an unknown one as a negative.
fn seen(record: &SandboxRecord, patches: &[Patch], retry: bool) -> (Vec<u64>, Option<i64>) {
    let pending = pending_patches(record, patches, retry);
    let blocked = pending.blocked.map(|blocked| match blocked {
        Blocked::Failed(run) => run.sequence.cast_signed(),
        Blocked::Unknown(run) => -run.sequence.cast_signed(),
    });
    (pending.run.iter().map(|patch| patch.sequence).collect(), blocked)
}

#[test]
fn what_a_sandbox_owes() {
    use PatchState::{Applied, Applying, Failed, Unknown};
    type Case = (&'static [u64], Vec<(u64, PatchState)>, Vec<u64>, Option<i64>, Vec<u64>);
    // The snapshot's patches, the sandbox's runs, what runs, what is in the way, what runs with --retry.
    let cases: [Case; 10] = [
        (&[], vec![], vec![], None, vec![]),
        (&[1, 2], vec![], vec![1, 2], None, vec![1, 2]),
        (&[2, 1], vec![], vec![1, 2], None, vec![1, 2]),
        (&[1, 2], vec![(1, Applied)], vec![2], None, vec![2]),
        (&[1, 2], vec![(1, Applied), (2, Applied)], vec![], None, vec![]),
        (
            &[1, 2, 3, 4],
            vec![(1, Applied), (2, Applied), (3, Failed)],
            vec![4],
            Some(3),
            vec![3, 4],
        ),
        (&[1, 2, 4], vec![(1, Applied), (2, Applied), (3, Failed)], vec![4], None, vec![4]),
        (&[1, 2], vec![(1, Unknown)], vec![2], Some(-1), vec![1, 2]),
        (&[1, 2], vec![(1, Applying)], vec![2], Some(-1), vec![1, 2]),
        (&[5], vec![(1, Applied), (4, Applied)], vec![5], None, vec![5]),
    ];
    for (there, runs, run, blocked, retried) in cases {
        let (record, patches) = (sandbox(&runs), patches(there));
        assert_eq!(seen(&record, &patches, false), (run, blocked), "{there:?} {runs:?}");
        assert_eq!(seen(&record, &patches, true), (retried, None), "--retry: {there:?} {runs:?}");
    }
}

#[test]
fn only_the_patches_of_its_own_snapshot_count() {
    let all = [patch(1, "snap-a"), patch(2, "snap-b")];
    let mut record = sandbox(&[]);
    assert_eq!(seen(&record, &all, false).0, [1]);
    record.based_on_snapshot = None;
    assert_eq!(
        seen(&record, &all, true),
        (vec![], None),
        "what was made from its inputs pending nothing"
    );
    assert_eq!(settled_state(&record, &all), PatchState::None);
}

#[test]
fn what_is_applied_is_known_by_its_id_and_not_by_its_number() {
    let mut another = patch(1, "snap-a");
    another.id = "pat-ffffffff".into();
    let record = sandbox(&[(1, PatchState::Applied)]);
    assert_eq!(seen(&record, &[another], false).0, [1]);
}

#[test]
fn what_a_record_says_between_passes() {
    use PatchState::{Applied, Failed, None, Pending, Unknown};
    for (there, runs, state) in [
        (&[][..], vec![], None),
        (&[1], vec![], Pending),
        (&[1], vec![(1, Applied)], Applied),
        (&[1, 2], vec![(1, Applied)], Pending),
        (&[1, 2], vec![(1, Failed)], Failed),
        (&[1, 2], vec![(1, Unknown)], Unknown),
        // The failing one was removed: what is behind it waits; without one behind it, all are in.
        (&[2], vec![(1, Failed)], Pending),
        (&[1], vec![(1, Applied), (2, Failed)], Applied),
        (&[], vec![(1, Failed)], None),
        // All were removed: what it has, it keeps.
        (&[], vec![(1, Applied)], Applied),
    ] {
        assert_eq!(settled_state(&sandbox(&runs), &patches(there)), state, "{there:?} {runs:?}");
    }
}

/// The acceptance list of semantics 7, as far as it is a matter of what is owed.
#[test]
fn the_acceptance_list() {
    use PatchState::{Applied, Failed};
    let pending =
        |there: &[u64], runs: &[(u64, PatchState)]| seen(&sandbox(runs), &patches(there), false);
    assert_eq!(pending(&[1], &[]), (vec![1], None));
    assert_eq!(pending(&[1, 2], &[(1, Applied)]), (vec![2], None));
    let with_third = [(1, Applied), (2, Applied), (3, Failed)];
    assert_eq!(
        pending(&[1, 2, 3, 4], &with_third),
        (vec![4], Some(3)),
        "the fourth waits behind the third"
    );
    assert_eq!(
        pending(&[1, 2, 4], &with_third),
        (vec![4], None),
        "and no more once that is removed"
    );
    let with_fourth = [(1, Applied), (2, Applied), (3, Failed), (4, Applied)];
    assert_eq!(
        pending(&[1, 2, 5], &with_fourth),
        (vec![5], None),
        "a new one has a number of its own"
    );
}
