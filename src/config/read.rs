//! The configuration file into sections.

use std::path::PathBuf;

use super::sections::{Dashboard, Notify, ServeSettings, StateHub, SweepSettings, Theme};
use super::{Config, Environment, Paths};
use crate::domain::error::{Code, Error};
use crate::domain::host::{HostSpec, check_host_name};
use crate::domain::hub::HubFormat;
use crate::domain::name::{HostName, ProfileId};
use crate::domain::profile::{FieldProblem, Seconds};
use crate::domain::recipe_yaml::{
    Document, FromYaml, Kind, Node, ParseProblem, Reader, words_from_yaml,
};
use crate::domain::stale::StaleSettings;
use crate::domain::undo::UndoSettings;

/// What a create without a profile makes.
const DEFAULT_PROFILE: &str = "profile.sandbox-canary";

/// Reads the file (none: the defaults).
pub(super) fn read(paths: Paths, document: Option<Document>) -> Result<Config, Vec<ParseProblem>> {
    let empty = document.as_ref().is_none_or(|document| document.root().kind == Kind::Null);
    let (file, problems) = match &document {
        Some(document) if !empty => document.read::<File>(),
        _ => (Some(File::default()), Vec::new()),
    };
    let Some(mut file) = file else { return Err(problems) };
    let mut fields = file.validate();
    fields.extend(file.expand(&paths));
    let problems = match &document {
        Some(document) => document.with_fields(problems, fields),
        None => problems,
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut hosts = file.hosts.0;
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

/// The host of `SANDBOXER_HOST`.
pub(super) fn requested_host(environment: &Environment) -> Result<Option<HostName>, Error> {
    let Some(name) = environment.text("SANDBOXER_HOST") else { return Ok(None) };
    match check_host_name(name) {
        Ok(()) => Ok(Some(HostName::from(name))),
        Err(message) => Err(Error::new(Code::InvalidConfig, format!("SANDBOXER_HOST: {message}"))),
    }
}

/// The file as it is written.
#[derive(Default)]
struct File {
    hosts: Hosts,
    default_host: Option<HostName>,
    default_profile: Option<ProfileId>,
    state_hub: Option<StateHub>,
    undo: UndoSettings,
    stale: StaleSettings,
    sweep: SweepSettings,
    serve: ServeSettings,
    dashboard: Dashboard,
}

/// The hosts in the file's order.
#[derive(Default)]
struct Hosts(Vec<HostSpec>);

impl File {
    /// Rules across and within sections.
    fn validate(&self) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        for host in &self.hosts.0 {
            let prefix = format!("hosts.{}", host.name);
            found.extend(host.validate().into_iter().map(|mut problem| {
                problem.path = format!("{prefix}.{}", problem.path);
                problem
            }));
        }
        let mut refuse = |path: &str, message: String| found.push(FieldProblem::new(path, message));
        if let Some(name) = &self.default_host
            && self.hosts.0.iter().any(|host| host.name.same(name.as_str()) && host.is_forbidden())
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
        for host in &mut self.hosts.0 {
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

/// The keys of the file.
const KEYS: &[&str] = &[
    "hosts",
    "default_host",
    "default_profile",
    "state_hub",
    "undo",
    "stale",
    "sweep",
    "serve",
    "dashboard",
];

impl FromYaml for File {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, KEYS)?;
        Some(Self {
            hosts: fields.or(r, "hosts", Hosts::default()),
            default_host: fields.optional(r, "default_host"),
            default_profile: fields.optional(r, "default_profile"),
            state_hub: fields.optional(r, "state_hub"),
            undo: fields.or(r, "undo", UndoSettings::default()),
            stale: fields.or(r, "stale", StaleSettings::default()),
            sweep: fields.or(r, "sweep", SweepSettings::default()),
            serve: fields.or(r, "serve", ServeSettings::default()),
            dashboard: fields.or(r, "dashboard", Dashboard::default()),
        })
    }
}

impl FromYaml for Hosts {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let Kind::Map(entries) = &node.kind else {
            return r.refuse(
                node,
                path,
                format!("'{path}' must be a mapping of hosts by name, not {}", node.noun()),
            );
        };
        let mut hosts: Vec<HostSpec> = Vec::new();
        for entry in entries {
            let inner = format!("{path}.{}", entry.key);
            if let Err(message) = check_host_name(&entry.key) {
                r.refuse_key(entry, &inner, message);
                continue;
            }
            if let Some(other) = hosts.iter().find(|host| host.name.same(&entry.key)) {
                // The same spelling twice is reported as a duplicate key already.
                if other.name.as_str() != entry.key {
                    let message = format!(
                        "host '{}' is '{}' again: host names are compared without case",
                        entry.key, other.name
                    );
                    r.refuse_key(entry, &inner, message);
                }
                continue;
            }
            if let Some(mut host) = HostSpec::from_yaml(&entry.value, &inner, r) {
                host.name = HostName::new(entry.key.clone());
                hosts.push(host);
            }
        }
        Some(Self(hosts))
    }
}

words_from_yaml!(HubFormat);
words_from_yaml!(Theme);
words_from_yaml!(Notify);

impl FromYaml for StateHub {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["url", "token_env", "token_file", "format"])?;
        let url = fields.required(r, "url");
        let token_env = fields.optional(r, "token_env");
        let token_file = fields.optional::<String>(r, "token_file").map(PathBuf::from);
        let format = fields.or(r, "format", HubFormat::CloudEvents);
        Some(Self { url: url?, token_env, token_file, format })
    }
}

impl FromYaml for UndoSettings {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["window", "max_bytes", "max_total"])?;
        let default = Self::default();
        Some(Self {
            window: fields.or(r, "window", default.window),
            max_bytes: fields.or(r, "max_bytes", default.max_bytes),
            max_total: fields.or(r, "max_total", default.max_total),
        })
    }
}

impl FromYaml for StaleSettings {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["failed_after", "grace"])?;
        let default = Self::default();
        Some(Self {
            failed_after: fields.or(r, "failed_after", default.failed_after),
            grace: fields.or(r, "grace", default.grace),
        })
    }
}

impl FromYaml for SweepSettings {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["interval", "reap"])?;
        let default = Self::default();
        Some(Self {
            interval: fields.or(r, "interval", default.interval),
            reap: fields.or(r, "reap", default.reap),
        })
    }
}

impl FromYaml for ServeSettings {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["max_upload", "input_roots"])?;
        let default = Self::default();
        let roots: Vec<String> = fields.or(r, "input_roots", Vec::new());
        Some(Self {
            max_upload: fields.or(r, "max_upload", default.max_upload),
            input_roots: roots.into_iter().map(PathBuf::from).collect(),
        })
    }
}

impl FromYaml for Dashboard {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["theme", "keys", "refresh", "notify", "utc"])?;
        let default = Self::default();
        Some(Self {
            theme: fields.or(r, "theme", default.theme),
            keys: fields.optional(r, "keys").unwrap_or_default(),
            refresh: fields.or(r, "refresh", default.refresh),
            notify: fields.or(r, "notify", default.notify),
            utc: fields.or(r, "utc", default.utc),
        })
    }
}
