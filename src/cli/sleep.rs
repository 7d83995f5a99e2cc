//! `sleep` and `wake`.

use super::args::SleepArgs;
use super::interrupt::awaited;
use super::output::{Context, Outcome};
use super::sandboxes;
use crate::client::{Error, Request, SleepRequest};
use crate::domain::patch::PatchState;
use crate::domain::{Code, SandboxRecord};

pub(super) async fn sleep(context: &mut Context<'_>, args: &SleepArgs) -> Outcome {
    change(context, args, Request::Sleep).await
}

pub(super) async fn wake(context: &mut Context<'_>, args: &SleepArgs) -> Outcome {
    change(context, args, Request::Wake).await
}

/// Changes whether a sandbox runs: `verb` is a sleep or a wake.
async fn change(
    context: &mut Context<'_>,
    args: &SleepArgs,
    verb: fn(SleepRequest) -> Request,
) -> Outcome {
    let client = context.client;
    let id = client.get(&args.id).await?.id;
    let request = verb(SleepRequest { id: id.to_string(), ..SleepRequest::default() });
    let wakes = matches!(request, Request::Wake(_));
    let work = awaited(context, async |running| {
        let started = running.start(request).await?;
        let idle = started.operation.is_none();
        Ok((running.finish(started).await?.into_sandbox()?, idle))
    });
    let (record, idle) = match work.await? {
        Ok(done) => done,
        Err::<_, Error>(mut problem) => {
            // It may have slept, or woken, before it was cut off.
            if matches!(problem.code, Code::Cancelled | Code::OperationFailed)
                && problem.hint.is_none()
                && let Ok(left) = client.get(id.as_str()).await
            {
                problem.hint = Some(format!("{} is {} now", left.title(), left.state));
            }
            return Err(problem.into());
        }
    };
    if idle {
        let is = if wakes { "awake" } else { "asleep" };
        context.remark(&format!("{} is {is}: nothing to do", record.title()));
    }
    let shown = sandboxes::show(context, &record)?;
    if wakes {
        warn_of_patches(context, &record);
    }
    Ok(shown)
}

/// A sandbox is usable though a patch failed, or could not be begun: that is no failure of the verb, and must not be overlooked.
pub(super) fn warn_of_patches(context: &mut Context<'_>, record: &SandboxRecord) {
    if matches!(record.patch_state, PatchState::Failed | PatchState::Unknown)
        || record.patch_error.is_some()
    {
        let error = record.patch_error.as_deref().unwrap_or("its patches are not all in");
        context.remark(&format!("warning: {error}"));
    }
}
