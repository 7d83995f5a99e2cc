//! Snapshots whose engine does not answer, answers late, or starts something meanwhile: by the scripts
//! themselves with an engine that is made up, so that each of its answers can fail in its turn.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An engine with containers as files, of which each has its state, and when it was started. Call number `ONLY` fails, and all
/// from number `FROM` on; what `hook` says is done before each call.
const ENGINE: &str = r#"#!/bin/sh
cd "${0%/*}"
[ "$1" != unshare ] || { cd "$OLDPWD"; shift; exec "$@"; }
calls=$(($(cat calls) + 1))
echo "$calls" >calls
[ ! -f hook ] || . ./hook
[ "$calls" -lt "${FROM:-999}" ] && [ "$calls" != "${ONLY:-0}" ] || { echo "Error: it does not answer" >&2; exit 125; }
says() { printf '%s\n' "$1" | sed -e "s|{{json .Options}}|null|; s|{{.Mountpoint}}|$PWD/data|; s|{{index .Labels [^}]*}}|data|" \
  -e "s|{{range .Mounts}}.*|external /srv|; s|{{index .Config.Labels [^}]*}}|service-$2|; s|{{.Image}}|sha256:$2|" \
  -e "s|{{json .Created}}|\"2026\"|; s|{{.Created}}|2026|; s|{{.State.Status}}|$3|; s|{{.Id}}|$2|; s|{{json .State.StartedAt}}|\"$4\"|; s|{{.Name}}|sbx-a-$2-1|" \
  -e 's|{{"\\n"}}|\n|g'; }
