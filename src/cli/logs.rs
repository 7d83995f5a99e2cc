//! `logs`: what a sandbox's services write. Cleaned for a person, exact with `--json`.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::LogsArgs;
use super::interrupt::{INTERRUPTED, until_interrupted};
use super::output::paced::write_paced;
use super::output::{CliError, Context, Outcome, OutputOptions, encoding};
use crate::client::{Error, LogsRequest};
use crate::domain::SandboxRecord;
use crate::domain::output::{LogLine, Source};
use crate::domain::text::columns;

/// How often it is asked whether anybody still reads.
const LOOK: Duration = Duration::from_millis(500);

/// Lines that are there already go out together, up to this many bytes.
const PAGE: usize = 16 * 1024;

/// The widest a service's name gets before its lines, in columns.
const NAME: usize = 30;

/// A line of a log as `logs --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEntry {
    /// The service that wrote it.
    pub service: String,
    /// Where to.
    pub stream: Source,
    /// The line without its break, exactly; what is no UTF-8 is replaced by U+FFFD.
    pub line: String,
    /// Whether it was longer than 128 KiB and the rest is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

pub(super) async fn logs(context: &mut Context<'_>, args: &LogsArgs) -> Outcome {
    let client = context.client;
    let begin = async {
        let record = client.get(&args.id).await?;
        let request = LogsRequest {
            id: record.id.to_string(),
            service: args.service.clone(),
            tail: args.tail,
            follow: args.follow,
        };
        Ok::<_, Error>((margin(&record, args), client.logs(request).await?))
    };
    let (margin, mut lines) = until_interrupted(context, begin).await??;
    let (mut page, mut silent) = (Vec::new(), true);
    let mut look = tokio::time::interval(LOOK);
    loop {
        let ready = if page.len() < PAGE { lines.next().now_or_never() } else { None };
        let next = if let Some(next) = ready {
            next
        } else {
            if !write_page(context, &mut page).await? {
                return Ok(INTERRUPTED);
            }
            tokio::select! {
                next = lines.next() => next,
                // Nothing may be written for hours: a reader that went away must not be waited for so long.
                _ = look.tick() => if (context.io.reader_left)() { return Ok(0) } else { continue },
                Some(()) = context.io.interrupts.next() => return Ok(INTERRUPTED),
            }
        };
        match next {
            Some(Ok(line)) => {
                silent = false;
                page.extend_from_slice(shown(line, context.options, margin)?.as_bytes());
                page.push(b'\n');
            }
            ended => {
                let read = write_page(context, &mut page).await?;
                return match ended {
                    Some(Err(problem)) => Err(problem.into()),
                    _ if !read => Ok(INTERRUPTED),
                    _ => {
                        if silent {
                            context.remark("nothing was written");
                        }
                        Ok(0)
                    }
                };
            }
        }
    }
}

/// Writes a page out and begins an empty one; `false` when Ctrl-C came first.
async fn write_page(context: &mut Context<'_>, page: &mut Vec<u8>) -> Result<bool, CliError> {
    let read = write_paced(context.io, Source::Stdout, page).await?;
    page.clear();
    Ok(read)
}

/// How wide the services' names are before the lines; none where all lines are one service's.
fn margin(record: &SandboxRecord, args: &LogsArgs) -> Option<usize> {
    if args.service.is_some() || record.services.len() == 1 {
        return None;
    }
    record.services.iter().map(|service| columns(&service.name).min(NAME)).max().or(Some(0))
}

fn shown(line: LogLine, options: OutputOptions, margin: Option<usize>) -> Result<String, CliError> {
    let LogLine { service, source, bytes, cut } = line;
    let text = String::from_utf8_lossy(&bytes);
    if options.json {
        let entry = LogEntry { service, stream: source, line: text.into_owned(), cut };
        return serde_json::to_string(&entry).map_err(|error| encoding(&error));
    }
    let text = options.clean(&text, usize::MAX - 1);
    let rest = if cut { " [the rest of this line is left out]" } else { "" };
    Ok(margin.map_or_else(
        || format!("{text}{rest}"),
        |wide| {
            let name = options.clean(&service, NAME);
            let space = " ".repeat(wide.saturating_sub(columns(&name)));
            format!("{name}{space} | {text}{rest}")
        },
    ))
}
