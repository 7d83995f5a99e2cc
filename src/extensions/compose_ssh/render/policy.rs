//! Wishes that a service may not have unless the profile permits it by name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::profile::Allowance;

use super::keys::{self, is_on};
use super::merge::{self, list, scalar};
use super::pass::Pass;
use crate::domain::problem::join;

/// Keys that are refused as soon as they say anything, and why.
const WHOLE: &[(&str, Allowance, &str)] = &[
    ("privileged", Allowance::Privileged, "a privileged container is root on the host; remove it"),
    (
        "cgroup_parent",
        Allowance::Privileged,
        "a cgroup outside the sandbox escapes its limits; remove it",
    ),
    ("runtime", Allowance::Privileged, "another runtime may isolate less; remove it"),
    (
        "oom_kill_disable",
        Allowance::Privileged,
        "without the OOM killer the container can stall the host; remove it",
    ),
    (
        "use_api_socket",
        Allowance::Privileged,
        "this hands the container engine to the container; remove it",
    ),
    (
        "volumes_from",
        Allowance::External,
        "this mounts whatever another container has; declare a named volume and mount it in both",
    ),
    (
        "external_links",
        Allowance::External,
        "this links to containers that are not the sandbox's; remove it",
    ),
    ("credential_spec", Allowance::External, "this reads credentials of the host; remove it"),
    ("provider", Allowance::External, "a provider runs a program of the host; use an image"),
    ("models", Allowance::External, "models run outside the sandbox; use an image"),
    ("devices", Allowance::Devices, "this gives the container devices of the host; remove them"),
    ("device_cgroup_rules", Allowance::Devices, "this opens devices of the host; remove them"),
    ("gpus", Allowance::Devices, "this gives the container GPUs of the host; remove them"),
];

