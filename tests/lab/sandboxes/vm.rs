//! `ext.vm-packer` on the lab's stand-in for a prepared VM: an account without privileges, no engine, a root of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Bench, Started, lab, on_host, port_of, rooms, text};
use crate::sandboxes::commands::plain;
use crate::sandboxes::scripts::program_in;
use crate::support::busy_machine::LIMITS;
use crate::support::json_assertions::JsonAssertions as _;

const VM: &str = "vm-haskell";

/// A bench with the VM among its hosts, and a root there that an operator prepared.
struct Vm {
    // Dropped first: it destroys what a failed test left in the root.
    bench: Bench,
    root: Root,
}

/// A folder on the VM, with a file of the operator's in it.
struct Root(PathBuf);

impl std::ops::Deref for Root {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0.join("prepared-by-packer"));
        let _ = fs::remove_file(self.0.join(".sandboxer-root"));
        let _ = fs::remove_dir(&self.0);
    }
}

impl Vm {
    fn new() -> Self {
        let missing = lab().join("missing").join(VM);
        assert!(
            !missing.exists(),
            "the lab has no {VM}: {}",
            fs::read_to_string(missing).unwrap_or_default()
        );
        let bench = Bench::new();
        let name = bench.path("").file_name().unwrap().to_owned();
        let root = build_root().join(name);
        on_host(
            VM,
            &[
                "mkdir -- \"$1\" && echo prepared >\"$1/prepared-by-packer\"",
                root.to_str().unwrap(),
            ],
        );
        add_host(&bench, VM, VM, &lab().join("ssh_config"));
        profile(&bench, "vm", &root, "");
        Self { bench, root: Root(root) }
    }

    fn create(&self, more: &[&str]) -> Value {
        self.bench.ok(create(VM, "profile.vm", more))
    }

    /// What is in the root, as the host's root account sees it.
    fn entries(&self) -> Vec<String> {
        rooms(&self.root)
    }
}

/// Where the lab's VM has its sandboxes: `/build`, unless the machine had one already.
fn build_root() -> PathBuf {
    let config = fs::read_to_string(lab().join("config.yaml")).unwrap();
    let mut lines = config.lines().skip_while(|line| line.trim() != "vm-haskell:");
    PathBuf::from(lines.find_map(|line| line.trim().strip_prefix("workspace_root: ")).unwrap())
}

fn add_host(bench: &Bench, name: &str, ssh: &str, config: &Path) {
    let file = bench.path("config.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!("{text}  {name}:\n    ssh: {ssh}\n    ssh_config: {}\n{LIMITS}", config.display()),
    )
    .unwrap();
}

fn profile(bench: &Bench, name: &str, root: &Path, config: &str) {
    let text = format!(
        "id: profile.{name}\nversion: 1.0.0\nsummary: For a test\nextension: ext.vm-packer\nttl: 1h\nready_timeout: 60s\nstop_grace: 0s\ninputs:\n  repo: {{required: false, kind: directory, help: r}}\nsync: {{exclude: [dist-newstyle]}}\nconfig:\n  root: {}\n{config}",
        root.display()
    );
    fs::write(bench.path("profiles").join(format!("{name}.yaml")), text).unwrap();
}

