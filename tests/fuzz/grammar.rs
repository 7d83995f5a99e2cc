//! Compose files of every key that the renderer knows, as their owners would write them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::seed::Rng;
use super::world::{FILE, OVERRIDE};

/// Case: a compose file, with what lies beside it in the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) project: Value,
    /// Files of its own, such as `.env`.
    pub(crate) beside: BTreeMap<String, String>,
}

impl Case {
    /// All of its files. JSON is YAML, and leaves no parser a guess.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let mut files = self.beside.clone();
        files.insert(FILE.to_owned(), format!("{:#}", self.project));
        files
    }
}

/// Keys of a service. What no sandbox gets stands here switched off.
#[rustfmt::skip]
pub(crate) const SERVICE: &[&str] = &[
    "annotations", "attach", "blkio_config", "build", "cap_add", "cap_drop", "cgroup", "cgroup_parent", "command",
    "configs", "container_name", "cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpu_rt_period",
    "cpu_rt_runtime", "cpu_shares", "cpus", "cpuset", "credential_spec", "depends_on", "deploy", "develop",
    "device_cgroup_rules", "devices", "dns", "dns_opt", "dns_search", "domainname", "entrypoint", "env_file",
    "environment", "expose", "external_links", "extra_hosts", "gpus", "group_add", "healthcheck", "hostname", "image",
    "init", "ipc", "isolation", "label_file", "labels", "links", "logging", "mac_address", "mem_limit",
    "mem_reservation", "mem_swappiness", "memswap_limit", "models", "network_mode", "networks", "oom_kill_disable",
    "oom_score_adj", "pid", "pids_limit", "platform", "ports", "post_start", "pre_stop", "privileged", "provider",
    "pull_policy", "pull_refresh_after", "read_only", "restart", "runtime", "scale", "secrets", "security_opt",
    "shm_size", "stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs", "tty", "ulimits",
    "use_api_socket", "user", "userns_mode", "uts", "volumes", "volumes_from", "working_dir",
];

/// Values that people write most.
#[rustfmt::skip]
const USUAL: &[&str] = &[
    "build", "command", "container_name", "depends_on", "deploy", "env_file", "environment", "extra_hosts",
    "healthcheck", "hostname", "labels", "logging", "mem_limit", "networks", "ports", "restart", "secrets", "sysctls",
    "tmpfs", "ulimits", "user", "volumes", "annotations", "label_file",
];

/// Keys that an override file often has.
const USUAL_OVER: &[&str] = &["environment", "command", "labels", "restart", "healthcheck"];

/// A project that asks for nothing it does not get.
pub(crate) fn honest(rng: &mut Rng) -> Case {
    let mut services = Map::new();
    for name in ["web", "db"] {
        if name == "db" && rng.once_in(2) {
            continue;
        }
        services.insert(name.to_owned(), service(rng, name));
    }
    let alone = services.len() == 1;
    if let Some(web) = services.get_mut("web").and_then(Value::as_object_mut) {
        for key in ["depends_on", "links"] {
            if alone {
                web.shift_remove(key);
            }
        }
        // The two exclude each other.
        if web.contains_key("network_mode") {
            for key in [
                "networks",
                "ports",
                "links",
                "mac_address",
                "extra_hosts",
                "dns",
                "sysctls",
                "hostname",
            ] {
                web.shift_remove(key);
            }
        }
    }
    let mut project = json!({
        "services": services,
        "networks": {"back": network(rng), "default": if rng.once_in(2) { json!({}) } else { network(rng) }},
        "volumes": {"data": volume(rng), "cache": null},
        "secrets": {"tok": {"file": "./tok.txt"}, "key": {"file": "conf/app.conf"}},
        "configs": {"conf": {"file": "./conf/app.conf"}},
    });
    if rng.once_in(8) {
        project["version"] = json!("3.8");
        project["name"] = json!("mine");
        project["x-team"] = json!({"any": "thing"});
    }
    let mut beside = BTreeMap::new();
    if rng.once_in(4) {
        project["secrets"]["tok"] = json!({"environment": "TOK"});
        beside.insert(".env".to_owned(), "TOK=token, of: dotenv\n".to_owned());
    }
    if rng.once_in(4) {
        let over: Map<_, _> =
            USUAL_OVER.iter().map(|key| ((*key).to_owned(), value(rng, key))).collect();
        beside.insert(OVERRIDE.to_owned(), json!({"services": {"web": over}}).to_string());
    }
    Case { project, beside }
}

fn service(rng: &mut Rng, name: &str) -> Value {
    let mut service = Map::new();
    service.insert("image".to_owned(), value(rng, "image"));
    for _ in 0..2 + rng.below(5) {
        let key = if rng.once_in(4) { rng.pick(SERVICE) } else { rng.pick(USUAL) };
        let told = value(rng, key);
        if name == "db" && matches!(key, "depends_on" | "links" | "network_mode") {
            continue;
        }
        service.insert(key.to_owned(), told);
    }
    Value::Object(service)
}