/// Capabilities that every engine gives a container by default.
const CAPABILITIES: &[&str] = &[
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Further ones that Docker gives.
const DOCKERS_CAPABILITIES: &[&str] = &["AUDIT_WRITE", "MKNOD", "NET_RAW"];

/// Namespaces, what may stand there without leaving the sandbox, and what they are called in a sentence.
const NAMESPACES: &[(&str, &[&str], &str)] = &[
    ("pid", &["private"], "processes"),
    ("ipc", &["private", "shareable", "none"], "shared memory"),
    ("uts", &["private"], "host name"),
    ("userns_mode", &["private", "auto"], "user ids"),
    ("cgroup", &["private"], "cgroup"),
    ("isolation", &["default"], "isolation technology"),
];

/// Keys that are judged by what is in them.
const MAPPINGS: &[&str] = &["logging", "deploy", "healthcheck", "blkio_config", "storage_opt"];

/// Log drivers that keep lines on the host's engine.
const LOG_DRIVERS: &[&str] = &["", "json-file", "local", "journald", "k8s-file", "none"];

/// Annotations that no engine, runtime or hook acts upon. Which others it acts upon is the host's to say.
const NOTES: &str = "org.opencontainers.image.";

/// Refuses what a service asks for beyond the sandbox. Mounts, builds and ports are judged where they are rendered.
pub(super) fn judge(
    service: &mut Map<String, Value>,
    path: &str,
    services: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) {
    keys::want_mappings(service, MAPPINGS, path, pass.findings());
    for (key, allow, why) in WHOLE {
        if keys::is_on_or_drop(service, key) {
            pass.guard(allow.clone(), &join(path, key), *why);
        }
    }
    for (key, fine, what) in NAMESPACES {
        if let Some(value) = service.get(*key) {
            namespace(&scalar(value), fine, what, &join(path, key), services, pass);
        }
    }
    network_mode(service, path, services, pass);
    capabilities(service, path, pass);
    security(service, path, pass);
    annotations(service, path, pass);
    logging(service, path, pass);
    deploy(service, path, pass);
    for key in ["post_start", "pre_stop"] {
        for (index, hook) in list(service.get(key).cloned().unwrap_or_default()).iter().enumerate()
        {
            if hook.get("privileged").is_some_and(is_on) {
                pass.guard(
                    Allowance::Privileged,
                    &format!("{path}.{key}[{index}].privileged"),
                    "a privileged hook is root on the host; remove it",
                );
            }
        }
    }
}

fn namespace(
    value: &str,
    fine: &[&str],
    what: &str,
    path: &str,
    services: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) {
    if value.is_empty() || fine.contains(&value) || of_project(value, services) {
        return;
    }
    if value.starts_with("container:") {
        pass.guard(
            Allowance::External,
            path,
            format!("this shares the {what} of a container by name; write `service:NAME`"),
        );
    } else if value.starts_with("service:") {
        pass.findings().refuse(
            path,
            None,
            format!("there is no such service as in `{value}`; name one that is started"),
        );
    } else {
        pass.guard(
            Allowance::Privileged,
            path,
            format!("`{value}` shares the host's {what}; remove it"),
        );
    }
}

fn of_project(value: &str, services: &BTreeSet<String>) -> bool {
    value.strip_prefix("service:").is_some_and(|name| services.contains(name))
}

fn network_mode(
    service: &mut Map<String, Value>,
    path: &str,
    services: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) {
    let path = join(path, "network_mode");
    let Some(mode) = service.get("network_mode").map(scalar) else { return };
    match mode.as_str() {
        "none" => {}
        _ if of_project(&mode, services) => {}
        "" | "bridge" | "default" | "private" => {
            // The engine's shared bridge holds other sandboxes' containers too.
            service.shift_remove("network_mode");
            pass.findings().rewrite(&path, format!("`{mode}` became the sandbox's own network"));
        }
        "host" => {
            pass.guard(
                Allowance::HostNetwork,
                &path,
                "this is the network of the host; publish ports instead",
            );
        }
        other if other.starts_with("service:") => pass.findings().refuse(
            &path,
            None,
            format!("there is no such service as in `{other}`; name one that is started"),
        ),
        other => {
            pass.guard(
                Allowance::External,
                &path,
                format!("`{other}` is a network that is not the sandbox's; write `service:NAME` or use `networks:`"),
            );
        }
    }
}

/// A container that has what any container has by default has not more than one of which nothing was dropped.
fn capabilities(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    if !keys::is_on_or_drop(service, "cap_add") {
        return;
    }
    let more = if pass.input.host.podman { &[] } else { DOCKERS_CAPABILITIES };
    for added in list(service.get("cap_add").cloned().unwrap_or_default()).iter().map(scalar) {
        let name = added.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        if !CAPABILITIES.contains(&name) && !more.contains(&name) {
            pass.guard(
                Allowance::Privileged,
                &join(path, "cap_add"),
                format!(
                    "`{}` is no capability that a container has by default here; remove it",
                    added.escape_debug()
                ),
            );
        }
    }
}

fn security(service: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let items = |key: &str| list(service.get(key).cloned().unwrap_or_default());
    for (index, option) in items("security_opt").iter().map(scalar).enumerate() {
        // The one option that only takes away.
        if !matches!(
            option.as_str(),
            "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true"
        ) {
            pass.guard(
                Allowance::Privileged,
                &format!("{path}.security_opt[{index}]"),
                format!("`{option}` weakens the container's confinement; remove it"),
            );
        }
    }
    if items("group_add").iter().any(|group| scalar(group) == "keep-groups") {
        pass.guard(
            Allowance::Privileged,
            &join(path, "group_add"),
            "`keep-groups` keeps the groups of the account on the host; name the groups",
        );
    }
    if service.get("oom_score_adj").is_some_and(|score| scalar(score).trim().starts_with('-')) {
        pass.guard(
            Allowance::Privileged,
            &join(path, "oom_score_adj"),
            "a negative score sacrifices the host's processes first; remove it",
        );
    }
}

fn annotations(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let path = join(path, "annotations");
    let Some(written) = service.shift_remove("annotations") else { return };
    for name in merge::contradictions(&written) {
        pass.findings().refuse(
            &path,
            None,
            format!("the annotation `{name}` is set twice, and not to the same; keep one"),
        );
    }
    let Value::Object(annotations) = merge::assignments(written) else {
        pass.findings().refuse(&path, None, "write annotations as a mapping `name: value`");
        return;
    };
    for name in annotations.keys().filter(|name| !name.starts_with(NOTES)) {
        pass.guard(
            Allowance::Privileged,
            &join(&path, name),
            format!("runtimes and hooks of the host act upon annotations; use `labels:` for notes, or `{NOTES}*`"),
        );
    }
    service.insert("annotations".to_owned(), Value::Object(annotations));
}

fn logging(service: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let Some(logging) = service.get("logging") else { return };
    let driver = logging.get("driver").map(scalar).unwrap_or_default();
    if !LOG_DRIVERS.contains(&driver.as_str()) {
        pass.guard(
            Allowance::External,
            &format!("{path}.logging.driver"),
            format!("`{driver}` sends logs out of the sandbox; remove it"),
        );
    }
    if logging.get("options").and_then(|options| options.get("path")).is_some() {
        pass.guard(
            Allowance::BindMounts,
            &format!("{path}.logging.options.path"),
            "this writes the log to a file of the host; remove it",
        );
    }
}

fn deploy(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let Some(reservations) = service
        .get_mut("deploy")
        .and_then(|deploy| deploy.get_mut("resources"))
        .and_then(|resources| resources.get_mut("reservations"))
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for key in ["devices", "generic_resources"] {
        if keys::is_on_or_drop(reservations, key) {
            pass.guard(
                Allowance::Devices,
                &format!("{path}.deploy.resources.reservations.{key}"),
                "this gives the container devices of the host; remove them",
            );
        }
    }
}
