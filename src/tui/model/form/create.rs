//! Form of a create: the inputs of its profile, what every create has, and what placement says.

use std::collections::BTreeMap;

use super::definition::{Asked, Definition, NewJob, Notes, error_lines};
use super::field::{Field, FieldKey, FieldKind, Fields};
use crate::client::{CreateRequest, Decision, Error, ProfileView, Request};
use crate::domain::name::{HostName, check_label};
use crate::domain::sandbox::Verdict;
use crate::domain::{OperationKind, Time};
use crate::tui::model::{Role, decision_lines};

/// Plan of a create, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Fields are wrong or missing: it makes no sense to ask.
    Unasked,
    /// The plan will be asked for in a moment, or was.
    Asking,
    /// The answer.
    Known(Box<Decision>),
    /// The plan could not be made.
    Failed(Error),
}

/// A create from a profile.
#[derive(Debug, Clone)]
pub struct Create {
    pub view: ProfileView,
    /// The hosts, those that answer first.
    pub hosts: Vec<String>,
    /// Judgement of placement on each host so far.
    verdicts: BTreeMap<HostName, Verdict>,
    pub plan: Plan,
    /// Why the ledger could not be read when that was found out.
    pub ledger_error: Option<Error>,
    /// Number of the last plan that was asked for, so that a late one is recognised.
    pub generation: u64,
}

impl Create {
    /// From a profile, on one of these hosts.
    pub fn new(view: ProfileView, hosts: Vec<String>) -> Self {
        let (verdicts, plan) = (BTreeMap::new(), Plan::Unasked);
        Self { view, hosts, verdicts, plan, ledger_error: None, generation: 0 }
    }

    /// The profile's name without what all have.
    fn profile(&self) -> &str {
        self.view.id.strip_prefix("profile.").unwrap_or(&self.view.id)
    }

    /// Whether it could not be found out what it would do.
    pub fn is_refused(&self) -> bool {
        matches!(self.plan, Plan::Failed(_))
    }

    /// Takes what placement says of the hosts.
    pub fn judge_hosts(&mut self, verdicts: &[Verdict]) {
        for verdict in verdicts {
            self.verdicts.insert(verdict.host.clone(), verdict.clone());
        }
    }

    /// Says beside the host's field what placement thinks of the one that is chosen, or of each.
    pub fn tell_verdict(&self, fields: &mut Fields) {
        let Some(field) = fields.list.iter_mut().find(|field| field.key == FieldKey::Host) else {
            return;
        };
        let FieldKind::Choice(hosts) = &field.kind else { return };
        let sign = |verdict: &Verdict| if verdict.ok { '✓' } else { '✗' };
        let of = |name: &str| self.verdicts.values().find(|verdict| verdict.host.same(name));
        let chosen = field.input.value();
        field.help = if chosen.is_empty() {
            let each = |name: &String| match of(name) {
                Some(verdict) => format!("{} {name}", sign(verdict)),
                None => name.clone(),
            };
            hosts.iter().map(each).collect::<Vec<_>>().join("  ")
        } else {
            match of(chosen) {
                Some(verdict) => format!("{} {}", sign(verdict), verdict.reason),
                None => "placement has not looked at it yet".to_owned(),
            }
        };
    }

    /// Request that is asked for.
    pub fn request(&self, fields: &Fields) -> CreateRequest {
        let input = |field: &Field| match &field.key {
            // Spaces within an input's value are the operator's.
            FieldKey::Input(name) if !field.input.value().trim().is_empty() => {
                Some((name.clone(), field.input.value().to_owned()))
            }
            _ => None,
        };
        let labels = fields.value(&FieldKey::Labels).unwrap_or_default();
        CreateRequest {
            profile: Some(self.view.id.clone()),
            inputs: fields.list.iter().filter_map(input).collect(),
            host: fields.value(&FieldKey::Host),
            ttl: fields.value(&FieldKey::Ttl),
            name: fields.value(&FieldKey::Name),
            labels: read_labels(&labels).unwrap_or_default(),
            yes: fields.is_yes(&FieldKey::Large),
            ..CreateRequest::default()
        }
    }
}

impl Definition for Create {
    fn title(&self) -> String {
        format!("New sandbox: {}", self.profile())
    }

    fn fields(&self) -> Vec<Field> {
        let profile = self.view.profile.as_ref();
        let inputs = profile.into_iter().flat_map(|profile| profile.inputs.iter());
        let mut fields: Vec<Field> = inputs.map(|(name, spec)| Field::input(name, spec)).collect();
        let ttl = profile.and_then(|profile| profile.ttl);
        let ttl = ttl.map_or_else(|| "none".to_owned(), |ttl| ttl.to_string());
        let labels = "key=value, separated by spaces; protect=true keeps sweeps away";
        let large = "agree to a transfer above 2 GiB or 200,000 files";
        fields.extend([
            Field::host(&self.hosts, "placement decides", "one host, whatever the profile says"),
            Field::ttl(&ttl),
            Field::name("unique among sandboxes that are not destroyed"),
            Field::text(FieldKey::Labels, "none", labels)
                .checked(|value| read_labels(value).map(|_| ())),
            Field::toggle(FieldKey::Large, large),
        ]);
        fields
    }

    fn notes(&self, _fields: &Fields, _now: Time) -> Notes {
        match &self.plan {
            Plan::Unasked => {
                let words = "what it would do is shown when the fields are well";
                vec![(Role::Dim, words.to_owned())]
            }
            Plan::Asking => vec![(Role::Dim, "looking at what it would do…".to_owned())],
            Plan::Known(decision) => {
                let mut notes = decision_lines(decision);
                if let Some(error) = &self.ledger_error {
                    notes.extend(error_lines('⚠', Role::Warn, error));
                    let words = "  what is said of credits is as they were before";
                    notes.push((Role::Warn, words.to_owned()));
                }
                notes
            }
            Plan::Failed(problem) => error_lines('⚠', Role::Warn, problem),
        }
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let request = self.request(fields);
        let title = request.name.clone().unwrap_or_else(|| self.profile().to_owned());
        let request = Request::Create(Box::new(request));
        let kind = OperationKind::Create;
        Ok(Asked::Jobs(vec![NewJob { kind, sandbox: None, title, request }]))
    }
}

/// Reads `key=value key=value`; commas count as spaces.
fn read_labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("'{word}' is not key=value"));
        };
        check_label(key, value).map_err(|error| error.message)?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}
