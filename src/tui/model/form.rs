//! The create form: a profile, then its inputs and what every create has.

use std::collections::BTreeMap;

use tui_input::Input;

use super::Load;
use crate::client::{CreateRequest, Decision, Problem, ProfileView};
use crate::domain::name::{check_label, check_name};
use crate::domain::profile::{InputKind, InputSpec, Seconds};

/// Which half of the form is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Choosing a profile.
    Pick,
    /// Filling in fields.
    Fill,
}

/// What a field sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKey {
    /// An input of the profile.
    Input(String),
    /// The host.
    Host,
    /// The time to live.
    Ttl,
    /// The name.
    Name,
    /// The labels.
    Labels,
    /// Agreement to a large transfer.
    Large,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Any text.
    Text,
    /// One of these; the left and right keys go through them.
    OneOf(Vec<String>),
}

/// One field.
#[derive(Debug, Clone)]
pub struct Field {
    /// What it sets.
    pub key: FieldKey,
    /// What it takes.
    pub choice: Choice,
    /// The input's rules, for an input.
    pub spec: Option<InputSpec>,
    /// What was typed; empty means the default.
    pub input: Input,
    /// The value when nothing is typed, as shown.
    pub default: String,
    /// One line of help.
    pub help: String,
    /// Whether a create needs it.
    pub required: bool,
    /// What is wrong with it.
    pub error: Option<String>,
    /// Whether `error` came from the client: it stands until the field changes.
    pub refused: bool,
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
    Failed(Problem),
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
    /// The fields.
    pub fields: Vec<Field>,
    /// The focused field.
    pub focus: usize,
    /// What a create would do.
    pub plan: Plan,
    /// Grows with each change, so that a late plan is recognised.
    pub generation: u64,
    /// Whether the create was asked and not answered.
    pub submitting: bool,
    /// An error that belongs to no field.
    pub error: Option<Problem>,
}

impl CreateForm {
    /// A form that waits for the profiles.
    pub fn new() -> Self {
        Self {
            step: Step::Pick,
            load: Load::Loading,
            profiles: Vec::new(),
            index: 0,
            fields: Vec::new(),
            focus: 0,
            plan: Plan::Unasked,
            generation: 0,
            submitting: false,
            error: None,
        }
    }

    /// The profile under the cursor.
    pub fn profile(&self) -> Option<&ProfileView> {
        self.profiles.get(self.index)
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
        fields.push(plain(FieldKey::Host, "placement decides", &host_help(hosts)));
        fields.push(plain(FieldKey::Ttl, &ttl, "from ready on, such as 90m or 2d; none: no deadline"));
        fields.push(plain(FieldKey::Name, "none", "unique among sandboxes that are not destroyed"));
        fields.push(plain(FieldKey::Labels, "none", "key=value, separated by spaces; protect=true keeps sweeps away"));
        let mut large = plain(FieldKey::Large, "no", "agree to a transfer above 2 GiB or 200,000 files");
        large.choice = Choice::OneOf(vec!["no".to_owned(), "yes".to_owned()]);
        fields.push(large);
        for field in &mut fields {
            if let Some(old) = self.fields.iter().find(|old| old.key == field.key) {
                field.input = old.input.clone();
            }
        }
        self.fields = fields;
        self.focus = 0;
        self.step = Step::Fill;
        self.plan = Plan::Unasked;
        self.error = None;
        self.check_all(false);
    }

    /// Checks one field as it is typed.
    pub fn check(&mut self, at: usize) {
        if let Some(field) = self.fields.get_mut(at) {
            field.refused = false;
            field.error = field.verdict(false);
        }
    }

    /// Checks all fields; with `missing`, required ones that are empty too. Whether all are well.
    pub fn check_all(&mut self, missing: bool) -> bool {
        let mut well = true;
        for field in &mut self.fields {
            if !field.refused {
                field.error = field.verdict(missing);
            }
            well &= field.error.is_none() && field.verdict(true).is_none();
        }
        well
    }

