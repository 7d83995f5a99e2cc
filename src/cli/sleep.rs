//! `sleep` and `wake`.

use super::args::SleepArgs;
use super::interrupt::{Running, attend};
use super::output::{Face, Outcome};
use super::sandboxes;
use crate::client::SleepRequest;
use crate::domain::patch::PatchState;
use crate::domain::{Code, SandboxRecord};

pub(super) async fn sleep(face: &mut Face<'_>, args: &SleepArgs) -> Outcome {
    change(face, args, false).await
}

pub(super) async fn wake(face: &mut Face<'_>, args: &SleepArgs) -> Outcome {
    change(face, args, true).await
}

async fn change(face: &mut Face<'_>, args: &SleepArgs, wake: bool) -> Outcome {
    let client = face.client;
    let id = client.get(&args.id).await?.id;
    let request = SleepRequest { id: id.to_string(), revision: None };
    let running = Running::new(client);
    let work = attend(face, &running, async {
        let started =
            if wake { client.wake(request).await? } else { client.sleep(request).await? };
        let idle = started.operation.is_none();
        running.finish_change(started).await.map(|record| (record, idle))
    });
    let (record, idle) = match Box::pin(work).await? {
        Ok(done) => done,
        Err(mut problem) => {
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
        let is = if wake { "awake" } else { "asleep" };
        face.remark(&format!("{} is {is}: nothing to do", face.look.clean(record.title(), 200)));
    }
    sandboxes::show(face, &record)?;
    if wake {
        warn_of_patches(face, &record);
    }
    Ok(0)
}

/// A sandbox is usable though a patch failed, or could not be begun: that is no failure of the verb, and must not be overlooked.
pub(super) fn warn_of_patches(face: &mut Face<'_>, record: &SandboxRecord) {
    if matches!(record.patch_state, PatchState::Failed | PatchState::Unknown)
        || record.patch_error.is_some()
    {
        let error = record.patch_error.as_deref().unwrap_or("its patches are not all in");
        face.remark(&format!("warning: {}", face.look.clean(error, 1000)));
    }
}
