//! Overlays that are read: details, a job's output, help, an error.

use super::paint::Paint;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Job, Model, Overlay, Role, age};

/// Draws one.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, overlay: &Overlay) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let Some(block) = model.block_of(overlay) else { return };
    let key = |action| model.keymap.first(Mode::TextBlock, action).unwrap_or_default();
    let height = usize::from(area.height);
    let last = block.last_offset(height);
    let mut hints = vec![(key(Action::Close), "close")];
    let (title, offset) = match overlay {
        Overlay::Details(details) => {
            hints.extend([
                (key(Action::Logs), "logs"),
                (key(Action::Search), "search"),
                (key(Action::Raw), "raw"),
                (key(Action::Host), "host"),
                (key(Action::CopyId), "copy id"),
                (key(Action::CopySsh), "copy ssh"),
            ]);
            if !model.read_only && !details.record.state.is_over() {
                hints.extend([
                    (key(Action::Shell), "shell"),
                    (key(Action::Labels), "labels"),
                    (key(Action::Destroy), "destroy"),
                    (key(Action::Recreate), "rebuild"),
                    (key(Action::Snapshot), "snapshot"),
                ]);
            }
            let record = &details.record;
            let name = record.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            (format!("{}{name} on {}", record.id, record.host), details.offset)
        }
        Overlay::Snapshot(details) => {
            hints.extend([
                (key(Action::Restore), "restore"),
                (key(Action::Patches), "patches"),
                (key(Action::Search), "search"),
                (key(Action::Raw), "raw"),
                (key(Action::CopyId), "copy id"),
            ]);
            if !model.read_only {
                hints.push((key(Action::Destroy), "delete"));
            }
            let record = &details.view.record;
            let name = record.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            (format!("{}{name} on {}", record.id, record.host), details.offset)
        }
        Overlay::Text(page) => {
            hints.push((key(Action::CopyId), "copy"));
            (page.title.clone(), page.offset)
        }
        Overlay::Host(host) => {
            hints.push((key(Action::Raw), "as YAML"));
            (format!("Host {}", host.name), host.offset)
        }
        Overlay::Output(id, offset) => {
            let job = model.jobs.get(*id);
            if job.is_some_and(Job::is_running) {
                hints.push((key(Action::CancelJob), "cancel"));
            }
            (job.map(|job| output_title(model, job)).unwrap_or_default(), offset.unwrap_or(last))
        }
        Overlay::Help(offset) => ("Keys".to_owned(), *offset),
        Overlay::Error(problem, offset) => {
            if let Some(job) = model.jobs.of_problem(problem) {
                hints.push((key(Action::Logs), "its output"));
                hints.extend(model.way_without_undo(job).map(|(action, what)| (key(action), what)));
            }
            hints.push((key(Action::CopyId), "copy"));
            ("Error".to_owned(), *offset)
        }
        _ => (String::new(), 0),
    };
    if last > 0 {
        hints.push((format!("{} {}", key(Action::Down), key(Action::Up)), "scroll"));
        if !matches!(overlay, Overlay::Details(_) | Overlay::Snapshot(_)) {
            hints.push((key(Action::Search), "search"));
        }
    }
    paint.overlay(outer, &title, &hints);
    for (row, line) in block.lines.iter().skip(offset).take(height).enumerate() {
        paint.line(area, area.y + u16::try_from(row).unwrap_or(u16::MAX), line);
    }
    if last > 0 {
        let end = (offset + height).min(block.lines.len());
        let place = format!(" {end}/{} ", block.lines.len());
        paint.put_right(area, outer.y, &place, Role::Dim);
    }
}

fn output_title(model: &Model, job: &Job) -> String {
    let state = job.state.word();
    format!("{} {}: {state}, {}", job.kind, job.title, age(job.seconds(model.now)))
}
