//! `inspect stale`: what records and hosts have and should not.

use super::args::StaleArgs;
use super::bulk::{BulkItem, complain, end_with};
use super::interrupt::until_interrupted;
use super::output::{CliError, Context, Outcome, Tone};
use super::table::{self, Line};
use crate::client::{Error, StaleItem, StaleQuery};
use crate::domain::Code;
use crate::domain::figures::{age, bytes};
use crate::domain::stale::{HostPass, PassState, ReapAction, StaleClass};
use crate::domain::sweep::HeldBack;
use crate::domain::text::{clean_line, plural};

/// Columns of an owner id that are read, of which the first eight are shown: on a host it may be any text.
const OWNER: usize = 80;

pub(super) async fn inspect(context: &mut Context<'_>, args: &StaleArgs) -> Outcome {
    let client = context.client;
    let query = StaleQuery { hosts: args.hosts.clone(), as_last_seen: false };
    let report = until_interrupted(context, client.stale(query)).await??;
    let unread = Unread::of(&report.hosts, &args.hosts);
    if context.options.json {
        context.document(&report.items)?;
    } else {
        print_items(context, &report.items)?;
        context.remark(&sum(&report.items, &report.hosts));
        remark_held(context, report.held_back.as_ref());
    }
    unread.conclude(context)
}

/// Says why nothing may be reaped, to a person.
pub(super) fn remark_held(context: &mut Context<'_>, held: Option<&HeldBack>) {
    let Some(held) = held else { return };
    let hint = held.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let text = format!("remark: {}{hint}", held.message);
    context.remark(&context.options.clean(&text, 1000));
}

/// Prints a row for each item.
pub(super) fn print_items(context: &mut Context<'_>, items: &[StaleItem]) -> Result<(), CliError> {
    if items.is_empty() {
        return Ok(());
    }
    let rows: Vec<Line> = items.iter().map(row).collect();
    table::print(
        context,
        &["ID", "CLASS!", "HOST", "NAME", "OWNER", "AGE", "SIZE", "ACTION!", "WHY"],
        &rows,
    )
}

fn row(item: &StaleItem) -> Line {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let tone = match item.action {
        ReapAction::Keep => Tone::Faint,
        ReapAction::Destroy | ReapAction::Remove => Tone::Bad,
        ReapAction::Recover | ReapAction::Close | ReapAction::Adopt | ReapAction::Other(_) => {
            Tone::Plain
        }
    };
    let cells = vec![
        item.id().to_owned(),
        item.class.to_string(),
        item.host.to_string(),
        dash(item.name.clone()),
        dash(item.owner.as_ref().map(|owner| clean_line(owner, OWNER).chars().take(8).collect())),
        dash(item.age_s.map(age)),
        dash(item.bytes.map(bytes)),
        item.action.to_string(),
        item.why.clone(),
    ];
    Line { tone, cells }
}

/// `3 stale: 2 expired, 1 orphan_dir; 1 foreign`. That there is none is said of no more than was read.
pub(super) fn sum(items: &[StaleItem], passes: &[HostPass]) -> String {
    if items.is_empty() {
        let is = |state: PassState| passes.iter().any(|pass| pass.state == state);
        let words = match (is(PassState::Read), is(PassState::Unread) || is(PassState::Changed)) {
            (_, false) => "nothing is stale",
            (true, true) => "nothing is stale on the hosts that could be read",
            (false, true) => "no host could be read",
        };
        return words.to_owned();
    }
    let count = |class: &StaleClass| items.iter().filter(|item| item.class == *class).count();
    let words = |classes: Vec<&StaleClass>| {
        let some = classes.into_iter().map(|class| (count(class), class));
        let some = some.filter(|(count, _)| *count > 0);
        some.map(|(count, class)| format!("{count} {class}")).collect::<Vec<_>>()
    };
    let (never, classes): (Vec<_>, Vec<_>) =
        StaleClass::ALL.iter().partition(|class| class.is_never_reaped());
    let stale: usize = classes.iter().map(|class| count(class)).sum();
    let (classes, never) = (words(classes), words(never));
    let of = if classes.is_empty() { String::new() } else { format!(": {}", classes.join(", ")) };
    let beside = if never.is_empty() { String::new() } else { format!("; {}", never.join(", ")) };
    format!("{stale} stale{of}{beside}")
}

/// Hosts that could not be read.
#[derive(Default)]
pub(super) struct Unread {
    hosts: Vec<BulkItem>,
    /// Whether others could.
    some_read: bool,
}

impl Unread {
    /// Those that were not read. A forbidden one is not meant to be, unless it was asked for by name.
    pub(super) fn of(passes: &[HostPass], asked: &[String]) -> Self {
        let is_failure = |pass: &&HostPass| match pass.state {
            PassState::Read => false,
            PassState::Forbidden => asked.iter().any(|name| pass.host.same(name)),
            PassState::Unread | PassState::Changed | PassState::Other(_) => true,
        };
        let item = |pass: &HostPass| {
            let unknown =
                || Error::new(Code::OperationFailed, format!("{} could not be read", pass.host));
            BulkItem::new(pass.host.as_str(), Err(pass.error.clone().unwrap_or_else(unknown)))
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
        let code = if self.some_read {
            Code::Partial
        } else if errors.iter().all(|error| error.code == first.code) {
            first.code.clone()
        } else {
            Code::HostUnreachable
        };
        let count = errors.len() as u64;
        let words = plural(count, "host could not be read", "hosts could not be read");
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
