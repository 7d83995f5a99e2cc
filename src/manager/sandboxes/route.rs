//! Route of a create: the candidates of its profile's routing, judged one after the other until one can take it (semantics 2).

use crate::domain::error::{Code, Error};
use crate::domain::extension::SandboxExtension;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::request::CreateRequest;
use crate::domain::route::{CandidateVerdict, Passed, RouteCondition, is_considered};
use crate::domain::sandbox::Route;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::candidate::{Found, Refusal, examine};
use crate::manager::sandboxes::place::Purpose;
use crate::manager::sandboxes::resolved::Resolved;

/// Way of a create through the candidates of its profile. A profile without routing is its own only one.
pub(crate) struct Router {
    request: CreateRequest,
    /// Request resolved with the profile as it is written.
    resolved: Resolved,
    /// Candidate that is looked at next.
    next: usize,
    passed: Vec<Passed>,
    /// Verdict on each candidate before `next`.
    verdicts: Vec<CandidateVerdict>,
    /// Errors of those that were refused.
    refusals: Vec<(RouteCondition, Error)>,
}

/// Candidate that takes a create.
pub(crate) struct Choice {
    pub(crate) found: Found,
    pub(crate) route: Route,
}

/// Judgement of one candidate.
enum Judged {
    /// Candidate that was not even looked at.
    PassedOver,
    /// Candidate that can take the create.
    Takes(Box<Choice>),
    /// Candidate that is refused; the next one is looked at.
    Refused(Option<Box<Found>>),
    /// Request that is refused, whoever the candidate.
    Ends(Box<Found>, Error),
}

/// Decision on all candidates, for a plan.
pub(crate) struct Overview {
    /// Findings on the candidate that would take it, else on the first that costs something, or the first of all.
    pub(crate) found: Option<Found>,
    /// Route to it, where there is one.
    pub(crate) route: Option<Route>,
    pub(crate) error: Option<Error>,
    pub(crate) candidates: Vec<CandidateVerdict>,
}

impl Router {
    pub(crate) fn new(request: CreateRequest, resolved: Resolved) -> Self {
        let (passed, verdicts, refusals) = (Vec::new(), Vec::new(), Vec::new());
        Self { request, resolved, next: 0, passed, verdicts, refusals }
    }

    /// Whether its profile has candidates.
    pub(crate) fn is_routed(&self) -> bool {
        !self.resolved.profile.routing.candidates.is_empty()
    }

    /// Create as the next candidate would make it.
    fn take_next(&mut self) -> Option<Resolved> {
        let profile = &self.resolved.profile;
        let used = match profile.routing.candidates.get(self.next) {
            Some(candidate) => profile.for_candidate(candidate),
            None if self.next == 0 => profile.clone(),
            None => return None,
        };
        self.next += 1;
        Some(Resolved { profile: used, ..self.resolved.clone() })
    }

    /// Chooses the first candidate that can take it, of those that were not looked at yet.
    ///
    /// Errors: what is refused whoever the candidate; where none can take it, each one's verdict.
    pub(crate) async fn choose(&mut self, deps: &Deps) -> Result<Choice, Error> {
        while let Some(resolved) = self.take_next() {
            match Box::pin(self.judge(deps, resolved, Purpose::Create)).await? {
                Judged::Takes(choice) => {
                    let route = self.with_candidates(choice.route);
                    return Ok(Choice { route, found: choice.found });
                }
                Judged::Ends(_, error) => return Err(error),
                Judged::PassedOver | Judged::Refused(_) => {}
            }
        }
        Err(self.none_error())
    }

    /// Judges every candidate; nothing is changed.
    ///
    /// Errors: why one could not be judged at all, which a create would come to, too: none before it can take it.
    pub(crate) async fn judge_all(&mut self, deps: &Deps) -> Result<Overview, Error> {
        let (mut first, mut chosen): (Option<Found>, Option<Choice>) = (None, None);
        let has_price = |found: &Found| found.quote.is_some();
        while let Some(resolved) = self.take_next() {
            let judged = match Box::pin(self.judge(deps, resolved, Purpose::Plan)).await {
                // A create does not come to this one.
                Err(_) if chosen.is_some() => continue,
                judged => judged?,
            };
            match judged {
                Judged::Takes(choice) => {
                    chosen.get_or_insert(*choice);
                }
                Judged::Ends(found, error) if chosen.is_none() => {
                    let candidates = self.candidates("not asked: the request is refused");
                    let (route, error) = (found.route.clone(), Some(error));
                    return Ok(Overview { found: Some(*found), route, error, candidates });
                }
                Judged::Refused(Some(found)) => {
                    if !first.as_ref().is_some_and(|first| has_price(first) || !has_price(&found)) {
                        first = Some(*found);
                    }
                }
                Judged::PassedOver | Judged::Refused(None) | Judged::Ends(..) => {}
            }
        }
        let Some(Choice { found, route }) = chosen else {
            let (error, candidates) = (Some(self.none_error()), self.candidates(""));
            return Ok(Overview { found: first, route: None, error, candidates });
        };
        let route = self.with_candidates(route);
        let candidates = route.candidates.clone();
        Ok(Overview { found: Some(found), route: Some(route), error: None, candidates })
    }

