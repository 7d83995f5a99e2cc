//! Orders to tar of consoles, accounts and hosts, behind our back: nothing is left out of a snapshot, and where something is,
//! there is no snapshot.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::faults::Host;
use crate::lab::{Bench, Started, text, tree};
use crate::support::json_assertions::JsonAssertions as _;

/// Words to programs of ours, each of which changes what they do.
const ORDERS: [(&str, &str); 8] = [
    ("TAR_OPTIONS", "--exclude=*.key"),
    ("GZIP", "-1"),
    ("ZSTD_CLEVEL", "1"),
    ("POSIXLY_CORRECT", "1"),
    ("CDPATH", "/tmp:/usr"),
    ("GREP_OPTIONS", "-v"),
    ("RSYNC_PARTIAL_DIR", "/nowhere"),
    // Where sh is bash it would be called instead of the program.
    ("BASH_FUNC_tar%%", "() { echo no >&2; false; }"),
];

fn workspace(record: &Value) -> PathBuf {
    PathBuf::from(text(&record["workdir"])).join("workspace")
}

fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("deep")).unwrap();
    for name in ["plain", "a.key", "deep/b.key", "deep/line\nbreak.key", "line\nbreak"] {
        fs::write(folder.join(name), name).unwrap();
    }
}

/// Runs the console with these orders in its environment.
fn run(bench: &Bench, orders: &[(&str, &str)], args: &[&str]) -> Value {
    let mut command: Command = bench.command(args);
    command.envs(orders.iter().copied());
    Started::spawn(command).finish().ok()
}

/// Tree that comes back of a snapshot that is taken and restored under these orders.
fn there_and_back(
    bench: &Bench,
    host: &str,
    orders: &[(&str, &str)],
) -> (BTreeSet<String>, BTreeSet<String>) {
    let made = run(
        bench,
        orders,
        &["create", "--profile", "sandbox-canary", "--host", host, "--name", "source"],
    );
    fill(&workspace(&made));
    let taken = run(bench, orders, &["snapshot", "source", "--name", "base"]);
    taken.has(json!({"state": "ready", "consistency": "clean"}));
    run(bench, orders, &["snapshots", "verify", "base"]);
    let back = run(bench, orders, &["restore", "base", "--name", "back", "--host", host]);
    let within = |record: &Value| {
        let folder = workspace(record);
        tree(&folder).iter().map(|line| line.replace(folder.to_str().unwrap(), "")).collect()
    };
    let trees = (within(&made), within(&back));
    run(bench, orders, &["destroy", "source", "back"]);
    run(bench, orders, &["snapshots", "delete", "base"]);
    trees
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn orders_in_the_consoles_environment_leave_nothing_out_on_this_machine() {
    let bench = Bench::new();
    let (was, is) = there_and_back(&bench, "local", &ORDERS);
    assert!(was.iter().any(|name| name.contains("deep/b.key")), "{was:#?}");
    assert_eq!(was, is);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn orders_in_an_accounts_start_up_file_leave_nothing_out_and_stay_for_its_own_commands() {
    let bench = Bench::new();
    let _host = Host::start(&bench, "ordered", &["docker", "podman"]);
    let orders = ORDERS.iter().filter(|(name, _)| !name.starts_with("BASH_FUNC"));
    let lines = orders
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect::<Vec<_>>()
        .concat();
    let functions = "tar() { echo no >&2; false; }\nexport -f tar\n";
    fs::write(bench.path("host-ordered/home/.bashrc"), format!("{lines}{functions}")).unwrap();
    let (was, is) = there_and_back(&bench, "ordered", &[]);
    assert!(was.iter().any(|name| name.contains("deep/b.key")), "{was:#?}");
    assert_eq!(was, is);

    // A user's own command has what the account gives it.
    let made = bench.ok(["create", "--profile", "sandbox-canary", "--host", "ordered"]);
    let id = text(&made["id"]);
    let said = bench.ok(["exec", &id, "--", "sh", "-c", "echo $TAR_OPTIONS $CDPATH"]);
    assert_eq!(text(&said["stdout"]), "--exclude=*.key /tmp:/usr\n");
    bench.ok(["destroy", &id]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_archive_that_lacks_something_of_a_quiet_tree_is_no_snapshot() {
    let bench = Bench::new();
    let _host = Host::start(&bench, "forgetful", &["docker", "podman"]);
    let tar = bench.path("host-forgetful/bin/tar");
    let made = bench.ok([
        "create",
        "--profile",
        "sandbox-canary",
        "--host",
        "forgetful",
        "--name",
        "source",
    ]);
    fill(&workspace(&made));
    // Whatever the reason is: here a tar that is somebody's own.
    fs::remove_file(&tar).unwrap();
    fs::write(&tar, "#!/bin/sh\nexec /usr/bin/tar --exclude='*.key' \"$@\"\n").unwrap();
    fs::set_permissions(&tar, fs::Permissions::from_mode(0o755)).unwrap();
    let error = bench.refused(["snapshot", "source", "--name", "base"], "operation_failed");
    assert!(error.to_string().contains("4 of 7 entries of the workspace are in it"), "{error:#}");
    let shelf = bench.path("host-forgetful/sandboxes/snapshots");
    assert!(!shelf.exists(), "{:#?}", tree(&shelf));

    fs::write(&tar, "#!/bin/sh\nexec /usr/bin/tar \"$@\"\n").unwrap();
    bench.ok(["snapshot", "source", "--name", "base"]);
    bench.ok(["destroy", "source"]);
    bench.ok(["snapshots", "delete", "base"]);
}
