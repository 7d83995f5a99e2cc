//! The command-line face: a clap tree ([`args`]), a short function per verb, and one reply shown two ways.
//!
//! [`parse`] reads the arguments, [`alone`] does what needs no client, [`run`] everything else through a [`Client`];
//! both return the exit status. Nothing here knows how a sandbox is made, and nothing spawns a task.

mod adopt;
pub mod args;
pub mod examples;

mod bulk;
mod complete;
mod confirm;
mod create;
mod credits;
mod destroy;
mod doctor;
mod document;
mod events;
mod exec;
mod extend;
mod extensions;
mod flush;
mod global;
mod hosts;
mod input;
mod inspect;
mod interrupt;
mod label;
mod lineage;
mod local;
mod logs;
mod manual;
mod operations;
mod output;
mod parse;
mod patches;
mod profiles;
mod progress;
mod reap;
mod recover;
mod sandboxes;
mod shell;
mod sleep;
mod snapshot;
mod snapshots;
mod stale;
mod sweep;
mod table;
mod tty;
mod usage;
mod values;
mod wait;

use std::sync::Arc;

pub use args::{Cli, DashboardArgs, command};
pub use bulk::BulkItem;
use complete::complete;
pub use exec::ExecResult;
pub use global::Global;
pub use lineage::SandboxDetail;
pub use local::Local;
pub use logs::LogEntry;
pub use output::{ErrorLine, Io, ProgressLine, Terminals};
pub use parse::parse;
pub use tty::Tty;
pub use usage::ParseOutcome;

use args::{
    Command, EventsCommand, ExtensionsCommand, HostsCommand, InspectCommand, OperationsCommand,
    ProfilesCommand,
};
use output::{CliError, Context, Outcome, OutputOptions};

use crate::client::problem::exit_status;
use crate::client::{Client, Error};
use crate::domain::Code;

/// Does what the command line says if that needs no data directory, and refuses what this version lacks; the exit status. None:
/// [`run`] does it. `client` is for a word that is completed: it may have none.
pub async fn alone(
    cli: &Cli,
    client: impl FnOnce() -> Option<Arc<dyn Client>>,
    local: &Local<'_>,
    io: &mut Io,
) -> Option<u8> {
    if let Some(status) = complete(cli, client, io).await {
        return Some(status);
    }
    let options = OutputOptions::of(&cli.global, io);
    let mut context = Context { client: &(), io, options, global: &cli.global };
    let outcome = match &cli.command {
        Some(Command::Doctor(args)) => doctor::doctor(&mut context, args, local).await,
        Some(Command::Completions(args)) => manual::completions(&mut context, args),
        Some(Command::Man(args)) => manual::man(&mut context, args),
        _ => Err(unsupported(&cli.global)?.into()),
    };
    Some(end(cli, io, outcome))
}

/// Does what the command line says, if [`alone`] did not, and returns the exit status.
///
/// Whoever calls it closes the client afterwards, except when [`Io::leave_at_once`] is set: then nobody may be
/// waited for.
pub async fn run(cli: Cli, client: Arc<dyn Client>, local: &Local<'_>, io: &mut Io) -> u8 {
    let options = OutputOptions::of(&cli.global, io);
    let outcome = {
        let mut context = Context { client: client.as_ref(), io, options, global: &cli.global };
        dispatch(&mut context, cli.command.as_ref(), local).await
    };
    end(&cli, io, outcome)
}

/// Writes out what is left to write, shows what went wrong; the exit status.
fn end(cli: &Cli, io: &mut Io, outcome: Outcome) -> u8 {
    let outcome = outcome.and_then(|status| match io.stdout.flush().map_err(CliError::from) {
        // It ended as it ended, whether or not anybody read the rest.
        Ok(()) | Err(CliError::PipeClosed) => Ok(status),
        Err(unwritten) => Err(unwritten),
    });
    match outcome {
        Ok(status) => status,
        Err(CliError::PipeClosed) => 0,
        Err(CliError::Error(problem)) => report(&problem, cli, io),
    }
}

/// Shows an error and returns the exit status. Also for one that came before [`run`] (a configuration that cannot
/// be read, say).
pub fn report(problem: &Error, cli: &Cli, io: &mut Io) -> u8 {
    output::error(io, OutputOptions::of(&cli.global, io), problem);
    match &cli.command {
        // Any other status is the command's own.
        Some(Command::Exec(_)) if problem.code != Code::Cancelled => exec::OURS,
        _ => exit_status(&problem.code),
    }
}

