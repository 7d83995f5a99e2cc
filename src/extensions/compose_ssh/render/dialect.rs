//! What the compose on the host understands: where one reads less than Docker's own, that is done in its words, said, or
//! refused. Nothing is dropped without a word. Measured; docs/runtimes.md has the table.

use serde_json::{Map, Value, json};

use crate::domain::facts::{Flavour, Runtime};

use super::keys::is_on;
use super::merge::scalar;
use super::pass::Pass;
use super::{anchor, keys};
use crate::domain::problem::join;

/// What the compose on the host understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// `docker compose`, whatever its engine.
    #[default]
    Full,
    /// `docker-compose` 1.29: refuses keys that are younger than it, and ignores `configs` and `deploy.resources`.
    V1,
    /// podman-compose from 1.1 on: takes every key, and ignores those it does not know.
    Podman,
    /// podman-compose 1.0: as later ones, with no aliases, `network_mode` or volume options, and it waits for nothing.
    Narrow,
}

/// Keys of a service that podman-compose 1.0.3 reads.
const NARROW: &[&str] = &[
    "annotations",
    "build",
    "cap_add",
    "cap_drop",
    "command",
    "cpu_shares",
    "cpus",
    "depends_on",
    "deploy",
    "devices",
    "entrypoint",
    "environment",
    "expose",
    "extra_hosts",
    "healthcheck",
    "hostname",
    "image",
    "init",
    "labels",
    "links",
    "logging",
    "mem_limit",
    "mem_reservation",
    "network_mode",
    "networks",
    "ports",
    "privileged",
    "pull_policy",
    "read_only",
    "restart",
    "scale",
    "secrets",
    "security_opt",
    "shm_size",
    "stdin_open",
    "stop_signal",
    "sysctls",
    "tmpfs",
    "tty",
    "ulimits",
    "user",
    "volumes",
    "working_dir",
];

/// Those that podman-compose 1.6 reads beside them.
const PODMAN: &[&str] = &[
    "cpuset",
    "device_cgroup_rules",
    "dns",
    "dns_opt",
    "dns_search",
    "group_add",
    "mac_address",
    "pid",
    "pids_limit",
    "platform",
    "runtime",
    "stop_grace_period",
    "userns_mode",
];

/// Keys of a service that are younger than docker-compose 1.29; it stops at one.
const AFTER_V1: &[&str] = &[
    "annotations",
    "attach",
    "cgroup",
    "gpus",
    "models",
    "post_start",
    "pre_stop",
    "provider",
    "pull_refresh_after",
    "use_api_socket",
    "uts",
];

/// A service would run and lack what it was given: better not to start it.
const NEEDED: &[(&str, &str)] = &[
    ("configs", "knows no configs; mount the file under `volumes:`"),
    ("post_start", "runs no hooks; use a newer compose on that host"),
    ("pre_stop", "runs no hooks; use a newer compose on that host"),
    ("provider", "knows no providers; use a newer compose on that host"),
    ("volumes_from", "knows no `volumes_from`; name the volumes"),
];

/// The restart policy of what runs again unless somebody stopped it.
const UNLESS_STOPPED: &str = "unless-stopped";

impl Dialect {
    /// What this runtime understands.
    pub fn of(runtime: &Runtime) -> Self {
        match runtime.flavour {
            Flavour::DockerComposeV2 | Flavour::Other(_) => Self::Full,
            Flavour::DockerComposeV1 => Self::V1,
            Flavour::PodmanCompose
                if ["0.", "1.0."].iter().any(|old| runtime.version.starts_with(old)) =>
            {
                Self::Narrow
            }
            Flavour::PodmanCompose => Self::Podman,
        }
    }

    const fn tool(self) -> &'static str {
        match self {
            Self::Full => "this compose",
            Self::V1 => "docker-compose 1.29",
            Self::Podman => "podman-compose",
            Self::Narrow => "podman-compose 1.0",
        }
    }

    fn reads(self, key: &str) -> bool {
        match self {
            Self::Full => true,
            Self::V1 => key != "configs" && !AFTER_V1.contains(&key),
            Self::Podman => NARROW.contains(&key) || PODMAN.contains(&key),
            Self::Narrow => NARROW.contains(&key),
        }
    }
}

/// A service in the tool's words.
pub(super) fn adapt(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let dialect = pass.input.host.dialect;
    let unread: Vec<String> = service
        .iter()
        .filter(|(key, value)| !dialect.reads(key) && is_on(value))
        .map(|(key, _)| key.clone())
        .collect();
    service.retain(|key, _| dialect.reads(key));
    for key in unread {
        let path = join(path, &key);
        match NEEDED.iter().find(|(needed, _)| *needed == key) {
            Some((_, what)) => {
                pass.findings().refuse(&path, None, format!("{} {what}", dialect.tool()));
            }
            None => pass
                .findings()
                .rewrite(&path, format!("is left out: {} does not know it", dialect.tool())),
        }
    }
    if matches!(dialect, Dialect::Full | Dialect::V1) {
        stays_stopped(service, path, pass);
    }
    match dialect {
        Dialect::V1 => v1(service, path, pass),
        Dialect::Narrow => waits_for_nothing(service, path, pass),
        Dialect::Full | Dialect::Podman => {}
    }
}

