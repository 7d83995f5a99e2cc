//! The command line as it was typed, read: a [`Cli`], or why there is nothing to run.

use std::ffi::OsString;

use clap::FromArgMatches as _;

use super::args::{Cli, Command, DashboardArgs, command};
use super::complete;
use super::usage::{ParseOutcome, outcome};

/// Reads the command line; `args` begins with the program's name.
///
/// Errors: help and version texts, and wrong usage; [`ParseOutcome::finish`] prints either and says the status.
pub fn parse<I, T>(args: I) -> Result<Cli, ParseOutcome>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString>,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if let [_, verb, words @ ..] = args.as_slice()
        && verb == complete::VERB
    {
        let (typed, global) = complete::read(words);
        return Ok(Cli {
            global,
            dashboard: DashboardArgs::default(),
            command: Some(Command::Complete(typed)),
        });
    }
    let read =
        command().try_get_matches_from(&args).and_then(|matches| Cli::from_arg_matches(&matches));
    let mut cli = read.map_err(|error| outcome(&error, &args))?;
    match cli.settle_dashboard() {
        Some(problem) => Err(ParseOutcome::usage(problem, cli.global.json)),
        None => Ok(cli),
    }
}