    /// Puts an error beside the field that `details.field` names; else it stands below the form.
    pub fn refuse(&mut self, problem: Problem) {
        let named = problem.details.get("field").and_then(serde_json::Value::as_str).map(str::to_owned);
        let at = named.and_then(|name| self.fields.iter().position(|field| field.is_named(&name)));
        match at.and_then(|at| self.fields.get_mut(at).map(|field| (at, field))) {
            Some((at, field)) => {
                let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                field.error = Some(format!("{}{hint}", problem.message));
                field.refused = true;
                self.focus = at;
                self.error = None;
            }
            None => self.error = Some(problem),
        }
    }

    /// What the form asks for.
    pub fn request(&self) -> CreateRequest {
        let mut request =
            CreateRequest { profile: self.profile().map(|view| view.id.clone()), ..CreateRequest::default() };
        for field in &self.fields {
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

impl Field {
    /// What the form calls it.
    pub fn label(&self) -> &str {
        match &self.key {
            FieldKey::Input(name) => name,
            FieldKey::Host => "host",
            FieldKey::Ttl => "ttl",
            FieldKey::Name => "name",
            FieldKey::Labels => "labels",
            FieldKey::Large => "large transfer",
        }
    }

    /// Whether an error's `details.field` means this one.
    fn is_named(&self, name: &str) -> bool {
        let bare = name.strip_prefix("inputs.").or_else(|| name.strip_prefix("input.")).unwrap_or(name);
        match &self.key {
            FieldKey::Input(own) => own == bare,
            FieldKey::Host => bare == "host",
            FieldKey::Ttl => matches!(bare, "ttl" | "ttl_s"),
            FieldKey::Name => bare == "name",
            FieldKey::Labels => bare == "label" || bare == "labels" || bare.starts_with("labels."),
            FieldKey::Large => bare == "yes",
        }
    }

    /// What is wrong with it; with `missing`, also that it is empty although required.
    fn verdict(&self, missing: bool) -> Option<String> {
        let value = self.input.value().trim();
        if value.is_empty() {
            return (missing && self.required).then(|| "is required".to_owned());
        }
        let checked = match (&self.key, &self.spec) {
            (FieldKey::Input(name), Some(spec)) => spec.check(name, self.input.value()),
            (FieldKey::Ttl, _) if value == "none" => Ok(()),
            (FieldKey::Ttl, _) => value.parse::<Seconds>().map(|_| ()).map_err(|error| error.to_string()),
            (FieldKey::Name, _) => check_name(value).map_err(|fault| fault.message),
            (FieldKey::Labels, _) => labels(value).map(|_| ()),
            _ => Ok(()),
        };
        checked.err()
    }

    /// Goes to the next or previous choice; the default, then the choices.
    pub fn turn(&mut self, by: isize) {
        let Choice::OneOf(choices) = &self.choice else { return };
        let shown = if self.input.value().is_empty() { self.default.as_str() } else { self.input.value() };
        let at = choices.iter().position(|choice| choice == shown).unwrap_or_default();
        let count = choices.len().max(1);
        let next = (at + count).saturating_add_signed(by) % count;
        if let Some(choice) = choices.get(next) {
            self.input = Input::new(choice.clone());
        }
    }
}

fn plain(key: FieldKey, default: &str, help: &str) -> Field {
    Field {
        key,
        choice: Choice::Text,
        spec: None,
        input: Input::default(),
        default: default.to_owned(),
        help: help.to_owned(),
        required: false,
        error: None,
        refused: false,
    }
}

fn input_field(name: &str, spec: &InputSpec) -> Field {
    let default = spec.default.clone().unwrap_or_default();
    let mut field = plain(FieldKey::Input(name.to_owned()), &default, spec.help.as_deref().unwrap_or_default());
    if field.help.is_empty() {
        field.help = format!("a {}", spec.kind);
    }
    field.choice = match spec.kind {
        InputKind::Boolean => Choice::OneOf(vec!["false".to_owned(), "true".to_owned()]),
        InputKind::Choice => Choice::OneOf(spec.choices.clone()),
        _ => Choice::Text,
    };
    field.required = spec.required && spec.default.is_none();
    field.spec = Some(spec.clone());
    field
}

fn host_help(hosts: &[String]) -> String {
    if hosts.is_empty() { "one host, whatever the profile says".to_owned() } else { hosts.join(", ") }
}

/// Reads `key=value key=value`; commas count as spaces.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("'{word}' is not key=value"));
        };
        check_label(key, value).map_err(|fault| fault.message)?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}
