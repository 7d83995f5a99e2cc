//! The first row: hosts, counts, the sweep, the clock. What does not fit goes in the order of its importance.

use super::paint::Paint;
use crate::domain::text::{clean_line, columns};
use crate::tui::model::{
    Area, Host, Leaving, Load, Model, Pane, Role, Standing, Sweep, age_of, clock, many,
    standing_glyph, usd,
};

/// Importance of what the header says, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Something is wrong.
    Trouble,
    /// Keys do not do what they do otherwise.
    Mode,
    /// A host that is down, by name; the count says that there is one.
    Name,
    /// Something will be wrong soon.
    Warning,
    /// Figures.
    Count,
    /// The time.
    Clock,
    /// How things are when all is well.
    Calm,
    /// Name of the program.
    Brand,
}

/// A part of the header: shown whole, or not at all.
struct Part {
    weight: Weight,
    spans: Vec<(Role, String)>,
    /// Cells before it.
    gap: usize,
}

impl Part {
    fn new(weight: Weight, gap: usize, role: Role, text: impl Into<String>) -> Self {
        Self { weight, gap, spans: vec![(role, text.into())] }
    }

    fn width(&self) -> usize {
        self.gap + self.spans.iter().map(|(_, text)| columns(text)).sum::<usize>()
    }
}

/// Draws the header.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let mut parts = vec![Part::new(Weight::Brand, 0, Role::Accent, "sandboxer")];
    parts.extend(hosts(model));
    parts.extend(modes(model));
    parts.extend(counts(model));
    parts.extend(credits(model));
    parts.extend(unreadable(model));
    let hub = model.hub_trouble();
    parts.extend(hub.map(|words| Part::new(Weight::Warning, 3, Role::Warn, words)));
    parts.extend(sweep(model));
    let zone =
        model.now.timestamp().to_zoned_datetime(model.zone.clone()).strftime("%Z").to_string();
    let time = format!("{} {zone}", clock(model.now, &model.zone));
    parts.push(Part::new(Weight::Clock, 3, Role::Dim, time));

    let parts = fitting(parts, usize::from(area.width).saturating_sub(2));
    let end = area.x + area.width;
    let mut x = area.x + 1;
    for (at, part) in parts.iter().enumerate() {
        if part.weight == Weight::Clock {
            let width = u16::try_from(part.width() - part.gap).unwrap_or(u16::MAX);
            x = end.saturating_sub(1).saturating_sub(width).max(x);
        } else if at > 0 {
            x += u16::try_from(part.gap).unwrap_or(0);
        }
        x = paint.row(Area { x, width: end.saturating_sub(x), ..area }, &part.spans);
    }
}

/// The parts that fit, the most important first; in the order in which they were.
fn fitting(parts: Vec<Part>, mut room: usize) -> Vec<Part> {
    let mut by_weight: Vec<(usize, Part)> = parts.into_iter().enumerate().collect();
    by_weight.sort_by_key(|(at, part)| (part.weight, *at));
    by_weight.retain(|(_, part)| {
        let fits = part.width() <= room;
        room -= if fits { part.width() } else { 0 };
        fits
    });
    by_weight.sort_by_key(|(at, _)| *at);
    by_weight.into_iter().map(|(_, part)| part).collect()
}

/// The jobs that are waited for before it leaves, if it does.
pub(super) fn leaving(model: &Model) -> Option<String> {
    let word = match model.leaving? {
        Leaving::Waiting => "leaving after",
        Leaving::Cancelling => "cancelling",
    };
    Some(format!("{word} {}", many(model.jobs.running_here().count(), "job", "jobs")))
}

/// How many hosts are how, and those in trouble by name, with since when.
fn hosts(model: &Model) -> Vec<Part> {
    if let Load::Failed(problem) = &model.hosts.load {
        let text = format!("hosts: {}", clean_line(&problem.message, 60));
        return vec![Part::new(Weight::Trouble, 3, Role::Bad, text)];
    }
    if model.hosts.list.is_empty() {
        return Vec::new();
    }
    let now = model.now;
    let of = |standing| model.hosts.list.iter().filter(move |host| host.standing(now) == standing);
    let trouble = of(Standing::Down).chain(of(Standing::Slow)).next().is_some();
    let weight = if trouble { Weight::Trouble } else { Weight::Count };
    let mut parts = vec![Part::new(weight, 3, Role::Dim, "hosts")];
    for (standing, weight) in [
        (Standing::Up, Weight::Count),
        (Standing::Connecting, Weight::Count),
        (Standing::Slow, Weight::Trouble),
        (Standing::Down, Weight::Trouble),
    ] {
        let count = of(standing).count();
        if count == 0 {
            continue;
        }
        let (glyph, role) = standing_glyph(standing);
        let slow = if standing == Standing::Slow { " slow" } else { "" };
        parts.push(Part::new(weight, 1, role, format!("{count} {glyph}{slow}")));
    }
    parts.extend(of(Standing::Down).map(|host| {
        let spans = vec![(Role::Bad, name(host)), (Role::Bad, since(model, host))];
        Part { weight: Weight::Name, gap: 1, spans }
    }));
    parts.extend(of(Standing::Slow).map(|host| {
        let ms = host.view.latency_ms.map(|ms| format!(" {ms}ms")).unwrap_or_default();
        let spans = vec![(Role::Warn, name(host)), (Role::Warn, format!(" slow{ms}"))];
        Part { weight: Weight::Name, gap: 1, spans }
    }));
    parts
}

