//! A log on its way to the screen: gathered, so that a flood is a few messages; bounded, so that it costs no memory;
//! cleaned here, so that the UI's thread only takes it.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, Error, LogsRequest};
use crate::domain::output::LogLine;
use crate::tui::message::{LogBatch, Msg};
use crate::tui::model::LogText;

/// Lines are handed over this often at most: once a frame.
const EVERY: Duration = Duration::from_millis(16);
/// Batches that the loop has not taken yet; while there are so many, lines wait here.
const ON_THE_WAY: usize = 2;
/// Most lines and bytes that may wait here; more than that, and the oldest are dropped.
const LINES: usize = 8000;
const BYTES: usize = 1024 * 1024;

/// Lines that wait to be handed over.
#[derive(Default)]
struct Waiting {
    lines: VecDeque<LogLine>,
    bytes: usize,
    missed: u64,
    names: HashMap<String, Arc<str>>,
}

impl Waiting {
    fn push(&mut self, line: LogLine) {
        self.bytes += line.bytes.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.bytes.len();
            self.missed += 1;
        }
    }

    /// Everything that waits, cleaned.
    fn take(&mut self) -> (u64, Vec<Arc<LogText>>) {
        self.bytes = 0;
        let names = &mut self.names;
        let cleaned = self.lines.drain(..).map(|line| {
            let name = match names.entry(line.service.clone()) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(new) => {
                    // A host's word: it must not move the cursor either.
                    let name: Arc<str> = crate::domain::text::clean_line(new.key(), 64).into();
                    Arc::clone(new.insert(name))
                }
            };
            Arc::new(LogText::new(&line, name))
        });
        let lines = cleaned.collect();
        (std::mem::take(&mut self.missed), lines)
    }
}

/// Follows a log until its stream ends. Dropping the future ends the stream.
pub(super) async fn follow(
    client: Arc<dyn Client>,
    request: LogsRequest,
    generation: u64,
    queue: mpsc::Sender<Msg>,
) -> Result<(), Error> {
    let mut stream = client.logs(request).await?;
    let _ = queue.send(Msg::LogOpened(generation)).await;
    let places = Arc::new(Semaphore::new(ON_THE_WAY));
    let mut waiting = Waiting::default();
    let mut next = Instant::now();
    let ended = loop {
        tokio::select! {
            biased;
            () = sleep_until(next), if !waiting.lines.is_empty() => {}
            line = stream.next() => match line {
                Some(Ok(line)) => {
                    waiting.push(line);
                    if Instant::now() < next {
                        continue;
                    }
                }
                Some(Err(problem)) => break Err(problem),
                None => break Ok(()),
            },
        }
        next = Instant::now() + EVERY;
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let (missed, lines) = waiting.take();
            let batch = LogBatch { missed, lines, _place: place };
            if queue.send(Msg::Log(generation, Box::new(batch))).await.is_err() {
                return Ok(());
            }
        }
        // A stream that always has something would never let the others run.
        tokio::task::yield_now().await;
    };
    if let Ok(place) = places.acquire_owned().await {
        let (missed, lines) = waiting.take();
        let _ = queue
            .send(Msg::Log(generation, Box::new(LogBatch { missed, lines, _place: place })))
            .await;
    }
    ended
}
