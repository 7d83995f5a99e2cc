//! The argument lists with which podman-compose calls podman.

use super::super::world::ID;
use super::words::{builds_lead_out, lists, mount_parts, pair};
use super::{Judge, Promise};

/// Names of what podman-compose makes: `sbx-<id>_…`.
const JOINED: &[char] = &['_'];

/// Options without a value that change nothing outside of the container.
#[rustfmt::skip]
const CONTAINER_FLAGS: &[&str] = &[
    "-d", "--detach", "-i", "--interactive", "-t", "--tty", "--read-only", "--init", "--no-healthcheck", "--rm", "-q",
    "--quiet", "--http-proxy=false",
];

/// Options with a value that change nothing outside of the container, whatever it is.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "-e", "--env", "-u", "--user", "-w", "--workdir", "--hostname", "--shm-size", "--stop-signal", "--stop-timeout",
    "--restart", "--cpus", "--cpu-shares", "-m", "--memory", "--memory-reservation", "--memory-swap", "--pids-limit",
    "--cpuset-cpus", "--entrypoint", "--platform", "--health-cmd", "--health-interval", "--health-timeout",
    "--health-start-period", "--health-startup-interval", "--health-retries", "--healthcheck-command",
    "--healthcheck-interval", "--healthcheck-timeout", "--healthcheck-start-period", "--healthcheck-retries",
    "--expose", "--dns", "--dns-opt", "--dns-search", "--add-host", "--network-alias", "--cap-drop", "--pull",
    "--mac-address", "--target", "--build-arg", "--health-on-failure", "--group-entry", "--tz", "--umask",
];

/// Options of memory that is mounted; the last one is none.
const MEMORY_OPTIONS: &str = "size mode uid gid rw ro exec noexec suid nosuid dev nodev tmpcopyup notmpcopyup \
    nr_inodes nr_blocks ";

