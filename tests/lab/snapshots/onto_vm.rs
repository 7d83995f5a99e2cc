//! Onto an account that is nobody but itself, on a host without an engine: what it cannot set is counted, one for one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, lab, text};
use crate::snapshots::place::{Place, odd_sandbox, there};
use crate::support::busy_machine::LIMITS;
use crate::support::json_assertions::JsonAssertions as _;

/// A bench with the VM among its hosts, and where that has this bench's sandboxes.
struct Vm {
    // Dropped first: it destroys what a failed test left below the root.
    bench: Bench,
    root: Root,
}

struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0.join(".sandboxer-root"));
        let _ = fs::remove_dir(&self.0);
    }
}

impl Vm {
    fn new() -> Self {
        there(Place::Vm);
        let bench = Bench::new();
        let root = PathBuf::from("/build").join(bench.path("").file_name().unwrap());
        let config = fs::read_to_string(bench.path("config.yaml")).unwrap();
        let of_vm = format!(
            "  vm-haskell:\n    ssh: vm-haskell\n    ssh_config: {}\n    workspace_root: {}\n{LIMITS}",
            lab().join("ssh_config").display(),
            root.display()
        );
        fs::write(bench.path("config.yaml"), config + &of_vm).unwrap();
        Self { bench, root: Root(root) }
    }

    fn snapshot(&self) -> Value {
        self.bench.ok(["snapshots", "get", "base"])
    }

    fn clear(&self, ids: &[&str]) {
        for id in ids {
            self.bench.ok(["destroy", id]);
        }
        self.bench.ok(["snapshots", "delete", "base"]);
    }
}

/// Sets an attribute that only root may set.
fn set_attribute(path: &std::path::Path, name: &str, hex: &str) {
    let code = "import os, sys; os.setxattr(sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3]))";
    let status =
        Command::new("python3").args(["-c", code]).arg(path).args([name, hex]).status().unwrap();
    assert!(status.success(), "{name} on {}", path.display());
}

/// Names of what is in the VM's root.
fn left_in(vm: &Vm) -> Vec<String> {
    let entries = fs::read_dir(&vm.root.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_an_account_cannot_set_is_counted_one_for_one() {
    let vm = Vm::new();
    let (from, to) = (Place::Root, Place::Vm);
    let before = vm.bench.snapshot(DOCKER);
    let made = vm.bench.ok(["create", "--host", DOCKER, "--id", "odd-canary"]);
    let workspace = PathBuf::from(text(&made["workdir"])).join("workspace");
    from.fill_below(&workspace);
    // Attributes of the system's, beside those that everybody may set.
    set_attribute(
        &workspace.join("odd/run"),
        "security.capability",
        "0100000200040000000000000000000000000000",
    );
    set_attribute(&workspace.join("odd/plain"), "trusted.note", "00");
    let tree = from.tell(&workspace).kept();
    let foreign =
        tree.0.values().filter(|row| row["uid"] != "self" || row["gid"] != "self").count();
    assert!(foreign > 4, "{foreign}");
    let taken = vm.bench.ok(["snapshot", "odd-canary", "--name", "base"]);
    assert_eq!(taken["foreign_owners"], foreign, "{taken:#}");

    let counted = json!({"owners": foreign, "xattrs": 2});
    let error =
        vm.bench.refused(["restore", "base", "--host", to.host(), "--strict"], "operation_failed");
    assert_eq!(error["details"]["not_preserved"], counted, "{error:#}");
    assert_eq!(error["details"]["leftovers"], json!([]), "{error:#}");
    assert_eq!(left_in(&vm), [".sandboxer-root", "snapshots"], "the copy stays, for the next time");
    let strict = text(&error["details"]["sandbox_id"]);
    assert_eq!(vm.bench.get(&strict)["state"], "failed");

    let back = vm.bench.ok(["restore", "base", "--host", to.host()]);
    assert_eq!((&back["state"], &back["not_preserved"]), (&json!("ready"), &counted), "{back:#}");
    let mut wanted = tree.owners(|_| "self".to_owned()).without_acl_users();
    for name in ["./odd/run", "./odd/plain"] {
        wanted.0.get_mut(name).unwrap()["xattrs"] = json!({});
    }
    let there = to.tell(&PathBuf::from(text(&back["workdir"])).join("workspace"));
    there.without_acl_users().assert_is(&wanted, "the workspace");
    vm.clear(&["odd-canary", &strict, &text(&back["id"])]);
    assert_eq!(left_in(&vm), [".sandboxer-root"]);
    vm.bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_is_refused_by_a_host_without_an_engine_before_anything_is_brought_there() {
    let vm = Vm::new();
    odd_sandbox(&vm.bench, Place::Root, "odd-stack");
    vm.bench.ok(["snapshot", "odd-stack", "--name", "base"]);
    let error = vm.bench.refused(["restore", "base", "--host", "vm-haskell"], "missing_dependency");
    error.says("compose runtime");
    assert!(!vm.root.0.exists(), "nothing was brought there");
    assert_eq!(vm.snapshot()["replicas"].as_array().unwrap().len(), 1);
    assert_eq!(vm.bench.stored().len(), 1, "no sandbox was begun");
    vm.clear(&["odd-stack"]);
}
