//! `adopt`: records of what hosts have and no record knows, from manifests that anybody may have written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sandboxer::domain::adoption::{AdoptRequest, Adopted, AdoptedKind};
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::profile::Profile;
use sandboxer::domain::request::{CreateRequest, EventQuery, ListQuery};
use sandboxer::domain::sandbox::{SandboxRecord, State};
use sandboxer::domain::sandbox_manifest::SandboxManifest;
use sandboxer::domain::snapshot::{ArchiveManifest, SnapshotRecord};
use sandboxer::domain::{Code, Time};
use sandboxer::manager::SandboxManager;
use serde_json::{Value, json};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::{TestEnv, manager_on, of, test_env};

mod held;
mod metered;
mod snapshots;

/// A host with a root of its own, on which a console made things that another data directory knows nothing of.
struct Orphaned {
    house: TestEnv,
    root: PathBuf,
    /// Data directory of the same installation, without its records.
    lost: tempfile::TempDir,
}

fn hosts(root: &Path, names: &[&str]) -> Vec<HostSpec> {
    let spec = |name: &&str| HostSpec {
        workspace_root: root.display().to_string(),
        ..HostSpec::named(*name)
    };
    names.iter().map(spec).collect()
}

impl Orphaned {
    fn new() -> Self {
        let house = test_env();
        let root = house.folder.path().join("root");
        house.script.workdirs.set(Some(root.clone()));
        house.script.seen.set(Inspection { ready: true, ..Inspection::default() });
        Self { house, root, lost: tempfile::tempdir().unwrap() }
    }

    async fn living(&self, request: CreateRequest) -> SandboxRecord {
        let record = self.house.made(request).await;
        let told = self.house.script.manifests.lock().unwrap()[&record.id].clone();
        self.write(record.id.as_str(), &text(&SandboxManifest::of(&told, &self.profile(&record))));
        record
    }

    fn profile(&self, record: &SandboxRecord) -> Profile {
        let file = format!("pinned/{}.json", record.profile.hash);
        serde_json::from_slice(&std::fs::read(self.house.folder.path().join(file)).unwrap())
            .unwrap()
    }