fn network(rng: &mut Rng) -> Value {
    match rng.below(6) {
        0 => json!({"driver": "bridge", "internal": true, "attachable": false}),
        1 => json!({"driver_opts": {"com.docker.network.driver.mtu": "1400"}}),
        2 => json!({"labels": {"com.example.net": "blue"}}),
        3 => {
            json!({"ipam": {"driver": "default", "config": [{"subnet": "172.30.7.0/24", "gateway": "172.30.7.1"}]}})
        }
        4 => json!({"name": "fixed", "labels": ["com.example.a=b"]}),
        _ => Value::Null,
    }
}

fn volume(rng: &mut Rng) -> Value {
    match rng.below(6) {
        0 => {
            json!({"driver": "local", "driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": "size=1m,uid=1000"}})
        }
        1 => json!({"labels": {"com.example.vol": "blue"}}),
        2 => json!({"name": "fixed"}),
        3 => json!({"driver": "local"}),
        4 => json!({"driver_opts": {"type": "none", "o": "bind", "device": "./app/data"}}),
        _ => Value::Null,
    }
}

/// An honest value of a service's key.
#[allow(clippy::too_many_lines)] // A table of every key.
pub(crate) fn value(rng: &mut Rng, key: &str) -> Value {
    let n = rng.below(4);
    let of = |values: &[Value]| values[n % values.len()].clone();
    match key {
        "annotations" => of(&[
            json!({"org.opencontainers.image.title": "web"}),
            json!(["org.opencontainers.image.vendor=x"]),
        ]),
        "blkio_config" => json!({"weight": 300}),
        "build" => build(rng),
        "cap_drop" => json!(["NET_RAW"]),
        "cap_add" => of(&[
            json!([]),
            json!(["NET_BIND_SERVICE", "CAP_CHOWN"]),
            json!(["setuid"]),
            json!(["KILL"]),
        ]),
        "device_cgroup_rules" | "devices" | "external_links" | "volumes_from" | "security_opt" => {
            match n {
                0 if key == "security_opt" => json!(["no-new-privileges:true"]),
                _ => json!([]),
            }
        }
        "cgroup" | "pid" | "uts" => json!("private"),
        "ipc" => of(&[json!("private"), json!("none"), json!("shareable")]),
        "command" => of(&[
            json!("sleep 30"),
            json!(["sleep", "30"]),
            json!("sh -c 'echo $$HOME'"),
            json!(["a", "-v", "/:/x"]),
        ]),
        "configs" => of(&[
            json!(["conf"]),
            json!([{"source": "conf", "target": "/etc/app.conf", "mode": 288}]),
        ]),
        "container_name" => json!("web1"),
        "cpu_count" | "cpu_rt_period" | "cpu_rt_runtime" | "mem_swappiness" => json!(1),
        "cpu_percent" => json!(50),
        "cpu_period" => json!(100_000),
        "cpu_quota" => json!(50_000),
        "cpu_shares" => json!(512),
        "cpus" => of(&[json!(0.5), json!("1.5")]),
        "cpuset" => json!("0"),
        "depends_on" => of(&[json!(["db"]), json!({"db": {"condition": "service_started"}})]),
        "deploy" => of(&[
            json!({"replicas": 2, "resources": {"limits": {"cpus": "0.5", "memory": "64M"}}}),
            json!({"restart_policy": {"condition": "on-failure"}, "labels": {"com.example.d": "x"}}),
        ]),
        "develop" => json!({"watch": [{"path": "./app", "action": "sync", "target": "/app"}]}),
        "dns" => of(&[json!("9.9.9.9"), json!(["9.9.9.9", "1.1.1.1"])]),
        "dns_opt" => json!(["use-vc"]),
        "dns_search" => of(&[json!("example.com"), json!(["a.example.com"])]),
        "domainname" => json!("example.com"),
        "entrypoint" => of(&[json!("/bin/sh -c"), json!(["/bin/sh", "-c"])]),
        "env_file" => of(&[
            json!("web.env"),
            json!(["./web.env"]),
            json!([{"path": "./web.env", "required": false}]),
        ]),
        "environment" => of(&[
            json!({"A": "1", "B": "two, words: x=y", "C": null}),
            json!(["A=1", "URL=postgres://u:p@db:5432/x?a=b,c"]),
            json!({"N": 3, "T": true}),
        ]),
        "expose" => of(&[json!(["80"]), json!([8080])]),
        "extra_hosts" => of(&[json!(["api:10.1.2.3"]), json!({"api": "10.1.2.3"})]),
        "group_add" => json!(["1000"]),
        "healthcheck" => of(&[
            json!({"test": ["CMD", "true"], "interval": "5s", "timeout": "2s", "retries": 3}),
            json!({"test": "curl -f http://localhost/ || exit 1", "start_period": "1s"}),
            json!({"test": ["CMD-SHELL", "a, b: c"]}),
            json!({"disable": true}),
        ]),
        "hostname" => json!("web"),
        "image" => of(&[
            json!("nginx"),
            json!("docker.io/library/postgres:16"),
            json!("localhost/sbx-lab:1"),
            json!("reg.example.com:5000/a/b:1"),
        ]),
        "isolation" => json!("default"),
        "label_file" => of(&[json!("labels.env"), json!(["./labels.env"])]),
        "labels" => of(&[
            json!({"com.example.rule": "Host(`a`) && Path(`/x,y`)"}),
            json!(["com.example.a=b=c", "com.example.empty="]),
        ]),
        "links" => of(&[json!(["db"]), json!(["db:database"])]),
        "logging" => of(&[
            json!({"driver": "json-file", "options": {"max-size": "10m", "max-file": "3"}}),
            json!({"options": {"max-size": "1m"}}),
            json!({"driver": "none"}),
        ]),
        "mac_address" => json!("02:42:ac:11:00:05"),
        "mem_limit" | "memswap_limit" => json!("256m"),
        "mem_reservation" => json!("64m"),
        "network_mode" => of(&[json!("none"), json!("bridge")]),
        "networks" => of(&[
            json!(["back"]),
            json!({"back": {"aliases": ["api", "api.local"]}, "default": null}),
            json!(["default", "back"]),
            json!({"default": {"priority": 10}}),
        ]),
        "oom_score_adj" | "pull_refresh_after" => {
            if key == "oom_score_adj" {
                json!(100)
            } else {
                Value::Null
            }
        }
        "pids_limit" => json!(100),
        "platform" => json!("linux/amd64"),
        "ports" => of(&[
            json!(["8080:80"]),
            json!(["80", "127.0.0.1:5353:53/udp"]),
            json!([{"target": 80, "published": "8080", "protocol": "tcp"}]),
            json!(["3000-3002:3000-3002"]),
        ]),
        "post_start" | "pre_stop" => json!([{"command": ["true"], "environment": {"A": "1"}}]),
        "pull_policy" => of(&[json!("missing"), json!("always")]),
        "restart" => {
            of(&[json!("always"), json!("on-failure:3"), json!("no"), json!("unless-stopped")])
        }
        "scale" => json!(2),
        "secrets" => {
            of(&[json!(["tok"]), json!([{"source": "tok", "target": "token", "mode": 288}])])
        }
        "shm_size" => json!("64m"),
        "stop_grace_period" => json!("3s"),
        "stop_signal" => json!("SIGINT"),
        "sysctls" => of(&[
            json!({"net.core.somaxconn": 1024}),
            json!(["net.ipv4.ip_unprivileged_port_start=0"]),
        ]),
        "tmpfs" => of(&[json!("/run"), json!(["/run:size=64m,mode=1777", "/tmp"])]),
        "ulimits" => of(&[json!({"nofile": {"soft": 1024, "hard": 2048}}), json!({"nproc": 512})]),
        "user" => of(&[json!("1000:1000"), json!(1000)]),
        "userns_mode" => json!("private"),
        "volumes" => volumes(rng),
        "working_dir" => json!("/srv/app"),
        "privileged" | "oom_kill_disable" | "use_api_socket" | "attach" => json!(false),
        "init" | "read_only" | "stdin_open" | "tty" => json!(true),
        _ => Value::Null,
    }
}