/// When Docker's daemon starts, it starts what has `always`, even if that was stopped: a sandbox that sleeps would be half
/// awake. What has `unless-stopped` it starts only if it ran. Podman has no daemon, and its boot service starts nothing but
/// `always`.
fn stays_stopped(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let told = |word: &str| {
        format!("`{word}` became `unless-stopped`: Docker's daemon would start it while it sleeps")
    };
    if service.get("restart").is_some_and(|restart| restart == "always") {
        service.insert("restart".to_owned(), UNLESS_STOPPED.into());
        pass.findings().rewrite(&join(path, "restart"), told("always"));
    }
    // It goes before `restart`. Docker's own compose takes the engine's words in it as well, docker-compose 1.29 does not.
    let Some(deploy) = service.get_mut("deploy").and_then(Value::as_object_mut) else { return };
    let condition =
        deploy.get("restart_policy").and_then(|policy| policy.get("condition")).map(scalar);
    let Some(word) = condition.filter(|word| matches!(word.as_str(), "any" | "always")) else {
        return;
    };
    pass.findings().rewrite(&format!("{path}.deploy.restart_policy.condition"), told(&word));
    if pass.input.host.dialect == Dialect::V1 {
        deploy.shift_remove("restart_policy");
        service.insert("restart".to_owned(), UNLESS_STOPPED.into());
    } else if let Some(policy) = deploy.get_mut("restart_policy").and_then(Value::as_object_mut) {
        policy.insert("condition".to_owned(), UNLESS_STOPPED.into());
    }
}

fn v1(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    if service.get("pull_policy").is_some_and(|policy| policy == "missing") {
        service.insert("pull_policy".to_owned(), json!("if_not_present"));
    }
    if let Some(dependencies) = service.get_mut("depends_on").and_then(Value::as_object_mut) {
        for (name, on) in dependencies {
            let Some(on) = on.as_object_mut() else { continue };
            on.shift_remove("required");
            if on.shift_remove("restart").is_some_and(|restart| is_on(&restart)) {
                let path = format!("{path}.depends_on.{name}.restart");
                pass.findings().rewrite(&path, "is left out: docker-compose 1.29 does not know it");
            }
        }
    }
    let check = service.get_mut("healthcheck").and_then(Value::as_object_mut);
    if check.and_then(|check| check.shift_remove("start_interval")).is_some() {
        let path = format!("{path}.healthcheck.start_interval");
        pass.findings().rewrite(&path, "is left out: docker-compose 1.29 does not know it");
    }
    for mount in service.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        // It makes what is missing, as the short form does everywhere.
        if let Some(bind) = mount.get_mut("bind").and_then(Value::as_object_mut) {
            bind.shift_remove("create_host_path");
        }
    }
    // It stops where both are set.
    let scaled = service.contains_key("scale");
    if let Some(deploy) =
        service.get_mut("deploy").and_then(Value::as_object_mut).filter(|_| scaled)
    {
        deploy.shift_remove("replicas");
    }
    // It takes limits from the keys of version 2 only.
    let limits =
        service.get("deploy").and_then(|deploy| deploy.pointer("/resources/limits")).cloned();
    for (from, to) in [("memory", "mem_limit"), ("cpus", "cpus"), ("pids", "pids_limit")] {
        if let Some(limit) =
            limits.as_ref().and_then(|limits| limits.get(from)).filter(|limit| is_on(limit))
        {
            let limit = match limit
                .as_str()
                .filter(|_| from != "memory")
                .and_then(|text| text.parse::<f64>().ok())
            {
                Some(number) if from == "cpus" => json!(number),
                _ => limit.clone(),
            };
            service.entry(to).or_insert(limit);
        }
    }
}

fn waits_for_nothing(service: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let Some(Value::Object(dependencies)) = service.get("depends_on") else { return };
    for (name, on) in dependencies {
        let condition = on.get("condition").map(scalar).unwrap_or_default();
        if !matches!(condition.as_str(), "" | "service_started") {
            let path = format!("{path}.depends_on.{name}.condition");
            pass.findings().rewrite(
                &path,
                format!("`{condition}` is ignored: podman-compose 1.0 waits for nothing"),
            );
        }
    }
}

/// Options of a volume's driver: podman-compose 1.0 makes a plain volume, whatever they say.
pub(super) fn volume(volume: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    if pass.input.host.dialect != Dialect::Narrow
        || !volume.get("driver_opts").is_some_and(keys::is_on)
    {
        return;
    }
    let Some(Value::Object(options)) = volume.shift_remove("driver_opts") else { return };
    let path = join(path, "driver_opts");
    let kind = options.get("type").map(scalar).unwrap_or_default();
    if anchor::is_bind(&options) || !matches!(kind.as_str(), "" | "tmpfs") {
        let message = "podman-compose 1.0 would make an empty volume instead; use a newer compose on that host";
        pass.findings().refuse(&path, None, message);
    } else {
        pass.findings().rewrite(&path, "is left out: podman-compose 1.0 makes plain volumes only");
    }
}
