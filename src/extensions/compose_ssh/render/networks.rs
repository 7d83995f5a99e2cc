//! Networks: the sandbox's own, with addresses that lead nowhere else on the host.
//!
//! A network's subnet becomes a route of the host. One that covers anything that the host reaches would have the host's own
//! traffic to it: a registry, a resolver, a cloud's metadata. So a subnet is private, no wider than somebody needs, and led
//! nowhere before; and whatever else decides how a network meets the host is on a list, or refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::compose_host::Subnet;
use crate::domain::profile::Allowance;

use super::dialect::Dialect;
use super::keys;
use super::merge::scalar;
use super::pass::Pass;
use super::resources::{definition, external, own};
use super::shapes::Section;
use crate::domain::problem::join;

/// Subnets that are nobody's: RFC 1918 and the local half of RFC 4193. Not 100.64.0.0/10 (RFC 6598): it is the carrier's, and
/// mesh VPNs put their hosts there.
const PRIVATE: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8"];

/// The widest subnet of IPv4 and of IPv6: what Docker itself hands out, and what RFC 4193 gives a site.
const WIDEST: (u8, u8) = (16, 48);

/// A value that a driver's option may have.
#[derive(Clone, Copy)]
enum Expected {
    Switch,
    Number,
    Word(&'static [&'static str]),
}

/// Options of network drivers that stay in the sandbox: how large a packet is, who inside may speak to whom.
const DRIVER_OPTS: &[(&str, Expected)] = &[
    ("com.docker.network.driver.mtu", Expected::Number),
    ("com.docker.network.bridge.enable_icc", Expected::Switch),
    ("com.docker.network.bridge.enable_ip_masquerade", Expected::Switch),
    ("com.docker.network.bridge.gateway_mode_ipv4", Expected::Word(&["nat", "isolated"])),
    ("com.docker.network.bridge.gateway_mode_ipv6", Expected::Word(&["nat", "isolated"])),
    ("com.docker.network.enable_ipv4", Expected::Switch),
    ("com.docker.network.enable_ipv6", Expected::Switch),
    ("mtu", Expected::Number),
    ("isolate", Expected::Switch),
    ("no_default_route", Expected::Switch),
];

/// Renders the networks that services use. (podman-compose 1.0.3 stops at one that none uses.)
pub(super) fn render(
    mut declared: Map<String, Value>,
    used: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Map<String, Value> {
    if used.contains("default") && !declared.contains_key("default") {
        declared.insert("default".to_owned(), Value::Null);
    }
    let mut rendered = Map::new();
    let mut subnets: Vec<(String, Subnet)> = Vec::new();
    for (name, network) in declared {
        let path = format!("networks.{name}");
        let Some(mut network) = definition(&name, network, &Section::Network.keys(), &path, pass)
        else {
            continue;
        };
        if external(&mut network, &name, &path, "network", pass) {
            if network.get("name").is_some_and(|name| name == "host") {
                let why = "this is the network of the host; publish ports instead";
                pass.guard(Allowance::HostNetwork, &join(&path, "name"), why);
            }
        } else {
            own(&mut network, &path, pass);
            driver(&network, &path, pass);
            switches(&network, &path, pass);
            ipam(&mut network, &name, &path, &mut subnets, pass);
            narrow(&mut network, &path, pass);
        }
        if used.contains(&name) {
            rendered.insert(name, Value::Object(network));
        }
    }
    rendered
}

/// Whether a rendered project has a network that asks for certain addresses.
pub(super) fn fixed(project: &Value) -> bool {
    let networks = project.get("networks").and_then(Value::as_object);
    networks.into_iter().flat_map(Map::values).any(|network| !subnets_of(network).is_empty())
}

pub(super) fn subnets_of(network: &Value) -> Vec<Subnet> {
    let configs = network.pointer("/ipam/config").and_then(Value::as_array);
    let subnets = configs.into_iter().flatten().filter_map(|config| config.get("subnet"));
    subnets.filter_map(|subnet| Subnet::parse(&scalar(subnet))).collect()
}

fn driver(network: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let driver = network.get("driver").map(scalar).unwrap_or_default();
    if !matches!(driver.as_str(), "" | "bridge" | "default" | "none") {
        let why = format!("`{driver}` reaches networks of the host; remove it");
        pass.guard(Allowance::HostNetwork, &join(path, "driver"), why);
    }
    let Some(Value::Object(options)) = network.get("driver_opts") else { return };
    for (key, value) in options {
        let text = scalar(value);
        let fine =
            DRIVER_OPTS.iter().find(|(known, _)| known == key).is_some_and(|(_, expected)| {
                match expected {
                    Expected::Switch => matches!(text.as_str(), "true" | "false" | "1" | "0"),
                    Expected::Number => {
                        text.parse::<u16>().is_ok() && text.bytes().all(|b| b.is_ascii_digit())
                    }
                    Expected::Word(words) => words.contains(&text.as_str()),
                }
            });
        if !fine {
            let why = format!(
                "`{key}` with this value may change how the network meets the host; remove it"
            );
            pass.guard(Allowance::HostNetwork, &format!("{path}.driver_opts.{key}"), why);
        }
    }
}

/// podman-compose 1.0 gives a network labels and `internal`, and passes over the rest.
fn narrow(network: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    if pass.input.host.dialect != Dialect::Narrow {
        return;
    }
    for key in ["driver", "driver_opts", "enable_ipv4", "enable_ipv6", "ipam"] {
        if network.shift_remove(key).is_some_and(|value| keys::is_on(&value)) {
            pass.findings()
                .rewrite(&join(path, key), "is left out: podman-compose 1.0 does not know it");
        }
    }
}

fn switches(network: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    for key in ["attachable", "enable_ipv4", "enable_ipv6", "internal"] {
        let value = network.get(key).map(scalar);
        if value.is_some_and(|value| !matches!(value.as_str(), "true" | "false")) {
            pass.findings().refuse(&join(path, key), None, format!("`{key}` is true or false"));
        }
    }
}

fn ipam(
    network: &mut Map<String, Value>,
    name: &str,
    path: &str,
    subnets: &mut Vec<(String, Subnet)>,
    pass: &mut Pass<'_>,
) {
    let path = join(path, "ipam");
    let Some(Value::Object(ipam)) = network.get_mut("ipam") else { return };
    ipam.retain(|key, value| !key.starts_with("x-") && !value.is_null());
    for (key, value) in ipam.iter() {
        let fine = match key.as_str() {
            "driver" => matches!(scalar(value).as_str(), "" | "default"),
            "config" => value.is_array(),
            "options" => !keys::is_on(value),
            _ => false,
        };
        if !fine {
            let why = format!(
                "`{key}` hands addresses out otherwise than the engine does; leave it to `config:` with subnets"
            );
            pass.guard(Allowance::HostNetwork, &join(&path, key), why);
        }
    }
    for (index, config) in
        ipam.get_mut("config").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        let path = format!("{path}.config[{index}]");
        let Some(config) = config.as_object_mut() else {
            pass.findings().refuse(&path, None, "it is a mapping; write `- subnet: 10.5.0.0/24`");
            continue;
        };
        if let Some(subnet) = pool(config, &path, pass) {
            let twice = subnets
                .iter()
                .find(|(_, known)| known.overlaps(&subnet))
                .map(|(other, _)| other.clone());
            if let Some(other) = twice {
                let why = format!(
                    "{subnet} overlaps what the network `{other}` of this file has; choose another"
                );
                pass.findings().refuse(&join(&path, "subnet"), None, why);
            }
            subnets.push((name.to_owned(), subnet));
        }
    }
}

