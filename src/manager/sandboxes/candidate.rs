//! Candidate of a route: what a create by it would cost, where it would go, and what it is refused for.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::{MeterQuote, Preview, ProvisionRequest, SandboxExtension};
use crate::domain::name::HostName;
use crate::domain::request::CreateRequest;
use crate::domain::route::RouteCondition;
use crate::domain::sandbox::{Route, Verdict};
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::roots_for_plan;
use crate::manager::sandboxes::attempt_price::{over_budget, quote_price};
use crate::manager::sandboxes::place::{Placement, Purpose, choose_host};
use crate::manager::sandboxes::resolved::{Resolved, draft_provision};

/// Findings on one candidate.
pub(crate) struct Found {
    /// Create as this candidate would make it.
    pub(crate) resolved: Resolved,
    pub(crate) draft: ProvisionRequest,
    pub(crate) preview: Preview,
    pub(crate) quote: Option<MeterQuote>,
    /// Verdict on each of its hosts that was asked.
    pub(crate) verdicts: Vec<Verdict>,
    /// Its host, where one can take it.
    pub(crate) route: Option<Route>,
    pub(crate) refusal: Option<Refusal>,
}

/// Refusal of a candidate, and the condition that it fulfils; none where what was asked for is refused.
pub(crate) struct Refusal {
    pub(crate) condition: Option<RouteCondition>,
    pub(crate) error: Error,
}

impl Refusal {
    pub(crate) fn of(error: Error) -> Self {
        Self { condition: RouteCondition::of_refusal(&error), error }
    }

    /// Refusal of a candidate of which nobody can tell what it costs, or whether that is there: it does not take it. What costs
    /// nothing never looks.
    fn of_price(error: Error) -> Self {
        Self { condition: RouteCondition::of_unpriced(&error), error }
    }

    /// Refusal of a candidate's hosts. One whose answer cannot be read is as good as none.
    fn of_hosts(error: Error) -> Self {
        let condition =
            RouteCondition::of_refusal(&error).unwrap_or(RouteCondition::HostUnreachable);
        Self { condition: Some(condition), error }
    }
}

/// Judges one candidate. A create stops at the first refusal; a plan goes on, to show what else there is.
///
/// Errors: why it could not be judged at all.
pub(crate) async fn examine(
    deps: &Deps,
    request: &CreateRequest,
    resolved: Resolved,
    purpose: Purpose,
) -> Result<Found, Error> {
    let extension = deps.extension(&resolved.profile.extension)?;
    let draft = draft_provision(deps, &resolved, request, HostName::new(HostName::LOCAL));
    let preview = extension.preview(&draft).await?;
    let stops = |found: &Found| purpose != Purpose::Plan && found.refusal.is_some();
    let mut found = Found {
        refusal: preview.check().err().map(Refusal::of),
        preview,
        draft,
        quote: None,
        verdicts: Vec::new(),
        route: None,
        resolved,
    };
    if stops(&found) {
        return Ok(found);
    }
    let is_only = found.resolved.profile.routing.candidates.is_empty();
    let over = match price(deps, &mut found).await {
        Err(error) if is_only && found.refusal.is_none() => return Err(error),
        Err(error) => Some(Refusal::of_price(error)),
        Ok(over) => over.map(Refusal::of),
    };
    found.refusal = found.refusal.take().or(over);
    if stops(&found) {
        return Ok(found);
    }
    let asked = choose_host(deps, &found.resolved.profile, request.host.as_deref(), purpose);
    let Placement { verdicts, on } = match Box::pin(asked).await {
        // A create does not come to its hosts.
        Err(_) if found.refusal.is_some() => return Ok(found),
        asked => asked?,
    };
    found.verdicts = verdicts;
    let (route, compose) = match on {
        Ok(on) => on,
        Err(error) => {
            found.refusal.get_or_insert_with(|| Refusal::of_hosts(error));
            return Ok(found);
        }
    };
    found.draft.host = route.host.clone();
    found.draft.compose_host = compose;
    found.route = Some(route);
    let asked = extension.preview_on_host(&mut found.draft, &mut found.preview).await;
    // Nothing was refused before the host was known: it is this backend that cannot do it.
    let lacks = |error: Error| match error.code {
        Code::InvalidInput => error.of_kind(Kind::Lacking),
        _ => error,
    };
    let unfit = asked.and_then(|()| found.preview.check().map_err(lacks)).err();
    found.refusal = found.refusal.take().or(unfit.map(Refusal::of));
    // A create is told by the call that makes the directory.
    if purpose == Purpose::Plan && found.refusal.is_none() {
        let unfit = check_place(deps, extension.as_ref(), &found).await;
        found.refusal = unfit.err().map(Refusal::of_hosts);
    }
    Ok(found)
}

/// Refuses a place in which no directory can be made.
async fn check_place(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    found: &Found,
) -> Result<(), Error> {
    let draft = &found.draft;
    let roots = roots_for_plan(deps, &draft.host).await?;
    let mut request = ProvisionRequest { roots, ..draft.clone() };
    if !request.roots.marked.is_empty() || !request.roots.unmarked.is_empty() {
        // What is ours in a root proves it.
        request.owner = deps.installation.stamp().await?;
    }
    extension.check_place(&request, found.preview.bytes).await
}

/// Notes what a candidate costs; why that is too much.
async fn price(deps: &Deps, found: &mut Found) -> Result<Option<Error>, Error> {
    found.quote = quote_price(deps, &found.resolved).await?;
    over_budget(deps, &found.resolved.profile, found.quote.as_ref()).await
}
