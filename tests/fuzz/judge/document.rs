//! A compose file as Docker's compose tools read it: `docker compose config`, `docker-compose config`, or what the
//! renderer wrote, short forms included.

use serde_json::{Map, Value};

use super::super::world::ID;
use super::words::{builds_lead_out, mount_parts, pair, says};
use super::{Judge, Promise};

/// Names of what compose makes: `sbx-<id>_…` and, for containers, `sbx-<id>-…`.
const JOINED: &[char] = &['_'];

/// Keys of a service that change nothing outside of the container, whatever they say.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "attach", "blkio_config", "cap_drop", "command", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota",
    "cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpus", "cpuset", "depends_on", "dns", "dns_opt", "dns_search",
    "domainname", "entrypoint", "expose", "extra_hosts", "healthcheck", "hostname", "init",
    "mac_address", "mem_limit", "mem_reservation", "mem_swappiness", "memswap_limit", "pids_limit", "platform",
    "pull_policy", "pull_refresh_after", "read_only", "restart", "scale", "shm_size", "stdin_open",
    "stop_grace_period", "stop_signal", "tty", "user", "working_dir",
];

/// Keys that no sandbox gets, as soon as they say anything.
#[rustfmt::skip]
const NEVER: &[&str] = &[
    "cgroup_parent", "credential_spec", "develop", "device_cgroup_rules", "devices", "env_file", "extends",
    "external_links", "gpus", "label_file", "models", "oom_kill_disable", "privileged", "provider", "runtime",
    "use_api_socket", "volumes_from", "container_name",
];

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    }
}

/// A mapping, or a list of `k=v`.
fn pairs(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
        other => items(other)
            .iter()
            .map(|item| {
                let item = text(item);
                let (name, value) = pair(&item);
                (name.to_owned(), value.unwrap_or_default().to_owned())
            })
            .collect(),
    }
}

