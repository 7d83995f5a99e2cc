//! Rules that hold whatever engine is told: labels, images, options of drivers, addresses.

use super::super::world::{HOSTS, ID, OWNER, PROFILE, TAKEN};
use super::words::{csv, is_private, lists, overlaps, pair};
use super::{Judge, Promise, is_own};

/// Labels by which engines, composes and sandboxer find what is theirs.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "sandboxer.", "com.docker.compose.", "io.podman.compose.", "com.docker.stack.", "com.docker.swarm.",
    "io.containers.", "podman_systemd_unit",
];

/// Beginnings of annotations that engines and runtimes act upon.
#[rustfmt::skip]
const ACTING: &[&str] = &[
    "run.oci.", "io.podman.", "org.systemd.", "io.kubernetes.", "io.containers.", "krun.", "io.katacontainers.",
    "org.criu.", "module.wasm.", "org.opencontainers.runc.", "sandboxer.",
];

/// Capabilities that containers have anyway: podman's, and those that Docker gives beside them.
#[rustfmt::skip]
const DEFAULT_CAPABILITIES: &[&str] = &[
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID",
    "SYS_CHROOT",
];
const DOCKERS_CAPABILITIES: &[&str] = &["AUDIT_WRITE", "MKNOD", "NET_RAW"];

const LOG_DRIVERS: &[&str] =
    &["", "json-file", "local", "journald", "k8s-file", "none", "passthrough"];

#[rustfmt::skip]
const LOG_OPTIONS: &[&str] = &[
    "max-size", "max-file", "max-buffer-size", "mode", "compress", "labels", "labels-regex", "env", "env-regex",
    "tag",
];

/// Where podman takes images from beside registries.
#[rustfmt::skip]
const STORES: &[&str] = &[
    "dir", "oci", "docker-archive", "oci-archive", "docker-daemon", "containers-storage", "ostree", "sif", "tarball",
];

#[rustfmt::skip]
const ULIMITS: &[&str] = &[
    "as", "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio",
    "rttime", "sigpending", "stack",
];

#[rustfmt::skip]
const NETWORK_OPTIONS: &[&str] = &[
    "mtu", "isolate", "com.docker.network.driver.mtu", "com.docker.network.bridge.enable_icc",
    "com.docker.network.bridge.enable_ip_masquerade", "com.docker.network.container_iface_prefix",
];

