//! Offset of a host's clock.

use std::time::Duration;

use crate::domain::time::Time;

/// Seconds that the host is ahead, from its `date +%s.%N`. A busybox without `%N` says whole seconds: then the middle of
/// that second is taken.
pub(super) fn clock_offset(said: &str, now: Time, ended: Duration) -> Option<f64> {
    let (seconds, fraction) = said.split_once('.').unwrap_or((said, ""));
    let seconds: i64 = seconds.parse().ok()?;
    let digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    let fraction: f64 = if digits { format!("0.{fraction}").parse().ok()? } else { 0.5 };
    let ours = now.timestamp().as_millisecond() as f64 / 1000.0 + ended.as_secs_f64();
    let offset = seconds as f64 + fraction - ours;
    Some((offset * 1000.0).round() / 1000.0)
}
