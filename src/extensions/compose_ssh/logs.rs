//! Logs of the services. The engine is asked by label; each container's log comes in a session of its own, and its
//! lines are cut here.
//!
//! A log that is followed ends when its container stops, so the engine is asked again and the log taken up where it
//! ended. Engines tell the time of each line for this; podman even goes on for some lines after a restart, so what was
//! told already is known by its time and count.

mod lines;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::domain::error::{Code, Error};
use crate::domain::extension::Target;
use crate::domain::output::{LogLine, LogSink, OutputSink, Source};
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::exec::{engine, engine_id, proving};
use crate::extensions::compose_ssh::logs::lines::{Lines, Told};
use crate::extensions::workspace::exec::ask;
use crate::extensions::workspace::script_output::unproved;
use crate::extensions::workspace::{expected_of, owners, workdir};
use crate::transport::{Command, Transport};

const LOOK_SH: &str =
    concat!(proving!(), include_str!("scripts/look.sh"), include_str!("scripts/inspect.sh"));
const FOLLOW_SH: &str = include_str!("scripts/follow.sh");

/// Logs that are read at once.
const AT_ONCE: usize = 4;
/// Logs that are followed at once: each holds a session.
const FOLLOWED: usize = 16;
/// How long after the end of a log the engine is asked what became of its container, and how often while one is stopped.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Logs of a sandbox, as they are asked for.
struct Logs<'a> {
    transport: &'a dyn Transport,
    target: &'a Target,
    program: String,
    service: Option<&'a str>,
    tail: Option<u64>,
    sink: Mutex<&'a mut dyn LogSink>,
}

/// A container that writes a log.
#[derive(Debug, Clone)]
struct Writer {
    id: String,
    service: String,
    started_at: String,
    runs: bool,
}

pub(super) async fn logs(
    deps: &Deps,
    target: &Target,
    service: Option<&str>,
    tail: Option<u64>,
    follow: bool,
    sink: &mut dyn LogSink,
) -> Result<(), Error> {
    let engine = engine(target)?;
    if let Some(service) = service {
        engine.service(target, service)?;
    }
    let transport = deps.way(&target.host).await?;
    let program = engine.program;
    let logs = Logs {
        transport: transport.as_ref(),
        target,
        program,
        service,
        tail,
        sink: Mutex::new(sink),
    };
    if follow { logs.follow().await } else { logs.read().await }
}

