//! `exec -i`: a command that reads standard input, in the workspace and in a service.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::sandboxes::commands::plain;

/// Runs a command with these bytes on its standard input, raw: its status, its output and its errors.
fn given(bench: &Bench, args: &[&str], bytes: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = plain(bench, args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, bytes) = (child.stdin.take().unwrap(), bytes.to_vec());
    // Whoever reads no further closes the pipe.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    (output.status.code(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_command_reads_standard_input_byte_for_byte_and_ends_as_it_ends() {
    let bench = Bench::new();
    let bytes: Vec<u8> =
        (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for host in [DOCKER, PODMAN] {
        let id = text(&bench.create_stack(host, &bench.web_stack("hello"), &[])["id"]);
        for place in [&[][..], &["--service", "web"]] {
            let with =
                |words: &[&'static str]| [&["exec", "-i", &id], place, &["--"], words].concat();
            let whole = given(&bench, &with(&["cat"]), &bytes);
            assert_eq!(whole.0, Some(0), "{host} {place:?}");
            assert!(whole.1 == bytes, "{host} {place:?}");
            assert_eq!(whole.2.as_str(), "", "{host} {place:?}");
            let counted = given(&bench, &with(&["sh", "-c", "wc -c; echo e >&2; exit 7"]), &bytes);
            assert_eq!(
                String::from_utf8_lossy(&counted.1).trim(),
                bytes.len().to_string(),
                "{host} {place:?}"
            );
            assert_eq!((counted.0, counted.2.as_str()), (Some(7), "e\n"), "{host} {place:?}");
            // Who reads no further, or nothing at all, is not waited for; what is left is nobody's command.
            let head = given(&bench, &with(&["head", "-c", "3"]), &bytes);
            assert_eq!(head.0, Some(0), "{host} {place:?}: {}", head.2);
            // Podman's client hears that its end of the attach socket was reset before it reads what came last: whole, or lost.
            let lost_by_podman = host == PODMAN && !place.is_empty() && head.1.is_empty();
            assert!(head.1 == bytes[..3] || lost_by_podman, "{host} {place:?}: {head:?}");
            let none = given(&bench, &with(&["true"]), &b"touch /tmp/run\n".repeat(50_000));
            assert_eq!(none.0, Some(0), "{host} {place:?}");
            assert_eq!(none.1.len(), 0, "{host} {place:?}");
            assert_eq!(none.2.as_str(), "", "{host} {place:?}");
            let lost = given(&bench, &with(&["no-such-program"]), b"x");
            assert_eq!(lost.0, Some(127), "{host} {place:?}: {}", lost.2);
        }
        // Without -i nothing is read.
        let (status, out, _) = given(&bench, &["exec", &id, "--", "cat"], b"not for it");
        assert_eq!((status, out.len()), (Some(0), 0), "{host}");
        bench.ok(["destroy", &id]);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_command_with_input_ends_with_its_console() {
    let bench = Bench::new();
    for (host, base) in [(DOCKER, "318.71"), (PODMAN, "318.72")] {
        let id = text(&bench.create_stack(host, &bench.web_stack("hello"), &[])["id"]);
        for (number, place) in [&[][..], &["--service", "web"]].into_iter().enumerate() {
            let nap = format!("{base}{number}");
            let script = format!("sleep {nap}; true");
            let args = [&["exec", "-i", &id], place, &["--", "sh", "-c", &script]].concat();
            let mut child =
                plain(&bench, &args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let sleeps = || {
                let found = std::process::Command::new("pgrep")
                    .args(["-fx", &format!("sleep {nap}")])
                    .output()
                    .unwrap();
                !found.stdout.is_empty()
            };
            let within = |what: &str, done: &dyn Fn() -> bool| {
                let until = Instant::now() + Duration::from_mins(1);
                while !done() {
                    assert!(Instant::now() < until, "{host} {place:?}: {what}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            };
            within("it never began", &sleeps);
            child.kill().unwrap();
            child.wait().unwrap();
            within("it goes on", &|| !sleeps());
        }
        bench.ok(["destroy", &id]);
    }
}
