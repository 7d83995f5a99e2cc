//! What goes wrong on purpose: a relay that cuts and stalls, a small file system, a host that lacks programs.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::lab::{Bench, DOCKER, EVENTUALLY, PODMAN, Way, free_port, lab, signal, wait_until};

/// The lab's TCP relay before an sshd.
pub(crate) struct Relay {
    child: Child,
    pub(crate) port: u16,
}

impl Relay {
    /// On a port that stays free when it ends, so that another one can stand there.
    pub(crate) fn start(target: u16, options: &[&str]) -> Self {
        Self::start_at(free_port(), target, options)
    }

    pub(crate) fn start_at(port: u16, target: u16, options: &[&str]) -> Self {
        let mut child = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/relay"))
            .args(["--target", &format!("127.0.0.1:{target}"), "--listen", &port.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap() }
    }

    /// Resets every connection; new ones are served.
    pub(crate) fn cut(&self) {
        signal(self.child.id(), "USR1");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `zstd` for a host of the test's own that stands still in the middle of what it writes, for as long as it is told to.
pub(crate) struct Halting {
    folder: PathBuf,
}

impl Halting {
    pub(crate) fn new(bench: &Bench) -> Self {
        let folder = bench.path("halting");
        fs::create_dir(&folder).unwrap();
        let program = folder.join("zstd");
        let text = format!(
            r#"#!/bin/sh
[ -e {at}/halt ] || exec /usr/bin/zstd "$@"
/usr/bin/zstd "$@" | {{
  head -c 4000000
  : >{at}/halted
  while [ -e {at}/halt ]; do sleep 0.05; done
  cat
}}
"#,
            at = folder.display()
        );
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// The PATH of the lab's Docker host with this program in front.
    pub(crate) fn path(&self) -> String {
        format!(
            "{}:{}",
            self.folder.display(),
            lab().join("hosts").join(DOCKER).join("bin").display()
        )
    }

    /// From now on it stands still, until [`Halting::go_on`].
    pub(crate) fn halt(&self) {
        fs::write(self.folder.join("halt"), "").unwrap();
        let _ = fs::remove_file(self.folder.join("halted"));
    }

    pub(crate) fn wait(&self) {
        wait_until("it is in the middle", || self.folder.join("halted").exists());
    }

    pub(crate) fn go_on(&self) {
        fs::remove_file(self.folder.join("halt")).unwrap();
    }
}

/// A file system in memory; unmounted when dropped.
pub(crate) struct Tmpfs {
    pub(crate) path: PathBuf,
}

impl Tmpfs {
    pub(crate) fn mount(path: PathBuf, options: &str) -> Self {
        fs::create_dir(&path).unwrap();
        run("mount", &["-t", "tmpfs", "-o", options, "none", path.to_str().unwrap()]);
        Self { path }
    }

    /// Mounts it anew as `ro` or `rw`.
    pub(crate) fn remount(&self, mode: &str) {
        run("mount", &["-o", &format!("remount,{mode}"), self.path.to_str().unwrap()]);
    }

    /// Fills it to the last byte; answers the file that does.
    pub(crate) fn fill(&self) -> PathBuf {
        let file = self.path.join("filler");
        // What fits was written before the error.
        assert!(fs::write(&file, vec![0; 64 << 20]).is_err());
        file
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l".as_ref(), self.path.as_os_str()]).status();
    }
}

fn run(program: &str, args: &[&str]) {
    let status = Command::new(program).args(args).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} {args:?}");
}

/// A new key pair's private file; the public one is beside it.
pub(crate) fn new_key(path: &Path) -> PathBuf {
    run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()]);
    path.to_owned()
}

/// An sshd of the test's own, whose sessions have only some of this machine's programs.
pub(crate) struct Host {
    child: Child,
}

impl Host {
    /// Programs whose names hold one of the words of `without` are not there.
    pub(crate) fn start(bench: &Bench, name: &str, without: &[&str]) -> Self {
        let folder = bench.path(format!("host-{name}"));
        let (bin, home) = (folder.join("bin"), folder.join("home"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join(".bashrc"), "").unwrap();
        for directory in ["/usr/bin", "/usr/sbin", "/bin", "/sbin"] {
            for entry in fs::read_dir(directory).unwrap().filter_map(Result::ok) {
                let program = entry.file_name();
                let hidden = without.iter().any(|word| match word.strip_prefix('=') {
                    Some(whole) => program == whole,
                    None => program.to_string_lossy().contains(word),
                });
                if !hidden {
                    let _ = std::os::unix::fs::symlink(entry.path(), bin.join(program));
                }
            }
        }
        let port = free_port();
        let config = folder.join("sshd_config");
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {lab}/keys/{PODMAN}\nPidFile {folder}/pid\nAuthorizedKeysFile {lab}/keys/client.pub\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\nSetEnv HOME={folder}/home PATH={folder}/bin\n",
            lab = lab().display(),
            folder = folder.display()
        );
        fs::write(&config, text).unwrap();
        let child = Command::new("/usr/sbin/sshd")
            .arg("-D")
            .arg("-f")
            .arg(&config)
            .arg("-E")
            .arg(folder.join("log"))
            // Sessions outlive it, until the shared connection ends: they must not hold what we were given.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + EVENTUALLY;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                Instant::now() < until,
                "sshd does not listen: {:?}",
                fs::read_to_string(folder.join("log"))
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        bench.add_host(name, &Way::to(PODMAN, port), &folder.join("sandboxes"));
        Self { child }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
