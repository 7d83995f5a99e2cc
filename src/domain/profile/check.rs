//! Meaning of a profile: rules across fields, and the deadline that a create asks for.

use std::collections::BTreeSet;

use super::inputs::SANDBOX_ID;
use super::{InputKind, InputSpec, Profile, Seconds};
use crate::domain::error::Error;
use crate::domain::host::check_root;
use crate::domain::name::HostName;
use crate::domain::problem::{FieldProblem, shown};

/// Whether a text is a prefix and then `[a-z0-9][a-z0-9-]*`, at most 100 characters.
pub(crate) fn is_catalogue_id(text: &str, prefix: &str) -> bool {
    let Some(name) = text.strip_prefix(prefix) else { return false };
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 100 && name.starts_with(allowed) && name.chars().all(|c| allowed(c) || c == '-')
}

impl Profile {
    /// Every rule that one profile can break by itself. Empty: it is good.
    pub fn validate(&self) -> Vec<FieldProblem> {
        let mut found = Vec::new();
        let mut refuse = |path: &str, message: String| found.push(FieldProblem::new(path, message));
        if !is_catalogue_id(self.id.as_str(), "profile.") {
            let message = format!(
                "{} is not 'profile.' and a name of a-z, 0-9 and '-'",
                shown(self.id.as_str())
            );
            refuse("id", message);
        }
        if self.summary.chars().any(char::is_control) || self.summary.len() > 200 {
            refuse("summary", "'summary' is one line of at most 200 bytes".to_owned());
        }
        self.check_times(&mut refuse);
        check_hosts("placement.hosts", &self.placement.hosts, &mut refuse);
        if self.snapshot.keep == Some(0) {
            refuse("snapshot.keep", "'keep' is at least 1, or null to keep all".to_owned());
        }
        for (prefix, patterns) in
            [("sync", &self.sync.exclude), ("snapshot", &self.snapshot.exclude)]
        {
            for (index, pattern) in patterns.iter().enumerate() {
                if pattern.trim().is_empty() || pattern.chars().any(char::is_control) {
                    refuse(
                        &format!("{prefix}.exclude[{index}]"),
                        "a pattern is one line and not empty".to_owned(),
                    );
                }
            }
        }
        check_config("config", &self.config, &mut refuse);
        for (name, spec) in self.inputs.iter() {
            check_input(name, spec, &mut refuse);
        }
        found.extend(self.check_routing());
        found
    }

    fn check_times(&self, refuse: &mut impl FnMut(&str, String)) {
        if self.ttl == Some(Seconds(0)) {
            refuse("ttl", "'ttl' must be above 0; write none for a sandbox without end".to_owned());
        }
        // A text cannot say more; a manifest can.
        for (key, time) in [("ttl", self.ttl), ("max_ttl", self.max_ttl)] {
            if time > Some(Seconds::MAX) {
                refuse(key, format!("'{key}' is longer than ten years"));
            }
        }
        match (self.ttl, self.max_ttl) {
            (_, Some(Seconds(0))) => refuse("max_ttl", "'max_ttl' must be above 0".to_owned()),
            (Some(ttl), Some(max)) if ttl > max => {
                refuse("ttl", format!("'ttl' ({ttl}) is above 'max_ttl' ({max})"));
            }
            (None, Some(max)) => {
                refuse("ttl", format!("'ttl' cannot be none where 'max_ttl' ({max}) is set"));
            }
            _ => {}
        }
        if !(1..=86_400).contains(&self.ready_timeout.get()) {
            refuse("ready_timeout", "'ready_timeout' is 1s to 24h".to_owned());
        }
        if self.settle.get() > 600 {
            refuse("settle", "'settle' is at most 10m".to_owned());
        }
        if self.stop_grace.get() > 600 {
            refuse("stop_grace", "'stop_grace' is at most 10m".to_owned());
        }
        let patches = &self.patches;
        if !(1..=86_400).contains(&patches.timeout.get()) {
            refuse("patches.timeout", "'timeout' is 1s to 24h".to_owned());
        }
        if !(1..=86_400).contains(&patches.pass_timeout.get()) {
            refuse("patches.pass_timeout", "'pass_timeout' is 1s to 24h".to_owned());
        } else if patches.pass_timeout < patches.timeout {
            let message = format!(
                "'pass_timeout' ({}) is below 'timeout' ({})",
                patches.pass_timeout, patches.timeout
            );
            refuse("patches.pass_timeout", message);
        }
    }

