//! Facts of a host as a canary's record has them, as text.

use super::text_block::{Role, TextBlock};

use crate::domain::Time;
use crate::domain::canary::CanaryTelemetry;
use crate::domain::figures::{age, bytes};

/// Facts as a canary's record has them.
pub(super) fn host_summary(block: &mut TextBlock, facts: &CanaryTelemetry, now: Time) {
    block.heading(&format!(
        "Inventory of {}, {} ago",
        facts.hostname,
        age(now.since(facts.at).as_secs())
    ));
    let os = facts.os.as_deref().unwrap_or("unknown system");
    block.pair("system", Role::Plain, &format!("{os}, {}", facts.kernel));
    block.pair("account", Role::Plain, &facts.user);
    block.pair("load", Role::Plain, &format!("{:.2} on {} processors", facts.load1, facts.cpus));
    let memory =
        format!("{} free of {}", bytes(facts.mem_available_bytes), bytes(facts.mem_total_bytes));
    block.pair("memory", Role::Plain, &memory);
    if let Some(disk) = &facts.disk {
        block.pair(
            "disk",
            Role::Plain,
            &format!(
                "{} free of {} ({})",
                bytes(disk.available_bytes),
                bytes(disk.total_bytes),
                disk.path
            ),
        );
    }
    if let Some(offset) = facts.clock_offset_s.filter(|offset| offset.abs() > 2.0) {
        block.pair("clock", Role::Warn, &format!("{offset:+.1} s from ours"));
    }
    if let Some(found) = &facts.inventory {
        let things = [
            (found.containers, "containers"),
            (found.networks, "networks"),
            (found.volumes, "volumes"),
            (found.directories, "directories"),
        ];
        let things: Vec<String> =
            things.iter().map(|(count, word)| format!("{count} {word}")).collect();
        block.pair(
            "sandboxes",
            Role::Plain,
            &format!("{}: {}", found.sandboxes, things.join(", ")),
        );
    }
}
