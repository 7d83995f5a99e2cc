//! Overlays that are read: details, a job's output, help, an error.

use std::fmt::Display;

use super::paint::Paint;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Job, Model, Overlay, Role, age};

/// Draws one.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, overlay: &Overlay) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let Some(block) = model.block_of(overlay) else { return };
    let key = |action| model.keymap.first(Mode::TextBlock, action).unwrap_or_default();
    let height = usize::from(area.height);
    let last = block.last_offset(height);
    let mut hints = vec![(key(Action::Close), "close")];
    let title = match overlay {
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
            titled(&record.id, record.name.as_ref(), &record.host)
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
            titled(&record.id, record.name.as_ref(), &record.host)
        }
        Overlay::Text(page) => {
            hints.push((key(Action::CopyId), "copy"));
            page.title.clone()
        }
        Overlay::Host(host) => {
            hints.push((key(Action::Raw), "as YAML"));
            format!("Host {}", host.name)
        }
        Overlay::Output(id, _) => {
            let job = model.jobs.get(*id);
            if job.is_some_and(Job::is_running) {
                hints.push((key(Action::CancelJob), "cancel"));
            }
            job.map(|job| output_title(model, job)).unwrap_or_default()
        }
        Overlay::Help(_) => "Keys".to_owned(),
        Overlay::Error(problem, _) => {
            if let Some(job) = model.jobs.of_problem(problem) {
                hints.push((key(Action::Logs), "its output"));
                hints.extend(model.way_without_undo(job).map(|(action, what)| (key(action), what)));
            }
            hints.push((key(Action::CopyId), "copy"));
            "Error".to_owned()
        }
        _ => String::new(),
    };
    let offset = overlay.offset(last);
    if last > 0 {
        hints.push((format!("{} {}", key(Action::Down), key(Action::Up)), "scroll"));
        if !matches!(overlay, Overlay::Details(_) | Overlay::Snapshot(_)) {
            hints.push((key(Action::Search), "search"));
        }
    }
    paint.overlay(outer, &title, &hints);
    for (y, line) in (area.y..).zip(block.lines.iter().skip(offset).take(height)) {
        paint.row(Area { y, ..area }, line);
    }
    if last > 0 {
        let end = (offset + height).min(block.lines.len());
        let place = format!(" {end}/{} ", block.lines.len());
        paint.put_right(area, outer.y, &place, Role::Dim);
    }
}

/// `a1b2c3d4 my-env on bardock`.
fn titled(id: &dyn Display, name: Option<&String>, host: &dyn Display) -> String {
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    format!("{id}{name} on {host}")
}

fn output_title(model: &Model, job: &Job) -> String {
    let state = job.state.word();
    format!("{} {}: {state}, {}", job.kind, job.title, age(job.seconds(model.now)))
}
