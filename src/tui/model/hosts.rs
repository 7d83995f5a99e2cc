//! Hosts, each with its own fate.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Load;
use super::fetch::Fetch;
use super::rows::SilentHosts;
use super::window::Window;
use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::host_view::{HostState, HostView};
use crate::domain::name::{HostName, SandboxId};
use crate::domain::telemetry::{HostHistory, HostSample, SandboxUse};
use crate::domain::text::clean_line;
use crate::present::Role;

/// How long a host may be silent before its rows say so.
const SILENT: Duration = Duration::from_secs(15);
/// How long an answer may take before the host is called slow.
const SLOW: Duration = Duration::from_secs(3);
/// A round trip above this is slow.
const SLOW_MS: u64 = 1000;

/// Rows of a host in the pane.
pub(crate) const ROWS_EACH: usize = 2;

/// Host of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// View of the client.
    pub view: HostView,
    /// Its place in the configuration.
    pub place: usize,
    /// Its samples of the last hour.
    pub history: HostHistory,
    /// Since when it is being asked.
    pub asked: Option<Time>,
    /// When it answered last, in this console's life.
    pub answered: Option<Time>,
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
    /// A look is under way.
    Asked,
}

/// How a host stands, in the words of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The configuration forbids it.
    Forbidden,
    /// Nobody has an answer yet.
    Connecting,
    /// Answering.
    Up,
    /// Answering late, or late to answer.
    Slow,
    /// Not answering.
    Down,
}

/// A host's glyph, and how it is meant.
pub(crate) fn standing_glyph(standing: Standing) -> (char, Role) {
    match standing {
        Standing::Up => ('●', Role::Good),
        Standing::Slow => ('●', Role::Warn),
        Standing::Connecting => ('◌', Role::Busy),
        Standing::Down => ('✗', Role::Bad),
        Standing::Forbidden => ('–', Role::Dim),
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hosts {
    /// Whether they were read.
    pub load: Load,
    /// Hosts that are down first, forbidden ones last, and in the configuration's order.
    pub list: Vec<Host>,
    /// The cursor, and what is on the screen.
    pub window: Window,
    /// Places of extensions that are no hosts, in small letters: nothing answers there, and nothing is silent.
    pub places: BTreeSet<String>,
    /// The host that the operator pointed at.
    wanted: Option<HostName>,
}

/// Change of a host that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// Answering again.
    CameUp,
    /// Answering no more.
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

    /// Its last sample.
    pub fn sample(&self) -> Option<&HostSample> {
        self.history.last().or(self.view.sample.as_ref())
    }

    /// Why it does not answer, without what ssh says before it.
    pub fn reason(&self) -> Option<&str> {
        let message = self.view.message.as_deref()?;
        Some(message.rsplit(": ").next().unwrap_or(message).trim())
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
            .enumerate()
            .map(|(place, view)| {
                let known = old
                    .iter()
                    .position(|host| host.view.name == view.name)
                    .map(|at| old.swap_remove(at));
                let mut host = known.unwrap_or(Host {
                    view: view.clone(),
                    place,
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
                host.place = place;
                host.take(view, now);
                host
            })
            .collect();
        self.settle();
    }

    /// The host under the cursor.
    pub fn selected(&self) -> Option<&Host> {
        self.list.get(self.window.index)
    }

    /// Moves the cursor to a place.
    pub fn go(&mut self, index: usize) {
        self.window.go(index, self.list.len());
        self.wanted = self.selected().map(|host| host.view.name.clone());
    }

    /// Puts the hosts in order; the cursor goes with its host.
    fn settle(&mut self) {
        self.list.sort_by_key(|host| (host.urgency(), host.place));
        let wanted = self.wanted.as_ref();
        let at = wanted.and_then(|name| self.list.iter().position(|host| host.view.name == *name));
        self.window.index = at.unwrap_or(self.window.index);
        self.window.fit(self.list.len());
    }

    pub fn get(&self, name: &str) -> Option<&Host> {
        self.list.iter().find(|host| host.view.name.same(name))
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Host> {
        self.list.iter_mut().find(|host| host.view.name.same(name))
    }

    /// Takes a newer view; answers with what that changed.
    pub fn take(&mut self, view: HostView, now: Time) -> Option<HostChange> {
        let host = self.get_mut(view.name.as_str())?;
        let (was_down, was_fine) = (host.view.state == HostState::Down, host.is_fine());
        host.take(view, now);
        let (is_down, is_fine) = (host.view.state == HostState::Down, host.is_fine());
        self.settle();
        if is_fine && was_down {
            return Some(HostChange::CameUp);
        }
        let went_down = is_down && (was_fine || !was_down);
        went_down.then_some(HostChange::WentDown)
    }

    /// Which hosts are silent.
    pub fn silent(&self, now: Time, started: Time) -> SilentHosts {
        let mut hosts = SilentHosts::default();
        for host in &self.list {
            let name = clean_line(host.view.name.as_str(), 80).to_lowercase();
            if self.is_silent(host.view.name.as_str(), now, started) {
                hosts.silent.insert(name.clone());
            }
            hosts.known.insert(name);
        }
        // A host that is not configured answers nobody.
        hosts.strangers = self.load == Load::Ready && now.since(started) > SILENT;
        hosts.known.extend(self.places.iter().cloned());
        hosts
    }

    /// Usage of a sandbox, by its host's last sample.
    pub fn used(&self, host: &str, id: &SandboxId) -> Option<&SandboxUse> {
        self.get(host)?.sample()?.sandboxes.get(id)
    }

    /// Whether a sandbox's host has not answered for 15 s: its row is what was, not what is.
    pub fn is_silent(&self, name: &str, now: Time, started: Time) -> bool {
        let heard = |time: Time| now.since(time) <= SILENT;
        match self.get(name) {
            _ if self.load != Load::Ready => false,
            None if self.places.contains(&name.to_lowercase()) => false,
            // One that is being asked counts from its last answer, not from the question.
            Some(host)
                if host.is_fine()
                    && host.asked.is_none_or(|asked| {
                        heard(host.answered.map_or(asked, |answered| answered.min(asked)))
                    }) =>
            {
                false
            }
            // Down, and not one answer in this console's life: nothing to wait for.
            Some(host) if host.view.state == HostState::Down && host.answered.is_none() => true,
            Some(host) => !heard(host.answered.unwrap_or(started)),
            None => !heard(started),
        }
    }
}

impl Host {
    /// Down before all others, forbidden after them.
    fn urgency(&self) -> u8 {
        match self.view.state {
            HostState::Down => 0,
            HostState::Forbidden => 2,
            _ => 1,
        }
    }

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