fn build(rng: &mut Rng) -> Value {
    let mut build = match rng.below(3) {
        0 => return json!("./app"),
        1 => {
            json!({"context": "./app", "dockerfile": "alt.Dockerfile", "args": {"V": "1, 2"}, "target": "final"})
        }
        _ => json!({"context": "app"}),
    };
    for _ in 0..rng.below(3) {
        let (key, value) = match rng.below(9) {
            0 => ("secrets", json!(["tok"])),
            1 => ("secrets", json!([{"source": "tok", "target": "token"}])),
            2 => ("labels", json!({"com.example.image": "x"})),
            3 => ("cache_from", json!(["docker.io/library/cache:1"])),
            4 => ("additional_contexts", json!({"conf": "./conf"})),
            5 => ("extra_hosts", json!(["api:10.1.2.3"])),
            6 => ("ulimits", json!({"nofile": 1024})),
            7 => ("tags", json!(["mine:1"])),
            _ => ("args", json!(["A=1", "B=x,y"])),
        };
        build[key] = value;
    }
    build
}

fn volumes(rng: &mut Rng) -> Value {
    let mut list = Vec::new();
    for index in 0..=rng.below(2) {
        let target = format!("/m{index}");
        list.push(match rng.below(10) {
            8 => json!(format!("/etc/localtime:{target}:ro")),
            9 => json!({"type": "bind", "source": "/etc/timezone", "target": target, "read_only": true}),
            0 => json!(format!("./app:{target}")),
            1 => json!(format!("./conf/app.conf:{target}:ro")),
            2 => json!(format!("data:{target}")),
            3 => json!({"type": "bind", "source": "./app/data", "target": target, "read_only": true}),
            4 => json!({"type": "volume", "source": "cache", "target": target, "volume": {"nocopy": true}}),
            5 => json!({"type": "tmpfs", "target": target, "tmpfs": {"size": 1_048_576}}),
            6 => json!(target),
            _ => json!({"type": "bind", "source": "./app", "target": target, "bind": {"propagation": "rprivate"}}),
        });
    }
    Value::Array(list)
}
