//! Meaning of a profile: rules across fields, and the deadline that a create asks for.

use super::check_fields::{check_config, check_hosts, check_input, is_catalogue_id};
use super::definition::Profile;
use super::quantity::{QuantityError, Seconds};
use crate::domain::error::Error;
use crate::domain::problem::{FieldProblem, shown};

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
        let ttl =
            match asked.map(str::trim) {
                None => self.ttl,
                Some("none") => None,
                Some(asked) => Some(asked.parse().map_err(|error: QuantityError| {
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
