//! `doctor`: what works here and what does not. Who looks is not this face's business.

use super::args::DoctorArgs;
use super::local::Local;
use super::output::{CliError, Context, Outcome, paint};
use crate::client::{Check, CheckState, Error};
use crate::domain::Code;
use crate::domain::text::columns;
use crate::present::Role;
use crate::present::upkeep::check_role;

/// The widest a check's name and what was found get, in columns.
const FOUND: usize = 1000;

pub(super) async fn doctor(
    context: &mut Context<'_, ()>,
    args: &DoctorArgs,
    local: &Local<'_>,
) -> Outcome {
    let checks = (local.doctor)(args.claim).await?;
    let failed = checks.iter().filter(|check| check.state == CheckState::Failed).count();
    let status = u8::from(failed > 0);
    let printed =
        if context.options.json { context.document(&checks) } else { print(context, &checks) };
    match printed {
        Err(CliError::PipeClosed) => return Ok(status),
        other => other?,
    }
    if failed > 0 && context.options.json {
        let message = format!("{failed} of {} checks failed", checks.len());
        return Err(Error::new(Code::OperationFailed, message).into());
    }
    Ok(status)
}

/// A line for each, with what to do below it. No table: what was found is a sentence, and must not be cut.
fn print(context: &mut Context<'_, ()>, checks: &[Check]) -> Result<(), CliError> {
    let (options, paints) = (context.options, context.paints());
    let names: Vec<_> = checks.iter().map(|check| options.clean(&check.name, FOUND)).collect();
    let wide = names.iter().map(|name| columns(name)).max().unwrap_or_default();
    for (check, name) in checks.iter().zip(names) {
        let state = format!("{:7}", check.state.as_str());
        let state = paint(check_role(&check.state), &state, paints);
        let space = " ".repeat(wide - columns(&name));
        let margin = " ".repeat(wide + 11);
        let mut lines = check.message.lines().map(|line| options.clean(line, FOUND));
        context.line(
            format!("{state}  {name}{space}  {}", lines.next().unwrap_or_default()).trim_end(),
        )?;
        for line in lines {
            context.line(&format!("{margin}{line}"))?;
        }
        if let Some(hint) = &check.hint {
            context.line(&format!(
                "{margin}{} {}",
                paint(Role::Key, "hint:", paints),
                options.clean(hint, FOUND)
            ))?;
        }
    }
    Ok(())
}
