//! `shell`: hands the terminal to a program of this machine that opens a shell in a sandbox.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::ShellArgs;
use super::interrupt::until_interrupted;
use super::output::{Context, Outcome};
use crate::client::{Error, ShellRequest};
use crate::domain::output::Interactive;
use crate::domain::{Code, child_process};

pub(super) async fn shell(context: &mut Context<'_>, args: &ShellArgs) -> Outcome {
    if let Some(problem) = refused(context, args) {
        return Err(problem.into());
    }
    let client = context.client;
    let begin = async {
        let id = client.get(&args.id).await?.id.to_string();
        client.shell(ShellRequest { id, service: args.service.clone() }).await
    };
    let interactive = until_interrupted(context, begin).await??;
    let ended = Signals::listen()?.until_end_of(&interactive).await?;
    Ok(status(ended))
}

fn refused(context: &Context<'_>, args: &ShellArgs) -> Option<Error> {
    let why = if context.options.json {
        "a shell has no --json"
    } else if context.io.terminals.stdin && context.io.terminals.stdout {
        return None;
    } else {
        "a shell needs a terminal as standard input and output"
    };
    let service =
        args.service.as_ref().map(|name| format!(" --service {name}")).unwrap_or_default();
    Some(
        Error::new(Code::Usage, why)
            .hint(format!("sandboxer exec {}{service} -- CMD... runs one command", args.id)),
    )
}

/// Signals while another program has the terminal. Keys are that program's: it may take Ctrl-C as a key, or
/// be ended by it, and either way it is waited for. What is meant for us alone is passed on.
struct Signals {
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| {
            let refused = Error::new(Code::Internal, "signals cannot be listened to");
            signal(kind).map_err(|error| refused.because(error))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            quit: listen(SignalKind::quit())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn until_end_of(mut self, interactive: &Interactive) -> Result<ExitStatus, Error> {
        let mut child = start(interactive)?;
        loop {
            tokio::select! {
                ended = child.wait() => return ended.map_err(|error| failed(interactive, &error)),
                _ = self.interrupt.recv() => {}
                _ = self.quit.recv() => {}
                _ = self.terminate.recv() => end(&child),
                _ = self.hang_up.recv() => end(&child),
            }
        }
    }
}

fn start(interactive: &Interactive) -> Result<Child, Error> {
    let [program, arguments @ ..] = interactive.words.as_slice() else {
        return Err(Error::new(Code::Internal, "the extension names no program for a shell"));
    };
    let mut command = Command::from(child_process::child(program));
    command
        .args(arguments)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit());
    if let Some(folder) = &interactive.folder {
        command.current_dir(folder);
    }
    command.spawn().map_err(|error| failed(interactive, &error))
}

/// Asks the program to end; it resets the terminal then, which a killed one would not.
fn end(child: &Child) {
    let pid =
        child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn failed(interactive: &Interactive, error: &std::io::Error) -> Error {
    let program = interactive
        .words
        .first()
        .map(|word| word.to_string_lossy().into_owned())
        .unwrap_or_default();
    // A folder that is not there is "not found" too.
    let folder = interactive.folder.as_ref().filter(|folder| !folder.is_dir());
    let problem = match folder {
        Some(folder) => {
            Error::new(Code::NotFound, format!("the folder {} is not there", folder.display()))
        }
        None if error.kind() == ErrorKind::NotFound => {
            Error::new(Code::MissingDependency, format!("this machine has no program {program}"))
        }
        None => Error::new(Code::Internal, format!("{program} cannot be run")),
    };
    problem.because(error.to_string())
}

fn status(ended: ExitStatus) -> u8 {
    let status = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    status.and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX)
}
