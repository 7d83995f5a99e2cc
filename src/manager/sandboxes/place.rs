//! Placement: the host that takes a sandbox, and a verdict on each candidate.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::domain::compose_host::ComposeHost;
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::SandboxExtension;
use crate::domain::headroom::Headroom;
use crate::domain::host::HostSpec;
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::profile::{Allowance, Profile, Strategy};
use crate::domain::route::RouteCondition;
use crate::domain::sandbox::{Route, SandboxRecord, Verdict};
use crate::manager::deps::Deps;
use crate::manager::hosts::capacity::{fullness, host_full, host_loaded};
use crate::manager::hosts::places::{check_is_host, check_works_at};
use crate::manager::hosts::report::{ask_host, ask_host_noting};
use crate::manager::sandboxes::extension_place::take_place;

/// Reason for a placement, which says how many hosts are asked and how their limits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Create: hosts are asked in order until one can take it.
    Create,
    /// Plan of a create: every host is asked, for its verdict.
    Plan,
    /// Restore: the snapshot's host is given. Its limits are told and refuse nothing, but for one without addresses for a network.
    Restore,
}

/// Source of the candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// `--host` or the form's field.
    Request,
    /// `SANDBOXER_HOST`.
    Environment,
    /// The profile's list.
    Profile,
    /// `default_host`.
    Default,
    /// `default_host`, in the place of a profile's list of which nothing is configured.
    Instead,
}

/// Result of examining one candidate.
struct Finding {
    verdict: Verdict,
    error: Option<Error>,
    /// Its figures, where it was asked for them.
    headroom: Option<Headroom>,
    /// Host as a stack meets it, where there is a stack.
    compose: Option<ComposeHost>,
}

/// Question to each candidate.
struct Examination<'a> {
    deps: &'a Deps,
    extension: Arc<dyn SandboxExtension>,
    profile: &'a Profile,
    purpose: Purpose,
    named: Named,
    /// Live records of any host.
    live: Vec<Arc<SandboxRecord>>,
}

/// Result of a placement.
pub(crate) struct Placement {
    /// Verdict on each candidate that was asked.
    pub(crate) verdicts: Vec<Verdict>,
    /// The host and what a stack meets there, or why there is none.
    pub(crate) on: Result<(Route, Option<ComposeHost>), Error>,
}

/// Chooses the host that takes a sandbox, with the verdict on each candidate that was asked.
pub(crate) async fn choose_host(
    deps: &Deps,
    profile: &Profile,
    requested: Option<&str>,
    purpose: Purpose,
) -> Result<Placement, Error> {
    let extension = deps.extension(&profile.extension)?;
    if let Some(place) = extension.place() {
        if let Some(host) = requested {
            check_works_at(deps, extension.as_ref(), &parse_host_name(host)?)?;
        }
        let (verdict, on) = take_place(extension.as_ref(), profile, place).await;
        return Ok(Placement { verdicts: vec![verdict], on });
    }
    let (candidates, named) = candidate_hosts(deps, profile, requested)?;
    let live = deps.sandboxes.list().await?;
    let weigh = profile.placement.strategy == Strategy::LeastLoaded
        && named == Named::Profile
        && candidates.len() > 1;
    let examination = Examination { deps, extension, profile, purpose, named, live };
    let mut findings: Vec<Finding> = Vec::new();
    if weigh || purpose == Purpose::Plan {
        findings = join_all(candidates.iter().map(|host| examination.examine(host))).await;
    } else {
        for host in &candidates {
            let finding = examination.examine(host).await;
            let found = finding.verdict.ok;
            findings.push(finding);
            if found {
                break;
            }
        }
    }
    let verdicts: Vec<Verdict> = findings.iter().map(|finding| finding.verdict.clone()).collect();
    let on = match choose(&findings, weigh) {
        Some(chosen) => {
            let host = chosen.verdict.host.clone();
            let mut remarks = remarks(named, profile, &host);
            remarks.extend(above_limits(deps, chosen));
            let route = Route {
                reason: reason(named, weigh),
                host,
                verdicts: verdicts.clone(),
                remarks,
                candidates: Vec::new(),
            };
            Ok((route, chosen.compose.clone()))
        }
        None => Err(no_host_error(findings, named, &profile.extension)),
    };
    Ok(Placement { verdicts, on })
}

fn candidate_hosts(
    deps: &Deps,
    profile: &Profile,
    requested: Option<&str>,
) -> Result<(Vec<HostName>, Named), Error> {
    let settings = &deps.settings;
    if let Some(host) = requested {
        return Ok((vec![parse_host_name(host)?], Named::Request));
    }
    if let Some(host) = settings.environment_host.as_deref().filter(|host| !host.is_empty()) {
        return Ok((vec![parse_host_name(host)?], Named::Environment));
    }
    let hosts = &profile.placement.hosts;
    if hosts.iter().any(|host| deps.transports.spec(host).is_some()) {
        return Ok((hosts.clone(), Named::Profile));
    }
    let others = hosts.iter().filter(|host| !host.same(settings.default_host.as_str())).cloned();
    let named = if hosts.is_empty() { Named::Default } else { Named::Instead };
    Ok((others.chain([settings.default_host.clone()]).collect(), named))
}

