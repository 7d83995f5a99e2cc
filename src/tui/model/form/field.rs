//! Fields of a form: what each sets and takes, what is wrong with it, which one has the focus.

use tui_input::Input;

use crate::domain::error::Error;
use crate::domain::name::check_name;
use crate::domain::profile::{InputKind, InputSpec, Seconds};

/// Setting of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKey {
    /// An input of the profile.
    Input(String),
    Host,
    /// The time to live.
    Ttl,
    Name,
    Labels,
    /// Agreement to a large transfer.
    Large,
    /// Treatment of the containers while a snapshot is taken.
    Mode,
    /// Whether everything that an archive has must be set.
    Strict,
    /// Whether a patch that fails makes a restore fail.
    RequirePatches,
    /// A script's file.
    Script,
    /// Description of a patch.
    Description,
    /// Where a patch runs.
    RunIn,
    /// How many get a patch first.
    Canary,
    /// How much later a deadline is.
    By,
    /// How many credits.
    Amount,
    /// Reason of a grant.
    Note,
    /// Whether sandboxes are protected.
    Protect,
    /// The value of the label with this key.
    Label(String),
    /// Labels that come, and those that go.
    LabelChanges,
    /// The service whose log is shown.
    Service,
    /// How many lines of each service are asked for.
    Lines,
    /// The file that a log is saved in.
    LogFile,
}

impl FieldKey {
    /// Name in forms and in errors.
    fn words(&self) -> (&'static str, &'static [&'static str]) {
        match self {
            // These have names of their own.
            Self::Input(_) | Self::Label(_) => ("", &[]),
            Self::Host => ("host", &["host"]),
            Self::Ttl => ("ttl", &["ttl", "ttl_s"]),
            Self::Name => ("name", &["name"]),
            Self::Labels => ("labels", &["label", "labels"]),
            Self::Large => ("large transfer", &["yes"]),
            Self::Mode => ("mode", &["mode"]),
            Self::Strict => ("strict", &["strict"]),
            Self::RequirePatches => ("require patches", &["require_patches"]),
            Self::Script => ("script file", &["script", "script_file"]),
            Self::Description => ("description", &["description"]),
            Self::RunIn => ("runs in", &["run_in"]),
            Self::Canary => ("first", &["canary"]),
            Self::By => ("later by", &["by", "by_s"]),
            Self::Amount => ("amount", &["usd", "amount"]),
            Self::Note => ("note", &["note"]),
            // Each sandbox's answer stands at its name.
            Self::Protect => ("protect", &[]),
            Self::LabelChanges => ("add, remove", &[]),
            Self::Service => ("service", &[]),
            Self::Lines => ("lines", &[]),
            Self::LogFile => ("new file", &["log_file"]),
        }
    }
}

/// Values that a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldKind {
    /// Any text that its rule holds of.
    Text,
    /// A choice of these; the left and right keys go through them.
    Choice(Vec<String>),
    /// A path of this machine.
    Path,
    /// The path of a folder.
    Folder,
}

/// Rule of a field: what holds of a value that is typed.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// Nothing.
    Any,
    /// That of a profile's input.
    Input(Box<InputSpec>),
    /// This one; the sentence says why it does not hold.
    Of(fn(&str) -> Result<(), String>),
}

/// Field of a form.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its setting.
    pub key: FieldKey,
    /// Values that it takes.
    pub kind: FieldKind,
    rule: Rule,
    /// Text that was typed; empty means the default.
    pub input: Input,
    /// The value when nothing is typed, as shown.
    pub default: String,
    /// Line of help.
    pub help: String,
    /// Whether it has to be given.
    pub required: bool,
    pub error: Option<String>,
    /// Whether `error` came from the client: it stands until the field changes.
    pub refused: bool,
}

/// The fields of a form.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The fields, from above.
    pub list: Vec<Field>,
    /// The focused one.
    pub focus: usize,
}

impl Fields {
    /// These fields, the first one focused.
    pub fn new(list: Vec<Field>) -> Self {
        Self { list, focus: 0 }
    }

    pub fn focused(&mut self) -> Option<&mut Field> {
        self.list.get_mut(self.focus)
    }

    /// Moves the focus, round and round.
    pub fn step(&mut self, by: isize) {
        let count = self.list.len().max(1);
        self.focus = (self.focus + count).saturating_add_signed(by) % count;
    }