impl Logs<'_> {
    /// Lines that there are.
    async fn read(&self) -> Result<(), Error> {
        let found = self.look().await?.unwrap_or_default();
        let mut reading = stream::iter(found)
            .map(|writer| self.one(writer, false, Told::default()))
            .buffered(AT_ONCE);
        while let Some(log) = reading.next().await {
            if !log.wanted? {
                break;
            }
        }
        Ok(())
    }

    /// Lines that there are and those that come, until the sandbox is gone.
    async fn follow(&self) -> Result<(), Error> {
        let mut known: BTreeMap<String, (String, Option<Told>)> = BTreeMap::new();
        let mut following = FuturesUnordered::new();
        loop {
            let Some(found) = self.look().await? else { return Ok(()) };
            if found.len() > FOLLOWED {
                let message = format!(
                    "{} containers write logs; at most {FOLLOWED} are followed at once",
                    found.len()
                );
                return Err(Error::new(Code::Unsupported, message)
                    .hint("follow one service with --service"));
            }
            let all = found.iter().all(|writer| writer.runs);
            for writer in found {
                let (started_at, told) = known.entry(writer.id.clone()).or_default();
                // `None`: it is being followed.
                let first = started_at.is_empty();
                if first || (told.is_some() && (writer.runs || *started_at != writer.started_at)) {
                    started_at.clone_from(&writer.started_at);
                    following.push(self.one(
                        writer,
                        true,
                        told.take().unwrap_or_default().taken_up(),
                    ));
                }
            }
            let ended = tokio::select! {
                ended = following.next(), if !following.is_empty() => ended,
                () = sleep(LOOK_EVERY), if !all || following.is_empty() => None,
            };
            let Some(ended) = ended else { continue };
            if !ended.wanted? {
                return Ok(());
            }
            if let Some((_, told)) = known.get_mut(&ended.id) {
                *told = Some(ended.told);
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The containers that write what is wanted; `None`: the sandbox is gone.
    async fn look(&self) -> Result<Option<Vec<Writer>>, Error> {
        let id = &self.target.id;
        let question = Command::script(LOOK_SH)
            .arg(workdir(self.target)?)
            .arg(expected_of(self.target))
            .arg(engine_id(self.target))
            .args([&self.program, id.as_str(), &owners(self.target)]);
        let output = ask(self.transport, &question).await?;
        let unreadable = || {
            let error = Error::new(
                Code::OperationFailed,
                format!("{} does not tell of sandbox {id}", self.program),
            );
            error
                .detail("exit_status", output.status)
                .because(output.error_text().trim().to_owned())
        };
        let end = output.stdout.iter().position(|byte| *byte == b'\n').ok_or_else(unreadable)?;
        let verdict = String::from_utf8_lossy(&output.stdout[..end]);
        if let Some(error) = unproved(&verdict, self.transport.spec().name.as_str()) {
            return Err(error);
        }
        let (here, json) = (&output.stdout[..end] == b"here", &output.stdout[end..]);
        // A container that goes away meanwhile makes `inspect` fail, which then tells of the others all the same.
        let list: Vec<Value> = serde_json::from_slice(json).map_err(|_| unreadable())?;
        let mut found: Vec<Writer> = list.iter().map(writer).collect();
        if !here && found.is_empty() {
            return Ok(None);
        }
        found.retain(|writer| self.service.is_none_or(|service| service == writer.service));
        found.sort_by(|a, b| (&a.service, &a.id).cmp(&(&b.service, &b.id)));
        Ok(Some(found))
    }

    /// Log of a container.
    async fn one(&self, writer: Writer, follow: bool, told: Told) -> Ended {
        let since = told.since();
        let tail = self
            .tail
            .filter(|_| since.is_none())
            .map(|lines| lines.to_string())
            .unwrap_or_default();
        let command = Command::script(FOLLOW_SH).args([&self.program, &writer.id, &tail]);
        let command = command.arg(if follow { "yes" } else { "" }).arg(since.unwrap_or_default());
        let mut log =
            Log { sink: &self.sink, service: writer.service, lines: Lines::new(follow), told };
        let attached = self.transport.attach(&command, &mut log).await;
        let wanted = match attached {
            Ok(Some(_)) => Ok(log.finish().await),
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        Ended { id: writer.id, told: log.told, wanted }
    }
}

/// A log that came to its end.
struct Ended {
    id: String,
    told: Told,
    /// Whether more is wanted.
    wanted: Result<bool, Error>,
}

fn writer(json: &Value) -> Writer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Writer {
        id: text(&json["Id"]),
        service: text(&json["Config"]["Labels"]["com.docker.compose.service"]),
        started_at: text(&json["State"]["StartedAt"]),
        runs: json["State"]["Running"] == true,
    }
}

/// Gives one container's lines to the one sink of all.
struct Log<'a, 's> {
    sink: &'a Mutex<&'s mut dyn LogSink>,
    service: String,
    lines: Lines,
    told: Told,
}

impl Log<'_, '_> {
    async fn give(&mut self, source: Source, lines: Vec<lines::Line>) -> bool {
        for line in lines {
            if !self.told.is_new(source, line.at) {
                continue;
            }
            let line =
                LogLine { service: self.service.clone(), source, bytes: line.bytes, cut: line.cut };
            if !self.sink.lock().await.take(line).await {
                return false;
            }
        }
        true
    }

    async fn finish(&mut self) -> bool {
        for source in [Source::Stdout, Source::Stderr] {
            let last = self.lines.finish(source);
            if !self.give(source, last.into_iter().collect()).await {
                return false;
            }
        }
        true
    }
}

#[async_trait]
impl OutputSink for Log<'_, '_> {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        let lines = self.lines.push(source, bytes);
        self.give(source, lines).await
    }
}