/// The host that somebody named for an archive, as configured; there is a way to it. A name that is not configured is
/// tried, as in a create.
///
/// Errors: `invalid_input` for what is no name, `forbidden`, and why there is no way.
pub(crate) async fn open_host(deps: &Deps, named: &str) -> Result<HostName, Error> {
    let named = parse_host_name(named)?;
    check_is_host(deps, &named)?;
    let spec = deps.transports.spec(&named);
    if let Some(spec) = &spec
        && let Some(why) = &spec.forbid
    {
        return Err(forbidden(&spec.name, why));
    }
    let host = spec.map_or(named, |spec| spec.name);
    deps.transports.open(&host).await?;
    Ok(host)
}

impl Examination<'_> {
    /// Verdict on one candidate. One that is out of bounds, or full by our records, is not contacted.
    async fn examine(&self, host: &HostName) -> Finding {
        let spec = self.deps.transports.spec(host);
        // As configured, whatever case it was typed in: records and scripts compare names.
        let host = spec.as_ref().map_or(host, |spec| &spec.name);
        let verdict = |ok, reason| Verdict { host: host.clone(), ok, reason };
        let no = |reason: String, error: Option<Error>| Finding {
            verdict: verdict(false, reason),
            error,
            headroom: None,
            compose: None,
        };
        if let Err(error) = check_works_at(self.deps, self.extension.as_ref(), host) {
            return no(error.message.clone(), Some(error));
        }
        if spec.is_none() && !matches!(self.named, Named::Request | Named::Environment) {
            return no("not configured".to_owned(), None);
        }
        if let Some(spec) = &spec {
            if let Some(why) = &spec.forbid {
                return no(
                    format!("forbidden by the configuration: {why}"),
                    Some(forbidden(host, why)),
                );
            }
            if let Some(full) = fullness(spec, self.live.iter().map(|record| &**record)) {
                let error = host_full(spec, &full);
                return no(full, Some(error));
            }
        }
        let asked = async {
            let transport = self.deps.transports.open(host).await?;
            let (deps, extension) = (self.deps, self.extension.as_ref());
            let answer = match self.purpose {
                // A plan changes nothing, here neither.
                Purpose::Plan => ask_host(deps, extension, self.profile, host).await?,
                Purpose::Create | Purpose::Restore => {
                    ask_host_noting(deps, extension, self.profile, host).await?
                }
            };
            Ok::<_, Error>((transport.latency(), answer))
        };
        let (latency, answer) = match asked.await {
            Ok(asked) => asked,
            Err(error) => return no(error.sentence(), Some(error)),
        };
        let unknown = HostSpec::named(host.as_str());
        let spec = spec.as_ref().unwrap_or(&unknown);
        let refused = answer.headroom.as_ref().and_then(|room| self.refusal(room, spec));
        Finding {
            verdict: match (&refused, &answer.headroom) {
                (Some(above), Some(room)) => {
                    verdict(false, format!("{above} ({})", room.figures()))
                }
                _ => verdict(true, up(latency, answer.headroom.as_ref(), answer.compose.as_ref())),
            },
            error: refused.map(|above| host_loaded(spec, &above)),
            headroom: answer.headroom,
            compose: answer.compose,
        }
    }

    /// Limits that keep the sandbox off a host.
    fn refusal(&self, headroom: &Headroom, spec: &HostSpec) -> Option<String> {
        let counts = match self.purpose {
            Purpose::Create | Purpose::Plan => true,
            Purpose::Restore => headroom.lacks_network(),
        };
        let above = headroom.above(&spec.limits);
        (counts && !above.is_empty()).then(|| above.join("; "))
    }
}

/// Remark on a host that is taken although it is above its limits.
fn above_limits(deps: &Deps, chosen: &Finding) -> Option<String> {
    let host = &chosen.verdict.host;
    let limits = deps.transports.spec(host).unwrap_or_else(|| HostSpec::named("")).limits;
    let above = chosen.headroom.as_ref()?.above(&limits);
    (!above.is_empty()).then(|| format!("{host} is above its limits: {}", above.join("; ")))
}

fn forbidden(host: &HostName, why: &str) -> Error {
    Error::new(Code::Forbidden, format!("host {host} is forbidden by the configuration: {why}"))
        .hint("choose another with --host; `sandboxer hosts list` shows them")
}

