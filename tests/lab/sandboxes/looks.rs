//! What the extensions say a host has (`inspect`, `services`), asked through the library: their faces are other verbs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use sandboxer::domain::error::Code;
use sandboxer::domain::extension::{Inspection, OwnerStamp, SandboxExtension, Target};
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::name::HostName;
use sandboxer::domain::reporter::{Report, Reporter};
use sandboxer::domain::root::{HostRecord, KnownRoots};
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::extensions::compose_ssh::ComposeSsh;
use sandboxer::store::catalogue::Catalogue;
use sandboxer::transport::Transports;
use sandboxer::transport::pool::Pool;
use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, lab, on_engine, text};
use crate::support::json_assertions::JsonAssertions as _;

/// The extension on the bench's hosts, apart from any process of ours.
fn extension(bench: &Bench) -> (ComposeSsh, Arc<dyn Transports>) {
    let hosts = [DOCKER, PODMAN].map(|name| HostSpec {
        ssh: Some(name.to_owned()),
        ssh_config: Some(lab().join("ssh_config")),
        workspace_root: bench.workspace_root(name).to_string_lossy().into_owned(),
        ..HostSpec::named(name)
    });
    let pool: Arc<dyn Transports> = Arc::new(Pool::new(hosts.to_vec(), bench.path("s"), None));
    (ComposeSsh::new(Arc::clone(&pool), None, sandboxer::app::now), pool)
}

