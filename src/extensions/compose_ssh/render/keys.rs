//! The keys the renderer understands. One it does not know could do anything, so it is refused.

use serde_json::{Map, Value};

use super::findings::Findings;
use crate::domain::problem::join;
use crate::domain::text::nearest;

/// Top-level keys.
pub(super) const PROJECT: &[&str] = &[
    "version", "name", "services", "networks", "volumes", "secrets", "configs", "include", "models",
];

/// Keys of a port in the long syntax.
pub(super) const PORT: &[&str] =
    &["app_protocol", "host_ip", "mode", "name", "protocol", "published", "target"];

/// Drops `x-` keys and nulls, refuses unknown keys. (podman-compose 1.0.3 ends in a traceback on a null.)
pub(super) fn keep_known(
    map: &mut Map<String, Value>,
    known: &[&str],
    path: &str,
    findings: &mut Findings,
) {
    map.retain(|key, value| {
        if key.starts_with("x-") {
            return false;
        }
        if !known.contains(&key.as_str()) {
            let hint = nearest(key, known.iter().copied()).map_or_else(
                || "; remove it, or move it under an `x-` key".to_owned(),
                |name| format!(", did you mean `{name}`?"),
            );
            findings.refuse(&join(path, key), None, format!("unknown key `{key}`{hint}"));
            return false;
        }
        !value.is_null()
    });
}

/// Refuses every one of `keys` that is not a mapping: what cannot be judged must not pass.
pub(super) fn want_mappings(
    map: &Map<String, Value>,
    keys: &[&str],
    path: &str,
    findings: &mut Findings,
) {
    for key in keys {
        if map.get(*key).is_some_and(|value| !value.is_object()) {
            findings.refuse(
                &join(path, key),
                None,
                format!("`{key}` is a mapping; write `{key}: {{NAME: VALUE}}`"),
            );
        }
    }
}

/// Names of services, networks and volumes: what every compose and engine accepts, and no option of a command.
pub(super) fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(legal)
        && name.len() <= 63
}

/// Is a switch on? Anything that is not clearly off counts as on, also text from a variable.
pub(super) fn is_on(value: &Value) -> bool {
    match value {
        Value::Bool(on) => *on,
        Value::Null => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(
            text.trim().to_ascii_lowercase().as_str(),
            "" | "false" | "no" | "n" | "off" | "0" | "f"
        ),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// Is the switch `key` on? One that is off in a word that a tool may read as something (`devices: 0` as a list of one) leaves
/// the mapping.
pub(super) fn is_on_or_drop(map: &mut Map<String, Value>, key: &str) -> bool {
    let Some(value) = map.get(key) else { return false };
    let on = is_on(value);
    if !on && !value.is_boolean() {
        map.shift_remove(key);
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_name() {
        let mut findings = Findings::default();
        let Value::Object(mut map) =
            json!({"prots": [], "image": "a", "x-mine": 1, "tty": null, "zzzzqq": 1})
        else {
            unreachable!()
        };
        keep_known(&mut map, &["ports", "image", "tty"], "services.web", &mut findings);
        assert_eq!(Value::Object(map), json!({"image": "a"}));
        assert_eq!(findings.refusals[0].path, "services.web.prots");
        assert!(findings.refusals[0].message.contains("did you mean `ports`?"));
        assert!(findings.refusals[1].message.contains("remove it"));
    }

    #[test]
    fn switches_are_on_unless_clearly_off() {
        for off in
            [json!(false), json!("false"), json!("No"), json!(""), json!(0), json!(null), json!([])]
        {
            assert!(!is_on(&off), "{off}");
        }
        for on in [
            json!(true),
            json!("true"),
            json!("yes"),
            json!("1"),
            json!(1),
            json!("what"),
            json!(["x"]),
            json!({"a": 1}),
        ] {
            assert!(is_on(&on), "{on}");
        }
    }

    #[test]
    fn names_are_no_options_and_have_no_odd_characters() {
        for name in ["web", "a.b_c-d", "9", "_x"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-x", "--privileged", "a b", "a/b", "ä", ".", "..", &"x".repeat(64)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
