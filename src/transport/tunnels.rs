//! A host's `reach` command: a program of this machine that is asked for tunnels to a sandbox and answers JSON.
//!
//! The tunnels belong to the program (ops-bridge, say); here they are asked for and shown, never made or ended.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command as Program};
use tokio::time::timeout;

use crate::domain::child_process::child;
use crate::domain::error::{Code, Error};
use crate::domain::host::Reach;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::{Attachment, Endpoint, Reachability};

const LIMIT: Duration = Duration::from_secs(10);

/// Bytes that it may answer.
const ANSWER_LIMIT: usize = 256 * 1024;

/// Tunnels that it may name.
const MOST: usize = 100;

/// Bytes of its stderr that are kept.
const WORDS_LIMIT: usize = 8 * 1024;

/// Time that its output is waited for after it ended: a tunnel that it left running may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Question to the command, as JSON on its stdin.
#[derive(Debug, Serialize)]
struct Question<'a> {
    sandbox_id: &'a SandboxId,
    host: &'a HostName,
    ssh: &'a str,
    workdir: &'a str,
    endpoints: &'a [Endpoint],
}

/// Asks for tunnels to a sandbox. The command runs without a shell, in a process group of its own, and is killed when
/// this is dropped.
///
/// Errors: `missing_dependency` where the program is not there, `timeout`, and `operation_failed` for another exit status
/// than 0, too much output, or an answer that is not a list of attachments.
pub(crate) async fn ask(
    reach: &Reach,
    id: &SandboxId,
    there: &Reachability,
) -> Result<Vec<Attachment>, Error> {
    let Some((program, words)) = reach.command.split_first() else { return Ok(Vec::new()) };
    let question = Question {
        sandbox_id: id,
        host: &there.host,
        ssh: &there.ssh,
        workdir: &there.workdir,
        endpoints: &there.endpoints,
    };
    let question = serde_json::to_vec(&question).map_err(|error| {
        Error::internal("the question for the reach command cannot be written").because(error)
    })?;
    let talked = timeout(LIMIT, talk(program, words, &question)).await;
    let talked = talked.unwrap_or_else(|_| {
        let message =
            format!("the reach command {program} did not answer within {} s", LIMIT.as_secs());
        Err(Error::new(Code::Timeout, message))
    });
    read(program, &talked?)
}

async fn talk(program: &str, words: &[String], question: &[u8]) -> Result<Vec<u8>, Error> {
    let mut command = Program::from(child(program));
    // A group of its own: what it leaves running must not hear the Ctrl-C of our terminal.
    command.args(words).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        Error::new(
            Code::MissingDependency,
            format!("the reach command {program} cannot be started"),
        )
        .because(error)
    })?;
    let guard = GroupGuard(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Error::internal("a child process has no pipes"));
    };
    let (mut answer, mut errors) = (Vec::new(), Vec::new());
    let exchange = async {
        let tell = async move {
            // A command that does not care for the question may close its stdin.
            let _ = stdin.write_all(question).await;
        };
        tokio::join!(
            tell,
            keep(stdout, &mut answer, ANSWER_LIMIT),
            keep(stderr, &mut errors, WORDS_LIMIT)
        );
    };
    let status = end(&mut child, exchange).await;
    guard.disarm();
    let status = status.map_err(|error| {
        Error::new(Code::OperationFailed, format!("the reach command {program} was lost"))
            .because(error)
    })?;
    if !status.success() {
        let errors = String::from_utf8_lossy(&errors);
        let failure = Error::new(
            Code::OperationFailed,
            format!("the reach command {program} failed: {status}"),
        );
        let last = errors.lines().rfind(|line| !line.trim().is_empty());
        return Err(match last {
            Some(line) => failure.because(line.trim().to_owned()),
            None => failure,
        });
    }
    Ok(answer)
}

/// Waits for the command's end and for what it says.
async fn end(
    child: &mut Child,
    exchange: impl Future<Output = ()>,
) -> std::io::Result<std::process::ExitStatus> {
    tokio::pin!(exchange);
    tokio::select! {
        () = &mut exchange => child.wait().await,
        status = child.wait() => {
            let _ = timeout(LAST_WORDS, &mut exchange).await;
            status
        }
    }
}

/// Reads to the end. One byte more than the limit is kept, so that too much can be told from just enough.
async fn keep(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>, limit: usize) {
    let mut chunk = vec![0; 8192];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let room = (limit + 1).saturating_sub(into.len());
        into.extend_from_slice(&chunk[..count.min(room)]);
    }
}

