//! `create`: write the record, wait until it is ready, say how to get there.

use super::args::CreateArgs;
use super::interrupt::{awaited, until_interrupted};
use super::output::{CliError, Context, Outcome};
use super::{document, sandboxes, values};
use crate::client::{CreateRequest, Decision, Error, Request};
use crate::domain::profile::Seconds;
use crate::domain::{Code, SandboxId, SandboxRecord};
use crate::present::route::decision_lines;
use crate::present::{Document, Role, many, sandbox};

pub(super) async fn create(context: &mut Context<'_>, args: &CreateArgs) -> Outcome {
    if args.no_wait {
        return Err(Error::new(
            Code::Usage,
            "--no-wait works with --server only: here this process does the work",
        )
        .into());
    }
    let dry_run = args.dry_run;
    let request = request(args.clone())?;
    if dry_run {
        return plan(context, request).await;
    }
    let ready = make(context, Request::Create(Box::new(request))).await?;
    for remark in ready.route.iter().flat_map(|route| &route.remarks) {
        context.remark(&format!("remark: {remark}"));
    }
    sandboxes::show(context, &ready)
}

/// Makes a sandbox, to its end. With an error of one that was begun its evidence is shown.
pub(super) async fn make(
    context: &mut Context<'_>,
    request: Request,
) -> Result<SandboxRecord, CliError> {
    let made = awaited(context, async |running| running.make_sandbox(request).await);
    match made.await? {
        Ok(ready) => Ok(ready),
        Err((problem, None)) => Err(problem.into()),
        Err((problem, Some(id))) => Err(failed(context, problem, &id).await),
    }
}

fn request(args: CreateArgs) -> Result<CreateRequest, CliError> {
    Ok(CreateRequest {
        profile: args.profile,
        inputs: values::map_of("--input", args.inputs)?,
        host: args.host,
        ttl: args.ttl,
        id: args.id,
        name: args.name,
        labels: values::map_of("--label", args.labels)?,
        idempotency_key: args.idempotency_key,
        keep_failed: args.keep_failed,
        yes: args.yes,
    })
}

/// Shows the evidence of a failed establishment, and returns the problem to end with. With `--json` the evidence
/// is in the problem's `details`.
async fn failed(context: &mut Context<'_>, mut problem: Error, id: &SandboxId) -> CliError {
    let Ok(left) = context.client.get(id.as_str()).await else { return problem.into() };
    if context.options.json {
        problem.details = details(problem.details, &left);
    } else {
        let mut document = Document::default();
        sandbox::evidence(&mut document, &left, &problem.sentences());
        document::evidence(context, &document);
    }
    if problem.hint.is_none() {
        problem.hint = Some(next_step(&left));
    }
    problem.into()
}

fn details(known: serde_json::Value, left: &SandboxRecord) -> serde_json::Value {
    let mut map = match known {
        serde_json::Value::Object(map) => map,
        _ => serde_json::Map::new(),
    };
    let evidence = serde_json::json!({
        "sandbox_id": left.id,
        "state": left.state,
        "failure": left.failure,
        "leftovers": left.leftovers,
    });
    if let serde_json::Value::Object(evidence) = evidence {
        map.extend(evidence);
    }
    serde_json::Value::Object(map)
}

fn next_step(left: &SandboxRecord) -> String {
    match left.reachability.as_ref().and_then(|reach| reach.ssh_command()) {
        _ if !left.leftovers.is_empty() => {
            format!("sandboxer destroy {} tries again to remove what is left", left.id)
        }
        Some(ssh) if left.kept_failed => {
            format!("it was kept: {ssh}; sandboxer destroy {} when done", left.id)
        }
        None if left.kept_failed => {
            format!("it was kept on {}; sandboxer destroy {} when done", left.host, left.id)
        }
        _ => format!(
            "nothing is left on {}; sandboxer get {} shows what was recorded",
            left.host, left.id
        ),
    }
}

/// Prints what a create would do. The status is the one that the create would end with.
async fn plan(context: &mut Context<'_>, request: CreateRequest) -> Outcome {
    let client = context.client;
    let decision = until_interrupted(context, client.plan_create(request)).await??;
    let shown = document::reply(context, &decision, |document, _| tell_plan(document, &decision))?;
    verdict(&decision).map_or(Ok(shown), |problem| Err(problem.into()))
}

/// Why the create would be refused.
fn verdict(decision: &Decision) -> Option<Error> {
    if decision.ok {
        return None;
    }
    let unsaid = || Error::new(Code::Internal, "create would be refused");
    let mut problem = decision.error.clone().map_or_else(unsaid, Error::from);
    // The decision has listed them above, each with its place.
    let refused = decision.preview.refusals.len();
    if refused > 0 && decision.candidates.is_empty() {
        let what = many(refused, "thing is", "things are");
        problem.message = format!("{what} refused; create would end the same way");
        // The preview's error lists them again.
        problem.causes.clear();
    }
    Some(problem)
}

fn tell_plan(document: &mut Document, decision: &Decision) {
    document.plain("profile", format!("{} {}", decision.profile, decision.version));
    document.plain("extension", &decision.extension);
    for (key, value) in &decision.inputs {
        document.plain("input", format!("{key}={value}"));
    }
    let ttl = decision.ttl_s.map(|ttl| Seconds(ttl).to_string());
    document.plain("ttl", ttl.unwrap_or_else(|| "none".to_owned()));
    for remark in decision.route.iter().flat_map(|route| &route.remarks) {
        document.pair("remark", Role::Warn, remark);
    }
    document.gap();
    for (role, line) in decision_lines(decision) {
        document.text(role, 0, line);
    }
}
