//! A profile from YAML.

use std::collections::BTreeMap;

use super::{
    Allowance, Candidate, Compose, InputKind, InputSpec, Inputs, PatchLimits, Placement,
    PortPolicy, Profile, READY_TIMEOUT, Routing, SETTLE, STOP_GRACE, Seconds, SnapshotMode,
    SnapshotPolicy, Strategy, Sync, empty_object,
};
use crate::domain::name::{ExtensionId, HostName, ProfileId};
use crate::domain::recipe_yaml::{
    Document, FromYaml, Kind, Node, ParseProblem, Reader, join, shown, words_from_yaml,
};
use crate::domain::route::RouteCondition;

words_from_yaml!(Strategy);
words_from_yaml!(PortPolicy);
words_from_yaml!(Allowance);
words_from_yaml!(SnapshotMode);
words_from_yaml!(InputKind);
words_from_yaml!(RouteCondition);

impl Profile {
    /// Reads and validates a profile's YAML; `file` is the name that problems show.
    ///
    /// Errors: every problem found, in the order of the file.
    pub fn from_yaml_text(file: &str, source: &str) -> Result<Self, Vec<ParseProblem>> {
        let document = Document::parse(file, source).map_err(|problem| vec![problem])?;
        Self::from_document(&document)
    }

    /// Reads and validates a parsed document.
    pub fn from_document(document: &Document) -> Result<Self, Vec<ParseProblem>> {
        let (profile, problems) = document.read::<Self>();
        let fields = profile.as_ref().map(Self::validate).unwrap_or_default();
        let problems = document.with_fields(problems, fields);
        match profile {
            Some(profile) if problems.is_empty() => Ok(profile),
            _ => Err(problems),
        }
    }
}

/// How long a sandbox lives when its profile does not say.
const DEFAULT_TTL: Seconds = Seconds::hours(4);

/// The keys of a profile.
const KEYS: &[&str] = &[
    "id",
    "version",
    "summary",
    "extension",
    "placement",
    "ttl",
    "max_ttl",
    "ready_timeout",
    "settle",
    "stop_grace",
    "undo",
    "inputs",
    "sync",
    "compose",
    "snapshot",
    "patches",
    "routing",
    "config",
];

impl FromYaml for Profile {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, KEYS)?;
        // Read all before giving up on any: an operator wants every problem at once.
        let id = fields.required::<ProfileId>(r, "id");
        let version = fields.required(r, "version");
        let extension = fields.required::<ExtensionId>(r, "extension");
        let max_ttl = fields.optional::<Lifetime>(r, "max_ttl").and_then(|ttl| ttl.0);
        let usual = max_ttl.map_or(DEFAULT_TTL, |max| max.min(DEFAULT_TTL));
        let ttl = match node.get("ttl") {
            // Nothing at all might be meant as none, which is too different from the default to guess.
            Some(ttl) if ttl.kind == Kind::Null => {
                r.refuse(ttl, "ttl", "'ttl' needs a value: a duration, or none")
            }
            _ => fields.optional::<Lifetime>(r, "ttl").map_or(Some(usual), |ttl| ttl.0),
        };
        let profile = Self {
            id: id.unwrap_or_else(|| ProfileId::from("profile.unknown")),
            version: version.unwrap_or_else(|| semver::Version::new(0, 0, 0)),
            summary: fields.or(r, "summary", String::new()),
            extension: extension.unwrap_or_else(|| ExtensionId::from("ext.unknown")),
            placement: fields.or(r, "placement", Placement::default()),
            ttl,
            max_ttl,
            ready_timeout: fields.or(r, "ready_timeout", READY_TIMEOUT),
            settle: fields.or(r, "settle", SETTLE),
            stop_grace: fields.or(r, "stop_grace", STOP_GRACE),
            undo: fields.or(r, "undo", false),
            inputs: fields.or(r, "inputs", Inputs::default()),
            sync: fields.or(r, "sync", Sync::default()),
            compose: fields.or(r, "compose", Compose::default()),
            snapshot: fields.or(r, "snapshot", SnapshotPolicy::default()),
            patches: fields.or(r, "patches", PatchLimits::default()),
            routing: fields.or(r, "routing", Routing::default()),
            config: fields.or(r, "config", empty_object()),
            written: None,
        };
        // With stand-ins for what is missing, so that the rest is judged too; the problems say that it is no profile.
        Some(profile)
    }
}

/// A duration or the word `none`.
struct Lifetime(Option<Seconds>);

impl FromYaml for Lifetime {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Text(text) if text == "none" => Some(Self(None)),
            _ => Seconds::from_yaml(node, path, r).map(|seconds| Self(Some(seconds))),
        }
    }
}

macro_rules! id_from_yaml {
    ($($name:ty),+) => {$(
        impl FromYaml for $name {
            fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
                String::from_yaml(node, path, r).map(Self::new)
            }
        }
    )+};
}
id_from_yaml!(ProfileId, ExtensionId);

impl FromYaml for HostName {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let text = String::from_yaml(node, path, r)?;
        match crate::domain::host::check_host_name(&text) {
            Ok(()) => Some(Self::new(text)),
            Err(message) => r.refuse(node, path, message),
        }
    }
}

