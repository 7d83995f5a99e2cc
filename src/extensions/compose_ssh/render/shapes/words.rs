//! Rules for single words, and the sentences for those that break them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// With these an engine begins another option, or leaves what a compose tool quoted.
const DELIMITERS: &[char] = &[',', ':', '=', '"'];

pub(super) const PATH: &str =
    "a path without `,`, `:`, `=`, quotes and line breaks; rename the file or folder";

/// Quotation: short, and without what a terminal would act upon.
pub(super) fn shown(text: &str) -> String {
    let shown: String = text.escape_debug().take(60).collect();
    if shown.len() < text.escape_debug().count() { format!("{shown}…") } else { shown }
}

/// Why `text` is refused, and what to write.
pub(super) fn sentence(text: &str, write: &str) -> String {
    let shown = shown(text);
    match text.chars().find(|c| DELIMITERS.contains(c) || c.is_control()) {
        Some(c) if !write.contains(c) || c.is_control() || write.contains("without") => format!(
            "`{shown}` holds `{}`, with which a compose tool or engine would begin another option; write {write}",
            c.escape_debug()
        ),
        _ if text.is_empty() => format!("it is empty; write {write}, or leave the key out"),
        _ => format!("`{shown}` cannot stand here; write {write}"),
    }
}

fn all(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

/// No delimiter, control character or template (`${…}` and `%{…}` are evaluated by Docker's build tool), and no option.
fn is_plain(text: &str) -> bool {
    let odd = |c: char| DELIMITERS.contains(&c) || matches!(c, '\\' | '`') || c.is_control();
    !text.is_empty()
        && !text.starts_with('-')
        && !text.contains(odd)
        && !["${", "%{"].iter().any(|open| text.contains(open))
}

pub(super) fn is_path(text: &str) -> bool {
    is_plain(text)
}

/// A path in a container.
pub(super) fn is_target(text: &str) -> bool {
    text.starts_with('/') && is_plain(text)
}

/// A path below a mount or `/run/secrets`; nobody climbs out of it.
pub(super) fn is_below(text: &str) -> bool {
    is_plain(text) && !text.starts_with('/') && !text.split('/').any(|part| part == "..")
}

/// The target of a secret or config: an absolute path, or one below the folder that the tool has for them.
pub(super) fn is_file_target(text: &str) -> bool {
    is_target(text) || is_below(text)
}

/// A name on a network, of a volume, a build stage, a driver.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && all(text, "._-")
}

/// A host or domain name; empty says nothing.
pub(super) fn is_host(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

pub(super) fn is_search(text: &str) -> bool {
    text == "." || is_name(text)
}

pub(super) fn is_link(text: &str) -> bool {
    text.split(':').count() <= 2 && text.split(':').all(is_name)
}

/// An image, or what is written like one: `[host[:port]/]name[:tag][@digest]`.
pub(super) fn is_image(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && all(text, "._-/:@+")
}

/// The name of a variable, label or build argument. A `$` in it is filled in by podman-compose from the account on the host.
pub(super) fn is_key(text: &str) -> bool {
    !text.trim().is_empty()
        && !text.contains(|c: char| matches!(c, '=' | '"' | '$') || c.is_control())
}

/// The name of an annotation or of an option.
pub(super) fn is_option_key(text: &str) -> bool {
    is_name(text.trim_start_matches('_')) || (all(text, "._-/") && !text.starts_with(['-', '/']))
}

/// A value behind a `=`, in a word that podman reads as CSV.
pub(super) fn is_csv_value(text: &str) -> bool {
    !text.contains(|c: char| matches!(c, ',' | '"') || c.is_control())
}

/// Names with commas between them: what follows a comma has no `=`, so that it is never an option.
pub(super) fn is_name_list(text: &str) -> bool {
    all(text, "._-,/ ")
}

pub(super) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && !text.contains(['e', 'E'])
}

pub(super) fn is_integer(text: &str) -> bool {
    text.parse::<i64>().is_ok()
}

/// `64m`, `1.5 GB`, `67108864`, and -1 for no limit.
pub(super) fn is_size(text: &str) -> bool {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[number.len()..].to_ascii_lowercase();
    let known = matches!(unit.as_str(), "" | "b")
        || unit
            .strip_prefix(['k', 'm', 'g', 't', 'p'])
            .is_some_and(|rest| matches!(rest, "" | "b" | "i" | "ib"));
    known && is_number(number.trim_end())
}

/// `1m30s`, `500ms`, or a number.
pub(super) fn is_duration(text: &str) -> bool {
    let mut rest = text.trim();
    if is_number(rest) {
        return true;
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let after = unit.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == 'µ');
        let word = &unit[..unit.len() - after.len()];
        if unit.len() == rest.len()
            || !matches!(word, "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" | "d" | "w")
        {
            return false;
        }
        rest = after;
    }
    !text.trim().is_empty()
}

pub(super) fn is_cpus(text: &str) -> bool {
    text.is_empty() || text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-'))
}

pub(super) fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// A resolver; empty where a variable is.
pub(super) fn is_resolver(text: &str) -> bool {
    text.is_empty() || is_ip(text)
}

pub(super) fn is_ipv4(text: &str) -> bool {
    text.is_empty() || text.parse::<Ipv4Addr>().is_ok()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.is_empty() || text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_subnet(text: &str) -> bool {
    text.split_once('/')
        .map_or_else(|| is_ip(text), |(ip, bits)| is_ip(ip) && bits.parse::<u8>().is_ok())
}

pub(super) fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    text.is_empty()
        || (parts.len() == 6
            && parts
                .iter()
                .all(|part| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit())))
}

