//! The script on this machine's shells, with tools of the test's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::*;

/// Docker with a compose plugin, as words: each call is noted, and `dead` beside it means that no engine answers.
const DOCKER: &str = r#"#!/bin/sh
here=${0%/*}
echo "docker $*" >>"$here/asked"
case $1 in
  compose) [ ! -e "$here/broken" ] || exit 1; echo "Docker Compose version v2.26.1" ;;
  info) [ ! -e "$here/dead" ] || { echo "Cannot connect"; exit 1; }; echo 'sbx|ID|20.10|[]|/tmp' ;;
  version) echo 'sbx|20.10|Engine' ;;
esac
"#;

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["bin", "home/.docker/cli-plugins", "home/.config/containers"] {
            fs::create_dir_all(host.path(name)).unwrap();
        }
        // None of this machine's own engines.
        for tool in [
            "cat",
            "grep",
            "head",
            "id",
            "ls",
            "rm",
            "sed",
            "sh",
            "sha256sum",
            "sleep",
            "stat",
            "tail",
            "timeout",
            "true",
        ] {
            let places = ["/usr/bin", "/bin"].map(|bin| Path::new(bin).join(tool));
            let place = places.into_iter().find(|place| place.exists()).unwrap();
            symlink(place, host.path("bin").join(tool)).unwrap();
        }
        host.program("docker", DOCKER);
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        let file = self.path("bin").join(name);
        // A new inode, as an upgrade makes it.
        let _ = fs::remove_file(&file);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn asked(&self) -> String {
        let asked = fs::read_to_string(self.path("bin/asked")).unwrap_or_default();
        let _ = fs::remove_file(self.path("bin/asked"));
        asked
    }

    fn run(&self, shell: &str, script: &str, words: &[String], more: &[(&str, &str)]) -> String {
        let mut command = Command::new(shell);
        if shell.ends_with("busybox") {
            command.arg("sh");
        }
        let text = format!("{}{script}", include_str!("../../../scripts/runtime.sh"));
        let ran = command
            .args(["-c", &text, "sh"])
            .args(words)
            .env_clear()
            .envs([("PATH", self.path("bin")), ("HOME", self.path("home"))])
            .envs(more.to_vec())
            .output()
            .unwrap();
        String::from_utf8(ran.stdout).unwrap()
    }

    fn fingerprint(&self, words: &[&str], more: &[(&str, &str)]) -> String {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        self.run("/bin/sh", "sbx_fingerprint \"$@\"\n", &words, more)
    }

    /// A detection of the first runtime, with what is known.
    fn detect(&self, shell: &str, known: Option<&RuntimeDetection>) -> RuntimeReport {
        let detecting =
            Detecting::new(DetectionScope::First, &[], known, Time::from_unix(1_000_000));
        let (mode, words) = detecting.arguments();
        let words: Vec<String> = std::iter::once(mode.to_owned()).chain(words).collect();
        detecting.read(&self.run(shell, "sbx_runtime \"$@\"\n", &words, &[]))
    }
}

#[test]
fn a_fingerprint_is_another_one_where_anything_of_a_detection_is() {
    let host = Host::new();
    let plain = || host.fingerprint(&[], &[]);
    let first = plain();
    assert_eq!((first.len(), &plain()), (64, &first), "the same where nothing changed");
    let mut seen = vec![first.clone()];
    let mut is_new = |what: &str, now: String| {
        assert!(now.len() == 64 && !seen.contains(&now), "{what}: {now}");
        seen.push(now);
    };
    let file = host.path("storage.conf");
    fs::write(&file, "a").unwrap();
    for variable in [
        ("DOCKER_HOST", "tcp://10.0.0.1:2375"),
        ("DOCKER_CONTEXT", "other"),
        ("DOCKER_CONFIG", "/nowhere"),
        ("CONTAINER_HOST", "ssh://box"),
        ("CONTAINERS_CONF", "/nowhere"),
        ("CONTAINERS_STORAGE_CONF", file.to_str().unwrap()),
        ("XDG_RUNTIME_DIR", "/nowhere"),
    ] {
        is_new(variable.0, host.fingerprint(&[], &[variable]));
    }
    fs::write(&file, "other").unwrap();
    let storage = [("CONTAINERS_STORAGE_CONF", file.to_str().unwrap())];
    is_new("another storage", host.fingerprint(&[], &storage));
    is_new("a command that is named", host.fingerprint(&["/opt/compose", "-x"], &[]));
    is_new("two words of it in one", host.fingerprint(&["/opt/compose -x"], &[]));
    assert_eq!(plain(), first);

    host.program("docker", DOCKER);
    is_new("the same program again", plain());
    let old = fs::metadata(host.path("bin/docker")).unwrap().modified().unwrap();
    fs::write(host.path("bin/docker"), DOCKER.replace("v2.26.1", "v2.26.2")).unwrap();
    let program = fs::File::options().write(true).open(host.path("bin/docker")).unwrap();
    program.set_modified(old).unwrap();
    is_new("one of the same size and time", plain());
    host.program("podman-compose", "#!/bin/sh\n");
    is_new("a further tool", plain());
    host.write("home/.docker/cli-plugins/docker-compose", "x");
    is_new("a plugin", plain());
    host.write("home/.docker/config.json", "{\"currentContext\": \"far\"}");
    is_new("docker's configuration", plain());
    host.write("home/.config/containers/storage.conf", "x");
    is_new("podman's", plain());
    symlink("podman-compose", host.path("bin/podman")).unwrap();
    is_new("a link", plain());
    host.program("podman-compose", "#!/bin/sh\n# another\n");
    is_new("what it leads to", plain());
    fs::remove_file(host.path("bin/docker")).unwrap();
    is_new("one less", plain());
}

#[test]
fn no_tool_is_asked_where_the_fingerprint_is_the_one_that_was_known() {
    let shells = ["/bin/sh", "/bin/bash", "/bin/busybox"];
    for shell in shells.into_iter().filter(|shell| Path::new(shell).exists()) {
        let host = Host::new();
        let known = host.detect(shell, None).detection.unwrap();
        assert_eq!(known.runtimes[0].version, "2.26.1");
        assert!(host.asked().contains("docker compose version"), "{shell}");
        let again = host.detect(shell, Some(&known));
        let asked = host.asked();
        assert_eq!(asked.lines().count(), 1, "{shell}: its identity, and no more: {asked}");
        assert!(asked.starts_with("docker info "), "{shell}: {asked}");
        assert_eq!((again.runtimes, again.detection), (known.runtimes.clone(), None), "{shell}");

        // Another engine behind the same client: podman's makes up an id each time.
        let mut before = known.clone();
        before.runtimes[0].engine_id = Some("of-another".to_owned());
        assert_eq!(host.detect(shell, Some(&before)).runtimes, [], "{shell}");
        host.asked();
        before.runtimes[0].podman_behind = true;
        assert_eq!(host.detect(shell, Some(&before)).runtimes, [], "{shell}: it is podman no more");
        assert!(host.asked().contains("docker version"), "{shell}");

        host.program("docker", &DOCKER.replace("v2.26.1", "v5.0.0"));
        let upgraded = host.detect(shell, Some(&known));
        assert_eq!(upgraded.detection.unwrap().runtimes[0].version, "5.0.0", "{shell}");
        host.asked();

        // A runtime that does not run any more, which the fingerprint need not show: asked in full, then said.
        let known = host.detect(shell, None).detection.unwrap();
        host.write("bin/dead", "");
        host.asked();
        let dead = host.detect(shell, Some(&known));
        assert_eq!((dead.runtimes, dead.detection), (vec![], None), "{shell}");
        assert!(host.asked().contains("compose version"), "{shell}: a fresh detection");
        assert_eq!(dead.findings[0], "docker: no engine answers: Cannot connect", "{shell}");
        fs::remove_file(host.path("bin/docker")).unwrap();
        assert_eq!(host.detect(shell, Some(&known)).runtimes, [], "{shell}: removed");
    }
}
