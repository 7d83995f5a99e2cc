//! Hosts, each with its own fate.

use std::time::Duration;

use super::Load;
use super::fetch::Fetch;
use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::facts::{HostState, HostView};
use crate::domain::name::SandboxId;
use crate::domain::telemetry::{HISTORY_S, HostHistory, SandboxUse};

/// How long a host may be silent before its rows say so.
const SILENT: Duration = Duration::from_secs(15);
/// How long an answer may take before the host is called slow.
const SLOW: Duration = Duration::from_secs(3);
/// A round trip above this is slow.
const SLOW_MS: u64 = 1000;

/// One host.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// As the client sees it.
    pub view: HostView,
    /// Its samples of the last hour.
    pub history: HostHistory,
    /// Since when it is being asked.
    pub asked: Option<Time>,
    /// When it answered last, in this console's life.
    pub answered: Option<Time>,
    /// Since when it is down.
    pub down_since: Option<Time>,
    /// When it is asked next; the time of the one timer that is under way.
    pub next: Option<Time>,
    /// How often in a row it did not answer.
    pub tries: u32,
    /// Whether work on it ended since its inventory was asked for.
    pub changed: bool,
    /// Where its light probes are.
    pub sampling: Sampling,
    /// How many of them in a row failed.
    pub failed_samples: u32,
    /// The question for its services.
    pub refreshing: Fetch,
    /// Why its services could not be asked for last.
    pub services_error: Option<Error>,
}

/// Where the light probes of a host are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// None is under way: it does not answer, or was not asked yet.
    #[default]
    Off,
    /// The next one is due after a while.
    Waiting,
    /// One is under way.
    Asked,
}

/// How a host stands, in the words of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The configuration forbids it.
    Forbidden,
    /// Nobody has an answer yet.
    Connecting,
    /// It answers.
    Up,
    /// It answers late, or is late to answer.
    Slow,
    /// It does not answer.
    Down,
}

/// All hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosts {
    /// Whether they were read.
    pub load: Load,
    /// In the configuration's order.
    pub list: Vec<Host>,
}

impl Default for Hosts {
    fn default() -> Self {
        Self { load: Load::Loading, list: Vec::new() }
    }
}

/// Change of a host that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// It answers again.
    CameUp,
    /// It answers no more.
    WentDown,
}

impl Host {
    /// How it stands now.
    pub fn standing(&self, now: Time) -> Standing {
        let late = self.asked.is_some_and(|asked| now.since(asked) > SLOW);
        match self.view.state {
            HostState::Forbidden => Standing::Forbidden,
            HostState::Down => Standing::Down,
            HostState::Up if late || self.view.latency_ms.is_some_and(|ms| ms > SLOW_MS) => {
                Standing::Slow
            }
            HostState::Up => Standing::Up,
            HostState::Slow => Standing::Slow,
            HostState::Unknown | HostState::Connecting | HostState::Other(_) => {
                Standing::Connecting
            }
        }
    }

    /// What a sandbox's containers use, by the last sample.
    pub fn use_of(&self, id: &SandboxId) -> Option<SandboxUse> {
        self.history.last()?.sandboxes.get(id).copied()
    }

    /// Load of the last hour in this many points, the oldest first, each the highest of its span; none before the first sample.
    pub fn load_series(&self, points: usize) -> Vec<f64> {
        let Some(last) = self.history.last() else { return Vec::new() };
        let span = (HISTORY_S as f64 / points.max(1) as f64).max(1.0);
        let mut series: Vec<Option<f64>> = vec![None; points];
        for sample in self.history.samples() {
            let back = (last.at.since(sample.at).as_secs_f64() / span) as usize;
            if let Some(point) = points.checked_sub(back + 1).and_then(|at| series.get_mut(at)) {
                *point = Some(point.map_or(sample.load1, |load| load.max(sample.load1)));
            }
        }
        // A span without a sample stays what it was.
        let mut before = None;
        series
            .into_iter()
            .filter_map(|point| {
                before = point.or(before);
                before
            })
            .collect()
    }

    /// Whether it answered when it was asked last.
    pub fn is_fine(&self) -> bool {
        matches!(self.view.state, HostState::Up | HostState::Slow)
    }
}

impl Hosts {
    /// Takes the configured hosts, keeping what is known of them.
    pub fn replace(&mut self, views: Vec<HostView>, now: Time) {
        self.load = Load::Ready;
        let mut old = std::mem::take(&mut self.list);
        self.list = views
            .into_iter()
            .map(|view| {
                let known = old
                    .iter()
                    .position(|host| host.view.name == view.name)
                    .map(|at| old.swap_remove(at));
                let mut host = known.unwrap_or(Host {
                    view: view.clone(),
                    history: HostHistory::default(),
                    asked: None,
                    answered: None,
                    down_since: None,
                    next: None,
                    tries: 0,
                    changed: false,
                    sampling: Sampling::Off,
                    failed_samples: 0,
                    refreshing: Fetch::Idle,
                    services_error: None,
                });
                host.take(view, now);
                host
            })
            .collect();
    }

    /// The host of this name.
    pub fn get(&self, name: &str) -> Option<&Host> {
        self.list.iter().find(|host| host.view.name.same(name))
    }

    /// The host of this name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Host> {
        self.list.iter_mut().find(|host| host.view.name.same(name))
    }

    /// Takes a newer view; answers with what that changed.
    pub fn take(&mut self, view: HostView, now: Time) -> Option<HostChange> {
        let host = self.get_mut(view.name.as_str())?;
        let (was_down, was_fine) = (host.view.state == HostState::Down, host.is_fine());
        host.take(view, now);
        if host.is_fine() && was_down {
            return Some(HostChange::CameUp);
        }
        let went_down = host.view.state == HostState::Down && (was_fine || !was_down);
        went_down.then_some(HostChange::WentDown)
    }

    /// Whether a sandbox's host has not answered for 15 s: its row is what was, not what is.
    pub fn is_silent(&self, name: &str, now: Time, started: Time) -> bool {
        let heard = |time: Time| now.since(time) <= SILENT;
        match self.get(name) {
            _ if self.load != Load::Ready => false,
            Some(host) if host.is_fine() && host.asked.is_none_or(heard) => false,
            // Down, and not one answer in this console's life: nothing to wait for.
            Some(host) if host.view.state == HostState::Down && host.answered.is_none() => true,
            Some(host) => !heard(host.answered.unwrap_or(started)),
            None => !heard(started),
        }
    }
}

impl Host {
    fn take(&mut self, view: HostView, now: Time) {
        match view.state {
            HostState::Up | HostState::Slow => {
                self.answered = view.checked_at.or(Some(now)).max(self.answered);
                self.down_since = None;
            }
            HostState::Down => self.down_since = self.down_since.or(Some(now)),
            HostState::Unknown
            | HostState::Connecting
            | HostState::Forbidden
            | HostState::Other(_) => {}
        }
        // A view from before the first contact must not undo what is known.
        let older = view.state == HostState::Unknown && self.view.state != HostState::Unknown;
        if !older {
            self.view = view;
        }
    }
}
