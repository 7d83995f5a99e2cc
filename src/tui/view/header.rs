//! The first row: every host's state, counts, the clock.

use super::paint::Paint;
use crate::domain::text::columns;
use crate::tui::model::{Area, Host, Leaving, Load, Model, Role, Standing, age, clock, many};

/// Draws the header.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let roomy = area.width >= 72;
    let brand = if roomy { " sandboxer  " } else { " " };
    let left = paint.spans(area.x, area.y, area.width, &[(Role::Accent, brand)]);
    let right = right_side(model, roomy);
    let needed: usize = right.iter().map(|(_, text)| columns(text)).sum();
    let needed = u16::try_from(needed).unwrap_or(u16::MAX).min(area.width);
    let start = area.x + area.width - needed;
    hosts(model, paint, Area { x: left, width: start.saturating_sub(left + 2), ..area });
    if start >= left {
        let spans: Vec<(Role, &str)> =
            right.iter().map(|(role, text)| (*role, text.as_str())).collect();
        paint.spans(start, area.y, needed, &spans);
    }
}

/// The jobs that are waited for before it leaves, if it does.
pub(super) fn leaving(model: &Model) -> Option<String> {
    let word = match model.leaving? {
        Leaving::Waiting => "leaving after",
        Leaving::Cancelling => "cancelling",
    };
    Some(format!("{word} {}", many(model.jobs.running_here().count(), "job", "jobs")))
}

/// Counts and clock, what matters least first.
fn right_side(model: &Model, roomy: bool) -> Vec<(Role, String)> {
    let counts = model.sandboxes.counts();
    let mut parts = Vec::new();
    parts.extend(leaving(model).map(|words| (Role::Warn, format!("{words}  "))));
    if let Some(held) = model.frozen {
        let held = many(usize::try_from(held).unwrap_or(usize::MAX), "change", "changes");
        parts.push((Role::Warn, format!("frozen, {held} held  ")));
    }
    if model.read_only {
        parts.push((Role::Warn, "read-only  ".to_owned()));
    }
    if !model.listening && model.read_at.is_some() {
        parts.push((Role::Bad, "no events  ".to_owned()));
    }
    if model.sandboxes.load == Load::Ready || !model.sandboxes.is_empty() {
        let live = if counts.live == 0 { Role::Dim } else { Role::Title };
        parts.push((live, format!("{} live  ", counts.live)));
        for (count, word, role) in [
            (counts.degraded, "degraded", Role::Warn),
            (counts.failed, "failed", Role::Bad),
            (counts.lost, "lost", Role::Warn),
        ] {
            if count > 0 {
                parts.push((role, format!("{count} {word}  ")));
            }
        }
    }
    if roomy {
        let zone =
            model.now.timestamp().to_zoned_datetime(model.zone.clone()).strftime("%Z").to_string();
        parts.push((Role::Dim, format!("{} {zone} ", clock(model.now, &model.zone))));
    }
    parts
}

/// Each host with its state; if they do not fit, how many there are of each, and those that are down by name while there is room.
fn hosts(model: &Model, paint: &mut Paint<'_>, area: Area) {
    if let Load::Failed(problem) = &model.hosts.load {
        paint.put(area.x, area.y, area.width, &format!("hosts: {}", problem.message), Role::Bad);
        return;
    }
    let shown: Vec<[(Role, String); 2]> =
        model.hosts.list.iter().map(|host| one(model, host)).collect();
    let needed: usize = shown
        .iter()
        .map(|parts| parts.iter().map(|(_, text)| columns(text)).sum::<usize>() + 2)
        .sum();
    if needed <= usize::from(area.width) + 2 {
        let mut x = area.x;
        for [(name_role, name), (role, state)] in &shown {
            let room = (area.x + area.width).saturating_sub(x);
            x = paint.spans(
                x,
                area.y,
                room,
                &[(*name_role, name), (*role, state), (Role::Plain, "  ")],
            );
        }
        return;
    }
    let count = |standing: Standing| {
        model.hosts.list.iter().filter(|host| host.standing(model.now) == standing).count()
    };
    let mut spans = vec![(Role::Dim, "hosts ".to_owned())];
    for (standing, glyph, role) in [
        (Standing::Up, "●", Role::Good),
        (Standing::Slow, "● slow", Role::Warn),
        (Standing::Connecting, "◌", Role::Busy),
    ] {
        if count(standing) > 0 {
            spans.push((role, format!("{glyph} {}  ", count(standing))));
        }
    }
    let used: usize = spans.iter().map(|(_, text)| columns(text)).sum();
    let down = model.hosts.list.iter().filter(|host| host.standing(model.now) == Standing::Down);
    let named: Vec<_> = down
        .flat_map(|host| one(model, host).into_iter().chain([(Role::Plain, "  ".to_owned())]))
        .collect();
    let needed: usize = named.iter().map(|(_, text)| columns(text)).sum();
    if used + needed <= usize::from(area.width) + 2 {
        spans.extend(named);
    } else {
        spans.push((Role::Bad, format!("✗ {}", count(Standing::Down))));
    }
    let spans: Vec<(Role, &str)> =
        spans.iter().map(|(role, text)| (*role, text.as_str())).collect();
    paint.spans(area.x, area.y, area.width, &spans);
}

fn one(model: &Model, host: &Host) -> [(Role, String); 2] {
    let name = crate::domain::text::clean_line(host.view.name.as_str(), 20);
    let ms = host.view.latency_ms;
    let state = match host.standing(model.now) {
        Standing::Up => (
            Role::Good,
            format!(
                "●{}",
                ms.filter(|_| !host.view.name.is_local())
                    .map(|ms| format!(" {ms}ms"))
                    .unwrap_or_default()
            ),
        ),
        Standing::Slow => {
            (Role::Warn, format!("● slow{}", ms.map(|ms| format!(" {ms}ms")).unwrap_or_default()))
        }
        Standing::Connecting => (Role::Busy, "◌".to_owned()),
        Standing::Down => {
            let since =
                host.down_since.map(|since| model.now.since(since).as_secs()).unwrap_or_default();
            (Role::Bad, format!("✗ {}", age(since)))
        }
        Standing::Forbidden => (Role::Dim, "–".to_owned()),
    };
    let role = if host.standing(model.now) == Standing::Down { Role::Bad } else { Role::Plain };
    [(role, format!("{name} ")), state]
}
