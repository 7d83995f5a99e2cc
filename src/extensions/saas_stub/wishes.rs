//! Wishes of a create: the inputs that this extension knows, or the same in the profile's `config`. Inputs that it does not know, such
//! as a compose stack's, are somebody else's and change nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::error::Error;
use crate::domain::profile::Profile;

/// The longest latency, in seconds.
const LONGEST_STARTUP_S: u64 = 600;

/// The most GB that are asked for.
const MOST_GB: u64 = 100_000;

/// Verb that is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fail {
    /// None.
    Never,
    /// The create, when something was made already.
    Provision,
    /// The wait until it is ready.
    Ready,
    /// The first removal.
    Teardown,
    /// Every removal.
    TeardownAlways,
    /// A snapshot of it, when something of that was made already.
    Snapshot,
    /// A restore from its snapshot, when something was made already.
    Restore,
    Sleep,
    Wake,
}

/// Words of the input `fail`.
const FAIL_WORDS: [(&str, Fail); 9] = [
    ("none", Fail::Never),
    ("provision", Fail::Provision),
    ("ready", Fail::Ready),
    ("teardown", Fail::Teardown),
    ("teardown-always", Fail::TeardownAlways),
    ("snapshot", Fail::Snapshot),
    ("restore", Fail::Restore),
    ("sleep", Fail::Sleep),
    ("wake", Fail::Wake),
];

/// Wishes of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wishes {
    /// Region that it pretends to be in.
    pub(super) region: String,
    /// GB that are paid for.
    pub(super) gigabytes: u64,
    /// Latency of a start.
    pub(super) startup: Duration,
    /// Step that fails.
    pub(super) fail: Fail,
}

impl Wishes {
    /// From inputs, else the profile's `config`, else nothing special.
    ///
    /// Errors: `invalid_input` with the field.
    pub(super) fn of(profile: &Profile, inputs: &BTreeMap<String, String>) -> Result<Self, Error> {
        let value = |name: &str| {
            let given = inputs.get(name).filter(|given| !given.is_empty()).cloned();
            given.or_else(|| match &profile.config[name] {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Number(number) => Some(number.to_string()),
                _ => None,
            })
        };
        let number = |name: &str, most: u64| match value(name) {
            None => Ok(0),
            Some(text) => text.parse().ok().filter(|number| *number <= most).ok_or_else(|| {
                Error::invalid_input(name, format!("{name} is a whole number from 0 to {most}"))
            }),
        };
        let word = value("fail").unwrap_or_else(|| "none".to_owned());
        let Some((_, fail)) = FAIL_WORDS.into_iter().find(|(known, _)| *known == word) else {
            let message = format!("fail is one of {}", FAIL_WORDS.map(|(word, _)| word).join(", "));
            return Err(Error::invalid_input("fail", message));
        };
        let region = value("region").unwrap_or_else(|| "eu".to_owned());
        if region.len() > 20 || !region.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(Error::invalid_input("region", "region is a word of a-z, such as eu"));
        }
        Ok(Self {
            region,
            gigabytes: number("gb", MOST_GB)?,
            startup: Duration::from_secs(number("startup_s", LONGEST_STARTUP_S)?),
            fail,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(config: serde_json::Value, inputs: &[(&str, &str)]) -> Result<Wishes, Error> {
        let mut profile = Profile::unknown("profile.x".into(), "1.0.0", "ext.saas-stub".into());
        profile.config = config;
        let inputs = inputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Wishes::of(&profile, &inputs.collect())
    }

    #[test]
    fn inputs_are_stronger_than_config_and_a_stacks_inputs_are_passed_over() {
        let plain = wishes(serde_json::json!({}), &[("repo", "/src"), ("compose_file", "a,b")]);
        let plain = plain.unwrap();
        assert_eq!((plain.region.as_str(), plain.gigabytes), ("eu", 0));
        assert_eq!((plain.startup, plain.fail), (Duration::ZERO, Fail::Never));
        let config = serde_json::json!({"startup_s": 3, "gb": 2, "fail": "ready", "region": "us"});
        let found = wishes(config, &[("gb", "7"), ("fail", "none"), ("region", "")]).unwrap();
        assert_eq!((found.region.as_str(), found.gigabytes), ("us", 7));
        assert_eq!((found.startup, found.fail), (Duration::from_secs(3), Fail::Never));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_field() {
        for (name, value) in [
            ("gb", "-1"),
            ("gb", "100001"),
            ("gb", "1.5"),
            ("startup_s", "601"),
            ("startup_s", "x"),
            ("fail", "sometimes"),
            ("region", "../eu"),
        ] {
            let error = wishes(serde_json::json!({}), &[(name, value)]).unwrap_err();
            assert_eq!(error.details["field"], name, "{value}");
        }
    }
}