/// What is known of a host's roots, as the bench's own processes have it.
fn roots(bench: &Bench, host: &HostName) -> KnownRoots {
    let text = fs::read_to_string(bench.data().join("hosts.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let records: Vec<HostRecord> = serde_json::from_value(document["records"].clone()).unwrap();
    let known = records.into_iter().find(|known| known.id == HostRecord::key(host)).unwrap();
    KnownRoots { marked: known.roots, unmarked: Vec::new(), spare: known.spare_mark }
}

fn target(bench: &Bench, record: &Value) -> Target {
    let record: SandboxRecord = serde_json::from_value(record.clone()).unwrap();
    let owner = record.owner.clone();
    let roots = roots(bench, &record.host);
    let all = BTreeSet::from(["ext.compose-ssh"]);
    Target {
        id: record.id,
        owners: vec!["of-another-time".into(), record.owner],
        host: record.host,
        profile: Catalogue::load(None, None, &all)
            .usable_profile(record.profile.id.as_str())
            .unwrap()
            .clone(),
        inputs: BTreeMap::new(),
        handle: record.handle,
        workdir: record.workdir,
        host_identity: record.host_identity,
        stamp: Some(OwnerStamp { owner, machine_id: String::new(), counter: 4 }),
        roots,
        start_output: None,
    }
}

/// Nobody listens.
struct Silent;

impl Reporter for Silent {
    fn report(&self, _: Report) {}
}

fn kinds(seen: &Inspection) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for resource in &seen.resources {
        *kinds.entry(resource.kind.as_str()).or_default() += 1;
    }
    kinds
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_host_says_what_it_has_of_a_sandbox_on_either_engine() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let (compose, pool) = extension(&bench);
        let repo = bench.stack(
            "two",
            "services:\n  web:\n    image: localhost/sbx-lab:1\n    command: [httpd, -f, -p, '80']\n    stop_signal: SIGKILL\n    ports: ['80']\n    volumes: ['data:/data']\n  side:\n    image: localhost/sbx-lab:1\n    command: [sleep, '3600']\n    stop_signal: SIGKILL\nvolumes:\n  data:\n",
        );
        let record = bench.create_stack(host, &repo, &[]);
        let canary = bench.ok(["create", "--host", host]);
        let (stack, room) = (target(&bench, &record), target(&bench, &canary));

        let seen = compose.inspect(&stack).await.unwrap();
        assert!(seen.ready, "{host}: {seen:#?}");
        let found = kinds(&seen);
        let wanted = [("container", 2), ("directory", 1), ("network", 1), ("volume", 1)];
        for (kind, count) in wanted {
            assert_eq!(found.get(kind), Some(&count), "{host}: {kind}: {seen:#?}");
        }
        let found = serde_json::to_value(&seen.reachability).unwrap();
        assert_eq!(found, record["reachability"], "{host}");
        assert_eq!(
            seen.services.iter().map(|s| s.state.as_str()).collect::<Vec<_>>(),
            ["running"; 2],
            "{host}"
        );
        // Two creates, each counted when it began and when it was ready: the host's counter is where ours is.
        assert_eq!(seen.counter, Some(4), "{host}");
        let seen = compose.inspect(&room).await.unwrap();
        assert!(
            seen.ready && seen.services.is_empty() && kinds(&seen).len() == 1,
            "{host}: {seen:#?}"
        );

        // A service that dies is seen by both questions; the others' answers do not change.
        let name = format!("sbx-{}", text(&record["id"]));
        let kill = "for c in $($1 ps -q --filter label=sandboxer.id=$2 --filter label=com.docker.compose.service=side); do $1 kill $c && $1 wait $c; done";
        on_engine(host, &[kill, &text(&record["id"])]);
        let seen = compose.inspect(&stack).await.unwrap();
        assert!(!seen.ready && seen.reachability.is_none(), "{host}: {seen:#?}");
        let all = [stack.clone(), room.clone()];
        let services = compose.services(&HostName::new(host), &all).await.unwrap();
        assert_eq!(services[&room.id], [], "{host}");
        let states: BTreeMap<&str, (&str, Option<i32>)> = services[&stack.id]
            .iter()
            .map(|s| (s.name.as_str(), (s.state.as_str(), s.exit_code)))
            .collect();
        assert_eq!(states["web"], ("running", None), "{host}");
        assert_eq!(states["side"], ("exited", Some(137)), "{host}");

        // Another engine or machine says nothing of them.
        let mut elsewhere = all.clone();
        elsewhere[0].host_identity.as_mut().unwrap().engine_id =
            Some(if host == PODMAN { "/another:1" } else { "another" }.to_owned());
        elsewhere[1].host_identity.as_mut().unwrap().machine_id = "another".to_owned();
        assert!(
            compose.services(&HostName::new(host), &elsewhere).await.unwrap().is_empty(),
            "{host}"
        );
        for one in &elsewhere {
            let error = compose.inspect(one).await.unwrap_err();
            assert_eq!(error.code, Code::HostChanged, "{host}: {error}");
        }

        // A directory that is somebody else's is not among what is there; one that cannot be told is.
        let manifest =
            bench.workspace_root(host).join(format!("sbx-{}/manifest.json", text(&canary["id"])));
        let ours = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, ours.replace(&text(&canary["owner"]), "somebody")).unwrap();
        assert_eq!(compose.inspect(&room).await.unwrap().resources, [], "{host}");
        fs::write(&manifest, "{").unwrap();
        let seen = compose.inspect(&room).await.unwrap();
        assert!(!seen.ready, "{host}: {seen:#?}");
        assert_eq!(kinds(&seen), BTreeMap::from([("directory", 1)]), "{host}: {seen:#?}");
        fs::write(&manifest, ours).unwrap();

        // Records that are an older copy remove nothing.
        let before = bench.snapshot(host);
        let stamp = |counter| OwnerStamp {
            owner: stack.owners.last().unwrap().clone(),
            machine_id: String::new(),
            counter,
        };
        let old = Target { stamp: Some(stamp(1)), ..stack.clone() };
        let error = compose.teardown(&old, &Silent).await.unwrap_err();
        assert_eq!(error.code, Code::Conflict, "{host}");
        assert_eq!(error.details["kind"], json!("behind"), "{host}");
        assert_eq!(error.details["counter"], json!(4), "{host}");
        bench.assert_unchanged(host, &before);
        let gone = compose
            .teardown(&Target { stamp: Some(stamp(4)), ..stack.clone() }, &Silent)
            .await
            .unwrap();
        assert!(gone.is_clean(), "{host}: {gone:#?}");

        bench.ok(["destroy", &text(&record["id"]), &text(&canary["id"])]);
        let seen = compose.inspect(&stack).await.unwrap();
        assert_eq!((seen.resources.len(), seen.ready), (0, false), "{host}: {name}: {seen:#?}");
        assert!(compose.services(&HostName::new(host), &all).await.unwrap().is_empty(), "{host}");
        pool.close().await;
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_check_of_a_host_sees_what_died_and_what_is_lost() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let repo = bench.web_stack("x");
        let record = bench.create_stack(host, &repo, &[]);
        let id = text(&record["id"]);
        let canary = text(&bench.ok(["create", "--host", host])["id"]);
        let remove = r#"for c in $($1 ps -aq --filter "label=sandboxer.id=$2"); do $1 $3 $c; done >/dev/null"#;
        on_engine(host, &[remove, &id, "kill"]);
        on_engine(host, &[remove, &id, "wait"]);
        bench.ok(["hosts", "check", host]);
        bench.get(&id).has(json!({"state": "ready", "services.0.exit_code": 137}));
        on_engine(host, &[remove, &id, "rm -f"]);
        let rest = r#"$1 network rm $($1 network ls -q --filter "label=sandboxer.id=$2") >/dev/null; rm -rf "$3""#;
        on_engine(host, &[rest, &id, &text(&record["workdir"])]);
        bench.ok(["hosts", "check", host]);
        bench.get(&id).has(json!({"state": "lost", "reason": null}));
        let found = bench.event_kinds(&id);
        assert_eq!(found.last().unwrap(), "sandbox.lost", "{host}");
        assert_eq!(bench.get(&canary)["state"], "ready", "{host}: what is there is not lost");
        bench.ok(["destroy", &id, &canary]);
    }
}
