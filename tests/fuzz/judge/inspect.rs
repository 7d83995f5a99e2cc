//! A container as `docker inspect` shows it.

use serde_json::Value;

use super::super::world::ID;
use super::words::says;
use super::{Judge, Promise};

/// Keys of `HostConfig` that may hold anything: limits, and what the container alone sees.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "AutoRemove", "BlkioDeviceReadBps", "BlkioDeviceReadIOps", "BlkioDeviceWriteBps", "BlkioDeviceWriteIOps",
    "BlkioWeight", "BlkioWeightDevice", "CapDrop", "ConsoleSize", "ContainerIDFile", "CpuCount", "CpuPercent", "CpuPeriod",
    "CpuQuota", "CpuRealtimePeriod", "CpuRealtimeRuntime", "CpuShares", "CpusetCpus", "CpusetMems", "Dns", "DnsOptions",
    "DnsSearch", "ExtraHosts", "IOMaximumBandwidth", "IOMaximumIOps", "Init", "KernelMemory", "KernelMemoryTCP",
    "MaskedPaths", "Memory", "MemoryReservation", "MemorySwap", "MemorySwappiness", "NanoCpus", "PidsLimit",
    "ReadonlyPaths", "ReadonlyRootfs", "RestartPolicy", "ShmSize", "Tmpfs", "VolumeDriver", "Annotations",
];

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Judge<'_> {
    pub(crate) fn inspected(&mut self, container: &Value) {
        let name =
            container["Name"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
        if !name.starts_with(&format!("sbx-{ID}-")) && !name.starts_with(&format!("sbx-{ID}_")) {
            self.find(Promise::Names, name, "a container that is not named as the sandbox's");
        }
        for (key, value) in container["HostConfig"].as_object().into_iter().flatten() {
            if !HARMLESS.contains(&key.as_str()) && says(value) {
                self.host_config(key, value);
            }
        }
        for mount in container["Mounts"].as_array().into_iter().flatten() {
            let word = mount.to_string();
            match mount["Type"].as_str().unwrap_or_default() {
                "bind" => self.bind(&text(&mount["Source"]), mount["RW"] == true, &word),
                "volume" => {
                    let name = text(&mount["Name"]);
                    let anonymous = name.len() == 64 && name.chars().all(|c| c.is_ascii_hexdigit());
                    if !anonymous {
                        self.own_name(&name, &['_'], &word, "mounts a volume");
                    }
                }
                "tmpfs" => {}
                _ => self.find(Promise::Unknown, &word, "a kind of mount"),
            }
            if !matches!(
                mount["Propagation"].as_str(),
                None | Some("" | "rprivate" | "private" | "rslave" | "slave")
            ) {
                self.shared_mount(&word);
            }
        }
        for (network, settings) in
            container["NetworkSettings"]["Networks"].as_object().into_iter().flatten()
        {
            if network != "none" {
                self.own_name(network, &['_'], network, "joins a network");
            }
            for (key, value) in settings["IPAMConfig"].as_object().into_iter().flatten() {
                if says(value) {
                    self.address(&text(value), &format!("{network}.{key}: {value}"));
                }
            }
        }
        let labels = container["Config"]["Labels"].as_object().into_iter().flatten();
        let labels: Vec<_> = labels.map(|(name, value)| (name.clone(), text(value))).collect();
        let own = "config-hash container-number depends_on image oneoff project.config_files project.working_dir \
            service version slug replace";
        let own: Vec<String> =
            own.split(' ').map(|name| format!("com.docker.compose.{name}")).collect();
        let project = format!("sbx-{ID}");
        let mut known: Vec<(&str, &str)> = own.iter().map(|name| (name.as_str(), "")).collect();
        known.push(("com.docker.compose.project", &project));
        self.labels(&labels, true, &known);
    }

    fn host_config(&mut self, key: &str, value: &Value) {
        let word = format!("{key}: {value}");
        let word = word.as_str();
        let items = value.as_array().cloned().unwrap_or_default();
        match key {
            "Binds" => {
                for bind in items.iter().map(text) {
                    let parts: Vec<&str> = bind.split(':').collect();
                    let writable = !parts
                        .get(2)
                        .is_some_and(|options| options.split(',').any(|option| option == "ro"));
                    if parts.len() > 1 && parts[0].starts_with('/') {
                        self.bind(parts[0], writable, &bind);
                    } else if parts.len() > 1 {
                        self.own_name(parts[0], &['_'], &bind, "mounts a volume");
                    }
                }
            }
            "Mounts" => {
                for mount in &items {
                    match (mount["Type"].as_str().unwrap_or_default(), text(&mount["Source"])) {
                        ("bind", source) => {
                            self.bind(&source, mount["ReadOnly"] != true, &mount.to_string());
                        }
                        ("volume", source) if source != "null" && !source.is_empty() => {
                            self.own_name(&source, &['_'], &mount.to_string(), "mounts a volume");
                        }
                        ("volume" | "tmpfs", _) => {}
                        _ => self.find(Promise::Unknown, mount.to_string(), "a kind of mount"),
                    }
                }
            }
            "CapAdd" => items.iter().for_each(|item| self.capability(&text(item))),
            "SecurityOpt" => items.iter().for_each(|item| self.security_option(&text(item))),
            "Ulimits" => items.iter().for_each(|item| self.ulimit(&text(&item["Name"]))),
            "Sysctls" => {
                value.as_object().into_iter().flatten().for_each(|(name, _)| self.sysctl(name));
            }
            "LogConfig" => {
                self.log_driver(&text(&value["Type"]));
                for (name, _) in value["Config"].as_object().into_iter().flatten() {
                    self.log_option(name, word);
                }
            }
            "NetworkMode" => {
                let mode = text(value);
                // A container's network goes by its id.
                if mode != "none" && !mode.starts_with("container:") {
                    self.own_name(&mode, &['_'], word, "joins a network");
                }
            }
            "IpcMode" if matches!(text(value).as_str(), "private" | "shareable" | "none") => {}
            "PidMode" | "UTSMode" | "UsernsMode" | "CgroupnsMode" | "Cgroup" | "IpcMode" => {
                // Without cgroup v2 the host's is the engine's default.
                let fine: &[&str] =
                    if key == "CgroupnsMode" { &["private", "host"] } else { &["private"] };
                if !text(value).starts_with("container:") {
                    self.namespace(&text(value), fine, word, &['_']);
                }
            }
            "PortBindings" => {
                for binding in value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter_map(|(_, value)| value.as_array().cloned())
                    .flatten()
                {
                    let (ip, port) = (text(&binding["HostIp"]), text(&binding["HostPort"]));
                    if ip != "127.0.0.1" || !matches!(port.as_str(), "" | "0" | "null") {
                        self.open_port(word);
                    }
                }
            }
            "Links" => {
                for link in items.iter().map(text) {
                    self.own_name(
                        link.trim_start_matches('/').split(':').next().unwrap_or_default(),
                        &['_', '-'],
                        word,
                        "links",
                    );
                }
            }
            "GroupAdd" if !items.iter().any(|item| text(item) == "keep-groups") => {}
            "OomScoreAdj" if value.as_i64().is_some_and(|score| score > 0) => {}
            "Runtime" if value == "runc" => {}
            "Isolation" if value == "default" => {}
            _ => self.find(Promise::Privileges, word, format!("HostConfig.{key}")),
        }
    }
}
