//! The command-line face: a clap tree ([`args`]), a short function per verb, and one reply shown two ways.
//!
//! [`parse`] reads the arguments, [`run`] does what they say through a [`Client`] and returns the exit status.
//! Nothing here knows how a sandbox is made, and nothing spawns.

pub mod args;

mod confirm;
mod create;
mod destroy;
mod events;
mod extensions;
mod hosts;
mod interrupt;
mod output;
mod profiles;
mod progress;
mod record;
mod sandboxes;
mod table;
mod usage;
mod values;
mod wait;

use std::path::Path;

pub use args::{Cli, DashboardArgs, Global, command, parse};
pub use destroy::BulkItem;
pub use output::{ErrorLine, Io, ProgressLine, Terminals};
pub use usage::ParseOutcome;
pub use values::{Pair, Since};

use args::{Command, ExtensionsCommand, HostsCommand, ProfilesCommand};
use output::{Face, Look, Outcome, Stop};

use crate::client::{Client, Problem};
use crate::domain::Code;

/// What a command does without a client, on this machine's files.
pub struct Local<'a> {
    /// Checks one profile (or extension) file. Error: `invalid_profile`, one cause for each thing that is wrong.
    pub validate_profile: &'a dyn Fn(&Path) -> Result<(), Problem>,
}

/// Does what the command line says and returns the exit status.
///
/// Whoever calls it closes the client afterwards, except when [`Io::leave_at_once`] is set: then nobody may be
/// waited for.
pub async fn run(cli: Cli, client: std::sync::Arc<dyn Client>, local: &Local<'_>, io: &mut Io) -> u8 {
    let look = Look::of(&cli.global, io);
    let outcome = {
        let mut face = Face { client: client.as_ref(), io, look, global: &cli.global };
        dispatch(&mut face, cli.command, local).await
    };
    let outcome = outcome.and_then(|status| Ok(io.stdout.flush().map(|()| status)?));
    match outcome {
        Ok(status) => status,
        Err(Stop::PipeClosed) => 0,
        Err(Stop::Problem(problem)) => {
            output::error(io, look, &problem);
            problem.exit_status()
        }
    }
}

/// Shows an error that came before [`run`] (a configuration that cannot be read, say) and returns the exit status.
pub fn report(problem: &Problem, global: &Global, io: &mut Io) -> u8 {
    output::error(io, Look::of(global, io), problem);
    problem.exit_status()
}

/// What is asked for and not there yet: `unsupported` for `--server`. To be asked before a store is opened.
pub fn unsupported(global: &Global) -> Option<Problem> {
    global.server.as_ref()?;
    let problem = Problem::new(Code::Unsupported, "--server comes with the server, which this version lacks");
    Some(problem.hint("without --server the command works on this machine's own records"))
}

async fn dispatch(face: &mut Face<'_>, command: Option<Command>, local: &Local<'_>) -> Outcome {
    if let Some(problem) = unsupported(face.global) {
        return Err(problem.into());
    }
    match command {
        None => nothing(face),
        Some(Command::Dashboard(_)) => Err(Problem::new(Code::Usage, "the dashboard needs a terminal").into()),
        Some(Command::Create(args)) => create::create(face, args).await,
        Some(Command::List(args)) => sandboxes::list(face, args).await,
        Some(Command::Get(args)) => sandboxes::get(face, &args.id).await,
        Some(Command::Destroy(args)) => destroy::destroy(face, &args).await,
        Some(Command::Recreate(args)) => destroy::recreate(face, &args).await,
        Some(Command::Wait(args)) => wait::wait(face, &args).await,
        Some(Command::Profiles(ProfilesCommand::List)) => profiles::list(face).await,
        Some(Command::Profiles(ProfilesCommand::Show { id })) => profiles::show(face, &id).await,
        Some(Command::Profiles(ProfilesCommand::Validate { files })) => profiles::validate(face, &files, local),
        Some(Command::Extensions(ExtensionsCommand::List)) => extensions::list(face).await,
        Some(Command::Extensions(ExtensionsCommand::Show { id })) => extensions::show(face, &id).await,
        Some(Command::Hosts(HostsCommand::List)) => hosts::list(face).await,
        Some(Command::Hosts(HostsCommand::Check { hosts, deep })) => hosts::check(face, &hosts, deep).await,
        Some(Command::Events(args)) => events::events(face, &args).await,
    }
}

/// No command and no terminal: the help, and the status of wrong usage.
fn nothing(face: &mut Face<'_>) -> Outcome {
    let problem = Problem::new(Code::Usage, "no command, and no terminal for the dashboard").hint("sandboxer --help");
    if face.look.json {
        return Err(problem.into());
    }
    let help = command().render_help();
    let _ = write!(face.io.stderr, "{help}");
    Ok(problem.exit_status())
}
