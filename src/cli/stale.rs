//! `inspect stale`: what records and hosts have and should not.

use super::args::StaleArgs;
use super::bulk::{BulkItem, common_code, complain, end_with};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome};
use super::table;
use crate::client::{Error, StaleItem, StaleQuery};
use crate::domain::Code;
use crate::domain::stale::{HostPass, PassState};
use crate::domain::sweep::HeldBack;
use crate::present::many;
use crate::present::stale::{COLUMNS, held_words, role, sum};

pub(super) async fn inspect(context: &mut Context<'_>, args: &StaleArgs) -> Outcome {
    let client = context.client;
    let query = StaleQuery { hosts: args.hosts.clone(), as_last_seen: false };
    let report = until_interrupted(context, client.stale(query)).await??;
    let unread = Unread::of(&report.hosts, &args.hosts);
    context.reply(&report.items, |context| {
        print_items(context, &report.items)?;
        context.remark(&sum(&report.items, &report.hosts));
        remark_held(context, report.held_back.as_ref());
        Ok(())
    })?;
    unread.conclude(context)
}

/// Says why nothing may be reaped, to a person.
pub(super) fn remark_held(context: &mut Context<'_>, held: Option<&HeldBack>) {
    if let Some(held) = held {
        context.remark(&format!("remark: {}", held_words(held)));
    }
}

/// Prints a row for each item.
pub(super) fn print_items(context: &mut Context<'_>, items: &[StaleItem]) -> Result<(), CliError> {
    if items.is_empty() {
        return Ok(());
    }
    table::print(context, COLUMNS, items, role)
}

/// Hosts that could not be read.
#[derive(Default)]
pub(super) struct Unread {
    hosts: Vec<BulkItem>,
    /// Whether others could.
    some_read: bool,
}

impl Unread {
    /// Hosts that were not read. A forbidden one is not meant to be, unless it was asked for by name.
    pub(super) fn of(passes: &[HostPass], asked: &[String]) -> Self {
        let is_failure = |pass: &&HostPass| match pass.state {
            PassState::Read => false,
            PassState::Forbidden => asked.iter().any(|name| pass.host.same(name)),
            PassState::Unread | PassState::Changed | PassState::Other(_) => true,
        };
        let item = |pass: &HostPass| {
            let unknown =
                || Error::new(Code::OperationFailed, format!("{} could not be read", pass.host));
            BulkItem::new(pass.host.as_str(), Some(pass.error.clone().unwrap_or_else(unknown)))
        };
        Self {
            hosts: passes.iter().filter(is_failure).map(item).collect(),
            some_read: passes.iter().any(|pass| pass.state == PassState::Read),
        }
    }

    /// Says which they are, to a person.
    pub(super) fn complain(&self, context: &mut Context<'_>) {
        for item in &self.hosts {
            complain(context, item, false);
        }
    }

    /// The one error that stands for all of them: `partial` where others could be read, else the code that all of them have, else
    /// `host_unreachable`.
    pub(super) fn error(&self) -> Option<Error> {
        let errors: Vec<&Error> =
            self.hosts.iter().filter_map(|item| item.error.as_ref()).collect();
        let first = *errors.first()?;
        let code = common_code(&errors, self.some_read, Code::HostUnreachable);
        let words = many(errors.len(), "host could not be read", "hosts could not be read");
        let mut error = Error::new(code, words);
        error.causes = errors.iter().map(|error| error.message.clone()).collect();
        error.retryable = errors.iter().all(|error| error.retryable);
        error.hint.clone_from(&first.hint);
        Some(error)
    }

    /// Ends with the status of hosts alone.
    pub(super) fn conclude(&self, context: &mut Context<'_>) -> Outcome {
        if !context.options.json {
            self.complain(context);
        }
        end_with(context, self.error(), Ok(()))
    }
}