/// An array of attachments, or an object that has one.
fn read(program: &str, answer: &[u8]) -> Result<Vec<Attachment>, Error> {
    let wrong = |what: String| {
        Error::new(Code::OperationFailed, format!("the reach command {program} {what}"))
    };
    if answer.len() > ANSWER_LIMIT {
        return Err(wrong(format!("answered more than {ANSWER_LIMIT} bytes")));
    }
    let unreadable =
        |error| wrong("did not answer with a list of attachments".to_owned()).because(error);
    let mut json: Value = serde_json::from_slice(answer).map_err(unreadable)?;
    let list = if json.is_object() { json["attachments"].take() } else { json };
    let list: Vec<Attachment> = serde_json::from_value(list).map_err(unreadable)?;
    if list.len() > MOST {
        return Err(wrong(format!("named more than {MOST} attachments")));
    }
    Ok(list)
}

/// Ends the command's process group, unless the command ended by itself.
struct GroupGuard(Option<Pid>);

impl GroupGuard {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there() -> Reachability {
        Reachability {
            host: HostName::new("coulombcore"),
            ssh: "ssh coulombcore".to_owned(),
            workdir: "/srv/sbx-1/workspace".to_owned(),
            endpoints: Vec::new(),
            attachments: Vec::new(),
        }
    }

    async fn answer(script: &str) -> Result<Vec<Attachment>, Error> {
        let reach = Reach { command: ["sh", "-c", script].map(str::to_owned).to_vec() };
        ask(&reach, &SandboxId::new("a1b2c3d4"), &there()).await
    }

    const ONE: &str =
        r#"{"provider":"ops-bridge","id":"t1","local":"127.0.0.1:4711","state":"up","more":1}"#;

    #[tokio::test]
    async fn an_array_or_an_object_with_one_is_an_answer() {
        for shape in [format!("[{ONE}]"), format!("{{\"attachments\":[{ONE}]}}")] {
            let found = answer(&format!("cat >/dev/null; echo '{shape}'")).await.unwrap();
            assert_eq!(
                (found[0].provider.as_str(), found[0].local.as_str()),
                ("ops-bridge", "127.0.0.1:4711")
            );
        }
        assert_eq!(answer("echo '[]'").await.unwrap(), []);
    }

    #[tokio::test]
    async fn the_question_is_the_sandbox_and_its_place() {
        let script = r#"q=$(cat); case $q in
            *'"sandbox_id":"a1b2c3d4"'*'"host":"coulombcore"'*'"ssh":"ssh coulombcore"'*'"endpoints":[]'*) echo '[]' ;;
            *) echo "$q" >&2; exit 3 ;; esac"#;
        answer(script).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_answer_says_why() {
        for (script, code, word) in [
            ("echo tunnel up", Code::OperationFailed, "did not answer with a list"),
            ("true", Code::OperationFailed, "did not answer with a list"),
            (r#"echo '[{"provider":"x"}]'"#, Code::OperationFailed, "did not answer with a list"),
            (
                "echo '[]'; echo no bridge >&2; exit 4",
                Code::OperationFailed,
                "failed: exit status: 4",
            ),
            ("head -c 300000 /dev/zero", Code::OperationFailed, "answered more than"),
        ] {
            let error = answer(script).await.unwrap_err();
            assert_eq!(error.code, code, "{script}");
            assert!(error.message.contains(word), "{script}: {}", error.message);
        }
        let reach = Reach { command: vec!["no-such-reach-command".to_owned()] };
        let error = ask(&reach, &SandboxId::new("1"), &there()).await.unwrap_err();
        assert_eq!(error.code, Code::MissingDependency);
        assert_eq!(answer("exit 4").await.unwrap_err().causes, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_tunnel_that_goes_on_does_not_hold_the_answer_and_lives() {
        let begun = std::time::Instant::now();
        let tunnel = format!("sleep 117.{}", std::process::id());
        answer(&format!("{tunnel} & echo '[]'")).await.unwrap();
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
        assert!(runs(&tunnel).await, "what the command started is not ours to end");
        assert!(Program::new("pkill").args(["-fx", &tunnel]).status().await.unwrap().success());
    }

    #[tokio::test]
    async fn a_dropped_question_ends_the_command_and_what_it_started() {
        let asked =
            timeout(Duration::from_millis(500), answer("sleep 97.531 & sleep 97.531; echo '[]'"))
                .await;
        assert!(asked.is_err());
        for _ in 0..600 {
            if !runs("sleep 97.531").await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it still runs");
    }

    async fn runs(command: &str) -> bool {
        Program::new("pgrep")
            .args(["-fx", command])
            .stdout(Stdio::null())
            .status()
            .await
            .unwrap()
            .success()
    }
}
