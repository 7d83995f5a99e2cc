//! The create form: a profile, then its inputs and what every create has.

use std::collections::BTreeMap;

use tui_input::Input;

use super::Load;
use super::fields::{Choice, Field, FieldKey, Fields, labels};
use crate::client::{CreateRequest, Decision, Error, ProfileView};
use crate::domain::name::HostName;
use crate::domain::profile::{InputKind, InputSpec};
use crate::domain::sandbox::Verdict;

/// Which half of the form is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Choosing a profile.
    Pick,
    /// Filling in fields.
    Fill,
}

/// What a create would do.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Fields are wrong or missing: it makes no sense to ask.
    Unasked,
    /// It will be asked in a moment, or was asked.
    Asking,
    /// The answer.
    Known(Box<Decision>),
    /// It could not be found out.
    Failed(Error),
}

/// The form.
#[derive(Debug, Clone)]
pub struct CreateForm {
    /// Which half is open.
    pub step: Step,
    /// Whether the profiles are there.
    pub load: Load,
    /// The profiles.
    pub profiles: Vec<ProfileView>,
    /// The profile under the cursor.
    pub index: usize,
    /// What the profiles are searched by.
    pub search: Input,
    /// What placement said of each host so far.
    pub verdicts: BTreeMap<HostName, Verdict>,
    /// The fields.
    pub fields: Fields,
    /// What a create would do.
    pub plan: Plan,
    /// Grows with each change, so that a late plan is recognised.
    pub generation: u64,
    /// Whether the create was asked and not answered.
    pub submitting: bool,
    /// An error that belongs to no field.
    pub error: Option<Error>,
    /// Whether this half of it was on the screen.
    pub drawn: bool,
}

impl CreateForm {
    /// A form that waits for the profiles.
    pub fn new() -> Self {
        Self {
            step: Step::Pick,
            load: Load::Loading,
            profiles: Vec::new(),
            index: 0,
            search: Input::default(),
            verdicts: BTreeMap::new(),
            fields: Fields::default(),
            plan: Plan::Unasked,
            generation: 0,
            submitting: false,
            error: None,
            drawn: false,
        }
    }

    /// The profile under the cursor.
    pub fn profile(&self) -> Option<&ProfileView> {
        self.profiles.get(self.index)
    }

    /// Takes the profiles.
    pub fn take(&mut self, profiles: Vec<ProfileView>) {
        self.profiles = profiles;
        self.load = Load::Ready;
        self.point_at_first();
    }

    /// The profiles that match what was typed, by their place: those that can be used first, and by how well their names match.
    pub fn shown(&self) -> Vec<usize> {
        let typed = self.search.value().trim().to_lowercase();
        let mut found: Vec<(bool, u8, usize)> = self
            .profiles
            .iter()
            .enumerate()
            .filter_map(|(at, view)| Some((!is_usable(view), how_well(view, &typed)?, at)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, at)| at).collect()
    }

    /// Moves the cursor among those that are shown, round the end.
    pub fn step(&mut self, by: isize) {
        let shown = self.shown();
        let count = shown.len().max(1);
        let at = shown.iter().position(|at| *at == self.index).unwrap_or_default();
        let next = (at + count).saturating_add_signed(by) % count;
        self.index = shown.get(next).copied().unwrap_or(self.index);
    }

    /// Puts the cursor on the first one that is shown.
    pub fn point_at_first(&mut self) {
        self.index = self.shown().first().copied().unwrap_or_default();
    }

    /// Takes what placement says of the hosts, and says it beside the field.
    pub fn judge_hosts(&mut self, verdicts: &[Verdict]) {
        for verdict in verdicts {
            self.verdicts.insert(verdict.host.clone(), verdict.clone());
        }
        self.tell_verdict();
    }

