//! `events flush`: what waits for the State Hub, delivered now.

use super::bulk::end_with;
use super::interrupt::awaited;
use super::output::{CliError, Context, Outcome};
use crate::client::{Error, FlushReport};
use crate::domain::Code;
use crate::present::many;
use crate::present::upkeep::flush_sum;

pub(super) async fn flush(context: &mut Context<'_>) -> Outcome {
    let client = context.client;
    let (left, rest) =
        ("left before everything was delivered", "sandboxer events flush goes on with the rest");
    let work =
        awaited(context, async |running| running.or_left(client.flush_events(), left, rest).await);
    let report = work.await??;
    let printed = print(context, &report);
    let problem = problem(&report);
    if let Some(problem) = problem.as_ref().filter(|_| !context.options.json) {
        context.error(problem);
    }
    end_with(context, problem, printed)
}

fn print(context: &mut Context<'_>, report: &FlushReport) -> Result<(), CliError> {
    if context.options.json {
        return context.document(report);
    }
    if report.delivered + report.dead + report.backlog.waiting == 0 {
        context.remark("nothing waits for the State Hub");
        return Ok(());
    }
    context.line(&flush_sum(report))
}

/// Error that stands for what was not delivered: why the hub took nothing more; else `partial` for the dead letter, or
/// `operation_failed` where nothing else was to be delivered.
fn problem(report: &FlushReport) -> Option<Error> {
    if let Some(error) = &report.error {
        return Some(error.clone());
    }
    let code = if report.delivered > 0 { Code::Partial } else { Code::OperationFailed };
    let message =
        many(report.dead as usize, "event will not be delivered", "events will not be delivered");
    (report.dead > 0).then(|| {
        Error::new(code, message)
            .hint("outbox/dead.jsonl in the data directory has each with its reason")
    })
}