case "$1 $2" in
  ps*) for one in c/*; do
      read -r state since <"$one"
      case "$*" in *status=running*) [ "$state" = running ] || continue ;; esac
      printf '%s\037"a"\037"o1"\037"sbx-a"\037"sbx-a-%s-1"\037Up\n' "${one#c/}" "${one#c/}"
    done ;;
  volume\ ls) printf 'sbx-a_data\037"a"\037"o1"\037"sbx-a"\037"sbx-a_data"\n' ;;
  volume\ inspect) says "$4" ;;
  inspect*) shift 3; form=$2; shift 2; ended=0
    for one; do
      read -r state since 2>/dev/null <"c/$one" || { echo "Error: no such container $one" >&2; ended=1; continue; }
      says "$form" "$one" "$state" "$since"
    done
    exit "$ended" ;;
  pause*) shift; for one; do echo "paused 2026-01" >"c/$one"; done ;;
  unpause*) echo "running 2026-01" >"c/$2" ;;
  info*) echo "false v2" ;;
esac
"#;

/// tar, before which what `during` says is done.
const TAR: &str = "#!/bin/sh\nhere=${0%/*}\ncase $* in *--totals*) [ ! -f \"$here/during\" ] || (cd \"$here\" && . ./during) ;; esac\nPATH=${PATH#*:}; exec tar \"$@\"\n";

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    /// A sandbox `a` with a volume, and the containers `aa`, which runs, and what else is named.
    fn new(others: &[(&str, &str)]) -> Self {
        let host = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in [("docker", ENGINE), ("podman", ENGINE), ("tar", TAR)] {
            host.write(&format!("bin/{name}"), text);
            fs::set_permissions(host.at(&format!("bin/{name}")), fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        host.write("bin/data/row", "kept");
        host.write("bin/calls", "0");
        host.write("bin/c/aa", "running 2026-01\n");
        for (id, state) in others {
            host.write(&format!("bin/c/{id}"), &format!("{state}\n"));
        }
        host.write("root/sbx-a/workspace/file", "text");
        host.write("root/sbx-a/manifest.json", "{\n  \"id\": \"a\",\n  \"owner\": \"o1\",\n}\n");
        host
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    fn stands(&self, id: &str) -> String {
        self.read(&format!("bin/c/{id}")).split(' ').next().unwrap().to_owned()
    }

    /// Runs a script of an archive with those that stand before it.
    fn run(
        &self,
        before: &[&str],
        last: &str,
        words: &[&str],
        environment: &[(&str, String)],
    ) -> String {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut text = String::new();
        for name in before {
            text += &fs::read_to_string(scripts.join(name)).unwrap();
        }
        let archive = scripts.join("extensions/archives/scripts");
        let letting_go = fs::read_to_string(archive.join("let_go.sh")).unwrap();
        for part in ["sbx_letting_go='", &letting_go, "'\neval \"$sbx_letting_go\"\n"] {
            text += part;
        }
        for name in last.split(' ') {
            text += &fs::read_to_string(archive.join(name)).unwrap();
        }
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        // Into a file: the guard of what is held has our pipe until this one is waited for.
        let said = fs::File::create(self.at("said")).unwrap();
        Command::new("sh")
            .args(["-c", &text, "sh", self.at("root").to_str().unwrap()])
            .args(words)
            .env("PATH", path)
            .envs(environment.iter().map(|(key, value)| (*key, value.as_str())))
            .stdout(said)
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        self.read("said")
    }

    fn capture(&self, mode: &str, environment: &[(&str, String)]) -> String {
        let before = [
            "transport/scripts/runtime.sh",
            "extensions/workspace/scripts/says.sh",
            "extensions/workspace/scripts/place.sh",
            "extensions/workspace/scripts/engine.sh",
            "extensions/workspace/scripts/belonging.sh",
            "extensions/workspace/scripts/bind.sh",
            "extensions/archives/scripts/as.sh",
        ];
        let words = ["a", "o1", "snap", "", "podman", "", mode, "1"];
        self.run(&before, "hold.sh leave_out.sh capture.sh", &words, environment)
    }

    fn resume(&self) -> String {
        let before = [
            "transport/scripts/runtime.sh",
            "extensions/workspace/scripts/says.sh",
            "extensions/workspace/scripts/place.sh",
        ];
        self.run(&before, "resume.sh", &["a", "o1", ""], &[])
    }
}

/// Lines that tell what is in it, and what is not.
fn facts(said: &str) -> Vec<&str> {
    let keys = ["image=", "captured=", "missed=", " external", "mode="];
    said.lines().filter(|line| keys.iter().any(|key| line.starts_with(key))).collect()
}

/// Whatever fails, and whether it comes back (`ONLY`) or not (`FROM`): a snapshot says all of it, or there is none.
fn a_snapshot_whose_engine_fails_in_the_middle_lacks_nothing_or_is_none(mode: &str, how: &str) {
    let whole = Host::new(&[("bb", "exited 2026-02")]);
    let said = whole.capture(mode, &[]);
    let all = facts(&said);
    assert!(said.ends_with("captured_all=yes\n") && !said.contains("fuzzy="), "{said}");
    assert_eq!(all.len(), 6, "{said}");
    let calls: usize = whole.read("bin/calls").trim().parse().unwrap();
    assert!(calls > 6, "{calls}");
    for call in 1..=calls {
        let host = Host::new(&[("bb", "exited 2026-02")]);
        let said = host.capture(mode, &[(how, call.to_string())]);
        if said.contains("captured_all=yes") {
            assert_eq!(facts(&said), all, "{call}: {said}");
        } else {
            assert!(
                said.contains("error=engine\n") || said.contains("error=pause\n"),
                "{call}: {said}"
            );
        }
        if host.stands("aa") == "paused" {
            assert!(said.contains("still="), "{call}: {said}");
            assert!(host.read("root/sbx-a/.held.back").contains(" aa"), "{call}");
        }
    }
}

#[test]
fn a_snapshot_whose_engine_fails_once_while_it_is_paused_lacks_nothing_or_is_none() {
    a_snapshot_whose_engine_fails_in_the_middle_lacks_nothing_or_is_none("pause", "ONLY");
}

#[test]
fn a_snapshot_whose_engine_fails_for_good_while_it_is_paused_lacks_nothing_or_is_none() {
    a_snapshot_whose_engine_fails_in_the_middle_lacks_nothing_or_is_none("pause", "FROM");
}

#[test]
fn a_live_snapshot_whose_engine_fails_once_lacks_nothing_or_is_none() {
    a_snapshot_whose_engine_fails_in_the_middle_lacks_nothing_or_is_none("live", "ONLY");
}

#[test]
fn a_live_snapshot_whose_engine_fails_for_good_lacks_nothing_or_is_none() {
    a_snapshot_whose_engine_fails_in_the_middle_lacks_nothing_or_is_none("live", "FROM");
}

#[test]
fn a_container_that_goes_away_while_it_is_looked_at_is_no_failure() {
    for call in 1..20 {
        let host = Host::new(&[("bb", "exited 2026-02")]);
        host.write("bin/hook", &format!("[ \"$calls\" -lt {call} ] || rm -f c/bb\n"));
        let said = host.capture("pause", &[]);
        assert!(said.ends_with("captured_all=yes\n"), "{call}: {said}");
        assert!(said.contains("image=service-aa sha256:aa\n"), "{call}: {said}");
        assert!(!said.contains("fuzzy="), "{call}: {said}");
    }
}

#[test]
fn a_container_that_is_not_held_makes_a_snapshot_fuzzy() {
    for (others, during, why) in [
        ("restarting 2026-02", "", "container sbx-a-bb-1 was restarting, and not held"),
        // It comes up, and is gone again when tar is done.
        (
            "restarting 2026-02",
            "echo 'restarting 2026-03' >c/bb",
            "container sbx-a-bb-1 was restarting, and not held",
        ),
        (
            "exited 2026-02",
            "echo 'exited 2026-03' >c/bb",
            "container sbx-a-bb-1 was started meanwhile",
        ),
        (
            "created 0001-01",
            "echo 'running 2026-03' >c/bb",
            "container sbx-a-bb-1 was running, and not held",
        ),
        (
            "exited 2026-02",
            "echo 'exited 2026-03' >c/cc",
            "container sbx-a-cc-1 was started meanwhile",
        ),
    ] {
        let host = Host::new(&[("bb", others)]);
        host.write("bin/during", during);
        let said = host.capture("pause", &[]);
        assert!(said.ends_with("captured_all=yes\n"), "{others}, {during}: {said}");
        assert!(said.contains("mode=pause\n"), "{others}, {during}: {said}");
        assert!(said.contains("fuzzy=yes\n") && said.contains(why), "{others}, {during}: {said}");
        assert_eq!(host.stands("aa"), "running", "{others}, {during}");
    }
    // One that never ran, and does not, writes nothing; and who asks for `live` asks for nothing else.
    let host = Host::new(&[("bb", "created 0001-01")]);
    host.write("bin/during", "echo 'created 0001-01' >c/cc");
    assert!(!host.capture("pause", &[]).contains("fuzzy="));
    let host = Host::new(&[("bb", "restarting 2026-02")]);
    assert!(!host.capture("live", &[]).contains("fuzzy="));
}

#[test]
fn a_snapshot_takes_back_what_an_earlier_one_holds() {
    for left in [".held", ".held.back"] {
        let host = Host::new(&[("bb", "paused 2026-01")]);
        host.write(&format!("root/sbx-a/{left}"), "pause podman bb\nolder\n");
        let said = host.capture("pause", &[]);
        assert!(said.ends_with("captured_all=yes\n") && !said.contains("fuzzy="), "{left}: {said}");
        assert_eq!(host.stands("aa"), "running".to_owned(), "{left}");
        assert_eq!(host.stands("bb"), "running".to_owned(), "{left}");
        assert_eq!(host.read(&format!("root/sbx-a/{left}")), "", "{left}");
    }
    // Nobody could ask: nothing is begun, and nothing forgotten.
    let host = Host::new(&[("bb", "paused 2026-01")]);
    host.write("root/sbx-a/.held", "pause podman bb\nolder\n");
    host.write(
        "bin/hook",
        "case $* in *bb) echo 'dial unix /run/x.sock: connect: no such file or directory' >&2; exit 125 ;; esac",
    );
    let said = host.capture("pause", &[]);
    assert!(said.contains("error=engine\n") && !said.contains("began="), "{said}");
    assert_eq!(host.read("root/sbx-a/.held.back"), "pause podman bb\nolder\n");
    assert_eq!(host.stands("aa"), "running");
}

#[test]
fn a_snapshot_does_not_begin_while_the_script_of_another_is_at_work() {
    let host = Host::new(&[("bb", "paused 2026-01")]);
    host.write("root/sbx-a/.held", "pause podman bb\nolder\n");
    let this = std::process::id();
    let stat = fs::read_to_string(format!("/proc/{this}/stat")).unwrap();
    let since = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap();
    host.write("root/sbx-a/.packing", &format!("{this} {since}\n"));
    let said = host.capture("pause", &[]);
    assert!(said.contains("error=busy\n") && !said.contains("began="), "{said}");
    assert_eq!(host.stands("bb"), "paused", "it is held by the other one");
}

#[test]
fn what_cannot_be_read_is_not_nothing_to_take_back() {
    let held = |manifest: &str| {
        let host = Host::new(&[("bb", "paused 2026-01")]);
        host.write("root/sbx-a/.held", "pause podman bb\nolder\n");
        host.write("root/sbx-a/manifest.json", manifest);
        (host.resume(), host.stands("bb"))
    };
    let is = |manifest: &str, said: &str, stands: &str| {
        let (heard, now) = held(manifest);
        assert!(heard.contains(said), "{manifest}: {heard}");
        assert_eq!(now, stands, "{manifest}");
    };
    is("  \"id\": \"a\",\n  \"owner\": \"o1\",\n", "resumed=yes\n", "running");
    is("  \"id\": \"a\",\n  \"owner\": \"o2\",\n", "resumed=yes\n", "paused");
    is("", "error=unread\n", "paused");
    // Without a manifest nobody knows whose the held ones are.
    let host = Host::new(&[]);
    fs::remove_file(host.at("root/sbx-a/manifest.json")).unwrap();
    assert_eq!(host.resume(), "resumed=yes\n");
    host.write("root/sbx-a/.held", "pause podman aa\nolder\n");
    assert!(host.resume().contains("error=unread\n"));
    // What is there and cannot be gone into, for every account; what is not there.
    let host = Host::new(&[]);
    fs::remove_dir_all(host.at("root/sbx-a")).unwrap();
    assert_eq!(host.resume(), "resumed=yes\n");
    std::os::unix::fs::symlink("sbx-a", host.at("root/sbx-a")).unwrap();
    assert!(host.resume().contains("error=unread\n"));
    fs::remove_dir_all(host.at("root")).unwrap();
    assert_eq!(host.resume(), "resumed=yes\n");
    host.write("root", "");
    assert!(host.resume().contains("error=unread\n"));
}
