//! Attachments: the networks that a service is in, and its aliases and addresses there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::domain::compose_host::Subnet;
use crate::domain::profile::Allowance;

use super::dialect::Dialect;
use super::keys::is_on;
use super::merge::{list, scalar};
use super::networks::subnets_of;
use super::pass::Pass;
use crate::domain::problem::join;

/// Settings of an attachment that stay in the sandbox.
const SETTINGS: &[&str] = &[
    "aliases",
    "gw_priority",
    "interface_name",
    "ipv4_address",
    "ipv6_address",
    "mac_address",
    "priority",
];

/// Renders the networks that a service is in; their names. A network of its own where the file names none.
pub(super) fn render(
    service: &mut Map<String, Value>,
    path: &str,
    alias: Option<&str>,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Vec<String> {
    let path = join(path, "networks");
    let narrow = pass.input.host.dialect == Dialect::Narrow;
    if service.contains_key("network_mode") {
        if service.shift_remove("networks").is_some_and(|networks| is_on(&networks)) {
            pass.findings().refuse(
                &path,
                None,
                "`networks` and `network_mode` exclude each other; remove one",
            );
        } else if narrow {
            pass.findings().refuse(
                &path,
                None,
                "podman-compose 1.0 cannot combine `network_mode` with its networks; use a newer compose on that host",
            );
        }
        return Vec::new();
    }
    let mut used: Map<String, Value> = match service.shift_remove("networks") {
        Some(Value::Object(map)) if !map.is_empty() => map,
        Some(Value::Array(items)) if !items.is_empty() => {
            items.iter().map(|item| (scalar(item), Value::Null)).collect()
        }
        Some(Value::String(name)) => Map::from_iter([(name, Value::Null)]),
        _ => Map::from_iter([("default".to_owned(), Value::Null)]),
    };
    used.retain(|name, _| {
        let known = name == "default" || declared.contains(name);
        if !known {
            pass.findings().refuse(
                &path,
                None,
                format!("the network `{name}` is not declared; add it under `networks:`"),
            );
        }
        known
    });
    for settings in used.values_mut() {
        add_alias(settings, alias);
    }
    let names: Vec<String> = used.keys().cloned().collect();
    let plain = used.values().all(|settings| !is_on(settings));
    if narrow && !plain {
        pass.findings()
            .rewrite(&path, "aliases and addresses are left out: podman-compose 1.0 knows none");
    }
    let rendered = if plain || narrow { json!(names) } else { Value::Object(used) };
    service.insert("networks".to_owned(), rendered);
    names
}

fn add_alias(settings: &mut Value, alias: Option<&str>) {
    let Some(alias) = alias else { return };
    if settings.is_null() {
        *settings = json!({});
    }
    let Some(settings) = settings.as_object_mut() else { return };
    let mut aliases = list(settings.shift_remove("aliases").unwrap_or_default());
    if !aliases.iter().any(|existing| existing == alias) {
        aliases.push(alias.into());
    }
    settings.insert("aliases".to_owned(), Value::Array(aliases));
}

/// Judges what services say of their networks, in the form in which the engine will read it.
pub(super) fn judge(
    services: &Map<String, Value>,
    networks: &Map<String, Value>,
    pass: &mut Pass<'_>,
) {
    let subnets: BTreeMap<&str, Vec<Subnet>> =
        networks.iter().map(|(name, network)| (name.as_str(), subnets_of(network))).collect();
    let is_external =
        |name: &str| networks.get(name).is_some_and(|network| network.get("external").is_some());
    for (service, body) in services {
        let Some(Value::Object(used)) = body.get("networks") else { continue };
        for (name, settings) in used {
            let path = format!("services.{service}.networks.{name}");
            let Some(settings) = settings.as_object() else {
                if !settings.is_null() {
                    pass.findings().refuse(
                        &path,
                        None,
                        "it is a mapping; write `{}` for the defaults",
                    );
                }
                continue;
            };
            // Its addresses are not ours to know; that the network may be used at all was allowed by name.
            let known = subnets
                .get(name.as_str())
                .filter(|_| !is_external(name))
                .map_or(&[][..], Vec::as_slice);
            for (key, value) in settings.iter().filter(|(_, value)| !value.is_null()) {
                if let Some(why) = beyond(key, value, known, is_external(name)) {
                    pass.guard(Allowance::HostNetwork, &join(&path, key), why);
                }
            }
        }
    }
}

/// Why a setting of a service's network is none of a sandbox.
fn beyond(key: &str, value: &Value, subnets: &[Subnet], is_external: bool) -> Option<String> {
    if !SETTINGS.contains(&key) {
        return Some(format!("`{key}` may change how the container meets the host; remove it"));
    }
    let text = scalar(value);
    let (want_v4, fixed) = (key == "ipv4_address", matches!(key, "ipv4_address" | "ipv6_address"));
    if !fixed || is_external && text.parse::<IpAddr>().is_ok() {
        return None;
    }
    let address = text.parse::<IpAddr>().ok().filter(|address| address.is_ipv4() == want_v4);
    let inside =
        address.is_some_and(|address| subnets.iter().any(|subnet| subnet.contains(address)));
    (!inside).then(|| {
        format!("`{text}` is in no subnet that the network declares; choose one there, or none")
    })
}