impl Judge<'_> {
    /// Labels in the engine's order; the last of a name wins.
    pub(super) fn labels(
        &mut self,
        labels: &[(String, String)],
        must_be_ours: bool,
        project: &[(&str, &str)],
    ) {
        for (index, (name, value)) in labels.iter().enumerate() {
            let last = !labels[index + 1..].iter().any(|(later, _)| later == name);
            let ours = [
                ("sandboxer.id", ID),
                ("sandboxer.owner", OWNER),
                ("sandboxer.profile", PROFILE),
                // The renderer says it of each container, so that no image does.
                ("com.docker.compose.oneoff", "False"),
            ];
            let known = ours.iter().chain(project).find(|(known, _)| known == name);
            let word = format!("{name}={value}");
            match known {
                Some((_, want)) if last && !want.is_empty() && value != want => {
                    self.find(Promise::Labels, word, format!("`{name}` says another's"));
                }
                Some(_) => {}
                None if RESERVED
                    .iter()
                    .any(|prefix| name.trim().to_ascii_lowercase().starts_with(prefix)) =>
                {
                    self.find(Promise::Labels, word, "a reserved label");
                }
                None => {}
            }
        }
        if must_be_ours && !labels.iter().any(|(name, _)| name == "sandboxer.id") {
            self.find(Promise::Names, format!("{labels:?}"), "made without our label");
        }
    }

    pub(super) fn annotation(&mut self, word: &str) {
        let (name, _) = pair(word);
        if ACTING
            .iter()
            .any(|prefix| name.trim().trim_matches('"').to_ascii_lowercase().starts_with(prefix))
        {
            self.find(Promise::Labels, word, "an annotation that runtimes act upon");
        }
    }

    pub(super) fn capability(&mut self, word: &str) {
        let plain = word.trim().to_ascii_uppercase();
        let plain = plain.trim_start_matches("CAP_");
        let podman = HOSTS.iter().any(|host| host.engine == self.engine && host.is_podman());
        if !DEFAULT_CAPABILITIES.contains(&plain)
            && (podman || !DOCKERS_CAPABILITIES.contains(&plain))
        {
            self.find(Promise::Privileges, word, "adds a capability");
        }
    }

    pub(super) fn log_driver(&mut self, word: &str) {
        if !LOG_DRIVERS.contains(&word) {
            self.find(Promise::HostFiles, word, "a log driver that takes lines out of the sandbox");
        }
    }

    pub(super) fn log_option(&mut self, name: &str, word: &str) {
        if name == "path" {
            self.find(Promise::HostFiles, word, "a log that is written to a file of the host");
        } else if !LOG_OPTIONS.contains(&name) {
            self.find(Promise::Unknown, word, "an option of the log driver");
        }
    }

    pub(super) fn security_option(&mut self, word: &str) {
        if !matches!(
            word,
            "no-new-privileges" | "no-new-privileges:true" | "no-new-privileges=true"
        ) {
            self.find(Promise::Privileges, word, "weakens the confinement");
        }
    }

    pub(super) fn ulimit(&mut self, word: &str) {
        if !ULIMITS.contains(&pair(word).0) {
            self.find(Promise::Privileges, word, "no limit that is known");
        }
    }

    pub(super) fn sysctl(&mut self, word: &str) {
        let name = pair(word).0;
        let own = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.", "net."];
        if !own.iter().any(|prefix| name.starts_with(prefix))
            || name.contains(['/', ' '])
            || name.contains("..")
        {
            self.find(Promise::Namespaces, word, "a setting of the kernel that is the host's");
        }
    }

    /// A namespace that is neither private nor a container's of the sandbox.
    pub(super) fn namespace(&mut self, value: &str, fine: &[&str], word: &str, separator: &[char]) {
        if fine.contains(&value) {
            return;
        }
        match value.split_once(':') {
            Some(("container", name)) if is_own(name, separator) => {}
            Some(("container", _)) => {
                self.find(Promise::Others, word, "shares a namespace of somebody's container");
            }
            Some(("service", "web" | "db")) => {}
            _ => self.find(Promise::Namespaces, word, "shares a namespace with the host"),
        }
    }

    /// An image by name, which is no file, no other store, and nobody's build.
    pub(super) fn image(&mut self, image: &str, word: &str) {
        let plain = image.starts_with(|c: char| c.is_ascii_alphanumeric())
            && image.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@+".contains(c));
        let (name, rest) = image.split_once(':').unwrap_or((image, ""));
        let port =
            |rest: &str| rest.split_once('/').is_some_and(|(port, _)| port.parse::<u16>().is_ok());
        let transport =
            (rest.contains('/') && !port(rest) && !image.contains('@')) || rest.contains("//");
        if !plain {
            self.find(Promise::Unknown, word, "no name of an image");
        } else if transport || (STORES.contains(&name) && !rest.is_empty()) {
            self.find(Promise::HostFiles, word, "an image that is read from the host's files");
        }
        let last = image.rsplit('/').next().unwrap_or(image);
        let repository = last.split([':', '@']).next().unwrap_or(last);
        if repository.starts_with("sbx-")
            && repository.ends_with("-built")
            && repository != format!("sbx-{ID}-built")
        {
            self.find(Promise::Others, word, "an image that another sandbox built");
        }
    }

    /// The name that a build gets: another id must not be able to make the same one.
    pub(super) fn built_name(&mut self, image: &str, word: &str) {
        let Some(rest) = image.trim_start_matches("localhost/").strip_prefix(&format!("sbx-{ID}"))
        else {
            let why = "a build that takes a name which is not the sandbox's";
            self.find(Promise::Others, word, why);
            return;
        };
        if !rest.starts_with("-built:") {
            self.find(Promise::Names, word, "an image's name that another id can have too");
        }
    }

    /// Options of the local volume driver, names as the engine has them.
    pub(super) fn volume_options(&mut self, options: &[(String, String)], word: &str) {
        let get = |want: &str| {
            options
                .iter()
                .rev()
                .find(|(name, _)| name.eq_ignore_ascii_case(want))
                .map_or("", |(_, value)| value)
        };
        let (kind, device) = (get("type").trim().to_ascii_lowercase(), get("device"));
        let names: Vec<String> =
            options.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let mut bind = matches!(kind.as_str(), "none" | "bind");
        for (name, value) in options {
            match name.to_ascii_lowercase().as_str() {
                "type" | "device" => {}
                "o" => {
                    for option in value.split(',') {
                        match pair(option.trim()).0 {
                            "bind" | "rbind" => bind = true,
                            "size" | "mode" | "uid" | "gid" | "nr_inodes" | "rw" | "ro"
                            | "noexec" | "nosuid" | "nodev" | "" | "exec" | "suid" | "dev"
                            | "private" | "rprivate" | "relatime" | "noatime" => {}
                            _ => {
                                self.find(
                                    Promise::Mounts,
                                    word,
                                    "an option of mount(8) on the host",
                                );
                            }
                        }
                    }
                }
                "size" | "uid" | "gid" | "inodes" => {}
                _ => self.find(Promise::Unknown, word, "an option of the volume driver"),
            }
        }
        if names.iter().enumerate().any(|(index, name)| names[..index].contains(name)) {
            self.find(Promise::Repeats, word, "an option of the volume driver stands twice");
        }
        if bind {
            self.bind(device, true, word);
        } else if kind == "tmpfs" {
            if !matches!(device, "tmpfs" | "") {
                self.find(Promise::Mounts, word, "memory that names a device");
            }
        } else if !kind.is_empty() || !device.is_empty() {
            self.find(Promise::Mounts, word, "a volume that mounts something of the host");
        }
    }

    pub(super) fn volume_driver(&mut self, word: &str) {
        if !matches!(word, "" | "local" | "default") {
            self.find(Promise::Others, word, "a volume driver that keeps data elsewhere");
        }
    }

    pub(super) fn network_driver(&mut self, word: &str) {
        if !matches!(word, "" | "bridge" | "default") {
            self.find(Promise::Networks, word, "a network driver that reaches the host's networks");
        }
    }

    pub(super) fn network_option(&mut self, name: &str, word: &str) {
        if !NETWORK_OPTIONS.contains(&name) {
            self.find(Promise::Networks, word, "an option of the network driver");
        }
    }

    /// A subnet, a range, a gateway or an address.
    pub(super) fn address(&mut self, address: &str, word: &str) {
        if !is_private(address) {
            self.find(Promise::Networks, word, "an address that is not private");
        } else if overlaps(address, TAKEN) {
            self.find(Promise::Networks, word, "an address to which the host has a route");
        }
    }

    /// A build's cache: a name, or comma-separated options whose names are lowered.
    pub(super) fn cache(&mut self, word: &str) {
        if !word.contains('=') {
            self.image(word, word);
            return;
        }
        for list in lists(word) {
            for field in &list {
                let (name, value) = pair(field);
                match (name.trim().to_ascii_lowercase().as_str(), value.unwrap_or_default()) {
                    ("type", "registry") | ("ref" | "mode" | "compression", _) => {}
                    _ => self.find(Promise::HostFiles, word, "a cache that is no image"),
                }
            }
        }
    }

    /// A build secret in one word: `id=…,src=…`.
    pub(super) fn build_secret(&mut self, word: &str) {
        for list in [csv(word), word.split(',').map(str::to_owned).collect()] {
            let mut seen: Vec<String> = Vec::new();
            for field in &list {
                let (name, value) = pair(field);
                let name = name.trim().to_ascii_lowercase();
                let value = value.unwrap_or_default();
                match name.as_str() {
                    "id" => {}
                    "type" if value == "file" => {}
                    "src" | "source" => self.host_file(value, word, "a build secret"),
                    "env" => self.find(
                        Promise::HostFiles,
                        word,
                        "a build secret from the account's environment",
                    ),
                    _ => self.find(Promise::Unknown, word, "an option of a build secret"),
                }
                let name = if name == "source" { "src".to_owned() } else { name };
                if seen.contains(&name) {
                    self.find(Promise::Repeats, word, "an option of a build secret stands twice");
                }
                seen.push(name);
            }
        }
    }

    /// A folder that is built from, or what else a context may be.
    pub(super) fn context(&mut self, context: &str, word: &str) {
        if let Some(image) =
            context.strip_prefix("docker-image://").or_else(|| context.strip_prefix("docker://"))
        {
            self.image(image, word);
        } else if context.starts_with('/') {
            self.host_file(context, word, "a build context");
        } else if context.strip_prefix("service:").is_none_or(|name| !matches!(name, "web" | "db"))
        {
            self.find(Promise::Others, word, "a build context that is no folder of the workspace");
        }
    }
}
