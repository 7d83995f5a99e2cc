//! All hosts and one transport to each of them per process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::error::{Code, Error};
use crate::domain::host::HostSpec;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::{Attachment, Reachability};
use crate::transport::local::LocalTransport;
use crate::transport::ssh::SshTransport;
use crate::transport::ssh_config::Names;
use crate::transport::{Transport, Transports, tunnels};

/// Time that a shared connection stays when nobody uses it.
pub const PERSIST: Duration = Duration::from_mins(1);

/// The transports to all hosts of one process.
pub struct Pool {
    hosts: Vec<HostSpec>,
    control_dir: PathBuf,
    persist: Duration,
    ssh_config: Option<PathBuf>,
    /// Read when first asked for a name that is not configured.
    names: OnceLock<Names>,
    transports: Mutex<HashMap<String, Arc<dyn Transport>>>,
    connecting: Arc<AtomicUsize>,
}

impl Pool {
    /// A pool of the configured hosts, `local` among them whether configured or not. Nothing is read or sent yet.
    ///
    /// `control_dir` is where connections are shared (see `ssh::default_control_dir`);
    /// `ssh_config` is the user's own configuration, which may name further hosts.
    pub fn new(hosts: Vec<HostSpec>, control_dir: PathBuf, ssh_config: Option<PathBuf>) -> Self {
        let mut hosts = hosts;
        if !hosts.iter().any(|spec| spec.name.is_local()) {
            hosts.insert(0, HostSpec::local());
        }
        let (names, transports, connecting) = Default::default();
        Self { hosts, control_dir, persist: PERSIST, ssh_config, names, transports, connecting }
    }

    /// The same pool with connections that stay for `persist`, not for [`PERSIST`].
    #[must_use]
    pub fn persisting(self, persist: Duration) -> Self {
        Self { persist, ..self }
    }

    fn shared(&self, spec: HostSpec) -> Arc<dyn Transport> {
        let mut transports = self.transports.lock().unwrap_or_else(PoisonError::into_inner);
        let key = spec.name.as_str().to_ascii_lowercase();
        let transport = transports.entry(key).or_insert_with(|| -> Arc<dyn Transport> {
            if spec.name.is_local() {
                return Arc::new(LocalTransport::new(spec));
            }
            let control_dir = self.control_dir.clone();
            Arc::new(SshTransport::new(spec, control_dir, self.persist, &self.connecting))
        });
        Arc::clone(transport)
    }

    fn permitted(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        // A name that nothing configures was given by the operator himself (`--host`), or stands on a record: it is tried.
        let spec = self.spec(host).unwrap_or_else(|| unconfigured(host));
        match self.out_of_bounds(&spec) {
            Some((bound, why)) => Err(forbidden(bound, why)),
            None => Ok(self.shared(spec)),
        }
    }

    /// The forbidden host that this one is, under whatever spelling, and why it is forbidden.
    fn out_of_bounds<'a>(&'a self, spec: &'a HostSpec) -> Option<(&'a HostSpec, &'a str)> {
        let same = |bound: &HostSpec| {
            let machine = spec.ssh_host();
            bound.name.same(spec.name.as_str())
                || machine.is_some_and(|machine| bound.name.same(machine))
                || machine.zip(bound.ssh_host()).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b))
        };
        self.hosts
            .iter()
            .filter(|bound| same(bound))
            .find_map(|bound| Some((bound, bound.forbid.as_deref()?)))
    }
}

/// A host of which only the name is known: ssh makes of it what it can.
fn unconfigured(host: &HostName) -> HostSpec {
    HostSpec { ssh: Some(host.as_str().to_owned()), ..HostSpec::named(host.as_str()) }
}

/// A host that may not be touched.
fn forbidden(spec: &HostSpec, why: &str) -> Error {
    Error::new(Code::Forbidden, format!("host {} is out of bounds: {why}", spec.name))
        .detail("host", spec.name.as_str())
}

#[async_trait]
impl Transports for Pool {
    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        let transport = self.permitted(host)?;
        transport.connect().await?;
        Ok(transport)
    }

    async fn attachments(
        &self,
        id: &SandboxId,
        there: &Reachability,
    ) -> Result<Vec<Attachment>, Error> {
        match self.spec(&there.host).and_then(|spec| spec.reach) {
            Some(command) => tunnels::ask(&command, id, there).await,
            None => Ok(Vec::new()),
        }
    }

    async fn open_lazily(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        self.permitted(host)
    }

    fn spec(&self, host: &HostName) -> Option<HostSpec> {
        if let Some(spec) = self.hosts.iter().find(|spec| spec.name.same(host.as_str())) {
            return Some(spec.clone());
        }
        let config = self.ssh_config.as_ref()?;
        let spelled = self.names.get_or_init(|| Names::read(config)).find(host.as_str())?;
        Some(HostSpec { ssh: Some(spelled.clone()), ..HostSpec::named(spelled) })
    }

    fn hosts(&self) -> Vec<HostSpec> {
        self.hosts.clone()
    }

    async fn close(&self) {
        let transports = self.transports.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for transport in transports.values() {
            transport.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(config: &str) -> (tempfile::TempDir, Pool) {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config");
        std::fs::write(&file, config).unwrap();
        let forbid =
            HostSpec { forbid: Some("production".into()), ..HostSpec::named("Railiance01") };
        let pool = Pool::new(vec![forbid], home.path().join("sbx"), Some(file));
        (home, pool)
    }

    #[test]
    fn hosts_are_configured_or_named_by_the_ssh_configuration() {
        let (_home, pool) = pool("Host Lab\nHost *\n");
        let spec = |name: &str| pool.spec(&HostName::new(name));
        assert_eq!(spec("LOCAL").map(|spec| spec.name), Some(HostName::new("local")));
        assert_eq!(spec("railiance01").and_then(|spec| spec.forbid).as_deref(), Some("production"));
        assert_eq!(spec("lab").and_then(|spec| spec.ssh).as_deref(), Some("Lab"));
        assert!(spec("elsewhere").is_none());
        assert_eq!(pool.hosts().len(), 2);
    }

    #[tokio::test]
    async fn a_forbidden_host_is_refused_before_anything_is_tried() {
        let (home, pool) = pool("");
        for spelling in ["RAILIANCE01", "root@railiance01", "ssh://ops@Railiance01:2222"] {
            let error = pool.open(&HostName::new(spelling)).await.map(drop).unwrap_err();
            assert_eq!(error.code, Code::Forbidden, "{spelling}");
        }
        assert!(!home.path().join("sbx").exists());
    }

    #[tokio::test]
    async fn local_is_always_there_and_the_same() {
        let (_home, pool) = pool("");
        let first = pool.open(&HostName::new("local")).await.unwrap();
        let second = pool.open(&HostName::new("Local")).await.unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert!(first.spec().name.is_local());
    }
}
