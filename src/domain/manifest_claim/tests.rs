//! Claims of manifests, which anybody may have written, and what is believed of them.

use serde_json::{Value, json};

use super::*;

fn now() -> Time {
    Time::from_unix(1_800_000_000)
}

fn profile(max_ttl: Option<Seconds>) -> Profile {
    let mut profile = Profile::unknown("profile.x".into(), "1.2.0", "ext.compose-ssh".into());
    profile.ttl = Some(Seconds::hours(4));
    profile.max_ttl = max_ttl;
    profile
}

/// An honest record of a day ago, with these fields instead.
fn manifest(expires_at: Option<Time>, fields: &Value) -> SandboxManifest {
    let mut record = json!({
        "id": "a1b2c3d4", "name": "mine", "labels": {"team": "a", "protect": "true"},
        "profile": {"id": "profile.x", "version": "9", "hash": "0".repeat(64)},
        "extension": "ext.other", "host": "elsewhere", "state": "ready", "since": now(),
        "revision": 7, "created_at": now().minus_seconds(86_400), "ready_at": now().minus_seconds(86_300),
        "actor": {"type": "adm", "name": "eve"}, "owner": "0f", "workdir": "/etc",
        "idempotency_key": "k", "ttl_s": 7200,
    });
    for (key, value) in fields.as_object().unwrap() {
        record[key] = value.clone();
    }
    serde_json::from_value(json!({
        "schema": 1, "id": "a1b2c3d4", "owner": "0f", "profile": "profile.x",
        "created_at": now().minus_seconds(86_400), "expires_at": expires_at,
        "project": "sbx-a1b2c3d4", "sandbox": record,
    }))
    .unwrap()
}

fn believed(manifest: &SandboxManifest, profile: &Profile) -> Believed {
    let actor = Actor::parse("adm:me").unwrap();
    let host = HostName::new("there");
    let at = FoundAt { host: &host, workdir: "/srv/sbx-a1b2c3d4", now: now(), actor: &actor };
    believe(manifest, profile, at)
}

#[test]
fn an_honest_manifest_gives_the_record_back_but_for_what_others_say() {
    let Believed { record, remarks } =
        believed(&manifest(Some(now().plus_seconds(9000)), &json!({})), &profile(None));
    assert_eq!(remarks, Vec::<String>::new());
    assert_eq!(record.name.as_deref(), Some("mine"));
    assert!(record.is_protected() && record.labels["team"] == "a");
    assert_eq!((record.actor.to_string().as_str(), record.owner.as_str()), ("adm:eve", "0f"));
    assert_eq!(record.ttl_s, Some(7200));
    assert_eq!(record.expires_at, Some(now().plus_seconds(9000)));
    assert_eq!(record.ready_at, Some(now().minus_seconds(86_300)));
    assert_eq!(record.adopted_at, Some(now()));
    // Fields of the scan, the profile and the store.
    assert_eq!(
        (record.host.as_str(), record.workdir.as_deref()),
        ("there", Some("/srv/sbx-a1b2c3d4"))
    );
    assert_eq!(
        (record.profile.version.as_str(), &record.profile.hash),
        ("1.2.0", &profile(None).hash())
    );
    assert_eq!(record.extension.as_str(), "ext.compose-ssh");
    assert_eq!((record.idempotency_key, record.operation, record.handle), (None, None, None));
}

