//! Whose processes a removal ends: those in the sandbox's own workspace, and what works on it, told by the kernel and by no
//! name. The victims are processes of the test's own.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::lab::{Bench, DOCKER, PODMAN, text, wait_until};

/// A process of the test; killed with it.
struct Victim(Child);

impl Victim {
    fn spawn(command: &mut Command) -> Self {
        Self(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    /// Process that stands in this folder.
    fn at(folder: &Path) -> Self {
        Self::spawn(Command::new("sleep").arg("600").current_dir(folder))
    }

    /// Name that it has now.
    fn words(&self) -> String {
        fs::read_to_string(format!("/proc/{}/cmdline", self.0.id()))
            .unwrap_or_default()
            .replace('\0', " ")
    }

    #[track_caller]
    fn assert_lives(&mut self, why: &str) {
        assert!(self.0.try_wait().unwrap().is_none(), "{why} was ended");
    }

    fn ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn canary(bench: &Bench, host: &str, id: &str) -> String {
    let args = ["create", "--profile", "profile.sandbox-canary", "--host", host, "--id", id];
    text(&bench.ok(args)["id"])
}

/// An id that no other test has.
fn id(name: &str) -> String {
    format!("{name}{}", std::process::id())
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_folder_that_is_called_like_another_process_ends_none() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let (evil, goes) = (canary(&bench, host, &id("evil")), canary(&bench, host, &id("goes")));
        let workspace = bench.directory(host, &goes).join("workspace");
        let mut victim = Victim::at(Path::new("/"));
        // As `ls -l` would print the link of the victim's own folder.
        let forged = format!("x\n- /proc/{}/cwd -> {}", victim.0.id(), workspace.display());
        let forged = bench.directory(host, &evil).join("workspace").join(forged);
        fs::create_dir_all(&forged).unwrap();
        let mut other = Victim::at(&forged);
        // What is in the workspace goes, whatever its folder is called.
        let odd = workspace.join("a\nb -> c");
        fs::create_dir(&odd).unwrap();
        let mut inside = Victim::at(&odd);
        // A link does not make what is elsewhere ours.
        std::os::unix::fs::symlink("/", workspace.join("root")).unwrap();
        let said = bench.run(["destroy", &goes, "--yes"]);
        assert_eq!(said.status, Some(0), "{said:#?}");
        wait_until("what stood in it has ended", || inside.ended());
        victim.assert_lives("a process that only a name speaks of");
        other.assert_lives("a process of another sandbox");
        bench.ok(["destroy", &evil, "--yes"]);
        wait_until("so has the other", || other.ended());
        victim.assert_lives("the process");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_process_that_sees_other_mounts_is_not_ended() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let goes = canary(&bench, host, &id("mnt"));
        let (root, directory) = (bench.workspace_root(host), bench.directory(host, &goes));
        let workspace = directory.join("workspace");
        let apart = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["-m", "sh", "-c", script, "sh"]).args([&root, &workspace]);
            Victim::spawn(&mut command)
        };
        // The same path, and another place; the same place, as a container sees it that has it mounted.
        let mut path =
            apart("mount -t tmpfs none \"$1\" && mkdir -p \"$2\" && cd \"$2\" && exec sleep 601");
        let mut place = apart("cd \"$2\" && exec sleep 602");
        for (victim, word) in [(&path, "sleep 601 "), (&place, "sleep 602 ")] {
            wait_until(word, || victim.words() == word);
        }
        let said = bench.run(["destroy", &goes, "--yes"]);
        assert_eq!(said.status, Some(0), "{said:#?}");
        assert!(!directory.exists());
        path.assert_lives("a process at the same path elsewhere");
        place.assert_lives("a process with mounts of its own");
    }
}

/// A group's number is given again, and `web` is how `web2` begins.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_removal_ends_only_what_works_on_this_very_sandbox() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let web = canary(&bench, host, &id("web"));
        let project = format!("sbx-{web}");
        let works = |group: i32, mark: &str, word: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", "while :; do sleep 1; done", "sh", "-p", word])
                .env("SBX_UP", mark)
                .process_group(group);
            Victim::spawn(&mut command)
        };
        let mut other = works(0, &format!("{project}2"), &format!("{project}2"));
        let group = i32::try_from(other.0.id()).unwrap();
        let mut marked = works(group, &project, "compose");
        // As an older version began it.
        let mut named = works(group, "", &project);
        let mut elsewhere = works(0, &project, &project);
        let up = bench.directory(host, &web).join(".up");
        let engine = fs::read_to_string(&up).unwrap().split_once(' ').unwrap().1.trim().to_owned();
        fs::write(&up, format!("{group} {engine}\n")).unwrap();
        bench.ok(["destroy", &web, "--yes"]);
        assert!(marked.ended() && named.ended(), "what worked on it has ended");
        other.assert_lives("the `up` of another sandbox");
        elsewhere.assert_lives("a process of another group");
    }
}