fn name(host: &Host) -> String {
    clean_line(host.view.name.as_str(), 20)
}

fn since(model: &Model, host: &Host) -> String {
    let since = host.down_since.map(|since| age_of(since, model.now));
    format!(" down{}", since.map(|since| format!(" {since}")).unwrap_or_default())
}

/// Unusual states of this console.
fn modes(model: &Model) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = |role: Role, text: String| {
        parts.push(Part::new(Weight::Mode, 3, role, text));
    };
    if let Some(words) = leaving(model) {
        part(Role::Warn, words);
    }
    if let Some(held) = model.frozen {
        let held = many(usize::try_from(held).unwrap_or(usize::MAX), "change", "changes");
        part(Role::Warn, format!("frozen, {held} held"));
    }
    if model.read_only {
        part(Role::Warn, "read-only".to_owned());
    }
    if !model.listening && model.read_at.is_some() {
        part(Role::Bad, "no events".to_owned());
    }
    parts
}

/// The balance, and what is wrong with it; nothing where no credits were ever granted.
fn credits(model: &Model) -> Vec<Part> {
    let ledger = &model.credits.ledger;
    if ledger.is_empty() {
        return Vec::new();
    }
    if let Load::Failed(_) = &model.credits.load {
        return vec![Part::new(Weight::Trouble, 3, Role::Bad, "credits: unreadable".to_owned())];
    }
    let balance = usd(ledger.sums.balance_usd);
    match ledger.warning() {
        Some(warning) => {
            vec![Part::new(Weight::Warning, 3, Role::Warn, format!("{balance} {warning}"))]
        }
        None => vec![Part::new(Weight::Count, 3, Role::Plain, balance)],
    }
}

/// Records that could not be read at the last try, and whose pane does not say so.
fn unreadable(model: &Model) -> impl Iterator<Item = Part> {
    // Snapshots are read with the sandboxes that they are of: the list says what is wrong with these.
    let snapshots = matches!(model.snapshots.load, Load::Failed(_))
        && model.screen().rows(Pane::Snapshots).height == 0
        && !matches!(model.sandboxes.load, Load::Failed(_));
    let operations = model.activity.operations_problem.is_some();
    [("snapshots", snapshots), ("operations", operations)]
        .into_iter()
        .filter(|(_, failed)| *failed)
        .map(|(what, _)| Part::new(Weight::Trouble, 3, Role::Bad, format!("{what}: unreadable")))
}

/// How many sandboxes there are of each kind.
fn counts(model: &Model) -> Vec<Part> {
    if model.sandboxes.load != Load::Ready && model.sandboxes.is_empty() {
        return Vec::new();
    }
    let counts = model.sandboxes.counts();
    let live = if counts.live == 0 { Role::Dim } else { Role::Title };
    let mut parts = vec![Part::new(Weight::Count, 3, live, format!("{} live", counts.live))];
    for (count, word, role, weight) in [
        (counts.failed, "failed", Role::Bad, Weight::Trouble),
        (counts.lost, "lost", Role::Bad, Weight::Trouble),
        (counts.degraded, "degraded", Role::Warn, Weight::Trouble),
        (model.stale.count(), "stale", Role::Warn, Weight::Warning),
        (counts.expiring, "expiring", Role::Warn, Weight::Warning),
    ] {
        if count > 0 {
            parts.push(Part::new(weight, 2, role, format!("{count} {word}")));
        }
    }
    parts
}

/// Whether this console ends what has expired.
fn sweep(model: &Model) -> Vec<Part> {
    match &model.sweep {
        Sweep::On => vec![Part::new(Weight::Calm, 3, Role::Dim, "sweep on")],
        Sweep::Off => vec![Part::new(Weight::Calm, 3, Role::Dim, "sweep off")],
        Sweep::Paused(reason) => {
            let reason = format!(": {}", clean_line(reason, 40));
            vec![
                Part::new(Weight::Warning, 3, Role::Warn, "sweep paused"),
                Part::new(Weight::Calm, 0, Role::Warn, reason),
            ]
        }
    }
}