impl Judge<'_> {
    /// The whole file. `resolved`: a tool wrote it, so that everything has its name on the engine.
    pub(crate) fn document(&mut self, document: &Value, resolved: bool) {
        let Some(project) = document.as_object() else {
            self.find(Promise::Unknown, document.to_string(), "no mapping");
            return;
        };
        let volumes = project.get("volumes").and_then(Value::as_object);
        self.declared =
            volumes.map(|volumes| volumes.keys().cloned().collect()).unwrap_or_default();
        for (key, value) in project {
            let Value::Object(map) = value else {
                let named = key == "name" && value == &format!("sbx-{ID}");
                if !named && key != "version" && says(value) {
                    self.find(Promise::Unknown, format!("{key}: {value}"), "a key of the file");
                }
                continue;
            };
            for (name, value) in map {
                match key.as_str() {
                    "services" => self.service(name, value),
                    "networks" => self.network_entry(name, value, resolved),
                    "volumes" => self.volume_entry(name, value, resolved),
                    "secrets" | "configs" => self.file_entry(name, value, resolved),
                    _ => {
                        self.find(Promise::Unknown, format!("{key}: {value}"), "a key of the file");
                    }
                }
            }
        }
        self.secrets_of_builds(project);
    }

    fn service(&mut self, name: &str, service: &Value) {
        let Some(service) = service.as_object() else { return };
        for (key, value) in service {
            if !HARMLESS.contains(&key.as_str()) && says(value) {
                self.service_key(name, key, value, service);
            }
        }
        self.labels(&pairs(service.get("labels").unwrap_or(&Value::Null)), true, &[]);
        if !service.contains_key("image") {
            self.find(Promise::Names, name, "a service without an image");
        }
        if service.get("oom_score_adj").is_some_and(|score| text(score).starts_with('-')) {
            self.find(Promise::Privileges, name, "a score that sacrifices the host's processes");
        }
    }

    fn service_key(&mut self, name: &str, key: &str, value: &Value, service: &Map<String, Value>) {
        let word = format!("{name}.{key}: {value}");
        let word = word.as_str();
        match key {
            _ if NEVER.contains(&key) => {
                self.find(Promise::Privileges, word, format!("{key} is no sandbox's"));
            }
            "labels" | "oom_score_adj" => {}
            "storage_opt" if pairs(value).iter().all(|(name, _)| name == "size") => {}
            "environment" => self.variables(value, word),
            "annotations" => pairs(value).iter().for_each(|(name, _)| self.annotation(name)),
            "build" => self.build_entry(value, word),
            "cap_add" => items(value).iter().for_each(|item| self.capability(&text(item))),
            "security_opt" => {
                for item in items(value) {
                    self.security_option(&text(&item));
                }
            }
            "image" if service.get("build").is_some_and(says) => {
                self.built_name(&text(value), word);
            }
            "image" => self.image(&text(value), word),
            "pid" | "uts" | "cgroup" => self.namespace(&text(value), &["private"], word, JOINED),
            "ipc" => self.namespace(&text(value), &["private", "shareable", "none"], word, JOINED),
            "userns_mode" => self.namespace(&text(value), &["private", "auto"], word, JOINED),
            "network_mode" => self.namespace(&text(value), &["none"], word, JOINED),
            "isolation" if value == "default" => {}
            "group_add" if !items(value).iter().any(|item| text(item).contains("keep-groups")) => {}
            "logging" => self.logging_entry(value, word),
            "deploy" => self.deploy_entry(value, word),
            "sysctls" => pairs(value)
                .iter()
                .for_each(|(name, value)| self.sysctl(&format!("{name}={value}"))),
            "ulimits" => match value {
                Value::Object(map) => map.keys().for_each(|name| self.ulimit(name)),
                other => self.ulimit(&text(other)),
            },
            "tmpfs" => {}
            "networks" => self.joined(value, word),
            "links" => {
                for link in items(value).iter().map(text) {
                    if !matches!(link.split(':').next(), Some("web" | "db")) {
                        self.find(Promise::Others, word, "a link to somebody's container");
                    }
                }
            }
            "ports" => items(value).iter().for_each(|port| self.port_entry(port)),
            "post_start" | "pre_stop" => {
                for hook in items(value) {
                    if hook.get("privileged").is_some_and(says) {
                        self.find(Promise::Privileges, word, "a privileged hook");
                    }
                }
            }
            "secrets" | "configs" => {
                for item in items(value) {
                    let source = item.get("source").map_or_else(|| text(&item), text);
                    if !matches!(source.as_str(), "tok" | "key" | "conf") {
                        self.find(Promise::Others, word, "a file that is not declared");
                    }
                }
            }
            "volumes" => items(value).iter().for_each(|mount| self.mount_entry(mount)),
            _ => self.find(Promise::Unknown, word, format!("the key {key}")),
        }
    }

    /// A name without a value is taken from the account's own environment.
    fn variables(&mut self, value: &Value, word: &str) {
        let open = match value {
            Value::Object(map) => map.values().any(Value::is_null),
            other => items(other).iter().any(|item| !text(item).contains('=')),
        };
        if open {
            self.find(Promise::HostFiles, word, "a variable of the account on the host");
        }
    }

    fn mount_entry(&mut self, mount: &Value) {
        let word = text(mount);
        let Value::Object(map) = mount else {
            self.short_mount(&word);
            return;
        };
        let get = |key: &str| map.get(key).map(text).unwrap_or_default();
        let (kind, source) = (get("type"), get("source"));
        match kind.as_str() {
            "bind" => self.bind(&source, get("read_only") != "true", &word),
            "volume" if source.is_empty() || self.declared.contains(&source) => {}
            "volume" => self.find(Promise::Others, &word, "a volume that is not declared"),
            "tmpfs" => {}
            "image" => self.image(&source, &word),
            _ => self.find(Promise::Unknown, &word, "a kind of mount"),
        }
        for (key, value) in map {
            match (key.as_str(), value) {
                ("type" | "source" | "target" | "read_only" | "consistency", _)
                | (_, Value::Null) => {}
                ("bind" | "volume" | "tmpfs" | "image", Value::Object(options)) => {
                    for (option, value) in options {
                        self.mount_option(option, &text(value), &word);
                    }
                    if let Some(labels) = options.get("labels") {
                        self.labels(&pairs(labels), false, &[]);
                    }
                }
                _ => self.find(Promise::Unknown, &word, "a key of a mount"),
            }
        }
    }

    fn mount_option(&mut self, option: &str, value: &str, word: &str) {
        match (option, value) {
            ("propagation", "" | "private" | "rprivate" | "slave" | "rslave")
            | ("selinux", "z" | "Z" | "") => {}
            ("propagation", "shared" | "rshared") => {
                self.shared_mount(word);
            }
            ("create_host_path" | "nocopy" | "size" | "mode" | "subpath" | "labels", _) => {}
            ("recursive", "enabled" | "disabled" | "writable" | "readonly" | "") => {}
            _ => self.find(Promise::Unknown, word, "an option of a mount"),
        }
    }

    /// `[SOURCE:]TARGET[:OPTIONS]` as compose reads it: the last of two that contradict wins.
    fn short_mount(&mut self, word: &str) {
        let Some((source, options, known)) = mount_parts(word) else { return };
        if !known {
            self.find(Promise::Unknown, word, "a mount of more parts than three");
            return;
        }
        let mut writable = true;
        let mut access = 0;
        for option in options.split(',') {
            match option {
                "ro" => (writable, access) = (false, access + 1),
                "rw" => (writable, access) = (true, access + 1),
                "" | "z" | "Z" | "cached" | "delegated" | "consistent" | "nocopy" | "private"
                | "rprivate" | "slave" | "rslave" | "noexec" | "exec" | "nodev" | "nosuid"
                | "bind" | "rbind" | "U" => {}
                "shared" | "rshared" => {
                    self.shared_mount(word);
                }
                _ => self.find(Promise::Unknown, word, "an option of a mount"),
            }
        }
        if access > 1 {
            self.find(Promise::Repeats, word, "an option of a mount stands twice");
        }
        if source.starts_with(['/', '.', '~']) {
            self.bind(source, writable, word);
        } else if !source.is_empty() && !self.declared.iter().any(|name| name == source) {
            self.find(Promise::Others, word, "a volume that is not declared");
        }
    }

    fn joined(&mut self, value: &Value, word: &str) {
        let Value::Object(map) = value else {
            for name in items(value).iter().map(text) {
                if !matches!(name.as_str(), "default" | "back") {
                    self.find(Promise::Others, word, "joins a network that is not declared");
                }
            }
            return;
        };
        for settings in map.values().filter_map(Value::as_object) {
            for (key, value) in settings.iter().filter(|(_, value)| says(value)) {
                match key.as_str() {
                    "aliases" | "priority" | "gw_priority" | "mac_address" | "interface_name" => {}
                    "ipv4_address" | "ipv6_address" => self.address(&text(value), word),
                    _ => self.find(Promise::Networks, word, "a key of a joined network"),
                }
            }
        }
    }

    fn port_entry(&mut self, port: &Value) {
        let Value::Object(map) = port else {
            self.publish(&text(port));
            return;
        };
        let get = |key: &str| map.get(key).map(text).unwrap_or_default();
        if get("host_ip") != "127.0.0.1" || !matches!(get("published").as_str(), "" | "0") {
            self.open_port(&port.to_string());
        }
    }

    fn logging_entry(&mut self, logging: &Value, word: &str) {
        self.log_driver(&logging.get("driver").map(text).unwrap_or_default());
        for (name, _) in pairs(logging.get("options").unwrap_or(&Value::Null)) {
            self.log_option(&name, word);
        }
    }

    fn deploy_entry(&mut self, deploy: &Value, word: &str) {
        for key in ["devices", "generic_resources"] {
            if deploy.pointer(&format!("/resources/reservations/{key}")).is_some_and(says) {
                self.find(Promise::Privileges, word, "devices of the host");
            }
        }
    }

    fn build_entry(&mut self, build: &Value, word: &str) {
        if builds_lead_out(self.engine) && self.engine.starts_with('4') {
            self.find(Promise::Builds, word, "a build before podman 5.3.2");
        }
        let Value::Object(map) = build else {
            self.context(&text(build), word);
            return;
        };
        let context = map.get("context").map(text).unwrap_or_default();
        for (key, value) in map.iter().filter(|(_, value)| says(value)) {
            match key.as_str() {
                "context" => self.context(&context, word),
                "dockerfile" => {
                    let file = text(value);
                    let file = if file.starts_with('/') {
                        file
                    } else {
                        normal(&format!("{context}/{file}"))
                    };
                    self.host_file(&file, word, "a Dockerfile");
                }
                "args" => self.variables(value, word),
                "dockerfile_inline" | "target" | "no_cache" | "no_cache_filter" | "platforms"
                | "pull" | "shm_size" | "extra_hosts" | "secrets" | "sbom" => {}
                "ulimits" => pairs(value).iter().for_each(|(name, _)| self.ulimit(name)),
                "labels" => self.labels(&pairs(value), false, &[]),
                "tags" => items(value).iter().for_each(|tag| self.built_name(&text(tag), word)),
                "cache_from" => items(value).iter().for_each(|from| self.cache(&text(from))),
                "additional_contexts" => {
                    for (_, context) in pairs(value) {
                        self.context(&context, word);
                    }
                }
                "network" if matches!(text(value).as_str(), "none" | "default") => {}
                "isolation" if value == "default" => {}
                "provenance"
                    if !text(value).contains([',', '=']) || text(value).starts_with("mode=") => {}
                _ => self.find(Promise::Privileges, word, "a key of a build"),
            }
        }
    }

    /// Compose hands build secrets to buildx in one word each.
    fn secrets_of_builds(&mut self, project: &Map<String, Value>) {
        let services = project.get("services").and_then(Value::as_object).into_iter().flatten();
        for (_, service) in services {
            for secret in service.pointer("/build/secrets").map(items).unwrap_or_default() {
                let source = secret.get("source").map_or_else(|| text(&secret), text);
                let target = secret.get("target").map(text).filter(|target| !target.is_empty());
                let target = target.unwrap_or_else(|| source.clone());
                let file = project.get("secrets").and_then(|all| all.get(&source)?.get("file"));
                let file = file.map(text).unwrap_or_default();
                self.build_secret(&format!("id={target},src={file}"));
            }
        }
    }

    /// Something at the file's top level: its name, its keys that say anything, and its labels. Its name on the engine is there
    /// in a resolved file; in a rendered one the tool makes it.
    fn entry(
        &mut self,
        value: &Value,
        resolved: bool,
        word: &str,
        mut take: impl FnMut(&mut Self, &str, &Value),
    ) {
        let Some(map) = value.as_object() else { return };
        let name = map.get("name").map(text).unwrap_or_default();
        if resolved && !name.is_empty() || says(map.get("name").unwrap_or(&Value::Null)) {
            self.own_name(&name, JOINED, word, "makes something");
        }
        for (key, value) in map.iter().filter(|(_, value)| says(value)) {
            if !matches!(key.as_str(), "name" | "labels") {
                take(self, key, value);
            }
        }
    }

    /// The same of what bears our labels.
    fn labelled_entry(
        &mut self,
        value: &Value,
        resolved: bool,
        word: &str,
        take: impl FnMut(&mut Self, &str, &Value),
    ) {
        self.entry(value, resolved, word, take);
        if let Some(map) = value.as_object() {
            self.labels(&pairs(map.get("labels").unwrap_or(&Value::Null)), true, &[]);
        }
    }

    fn network_entry(&mut self, name: &str, network: &Value, resolved: bool) {
        let word = format!("networks.{name}: {network}");
        self.labelled_entry(network, resolved, &word, |judge, key, value| match key {
            "internal" | "attachable" | "enable_ipv4" | "enable_ipv6" => {}
            "driver" => judge.network_driver(&text(value)),
            "driver_opts" => {
                for (name, _) in pairs(value) {
                    judge.network_option(&name, &word);
                }
            }
            "ipam" => judge.ipam_entry(value, &word),
            "external" => judge.find(Promise::Others, &word, "a network that is not the sandbox's"),
            _ => judge.find(Promise::Unknown, &word, "a key of a network"),
        });
    }

    fn ipam_entry(&mut self, ipam: &Value, word: &str) {
        for (key, value) in ipam.as_object().into_iter().flatten().filter(|(_, value)| says(value))
        {
            match key.as_str() {
                "driver" if value == "default" => {}
                "config" => {
                    for (key, value) in items(value).iter().filter_map(Value::as_object).flatten() {
                        match (key.as_str(), value) {
                            ("aux_addresses", Value::Object(map)) => {
                                for address in map.values() {
                                    self.address(&text(address), word);
                                }
                            }
                            ("subnet" | "gateway" | "ip_range", _) => {
                                self.address(&text(value), word);
                            }
                            _ => self.find(Promise::Networks, word, "a key of addresses"),
                        }
                    }
                }
                _ => self.find(Promise::Networks, word, "a key of addresses"),
            }
        }
    }

    fn volume_entry(&mut self, name: &str, volume: &Value, resolved: bool) {
        let word = format!("volumes.{name}: {volume}");
        self.labelled_entry(volume, resolved, &word, |judge, key, value| match key {
            "driver" => judge.volume_driver(&text(value)),
            "driver_opts" => judge.volume_options(&pairs(value), &word),
            "external" => judge.find(Promise::Others, &word, "a volume that is not the sandbox's"),
            _ => judge.find(Promise::Unknown, &word, "a key of a volume"),
        });
    }

    fn file_entry(&mut self, name: &str, file: &Value, resolved: bool) {
        let word = format!("{name}: {file}");
        self.entry(file, resolved, &word, |judge, key, value| match key {
            "content" => {}
            "file" => judge.bind(&text(value), false, &word),
            _ => judge.find(Promise::Others, &word, "a key of a file"),
        });
    }
}

/// `..` and `.` taken away, as a path is cleaned.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}
