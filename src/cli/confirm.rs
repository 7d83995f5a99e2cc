//! Destructive verbs ask on a terminal; off a terminal they proceed only when what they mean is beyond doubt.
//!
//! A terminal it is when standard input is one and there is no `--json` (contract 4). The question goes to `/dev/tty`,
//! wherever stderr leads, and only what is typed after it answers it.

use std::time::Duration;

use futures_util::StreamExt as _;

use super::bulk::Target;
use super::output::{CliError, Context};
use super::tty::Tty;
use crate::domain::Code;
use crate::domain::error::Error;
use crate::present::question::Subjects;

/// Pause before the terminal is asked again for an answer.
const PAUSE: Duration = Duration::from_millis(30);

/// Act that is about to be done.
pub(super) struct Question<'a> {
    /// `destroy`, `forget`, `recreate`.
    pub verb: &'a str,
    /// Warnings to be known before that is answered.
    pub note: Option<String>,
    /// To what.
    pub about: Subjects,
    /// `--yes`.
    pub yes: bool,
    /// Why this needs `--yes` off a terminal; none: it does not.
    pub needs_yes: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Consent {
    Given,
    Ask,
    Refused,
}

fn consent(yes: bool, terminal: bool, needs_yes: bool) -> Consent {
    match (yes, terminal, needs_yes) {
        (true, _, _) | (false, false, false) => Consent::Given,
        (false, true, _) => Consent::Ask,
        (false, false, true) => Consent::Refused,
    }
}

/// Why targets need `--yes` off a terminal: a flag that is set, else a reference that is only the beginning of the id that it
/// names; `of` is the id and the name of a target.
pub(super) fn needs_yes<T>(
    targets: &[Target<T>],
    flags: [(bool, &str); 2],
    of: impl Fn(&T) -> (&str, Option<&str>),
) -> Option<String> {
    if let Some((_, flag)) = flags.into_iter().find(|(is_set, _)| *is_set) {
        return Some(flag.to_owned());
    }
    targets.iter().find_map(|(typed, target)| {
        let (id, name) = of(target.as_ref().ok()?);
        (typed != id && name != Some(typed)).then(|| format!("'{typed}', the beginning of {id},"))
    })
}

/// Returns when the verb may go on; the answer is whether somebody was asked.
///
/// Errors: `usage` off a terminal where `--yes` is needed, and on one that cannot be asked on; `cancelled` when the answer
/// is no, or Ctrl-C.
pub(super) async fn allow(
    context: &mut Context<'_>,
    question: &Question<'_>,
) -> Result<bool, CliError> {
    let terminal = context.io.terminals.stdin && !context.options.json;
    match consent(question.yes, terminal, question.needs_yes.is_some()) {
        Consent::Given => Ok(false),
        Consent::Refused => {
            let why = question.needs_yes.as_deref().unwrap_or_default();
            Err(Error::new(Code::Usage, format!("{why} needs --yes where nobody can be asked"))
                .into())
        }
        Consent::Ask if question.about.lines.is_empty() => Ok(false),
        Consent::Ask => ask(context, question).await.map(|()| true),
    }
}

async fn ask(context: &mut Context<'_>, question: &Question<'_>) -> Result<(), CliError> {
    let text = wording(context, question);
    let opened = (context.io.tty)().and_then(|mut tty| tty.ask(&text).map(|()| tty));
    // Standard input is a terminal, so somebody may be there who was to be asked: that is no leave to go on.
    let mut tty = opened.map_err(|error| unasked(question, &error))?;
    let answer = tokio::select! {
        answer = answer(tty.as_mut()) => answer,
        Some(()) = context.io.interrupts.next() => String::new(),
    };
    if !answer.ends_with('\n') {
        tty.end_line();
    }
    // A line that has no end is of somebody who was cut off.
    if answer.ends_with(['\n', '\r'])
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    {
        return Ok(());
    }
    Err(Error::new(Code::Cancelled, "nothing was changed").into())
}

/// Answer that was typed. Neither the end of input nor what cannot be read is a yes.
async fn answer(tty: &mut dyn Tty) -> String {
    loop {
        match tty.answer() {
            Ok(Some(answer)) => return answer,
            Ok(None) => tokio::time::sleep(PAUSE).await,
            Err(_) => return String::new(),
        }
    }
}

fn unasked(question: &Question<'_>, error: &std::io::Error) -> Error {
    let message =
        format!("{} asks on /dev/tty, which cannot be used; nothing was changed", question.verb);
    let problem = Error::new(Code::Usage, message).hint("--yes goes on without asking");
    problem.because(error.to_string())
}

/// The question, with the full id of everything it is about.
fn wording(context: &Context<'_>, question: &Question<'_>) -> String {
    let options = context.options;
    let mut text = String::new();
    for line in &question.about.lines {
        text.push_str("  ");
        text.push_str(&options.clean(line, 400));
        text.push('\n');
    }
    if let Some(note) = &question.note {
        text.push_str(&options.clean(note, 1000));
        text.push('\n');
    }
    let [one, several] = question.about.nouns;
    let what = match question.about.lines.len() {
        1 => format!("this {one}"),
        many => format!("these {many} {several}"),
    };
    format!("{text}{} {what}? [y/N] ", capital(question.verb))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_goes_a_terminal_asks_and_a_script_must_be_exact() {
        for (yes, terminal, needs_yes, expected) in [
            (true, true, true, Consent::Given),
            (true, false, true, Consent::Given),
            (false, true, false, Consent::Ask),
            (false, true, true, Consent::Ask),
            (false, false, false, Consent::Given),
            (false, false, true, Consent::Refused),
        ] {
            assert_eq!(consent(yes, terminal, needs_yes), expected, "{yes} {terminal} {needs_yes}");
        }
    }
}
