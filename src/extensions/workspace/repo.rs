//! The input `repo`: a directory of this machine that becomes the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{Preview, ProvisionRequest, Refusal};
use crate::domain::reporter::Report;
use crate::extensions::workspace::Steps;
use crate::transport::transfer::{self, Limits, Plan, Sent};
use crate::transport::{Command, LineSink, Output, Transport};

/// The input that names it.
pub(crate) const REPO: &str = "repo";

/// A tree up to this size goes as a tar stream: the destination is empty, so rsync has nothing to compare, and its two
/// ends first have to start and to talk (three round trips).
const SMALL_TREE: u64 = 4 << 20;

/// The directory, if the inputs name one.
pub(crate) fn repository(inputs: &BTreeMap<String, String>) -> Option<PathBuf> {
    inputs.get(REPO).map(PathBuf::from)
}

/// Transfer that it would take.
pub(crate) async fn plan(request: &ProvisionRequest) -> Result<Option<Plan>, Error> {
    plan_within(request, limits(request)).await
}

fn limits(request: &ProvisionRequest) -> Limits {
    if request.allow_large { Limits::none() } else { Limits::contract() }
}

async fn plan_within(request: &ProvisionRequest, limits: Limits) -> Result<Option<Plan>, Error> {
    let Some(source) = repository(&request.inputs) else { return Ok(None) };
    transfer::plan(&source, &request.profile.sync.exclude, limits).await.map(Some)
}

/// How much would be transferred, or why it is refused.
pub(crate) async fn preview(request: &ProvisionRequest) -> Result<Preview, Error> {
    let mut preview = Preview::default();
    // Counted also where it is too much.
    let planned = plan_within(request, Limits::none()).await.and_then(|plan| {
        let Some(plan) = plan else { return Ok(()) };
        preview.files = plan.files;
        preview.bytes = plan.bytes;
        plan.check(&limits(request))
    });
    match planned {
        Ok(()) => {}
        Err(error) if error.code == Code::InvalidInput => {
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            preview.refusals.push(Refusal {
                path: REPO.to_owned(),
                message: format!("{error}{hint}"),
                allow: None,
            });
        }
        Err(error) => return Err(error),
    }
    Ok(preview)
}

/// Whether it is small enough to come with the call that makes its directory.
pub(crate) fn is_small(plan: &Plan) -> bool {
    plan.bytes <= SMALL_TREE
}

/// Fills a workspace that was made with it.
pub(crate) async fn send(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: &Plan,
    (workspace, rsync): (&str, bool),
    steps: &Steps<'_>,
) -> Result<(), Error> {
    let on_bytes = tell_bytes(steps);
    let source = repository(&request.inputs).unwrap_or_default();
    let sent =
        transfer::send(transport, plan, &source, workspace, rsync && !is_small(plan), &on_bytes)
            .await?;
    note(request, &sent);
    Ok(())
}

/// Sends it to a command that extracts what comes behind `head`; what that said, as it comes to `sink` too, and what came of the
/// sending.
pub(crate) async fn feed(
    request: &ProvisionRequest,
    transport: &dyn Transport,
    plan: &Plan,
    fed: (&Command, &[u8]),
    steps: &Steps<'_>,
    sink: LineSink<'_>,
) -> Result<(Output, Result<(), Error>), Error> {
    let on_bytes = tell_bytes(steps);
    let source = repository(&request.inputs).unwrap_or_default();
    let (output, sent) = transfer::feed(transport, plan, &source, fed, &on_bytes, sink).await?;
    Ok((output, sent.map(|sent| note(request, &sent))))
}

fn tell_bytes(steps: &Steps<'_>) -> impl Fn(u64, u64) + Send + Sync {
    let report = steps.next("transfer");
    let reporter = steps.reporter;
    move |done, of| {
        reporter.report(Report {
            done: Some(done),
            of: Some(of),
            bytes: Some(done),
            ..report.clone()
        });
    }
}

fn note(request: &ProvisionRequest, sent: &Sent) {
    tracing::info!(sandbox = %request.id, method = ?sent.method, bytes = sent.bytes, "transferred");
}
