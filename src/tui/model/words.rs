//! Short words for times and states.

use jiff::tz::TimeZone;

use super::Role;
use crate::domain::figures::age_of;
use crate::domain::name::ProfileId;
use crate::domain::patch::PatchState;
use crate::domain::text::plural;
use crate::domain::{State, Time};

/// `14:03:22` in a time zone.
pub fn clock(time: Time, zone: &TimeZone) -> String {
    time.timestamp().to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// `11-27 14:03:22` in a time zone.
pub fn day_and_time(time: Time, zone: &TimeZone) -> String {
    time.timestamp().to_zoned_datetime(zone.clone()).strftime("%m-%d %H:%M:%S").to_string()
}

/// `2026-11-27 14:03:22` in a time zone.
pub fn date(time: Time, zone: &TimeZone) -> String {
    time.timestamp().to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Present moment and the one time zone of every screen.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// The moment.
    pub now: Time,
    /// The zone that the header names.
    pub zone: &'a TimeZone,
}

impl Present<'_> {
    /// `5m ago (2026-11-27 14:03:22)`.
    pub fn ago(self, time: Time) -> String {
        format!("{} ago ({})", age_of(time, self.now), date(time, self.zone))
    }
}

/// A profile's id without `profile.`.
pub fn short_profile(id: &ProfileId) -> &str {
    id.as_str().strip_prefix("profile.").unwrap_or(id.as_str())
}

/// A state's glyph; never the only sign of anything but the state.
pub fn state_glyph(state: &State) -> char {
    match state {
        State::Requested => '◌',
        State::Provisioning | State::Destroying => '◐',
        State::Ready => '●',
        State::Sleeping => '☾',
        State::Failed => '✗',
        State::Lost => '?',
        State::Destroyed | State::Forgotten => '○',
        State::Other(_) => '·',
    }
}

/// How a state is meant.
pub fn state_role(state: &State) -> Role {
    match state {
        State::Requested | State::Provisioning | State::Destroying => Role::Busy,
        State::Ready => Role::Good,
        State::Failed => Role::Bad,
        State::Lost => Role::Warn,
        State::Sleeping | State::Destroyed | State::Forgotten | State::Other(_) => Role::Dim,
    }
}

/// A patch's glyph on a sandbox.
pub fn patch_glyph(state: &PatchState) -> char {
    match state {
        PatchState::Applied => '✓',
        PatchState::Pending => '…',
        PatchState::Applying => '◐',
        PatchState::Failed => '✗',
        PatchState::Unknown => '?',
        PatchState::None | PatchState::Other(_) => '·',
    }
}

/// How a patch's state is meant.
pub fn patch_role(state: &PatchState) -> Role {
    match state {
        PatchState::Applied => Role::Good,
        PatchState::Applying => Role::Busy,
        PatchState::Failed => Role::Bad,
        PatchState::Unknown | PatchState::Pending => Role::Warn,
        PatchState::None | PatchState::Other(_) => Role::Dim,
    }
}

/// `1 patch`, `3 patches`.
pub fn many(count: usize, one: &str, more: &str) -> String {
    plural(count as u64, one, more)
}