    /// The time to live of a new sandbox. `asked` is `--ttl`: a duration, `none`, or nothing for the profile's own.
    /// `None` is without end.
    ///
    /// Errors (`invalid_input`, field `ttl`): not a duration, 0, above `max_ttl`, `none` where there is a `max_ttl`. A profile that
    /// comes from elsewhere may say such a thing itself.
    pub fn parse_ttl(&self, asked: Option<&str>) -> Result<Option<Seconds>, Error> {
        let ttl = match asked.map(str::trim) {
            None => self.ttl,
            Some("none") => None,
            Some(asked) => Some(asked.parse().map_err(|error: super::QuantityError| {
                Error::invalid_input("ttl", error.to_string())
            })?),
        };
        let refused =
            |message: String, hint: String| Err(Error::invalid_input("ttl", message).hint(hint));
        match (ttl, self.max_ttl) {
            (Some(Seconds(0)), _) => refused(
                "a sandbox cannot live for 0 seconds".to_owned(),
                "--ttl none is without end, where the profile allows it".to_owned(),
            ),
            (None, Some(max)) => refused(
                format!("{} allows at most {max}, so 'none' is refused", self.id),
                format!("--ttl {max}"),
            ),
            (Some(ttl), Some(max)) if ttl > max => refused(
                format!("{ttl} is above the {max} that {} allows", self.id),
                format!("--ttl {max}"),
            ),
            (ttl, _) => Ok(ttl),
        }
    }
}

/// Rule of a list of hosts: each is in it once.
pub(super) fn check_hosts(path: &str, hosts: &[HostName], refuse: &mut impl FnMut(&str, String)) {
    for (index, host) in hosts.iter().enumerate() {
        if hosts[..index].iter().any(|earlier| earlier.same(host.as_str())) {
            let message = format!("host {} is named twice", shown(host.as_str()));
            refuse(&format!("{path}[{index}]"), message);
        }
    }
}

/// Rules for every extension's `config`: a `root` in it is read by inventory and adopt.
pub(super) fn check_config(
    path: &str,
    config: &serde_json::Value,
    refuse: &mut impl FnMut(&str, String),
) {
    if !config.is_object() {
        refuse(path, "'config' must be a mapping".to_owned());
    }
    if let Some(Err(message)) = config.get("root").and_then(|root| root.as_str()).map(check_root) {
        refuse(&format!("{path}.root"), message);
    }
}

fn check_input(name: &str, spec: &InputSpec, refuse: &mut impl FnMut(&str, String)) {
    let path = format!("inputs.{name}");
    let head = name.starts_with(|c: char| c.is_ascii_lowercase());
    let body = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if name == SANDBOX_ID {
        refuse(
            &path,
            format!("the input '{SANDBOX_ID}' exists in every profile and cannot be declared"),
        );
    } else if !(head && body && name.len() <= 63) {
        refuse(
            &path,
            format!(
                "the input name {} is not a-z, 0-9 and '_', beginning with a letter",
                shown(name)
            ),
        );
    }
    match (&spec.kind, spec.choices.is_empty()) {
        (InputKind::Choice, true) => {
            refuse(&path, format!("input '{name}' of kind choice needs 'choices'"));
        }
        (InputKind::Choice, false) => {
            let distinct: BTreeSet<_> = spec.choices.iter().collect();
            if distinct.len() != spec.choices.len() {
                refuse(&format!("{path}.choices"), format!("input '{name}' lists a choice twice"));
            }
        }
        (_, false) => {
            refuse(
                &format!("{path}.choices"),
                format!("input '{name}' has 'choices' but is not of kind choice"),
            );
        }
        _ => {}
    }
    if let Some(default) = &spec.default {
        if spec.required {
            refuse(
                &format!("{path}.default"),
                format!("input '{name}' is required, so its default never applies"),
            );
        }
        if let Err(message) = spec.check(name, default) {
            refuse(
                &format!("{path}.default"),
                message.replacen("input", "the default of input", 1),
            );
        }
    }
}
