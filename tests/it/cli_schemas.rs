//! The JSON Schemas in `docs/schemas`: generated from the types that are printed. `UPDATE=1` writes them anew.

use std::path::PathBuf;

use sandboxer::cli::{BulkItem, ErrorLine, ExecResult, LogEntry, ProgressLine, SandboxDetail};
use sandboxer::client::{
    Adopted, Check, Credits, Decision, ExtensionView, FlushReport, HistoryEntry, PatchStatus,
    ProfileView, PruneItem, ReapItem, ReapPlan, Recovered, RolloutItem, SnapshotDiff, StaleItem,
    SweepReport,
};
use sandboxer::domain::host_view::HostView;
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::patch::Patch;
use sandboxer::domain::snapshot::SnapshotRecord;
use sandboxer::domain::{Event, Operation, SandboxRecord};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Every document that is printed: the file's name, what it is, its schema.
fn schemas() -> Vec<(&'static str, Value)> {
    fn of<T: schemars::JsonSchema>(title: &str) -> Value {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let mut schema = generator.into_root_schema_for::<T>().to_value();
        schema["title"] = json!(title);
        schema
    }
    vec![
        (
            "sandbox",
            of::<SandboxRecord>(
                "create, recreate, restore, sleep, wake, wait, label, patches apply ID",
            ),
        ),
        ("sandbox_detail", of::<SandboxDetail>("get")),
        ("sandboxes", of::<Vec<SandboxRecord>>("list")),
        ("decision", of::<Decision>("create --dry-run")),
        ("bulk", of::<Vec<BulkItem>>("destroy, snapshots delete, profiles validate")),
        ("snapshot", of::<SnapshotRecord>("snapshot, snapshots verify|copy|export|import")),
        ("snapshot_view", of::<SnapshotView>("snapshots get")),
        ("snapshots", of::<Vec<SnapshotView>>("snapshots list")),
        ("snapshot_diff", of::<SnapshotDiff>("snapshots diff")),
        ("prune", of::<Vec<PruneItem>>("snapshots prune")),
        ("patch", of::<Patch>("patches add, patches remove")),
        ("patches", of::<Vec<Patch>>("patches list")),
        ("patch_status", of::<Vec<PatchStatus>>("patches status")),
        ("rollout", of::<Vec<RolloutItem>>("patches apply --all")),
        ("profile", of::<ProfileView>("profiles show")),
        ("profiles", of::<Vec<ProfileView>>("profiles list")),
        ("extension", of::<ExtensionView>("extensions show")),
        ("extensions", of::<Vec<ExtensionView>>("extensions list")),
        ("hosts", of::<Vec<HostView>>("hosts list, hosts check, inspect host")),
        ("event", of::<Event>("events --follow: one a line")),
        ("events", of::<Vec<Event>>("events")),
        ("flush", of::<FlushReport>("events flush")),
        ("operation", of::<Operation>("operations get, operations cancel")),
        ("operations", of::<Vec<Operation>>("operations list")),
        ("exec", of::<ExecResult>("exec")),
        ("log", of::<LogEntry>("logs: one a line")),
        ("credits", of::<Credits>("credits, credits grant")),
        ("credit_history", of::<Vec<HistoryEntry>>("credits history")),
        ("sweep", of::<SweepReport>("sweep")),
        ("stale", of::<Vec<StaleItem>>("inspect stale")),
        ("reap_plan", of::<ReapPlan>("reap-stale --dry-run")),
        ("reaped", of::<Vec<ReapItem>>("reap-stale")),
        ("recovered", of::<Vec<Recovered>>("recover")),
        ("adopted", of::<Vec<Adopted>>("adopt, import")),
        ("checks", of::<Vec<Check>>("doctor")),
        ("progress", of::<ProgressLine>("stderr with --json: one a line while an operation runs")),
        ("error", of::<ErrorLine>("stderr with --json: the last line when the status is not 0")),
    ]
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/schemas").join(format!("{name}.json"))
}

#[test]
fn the_schemas_are_the_types() {
    for (name, schema) in schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), &text).unwrap();
        }
        let known = std::fs::read_to_string(path(name)).unwrap_or_default();
        assert!(
            known == text,
            "docs/schemas/{name}.json is not what the types say: run with UPDATE=1 and review"
        );
    }
}

#[test]
fn no_schema_without_a_document() {
    let known: Vec<_> = schemas().into_iter().map(|(name, _)| format!("{name}.json")).collect();
    for file in std::fs::read_dir(path("x").parent().unwrap()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "docs/schemas/{name} describes nothing that is printed");
    }
}
