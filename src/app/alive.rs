//! Whether the process that a record names is still the one that wrote it.

use std::fs;
use std::time::Duration;

use super::clock::now;
use crate::domain::time::Time;

/// Tolerance between a start and the moment that its process wrote down: clocks are read in seconds here and there.
const SLACK: Duration = Duration::from_secs(2);

/// Whether a process with this number is there and was there at `then`. Numbers are used again: a younger process is
/// another one. Where `/proc` does not tell when it began, being there is enough.
pub(super) fn was_there(pid: u32, then: Time) -> bool {
    let Some(id) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    if rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name in parentheses may hold anything; what follows it are the state and numbers (proc(5)).
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    // Dead, and waits for somebody to ask how it ended.
    if fields.first() == Some(&"Z") {
        return false;
    }
    match (fields.get(19).and_then(|ticks| ticks.parse::<u64>().ok()), uptime()) {
        (Some(ticks), Some(up)) => {
            let began_after_boot = Duration::from_millis(
                ticks * 1000 / rustix::param::clock_ticks_per_second().max(1),
            );
            let age = up.saturating_sub(began_after_boot);
            now().since(then).as_secs_f64() <= (age + SLACK).as_secs_f64()
        }
        _ => true,
    }
}

fn uptime() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_secs_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_age() {
        let now = super::now();
        assert!(was_there(std::process::id(), now));
        assert!(
            !was_there(std::process::id(), now.minus_seconds(3600)),
            "somebody else had that number then"
        );
        assert!(!was_there(u32::MAX, now));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(
            !was_there(child.id(), now),
            "what has ended is not there, though nobody has asked for its status"
        );
        child.wait().unwrap();
    }
}