#[test]
fn a_deadline_is_an_hour_ahead_at_least_and_never_beyond_what_the_profile_allows() {
    let hour = now().plus_seconds(3600);
    let day = Some(Seconds::hours(48));
    let max = now().minus_seconds(86_300).plus_seconds(48 * 3600);
    for (what, was, max_ttl, deadline, latest) in [
        ("far enough", Some(now().plus_seconds(9000)), None, Some(now().plus_seconds(9000)), None),
        ("over", Some(now().minus_seconds(9000)), None, Some(hour), None),
        ("none", None, None, None, None),
        ("none, where the profile has a limit", None, day, Some(max), Some(max)),
        ("beyond the limit", Some(now().plus_seconds(900_000)), day, Some(max), Some(max)),
        ("a limit that is over", Some(now()), Some(Seconds::hours(1)), Some(hour), Some(hour)),
        (
            "in a thousand years",
            Some(now().plus_seconds(30_000_000_000)),
            None,
            Some(now().plus_seconds(Seconds::MAX.get())),
            None,
        ),
    ] {
        let Believed { record, remarks } = believed(&manifest(was, &json!({})), &profile(max_ttl));
        assert_eq!((record.expires_at, record.max_expires_at), (deadline, latest), "{what}");
        assert_eq!(remarks.len(), usize::from(deadline != was), "{what}: {remarks:?}");
    }
}

#[test]
fn what_nobody_could_have_typed_is_left_out_and_said() {
    for (fields, said) in [
        (json!({"name": "$(reboot)"}), "the name \"$(reboot)\""),
        (json!({"name": "deadbeef"}), "the name \"deadbeef\""),
        (json!({"labels": {"protect": "maybe", "sandboxer.deep-check": "op-1"}}), "2 labels"),
        (json!({"inputs": {"repo": "/root/.ssh"}}), "1 input"),
        (
            json!({"applied_patches": [{"id": "../x", "sequence": 1, "state": "applied"}]}),
            "1 patch",
        ),
    ] {
        let Believed { record, remarks } =
            believed(&manifest(Some(now().plus_seconds(9000)), &fields), &profile(None));
        assert!(remarks.len() == 1 && remarks[0].starts_with(said), "{said}: {remarks:?}");
        assert!(record.inputs.is_empty() && record.applied_patches.is_empty());
    }
    let wild = json!({
        "ready_at": "2999-01-01T00:00:00Z", "based_on_snapshot": "../../etc", "undo_of": "A B",
        "actor": {"type": "root", "name": "x"}, "ttl_s": u64::MAX,
        "not_preserved": {"owners": 3, "\u{1b}[2J": 1},
    });
    let record = believed(&manifest(None, &wild), &profile(None)).record;
    assert_eq!((record.ready_at, record.based_on_snapshot, record.undo_of), (None, None, None));
    assert_eq!(record.actor.to_string(), "adm:me");
    assert_eq!(record.ttl_s, Some(Seconds::MAX.get()));
    assert_eq!(record.not_preserved, BTreeMap::from([("owners".to_owned(), 3)]));
}

#[test]
fn a_script_whose_end_is_not_known_is_unknown_and_its_words_are_gone() {
    let patches = json!({"applied_patches": [
        {"id": "pat-00000002", "sequence": 2, "state": "applying", "output": "x"},
        {"id": "pat-00000001", "sequence": 1, "state": "applied", "output": "y"},
        {"id": "pat-00000001", "sequence": 3, "state": "applied"},
    ]});
    let record = believed(&manifest(None, &patches), &profile(None)).record;
    let states: Vec<_> =
        record.applied_patches.iter().map(|one| (one.sequence, &one.state)).collect();
    assert_eq!(states, [(1, &PatchState::Applied), (2, &PatchState::Unknown)]);
    assert!(record.applied_patches.iter().all(|patch| patch.output.is_none()));
    assert_eq!(record.last_patch_sequence, 1);
}

#[test]
fn a_manifest_of_an_earlier_sandboxer_makes_a_record_too() {
    let old = SandboxManifest { sandbox: None, ..manifest(None, &json!({})) };
    let Believed { record, remarks } = believed(&old, &profile(None));
    assert_eq!((&record.name, record.ttl_s), (&None, Some(4 * 3600)));
    assert_eq!(remarks, Vec::<String>::new());
    assert!(!record.kept_failed && !record.is_protected());
    let long = SandboxManifest { protect: true, ..old };
    assert!(
        believed(&long, &profile(None)).record.is_protected(),
        "its record was too long for it"
    );
}
