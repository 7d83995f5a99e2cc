//! Removals from hosts: of those that wait for one host, the ones that are alike go together, in one script. An engine's client and a
//! host's own tools are asked once for all of them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::domain::error::Error;
use crate::domain::name::{HostName, SandboxId};
use crate::transport::{Command, LineSink, Output, Source, Transport};

/// Scripts that work on one host at once.
const AT_ONCE: usize = 3;

/// Sandboxes that one script removes at most.
const MOST: usize = 32;

/// Time that a script may take longer for each sandbox but the first.
const ANOTHER: Duration = Duration::from_secs(15);

/// Removals of all hosts.
#[derive(Default)]
pub(crate) struct Removals {
    hosts: Mutex<HashMap<HostName, Arc<Line>>>,
    numbers: AtomicU64,
}

/// Removal of one sandbox, as its script takes it.
pub(crate) struct Removal {
    pub(crate) id: SandboxId,
    /// The script, with what holds of all that are alike.
    pub(crate) script: &'static str,
    pub(crate) common: Vec<String>,
    /// What is of this sandbox alone; its id stands before it.
    pub(crate) own: Vec<String>,
    /// Whether others may go along with it.
    pub(crate) alone: bool,
    pub(crate) limit: Duration,
}

/// Those that wait for one host.
struct Line {
    turns: Semaphore,
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    number: u64,
    removal: Arc<Removal>,
    listener: UnboundedSender<Heard>,
}

/// What whoever asked for a removal listener of its script.
enum Heard {
    Line(Source, Vec<u8>),
    End(Result<Output, Error>),
}

impl Removals {
    /// Runs a removal, perhaps with others; its own lines go to `sink`, and those that are about all. Dropped while it waits,
    /// nothing is removed; while it runs, what goes with it goes on only where somebody else leads.
    pub(crate) async fn run(
        &self,
        transport: &dyn Transport,
        removal: Removal,
        sink: LineSink<'_>,
    ) -> Result<Output, Error> {
        let line = self.line(&transport.spec().name);
        let removal = Arc::new(removal);
        loop {
            let (number, mut heard) = self.enqueue(&line, &removal);
            let ended = tokio::select! {
                biased;
                ended = follow(&mut heard, &mut *sink) => ended,
                never = line.lead(transport, number) => match never {},
            };
            // Who led was cancelled, and the script ended with it: once more, by ourselves if need be.
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    fn line(&self, host: &HostName) -> Arc<Line> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Line { turns: Semaphore::new(AT_ONCE), waiting: Mutex::default() };
        Arc::clone(hosts.entry(host.clone()).or_insert_with(|| Arc::new(new())))
    }

    fn enqueue(&self, line: &Line, removal: &Arc<Removal>) -> (u64, UnboundedReceiver<Heard>) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (listener, heard) = unbounded_channel();
        let waiting = Waiting { number, removal: Arc::clone(removal), listener };
        line.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(waiting);
        (number, heard)
    }
}

/// Tells what is heard until the end; none where nobody is there to tell it.
async fn follow(
    heard: &mut UnboundedReceiver<Heard>,
    sink: LineSink<'_>,
) -> Option<Result<Output, Error>> {
    loop {
        match heard.recv().await? {
            Heard::Line(source, line) => sink(source, &line),
            Heard::End(ended) => return Some(ended),
        }
    }
}

impl Line {
    /// Runs the script for this removal and those that are like it, when it is its turn and nobody took it along.
    async fn lead(&self, transport: &dyn Transport, number: u64) -> Infallible {
        if let Ok(turn) = self.turns.acquire().await {
            let batch = self.take(number);
            if let Some(first) = batch.first() {
                let ended = run(transport, &first.removal, &batch).await;
                for one in &batch {
                    let _ = one.listener.send(Heard::End(ended.clone()));
                }
            }
            drop(turn);
        }
        std::future::pending().await
    }

    /// This removal and those that wait and are like it; none where somebody took it. Of those nobody asks for any more, none.
    fn take(&self, number: u64) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|one| !one.listener.is_closed());
        let Some(at) = waiting.iter().position(|one| one.number == number) else {
            return Vec::new();
        };
        let mut batch = vec![waiting.remove(at)];
        let first = Arc::clone(&batch[0].removal);
        let is_alike = |one: &Removal| {
            !first.alone
                && !one.alone
                && (one.script, &one.common, one.limit)
                    == (first.script, &first.common, first.limit)
        };
        let mut room = MOST - 1;
        batch.extend(waiting.extract_if(.., |one| {
            let taken = room > 0 && is_alike(&one.removal);
            room -= usize::from(taken);
            taken
        }));
        batch
    }
}

/// One script for all of them. Each listener its own lines, and those that are about all.
async fn run(
    transport: &dyn Transport,
    first: &Removal,
    batch: &[Waiting],
) -> Result<Output, Error> {
    let mut command = Command::script(first.script).args(&first.common);
    for one in batch {
        command = command.arg(one.removal.id.as_str()).args(&one.removal.own);
    }
    let mut about: Option<Vec<u8>> = None;
    let mut on_line = |source: Source, line: &[u8]| {
        if source == Source::Stdout
            && let Some(id) = line.strip_prefix(b"sandbox=")
        {
            about = Some(id.to_vec()).filter(|id| !id.is_empty());
            return;
        }
        let is_about = |one: &&Waiting| match &about {
            Some(id) => one.removal.id.as_str().as_bytes() == id.as_slice(),
            None => true,
        };
        for one in batch.iter().filter(is_about) {
            let _ = one.listener.send(Heard::Line(source, line.to_vec()));
        }
    };
    let others = u32::try_from(batch.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let limit = first.limit.saturating_add(ANOTHER * others);
    transport.stream(&command, limit, &mut on_line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line { turns: Semaphore::new(AT_ONCE), waiting: Mutex::default() }
    }

    fn removal(id: &str, common: &str, alone: bool) -> Arc<Removal> {
        let (script, own) = ("", vec!["0".to_owned()]);
        let (common, limit) = (vec![common.to_owned()], Duration::from_secs(1));
        Arc::new(Removal { id: id.into(), script, common, own, alone, limit })
    }

    #[test]
    fn those_that_are_alike_go_together_once_and_nobody_who_left() {
        let (removals, line) = (Removals::default(), line());
        let asked: Vec<_> = [
            ("a", "docker", false),
            ("b", "docker", false),
            ("c", "podman", false),
            ("d", "docker", true),
            ("e", "docker", false),
            ("f", "docker", false),
        ]
        .map(|(id, common, alone)| removals.enqueue(&line, &removal(id, common, alone)))
        .into();
        let mut heard: Vec<_> = asked.into_iter().map(|(_, heard)| Some(heard)).collect();
        heard[4] = None;
        let taken = |number: u64| -> Vec<String> {
            line.take(number).iter().map(|one| one.removal.id.to_string()).collect()
        };
        assert_eq!(taken(1), ["b", "a", "f"]);
        assert!(taken(0).is_empty(), "it went along");
        assert_eq!(taken(3), ["d"]);
        assert_eq!(taken(2), ["c"]);
        assert!(taken(4).is_empty(), "nobody asks for it any more");
        let many: Vec<_> = (0..=MOST)
            .map(|at| removals.enqueue(&line, &removal(&format!("{at}"), "docker", false)))
            .collect();
        assert_eq!(taken(many[0].0).len(), MOST);
        assert_eq!(taken(many[MOST].0).len(), 1);
    }
}