    fn write(&self, id: &str, manifest: &str) -> PathBuf {
        let folder = self.root.join(format!("sbx-{id}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("manifest.json"), manifest).unwrap();
        folder
    }

    async fn taken(&self, sandbox: &SandboxRecord, name: &str) -> SnapshotRecord {
        self.house.snapshot(&sandbox.id, name).await.unwrap()
    }

    /// Puts what lies beside a snapshot's archive where a host's inventory finds it.
    fn shelve(&self, snapshot: &SnapshotRecord, sandbox: &SandboxRecord) {
        let folder = self.root.join("snapshots").join(snapshot.id.as_str());
        std::fs::create_dir_all(&folder).unwrap();
        let manifest = ArchiveManifest {
            schema: 1,
            id: snapshot.id.clone(),
            owner: snapshot.owner.clone(),
            snapshot: snapshot.clone(),
            profile: self.profile(sandbox),
        };
        let text = serde_json::to_string_pretty(&manifest).unwrap();
        std::fs::write(folder.join("manifest.json"), text).unwrap();
    }

    /// The installation after its records were lost.
    fn console(&self, names: &[&str]) -> SandboxManager {
        let owner = self.lost.path().join("owner");
        if !owner.exists() {
            std::fs::copy(self.house.folder.path().join("owner"), owner).unwrap();
            // What somebody has in the root of the shipped profile for VMs, on this machine, is no part of a test.
            let shipped =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles/vm-haskell-build.yaml");
            let elsewhere = format!("root: {}", self.lost.path().join("build").display());
            let text =
                std::fs::read_to_string(shipped).unwrap().replace("root: /build", &elsewhere);
            let profiles = self.lost.path().join("profiles");
            std::fs::create_dir(&profiles).unwrap();
            std::fs::write(profiles.join("vm-haskell-build.yaml"), text).unwrap();
        }
        manager_on(self.lost.path(), &self.house.script, "local", hosts(&self.root, names))
    }

    /// Takes the machine's id out of each record of the installation: the scripted extension proves another than this one.
    fn forget_machines(&self) {
        let file = self.lost.path().join("sandboxes.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let mut document: Value = serde_json::from_str(&text).unwrap();
        clear_machines(&mut document);
        std::fs::write(&file, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    }

    async fn adopt(&self, dry_run: bool) -> Vec<Adopted> {
        let request = AdoptRequest { dry_run, ..AdoptRequest::default() };
        self.console(&["local"]).adopt(&request).await.unwrap()
    }
}

fn text(manifest: &SandboxManifest) -> String {
    serde_json::to_string_pretty(manifest).unwrap()
}

fn verdict(items: &[Adopted]) -> Vec<(String, bool, Option<Code>)> {
    let code = |item: &Adopted| item.error.as_ref().map(|error| error.code.clone());
    items.iter().map(|item| (item.id.clone(), item.ok, code(item))).collect()
}

fn named(name: &str) -> CreateRequest {
    CreateRequest {
        name: Some(name.into()),
        ttl: Some("8h".into()),
        labels: [("protect".to_owned(), "true".to_owned())].into(),
        idempotency_key: Some(name.to_owned()),
        ..CreateRequest::default()
    }
}

/// Fields in which two records differ.
fn differing(one: &SandboxRecord, other: &SandboxRecord) -> BTreeSet<String> {
    let (one, other) = (serde_json::to_value(one).unwrap(), serde_json::to_value(other).unwrap());
    let keys: BTreeSet<&String> =
        [&one, &other].into_iter().flat_map(|value| value.as_object().unwrap().keys()).collect();
    keys.into_iter().filter(|key| one.get(key) != other.get(key)).cloned().collect()
}

#[tokio::test]
async fn a_lost_store_gets_its_sandbox_back_but_for_what_only_it_knew() {
    let world = Orphaned::new();
    let before = world.living(named("mine")).await;
    let planned = world.adopt(true).await;
    assert_eq!(verdict(&planned), [(before.id.to_string(), true, None)]);
    let console = world.console(&["local"]);
    assert_eq!(console.list(&ListQuery::default()).await.unwrap().len(), 0, "a dry run");
    let done = world.adopt(false).await;
    assert_eq!(verdict(&done), verdict(&planned));
    assert_eq!(done[0].kind.clone(), AdoptedKind::Sandbox);
    assert_eq!(done[0].name.as_deref(), Some("mine"));
    done[0].says("its events");
    let after = console.get(before.id.as_str()).await.unwrap();
    let differing = differing(&before, &after);
    // The scripted host has no reachability and another machine id than this machine.
    let expected = "adopted_at attempts host_identity idempotency_key message observed_at pending \
        reachability request_hash revision rewrites route services since";
    let is_expected = |field: &str| expected.split(' ').any(|name| name == field);
    let unexpected: Vec<_> = differing.iter().filter(|field| !is_expected(field)).collect();
    assert_eq!(unexpected, Vec::<&String>::new());
    assert!(after.is_protected() && after.idempotency_key.is_none());
    assert!(!after.manifest_pending, "the host was reached");
    let events = console.events(&EventQuery::default()).await.unwrap();
    let adopted = events.iter().filter(|event| event.kind.as_str() == "sandbox.adopted");
    assert_eq!(adopted.count(), 1, "{events:?}");
    assert_eq!(verdict(&world.adopt(false).await), [], "nothing is left to adopt");
}

#[tokio::test]
async fn a_name_that_is_taken_is_left_out_and_said() {
    let world = Orphaned::new();
    let before = world.living(named("mine")).await;
    let console = world.console(&["local"]);
    let other = CreateRequest { name: Some("mine".into()), ..CreateRequest::default() };
    let started = console.create(other).await.unwrap();
    console.finish(&started.operation.unwrap()).await.unwrap();
    world.forget_machines();
    for dry_run in [true, false] {
        let items = world.adopt(dry_run).await;
        assert_eq!(verdict(&items), [(before.id.to_string(), true, None)]);
        assert_eq!(items[0].name, None);
        assert!(items[0].message.contains("mine is taken"), "{}", items[0].message);
    }
}

#[tokio::test]
async fn hostile_manifests_are_items_and_stop_none_of_the_others() {
    let world = Orphaned::new();
    let honest = world.living(CreateRequest::default()).await;
    let profile = world.profile(&honest);
    let head = |id: &str| {
        json!({
            "schema": 1, "id": id, "owner": honest.owner, "profile": profile.id,
            "created_at": honest.created_at, "expires_at": null, "project": format!("sbx-{id}"),
        })
    };
    let with = |id: &str, key: &str, value: Value| {
        let mut manifest = head(id);
        manifest[key] = value;
        world.write(id, &serde_json::to_string_pretty(&manifest).unwrap());
    };
    world.write("garbage", "{\"id\": \"garbage\", \"owner\"");
    world.write("empty", "");
    let huge = world.write("huge", "");
    std::fs::OpenOptions::new()
        .write(true)
        .open(huge.join("manifest.json"))
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    let linked = world.write("linked", "");
    std::fs::remove_file(linked.join("manifest.json")).unwrap();
    std::os::unix::fs::symlink(
        world.root.join(honest.id.project()).join("manifest.json"),
        linked.join("manifest.json"),
    )
    .unwrap();
    std::os::unix::fs::symlink(
        world.root.join(honest.id.project()),
        world.root.join("sbx-elsewhere"),
    )
    .unwrap();
    with("another", "id", json!(honest.id));
    with("newer", "schema", json!(7));
    with("snap-deadbeef", "schema", json!(1));
    with("no-profile", "profile", json!("profile.nobody-has-this"));
    let mut stranger = serde_json::to_value(&honest).unwrap();
    stranger["id"] = json!("other");
    with("stranger", "sandbox", stranger);
    let mut wide = serde_json::to_value(&profile).unwrap();
    wide["compose"]["allow"] = json!(["privileged"]);
    with("wide", "recipe", wide);
    let items = world.adopt(false).await;
    let of = |id: &str| items.iter().find(|item| item.id == id).cloned().unwrap();
    for (id, code) in [("snap-deadbeef", Code::OperationFailed), ("no-profile", Code::InvalidInput)]
    {
        assert_eq!(of(id).error.map(|error| error.code), Some(code), "{id}");
    }
    for id in ["garbage", "empty", "huge", "linked", "elsewhere", "another", "newer", "stranger"] {
        let item = of(id);
        assert!(item.ok && !item.adopted && item.message.contains("nobody can tell"), "{item:?}");
    }
    assert!(of(honest.id.as_str()).ok);
    let wide = of("wide");
    assert!(wide.ok && wide.message.contains("its profile is the catalogue's"), "{wide:?}");
    let record = world.console(&["local"]).get("wide").await.unwrap();
    assert_eq!(record.profile.hash, honest.profile.hash);
}

#[tokio::test]
async fn what_another_owner_has_is_shown_by_a_dry_run_alone() {
    let world = Orphaned::new();
    let manifest = json!({"schema": 1, "id": "theirs", "owner": "0123abcd", "profile": "profile.x",
        "created_at": Time::from_unix(0), "expires_at": null, "project": "sbx-theirs"});
    world.house.create(CreateRequest::default()).await.1.unwrap();
    world.write("theirs", &serde_json::to_string_pretty(&manifest).unwrap());
    let items = world.adopt(true).await;
    assert_eq!(verdict(&items), [("theirs".to_owned(), true, None)]);
    assert!(!items[0].adopted, "it is only listed");
    assert!(items[0].message.contains("--owner 0123abcd"), "{}", items[0].message);
    assert_eq!(verdict(&world.adopt(false).await), []);
    // A slip of the pen takes nothing over.
    let console = world.console(&["local"]);
    for (owner, code) in
        [("0123abce", Code::NotFound), ("../owner", Code::InvalidInput), ("", Code::InvalidInput)]
    {
        let request = AdoptRequest { owner: Some(owner.into()), ..AdoptRequest::default() };
        assert_eq!(console.adopt(&request).await.unwrap_err().code, code, "{owner}");
    }
    let request =
        AdoptRequest { owner: Some("0123abcd".into()), dry_run: true, ..AdoptRequest::default() };
    let planned = console.adopt(&request).await.unwrap();
    assert_eq!(planned[0].kind, AdoptedKind::Owner);
    assert!(
        planned.iter().any(|item| item.id == "theirs"
            && item.error.as_ref().is_some_and(|e| e.code == Code::InvalidInput)),
        "{planned:?}"
    );
}

#[tokio::test]
async fn one_host_under_two_names_has_one_sandbox_and_an_id_that_was_used_is_refused() {
    let world = Orphaned::new();
    let before = world.living(CreateRequest::default()).await;
    let console = world.console(&["alias", "local"]);
    let items = console.adopt(&AdoptRequest::default()).await.unwrap();
    assert_eq!(verdict(&items), [(before.id.to_string(), true, None)]);
    assert_eq!(items[0].host.as_str(), "local", "as its manifest has it");
    assert_eq!(verdict(&console.adopt(&AdoptRequest::default()).await.unwrap()), []);
    // Destroyed by its record, and there again: a create that came to its end late.
    let started = console.destroy(&of(&before.id)).await.unwrap();
    console.finish(&started.operation.unwrap()).await.unwrap();
    let again = console.adopt(&AdoptRequest::default()).await.unwrap();
    assert_eq!(verdict(&again), [(before.id.to_string(), false, Some(Code::Conflict))]);
    let hint = again[0].error.as_ref().unwrap().hint.clone().unwrap();
    assert!(hint.contains("reap-stale"), "{hint}");
}

#[tokio::test]
async fn what_never_became_ready_is_kept_to_be_looked_at_and_what_sleeps_sleeps() {
    for (seen, was_ready, state) in [
        (Inspection::default(), false, State::Failed),
        (Inspection { asleep: true, ..Inspection::default() }, true, State::Sleeping),
        (Inspection { ready: true, ..Inspection::default() }, false, State::Ready),
    ] {
        let world = Orphaned::new();
        let mut before = world.living(CreateRequest::default()).await;
        if !was_ready {
            before.ready_at = None;
            before.handle = None;
            let manifest = SandboxManifest::of(&before, &world.profile(&before));
            world.write(before.id.as_str(), &text(&manifest));
        }
        world.house.script.seen.set(seen);
        world.adopt(false).await;
        let record = world.console(&["local"]).get(before.id.as_str()).await.unwrap();
        assert_eq!((&record.state, record.kept_failed), (&state, state == State::Failed));
        assert!(record.expires_at.is_some());
    }
}

#[tokio::test]
async fn a_recreate_sends_no_directory_that_only_a_manifest_names() {
    let world = Orphaned::new();
    let repo = world.house.folder.path().join("repo");
    std::fs::create_dir(&repo).unwrap();
    let request = CreateRequest {
        profile: Some("profile.compose-e2e".into()),
        inputs: [("repo".to_owned(), repo.display().to_string())].into(),
        host: Some("local".into()),
        ..CreateRequest::default()
    };
    let before = world.living(request).await;
    let items = world.adopt(false).await;
    assert!(items[0].message.contains("which no recreate sends there"), "{}", items[0].message);
    let console = world.console(&["local"]);
    let record = console.get(before.id.as_str()).await.unwrap();
    assert_eq!(record.inputs, before.inputs);
    let fault = console.recreate(&of(&before.id)).await.unwrap_err();
    fault.coded(Code::Conflict).hints("sandboxer create");
    assert_eq!(console.get(before.id.as_str()).await.unwrap().state, State::Ready);
}

fn clear_machines(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(machine) = fields.get_mut("machine_id") {
                *machine = json!("");
            }
            fields.values_mut().for_each(clear_machines);
        }
        Value::Array(items) => items.iter_mut().for_each(clear_machines),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
