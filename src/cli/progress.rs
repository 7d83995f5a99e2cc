//! Progress on stderr: a bar on a terminal, a line per step elsewhere, an object a line with `--json`, nothing
//! with `--quiet`.

use std::io::Write as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use super::output::{Context, Io, OutputOptions, ProgressLine};
use crate::client::Update;
use crate::domain::Progress;
use crate::present::bytes;
use crate::present::operation::progress_words;

/// Plain lines within one step come no oftener than this.
const PAUSE: Duration = Duration::from_secs(10);

/// Columns of spinner, bar and spaces. A line that wraps is drawn again and again.
const BAR: usize = 29;

/// Shows what the running operations are at.
pub(super) struct ProgressDisplay {
    options: OutputOptions,
    form: Form,
}

enum Form {
    Silent,
    Json,
    Lines { last: Option<(String, Instant)> },
    Bar { bar: ProgressBar, width: usize },
}

impl ProgressDisplay {
    pub(super) fn new(context: &Context<'_>) -> Self {
        let options = context.options;
        let form =
            match (options.quiet, options.json, context.io.terminals.stderr && context.io.moves) {
                (true, _, _) => Form::Silent,
                (_, true, _) => Form::Json,
                (_, _, true) => {
                    Form::Bar { bar: new_bar(options), width: context.io.width.unwrap_or(80) }
                }
                _ => Form::Lines { last: None },
            };
        Self { options, form }
    }

    /// Whether it wants to be ticked. By hand: the library's own ticker is a thread.
    pub(super) fn moves(&self) -> bool {
        matches!(self.form, Form::Bar { .. })
    }

    pub(super) fn tick(&self) {
        if let Form::Bar { bar, .. } = &self.form {
            bar.tick();
        }
    }

    /// Shows an update, if it is a report of progress.
    pub(super) fn hear(&mut self, io: &mut Io, update: &Update) {
        if let Update::Progress(progress) = update {
            self.show(io, progress);
        }
    }

    fn show(&mut self, io: &mut Io, progress: &Progress) {
        match &mut self.form {
            Form::Silent => {}
            Form::Json => {
                let line = ProgressLine { progress: progress.clone() };
                if let Ok(text) = serde_json::to_string(&line) {
                    let _ = writeln!(io.stderr, "{text}");
                }
            }
            Form::Lines { last } => {
                let step = format!("{} {}", progress.operation, progress.stage);
                let due =
                    last.as_ref().is_none_or(|(known, at)| *known != step || at.elapsed() >= PAUSE);
                if due {
                    *last = Some((step, Instant::now()));
                    let _ = writeln!(
                        io.stderr,
                        "{}",
                        self.options.clean(&progress_words(progress), 400)
                    );
                }
            }
            Form::Bar { bar, width } => {
                match (progress.done, progress.of) {
                    (Some(done), Some(of)) if of > 0 => {
                        bar.set_length(of);
                        bar.set_position(done.min(of));
                    }
                    _ => {
                        bar.set_length(u64::from(progress.steps.max(1)));
                        bar.set_position(u64::from(progress.step.saturating_sub(1)));
                    }
                }
                bar.set_message(
                    self.options.clean(&progress_words(progress), width.saturating_sub(BAR)),
                );
                bar.tick();
            }
        }
    }

    /// Shows how far this process itself has come with moving bytes, which is no operation: no line with `--json`.
    pub(super) fn moved(
        &mut self,
        io: &mut Io,
        subject: &str,
        stage: &str,
        done: u64,
        of: Option<u64>,
    ) {
        let far = of.map(|of| format!(" of {}", bytes(of.max(done)))).unwrap_or_default();
        let text = format!("{subject} {stage} {}{far}", bytes(done));
        match &mut self.form {
            Form::Silent | Form::Json => {}
            Form::Lines { last } => {
                if last.as_ref().is_none_or(|(_, at)| at.elapsed() >= PAUSE) {
                    *last = Some((stage.to_owned(), Instant::now()));
                    let _ = writeln!(io.stderr, "{}", self.options.clean(&text, 400));
                }
            }
            Form::Bar { bar, width } => {
                bar.set_length(of.unwrap_or(done).max(done));
                bar.set_position(done);
                bar.set_message(self.options.clean(&text, width.saturating_sub(BAR)));
                bar.tick();
            }
        }
    }

    /// Takes the bar off the screen, so that a line can be written.
    pub(super) fn clear(&mut self) {
        if let Form::Bar { bar, .. } = &mut self.form {
            bar.finish_and_clear();
            // Another one for what comes: `reset` would draw this one again at once.
            *bar = new_bar(self.options);
        }
    }
}

fn new_bar(options: OutputOptions) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr());
    let (ticks, chars) = if options.ascii {
        ("|/-\\ ", "=> ")
    } else {
        ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ", "━╸─")
    };
    let template = "{spinner} {bar:24} {msg}";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.tick_chars(ticks).progress_chars(chars));
    bar
}
