//! Ways to hosts: this machine under several names, and hosts that say what a test has them say.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::output::OutputSink;
use sandboxer::domain::{Code, Error, HostName};
use sandboxer::transport::pool::Pool;
use sandboxer::transport::{Command, InputStream, LineSink, Output, Transport, Transports};
use tokio::io::AsyncRead;

use super::script::Scripted;

/// Host that is no machine: what it says when it is asked.
#[derive(Clone)]
pub(crate) enum Machine {
    /// Nothing: no way leads there.
    Silent,
    /// Nothing either, and nobody hears of that.
    Hangs,
    /// Facts of a small machine, with these lines of an inventory.
    Says(String),
}

/// The ways to hosts; `second`, `third` and `gone` are other names of this machine, on which the script has other archives. Nothing
/// configures `gone`. What is configured is this machine as well, but for what the script has as machines.
pub(super) struct Ways {
    pool: Pool,
    hosts: Vec<HostSpec>,
    script: Arc<Scripted>,
}

impl Ways {
    pub(super) fn new(pool: Pool, hosts: Vec<HostSpec>, script: Arc<Scripted>) -> Self {
        Self { pool, hosts, script }
    }
}

#[async_trait]
impl Transports for Ways {
    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        let machine = self.script.machines.lock().unwrap().get(host.as_str()).cloned();
        let spec = self.spec(host).unwrap_or_else(|| HostSpec::named(host.as_str()));
        match machine {
            Some(Machine::Says(inventory)) => {
                Ok(Arc::new(ScriptedHost { spec, inventory, script: Arc::clone(&self.script) }))
            }
            Some(Machine::Hangs) => std::future::pending().await,
            Some(Machine::Silent) => Err(Error::new(
                Code::HostUnreachable,
                format!("ssh: connect to host {host} port 22: Connection timed out"),
            )
            .hint("is the machine on, and is the name right?")),
            None => {
                let here = matches!(host.as_str(), "second" | "third" | "gone")
                    || self.hosts.iter().any(|spec| spec.name.same(host.as_str()));
                self.pool.open(if here { &LOCAL } else { host }).await
            }
        }
    }

    fn spec(&self, host: &HostName) -> Option<HostSpec> {
        let here = matches!(host.as_str(), "local" | "second" | "third");
        if host.as_str() == "third" && self.script.third_is_forbidden.load(Ordering::SeqCst) {
            let forbid = Some("production".to_owned());
            return Some(HostSpec { forbid, ..HostSpec::named("third") });
        }
        let configured = self.hosts.iter().find(|spec| spec.name.same(host.as_str()));
        match configured {
            Some(spec) => Some(spec.clone()),
            None if here => Some(HostSpec::named(host.as_str())),
            None => self.pool.spec(host),
        }
    }

    fn hosts(&self) -> Vec<HostSpec> {
        self.pool.hosts()
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

static LOCAL: LazyLock<HostName> = LazyLock::new(|| HostName::new("local"));

/// Way to a host that is no machine.
struct ScriptedHost {
    spec: HostSpec,
    inventory: String,
    script: Arc<Scripted>,
}

impl ScriptedHost {
    fn output(&self, command: &Command) -> Output {
        let text = command.script_text().unwrap_or_default();
        let name = &self.spec.name;
        let said = if text.contains("sbx_ask_disk") {
            self.script.note(format!("sample {name}"));
            SAMPLE.to_owned()
        } else if text.contains("measured=") {
            "measured=yes\n".to_owned()
        } else if text.contains("sbx_say machine_id") {
            self.script.note(format!("probe {name}"));
            let now = self.script.wall().timestamp().as_second();
            let inventory = &self.inventory;
            format!("{FACTS}hostname={name}\n{inventory}now={now}.000000000\n")
        } else {
            String::new()
        };
        Output { stdout: said.into_bytes(), ..Output::default() }
    }
}

const FACTS: &str = "machine_id=m\nkernel=Linux 6.1.0\nid=uid=1000(ops) gid=1000(ops)\ncpus=8\nload=0.42 0.4 0.4 1/9 9\n\
mem=MemTotal:       32000000 kB\nmem=MemAvailable:   21000000 kB\nos=\"Debian GNU/Linux 12 (bookworm)\"\n\
tool.tar=/bin/tar\ntar=tar (GNU tar) 1.34\nroot=/home/ops/sandboxes\ninventory=/home/ops/sandboxes\n";

const SAMPLE: &str = "looked=100.0\ncpus=0-7\nload=0.42 0.4 0.4 1/9 9\nmem=MemTotal:       32000000 kB\n\
mem=MemAvailable:   21000000 kB\ndisk=4096 1000 600 500 9 8 /home\nuptime=100.0\nended=100.0\n";

#[async_trait]
impl Transport for ScriptedHost {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    async fn run(&self, command: &Command, _: Duration) -> Result<Output, Error> {
        Ok(self.output(command))
    }

    async fn stream(
        &self,
        command: &Command,
        _: Duration,
        _: LineSink<'_>,
    ) -> Result<Output, Error> {
        Ok(self.output(command))
    }

    async fn feed_telling(
        &self,
        command: &Command,
        _: &mut (dyn AsyncRead + Send + Unpin),
        _: Duration,
        _: LineSink<'_>,
    ) -> Result<Output, Error> {
        Ok(self.output(command))
    }

    async fn attached(
        &self,
        _: &Command,
        _: Option<InputStream<'_>>,
        _: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        Ok(Some(0))
    }

    async fn interactive(&self, _: &Command) -> Result<Vec<OsString>, Error> {
        Ok(vec!["true".into()])
    }

    fn round_trips(&self) -> u64 {
        0
    }

    fn latency(&self) -> Option<Duration> {
        Some(Duration::from_millis(12))
    }
}
