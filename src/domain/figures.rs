//! Figures as every face shows them: ages, durations, times left, sizes, rates and amounts, in as few columns as they need.

use std::time::Duration;

use super::{Time, Usd};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Age: `12s`, `41m`, `2h03`, `20h`, `3d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..36_000 => format!("{}h{:02}", seconds / HOUR, seconds / MINUTE % 60),
        36_000..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

/// Age of what was `then`.
pub(crate) fn age_of(then: Time, now: Time) -> String {
    age(now.since(then).as_secs())
}

/// Time left until a deadline: `1h57`, `over 5m` once it is past, `no deadline`.
pub(crate) fn left(deadline: Option<Time>, now: Time) -> String {
    match deadline {
        None => "no deadline".to_owned(),
        Some(end) if end > now => age_of(now, end),
        Some(end) => format!("over {}", age_of(end, now)),
    }
}

/// Duration of what is over: `840ms`, `3.1s`, `42s`, `2m05`, `2h03`.
pub(crate) fn took(duration: Duration) -> String {
    let millis = duration.as_millis();
    let (tenths, seconds) = ((millis + 50) / 100, ((millis + 500) / 1000) as u64);
    match seconds {
        _ if millis < 1000 => format!("{millis}ms"),
        _ if tenths < 100 => format!("{}.{}s", tenths / 10, tenths % 10),
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m{:02}", seconds / MINUTE, seconds % 60),
        _ => age(seconds),
    }
}

/// Size in binary units: `512B`, `1.2K`, `120M`, `1.2G`.
pub(crate) fn bytes(count: u64) -> String {
    let mut rest = count as f64;
    let mut units = ["B", "K", "M", "G", "T", "P"].into_iter().peekable();
    while let Some(unit) = units.next() {
        // A decimal as long as it says something: `1.2G`, but `1G` and `12G`.
        let tenths = (rest * 10.0).round() / 10.0;
        let decimals = usize::from(tenths < 10.0 && tenths.fract() != 0.0);
        if tenths.round() < 1024.0 || units.peek().is_none() {
            return format!("{rest:.decimals$}{unit}");
        }
        rest /= 1024.0;
    }
    format!("{count}B")
}

/// Rate of a transfer: `512B/s`, `12MB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let text = bytes(bytes_per_second as u64);
    format!("{}B/s", text.trim_end_matches('B'))
}

/// Amount: `$41.20`, below a cent `$0.0042`. Cut, so that it never is more than there is.
pub(crate) fn usd(amount: Usd) -> String {
    let step = match amount.micros().unsigned_abs() {
        0 | 10_000.. => 10_000,
        1_000.. => 100,
        100.. => 10,
        _ => 1,
    };
    Usd::from_micros(amount.micros() / step * step).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        text.parse().unwrap()
    }

    #[test]
    fn ages_take_four_columns_for_three_years() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (7_380, "2h03"),
            (35_999, "9h59"),
            (36_000, "10h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (86_400 * 999, "999d"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn a_deadline_is_ahead_or_over() {
        let end = at("2026-11-27T12:00:00Z");
        for (now, text) in [
            ("2026-11-27T10:03:00Z", "1h57"),
            ("2026-11-27T12:00:00Z", "over 0s"),
            ("2026-11-27T12:05:10Z", "over 5m"),
        ] {
            assert_eq!(left(Some(end), at(now)), text);
        }
        assert_eq!(left(None, end), "no deadline");
    }

    #[test]
    fn durations_as_one_says_them() {
        for (millis, text) in [
            (0, "0ms"),
            (840, "840ms"),
            (3_140, "3.1s"),
            (9_949, "9.9s"),
            (9_960, "10s"),
            (42_400, "42s"),
            (59_999, "1m00"),
            (125_000, "2m05"),
            (7_380_000, "2h03"),
        ] {
            assert_eq!(took(Duration::from_millis(millis)), text, "{millis}");
        }
    }

    #[test]
    fn sizes_have_three_figures_at_most_but_below_the_next_unit() {
        for (count, text) in [
            (0, "0B"),
            (512, "512B"),
            (1_023, "1023B"),
            (1_024, "1K"),
            (1_290, "1.3K"),
            (10 << 10, "10K"),
            ((1 << 20) - 1, "1M"),
            (120 << 20, "120M"),
            (1_288_490_189, "1.2G"),
            (1 << 30, "1G"),
            (41_231_686_042, "38G"),
            (u64::MAX, "16384P"),
        ] {
            assert_eq!(bytes(count), text, "{count}");
        }
    }

    #[test]
    fn a_rate_is_a_size_a_second() {
        assert_eq!(rate(512.7), "512B/s");
        assert_eq!(rate(12.4 * 1_048_576.0), "12MB/s");
        assert_eq!(rate(f64::NAN), "0B/s");
    }

    #[test]
    fn amounts_are_cut_to_cents_or_two_digits() {
        for (micros, text) in [
            (41_200_000, "$41.20"),
            (41_209_999, "$41.20"),
            (999_999, "$0.99"),
            (4_290, "$0.0042"),
            (429, "$0.00042"),
            (42, "$0.000042"),
            (0, "$0.00"),
            (-800_000, "-$0.80"),
            (-4_290, "-$0.0042"),
        ] {
            assert_eq!(usd(Usd::from_micros(micros)), text);
        }
    }
}