/// Pool of addresses: a subnet with what is in it; its text becomes the plain form, which every engine reads alike.
fn pool(config: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) -> Option<Subnet> {
    config.retain(|key, value| !key.starts_with("x-") && !value.is_null());
    let text = config.get("subnet").map(scalar).unwrap_or_default();
    let subnet = Subnet::parse(&text).filter(|_| text.contains('/'));
    if let Some(subnet) = subnet {
        if let Some(why) = unfit(&subnet, pass) {
            pass.guard(Allowance::HostNetwork, &join(path, "subnet"), why);
        }
        config.insert("subnet".to_owned(), subnet.to_string().into());
    } else {
        let why = format!("`{text}` is no subnet; write one as in `10.5.0.0/24`");
        pass.findings().refuse(&join(path, "subnet"), None, why);
    }
    let inside = |text: &str| {
        let range = Subnet::parse(text);
        range.zip(subnet).is_none_or(|(range, subnet)| subnet.covers(&range)) && range.is_some()
    };
    let mut outside: Vec<(String, String)> = Vec::new();
    for (key, value) in config.iter() {
        match key.as_str() {
            "subnet" => {}
            "gateway" | "ip_range" => {
                let text = scalar(value);
                let legal = inside(&text) && (key == "ip_range" || !text.contains('/'));
                outside.extend((!legal).then(|| (key.clone(), text)));
            }
            "aux_addresses" if value.is_object() => {
                for (name, address) in value.as_object().into_iter().flatten() {
                    let text = scalar(address);
                    let legal = keys::is_name(name) && inside(&text) && !text.contains('/');
                    outside.extend((!legal).then(|| (format!("{key}.{name}"), text)));
                }
            }
            _ => outside.push((key.clone(), scalar(value))),
        }
    }
    for (key, text) in outside {
        let why = format!("`{text}` is no address of the subnet; choose one in it");
        pass.guard(Allowance::HostNetwork, &join(path, &key), why);
    }
    subnet
}

/// Why a sandbox does not get a subnet.
fn unfit(subnet: &Subnet, pass: &Pass<'_>) -> Option<String> {
    let private = PRIVATE.into_iter().filter_map(Subnet::parse).any(|range| range.covers(subnet));
    if !private {
        return Some(format!(
            "the host's own traffic to {subnet} would go to the sandbox; take a subnet of 10.0.0.0/8, 172.16.0.0/12, \
             192.168.0.0/16 or fd00::/8, or none"
        ));
    }
    let widest = if subnet.is_ipv4() { WIDEST.0 } else { WIDEST.1 };
    if subnet.prefix() < widest {
        return Some(format!("{subnet} is wider than /{widest}; take a smaller one"));
    }
    let taken =
        pass.input.host.taken.iter().flatten().find(|taken| taken.subnet.overlaps(subnet))?;
    Some(format!("{subnet} is not free on the host: {}; choose another, or none", taken.why))
}
