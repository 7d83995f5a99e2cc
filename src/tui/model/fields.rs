//! Text fields and choices of a form: what each sets, what is wrong with it, which one has the focus.

use std::collections::BTreeMap;

use tui_input::Input;

use crate::domain::Usd;
use crate::domain::error::Error;
use crate::domain::name::{check_label, check_name};
use crate::domain::patch;
use crate::domain::profile::{InputKind, InputSpec, Seconds};

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
    /// What happens to the containers while a snapshot is taken.
    Mode,
    /// Whether everything that an archive has must be set.
    Strict,
    /// Whether a patch that fails makes a restore fail.
    RequirePatches,
    /// A script's file.
    Script,
    /// What a patch is for.
    Description,
    /// Where a patch runs.
    RunIn,
    /// How many get a patch first.
    Canary,
    /// How much later a deadline is.
    By,
    /// How many credits.
    Amount,
    /// What a grant is for.
    Note,
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

    /// The focused field.
    pub fn focused(&mut self) -> Option<&mut Field> {
        self.list.get_mut(self.focus)
    }

    /// Moves the focus, round and round.
    pub fn step(&mut self, by: isize) {
        let count = self.list.len().max(1);
        self.focus = (self.focus + count).saturating_add_signed(by) % count;
    }

    /// What was typed for a key, without spaces around; none where nothing was.
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
    /// What the form calls it.
    pub fn label(&self) -> &str {
        match &self.key {
            FieldKey::Input(name) => name,
            FieldKey::Host => "host",
            FieldKey::Ttl => "ttl",
            FieldKey::Name => "name",
            FieldKey::Labels => "labels",
            FieldKey::Large => "large transfer",
            FieldKey::Mode => "mode",
            FieldKey::Strict => "strict",
            FieldKey::RequirePatches => "require patches",
            FieldKey::Script => "script file",
            FieldKey::Description => "description",
            FieldKey::RunIn => "runs in",
            FieldKey::Canary => "first",
            FieldKey::By => "later by",
            FieldKey::Amount => "amount",
            FieldKey::Note => "note",
        }
    }

    /// Whether it takes a path of this machine.
    pub fn is_path(&self) -> bool {
        self.key == FieldKey::Script || self.takes_folder()
    }

    /// Whether it takes the path of a folder.
    pub fn takes_folder(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.kind == InputKind::Directory)
    }

    /// Whether an error's `details.field` means this one.
    fn is_named(&self, name: &str) -> bool {
        let bare =
            name.strip_prefix("inputs.").or_else(|| name.strip_prefix("input.")).unwrap_or(name);
        match &self.key {
            FieldKey::Input(own) => own == bare,
            FieldKey::Host => bare == "host",
            FieldKey::Ttl => matches!(bare, "ttl" | "ttl_s"),
            FieldKey::Name => bare == "name",
            FieldKey::Labels => bare == "label" || bare == "labels" || bare.starts_with("labels."),
            FieldKey::Large => bare == "yes",
            FieldKey::Mode => bare == "mode",
            FieldKey::Strict => bare == "strict",
            FieldKey::RequirePatches => bare == "require_patches",
            FieldKey::Script => matches!(bare, "script" | "script_file"),
            FieldKey::Description => bare == "description",
            FieldKey::RunIn => bare == "run_in",
            FieldKey::Canary => bare == "canary",
            FieldKey::By => bare == "by",
            FieldKey::Amount => matches!(bare, "usd" | "amount"),
            FieldKey::Note => bare == "note",
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
            (FieldKey::Ttl | FieldKey::By, _) => {
                value.parse::<Seconds>().map(|_| ()).map_err(|error| error.to_string())
            }
            (FieldKey::Name, _) => check_name(value).map_err(|fault| fault.message),
            (FieldKey::Labels, _) => labels(value).map(|_| ()),
            (FieldKey::RunIn, _) => {
                patch::check("true", value, None).map_err(|fault| fault.message)
            }
            (FieldKey::Description, _) => {
                patch::check("true", patch::RUN_IN_WORKSPACE, Some(value))
                    .map_err(|fault| fault.message)
            }
            (FieldKey::Amount, _) => match value.parse::<Usd>() {
                Ok(amount) if amount > Usd::ZERO => Ok(()),
                Ok(_) => Err("above zero".to_owned()),
                Err(error) => Err(error),
            },
            (FieldKey::Canary, _) if value.parse::<u32>().is_ok_and(|count| count > 0) => Ok(()),
            (FieldKey::Canary, _) => Err("a number from 1 on; empty: all at once".to_owned()),
            _ => Ok(()),
        };
        checked.err()
    }

    /// Goes to the next or previous choice; the default, then the choices.
    pub fn turn(&mut self, by: isize) {
        let Choice::OneOf(choices) = &self.choice else { return };
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

    /// One of these words; the first is the default.
    pub fn one_of(key: FieldKey, choices: &[&str], help: &str) -> Self {
        let choice = Choice::OneOf(choices.iter().map(|choice| (*choice).to_owned()).collect());
        Self { choice, ..Self::text(key, choices.first().copied().unwrap_or_default(), help) }
    }
}

/// Reads `key=value key=value`; commas count as spaces.
pub(super) fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
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
