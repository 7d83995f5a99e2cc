//! Shells on a host: at most two long-lived ones for small commands, and what runs over one.
//!
//! A session costs the account's start-up (2 to 200 ms), a command on a shell that is open one round trip. There is no
//! task behind this: whoever runs a command borrows a shell, and a shell that is not given back whole (a dropped or
//! late request) is closed, which makes its watchdog end what runs in it.

pub(crate) mod channel;
pub(crate) mod disconnect;
pub(crate) mod frame;
pub(crate) mod output_buffer;
pub(crate) mod quote;
pub(crate) mod request;
pub(crate) mod stdin;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::domain::error::Error;
use crate::transport::shell::channel::{BrokenChannel, Channel};
use crate::transport::shell::request::Answer;
use crate::transport::{Command, Output};

/// Shells of one connection, at most: one busy with a slow command must not block the probe.
const SHELLS: usize = 2;
/// Time that a request waits for the open shell before a second one is opened.
const PATIENCE: Duration = Duration::from_millis(50);

#[async_trait]
pub(crate) trait Opener: Send + Sync {
    /// A new shell that reads its requests on stdin.
    async fn open_shell(&self) -> Result<Channel, Error>;

    /// Meaning of the early end of a shell on this connection.
    async fn explain(&self, connection: usize, broken: BrokenChannel) -> Error;
}

#[derive(Default)]
struct State {
    idle: Vec<Channel>,
    /// Idle, lent and being opened.
    open: usize,
}

/// The long-lived shells of one connection.
#[derive(Default)]
pub(crate) struct Shells {
    state: Mutex<State>,
    changed: Notify,
}

/// The right to one shell. Dropped without [`Lease::give_back`], the shell is closed.
struct Lease<'a> {
    shells: &'a Shells,
    returned: bool,
}

impl Lease<'_> {
    fn give_back(mut self, channel: Channel) {
        self.shells.state().idle.push(channel);
        self.returned = true;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.returned {
            self.shells.state().open -= 1;
        }
        self.shells.changed.notify_one();
    }
}

impl Shells {
    /// Runs a command on a shell that is free; also tells the round trip, where it was one.
    ///
    /// Has no deadline of its own: dropping it at any point ends the command.
    pub(crate) async fn run(
        &self,
        opener: &dyn Opener,
        command: &Command,
    ) -> Result<(Output, Option<Duration>), Error> {
        loop {
            let (lease, idle) = self.lease().await;
            let reused = idle.is_some();
            let mut channel = match idle {
                Some(channel) => channel,
                None => opener.open_shell().await?,
            };
            // The first answer of a shell includes the account's start-up.
            let fresh = !channel.prepared;
            match request::run(&mut channel, command, false).await? {
                (Answer::Done { round_trip, .. }, output) => {
                    lease.give_back(channel);
                    return Ok((output, (!fresh).then_some(round_trip)));
                }
                // A reused shell had ended while it was idle, and its end had not been heard of yet.
                (Answer::Broken(broken), _) if reused && broken.unsent => {}
                (Answer::Broken(broken), _) => {
                    let connection = channel.connection();
                    drop(channel);
                    drop(lease);
                    return Err(opener.explain(connection, broken).await);
                }
            }
        }
    }

    pub(crate) async fn close(&self) {
        let idle = {
            let mut state = self.state();
            let idle = std::mem::take(&mut state.idle);
            state.open -= idle.len();
            idle
        };
        self.changed.notify_waiters();
        for channel in idle {
            channel.end().await;
        }
    }

    /// A shell that is idle, or the right to open one.
    async fn lease(&self) -> (Lease<'_>, Option<Channel>) {
        let mut most = 1;
        loop {
            let changed = self.changed.notified();
            if let Some(lease) = self.try_lease(most) {
                return lease;
            }
            if most < SHELLS {
                if timeout(PATIENCE, changed).await.is_err() {
                    most = SHELLS;
                }
            } else {
                changed.await;
            }
        }
    }

    fn try_lease(&self, most: usize) -> Option<(Lease<'_>, Option<Channel>)> {
        let mut state = self.state();
        while let Some(mut channel) = state.idle.pop() {
            if channel.alive() {
                return Some((Lease { shells: self, returned: false }, Some(channel)));
            }
            state.open -= 1;
        }
        if state.open >= most {
            return None;
        }
        state.open += 1;
        Some((Lease { shells: self, returned: false }, None))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
