//! A patch's script: in the workspace, or in a running container of a service.

use crate::domain::error::{Code, Error};
use crate::domain::extension::{PatchOutcome, PatchRun, Target};
use crate::domain::patch::RUN_IN_WORKSPACE;
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::exec::{RUNNING_SH, engine, of_service, stopped};
use crate::extensions::workspace::script_output::unproved;
use crate::extensions::workspace::{owners, patch, workdir};
use crate::transport::{Command, Transport};

const RUN_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/find.sh"),
    include_str!("scripts/leave.sh"),
    include_str!("../workspace/scripts/kept.sh"),
    include_str!("scripts/patch.sh")
);
const INSIDE_SH: &str = include_str!("scripts/inside_patch.sh");

pub(super) async fn run(
    deps: &Deps,
    target: &Target,
    run: &PatchRun,
) -> Result<PatchOutcome, Error> {
    let transport = deps.open(&target.host).await.map_err(patch::never_began)?;
    let transport = transport.as_ref();
    if run.patch.run_in == RUN_IN_WORKSPACE {
        return patch::run(transport, target, run).await;
    }
    in_service(transport, target, run).await
}

/// A service that is not there, or does not run, is a failure of the patch: it would be one at the next try, too.
async fn in_service(
    transport: &dyn Transport,
    target: &Target,
    run: &PatchRun,
) -> Result<PatchOutcome, Error> {
    let service = &run.patch.run_in;
    let engine = match engine(target)
        .and_then(|engine| engine.service(target, service).map(|_| engine.program.clone()))
    {
        Ok(engine) => engine,
        Err(error) if matches!(error.code, Code::NotFound | Code::Unsupported) => {
            return Ok(patch::refused(error.message));
        }
        Err(error) => return Err(patch::never_began(error)),
    };
    let owners = owners(target);
    patch::put(transport, target, run, Some(&engine)).await.map_err(patch::never_began)?;
    let question = of_service(RUNNING_SH, target, &engine, service);
    let found = crate::extensions::workspace::step(transport, "patch", &question)
        .await
        .map_err(patch::never_began)?;
    if let Some(line) = found.text().lines().find(|line| line.starts_with("stopped")) {
        return Ok(patch::refused(stopped(target, service, line).message));
    }
    if let Some(error) = unproved(found.text().trim(), transport.spec().name.as_str()) {
        return Err(patch::never_began(error));
    }
    let command = Command::script(RUN_SH)
        .arg(workdir(target)?)
        .args(patch::limits(run))
        .args(patch::names(target, run))
        .args([&engine, &owners, service])
        .arg(INSIDE_SH)
        .arg(&run.patch.script);
    patch::watch(transport, target, run, &command).await
}