    /// Judges one candidate, and notes the verdict.
    ///
    /// Errors: why it could not be judged at all.
    async fn judge(
        &mut self,
        deps: &Deps,
        resolved: Resolved,
        purpose: Purpose,
    ) -> Result<Judged, Error> {
        let profile = resolved.profile.clone();
        if let Some(why) = self.passed_over(deps, &profile) {
            self.verdicts.push(not_considered(&profile, why));
            return Ok(Judged::PassedOver);
        }
        let mut found = match Box::pin(examine(deps, &self.request, resolved, purpose)).await {
            Ok(found) => found,
            Err(error) => {
                let refused = self.note_refusal(&profile, Refusal::of(error), None);
                return refused.map_or(Ok(Judged::Refused(None)), Err);
            }
        };
        let refusal = found.refusal.take();
        let refusal = match (refusal, found.route.clone()) {
            (None, Some(route)) => {
                self.verdicts.push(taken(&found, &route));
                return Ok(Judged::Takes(Box::new(Choice { found, route })));
            }
            (Some(refusal), _) => refusal,
            (None, None) => Refusal::of(Error::internal("nothing says where it goes")),
        };
        let refused = self.note_refusal(&profile, refusal, Some(&found));
        let found = Box::new(found);
        Ok(match refused {
            None => Judged::Refused(Some(found)),
            Some(error) => Judged::Ends(found, error),
        })
    }

    /// Notes that the candidate that was chosen last is refused after all: others were faster to its room or its credits.
    ///
    /// Errors: this, where it is no reason to go on to the next one.
    pub(crate) fn note_lost(&mut self, error: Error, host: &HostName) -> Result<(), Error> {
        let condition = RouteCondition::of_refusal(&error).filter(|_| self.is_routed());
        let Some(condition) = condition else { return Err(error) };
        if let Some(verdict) = self.verdicts.last_mut() {
            verdict.ok = false;
            verdict.condition = Some(condition.clone());
            verdict.reason = error.sentence();
            let full = verdict.verdicts.iter_mut().filter(|one| {
                condition != RouteCondition::OverBudget && one.host.same(host.as_str())
            });
            full.for_each(|one| (one.ok, one.reason) = (false, error.sentence()));
        }
        self.passed.push(Passed::Refused(condition.clone()));
        self.refusals.push((condition, error));
        Ok(())
    }

    /// Notes that the candidate that was chosen last was tried and failed, with this.
    pub(crate) fn note_failed(&mut self, error: &Error) {
        self.passed.push(Passed::Failed);
        if let Some(verdict) = self.verdicts.last_mut() {
            verdict.ok = false;
            verdict.reason = format!("it was tried and failed: {}", error.sentence());
        }
    }

    /// Reason for which the candidate is not even looked at.
    fn passed_over(&self, deps: &Deps, profile: &Profile) -> Option<String> {
        let routing = &self.resolved.profile.routing;
        let candidate = routing.candidates.get(self.next.checked_sub(1)?)?;
        let when = routing.conditions_of(candidate);
        // Where the host that was named is none of those before it, it is the first.
        let is_first = self.request.host.is_some()
            && self.passed.is_empty()
            && self.verdicts.iter().all(|verdict| !verdict.ok);
        if !is_first && !is_considered(&when, &self.passed) {
            let words: Vec<&str> = when.iter().map(RouteCondition::as_str).collect();
            return Some(format!(
                "not considered: only where one before it fails or is {}",
                words.join(" or ")
            ));
        }
        let extension = deps.extension(&profile.extension).ok()?;
        pinned_elsewhere(deps, extension.as_ref(), self.request.host.as_deref()?)
    }