    /// Text that was typed for a key, without spaces around; none where nothing was.
    pub fn value(&self, key: &FieldKey) -> Option<String> {
        let field = self.list.iter().find(|field| field.key == *key)?;
        Some(field.input.value().trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Whether a choice between no and yes is yes.
    pub fn is_yes(&self, key: &FieldKey) -> bool {
        self.value(key).as_deref() == Some("yes")
    }

    /// Checks the focused field as it is typed.
    pub fn check(&mut self) {
        if let Some(field) = self.focused() {
            field.refused = false;
            field.error = field.verdict(false);
        }
    }

    /// Checks all fields; with `missing`, required ones that are empty too. Whether all are well.
    pub fn check_all(&mut self, missing: bool) -> bool {
        let mut well = true;
        for field in &mut self.list {
            if !field.refused {
                field.error = field.verdict(missing);
            }
            well &= field.error.is_none() && field.verdict(true).is_none();
        }
        well
    }

    /// Whether all fields are well to be asked with; else the first one that is not has the focus. What the client refused
    /// may be well by now: it is asked again.
    pub fn are_ready(&mut self) -> bool {
        for field in &mut self.list {
            field.refused = false;
        }
        let well = self.check_all(true);
        if let Some(at) = self.list.iter().position(|field| field.error.is_some()) {
            self.focus = at;
        }
        well
    }

    /// Puts an error beside the field that it names, which gets the focus; else it comes back.
    pub fn refuse(&mut self, problem: Error) -> Option<Error> {
        let named = problem.field().map(str::to_owned);
        let at = named.and_then(|name| self.list.iter().position(|field| field.is_named(&name)));
        let Some((at, field)) = at.and_then(|at| self.list.get_mut(at).map(|field| (at, field)))
        else {
            return Some(problem);
        };
        let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        field.error = Some(format!("{}{hint}", problem.message));
        field.refused = true;
        self.focus = at;
        None
    }
}

impl Field {
    /// Name in the form.
    pub fn label(&self) -> &str {
        match &self.key {
            FieldKey::Input(name) | FieldKey::Label(name) => name,
            key => key.words().0,
        }
    }

    /// Whether it takes a path of this machine.
    pub fn is_path(&self) -> bool {
        matches!(self.kind, FieldKind::Path | FieldKind::Folder)
    }

    /// Whether an error's `details.field` means this one.
    fn is_named(&self, name: &str) -> bool {
        let bare =
            name.strip_prefix("inputs.").or_else(|| name.strip_prefix("input.")).unwrap_or(name);
        match &self.key {
            FieldKey::Input(own) => own == bare,
            FieldKey::Labels if bare.starts_with("labels.") => true,
            key => key.words().1.contains(&bare),
        }
    }

    /// Error of its text; with `missing`, also that it is empty although required.
    fn verdict(&self, missing: bool) -> Option<String> {
        let value = self.input.value().trim();
        if value.is_empty() {
            return (missing && self.required).then(|| "is required".to_owned());
        }
        match &self.rule {
            Rule::Any => None,
            // Spaces around an input's value are the operator's.
            Rule::Input(spec) => spec.check(self.label(), self.input.value()).err(),
            Rule::Of(check) => check(value).err(),
        }
    }

    /// Goes to the next or previous choice; the default, then the choices.
    pub fn turn(&mut self, by: isize) {
        let FieldKind::Choice(choices) = &self.kind else { return };
        let shown =
            if self.input.value().is_empty() { self.default.as_str() } else { self.input.value() };
        // A default that is no choice, such as that placement decides, stands before them.
        let before = usize::from(!choices.contains(&self.default));
        let at = choices.iter().position(|choice| choice == shown).map(|at| at + before);
        let count = (choices.len() + before).max(1);
        let next = (at.unwrap_or_default() + count).saturating_add_signed(by) % count;
        let choice = next.checked_sub(before).and_then(|at| choices.get(at));
        self.input = choice.map(|choice| Input::new(choice.clone())).unwrap_or_default();
    }

    /// A text field that may stay empty.
    pub fn text(key: FieldKey, default: &str, help: &str) -> Self {
        Self {
            key,
            kind: FieldKind::Text,
            rule: Rule::Any,
            input: Input::default(),
            default: default.to_owned(),
            help: help.to_owned(),
            required: false,
            error: None,
            refused: false,
        }
    }

    /// Choice of one of these words.
    pub fn choice(key: FieldKey, choices: Vec<String>, default: &str, help: &str) -> Self {
        Self { kind: FieldKind::Choice(choices), ..Self::text(key, default, help) }
    }

    /// No or yes.
    pub fn toggle(key: FieldKey, help: &str) -> Self {
        Self::choice(key, vec!["no".to_owned(), "yes".to_owned()], "no", help)
    }

    /// Choice of one of these hosts; any name where none is known.
    pub fn host(hosts: &[String], default: &str, help: &str) -> Self {
        match hosts {
            [] => Self::text(FieldKey::Host, default, help),
            hosts => Self::choice(FieldKey::Host, hosts.to_vec(), default, help),
        }
    }

    /// A path that has to be given.
    pub fn path(key: FieldKey, help: &str) -> Self {
        Self { kind: FieldKind::Path, required: true, ..Self::text(key, "", help) }
    }

    /// The name of a sandbox or a snapshot.
    pub fn name(among: &str) -> Self {
        Self::text(FieldKey::Name, "none", among)
            .checked(|value| check_name(value).map_err(|error| error.message))
    }

    /// The time to live.
    pub fn ttl(default: &str) -> Self {
        let help = "from ready on, such as 90m or 2d; none: no deadline";
        Self::text(FieldKey::Ttl, default, help)
            .checked(|value| if value == "none" { Ok(()) } else { check_seconds(value) })
    }

    /// An input of a profile.
    pub fn input(name: &str, spec: &InputSpec) -> Self {
        let help = spec.help.clone().unwrap_or_else(|| format!("a {}", spec.kind));
        let default = spec.default.as_deref().unwrap_or_default();
        let kind = match spec.kind {
            InputKind::Boolean => FieldKind::Choice(vec!["false".to_owned(), "true".to_owned()]),
            InputKind::Choice => FieldKind::Choice(spec.choices.clone()),
            InputKind::Directory => FieldKind::Folder,
            InputKind::String | InputKind::Integer | InputKind::Other(_) => FieldKind::Text,
        };
        Self {
            kind,
            rule: Rule::Input(Box::new(spec.clone())),
            required: spec.required && spec.default.is_none(),
            ..Self::text(FieldKey::Input(name.to_owned()), default, &help)
        }
    }

    #[must_use]
    pub fn checked(self, rule: fn(&str) -> Result<(), String>) -> Self {
        Self { rule: Rule::Of(rule), ..self }
    }

    /// With a text in it.
    #[must_use]
    pub fn with(self, value: &str) -> Self {
        Self { input: Input::new(value.to_owned()), ..self }
    }

    /// Which has to be given.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }
}

/// Whether a text is a duration.
pub(super) fn check_seconds(value: &str) -> Result<(), String> {
    value.parse::<Seconds>().map(|_| ()).map_err(|error| error.to_string())
}