/// Flag that is asked for and not there yet: `unsupported` for `--server`.
fn unsupported(global: &Global) -> Option<Error> {
    global.server.as_ref()?;
    let problem =
        Error::new(Code::Unsupported, "--server comes with the server, which this version lacks");
    Some(problem.hint("without --server the command works on this machine's own records"))
}

async fn dispatch(
    context: &mut Context<'_>,
    command: Option<&Command>,
    local: &Local<'_>,
) -> Outcome {
    match command {
        None => nothing(context),
        Some(Command::Dashboard(_)) => {
            Err(Error::new(Code::Usage, "the dashboard needs a terminal").into())
        }
        Some(Command::Create(args)) => create::create(context, args).await,
        Some(Command::List(args)) => sandboxes::list(context, args).await,
        Some(Command::Get(args)) => sandboxes::get(context, &args.id).await,
        Some(Command::Destroy(args)) => destroy::destroy(context, args).await,
        Some(Command::Recreate(args)) => destroy::recreate(context, args).await,
        Some(Command::Sleep(args)) => sleep::sleep(context, args).await,
        Some(Command::Wake(args)) => sleep::wake(context, args).await,
        Some(Command::Snapshot(args)) => snapshot::snapshot(context, args).await,
        Some(Command::Restore(args)) => snapshot::restore(context, args).await,
        Some(Command::Undo(args)) => snapshot::undo(context, args).await,
        Some(Command::Snapshots(command)) => snapshots::snapshots(context, command).await,
        Some(Command::Patches(command)) => patches::patches(context, command).await,
        Some(Command::Wait(args)) => wait::wait(context, args).await,
        Some(Command::Extend(args)) => extend::extend(context, args).await,
        Some(Command::Label(args)) => label::label(context, args).await,
        Some(Command::Exec(args)) => exec::exec(context, args).await,
        Some(Command::Shell(args)) => shell::shell(context, args).await,
        Some(Command::Logs(args)) => logs::logs(context, args).await,
        Some(Command::Profiles(ProfilesCommand::List)) => profiles::list(context).await,
        Some(Command::Profiles(ProfilesCommand::Show { id })) => profiles::show(context, id).await,
        Some(Command::Profiles(ProfilesCommand::Validate { files })) => {
            profiles::validate(context, files, local)
        }
        Some(Command::Extensions(ExtensionsCommand::List)) => extensions::list(context).await,
        Some(Command::Extensions(ExtensionsCommand::Show { id })) => {
            extensions::show(context, id).await
        }
        Some(Command::Inspect(InspectCommand::Host { hosts })) => {
            inspect::host(context, hosts).await
        }
        Some(Command::Inspect(InspectCommand::Stale(args))) => stale::inspect(context, args).await,
        Some(Command::ReapStale(args)) => reap::reap(context, args).await,
        Some(Command::Hosts(HostsCommand::List)) => hosts::list(context).await,
        Some(Command::Hosts(HostsCommand::Check { hosts, deep })) => {
            hosts::check(context, hosts, *deep).await
        }
        Some(Command::Operations(OperationsCommand::List)) => operations::list(context).await,
        Some(Command::Operations(OperationsCommand::Get { id })) => {
            operations::get(context, id).await
        }
        Some(Command::Operations(OperationsCommand::Cancel { id })) => {
            operations::cancel(context, id).await
        }
        Some(Command::Credits { command }) => credits::credits(context, command.as_ref()).await,
        Some(Command::Events(args)) => match args.command {
            None => events::events(context, args).await,
            Some(EventsCommand::Flush) => flush::flush(context).await,
        },
        Some(Command::Sweep) => sweep::sweep(context).await,
        Some(Command::Adopt(args)) => adopt::adopt(context, args).await,
        Some(Command::Import(args)) => adopt::import(context, args).await,
        Some(Command::Recover) => recover::recover(context).await,
        // Done by `alone`.
        Some(
            Command::Doctor(_) | Command::Completions(_) | Command::Man(_) | Command::Complete(_),
        ) => Ok(0),
    }
}

/// No command and no terminal: the help, and the status of wrong usage.
fn nothing(context: &mut Context<'_>) -> Outcome {
    let problem = Error::new(Code::Usage, "no command, and no terminal for the dashboard")
        .hint("sandboxer --help");
    if context.options.json {
        return Err(problem.into());
    }
    let help = command().render_help();
    let _ = write!(context.io.stderr, "{help}");
    Ok(exit_status(&problem.code))
}
