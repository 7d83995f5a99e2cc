//! Files that packagers install: completion scripts and manual pages, made from the clap tree.

use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::output::{CliError, Context, Outcome};
use super::{complete, examples};
use crate::client::problem::codes_by_exit_status;
use crate::domain::Code;
use crate::domain::error::Error;

pub(super) fn completions(context: &mut Context<'_, ()>, args: &CompletionsArgs) -> Outcome {
    no_json(context, "a completion script")?;
    context.io.stdout.write_all(&complete::script(args.shell))?;
    Ok(0)
}

pub(super) fn man(context: &mut Context<'_, ()>, args: &ManArgs) -> Outcome {
    no_json(context, "a manual page")?;
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        write_page(Cli::command(), "", &mut page)?;
        context.io.stdout.write_all(&page)?;
        return Ok(0);
    };
    write_pages(dir).map_err(|error| {
        let message = format!("the manual pages cannot be written to {}", dir.display());
        let mut problem = Error::new(Code::InvalidInput, message);
        problem.causes.push(error.to_string());
        problem
    })?;
    context.remark(&format!("the manual pages are in {}", dir.to_string_lossy()));
    Ok(0)
}

/// Environment variables, as the manual tells them.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("SANDBOXER_CONFIG", "The configuration file, as --config."),
    ("SANDBOXER_DATA_DIR", "Where records, events and locks are kept, as --data-dir."),
    ("SANDBOXER_ACTOR", "Who acts, as --actor."),
    ("SANDBOXER_HOST", "The host of a create that names none, before the profile's list."),
    ("SANDBOXER_COMPOSE_CMD", "The compose command on hosts whose configuration names none."),
    ("SANDBOXER_LOG", "What is logged, such as sandboxer=debug."),
    (
        "XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME",
        "In place of ~/.config, ~/.local/share and ~/.local/state.",
    ),
    (
        "NO_COLOR, TERM, LC_ALL, LC_CTYPE, LANG",
        "No colours with NO_COLOR or TERM=dumb; ASCII alone where the locale is not UTF-8.",
    ),
];

/// Files, as the manual tells them.
const FILES: [(&str, &str); 5] = [
    ("~/.config/sandboxer/config.yaml", "The configuration; it need not be there."),
    (
        "~/.config/sandboxer/profiles/, ~/.config/sandboxer/extensions/",
        "The operator's own. One with the id of a shipped one takes its place.",
    ),
    ("~/.local/share/sandboxer/", "Records, events, locks: the data directory."),
    ("~/.local/state/sandboxer/sandboxer.log", "The log: 10 MiB, five kept."),
    (
        "<workspace_root>/sbx-<id>/",
        "A sandbox on its host; the root is ~/sandboxes where the configuration names none.",
    ),
];

/// Statuses beside those that a code has.
const STATUSES: [(&str, &str); 4] = [
    ("0", "Done, also when there was nothing to do."),
    ("125", "exec only: sandboxer itself failed. Any other status of exec is the command's."),
    ("128+n", "exec and shell: the command was ended by signal n."),
    ("141", "exec, logs, export: nobody reads the output any more."),
];

/// A page, and those of the commands below it.
fn write_pages(dir: &Path) -> std::io::Result<()> {
    fn each(command: &clap::Command, verbs: &str, dir: &Path) -> std::io::Result<()> {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            each(sub, format!("{verbs} {}", sub.get_name()).trim_start(), dir)?;
        }
        let mut page = Vec::new();
        write_page(command.clone(), verbs, &mut page)?;
        let name = format!("sandboxer {verbs}").trim_end().replace(' ', "-");
        std::fs::write(dir.join(format!("{name}.1")), page)
    }
    std::fs::create_dir_all(dir)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    each(&command, "", dir)
}

/// The page of a command; the program's own has what is so of all of them.
fn write_page(command: clap::Command, verbs: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    Man::new(command).render(page)?;
    let mut roff = Roff::new();
    if verbs.is_empty() {
        let codes = codes_by_exit_status().into_iter().map(|(status, codes)| {
            let codes: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
            (status.to_string(), codes.join(", "))
        });
        let own = STATUSES.iter().map(|(status, text)| ((*status).to_owned(), (*text).to_owned()));
        let mut statuses: Vec<_> = codes.chain(own).collect();
        statuses.sort_by_key(|(status, _)| {
            status.trim_end_matches("+n").parse::<u32>().unwrap_or_default()
        });
        section(
            &mut roff,
            "EXIT STATUS",
            statuses.iter().map(|(status, text)| (status.as_str(), text.as_str())),
        );
        section(&mut roff, "ENVIRONMENT", ENVIRONMENT.into_iter());
        section(&mut roff, "FILES", FILES.into_iter());
    }
    let examples = examples::of(verbs);
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples {
            roff.text([roman(*line)]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(page)
}

fn section<'a>(roff: &mut Roff, title: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    roff.control("SH", [title]);
    for (term, text) in rows {
        roff.control("TP", []).text([bold(term)]).text([roman(text)]);
    }
}

fn no_json(context: &Context<'_, ()>, what: &str) -> Result<(), CliError> {
    if context.options.json {
        return Err(Error::new(Code::Usage, format!("{what} is no JSON"))
            .hint("leave --json out")
            .into());
    }
    Ok(())
}
