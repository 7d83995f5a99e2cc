//! Published ports: short and long syntax, ranges, and what the port policy makes of them.

use serde_json::{Map, Value};

use crate::domain::profile::PortPolicy;

use super::findings::Findings;
use super::keys;

/// Most ports one service publishes on random ports of the host.
const MAX_PORTS: usize = 256;

/// A port of a container that the host publishes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerPort {
    /// The port, from 1 to 65535.
    pub port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
}

/// Entry of `ports`, which may be a range.
#[derive(Debug, PartialEq, Eq)]
struct Published {
    host_ip: Option<String>,
    /// Host's side as written: a port, a range, or nothing for a random one.
    host: Option<String>,
    container: (u16, u16),
    protocol: String,
}

/// Reads `ports` and returns what the rendered file says, and the ports of the container.
pub(super) fn apply(
    ports: &[Value],
    policy: &PortPolicy,
    path: &str,
    findings: &mut Findings,
) -> (Vec<Value>, Vec<ContainerPort>) {
    if ports.len() > MAX_PORTS {
        findings.refuse(
            path,
            None,
            format!("a service publishes at most {MAX_PORTS} ports; publish fewer"),
        );
        return (Vec::new(), Vec::new());
    }
    let mut rendered: Vec<Value> = Vec::new();
    let mut declared: Vec<ContainerPort> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let published = match parse(port, &path, findings) {
            Ok(published) => published,
            Err(message) => {
                findings.refuse(&path, None, message);
                continue;
            }
        };
        let (first, last) = published.container;
        if usize::from(last - first) + declared.len() >= MAX_PORTS {
            findings.refuse(
                &path,
                None,
                format!("a service publishes at most {MAX_PORTS} ports; publish fewer"),
            );
            continue;
        }
        let written = published.short();
        let lines: Vec<String> = match policy {
            PortPolicy::Keep => vec![written.clone()],
            _ => published.each().map(|port| random(policy, &port)).collect(),
        };
        declared.extend(published.each());
        if lines != [written.clone()] {
            let place = if *policy == PortPolicy::Public { "all interfaces" } else { "127.0.0.1" };
            findings
                .rewrite(&path, format!("`{written}` became a random port on {place} of the host"));
        }
        for line in lines {
            if !rendered.contains(&Value::String(line.clone())) {
                rendered.push(Value::String(line));
            }
        }
    }
    declared.sort();
    declared.dedup();
    (rendered, declared)
}

/// The short syntax for a random port: the only one that podman-compose 1.0.3 and all the others take.
fn random(policy: &PortPolicy, port: &ContainerPort) -> String {
    let suffix = if port.protocol == "tcp" { String::new() } else { format!("/{}", port.protocol) };
    let prefix = if *policy == PortPolicy::Public { "" } else { "127.0.0.1::" };
    format!("{prefix}{}{suffix}", port.port)
}

impl Published {
    fn each(&self) -> impl Iterator<Item = ContainerPort> + '_ {
        (self.container.0..=self.container.1)
            .map(|port| ContainerPort { port, protocol: self.protocol.clone() })
    }

    fn short(&self) -> String {
        let (first, last) = self.container;
        let container = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let suffix =
            if self.protocol == "tcp" { String::new() } else { format!("/{}", self.protocol) };
        let host = self.host.as_deref().unwrap_or_default();
        match &self.host_ip {
            Some(ip) if ip.contains(':') => format!("[{ip}]:{host}:{container}{suffix}"),
            Some(ip) => format!("{ip}:{host}:{container}{suffix}"),
            None if host.is_empty() => format!("{container}{suffix}"),
            None => format!("{host}:{container}{suffix}"),
        }
    }
}

fn parse(port: &Value, path: &str, findings: &mut Findings) -> Result<Published, String> {
    match port {
        Value::Number(number) => short(&number.to_string()),
        Value::String(text) => short(text),
        Value::Object(map) => {
            let mut map = map.clone();
            keys::keep_known(&mut map, keys::PORT, path, findings);
            long(&map)
        }
        _ => Err("a port is written as `8080:80` or as a mapping with `target:`".to_owned()),
    }
}

fn short(text: &str) -> Result<Published, String> {
    let text = text.trim();
    let (rest, protocol) =
        text.rsplit_once('/').map_or((text, "tcp"), |(rest, protocol)| (rest, protocol));
    let (rest, container) =
        rest.rsplit_once(':').map_or(("", rest), |(rest, container)| (rest, container));
    let (ip, host) = match rest.rsplit_once(':') {
        Some((ip, host)) => (Some(ip), host),
        None => (None, rest),
    };
    build(ip, host, container, protocol).map_err(|why| {
        format!(
            "`{text}` is no port mapping: {why}; write `8080:80`, `127.0.0.1:8080:80` or `80/udp`"
        )
    })
}

fn long(map: &Map<String, Value>) -> Result<Published, String> {
    let text = |key: &str| map.get(key).map(super::merge::scalar).unwrap_or_default();
    let protocol = if map.contains_key("protocol") { text("protocol") } else { "tcp".to_owned() };
    let ip = text("host_ip");
    build(
        Some(ip.as_str()).filter(|ip| !ip.is_empty()),
        &text("published"),
        &text("target"),
        &protocol,
    )
    .map_err(|why| {
        format!("this is no port mapping: {why}; give `target:` a port of the container")
    })
}