fn create(host: &str, profile: &str, more: &[&str]) -> Vec<String> {
    let words = ["create", "--profile", profile, "--host", host];
    words.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn haskell(bench: &Bench) -> String {
    let repo =
        bench.repository("hs", &[("Main.hs", "main = pure ()\n"), ("dist-newstyle/cache", "big")]);
    format!("repo={}", repo.to_str().unwrap())
}

/// The folder is there by then, wherever the host's root leads later.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_create_that_fails_while_it_is_filled_says_where_it_was_made() {
    let bench = Bench::new();
    let root = bench.path("prepared");
    fs::create_dir(&root).unwrap();
    let root = root.canonicalize().unwrap();
    profile(&bench, "vm", &root, "");
    let first = bench.path("first");
    fs::create_dir(&first).unwrap();
    let tar = "#!/bin/sh\ncase $1 in -x) exit 3 ;; esac\nPATH=${PATH#*:}; exec tar \"$@\"\n";
    program_in(&first, "tar", tar);
    let mut command = bench.command(create("local", "profile.vm", &["--input", &haskell(&bench)]));
    command.env("PATH", format!("{}:{}", first.display(), std::env::var("PATH").unwrap()));
    Started::spawn(command).finish().error("operation_failed");
    let record = bench.stored().pop().unwrap();
    assert_eq!(record["workdir"], format!("{}/sbx-{}", root.display(), text(&record["id"])));
    assert!(record["host_identity"]["machine_id"].is_string(), "{record:#}");
    assert!(rooms(&root).is_empty());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn two_workspaces_stand_side_by_side_and_the_vm_stays_as_it_was() {
    let vm = Vm::new();
    let with = vm.create(&["--input", &haskell(&vm.bench)]);
    let without = vm.create(&["--name", "empty"]);
    for record in [&with, &without] {
        record.has(json!({
            "state": "ready", "extension": "ext.vm-packer", "services": [],
            "workdir": format!("{}/sbx-{}", vm.root.display(), text(&record["id"])),
        }));
        let ssh = text(&record["reachability"]["ssh"]);
        assert!(
            ssh.contains(&format!("-t {VM} 'cd {}/workspace ", text(&record["workdir"]))),
            "{ssh}"
        );
    }
    let workspace = |record: &Value| PathBuf::from(text(&record["reachability"]["workdir"]));
    assert_eq!(fs::read_to_string(workspace(&with).join("Main.hs")).unwrap(), "main = pure ()\n");
    assert!(
        !workspace(&with).join("dist-newstyle").exists(),
        "what the profile excludes stays at home"
    );
    assert_eq!(fs::read_dir(workspace(&without)).unwrap().count(), 0);
    let manifest: Value = serde_json::from_str(
        &fs::read_to_string(workspace(&with).with_file_name("manifest.json")).unwrap(),
    )
    .unwrap();
    manifest.has(json!({"id": with["id"], "expires_at": with["expires_at"]}));

    // Somebody works there, as the account and with files that only their owner may see.
    let work =
        "umask 077 && mkdir -p dist/a && echo x >dist/a/b && ln -s / out && ls && id -un && exit 7";
    let ran = vm.bench.run(["exec", &text(&with["id"]), "--", "sh", "-c", work]);
    assert_eq!(ran.status, Some(7), "{ran:#?}");
    assert_eq!(ran.json()["stdout"], "Main.hs\ndist\nout\nbuild\n", "{ran:#?}");
    let ran = vm.bench.run(["exec", &text(&with["id"]), "--service", "web", "--", "true"]);
    assert!(ran.status == Some(125) && ran.stderr.contains("has no services"), "{ran:#?}");
    vm.bench.ok(["destroy", &text(&with["id"])]);
    let gone = vm.bench.get(&text(&with["id"]));
    gone.has(json!({"state": "destroyed", "teardown.0.outcome": "removed"}));
    assert_eq!(gone["teardown"].as_array().unwrap().len(), 1, "no engine was asked: {gone:#}");
    let left = format!("sbx-{}", text(&without["id"]));
    assert_eq!(vm.entries(), ["prepared-by-packer".to_owned(), left]);
    vm.bench.ok(["destroy", "empty"]);
    assert_eq!(vm.entries(), ["prepared-by-packer"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_deadline_is_written_into_the_sandboxes_own_manifest_alone() {
    let vm = Vm::new();
    let id = text(&vm.create(&[])["id"]);
    let folder = vm.root.join(format!("sbx-{id}"));
    let (folder, away) = (folder.to_str().unwrap(), vm.root.join("away"));
    let away = away.to_str().unwrap();
    let until = || vm.bench.get(&id)["expires_at"].clone();
    let told = || {
        let ran = plain(&vm.bench, &["extend", &id, "--by", "1m"]).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stderr).unwrap()
    };
    let on_vm = |script: &str| on_host(VM, &[script, folder, away]);
    assert_eq!(told(), "");
    let manifest: Value = serde_json::from_str(&on_vm("cat \"$1/manifest.json\"")).unwrap();
    assert_eq!(manifest["expires_at"], until());
    // What stands in its place is not written to, and whoever extends is told; the record moves all the same.
    on_vm("cp \"$1/manifest.json\" \"$2\"");
    let hostile = [
        "rm \"$1/manifest.json\"",
        "mkfifo \"$1/manifest.json\"",
        "rm \"$1/manifest.json\" && mkdir \"$1/manifest.json\"",
        "rmdir \"$1/manifest.json\" && ln -s \"$2\" \"$1/manifest.json\"",
        "rm \"$1/manifest.json\" && sed 's/\"owner\": \"/&x/' \"$2\" >\"$1/manifest.json\"",
        "cp \"$2\" \"$1/manifest.json\" && mv \"$1\" \"$1.real\" && ln -s \"$1.real\" \"$1\"",
    ];
    for script in hostile {
        on_vm(script);
        let look = "ls -lR --time-style=full-iso \"$1\" \"$1/\"; cat \"$2\"";
        let before = on_vm(look);
        let was = until();
        let told = told();
        assert!(told.contains("its manifest on vm-haskell does not say so"), "{script}: {told}");
        assert_ne!(until(), was, "{script}");
        assert_eq!(on_vm(look), before, "{script}");
    }
    on_vm("rm \"$1\" && mv \"$1.real\" \"$1\" && rm \"$2\"");
    assert_eq!(told(), "");
    vm.bench.ok(["destroy", &id, "--yes"]);
    assert_eq!(vm.entries(), ["prepared-by-packer"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_root_that_nobody_prepared_is_refused_and_not_made() {
    let vm = Vm::new();
    let absent = vm.root.join("absent");
    profile(&vm.bench, "absent", &absent, "");
    profile(&vm.bench, "closed", Path::new("/etc"), "");
    profile(&vm.bench, "roomy", &vm.root, "  min_free: 900TiB\n");
    for (name, words, hint) in [
        (
            "absent",
            format!("{} is not there", absent.display()),
            "docs/runbooks/profile-vm-haskell-build.md",
        ),
        (
            "closed",
            "build may not write /etc".to_owned(),
            "docs/runbooks/profile-vm-haskell-build.md",
        ),
        ("roomy", "KiB are needed".to_owned(), "destroy something there"),
    ] {
        let error =
            vm.bench.refused(create(VM, &format!("profile.{name}"), &[]), "operation_failed");
        assert!(error["causes"].to_string().contains(&words), "{name}: {error:#}");
        assert!(text(&error["hint"]).contains(hint), "{name}: {error:#}");
        assert_eq!(error["details"]["leftovers"], json!([]), "{name}");
    }
    assert_eq!(vm.entries(), ["prepared-by-packer"]);
    // Nothing was made, so there is nothing to remove either.
    for record in vm.bench.stored() {
        assert_eq!(record["state"], "failed");
        vm.bench.ok(["destroy", &text(&record["id"])]);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_local_end_of_a_tunnel_is_a_host() {
    let vm = Vm::new();
    // As an operator has it who reaches the VM through a bridge: only a port of this machine, and the key in known_hosts.
    let config = vm.bench.path("ssh-tunnel");
    let options = fs::read_to_string(lab().join("ssh_config")).unwrap();
    let common = options.split("Host *").nth(1).unwrap();
    fs::write(&config, format!("Host 127.0.0.1\n  HostKeyAlias {VM}\nHost *{common}")).unwrap();
    let target = format!("ssh://build@127.0.0.1:{}", port_of("vm_haskell"));
    add_host(&vm.bench, "bridge", &target, &config);
    let made = vm.bench.ok(create("bridge", "profile.vm", &["--input", &haskell(&vm.bench)]));
    made.has(json!({"state": "ready", "host": "bridge"}));
    // The command to paste works as it is printed; a terminal is all that a shell there lacks here.
    let paste = text(&made["reachability"]["ssh"])
        .replace(" -t ", " -T ")
        .replace("exec \"$SHELL\" -l", "ls");
    let shown = Command::new("sh").args(["-c", &paste]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), "Main.hs\n", "{paste}: {shown:?}");
    vm.bench.ok(["destroy", &text(&made["id"])]);
    assert_eq!(vm.entries(), ["prepared-by-packer"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn another_machine_behind_the_name_is_left_alone() {
    let vm = Vm::new();
    let made = vm.create(&[]);
    let id = text(&made["id"]);
    let machine = text(&made["host_identity"]["machine_id"]);
    let file = vm.bench.data().join("sandboxes.json");
    let swap = |from: &str, to: &str| {
        let stored = fs::read_to_string(&file).unwrap();
        assert!(stored.contains(from));
        fs::write(&file, stored.replace(from, to)).unwrap();
    };
    let other = "0".repeat(machine.len());
    swap(&machine, &other);
    let error = vm.bench.refused(["destroy", &id], "host_changed");
    assert!(error["causes"].to_string().contains(&machine), "{error:#}");
    assert_eq!(vm.entries().len(), 2, "nothing was touched");
    swap(&other, &machine);
    vm.bench.ok(["destroy", &id]);
    assert_eq!(vm.entries(), ["prepared-by-packer"]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_create_killed_at_any_point_is_removed_by_destroy() {
    let vm = Vm::new();
    let args = create(VM, "profile.vm", &["--input", &haskell(&vm.bench)]);
    for (point, expected) in [
        ("create.provisioning", 1),
        ("vm.prepared", 2),
        ("vm.transferred", 2),
        ("create.provisioned", 2),
        ("create.dated", 2),
    ] {
        vm.bench.killed(point, &args);
        let left = vm.bench.stored().into_iter().find(|record| record["state"] != "destroyed");
        let id = text(&left.unwrap()["id"]);
        assert_eq!(vm.entries().len(), expected, "{point}");
        vm.bench.ok(["destroy", &id]);
        assert_eq!(vm.bench.get(&id)["state"], "destroyed", "{point}");
        assert_eq!(vm.entries(), ["prepared-by-packer"], "{point}");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn tunnels_are_asked_for_and_their_lack_fails_nothing() {
    let vm = Vm::new();
    let answer = |name: &str, script: &str| {
        let command = vm.bench.path(name);
        fs::write(&command, format!("#!/bin/sh\ncat >\"$0.asked\"\n{script}\n")).unwrap();
        Command::new("chmod").arg("755").arg(&command).status().unwrap();
        let file = vm.bench.path("config.yaml");
        let config = fs::read_to_string(&file).unwrap();
        let config = config.split("    reach:").next().unwrap();
        fs::write(
            &file,
            format!("{config}    reach: {{command: [{}, attach]}}\n", command.display()),
        )
        .unwrap();
        command.with_extension("asked")
    };
    let asked = answer(
        "bridge",
        r#"echo "{\"attachments\": [{\"provider\": \"ops-bridge\", \"id\": \"$1\", \"local\": \"127.0.0.1:2222\", \"state\": \"up\"}]}""#,
    );
    let made = vm.create(&[]);
    let expected = json!([{"provider": "ops-bridge", "id": "attach", "local": "127.0.0.1:2222", "state": "up"}]);
    assert_eq!((&made["reachability"]["attachments"], &made["message"]), (&expected, &Value::Null));
    let question: Value = serde_json::from_str(&fs::read_to_string(asked).unwrap()).unwrap();
    question.has(
        json!({"sandbox_id": made["id"], "host": VM, "workdir": made["reachability"]["workdir"]}),
    );

    answer("broken", "echo the bridge is down >&2; exit 1");
    let made = vm.create(&[]);
    made.has(json!({"state": "ready", "reachability.attachments": []}))
        .says("no attachments")
        .says("the bridge is down");
}

/// What an account without privileges can make of a tree's oddities; names that are no UTF-8 among them.
const ODD: &str = r#"set -e
cd -P "$1"; mkdir odd; cd odd; mkfifo fifo; truncate -s 20M sparse; echo t >>sparse; echo 1 >h1; ln h1 h2
touch "$(printf 'x%.0s' $(seq 200))" "$(printf 'bad\377name')" "$(printf 'new\nline')" ' lead'
ln -s /usr/bin/env out; ln -s b a; ln -s a b; cp /bin/true suid; chmod 4755 suid; echo s >secret; chmod 600 secret
setfattr -n user.sbx -v "$(printf 'a b\n\303\244')" secret; setfattr -n user.sbx -v of-a-folder .
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'; mkdir ro; chmod 555 ro"#;

/// Each path with kind, mode, owners, link, names and time, but for sockets, which no archive has; then each file's hash and
/// xattrs, and how much of the disk a hole takes.
const TELL: &str = r#"cd -P "$1"
find . ! -type s -printf '%p %y %m %U %G %l %n %T@\n' | LC_ALL=C sort
find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
find . ! -type l ! -type p -print0 | LC_ALL=C sort -z | xargs -0 getfattr -d -m - -e hex
du -k odd/sparse"#;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_workspace_comes_back_from_a_snapshot_as_it_was() {
    let vm = Vm::new();
    let source = vm.create(&["--name", "source"]);
    let workspace = |record: &Value| format!("{}/workspace", text(&record["workdir"]));
    on_host(
        VM,
        &[&format!("exec bash -c '{}' sh \"$1\"", ODD.replace('\'', r"'\''")), &workspace(&source)],
    );
    let taken = vm.bench.ok(["snapshot", "source", "--name", "base"]);
    assert_eq!(
        (&taken["left_out"], &taken["left_out_count"]),
        (&json!(["workspace/odd/socket"]), &json!(1)),
        "it says what cannot be in an archive: {taken:#}"
    );
    let back = vm.bench.ok(["restore", "base", "--strict", "--name", "back"]);
    let tell = |record: &Value| on_host(VM, &[TELL, &workspace(record)]);
    let told = tell(&source);
    assert_eq!(told.matches("user.sbx=0x").count(), 2, "{told}");
    assert_eq!(tell(&back), told);
    assert!(!PathBuf::from(workspace(&back)).join("odd/socket").exists());
    vm.bench.run(["sleep", "back"]).error("unsupported");
    vm.bench.ok(["destroy", "source", "back"]);
    vm.bench.ok(["snapshots", "delete", "base"]);
    assert_eq!(vm.entries(), ["prepared-by-packer"], "the root is as it was prepared");
}
