//! By rsync, over the host's open connection.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;

use crate::domain::error::{Code, Error};
use crate::transport::watchdog::scrubbed_names;
use crate::transport::{RemoteShell, Transport};

use super::child::{Running, tail_of};
use super::plan::Plan;
use super::sent::{IDLE, Method, Progress, Sent, failed};

/// "Some files vanished before they could be transferred."
const VANISHED: i32 = 24;

/// Time for which a session is asked for again where the host has no room for one more.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// Runs rsync in a shell that writes to the same stdout every 2 s, an empty line, and ends all of it when it cannot: an
/// rsync that stands still writes nothing, and would outlive a console that was killed by two minutes.
const RSYNC_SH: &str = r#"sbx_beat() {
  exec </dev/null 2>/dev/null
  trap '' PIPE TERM
  trap 'kill -KILL $sbx_nap; exit' USR1
  while :; do
    sleep 2 >/dev/null & sbx_nap=$!
    wait $sbx_nap
    echo || break
  done
  kill -TERM 0
  sleep 5
  kill -KILL 0
}
sbx_beat & sbx_beater=$!
rsync "$@"
sbx_status=$?
{ kill -USR1 $sbx_beater; wait $sbx_beater; } 2>/dev/null
exit $sbx_status"#;

pub(super) async fn send(
    transport: &dyn Transport,
    plan: &Plan,
    source: &Path,
    dest: &str,
    progress: &mut Progress<'_>,
) -> Result<Sent, Error> {
    let started = Instant::now();
    loop {
        let list = plan.list()?;
        let mut words: Vec<OsString> = ["-c", RSYNC_SH, "sbx"].map(OsString::from).to_vec();
        words.extend(arguments(&transport.remote_shell(), dest));
        let (group, stdout, stderr) = Running::start("sh", &words, source, list)?.split();
        let (bytes, stderr) = tokio::join!(follow(stdout, progress), tail_of(stderr));
        match group.wait().await? {
            0 | VANISHED => return Ok(Sent { method: Method::Rsync, bytes }),
            // ssh was given no session, so nothing ran.
            _ if stderr.contains("Session open refused") && started.elapsed() < REFUSED_FOR => {
                transport.make_room().await?;
            }
            127 => {
                return Err(Error::new(
                    Code::MissingDependency,
                    "rsync is not installed on this machine",
                )
                .because(stderr));
            }
            status => return Err(failed("the copy to the host failed", status, &stderr)),
        }
    }
}

/// `-a` without owner and group: what arrives belongs to the account there, as with tar, also where that is root.
fn arguments(shell: &RemoteShell, dest: &str) -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "-a",
        "-H",
        "--no-owner",
        "--no-group",
        "--no-devices",
        "--no-specials",
        // Without it the host's shell would split and expand the path.
        "--protect-args",
        "--from0",
        "--files-from=-",
        // In the list and gone: no error, like a file that vanishes later.
        "--ignore-missing-args",
        "--info=progress2",
        "--no-human-readable",
        "--outbuf=None",
    ]
    .map(OsString::from)
    .to_vec();
    args.push(format!("--timeout={}", IDLE.as_secs()).into());
    let mut target = OsString::new();
    if !shell.command.is_empty() {
        args.push("-e".into());
        args.push(shell_words(&shell.command));
        args.push(far_rsync().into());
        target.push(&shell.target);
        target.push(":");
    }
    target.push(dest.trim_end_matches('/'));
    target.push("/");
    args.extend(["--".into(), "./".into(), target]);
    args
}

/// The rsync there, without what the account's environment says to it. A line for the account's shell, whichever that is.
fn far_rsync() -> String {
    let names: Vec<&str> = scrubbed_names()
        .filter(|name| name.contains("RSYNC") || *name == "POSIXLY_CORRECT")
        .collect();
    format!("--rsync-path=sh -c 'unset -v {}; exec rsync \"$@\"' sbx", names.join(" "))
}

/// rsync splits `-e` at blanks, knows quotes, and a doubled quote as one of itself; no backslashes.
fn shell_words(words: &[OsString]) -> OsString {
    let mut line = Vec::new();
    for word in words {
        if !line.is_empty() {
            line.push(b' ');
        }
        let bytes = word.as_bytes();
        if bytes.is_empty() || bytes.iter().any(|&b| b == b' ' || b == b'\'' || b == b'"') {
            line.push(b'\'');
            for &byte in bytes {
                line.push(byte);
                if byte == b'\'' {
                    line.push(byte);
                }
            }
            line.push(b'\'');
        } else {
            line.extend_from_slice(bytes);
        }
    }
    OsString::from_vec(line)
}

/// Reads progress to the end and returns the last figure.
async fn follow(mut stdout: tokio::process::ChildStdout, progress: &mut Progress<'_>) -> u64 {
    let mut bytes = 0;
    let mut line = Vec::new();
    let mut piece = [0_u8; 4096];
    while let Ok(length @ 1..) = stdout.read(&mut piece).await {
        for &byte in &piece[..length] {
            if byte == b'\r' || byte == b'\n' {
                if let Some(done) = done_in(&line) {
                    bytes = done;
                    progress.at(done);
                }
                line.clear();
            } else if line.len() < 256 {
                line.push(byte);
            }
        }
    }
    done_in(&line).unwrap_or(bytes)
}

/// `     1048576  50%    1.00MB/s    0:00:01 (xfr#1, to-chk=3/5)`: the first word.
fn done_in(line: &[u8]) -> Option<u64> {
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let done = words.next()?.parse().ok()?;
    words.next()?.strip_suffix('%')?.parse::<u8>().ok()?;
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_shell_as_rsync_splits_it() {
        let words: Vec<OsString> = ["ssh", "-S", "/tmp/a b/it's", "-o", "X=\"y\"", ""]
            .iter()
            .map(OsString::from)
            .collect();
        assert_eq!(shell_words(&words), "ssh -S '/tmp/a b/it''s' -o 'X=\"y\"' ''");
    }

    #[test]
    fn the_target_here_and_there() {
        let local = arguments(&RemoteShell { command: vec![], target: String::new() }, "/r/w/");
        assert_eq!(local.last().unwrap(), "/r/w/");
        assert!(!local.contains(&OsString::from("-e")));
        let remote = arguments(
            &RemoteShell { command: vec!["ssh".into()], target: "host".into() },
            "/r/w x",
        );
        assert_eq!(remote.last().unwrap(), "host:/r/w x/");
        assert!(!remote.iter().any(|arg| arg.to_string_lossy().contains("delete")));
    }

    #[test]
    fn progress_figures() {
        for (line, done) in [
            ("     1048576  50%    1.00MB/s    0:00:01 (xfr#1, to-chk=3/5)", Some(1_048_576)),
            ("0 0% 0.00kB/s 0:00:00", Some(0)),
            ("sending incremental file list", None),
            ("12 files", None),
            ("", None),
        ] {
            assert_eq!(done_in(line.as_bytes()), done, "{line}");
        }
        assert_eq!(done_in(b"\xff 1%"), None);
    }
}
