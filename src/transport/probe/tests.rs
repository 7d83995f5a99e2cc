use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command as Process;

use crate::domain::facts::Disk;

use super::*;

fn want() -> ProbeRequest {
    ProbeRequest::new("2026-11-27T12:00:00.250Z".parse().unwrap())
}

fn output(stdout: &str) -> Output {
    Output { stdout: stdout.as_bytes().to_vec(), ..Output::default() }
}

const SAID: &str = "Welcome to the host\nmachine_id=3d12\nhostname=vm\nkernel=Linux 6.1\nid=uid=1000(al ice) gid=1000(al ice) groups=1\n\
cpus=8\nload=0.38 0.73 0.63 1/121 1183\nmem=MemTotal:       2000 kB\nmem=MemFree: 10 kB\nmem=MemAvailable:   1000 kB\n\
os=\"Debian GNU/Linux 12 (bookworm)\"\ntool.tar=/usr/bin/tar\ntool.kill=kill\ntool.rsync=/usr/bin/rsync\ntar=tar (GNU tar) 1.34\n\
root=/home/al ice/sandboxes\ndisk=4096 1000 600 500 9 8 /home/al ice\nnow=1795780801.500000000\n";

#[test]
fn facts_of_a_usual_host() {
    let facts = read(&output(SAID), &want(), Duration::from_millis(250)).unwrap().facts;
    assert_eq!(
        (facts.machine_id.as_str(), facts.hostname.as_str(), facts.uid, facts.user.as_str()),
        ("3d12", "vm", 1000, "al ice")
    );
    assert_eq!(
        (facts.mem_total_bytes, facts.mem_available_bytes, facts.cpus),
        (2_048_000, 1_024_000, 8)
    );
    assert!((facts.load1 - 0.38).abs() < 1e-9);
    assert_eq!(facts.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(facts.workspace_root, "/home/al ice/sandboxes");
    assert_eq!(
        facts.disk,
        Some(Disk {
            path: "/home/al ice".to_owned(),
            total_bytes: 4_096_000,
            available_bytes: 2_048_000
        })
    );
    let tools: Vec<&str> = facts.tools.keys().map(String::as_str).collect();
    assert_eq!(tools, ["gnu-tar", "rsync", "tar"]);
    assert_eq!(facts.clock_offset_s, Some(1.0));
    assert_eq!(facts.inventory, None);
}

#[test]
fn facts_of_odd_hosts() {
    for (change, to, check) in [
        (
            "mem=MemAvailable:   1000 kB\n",
            "mem=Buffers: 5 kB\nmem=Cached: 5 kB\n",
            "available 20480",
        ),
        (
            "disk=4096 1000 600 500 9 8 /home/al ice\n",
            "disk.df=\n a b 100 40 60 40% /mnt 5% x\n\n",
            "disk 102400 61440",
        ),
        ("disk=4096 1000 600 500 9 8 /home/al ice\n", "disk.df=\n\n", "disk none"),
        ("tar=tar (GNU tar) 1.34\n", "tar=tar (busybox) 1.35\n", "gnu false"),
        ("now=1795780801.500000000", "now=1795780800.%N", "offset 0"),
        ("now=1795780801.500000000", "now=1795780797.000", "offset -3.5"),
    ] {
        let said = SAID.replace(change, to);
        let facts = read(&output(&said), &want(), Duration::from_millis(250)).unwrap().facts;
        let disk = facts.disk.map_or("disk none".to_owned(), |d| {
            format!("disk {} {}", d.total_bytes, d.available_bytes)
        });
        let told = [
            format!("available {}", facts.mem_available_bytes),
            disk,
            format!("gnu {}", facts.tools.contains_key(facts::GNU_TAR)),
            format!("offset {}", facts.clock_offset_s.unwrap()),
        ];
        assert!(told.iter().any(|line| line == check), "{check}: {told:?}");
    }
}

#[test]
fn what_did_not_come_to_its_end_is_no_answer() {
    let cut = SAID.split("now=").next().unwrap();
    assert_eq!(
        read(&output(cut), &want(), Duration::ZERO).unwrap_err().code,
        Code::OperationFailed
    );
    let failed = Output { status: 2, stderr: b"sh: syntax error".to_vec(), ..output(SAID) };
    let error = read(&failed, &want(), Duration::ZERO).unwrap_err();
    assert_eq!(error.details["output"], "sh: syntax error");
    let inventory = ProbeRequest { inventory: true, ..want() };
    let half = SAID.replace("now=", "failed=docker ps -a: status 1\nnow=");
    let error = read(&output(&half), &inventory, Duration::ZERO).unwrap_err();
    assert_eq!(
        (error.code, error.details["failed"][0].as_str()),
        (Code::OperationFailed, Some("docker ps -a: status 1"))
    );
    let long = Output { truncated: true, ..output(SAID) };
    assert!(read(&long, &inventory, Duration::ZERO).is_err());
    assert!(read(&output(""), &want(), Duration::ZERO).is_err());
}

#[test]
fn compose_commands_are_split_like_a_shell_does() {
    assert_eq!(override_words(Some("docker compose")).unwrap().unwrap(), ["docker", "compose"]);
    assert_eq!(
        override_words(Some("'/opt/my tools/dc' --ansi=never")).unwrap().unwrap(),
        ["/opt/my tools/dc", "--ansi=never"]
    );
    assert_eq!(override_words(None).unwrap(), None);
    for wrong in ["", "  ", "a 'b", "a\nb"] {
        assert_eq!(override_words(Some(wrong)).unwrap_err().code, Code::InvalidConfig, "{wrong:?}");
    }
}

/// The script itself, in each shell that this machine has, against programs of ours.
fn run_script(shell: &[&str], path: &str, home: &str, args: &[&str]) -> Output {
    let mut words = shell.iter().copied().chain(["-c", PROBE_SH, "sh"]).chain(args.iter().copied());
    let output = Process::new(words.next().unwrap())
        .args(words)
        .env("PATH", path)
        .env("HOME", home)
        .env_remove("DOCKER_HOST")
        .output()
        .unwrap();
    Output {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: output.stderr,
        truncated: false,
    }
}

pub(super) fn program(dir: &std::path::Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A PATH with the usual tools and none of this machine's engines.
pub(super) fn bare_path(dir: &std::path::Path, without: &[&str]) -> String {
    for tool in [
        "sh", "cat", "head", "tail", "sed", "ls", "id", "uname", "nproc", "stat", "df", "date",
        "sleep", "timeout", "grep", "tar", "true", "find", "awk",
    ] {
        let Some(real) = ["/usr/bin", "/bin"]
            .iter()
            .map(|bin| std::path::Path::new(bin).join(tool))
            .find(|path| path.exists())
        else {
            continue;
        };
        if !without.contains(&tool) {
            symlink(real, dir.join(tool)).unwrap();
        }
    }
    dir.display().to_string()
}

pub(super) fn shells() -> Vec<Vec<&'static str>> {
    [vec!["/bin/sh"], vec!["/bin/bash", "--posix"], vec!["/bin/bash"], vec!["/bin/busybox", "ash"]]
        .into_iter()
        .filter(|shell| std::path::Path::new(shell[0]).exists())
        .collect()
}

#[test]
fn the_script_runs_in_every_shell_and_survives_what_lies_around() {
    for shell in shells() {
        let temp = tempfile::tempdir().unwrap();
        let bin = temp.path().join("bin");
        let root = temp.path().join("home/sand boxes");
        fs::create_dir(&bin).unwrap();
        for dir in ["sbx-aa", "sbx-fifo", "sbx-big", "sbx-x\nnow=5", "other", "sbx-link-in"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let manifest =
            "{\n  \"id\": \"aa\",\n  \"owner\": \"own-1\",\n  \"project\": \"sbx-aa\"\n}";
        fs::write(root.join("sbx-aa/manifest.json"), manifest).unwrap();
        fs::write(root.join("sbx-big/manifest.json"), vec![b'\n'; 50_000_000]).unwrap();
        fs::write(root.join("secret"), r#"{"id":"link-in","owner":"own-1"}"#).unwrap();
        symlink("../secret", root.join("sbx-link-in/manifest.json")).unwrap();
        symlink("sbx-aa", root.join("sbx-link")).unwrap();
        assert!(
            Process::new("mkfifo")
                .arg(root.join("sbx-fifo/manifest.json"))
                .status()
                .unwrap()
                .success()
        );
        program(&bin, "docker", "echo 'Cannot connect' >&2; exit 1");
        program(
            &bin,
            "podman",
            "case $* in *debug*) echo 'level=debug msg=\"Using graph root /tmp\"' >&2;; *--version*) echo podman version 5.0.0;; 'ps -a'*) echo '{\"id\":\"\",\"pid\":0,\"name\":\"sbx-aa_w_1\",\"labels\":{\"sandboxer.id\":\"aa\"}}';; *) echo '[]';; esac",
        );
        program(&bin, "podman-compose", "echo podman-compose version 1.6.0");
        let path = bare_path(&bin, &[]);
        let home = temp.path().join("home").display().to_string();
        let output =
            run_script(&shell, &path, &home, &["~/sand boxes/", "yes", "all", "1", "/nowhere"]);
        assert_eq!(output.error_text(), "", "{shell:?}");
        let probed =
            read(&output, &ProbeRequest { inventory: true, ..want() }, Duration::ZERO).unwrap();
        assert_eq!(probed.facts.workspace_root, root.display().to_string());
        assert!(probed.facts.disk.unwrap().total_bytes > 0);
        let runtime = &probed.facts.runtimes[0];
        assert_eq!(
            (runtime.engine.as_str(), runtime.version.as_str(), runtime.engine_version.as_deref()),
            ("podman", "1.6.0", Some("5.0.0"))
        );
        assert!(runtime.engine_id.as_ref().unwrap().starts_with("/tmp:"));
        assert_eq!(probed.facts.findings, ["docker: no engine answers: Cannot connect"]);
        let items: BTreeMap<String, Option<String>> = probed
            .facts
            .inventory
            .unwrap()
            .sandboxes
            .into_iter()
            .map(|item| (item.sandbox_id, item.owner))
            .collect();
        let expected = [
            ("aa", Some("own-1")),
            ("big", None),
            ("fifo", None),
            ("link", None),
            ("link-in", None),
            ("x\nnow=5", None),
        ];
        assert_eq!(
            items,
            expected
                .into_iter()
                .map(|(id, owner)| (id.to_owned(), owner.map(str::to_owned)))
                .collect()
        );
    }
}

#[test]
fn a_root_that_is_not_there_is_not_made() {
    let temp = tempfile::tempdir().unwrap();
    let bin = temp.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let path = bare_path(&bin, &[]);
    let home = temp.path().display().to_string();
    for (root, resolved) in [
        ("~", home.clone()),
        ("~/a/b", format!("{home}/a/b")),
        ("a//", format!("{home}/a")),
        ("/", "/".to_owned()),
        ("/no/such", "/no/such".to_owned()),
    ] {
        let probed = read(
            &run_script(&["/bin/sh"], &path, &home, &[root, "no", "all", "0"]),
            &want(),
            Duration::ZERO,
        )
        .unwrap();
        assert_eq!(probed.facts.workspace_root, resolved, "{root}");
        assert!(probed.facts.disk.is_some_and(|disk| disk.total_bytes > 0), "{root}");
    }
    assert!(!temp.path().join("a").exists());
}

#[test]
fn an_engine_that_hangs_does_not_hang_the_probe() {
    // With timeout(1), and on a host that has none.
    for without in [&[][..], &["timeout"][..]] {
        let temp = tempfile::tempdir().unwrap();
        let path = bare_path(temp.path(), without);
        program(temp.path(), "docker", "exec sleep 60");
        let began = Instant::now();
        let output = run_script(&["/bin/sh"], &path, "/root", &["/tmp", "no", "all", "0"]);
        assert!(began.elapsed() < Duration::from_secs(50), "{without:?}");
        let probed = read(&output, &want(), Duration::ZERO).unwrap();
        assert_eq!(
            probed.facts.findings,
            ["docker: no engine answers: it did not answer in time"],
            "{without:?}"
        );
    }
}