impl Judge<'_> {
    /// Call of podman, without the program's own name.
    pub(crate) fn podman(&mut self, words: &[String]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["--version"] | ["--version", ""] | ["ps", ..] => {}
            ["wait", _condition, names @ ..] => {
                for name in names {
                    self.own_name(name, JOINED, name, "waits for something");
                }
            }
            ["run" | "create", rest @ ..] => self.container(rest),
            ["build", rest @ ..] => self.build(rest),
            ["network", "create", rest @ ..] => self.network(rest),
            ["volume", "create", rest @ ..] => self.volume(rest),
            ["pod", "create", rest @ ..] => self.pod(rest),
            ["network", "exists", name] | ["volume", "inspect", name] | ["start", name] => {
                self.own_name(name, JOINED, &words.join(" "), "asks for something");
            }
            ["pod", "exists", name] => self.pod_name(name),
            ["inspect", "-t", "image", "-f", "{{.Id}}", _] => {}
            ["pull", "--policy", "always" | "newer" | "missing", image] => self.image(image, image),
            _ => self.find(Promise::Unknown, words.join(" "), "a call of podman"),
        }
    }

    fn pod_name(&mut self, name: &str) {
        if name != format!("pod_sbx-{ID}") {
            self.find(Promise::Others, name, "a pod that is not the sandbox's");
        }
    }

    fn container(&mut self, words: &[&str]) {
        let mut labels = Vec::new();
        let mut named = false;
        let image =
            self.each_option(words, CONTAINER_FLAGS, |judge, name, value, word| match name {
                "--name" => {
                    named = true;
                    judge.own_name(value, JOINED, word, "makes a container");
                }
                "--label" | "-l" => labels.push(label(value)),
                _ => judge.container_option(name, value, word),
            });
        // Its command is the container's own business.
        match image.first() {
            Some(image) => self.image(image, image),
            None => self.find(Promise::Unknown, words.join(" "), "a container without an image"),
        }
        if !named {
            self.find(Promise::Names, words.join(" "), "a container without a name");
        }
        self.labels(&labels, true, &project_labels());
    }

    /// Options, as pflag reads them: the word behind an option that takes a value is its value, whatever it looks like.
    fn each_option<'a>(
        &mut self,
        words: &[&'a str],
        flags: &[&str],
        mut take: impl FnMut(&mut Self, &str, &str, &str),
    ) -> Vec<&'a str> {
        let mut index = 0;
        while index < words.len() {
            let word = words[index];
            if !word.starts_with('-') || word == "-" {
                return words[index..].to_vec();
            }
            index += 1;
            if word == "--" {
                return words[index..].to_vec();
            }
            if flags.contains(&word) {
                continue;
            }
            if matches!(
                word,
                "--privileged" | "-P" | "--publish-all" | "--env-host" | "--rootfs" | "--replace"
            ) {
                self.find(Promise::Privileges, word, "an option that no sandbox gets");
                continue;
            }
            match word.split_once('=').filter(|_| word.starts_with("--")) {
                Some((name, value)) => take(self, name, value, word),
                None if index < words.len() => {
                    let value = words[index];
                    index += 1;
                    take(self, word, value, &format!("{word} {value}"));
                }
                None => self.find(Promise::Unknown, word, "an option without a value"),
            }
        }
        Vec::new()
    }

    #[allow(clippy::too_many_lines)] // A table of options.
    fn container_option(&mut self, name: &str, value: &str, word: &str) {
        let mut each = |promise: &mut dyn FnMut(&mut Self, &str)| {
            for item in lists(value).concat() {
                promise(self, &item);
            }
        };
        match name {
            "-e" | "--env" => self.variable(value, word),
            _ if HARMLESS.contains(&name) => {}
            "--volume" | "-v" => self.volume_word(value, word),
            "--mount" => self.mount_word(value, word),
            "--tmpfs" => self.tmpfs_word(value, word),
            "--network" | "--net" => self.network_word(value, word),
            "--pod" => self.pod_name(value),
            "--requires" => {
                each(&mut |judge, item| judge.own_name(item, JOINED, word, "needs a container"));
            }
            "--annotation" => each(&mut Self::annotation),
            "--log-driver" => self.log_driver(value),
            "--log-opt" => each(&mut |judge, item| judge.log_option(pair(item).0, word)),
            "--security-opt" => self.security_option(value),
            "--cap-add" => each(&mut Self::capability),
            "--ulimit" => each(&mut Self::ulimit),
            "--sysctl" => each(&mut Self::sysctl),
            "--group-add" => each(&mut |judge, item| {
                if item == "keep-groups" {
                    let why = "keeps the groups of the account on the host";
                    judge.find(Promise::Privileges, word, why);
                }
            }),
            "--device"
            | "--device-cgroup-rule"
            | "--cgroup-parent"
            | "--runtime"
            | "--init-path"
            | "--volumes-from"
            | "--uidmap"
            | "--gidmap"
            | "--oom-score-adj" => {
                self.find(Promise::Privileges, word, "an option that no sandbox gets");
            }
            "--pid" => self.namespace(value, &["private", ""], word, JOINED),
            "--ipc" => self.namespace(value, &["private", "shareable", "none", ""], word, JOINED),
            "--uts" | "--cgroupns" => self.namespace(value, &["private", ""], word, JOINED),
            "--userns" => self.namespace(value, &["private", "auto", ""], word, JOINED),
            "--env-file" | "--label-file" => self.host_file(value, word, "a file of variables"),
            "--secret" => self.find(Promise::Others, word, "a secret of the engine's store"),
            "-p" | "--publish" => each(&mut |judge, item| judge.publish(item)),
            _ => self.find(Promise::Unknown, word, format!("the option {name}")),
        }
    }

    /// A name without a value, or a pattern of names, is taken from the account's own environment.
    fn variable(&mut self, value: &str, word: &str) {
        if !value.contains('=') {
            self.find(Promise::HostFiles, word, "a variable of the account on the host");
        }
    }

    /// `[IP:][HOST:]CONTAINER[/PROTOCOL]`: a random port on 127.0.0.1.
    pub(super) fn publish(&mut self, word: &str) {
        let port = word.split('/').next().unwrap_or_default();
        let random =
            port.strip_prefix("127.0.0.1::").is_some_and(|port| port.parse::<u16>().is_ok());
        if !random {
            self.open_port(word);
        }
    }

    /// `[SOURCE:]TARGET[:OPTIONS]`.
    fn volume_word(&mut self, value: &str, word: &str) {
        let Some((source, options, known)) = mount_parts(value) else { return };
        if !known {
            self.find(Promise::Unknown, word, "a mount of more parts than three");
        }
        let writable = self.mount_options(options.split(','), word);
        if source.starts_with(['/', '.', '~']) {
            self.bind(source, writable, word);
        } else if !source.is_empty() {
            self.own_name(source, JOINED, word, "mounts a volume");
        }
        if value.split(':').nth(1).is_some_and(|target| target.contains([',', '=', '\n', '"'])) {
            self.find(Promise::Unknown, word, "a target with a delimiter");
        }
    }

    /// Options of a mount: is it writable?
    fn mount_options<'o>(&mut self, options: impl Iterator<Item = &'o str>, word: &str) -> bool {
        let mut seen: Vec<&str> = Vec::new();
        let mut writable = true;
        for option in options.filter(|option| !option.is_empty()) {
            let (name, _) = pair(option);
            let class = match name {
                "ro" | "rw" => "access",
                "z" | "Z" => "label",
                "exec" | "noexec" | "dev" | "nodev" | "suid" | "nosuid" => {
                    name.trim_start_matches("no")
                }
                "private" | "rprivate" | "slave" | "rslave" => "propagation",
                "bind" | "rbind" => "recursion",
                "U" | "nocopy" => name,
                "shared" | "rshared" => {
                    self.shared_mount(word);
                    "propagation"
                }
                "upperdir" | "workdir" | "O" => {
                    self.find(Promise::Mounts, word, "an overlay");
                    name
                }
                _ => {
                    self.find(Promise::Unknown, word, "an option of a mount");
                    name
                }
            };
            if seen.contains(&class) {
                self.find(Promise::Repeats, word, "an option of a mount stands twice");
            }
            seen.push(class);
            match option {
                "ro" => writable = false,
                "rw" => writable = true,
                _ => {}
            }
        }
        writable
    }

    /// `type=…,source=…,target=…`: every reading of it counts.
    fn mount_word(&mut self, value: &str, word: &str) {
        for fields in lists(value) {
            let mut sources: Vec<&str> = Vec::new();
            let mut kinds: Vec<&str> = Vec::new();
            let mut writable = true;
            let mut seen: Vec<&str> = Vec::new();
            for field in &fields {
                let (name, value) = pair(field);
                let told = value.unwrap_or_default();
                let class = match name {
                    "type" => {
                        kinds.push(told);
                        "type"
                    }
                    "source" | "src" => {
                        sources.push(told);
                        "source"
                    }
                    "target" | "destination" | "dst" => "target",
                    "ro" | "readonly" => {
                        writable = value.is_some_and(|value| value != "true");
                        "access"
                    }
                    "rw" => "access",
                    "bind-propagation"
                        if matches!(told, "private" | "rprivate" | "slave" | "rslave") =>
                    {
                        "propagation"
                    }
                    "tmpfs-size" | "tmpfs-mode" | "subpath" | "volume-nocopy" | "consistency" => {
                        name
                    }
                    "" => continue,
                    _ => {
                        self.find(Promise::Unknown, word, "an option of a mount");
                        name
                    }
                };
                if seen.contains(&class) {
                    self.find(Promise::Repeats, word, "an option of a mount stands twice");
                }
                seen.push(class);
            }
            for kind in &kinds {
                for source in &sources {
                    match *kind {
                        "bind" => self.bind(source, writable, word),
                        "volume" => self.own_name(source, JOINED, word, "mounts a volume"),
                        "image" => self.image(source, word),
                        "tmpfs" => {}
                        _ => self.find(Promise::Unknown, word, "a kind of mount"),
                    }
                }
            }
        }
    }

    /// `TARGET[:OPTIONS]`.
    fn tmpfs_word(&mut self, value: &str, word: &str) {
        let Some((_, options)) = value.split_once(':') else { return };
        for option in options.split(',') {
            if !MEMORY_OPTIONS.split(' ').any(|known| known == pair(option).0) {
                self.find(Promise::Unknown, word, "an option of memory that is mounted");
            }
        }
    }

    /// `none`, `container:NAME`, or `NETWORK[:OPTIONS]`.
    fn network_word(&mut self, value: &str, word: &str) {
        if value == "none" {
            return;
        }
        if value.starts_with("container:") {
            self.namespace(value, &[], word, JOINED);
            return;
        }
        let (networks, options) = value.split_once(':').unwrap_or((value, ""));
        for network in networks.split(',') {
            match network {
                "host" | "ns" | "slirp4netns" | "pasta" | "private" | "bridge" | "podman" => {
                    self.find(Promise::Namespaces, word, "a network that is not the sandbox's");
                }
                _ => self.own_name(network, JOINED, word, "joins a network"),
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = pair(option);
            match name {
                "alias" => {
                    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
                    if !value.unwrap_or_default().chars().all(plain) {
                        self.find(Promise::Unknown, word, "an alias with a delimiter");
                    }
                    continue;
                }
                "ip" | "ip6" => self.address(value.unwrap_or_default(), word),
                "mac" | "interface_name" => {}
                _ => self.find(Promise::Unknown, word, "an option of a network"),
            }
            if seen.contains(&name) {
                self.find(Promise::Repeats, word, "an option of a network stands twice");
            }
            seen.push(name);
        }
    }

    fn build(&mut self, words: &[&str]) {
        if builds_lead_out(self.engine) {
            let word = format!("podman {} build", self.engine);
            self.find(Promise::Builds, word, "a build before podman 5.3.2");
        }
        let mut labels = Vec::new();
        let context =
            self.each_option(words, &["--no-cache"], |judge, name, value, word| match name {
                "--build-arg" => judge.variable(value, word),
                _ if HARMLESS.contains(&name) => {}
                "-f" | "--file" => {
                    // What stands in the compose file is written to a file for a moment.
                    if !value.starts_with(&format!("{}/", judge.world.scratch)) {
                        judge.host_file(value, word, "a Dockerfile");
                    }
                }
                "-t" | "--tag" => {
                    judge.image(value, word);
                    judge.built_name(value, word);
                }
                "--label" => labels.push(label(value)),
                "--secret" => judge.build_secret(value),
                "--build-context" => {
                    let (_, value) = pair(value);
                    judge.context(value.unwrap_or_default(), word);
                }
                "--cache-from" => judge.cache(value),
                "--cache-to" | "--ssh" => {
                    judge.find(Promise::Others, word, "a build that reaches out of the sandbox");
                }
                "--ulimit" => lists(value).concat().iter().for_each(|item| judge.ulimit(item)),
                _ => judge.find(Promise::Unknown, word, format!("the option {name}")),
            });
        match context.as_slice() {
            [context] => self.context(context, context),
            _ => self.find(Promise::Unknown, words.join(" "), "a build without one context"),
        }
        self.labels(&labels, false, &[]);
    }

    fn network(&mut self, words: &[&str]) {
        let mut labels = Vec::new();
        let name = self.each_option(
            words,
            &["--internal", "--ipv6"],
            |judge, name, value, word| match name {
                "--label" => labels.push(label(value)),
                "--driver" | "-d" => judge.network_driver(value),
                "--opt" | "-o" => {
                    for item in lists(value).concat() {
                        judge.network_option(pair(&item).0, word);
                    }
                }
                "--subnet" | "--ip-range" | "--gateway" => judge.address(value, word),
                _ => judge.find(Promise::Networks, word, format!("the option {name}")),
            },
        );
        match name.as_slice() {
            [name] => self.own_name(name, JOINED, name, "makes a network"),
            _ => self.find(Promise::Unknown, words.join(" "), "a network without one name"),
        }
        self.labels(&labels, true, &project_labels());
    }

    fn volume(&mut self, words: &[&str]) {
        let mut labels = Vec::new();
        let mut options = Vec::new();
        let name = self.each_option(words, &[], |judge, name, value, word| match name {
            "--label" => labels.push(label(value)),
            "--driver" | "-d" => judge.volume_driver(value),
            "--opt" | "-o" => options.push(label(value)),
            _ => judge.find(Promise::Unknown, word, format!("the option {name}")),
        });
        match name.as_slice() {
            [name] => self.own_name(name, JOINED, name, "makes a volume"),
            _ => self.find(Promise::Unknown, words.join(" "), "a volume without one name"),
        }
        if !options.is_empty() {
            self.volume_options(&options, &words.join(" "));
        }
        // One without a source has a name and no description, so no labels either.
        let anonymous = name.first().is_some_and(|name| name.len() > 64);
        self.labels(&labels, !anonymous, &project_labels());
    }

    fn pod(&mut self, words: &[&str]) {
        let rest =
            self.each_option(words, &["--infra=false", "--share="], |judge, name, value, word| {
                match name {
                    "--name" => judge.pod_name(value),
                    _ => judge.find(Promise::Unknown, word, format!("the option {name}")),
                }
            });
        if !rest.is_empty() {
            self.find(Promise::Unknown, words.join(" "), "a pod with more than a name");
        }
    }
}

fn label(word: &str) -> (String, String) {
    let (name, value) = pair(word);
    (name.to_owned(), value.unwrap_or_default().to_owned())
}

/// Labels of podman-compose itself; empty: whatever it is.
fn project_labels() -> [(&'static str, &'static str); 12] {
    const PROJECT: &str = "sbx-a1b2c3d4";
    [
        ("io.podman.compose.project", PROJECT),
        ("com.docker.compose.project", PROJECT),
        ("io.podman.compose.config-hash", ""),
        ("io.podman.compose.version", ""),
        ("io.podman.compose.service", ""),
        ("com.docker.compose.service", ""),
        ("com.docker.compose.container-number", ""),
        ("com.docker.compose.project.working_dir", ""),
        ("com.docker.compose.project.config_files", ""),
        ("com.docker.compose.version", ""),
        ("com.docker.compose.oneoff", ""),
        ("PODMAN_SYSTEMD_UNIT", "podman-compose@sbx-a1b2c3d4.service"),
    ]
}
