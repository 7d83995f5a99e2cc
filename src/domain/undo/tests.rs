use super::*;

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
        (seen(GIB, 2 * GIB - 1, 1.0), Some("twice its size is 2.0 GiB")),
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
