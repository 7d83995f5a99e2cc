//! How engines cut words, and what addresses are private.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::Value;

/// Record of comma-separated values, as Go's reader has it: a field may be quoted, `""` is a quote.
pub(crate) fn csv(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let field = fields.last_mut().unwrap();
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(String::new()),
            _ => field.push(c),
        }
    }
    fields
}

/// Every way in which versions of an engine cut a list: at each comma, and as comma-separated values.
pub(crate) fn lists(text: &str) -> Vec<Vec<String>> {
    let cut: Vec<String> = text.split(',').map(str::to_owned).collect();
    let read = csv(text);
    if cut == read { vec![cut] } else { vec![cut, read] }
}

/// Name and value at the first `=`.
pub(crate) fn pair(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

/// Is a subnet or address private, all of it? Text that is neither is not.
pub(crate) fn is_private(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        None => (text, None),
        Some((address, bits)) => match bits.parse::<u8>() {
            Ok(bits) => (address, Some(bits)),
            Err(_) => return false,
        },
    };
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => {
            let least = match v4.octets() {
                [10, ..] => 8,
                [172, second, ..] if (16..32).contains(&second) => 12,
                [192, 168, ..] => 16,
                _ => return false,
            };
            bits.is_none_or(|bits| (least..=32).contains(&bits))
        }
        Ok(IpAddr::V6(v6)) => {
            is_unique_local(v6) && bits.is_none_or(|bits| (7..=128).contains(&bits))
        }
        Err(_) => false,
    }
}

/// Does a subnet or address overlap one of these, each an address and a prefix?
pub(crate) fn overlaps(text: &str, taken: &[(&str, u8)]) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    let (Ok(IpAddr::V4(address)), Ok(bits)) = (address.parse(), bits.parse::<u8>()) else {
        return false;
    };
    taken.iter().any(|(other, other_bits)| {
        let shared = u32::from(bits.min(*other_bits).min(32));
        let other: std::net::Ipv4Addr = other.parse().unwrap();
        let differ = (address.to_bits() ^ other.to_bits()).checked_shr(32 - shared).unwrap_or(0);
        differ == 0
    })
}

fn is_unique_local(v6: Ipv6Addr) -> bool {
    v6.segments()[0] & 0xfe00 == 0xfc00
}

/// Is `version` below 5.3.2, the first podman whose builds stay inside?
pub(crate) fn builds_lead_out(version: &str) -> bool {
    let numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    numbers.as_slice() < [5, 3, 2].as_slice()
}

/// Whether a value says anything: there is something that is not empty, false or zero.
pub(super) fn says(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Bool(true) => true,
    }
}

/// Source and options of `[SOURCE:]TARGET[:OPTIONS]`, and whether it has no further parts; of a target alone nothing.
pub(super) fn mount_parts(word: &str) -> Option<(&str, &str, bool)> {
    let parts: Vec<&str> = word.split(':').collect();
    match parts.as_slice() {
        [_target] => None,
        [target, options] if !options.starts_with('/') && target.starts_with('/') => {
            Some(("", options, true))
        }
        [source, _target] => Some((source, "", true)),
        [source, _target, options] => Some((source, options, true)),
        [source, .., options] => Some((source, options, false)),
        [] => None,
    }
}
