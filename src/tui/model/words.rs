//! Short words for ages, sizes, times and states.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::Role;
use crate::domain::name::ProfileId;
use crate::domain::patch::PatchState;
use crate::domain::profile::Bytes;
use crate::domain::text::plural;
use crate::domain::{State, Time};

/// `12s`, `41m`, `2h03`, `3d04h`: two figures at most.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h{:02}", seconds / 3600, seconds / 60 % 60),
        86_400..864_000 => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// What is left until a deadline: `1h57 left`, `expired 3m ago`, `no deadline`.
pub fn left(expires_at: Option<Time>, now: Time) -> String {
    match expires_at {
        None => "no deadline".to_owned(),
        Some(end) if end > now => format!("{} left", age(end.since(now).as_secs())),
        Some(end) => format!("expired {} ago", age(now.since(end).as_secs())),
    }
}

/// A size as everywhere: `1.4GiB`.
pub fn bytes(count: u64) -> String {
    Bytes(count).to_string()
}

/// `14:03:22` in a time zone.
pub fn clock(time: Time, zone: &TimeZone) -> String {
    time.timestamp().to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string()
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
        format!("{} ago ({})", age(self.now.since(time).as_secs()), date(time, self.zone))
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

/// `3.1 s`, `42 s`, `2m05`: how long something took.
pub fn took(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_secs() {
        0..10 => format!("{seconds:.1} s"),
        10..100 => format!("{seconds:.0} s"),
        whole @ 100..3600 => format!("{}m{:02}", whole / 60, whole % 60),
        whole => age(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_one_says_them() {
        for (millis, text) in [
            (40, "0.0 s"),
            (3140, "3.1 s"),
            (42_400, "42 s"),
            (125_000, "2m05"),
            (7_380_000, "2h03"),
        ] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn ages_in_two_figures() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7380, "2h03"),
            (90_000, "1d01h"),
            (900_000, "10d"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }
}
