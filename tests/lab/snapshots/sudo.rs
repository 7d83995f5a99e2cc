//! An account that may use sudo for what it takes, and no more.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::lab::{Bench, sudo_stays, text};
use crate::snapshots::faithful::like_to_like;
use crate::snapshots::place::{Place, there};
use crate::support::json_assertions::JsonAssertions as _;

/// Programs that the account may run as root, beside what the lab lets it; until it is dropped.
struct Permitted(&'static Path);

impl Permitted {
    fn programs(list: &str) -> Self {
        let file = Path::new("/etc/sudoers.d/sandboxer-lab-snapshots");
        let new = file.with_extension("new"); // sudo reads no name with a dot
        fs::write(&new, format!("sbxsudo ALL=(root) NOPASSWD: {list}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o440)).unwrap();
        fs::rename(new, file).unwrap();
        Self(file)
    }
}

impl Drop for Permitted {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_only_root_can_read_is_read_with_sudo_or_refused() {
    there(Place::Sudo);
    let _ours = sudo_stays();
    let host = Place::Sudo.host();
    let bench = Bench::with(&[host]);
    // Without an engine: no container can help.
    let made = bench.ok(["create", "--host", host, "--id", "sudo-canary"]);
    let workspace = PathBuf::from(text(&made["workdir"])).join("workspace");
    for name in ["secret", "null"] {
        fs::create_dir(workspace.join(name)).unwrap();
    }
    fs::write(workspace.join("secret/roots"), "root's\n").unwrap();
    fs::set_permissions(workspace.join("secret/roots"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(workspace.join("secret"), fs::Permissions::from_mode(0o700)).unwrap();
    let device = workspace.join("secret/null");
    let made =
        std::process::Command::new("mknod").arg(&device).args(["c", "1", "3"]).status().unwrap();
    assert!(made.success());

    // tar alone would not do: what is to be left out has to be found first.
    for permitted in [None, Some(Permitted::programs("/usr/bin/tar"))] {
        bench
            .refused(["snapshot", "sudo-canary", "--name", "base"], "operation_failed")
            .says("not all of sandbox sudo-canary can be read")
            .hints("sudo");
        assert!(!bench.workspace_root(host).join("snapshots").exists());
        drop(permitted);
    }
    let permitted = Permitted::programs("/usr/bin/tar, /usr/bin/find");
    let told = bench.ok(["snapshot", "sudo-canary", "--name", "base"]);
    told.has(json!({"left_out": ["workspace/secret/null"], "foreign_owners": 3}));
    let back = bench.ok(["restore", "base", "--name", "back"]);
    assert_eq!(back["not_preserved"], json!({"owners": 3}), "{back:#}");
    let file = PathBuf::from(text(&back["workdir"])).join("workspace/secret/roots");
    assert_eq!(fs::read_to_string(file).unwrap(), "root's\n");
    bench.ok(["destroy", "sudo-canary", "back"]);
    bench.ok(["snapshots", "delete", "base"]);
    let left: Vec<_> = fs::read_dir(bench.workspace_root(host))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, [".sandboxer-root"], "its mark alone");

    // With one, all of it comes back as it was.
    like_to_like(Place::Sudo, &[]);
    drop(permitted);
}
