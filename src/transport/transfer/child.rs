//! A local program of a transfer: in a process group of its own, which ends with it.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::domain::child_process::child;
use crate::domain::error::{Code, Error};
use crate::transport::watchdog::scrubbed_names;

/// Part of a program's stderr that is kept, its end; bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// A running program; dropped before it ended, it is killed with everything it started (rsync starts ssh).
pub(super) struct Running {
    child: Child,
    group: Option<rustix::process::Pid>,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// The process group, killed when this is dropped.
pub(super) struct Group {
    child: Child,
    group: Option<rustix::process::Pid>,
}

impl Running {
    /// Starts a program with `input` as its stdin.
    ///
    /// Errors: `missing_dependency` when it is not there, else `internal`.
    pub(super) fn start(
        program: &str,
        args: &[OsString],
        folder: &Path,
        input: File,
    ) -> Result<Self, Error> {
        let mut command = Command::from(child(program));
        command.args(args).current_dir(folder).env("LC_ALL", "C");
        // A bash that is called sh takes exported functions for programs.
        let functions = std::env::vars_os().map(|(name, _)| name);
        let functions = functions.filter(|name| name.as_encoded_bytes().starts_with(b"BASH_FUNC_"));
        for name in scrubbed_names().map(OsString::from).chain(functions) {
            command.env_remove(name);
        }
        command.stdin(Stdio::from(input)).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() {
                Error::new(
                    Code::MissingDependency,
                    format!("{program} is not installed on this machine"),
                )
                .because(error)
            } else {
                Error::internal(format!("{program} could not be started")).because(error)
            }
        })?;
        let group =
            child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Error::internal(format!("{program} has no pipes")));
        };
        Ok(Self { child, group, stdout, stderr })
    }

    /// Pipes, and the rest of it.
    pub(super) fn split(self) -> (Group, ChildStdout, ChildStderr) {
        (Group { child: self.child, group: self.group }, self.stdout, self.stderr)
    }
}

impl Group {
    /// Waits for the end; a signal n is 128 + n.
    pub(super) async fn wait(mut self) -> Result<i32, Error> {
        use std::os::unix::process::ExitStatusExt;
        let status = self
            .child
            .wait()
            .await
            .map_err(|error| Error::internal("a program was lost").because(error))?;
        // Reaped: from here on the number may belong to somebody else.
        self.group = None;
        Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The child is a zombie at worst while it was not waited for, so the group's number is still its own.
        if let Some(group) = self.group
            && self.child.id().is_some()
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Reads to the end and keeps the last of it.
pub(super) async fn tail_of(mut source: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut piece = [0_u8; 4096];
    while let Ok(length @ 1..) = source.read(&mut piece).await {
        kept.extend_from_slice(&piece[..length]);
        if kept.len() > 2 * STDERR_LIMIT {
            kept.drain(..kept.len() - STDERR_LIMIT);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