/// Refuses what cannot be a host's name before anything looks it up.
fn parse_host_name(host: &str) -> Result<HostName, Error> {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.len() > 255 || host.starts_with('-') || host.contains(odd) {
        return Err(Error::invalid_input(
            "host",
            "a host's name is 1 to 255 characters without spaces, and does not begin with '-'",
        ));
    }
    Ok(HostName::new(host))
}

fn up(
    latency: Option<Duration>,
    headroom: Option<&Headroom>,
    compose: Option<&ComposeHost>,
) -> String {
    let mut text = "up".to_owned();
    if let Some(latency) = latency {
        text = format!("{text}, {} ms", latency.as_millis());
    }
    if let Some(headroom) = headroom {
        text = format!("{text}, {}", headroom.figures());
    }
    if let Some(ComposeHost { runtime, .. }) = compose {
        text = format!("{text}, {runtime}");
        if runtime.builds_escape().is_some() {
            text = format!("{text}; builds only where the profile allows `{}`", Allowance::Builds);
        }
    }
    text
}

fn choose(findings: &[Finding], weigh: bool) -> Option<&Finding> {
    let mut able = findings.iter().filter(|finding| finding.verdict.ok);
    if !weigh {
        return able.next();
    }
    let weight = |finding: &Finding| {
        let headroom = finding.headroom.clone().unwrap_or_default();
        (headroom.weight(), finding.verdict.host.as_str().to_ascii_lowercase())
    };
    able.min_by_key(|finding| weight(finding))
}

fn reason(named: Named, weigh: bool) -> String {
    match (named, weigh) {
        (Named::Request, _) => "named by --host",
        (Named::Environment, _) => "named by SANDBOXER_HOST",
        (Named::Profile, true) => "the least loaded of the profile's hosts",
        (Named::Profile, false) => "the first of the profile's hosts that can take it",
        (Named::Default, _) => "the default host",
        (Named::Instead, _) => "the default host; none of the profile's hosts is configured",
    }
    .to_owned()
}

/// Remarks on a host that nobody named.
fn remarks(named: Named, profile: &Profile, host: &HostName) -> Vec<String> {
    if named != Named::Instead {
        return Vec::new();
    }
    let hosts: Vec<&str> = profile.placement.hosts.iter().map(AsRef::as_ref).collect();
    let (id, hosts) = (&profile.id, hosts.join(", "));
    vec![format!(
        "none of the hosts of {id} is configured ({hosts}); the default host, {host}, takes their place"
    )]
}

/// Kind of the error where none of several hosts can take it: that of the one which comes nearest to it.
fn kind_of(findings: &[Finding]) -> Kind {
    let refusals = || findings.iter().filter_map(|finding| finding.error.as_ref());
    let conditions: Vec<_> = refusals().filter_map(RouteCondition::of_refusal).collect();
    if conditions.contains(&RouteCondition::Saturated) {
        Kind::Saturated
    } else if conditions.contains(&RouteCondition::Unsupported) {
        Kind::Lacking
    } else {
        Kind::Plain
    }
}

fn no_host_error(mut findings: Vec<Finding>, named: Named, extension: &ExtensionId) -> Error {
    let verdicts: Vec<serde_json::Value> = findings
        .iter()
        .map(|f| serde_json::json!({"host": f.verdict.host, "ok": false, "reason": f.verdict.reason}))
        .collect();
    // Somebody named this one host: what it said is the answer.
    if let [only] = findings.as_mut_slice()
        && let Some(error) = only.error.take()
    {
        return error.detail("verdicts", verdicts);
    }
    let words: Vec<String> =
        findings.iter().map(|f| format!("{}: {}", f.verdict.host, f.verdict.reason)).collect();
    let error = Error::new(Code::HostUnreachable, "no host can take the sandbox")
        .because(words.join("; "))
        .detail("verdicts", verdicts)
        .of_kind(kind_of(&findings));
    let local = extension.as_str() == "ext.compose-ssh"
        && !findings.iter().any(|f| f.verdict.host.is_local());
    // Only one that answered and is above its limits has figures here.
    if findings.iter().any(|finding| finding.headroom.is_some()) {
        return error.hint(
            "free what is used up on one of these hosts, raise its `limits`, or name another with --host",
        );
    }
    match (named, local) {
        (Named::Profile | Named::Instead, true) => {
            error.hint("configure one of these hosts, or try --host local")
        }
        (Named::Profile | Named::Instead, false) => {
            error.hint("configure one of these hosts, or name another with --host")
        }
        (Named::Default, true) => error.hint(
            "it is the configuration's default_host; name another with --host, or try --host local",
        ),
        (Named::Default, false) => {
            error.hint("it is the configuration's default_host; name another with --host")
        }
        (Named::Request | Named::Environment, _) => error,
    }
}