fn build(
    ip: Option<&str>,
    host: &str,
    container: &str,
    protocol: &str,
) -> Result<Published, String> {
    let protocol = protocol.to_ascii_lowercase();
    if !matches!(protocol.as_str(), "tcp" | "udp" | "sctp") {
        return Err("the protocol is tcp, udp or sctp".to_owned());
    }
    let container = range(container)?;
    let host = Some(host)
        .filter(|host| !host.is_empty() && *host != "0")
        .map(|host| range(host).map(|ports| (host, ports)))
        .transpose()?;
    if let Some((_, (first, last))) = host
        && container.0 != container.1
        && last - first != container.1 - container.0
    {
        return Err("the two ranges have different lengths".to_owned());
    }
    let host_ip =
        ip.map(|ip| ip.trim_start_matches('[').trim_end_matches(']')).filter(|ip| !ip.is_empty());
    if let Some(ip) = host_ip {
        ip.parse::<std::net::IpAddr>().map_err(|_| format!("`{ip}` is no IP address"))?;
    }
    Ok(Published {
        host_ip: host_ip.map(str::to_owned),
        host: host.map(|(text, _)| text.to_owned()),
        container,
        protocol,
    })
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port =
        |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0 && !text.starts_with('+'));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err(format!("`{text}` is no port from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(port: &Value, policy: &PortPolicy) -> (Vec<String>, Findings) {
        let mut findings = Findings::default();
        let (lines, _) =
            apply(std::slice::from_ref(port), policy, "services.web.ports", &mut findings);
        (lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect(), findings)
    }

    #[test]
    fn each_policy_renders_each_syntax() {
        let cases = [
            (json!(80), "127.0.0.1::80", "80", "80"),
            (json!("80"), "127.0.0.1::80", "80", "80"),
            (json!("8080:80"), "127.0.0.1::80", "80", "8080:80"),
            (json!("8080:80/tcp"), "127.0.0.1::80", "80", "8080:80"),
            (json!("53:53/udp"), "127.0.0.1::53/udp", "53/udp", "53:53/udp"),
            (json!("127.0.0.1:8080:80"), "127.0.0.1::80", "80", "127.0.0.1:8080:80"),
            (json!("127.0.0.1::80"), "127.0.0.1::80", "80", "127.0.0.1::80"),
            (json!("[::1]:8080:80"), "127.0.0.1::80", "80", "[::1]:8080:80"),
            (json!("::1:8080:80"), "127.0.0.1::80", "80", "[::1]:8080:80"),
            (json!("8000-8001:80-81"), "127.0.0.1::80 127.0.0.1::81", "80 81", "8000-8001:80-81"),
            (json!("80-81"), "127.0.0.1::80 127.0.0.1::81", "80 81", "80-81"),
            (json!("8000-9000:80"), "127.0.0.1::80", "80", "8000-9000:80"),
            (json!({"target": 80}), "127.0.0.1::80", "80", "80"),
            (
                json!({"target": 80, "published": "8080", "host_ip": "0.0.0.0", "protocol": "udp", "mode": "host"}),
                "127.0.0.1::80/udp",
                "80/udp",
                "0.0.0.0:8080:80/udp",
            ),
            (json!({"target": 80, "published": 8080}), "127.0.0.1::80", "80", "8080:80"),
        ];
        for (port, ephemeral, public, keep) in cases {
            for (policy, want) in [
                (PortPolicy::Ephemeral, ephemeral),
                (PortPolicy::Public, public),
                (PortPolicy::Keep, keep),
            ] {
                let (got, findings) = rendered(&port, &policy);
                assert_eq!(got.join(" "), want, "{port} {policy:?}");
                assert!(findings.refusals.is_empty());
                if policy == PortPolicy::Keep {
                    assert!(findings.rewrites.is_empty(), "{port}");
                }
            }
        }
    }

    #[test]
    fn a_change_is_listed_and_no_change_is_not() {
        assert_eq!(
            rendered(&json!("8080:80"), &PortPolicy::Ephemeral).1.rewrites[0].what,
            "`8080:80` became a random port on 127.0.0.1 of the host"
        );
        assert!(rendered(&json!("127.0.0.1::80"), &PortPolicy::Ephemeral).1.rewrites.is_empty());
        assert!(rendered(&json!("80"), &PortPolicy::Public).1.rewrites.is_empty());
    }

    #[test]
    fn what_is_no_port_is_refused_with_a_sentence() {
        for port in [
            json!(""),
            json!("x"),
            json!("0"),
            json!("65536"),
            json!("80:"),
            json!("-1"),
            json!("+80"),
            json!("81-80"),
            json!("80/icmp"),
            json!(true),
            json!("a:1:2"),
            json!("1.2.3:1:2"),
            json!("8000-8002:80-81"),
            json!({}),
            json!({"target": "x"}),
            json!({"target": 80, "publishd": 1}),
            json!(80.5),
            json!("1-65535"),
            json!(["80"]),
            json!(null),
            json!(":::"),
            json!("80 --privileged"),
        ] {
            let (_, findings) = rendered(&port, &PortPolicy::Ephemeral);
            assert_eq!(findings.refusals.len(), 1, "{port}");
            assert!(findings.refusals[0].message.len() > 15, "{port}");
        }
    }

    #[test]
    fn container_ports_are_declared_once() {
        let mut findings = Findings::default();
        let ports = [json!("80"), json!("8080:80"), json!("80/udp"), json!("79")];
        let (lines, declared) = apply(&ports, &PortPolicy::Ephemeral, "p", &mut findings);
        assert_eq!(lines.len(), 3);
        let shown: Vec<_> =
            declared.iter().map(|port| format!("{}/{}", port.port, port.protocol)).collect();
        assert_eq!(shown, ["79/tcp", "80/tcp", "80/udp"]);
    }
}
