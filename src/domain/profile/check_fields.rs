//! Rules of single fields of a profile.

use std::collections::BTreeSet;

use super::inputs::{InputKind, InputSpec, SANDBOX_ID};
use crate::domain::host::check_root;
use crate::domain::name::HostName;
use crate::domain::problem::shown;

/// Whether a text is a prefix and then `[a-z0-9][a-z0-9-]*`, at most 100 characters.
pub(crate) fn is_catalogue_id(text: &str, prefix: &str) -> bool {
    let Some(name) = text.strip_prefix(prefix) else { return false };
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 100 && name.starts_with(allowed) && name.chars().all(|c| allowed(c) || c == '-')
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

/// Rule of every extension's `config`: a `root` in it is read by inventory and adopt.
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

pub(super) fn check_input(name: &str, spec: &InputSpec, refuse: &mut impl FnMut(&str, String)) {
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
