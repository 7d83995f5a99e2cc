//! The shared connection: one `ssh -M` process per target and configuration, used by all our processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use openssh::Session;
use sha2::{Digest, Sha256};
use tokio::process::Command as Program;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::domain::child_process::child;
use crate::domain::error::Error;
use crate::domain::host::HostSpec;
use crate::domain::text::hex;
use crate::transport::ssh::control_dir;
use crate::transport::ssh::ssh_errors::{
    Peer, ResolvedConfig, classify, dropped_early, no_ssh, unreachable,
};

/// Time that a silent peer is waited for; ssh counts whole seconds.
const CONNECT_TIMEOUT_S: u32 = 6;
/// Time that all of an attempt may take: a jump host, a slow login, a signature by hand.
const ATTEMPT: Duration = Duration::from_secs(15);
/// Time that a question to a local ssh process may take.
const ASK: Duration = Duration::from_secs(5);
/// Time that another process of ours, which is connecting, is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// Tries with a server that drops connections (`MaxStartups`): from the tenth at once it drops one in three.
const ATTEMPTS: u32 = 8;
/// Connections to one host for one purpose, at most.
pub(crate) const MOST: usize = 8;

/// Target of connections, and where the sockets go.
#[derive(Debug, Clone)]
pub(crate) struct SshTarget {
    pub(crate) spec: HostSpec,
    /// Name with which ssh is called.
    pub(crate) name: String,
    pub(crate) control_dir: PathBuf,
    /// Time that a connection stays when nobody uses it; ssh counts whole seconds.
    pub(crate) persist: Duration,
}

/// Place of a connection among those to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionPlace {
    pub(crate) purpose: ConnectionPurpose,
    /// From 0; the further ones are there while they are needed.
    pub(crate) index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    /// Work that comes to an end by itself.
    Work,
    /// Work that somebody watches.
    Followers,
}

/// A shared connection that is up.
pub(crate) struct ControlMaster {
    pub(crate) session: Arc<Session>,
    pub(crate) socket: PathBuf,
}

impl SshTarget {
    /// Takes the shared connection, and makes it if there is none.
    pub(crate) async fn connect(&self, place: ConnectionPlace) -> Result<ControlMaster, Error> {
        control_dir::prepare(&self.control_dir)?;
        let settings = self.settings().await?;
        let socket = self.control_dir.join(self.socket_name(&settings, place));
        if let Some(master) = self.existing(&socket).await {
            return Ok(master);
        }
        let lock = match self.lock(&socket).await? {
            ConnectTurn::Ours(lock) => lock,
            // Another process has connected while we waited.
            ConnectTurn::Made(master) => return Ok(master),
        };
        self.remove_stale(&socket).await?;
        control_dir::sweep(&self.control_dir);
        let resolved = ResolvedConfig::parse(&settings);
        let peer = Peer {
            spec: &self.spec,
            target: &self.name,
            config: self.spec.ssh_config.as_ref(),
            resolved: &resolved,
        };
        for attempt in 1.. {
            let (status, words) = self.start(&socket).await?;
            if status.is_some_and(|status| status.success()) {
                break;
            }
            if status.is_none() && words.trim().is_empty() {
                return Err(unreachable(self.spec.name.as_str(), "timeout", "does not answer"));
            }
            if attempt == ATTEMPTS || !dropped_early(&words) {
                return Err(classify(&words, &peer));
            }
            sleep(jitter(200 * attempt)).await;
        }
        drop(lock);
        match self.existing(&socket).await {
            Some(master) => Ok(master),
            None => Err(unreachable(
                self.spec.name.as_str(),
                "other",
                "was reached, but its connection cannot be shared",
            )),
        }
    }

    /// A further connection beside the one with this socket, if it is there; makes none.
    pub(crate) async fn beside(
        &self,
        first: &Path,
        place: ConnectionPlace,
    ) -> Option<ControlMaster> {
        let name = first.file_name()?.to_str()?;
        let socket =
            first.with_file_name(format!("{}{}", &name[..name.len().checked_sub(1)?], place.index));
        self.existing(&socket).await
    }

    /// Everything that ssh's configuration says about the target. A host that is configured anew is another
    /// connection, with a socket of another name.
    async fn settings(&self) -> Result<String, Error> {
        let mut program = self.ssh();
        program
            .args(["-G", "--", &self.name])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let Ok(output) = timeout(ASK, program.output()).await else {
            return Err(unreachable(
                self.spec.name.as_str(),
                "other",
                "has an SSH configuration that takes too long to read",
            ));
        };
        let output = output.map_err(no_ssh)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let resolved = ResolvedConfig::default();
        let peer = Peer {
            spec: &self.spec,
            target: &self.name,
            config: self.spec.ssh_config.as_ref(),
            resolved: &resolved,
        };
        Err(classify(&words, &peer).retryable(false))
    }

    fn socket_name(&self, settings: &str, place: ConnectionPlace) -> String {
        let mut hash = Sha256::new();
        // The settings name a jump host, but what that is stands in the file.
        let config = self.spec.ssh_config.as_deref().unwrap_or(Path::new(""));
        for part in ["1", &self.name, &config.to_string_lossy(), settings] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let purpose = match place.purpose {
            ConnectionPurpose::Work => 'w',
            ConnectionPurpose::Followers => 'f',
        };
        format!("{}{purpose}{}", hex(&hash.finalize()[..7]), place.index)
    }

