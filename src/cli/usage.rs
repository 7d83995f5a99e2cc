//! Clap's words as our own outcome: help on stdout, wrong usage as a problem of code `usage`.

use std::ffi::OsString;
use std::io;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::exec;
use super::output::{self, Io, OutputOptions};
use crate::client::problem::exit_status;
use crate::domain::Code;
use crate::domain::error::Error;

/// Why there is nothing to run.
#[derive(Debug)]
pub enum ParseOutcome {
    /// Help or version was asked for.
    Text(Box<clap::builder::StyledStr>),
    /// The command line is wrong.
    Usage {
        /// How.
        problem: Box<Error>,
        /// Whether `--json` is among the arguments, so that the error is JSON too.
        json: bool,
        /// The exit status.
        status: u8,
    },
}

impl ParseOutcome {
    pub(super) fn usage(problem: Error, json: bool) -> Self {
        Self::Usage { status: exit_status(&problem.code), problem: Box::new(problem), json }
    }

    /// Prints it and returns the exit status.
    pub fn finish(&self, io: &mut Io) -> u8 {
        match self {
            Self::Text(text) => {
                let text = if io.terminals.stdout && io.color {
                    text.ansi().to_string()
                } else {
                    text.to_string()
                };
                let written = io.stdout.write_all(text.as_bytes()).and_then(|()| io.stdout.flush());
                match written {
                    // A reader that went away (`--help | head`) is no error.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                        let problem = output::unwritten(error);
                        output::error(io, OutputOptions::default(), &problem);
                        exit_status(&problem.code)
                    }
                    _ => 0,
                }
            }
            Self::Usage { problem, json, status } => {
                let options = OutputOptions { json: *json, ..OutputOptions::default() };
                output::error(io, options, problem);
                *status
            }
        }
    }
}

/// Turns clap's error into ours.
pub(super) fn outcome(error: &clap::Error, args: &[OsString]) -> ParseOutcome {
    let text = error.render();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return ParseOutcome::Text(Box::new(text));
    }
    let verbs = verbs(args);
    let problem = later(error, &verbs).unwrap_or_else(|| problem(&text.to_string(), &verbs));
    let status = if verbs == "sandboxer exec" { exec::OURS } else { exit_status(&problem.code) };
    ParseOutcome::Usage { problem: Box::new(problem), json: asks_for_json(args), status }
}

/// Verbs of the contract that this version does not have. clap's guess would be another verb.
const LATER: [&str; 3] = ["credits", "serve", "extensions check"];

/// The problem of a verb that comes later, if the first word that clap does not know is one.
fn later(error: &clap::Error, verbs: &str) -> Option<Error> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    let verb = format!("{verbs} {word}");
    let known = LATER.iter().any(|later| verb.strip_prefix("sandboxer ") == Some(*later));
    let message = format!("`{verb}` is not in this version yet");
    known.then(|| Error::new(Code::Usage, message).hint("`sandboxer --help` lists what is"))
}

/// Whether `--json` is given. Looked for by hand, since clap could not read these arguments.
fn asks_for_json(args: &[OsString]) -> bool {
    args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json")
}

/// The program and the verbs among the arguments, as far as they are known: whose help is meant.
fn verbs(args: &[OsString]) -> String {
    let mut command = super::args::command();
    let mut words = vec!["sandboxer".to_owned()];
    for arg in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        if let Some(verb) = command.find_subcommand(arg) {
            words.push(verb.get_name().to_owned());
            command = verb.clone();
        }
    }
    words.join(" ")
}

/// Reads clap's paragraphs: the sentence, then tips and a usage line.
fn problem(text: &str, verbs: &str) -> Error {
    let mut paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<_> =
            paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join(" ")
    });
    let sentence = paragraphs.next().unwrap_or_default();
    let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence).to_owned();
    let tips: Vec<_> =
        paragraphs.filter_map(|text| text.strip_prefix("tip: ").map(str::to_owned)).collect();
    let hint = if tips.is_empty() {
        format!("{verbs} --help")
    } else {
        tips.join("; ").replace(" tip: ", "; ")
    };
    Error::new(Code::Usage, sentence).hint(hint)
}