impl FromYaml for Placement {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["hosts", "strategy"])?;
        Some(Self {
            hosts: fields.or(r, "hosts", Vec::new()),
            strategy: fields.or(r, "strategy", Strategy::default()),
        })
    }
}

impl FromYaml for Inputs {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let Kind::Map(entries) = &node.kind else {
            return r.refuse(
                node,
                path,
                format!("{} must be a mapping, not {}", shown(path), node.noun()),
            );
        };
        let mut list = Vec::new();
        for entry in entries {
            let inner = join(path, &entry.key);
            if let Some(spec) = InputSpec::from_yaml(&entry.value, &inner, r) {
                list.push((entry.key.clone(), spec));
            }
        }
        Some(Self::new(list))
    }
}

impl FromYaml for InputSpec {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["required", "kind", "default", "help", "choices"])?;
        let given = node.get("kind").is_some_and(|kind| kind.kind != Kind::Null);
        let kind = fields.optional(r, "kind");
        let spec = Self {
            required: fields.or(r, "required", false),
            kind: kind.clone().unwrap_or(InputKind::String),
            default: fields.optional::<Scalar>(r, "default").map(|scalar| scalar.0),
            help: fields.optional(r, "help"),
            choices: fields.or::<Vec<String>>(r, "choices", Vec::new()),
        };
        if let (InputKind::String | InputKind::Directory | InputKind::Choice, Some(default)) =
            (&spec.kind, node.get("default"))
            && !matches!(default.kind, Kind::Text(_) | Kind::Null)
        {
            // Read strictly, for its sentence: 1.10 without quotes would have become 1.1.
            let _ = String::from_yaml(default, &join(path, "default"), r);
        }
        // An unreadable kind: whatever else would be said of this input would be a guess.
        (kind.is_some() || !given).then_some(spec)
    }
}

/// A default as text: a number or truth value need not be quoted.
struct Scalar(String);

impl FromYaml for Scalar {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Bool(value) => Some(Self(value.to_string())),
            Kind::Int(value) => Some(Self(value.to_string())),
            Kind::Float(value) => Some(Self(value.to_string())),
            _ => String::from_yaml(node, path, r).map(Self),
        }
    }
}

impl FromYaml for Sync {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["exclude"])?;
        Some(Self { exclude: fields.or(r, "exclude", Vec::new()) })
    }
}

impl FromYaml for Compose {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["ports", "allow"])?;
        Some(Self {
            ports: fields.or(r, "ports", PortPolicy::default()),
            allow: fields.or(r, "allow", Vec::new()),
        })
    }
}

impl FromYaml for SnapshotPolicy {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["mode", "exclude", "keep"])?;
        Some(Self {
            mode: fields.optional(r, "mode"),
            exclude: fields.or(r, "exclude", Vec::new()),
            keep: fields.optional(r, "keep"),
        })
    }
}

impl FromYaml for PatchLimits {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["timeout", "pass_timeout"])?;
        let default = Self::default();
        Some(Self {
            timeout: fields.or(r, "timeout", default.timeout),
            pass_timeout: fields.or(r, "pass_timeout", default.pass_timeout),
        })
    }
}

impl FromYaml for Routing {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["candidates", "conditions", "max_cost_usd"])?;
        let candidates = fields.optional::<Candidates>(r, "candidates").unwrap_or_default().0;
        Some(Self {
            candidates,
            conditions: fields.optional::<Groups>(r, "conditions").unwrap_or_default().0,
            max_cost_usd: fields.optional(r, "max_cost_usd"),
        })
    }
}

/// Candidates, of which there is one at least.
#[derive(Default)]
struct Candidates(Vec<Candidate>);

impl FromYaml for Candidates {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let before = r.problems.len();
        let candidates: Vec<Candidate> = Vec::from_yaml(node, path, r)?;
        if candidates.is_empty() && r.problems.len() == before {
            let message = "a list of candidates names one at least; without the key, the profile's own extension makes every sandbox";
            return r.refuse(node, path, message);
        }
        Some(Self(candidates))
    }
}

/// Groups of conditions, by their names.
#[derive(Default)]
struct Groups(BTreeMap<String, Vec<RouteCondition>>);

impl FromYaml for Groups {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let Kind::Map(entries) = &node.kind else {
            let message = format!("{} must be a mapping, not {}", shown(path), node.noun());
            return r.refuse(node, path, message);
        };
        let mut groups = BTreeMap::new();
        for entry in entries {
            let inner = join(path, &entry.key);
            let before = r.problems.len();
            // One that cannot be read is known all the same: `when` may name it.
            let words = Vec::from_yaml(&entry.value, &inner, r).unwrap_or_default();
            if words.is_empty() && r.problems.len() == before {
                let message = format!("the group {} names no condition", shown(&entry.key));
                r.refuse::<()>(&entry.value, &inner, message);
            }
            groups.insert(entry.key.clone(), words);
        }
        Some(Self(groups))
    }
}

impl FromYaml for Candidate {
    fn from_yaml(node: &Node, path: &str, r: &mut Reader<'_>) -> Option<Self> {
        let fields = r.fields(node, path, &["extension", "hosts", "when", "config"])?;
        let extension = fields.required(r, "extension");
        let hosts = fields.or(r, "hosts", Vec::new());
        let when = fields.or(r, "when", Vec::new());
        let config = fields.optional(r, "config");
        Some(Self { extension: extension?, hosts, when, config })
    }
}