    /// Notes a refusal; the error where that ends the route: what was asked for is refused whoever the candidate.
    fn note_refusal(
        &mut self,
        profile: &Profile,
        refusal: Refusal,
        found: Option<&Found>,
    ) -> Option<Error> {
        let Refusal { condition, error } = refusal;
        self.verdicts.push(CandidateVerdict {
            extension: profile.extension.clone(),
            ok: false,
            condition: condition.clone(),
            reason: error.sentence(),
            quote_usd: found.and_then(|found| found.quote.as_ref()).map(|quote| quote.usd),
            verdicts: found.map(|found| found.verdicts.clone()).unwrap_or_default(),
        });
        let Some(condition) = condition.filter(|_| self.is_routed()) else { return Some(error) };
        self.passed.push(Passed::Refused(condition.clone()));
        self.refusals.push((condition, error));
        None
    }

    /// Route to where the last candidate takes it, with the verdict on each candidate.
    fn with_candidates(&self, route: Route) -> Route {
        let taker = self.verdicts.iter().rfind(|verdict| verdict.ok);
        let why = taker.map(|verdict| format!("not asked: {} takes it", verdict.extension));
        Route { candidates: self.candidates(&why.unwrap_or_default()), ..route }
    }

    /// Verdict on each candidate; `why` those after the last one were not looked at.
    pub(crate) fn candidates(&self, why: &str) -> Vec<CandidateVerdict> {
        let profile = &self.resolved.profile;
        let rest = profile.routing.candidates.iter().skip(self.verdicts.len());
        let rest = rest.map(|one| not_considered(&profile.for_candidate(one), why.to_owned()));
        let known = self.verdicts.iter().filter(|_| self.is_routed()).cloned();
        known.chain(rest).collect()
    }

    /// Error of a create that no candidate can take: the verdict on each. Its code and what to do next are those of a file of ours
    /// that cannot be read, else of the refusal that is mended most easily.
    fn none_error(&mut self) -> Error {
        let id = &self.resolved.profile.id;
        let easiest =
            self.refusals.iter().min_by_key(|(condition, error)| effort(condition, error));
        let Some((_, chief)) = easiest else {
            let named = self.request.host.as_deref().unwrap_or_default();
            let message = format!("no candidate of {id} makes sandboxes on {named}");
            return Error::invalid_input("host", message)
                .detail("candidates", json(&self.verdicts))
                .hint("leave --host out, or name a host of a candidate");
        };
        let mut error = chief.clone();
        error.message = format!("no candidate of {id} can take the sandbox");
        error.causes = self.verdicts.iter().map(CandidateVerdict::sentence).collect();
        error.detail("candidates", json(&self.verdicts))
    }
}

/// Effort to mend what a candidate is refused for, from the least on.
fn effort(condition: &RouteCondition, error: &Error) -> u8 {
    match condition {
        _ if matches!(error.code, Code::StoreCorrupt | Code::StoreForeign) => 0,
        RouteCondition::OverBudget => 1,
        RouteCondition::Saturated => 2,
        RouteCondition::HostUnreachable => 3,
        RouteCondition::Unsupported | RouteCondition::Other(_) => 4,
    }
}

/// Reason for which a backend is none for the host that was named: it has a place of its own, or that host is another's.
fn pinned_elsewhere(deps: &Deps, extension: &dyn SandboxExtension, named: &str) -> Option<String> {
    match extension.place() {
        Some(place) if place.same(named) => None,
        Some(place) => {
            Some(format!("not considered: it makes its sandboxes at {place}, not on {named}"))
        }
        None => {
            let is_place =
                |one: &dyn SandboxExtension| one.place().is_some_and(|place| place.same(named));
            let taken = deps.extensions.values().any(|one| is_place(one.as_ref()));
            taken.then(|| format!("not considered: {named} is the place of another backend"))
        }
    }
}

fn taken(found: &Found, route: &Route) -> CandidateVerdict {
    CandidateVerdict {
        extension: found.resolved.profile.extension.clone(),
        ok: true,
        condition: None,
        reason: format!("on {}, {}", route.host, route.reason),
        quote_usd: found.quote.as_ref().map(|quote| quote.usd),
        verdicts: found.verdicts.clone(),
    }
}

fn not_considered(profile: &Profile, why: String) -> CandidateVerdict {
    CandidateVerdict {
        extension: profile.extension.clone(),
        ok: false,
        condition: None,
        reason: why,
        quote_usd: None,
        verdicts: Vec::new(),
    }
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