    /// Says beside the host's field what placement thinks of the one that is chosen, or of each.
    pub fn tell_verdict(&mut self) {
        let Some(field) = self.fields.list.iter_mut().find(|field| field.key == FieldKey::Host)
        else {
            return;
        };
        let Choice::OneOf(hosts) = &field.choice else { return };
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

    /// Opens the fields of the profile under the cursor; what was typed in fields of the same name stays.
    pub fn open_fields(&mut self, hosts: &[String]) {
        let Some(view) = self.profiles.get(self.index) else { return };
        let mut fields: Vec<Field> = Vec::new();
        if let Some(profile) = &view.profile {
            fields.extend(profile.inputs.iter().map(|(name, spec)| input_field(name, spec)));
        }
        let ttl = view.profile.as_ref().and_then(|profile| profile.ttl);
        let ttl = ttl.map_or_else(|| "none".to_owned(), |ttl| ttl.to_string());
        fields.push(host_field(hosts));
        fields.push(Field::text(
            FieldKey::Ttl,
            &ttl,
            "from ready on, such as 90m or 2d; none: no deadline",
        ));
        fields.push(Field::text(
            FieldKey::Name,
            "none",
            "unique among sandboxes that are not destroyed",
        ));
        fields.push(Field::text(
            FieldKey::Labels,
            "none",
            "key=value, separated by spaces; protect=true keeps sweeps away",
        ));
        let large = "agree to a transfer above 2 GiB or 200,000 files";
        fields.push(Field::one_of(FieldKey::Large, &["no", "yes"], large));
        for field in &mut fields {
            if let Some(old) = self.fields.list.iter().find(|old| old.key == field.key) {
                field.input = old.input.clone();
            }
        }
        self.fields = Fields::new(fields);
        (self.step, self.drawn) = (Step::Fill, false);
        self.plan = Plan::Unasked;
        self.error = None;
        self.verdicts.clear();
        self.fields.check_all(false);
        self.tell_verdict();
    }

    /// Puts an error beside the field that `details.field` names; else it stands below the form.
    pub fn refuse(&mut self, problem: Error) {
        self.error = self.fields.refuse(problem);
    }

    /// What the form asks for.
    pub fn request(&self) -> CreateRequest {
        let mut request = CreateRequest {
            profile: self.profile().map(|view| view.id.clone()),
            ..CreateRequest::default()
        };
        for field in &self.fields.list {
            let value = field.input.value().trim();
            if value.is_empty() {
                continue;
            }
            let value = value.to_owned();
            match &field.key {
                // Spaces within an input's value are the operator's.
                FieldKey::Input(name) => {
                    request.inputs.insert(name.clone(), field.input.value().to_owned());
                }
                FieldKey::Host => request.host = Some(value),
                FieldKey::Ttl => request.ttl = Some(value),
                FieldKey::Name => request.name = Some(value),
                FieldKey::Labels => request.labels = labels(&value).unwrap_or_default(),
                FieldKey::Large => request.yes = value == "yes",
                // Fields of other forms.
                FieldKey::Mode
                | FieldKey::Strict
                | FieldKey::RequirePatches
                | FieldKey::Script
                | FieldKey::Description
                | FieldKey::RunIn
                | FieldKey::Canary
                | FieldKey::By
                | FieldKey::Amount
                | FieldKey::Note => {}
            }
        }
        request
    }
}

impl Default for CreateForm {
    fn default() -> Self {
        Self::new()
    }
}

fn input_field(name: &str, spec: &InputSpec) -> Field {
    let default = spec.default.clone().unwrap_or_default();
    let mut field = Field::text(
        FieldKey::Input(name.to_owned()),
        &default,
        spec.help.as_deref().unwrap_or_default(),
    );
    if field.help.is_empty() {
        field.help = format!("a {}", spec.kind);
    }
    field.choice = match spec.kind {
        InputKind::Boolean => Choice::OneOf(vec!["false".to_owned(), "true".to_owned()]),
        InputKind::Choice => Choice::OneOf(spec.choices.clone()),
        InputKind::String | InputKind::Directory | InputKind::Integer | InputKind::Other(_) => {
            Choice::Text
        }
    };
    field.required = spec.required && spec.default.is_none();
    field.spec = Some(spec.clone());
    field
}

/// The host: a choice where hosts are known.
fn host_field(hosts: &[String]) -> Field {
    let mut field =
        Field::text(FieldKey::Host, "placement decides", "one host, whatever the profile says");
    if !hosts.is_empty() {
        field.choice = Choice::OneOf(hosts.to_vec());
    }
    field
}

/// Whether a sandbox can be made from it here.
pub fn is_usable(view: &ProfileView) -> bool {
    view.available && view.error.is_none()
}

/// How well a profile matches what was typed, the best first: its name holds it, or its letters, or its summary does.
fn how_well(view: &ProfileView, typed: &str) -> Option<u8> {
    let name = view.id.strip_prefix("profile.").unwrap_or(&view.id).to_lowercase();
    let mut letters = name.chars();
    if name.contains(typed) {
        Some(0)
    } else if typed.chars().all(|wanted| letters.any(|letter| letter == wanted)) {
        Some(1)
    } else {
        let summary = view.summary.as_deref().unwrap_or_default().to_lowercase();
        summary.contains(typed).then_some(2)
    }
}
