//! The kinds of accounts that sandboxes are made with, and what a tree looks like from each of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::{Bench, lab, on_host, text};

/// A stack whose volume is part of a snapshot. It writes nothing while it runs.
pub(crate) const KEEPER: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sh", "-c", "exec sleep 100000"]
    volumes: ["kept:/kept", "more:/more"]
    stop_signal: SIGKILL
volumes:
  kept: {}
  more: {}
"#;

/// An account on a host of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// root, Docker.
    Root,
    /// In Docker's group, without sudo.
    Dev,
    /// root, podman.
    Podman,
    /// Rootless podman.
    Rootless,
    /// An account without privileges, on a host without an engine.
    Vm,
    /// Not in Docker's group, but may use sudo.
    Sudo,
}

impl Place {
    pub(crate) fn host(self) -> &'static str {
        match self {
            Self::Root => "sandboxer01",
            Self::Dev => "sandboxer01-dev",
            Self::Podman => "coulombcore",
            Self::Rootless => "coulombcore-ops",
            Self::Vm => "vm-haskell",
            Self::Sudo => "sandboxer01-sudo",
        }
    }

    /// An id for a sandbox there: some of these share an engine.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Root => "odd-root",
            Self::Dev => "odd-dev",
            Self::Podman => "odd-podman",
            Self::Rootless => "odd-rootless",
            Self::Vm => "odd-vm",
            Self::Sudo => "odd-sudo",
        }
    }

    pub(crate) fn bench(self) -> Bench {
        match self {
            Self::Root | Self::Podman | Self::Vm => Bench::new(),
            Self::Dev | Self::Rootless | Self::Sudo => Bench::with(&[self.host()]),
        }
    }

    /// The account's user and group.
    pub(crate) fn account(self) -> (u32, u32) {
        let said = on_host(self.host(), &["id -u; id -g"]);
        let mut numbers = said.split_whitespace().map(|word| word.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// What the first user but root of the account's containers is on this machine; none where it is the same.
    fn base(self) -> Option<u32> {
        let text = (self == Self::Rootless).then(|| fs::read_to_string("/etc/subuid").unwrap())?;
        let line = text.lines().find_map(|line| line.strip_prefix("ops:")).unwrap();
        line.split(':').next().unwrap().parse().ok()
    }

    /// A user of the account's containers, as this machine has it.
    pub(crate) fn outside(self, inside: u32) -> u32 {
        match self.base() {
            Some(base) if inside > 0 => base + inside - 1,
            Some(_) => self.account().0,
            None => inside,
        }
    }

    /// Where a volume of a sandbox is on this machine.
    pub(crate) fn volume(self, id: &str, name: &str) -> PathBuf {
        let engine =
            if matches!(self, Self::Root | Self::Dev | Self::Sudo) { "docker" } else { "podman" };
        let ask = format!("{engine} volume inspect -f '{{{{.Mountpoint}}}}' sbx-{id}_{name}");
        PathBuf::from(on_host(self.host(), &[&ask]).trim())
    }

    /// Fills a folder with everything odd.
    pub(crate) fn fill(self, folder: &Path) {
        let (user, group) = self.account();
        let numbers = [user, group, self.outside(0), self.outside(33), self.outside(70)]
            .map(|n| n.to_string());
        python(
            &[&["make", folder.to_str().unwrap()], &numbers.each_ref().map(String::as_str)[..]]
                .concat(),
        );
    }

    /// What is in a folder, by path, owners as the account's containers see them; `self` is the account.
    pub(crate) fn tell(self, folder: &Path) -> Tree {
        let ((user, group), base) = (self.account(), self.base());
        let inside = |outside: u64, own: u32| match base.map(u64::from) {
            _ if outside == u64::from(own) => "self".to_owned(),
            Some(base) if outside >= base => (outside - base + 1).to_string(),
            _ => outside.to_string(),
        };
        let said = python(&["tell", folder.to_str().unwrap()]);
        let rows = said.lines().map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row["uid"] = inside(row["uid"].as_u64().unwrap(), user).into();
            row["gid"] = inside(row["gid"].as_u64().unwrap(), group).into();
            (text(&row["path"]), row)
        });
        Tree(rows.collect())
    }
}

/// What is in a folder, by path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree(pub(crate) BTreeMap<String, Value>);

impl Tree {
    /// Without what an archive never has.
    pub(crate) fn kept(mut self) -> Self {
        self.0.retain(|_, row| row["kind"] != "socket" && row["kind"] != "device");
        self
    }

    /// Without who an access list names: that is a number of this machine, and another one for other containers.
    pub(crate) fn without_acl_users(mut self) -> Self {
        for row in self.0.values_mut() {
            if let Some(xattrs) = row["xattrs"].as_object_mut() {
                xattrs.remove("system.posix_acl_access");
            }
        }
        self
    }

    /// With each owner as it would be for an account to which `from` says what another's are.
    pub(crate) fn owners(mut self, from: impl Fn(&str) -> String) -> Self {
        for row in self.0.values_mut() {
            for key in ["uid", "gid"] {
                row[key] = from(row[key].as_str().unwrap()).into();
            }
        }
        self
    }

    #[track_caller]
    pub(crate) fn assert_is(&self, wanted: &Self, what: &str) {
        let mut wrong = Vec::new();
        for (path, row) in &wanted.0 {
            match self.0.get(path) {
                None => wrong.push(format!("{path}: missing")),
                Some(have) if have != row => {
                    wrong.push(format!("{path}:\n  is     {have}\n  wanted {row}"));
                }
                Some(_) => {}
            }
        }
        wrong.extend(
            self.0
                .keys()
                .filter(|path| !wanted.0.contains_key(*path))
                .map(|path| format!("{path}: too much")),
        );
        assert!(
            wrong.is_empty(),
            "{what}: {} differ:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(20)].join("\n")
        );
    }
}

/// Runs the script beside this file on this machine, where root sees every host's files.
fn python(words: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/snapshots/odd.py");
    let output =
        Command::new("python3").arg(script).args(words).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A sandbox with volumes, and everything odd in its workspace and one of them.
pub(crate) fn odd_sandbox(bench: &Bench, place: Place, id: &str) {
    let repo = bench.repository("keeper", &[("docker-compose.yml", KEEPER), ("readme", "hello")]);
    bench.create_stack(place.host(), &repo, &["--id", id]);
    place.fill_below(&bench.directory(place.host(), id).join("workspace"));
    place.fill_below(&place.volume(id, "kept"));
}

impl Place {
    /// As [`Place::fill`], in a folder of its own below this one.
    pub(crate) fn fill_below(self, folder: &Path) {
        let odd = folder.join("odd");
        fs::create_dir(&odd).unwrap();
        let (user, group) = self.account();
        std::os::unix::fs::chown(&odd, Some(user), Some(group)).unwrap();
        self.fill(&odd);
    }
}

/// Whether the lab has this host; a test that needs it says why not.
pub(crate) fn there(place: Place) {
    let reason = fs::read_to_string(lab().join("missing").join(place.host())).unwrap_or_default();
    assert!(reason.is_empty(), "the lab has no {}: {reason}", place.host());
}
