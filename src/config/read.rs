//! The configuration file into sections.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;

use super::sections::{Dashboard, ServeSettings, StateHub, SweepSettings};
use super::{Config, Environment, Paths};
use crate::domain::error::{Code, Error};
use crate::domain::host::{HostSpec, check_host_name};
use crate::domain::name::{HostName, ProfileId};
use crate::domain::problem::{FieldProblem, ParseProblem};
use crate::domain::profile::Seconds;
use crate::domain::stale::StaleSettings;
use crate::domain::undo::UndoSettings;
use crate::yaml::{Checked, Document, Schema};

/// Profile of a create that names none.
const DEFAULT_PROFILE: &str = "profile.sandbox-canary";

/// Why a host is forbidden, where `forbid` does not say it.
const NO_REASON: &str = "no reason is given";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of::<File>(|schema| {
        // The name of a host is its key.
        if let Some(keys) = schema["$defs"]["HostSpec"]["properties"].as_object_mut() {
            keys.shift_remove("name");
        }
    })
});

/// Reads the file (none: the defaults).
pub(super) fn read(paths: Paths, document: Option<Document>) -> Result<Config, Vec<ParseProblem>> {
    let file = match &document {
        Some(document) if !document.value().is_null() => read_file(&paths, document)?,
        _ => File::default(),
    };
    let mut hosts = file.hosts;
    if !hosts.iter().any(|host| host.name.is_local()) {
        hosts.insert(0, HostSpec::local());
    }
    Ok(Config {
        paths,
        hosts,
        default_host: file.default_host.unwrap_or_else(|| HostName::from(HostName::LOCAL)),
        default_profile: file.default_profile.unwrap_or_else(|| ProfileId::from(DEFAULT_PROFILE)),
        state_hub: file.state_hub,
        undo: file.undo,
        stale: file.stale,
        sweep: file.sweep,
        serve: file.serve,
        dashboard: file.dashboard,
        requested_host: None,
        compose_cmd: None,
        actor: None,
        user: None,
        log_filter: None,
        hub_token: None,
        document,
    })
}

fn read_file(paths: &Paths, document: &Document) -> Result<File, Vec<ParseProblem>> {
    let mut value = document.value().clone();
    if let Some(Value::Object(hosts)) = value.get_mut("hosts") {
        // A safety switch without a reason is still a safety switch.
        let unsaid = hosts.values_mut().filter_map(|host| host.get_mut("forbid"));
        unsaid.filter(|reason| reason.is_null()).for_each(|reason| *reason = NO_REASON.into());
    }
    let mut checked = document.check(&SCHEMA, value);
    check_names(document, &mut checked);
    checked.read(|file: &mut File| {
        let mut fields = file.validate();
        fields.extend(file.expand(paths));
        fields
    })
}

/// Host of `SANDBOXER_HOST`.
pub(super) fn requested_host(environment: &Environment) -> Result<Option<HostName>, Error> {
    let Some(name) = environment.text("SANDBOXER_HOST") else { return Ok(None) };
    match check_host_name(name) {
        Ok(()) => Ok(Some(HostName::from(name))),
        Err(message) => Err(Error::new(Code::InvalidConfig, format!("SANDBOXER_HOST: {message}"))),
    }
}

/// The file as it is written.
#[derive(Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
struct File {
    /// Hosts in the file's order.
    #[serde(deserialize_with = "named")]
    #[schemars(with = "BTreeMap<String, HostSpec>")]
    hosts: Vec<HostSpec>,
    default_host: Option<HostName>,
    default_profile: Option<ProfileId>,
    state_hub: Option<StateHub>,
    undo: UndoSettings,
    stale: StaleSettings,
    sweep: SweepSettings,
    serve: ServeSettings,
    dashboard: Dashboard,
}

impl File {
    /// Rules across and within sections.
    fn validate(&self) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        for host in &self.hosts {
            let prefix = format!("hosts.{}", host.name);
            found.extend(host.validate().into_iter().map(|mut problem| {
                problem.path = format!("{prefix}.{}", problem.path);
                problem
            }));
        }
        let mut refuse = |path: &str, message: String| found.push(FieldProblem::new(path, message));
        if let Some(name) = &self.default_host
            && self.hosts.iter().any(|host| host.name.same(name.as_str()) && host.is_forbidden())
        {
            refuse("default_host", format!("the host '{name}' is forbidden"));
        }
        if let Some(hub) = &self.state_hub {
            hub.validate().into_iter().for_each(|(key, message)| refuse(key, message.to_owned()));
        }
        if self.undo.max_bytes > self.undo.max_total {
            let message = format!(
                "'max_bytes' ({}) is above 'max_total' ({})",
                self.undo.max_bytes, self.undo.max_total
            );
            refuse("undo.max_bytes", message);
        }
        if self.undo.window == Seconds(0) {
            refuse("undo.window", "'window' must be above 0".to_owned());
        }
        for (path, value) in
            [("sweep.interval", self.sweep.interval), ("dashboard.refresh", self.dashboard.refresh)]
        {
            if !(1..=3600).contains(&value.get()) {
                let key = path.rsplit('.').next().unwrap_or(path);
                refuse(path, format!("'{key}' is 1s to 1h"));
            }
        }
        found
    }

    /// Makes local paths whole.
    fn expand(&mut self, paths: &Paths) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        let mut whole =
            |path: String, value: &mut PathBuf| match paths.expand(&value.to_string_lossy()) {
                Ok(expanded) => *value = expanded,
                Err(message) => found.push(FieldProblem::new(path, message)),
            };
        for host in &mut self.hosts {
            if let Some(file) = &mut host.ssh_config {
                whole(format!("hosts.{}.ssh_config", host.name), file);
            }
        }
        if let Some(file) = self.state_hub.as_mut().and_then(|hub| hub.token_file.as_mut()) {
            whole("state_hub.token_file".to_owned(), file);
        }
        for (at, root) in self.serve.input_roots.iter_mut().enumerate() {
            whole(format!("serve.input_roots[{at}]"), root);
        }
        found
    }
}

/// Reads hosts in the file's order; the name of one is its key.
fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<HostSpec>, D::Error> {
    let hosts = serde_json::Map::deserialize(deserializer)?;
    let host = |(name, spec)| {
        let spec: HostSpec = serde_json::from_value(spec).map_err(D::Error::custom)?;
        Ok(HostSpec { name: HostName::new(name), ..spec })
    };
    hosts.into_iter().map(host).collect()
}

/// Takes out hosts whose names are none, or another's in another spelling, each with its problem.
fn check_names(document: &Document, checked: &mut Checked<'_>) {
    let Some(Value::Object(hosts)) = checked.value.get_mut("hosts") else { return };
    let mut names: Vec<String> = Vec::new();
    let problems = &mut checked.problems;
    hosts.retain(|name, _| {
        let other = names.iter().find(|other| other.eq_ignore_ascii_case(name));
        let error = check_host_name(name).err().or_else(|| {
            let other = other?;
            Some(format!("host '{name}' is '{other}' again: host names are compared without case"))
        });
        match error {
            None => names.push(name.clone()),
            Some(message) => {
                problems.push(document.key_problem(&format!("hosts.{name}"), message));
                return false;
            }
        }
        true
    });
}