/// `NAME:ADDRESS` or `NAME=ADDRESS`.
pub(super) fn is_extra_host(text: &str) -> bool {
    let Some((name, address)) = text.split_once(['=', ':']) else { return false };
    is_name(name) && is_address(address)
}

/// The address of an extra host.
pub(super) fn is_address(text: &str) -> bool {
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text == "host-gateway" || is_ip(address)
}

/// A resolver's option, as in `ndots:1`.
pub(super) fn is_resolver_option(text: &str) -> bool {
    all(text, "-_:.") && !text.starts_with('-')
}

/// A port as the renderer writes it.
pub(super) fn is_port(text: &str) -> bool {
    all(text, ".:-/[]")
}

pub(super) fn is_exposed(text: &str) -> bool {
    let (ports, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    all(ports, "-") && ports.chars().all(|c| c.is_ascii_digit() || c == '-') && all(protocol, "")
}

/// `NAME` or `UID`, with `:GROUP` behind it or not; either may come from a variable that is empty.
pub(super) fn is_user(text: &str) -> bool {
    text.split(':').count() <= 2
        && !text.starts_with('-')
        && (text.is_empty() || all(text, "._-$+:"))
}

pub(super) fn is_group(text: &str) -> bool {
    is_name(text) || is_integer(text)
}

pub(super) fn is_platform(text: &str) -> bool {
    text.is_empty() || (is_name(text.split('/').next().unwrap_or_default()) && all(text, "._-/"))
}

pub(super) fn is_restart(text: &str) -> bool {
    let count = text.strip_prefix("on-failure:");
    matches!(text, "" | "no" | "always" | "unless-stopped" | "on-failure")
        || count.is_some_and(|count| count.parse::<u32>().is_ok())
}

pub(super) fn is_pull_policy(text: &str) -> bool {
    let words = [
        "always",
        "never",
        "missing",
        "if_not_present",
        "build",
        "newer",
        "refresh",
        "daily",
        "weekly",
        "",
    ];
    words.contains(&text) || text.strip_prefix("every_").is_some_and(is_duration)
}

pub(super) fn is_signal(text: &str) -> bool {
    all(text, "+-") && !text.starts_with('-')
}

pub(super) fn is_capability(text: &str) -> bool {
    all(text, "_")
}

pub(super) fn is_device(text: &str) -> bool {
    text.split(':').count() <= 3 && text.split(':').all(|part| is_plain(&part.replace('=', "")))
}

pub(super) fn is_device_rule(text: &str) -> bool {
    all(text, " :*")
}

pub(super) fn is_ulimit(text: &str) -> bool {
    let names = [
        "as",
        "core",
        "cpu",
        "data",
        "fsize",
        "locks",
        "memlock",
        "msgqueue",
        "nice",
        "nofile",
        "nproc",
        "rss",
        "rtprio",
        "rttime",
        "sigpending",
        "stack",
    ];
    names.contains(&text)
}

/// Settings of the kernel that each container has of its own; any other is the host's.
pub(super) fn is_sysctl(text: &str) -> bool {
    const OWN: &[&str] = &[
        "kernel.domainname",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.sem",
        "kernel.shm_rmid_forced",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
    ];
    let Some((name, value)) = text.split_once('=') else { return false };
    let own =
        OWN.contains(&name) || ["net.", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix));
    own && all(name, "._-") && all(value, "._- \t")
}

/// Settings of the kernel for one interface of a container, as Docker's networks take them.
pub(super) fn is_interface_sysctls(text: &str) -> bool {
    let entries: Vec<&str> = text.split(',').collect();
    entries
        .iter()
        .all(|entry| entry.starts_with("net.") && entry.contains(".IFNAME.") && is_sysctl(entry))
}

pub(super) fn is_interface(text: &str) -> bool {
    text.len() < 16 && is_name(text)
}

/// `provenance` and `sbom` of a build.
pub(super) fn is_attestation(text: &str) -> bool {
    matches!(text, "true" | "false" | "mode=min" | "mode=max")
        || text.strip_prefix("generator=").is_some_and(is_image)
}

/// Context of a build that is no folder: `service:name`, `docker-image://name:tag`, an address.
pub(super) fn is_remote_context(text: &str) -> bool {
    let rest = |prefix: &str| text.strip_prefix(prefix);
    if let Some(image) = rest("docker-image://") {
        return is_image(image);
    }
    let address = text.contains("://") || rest("git@").is_some() || rest("github.com/").is_some();
    rest("service:").is_some_and(is_name) || (address && all(text, ":/@._-#?&=+~%"))
}

/// An image, or `KEY=VALUE` with commas between. The build tool lowers and trims keys, and unquotes: none of that is needed.
pub(super) fn is_cache_source(text: &str) -> bool {
    if !text.contains(['=', ',']) {
        return is_image(text);
    }
    let mut names = Vec::new();
    text.split(',').all(|field| {
        let Some((name, value)) = field.split_once('=') else { return false };
        let fits = match name {
            "type" => is_name(value),
            "ref" => is_image(value),
            "src" => is_path(value),
            "scope" | "digest" | "tag" | "region" | "bucket" | "name" | "prefix" | "version"
            | "timeout" | "repository" => all(value, "._-/:@"),
            _ => false,
        };
        let new = !names.contains(&name);
        names.push(name);
        fits && new
    }) && names.contains(&"type")
}

/// Switch as a variable left it.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" | "1" | "t" => Some(true),
        "false" | "no" | "n" | "off" | "0" | "f" | "" => Some(false),
        _ => None,
    }
}