    async fn existing(&self, socket: &Path) -> Option<ControlMaster> {
        let session = Session::resume_mux(socket.into(), None);
        match timeout(ASK, session.check()).await {
            Ok(Ok(())) => {
                Some(ControlMaster { session: Arc::new(session), socket: socket.to_owned() })
            }
            _ => None,
        }
    }

    /// Waits for our turn, or for the connection that another process makes. The kernel frees the lock of a process
    /// that dies.
    async fn lock(&self, socket: &Path) -> Result<ConnectTurn, Error> {
        let failed = |error| {
            unreachable(self.spec.name.as_str(), "other", "cannot be locked for connecting")
                .because(error)
        };
        let path = socket.with_extension("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let wait = async {
            loop {
                match file.try_lock() {
                    Ok(()) => {
                        return Ok(self
                            .existing(socket)
                            .await
                            .map_or(ConnectTurn::Ours(file), ConnectTurn::Made));
                    }
                    Err(TryLockError::WouldBlock) => sleep(jitter(30)).await,
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                }
                if let Some(master) = self.existing(socket).await {
                    return Ok(ConnectTurn::Made(master));
                }
            }
        };
        match timeout(LOCK_WAIT, wait).await {
            Ok(turn) => turn,
            Err(_) => Err(unreachable(
                self.spec.name.as_str(),
                "timeout",
                "is still being connected to by another process",
            )),
        }
    }

    /// Removes a socket that nobody answers on. A master that is there but stuck keeps its own.
    async fn remove_stale(&self, socket: &Path) -> Result<(), Error> {
        let host = self.spec.name.as_str();
        if fs::symlink_metadata(socket).is_err() {
            return Ok(());
        }
        let mut program = self.ssh();
        program.arg("-S").arg(socket).args(["-O", "check", "--", &self.name]);
        program.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        match timeout(ASK, program.status()).await {
            Ok(Ok(status)) if !status.success() => match fs::remove_file(socket) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(unreachable(
                    host,
                    "other",
                    "has an old control socket that cannot be removed",
                )
                .because(error)),
                _ => Ok(()),
            },
            Ok(Err(error)) => Err(no_ssh(error)),
            // Not started beside it: ssh would connect without a socket then, and stay for ever.
            _ => Err(unreachable(host, "other", "has a shared connection that does not answer")
                .hint(format!("end the ssh process whose command line has {}", socket.display()))),
        }
    }

    /// Starts a master and waits until it is connected (it goes into the background then) or has failed. No status:
    /// it took too long. Dropped half-way, it is killed.
    async fn start(&self, socket: &Path) -> Result<(Option<ExitStatus>, String), Error> {
        let log = AttemptLog::create(socket)?;
        let mut program = self.ssh();
        program.args(["-M", "-N", "-f", "-T", "-S"]).arg(socket).arg("-E").arg(&log.path);
        for option in [
            "BatchMode=yes",
            &format!("ConnectTimeout={CONNECT_TIMEOUT_S}"),
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            &format!("ControlPersist={}", self.persist.as_secs()),
            "LogLevel=ERROR",
            // The user's own forwards and command are for the user's own logins.
            "ClearAllForwardings=yes",
            "RemoteCommand=none",
        ] {
            program.args(["-o", option]);
        }
        // "--": a host named "-oProxyCommand=..." is no option. Stderr too: a jump host's ssh knows nothing of -E.
        program.args(["--", &self.name]).stdout(Stdio::null()).stderr(log.stderr()?);
        // A group of its own: an interrupt from the terminal is for us, not for what we share.
        program.process_group(0).kill_on_drop(true);
        let mut child = program.spawn().map_err(no_ssh)?;
        let status = if let Ok(status) = timeout(ATTEMPT, child.wait()).await {
            Some(status.map_err(no_ssh)?)
        } else {
            drop(child.kill().await);
            None
        };
        Ok((status, log.read()))
    }

    fn ssh(&self) -> Program {
        let mut program = Program::from(child("ssh"));
        program.env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(config) = &self.spec.ssh_config {
            program.arg("-F").arg(config);
        }
        program
    }
}

enum ConnectTurn {
    Ours(File),
    Made(ControlMaster),
}

/// The file that one attempt writes to; removed with it.
struct AttemptLog {
    path: PathBuf,
}

impl AttemptLog {
    fn create(socket: &Path) -> Result<Self, Error> {
        let path = socket.with_extension(format!("{}.log", Uuid::new_v4().simple()));
        let made = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path);
        made.map_err(|error| Error::internal("a log for ssh could not be made").because(error))?;
        Ok(Self { path })
    }

    fn stderr(&self) -> Result<Stdio, Error> {
        let file = OpenOptions::new().append(true).open(&self.path);
        Ok(file
            .map_err(|error| Error::internal("the log of ssh could not be opened").because(error))?
            .into())
    }

    fn read(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.path).unwrap_or_default()).into_owned()
    }
}

impl Drop for AttemptLog {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// A random time up to `most` milliseconds, at least a third of it.
pub(crate) fn jitter(most: u32) -> Duration {
    let random = u32::from(Uuid::new_v4().as_bytes()[0]);
    Duration::from_millis(u64::from(most / 3 + most * 2 / 3 * random / 255))
}
