//! Attacks on an honest file: delimiters that a tool reads as more options, repeats, other types, other
//! names, links. Nothing here knows what the renderer refuses.

use serde_json::{Map, Value, json};

use super::grammar::{self, Case, SERVICE};
use super::seed::Rng;
use super::world::OVERRIDE;

/// Delimiters of options in some tool, and look-alikes that separate in none.
const SEPARATORS: &[&str] =
    &[",", ",", ",", ":", ":", "=", "\n", " ", "\"", "\\", ";", "，", "：", "\u{a0}"];

/// Words that some tool reads as an option's name.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "source", "src", "target", "dst", "destination", "type", "path", "upperdir", "workdir", "bind-propagation", "o",
    "device", "ip", "mac", "alias", "id", "env", "name", "size", "mode", "label", "subnet", "ref", "dest",
    "io.podman.compose.project", "com.docker.stack.namespace", "sandboxer.id", "run.oci.handler",
    "io.podman.annotations.privileged", "volume-opt", "relabel", "idmap", "parent", "bridge", "mtu", "seccomp",
];

/// Words that stand for themselves.
#[rustfmt::skip]
const SWITCHES: &[&str] = &[
    "rw", "ro", "O", "rshared", "shared", "bind", "rbind", "exec", "dev", "suid", "z", "Z", "U", "host", "privileged",
    "ro=false", "readonly=false", "type=bind", "type=local", "type=tmpfs", "keep-groups", "unconfined",
];

/// Places and names that are not the sandbox's.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "OUT/", "OUT/secret", "/", "/etc/passwd", "/var/run/docker.sock", "..", "../..", "../../outside", "~/x", "out",
    "up", "app/climb", "etc/passwd", "sbx-victim", "sbx-victim_data", "sbx-victim_default", "sbx-victim_web_1",
    "container:sbx-victim_web_1", "service:web", "service:nobody", "host", "sbx-a1b2c3d4-built:web",
    "docker-archive:OUT/x.tar", "dir:OUT/x", "oci:OUT/x", "sbx-victim-built:web", "localhost/sbx-victim-built:web",
    "/dev/sda", "/proc/self/root", "169.254.169.254", "0.0.0.0/1", "198.51.100.0/24", "198.51.100.7", "10.0.0.0/8", "10.88.3.0/24", "192.168.1.7", "::/0",
    "2001:db8::/32", "co:lon", "com,ma", "e=q", "-dash", "--privileged", "-v", "$HOME", "${HOME}", "$$HOME", "", " ",
    "\0", "ALL", "all", "root", "0", "off", "no", "n", "false", "FALSE", "f", "git@github.com:x/y", "https://example.com/x.git", "file:///etc",
    "docker-image://alpine", "oci-layout://OUT/x", "container-image://sbx-victim-built:web", "type=local,src=OUT/",
    "type=local,dest=OUT/", "keep-id", "ns:/proc/1/ns/net", "slirp4netns:allow_host_loopback=true", "pasta:-T,22",
    "bridge:ip=10.88.0.2", "./app", "./tok.txt", "WS/app", "bad.labels.env", "macvlan", "ipvlan", "host-gateway",
    "routed", "nat-unprotected", "syslog", "fluentd", "nfs",
];

/// Keys that exist in some map, or in none, or that only a tool knows.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "path", "o", "device", "type", "src", "source", "target", "external", "name", "driver", "driver_opts",
    "propagation", "selinux", "create_host_path", "subpath", "recursive", "labels", "ipv4_address", "ipv6_address",
    "link_local_ips", "mac_address", "aliases", "interface_name", "gw_priority", "dockerfile", "dockerfile_inline",
    "ssh", "cache_to", "cache_from", "entitlements", "network", "privileged", "tags", "x-podman.mac_address",
    "x-podman.interface_name", "x-podman.rootfs", "x-podman.uidmaps", "x-podman.relabel", "x-podman.dns",
    "x-podman.routes", "x-podman", "init-path", "http_proxy", "publishall", "env_file", "environment", "content",
    "com.docker.network.bridge.name", "com.docker.network.bridge.gateway_mode_ipv4",
    "com.docker.network.endpoint.sysctls", "parent", "ipam", "options", "io.podman.compose.project",
    "com.docker.compose.project", "com.docker.stack.namespace", "sandboxer.owner", "io.containers.autoupdate",
    "PODMAN_SYSTEMD_UNIT", "run.oci.handler", "io.podman.annotations.seccomp", "SANDBOXER.ID", "Path",
    "kernel.core_pattern", "core_pattern", "host", "devices", "reservations", "<<", "extends",
];

/// Values of a key that ask for more than a sandbox gives.
fn wicked(rng: &mut Rng, key: &str) -> Value {
    let n = rng.below(12);
    let of = |values: &[Value]| values[n % values.len()].clone();
    match key {
        "annotations" => of(&[
            json!({"com.example.a": "x,run.oci.handler=krun"}),
            json!({"io.podman.annotations.privileged": "TRUE"}),
            json!(["com.example.a=x,io.podman.annotations.seccomp=unconfined"]),
        ]),
        "build" => of(&[
            json!({"context": "app", "dockerfile_inline": "FROM scratch", "dockerfile": "OUT/secret"}),
            json!({"context": "app", "cache_from": ["TYPE=local,src=OUT/"]}),
            json!({"context": "app", "secrets": [{"source": "key", "target": "t,src=OUT/secret"}]}),
            json!({"context": "app", "additional_contexts": ["a=OUT/", "b=oci-layout://OUT/x"], "network": "container:x"}),
        ]),
        "cap_add" => of(&[
            json!(["SYS_ADMIN"]),
            json!(["ALL"]),
            json!(["CHOWN,SYS_ADMIN"]),
            json!(["NET_RAW", "MKNOD", "CAP_CAP_SYS_ADMIN"]),
        ]),
        "cap_drop" => json!(["ALL --privileged"]),
        "devices" => {
            of(&[json!(["/dev/sda"]), json!([{"source": "/dev/kmsg", "target": "/dev/k"}])])
        }
        "device_cgroup_rules" => json!(["a *:* rwm"]),
        "deploy" => {
            json!({"resources": {"reservations": {"devices": [{"driver": "nvidia", "capabilities": ["gpu"]}]}}})
        }
        "external_links" | "volumes_from" => {
            of(&[json!(["sbx-victim_web_1"]), json!(["container:sbx-victim_web_1:rw"])])
        }
        "label_file" => of(&[json!("bad.labels.env"), json!(["OUT/secret"])]),
        "logging" => of(&[
            json!({"driver": "k8s-file", "options": {"max-size": "10m,path=OUT/log"}}),
            json!({"options": {"\"path": "OUT/log\""}}),
            json!({"driver": "syslog", "options": {"syslog-address": "udp://10.0.0.1:514"}}),
            json!({"driver": "json-file", "options": {"PATH": "OUT/log", "mode": "non-blocking,path=OUT/l"}}),
        ]),
        "networks" => of(&[
            json!({"back": {"ipv4_address": "198.51.100.7"}}),
            json!({"default": {"aliases": ["a,ip=169.254.169.254"], "mac_address": "02:42:ac:11:00:05,ip=1.1.1.1"}}),
            json!({"default": {"link_local_ips": ["169.254.169.254"]}}),
            json!({"default": {"x-podman.interface_name": "eth0,ip=1.1.1.1", "driver_opts": {"com.docker.network.endpoint.sysctls": "net.ipv4.conf.all.forwarding=1"}}}),
        ]),
        "network_mode" | "pid" | "ipc" | "uts" | "userns_mode" | "cgroup" => of(&[
            json!("host"),
            json!("container:sbx-victim_web_1"),
            json!("ns:/proc/1/ns/net"),
            json!("bridge:ip=10.88.0.9"),
        ]),
        "secrets" | "configs" => {
            let name = if key == "secrets" { "tok" } else { "conf" };
            of(&[
                json!([{"source": name, "target": "/x:O,upperdir=OUT/,workdir=OUT/w"}]),
                json!([{"source": name, "target": "a:rw"}]),
                json!([{"source": name, "target": "/etc/x,source=OUT/"}]),
            ])
        }
        "security_opt" => of(&[
            json!(["seccomp=unconfined"]),
            json!(["label=disable"]),
            json!(["no-new-privileges:false"]),
        ]),
        "sysctls" => {
            of(&[json!({"kernel.core_pattern": "|/x"}), json!(["net.a=1,kernel.core_pattern=x"])])
        }
        "tmpfs" => of(&[json!(["/x:bind,source=OUT/"]), json!(["/x,source=OUT/"])]),
        "ulimits" => of(&[json!("host"), json!({"nofile": "1:2,core=-1"}), json!({"host": 1})]),
        "volumes" => of(&[
            json!([".:/w:ro,rw", "./app:/s", "/etc/localtime:/t:ro,rw"]),
            json!([{"type": "volume", "source": "data", "target": "/x:O,upperdir=OUT/,workdir=OUT/w"}]),
            json!([{"type": "volume", "source": "data", "target": "/x,source=sbx-victim_data"}]),
            json!(["/etc/localtime:/t", "/etc/timezone:/z:ro,Z"]),
            json!([{"type": "bind", "source": "/etc/localtime", "target": "/t", "read_only": "true"}]),
            json!([{"type": "bind", "source": "./app", "target": "/x", "bind": {"selinux": "z,rshared", "propagation": "rslave"}}]),
        ]),
        "cgroup_parent" => json!("/system.slice"),
        "credential_spec" => json!({"file": "OUT/secret"}),
        "environment" => {
            of(&[json!(["HOME", "PATH*", "A"]), json!({"HOME": null, "*": null, "LD_*": null})])
        }
        "extra_hosts" => of(&[json!(["a:10.0.0.1,b:10.0.0.2"]), json!({"a": "host-gateway"})]),
        "gpus" => json!("all"),
        "image" => json!(rng.pick(OTHERS)),
        "models" => json!(["m"]),
        "oom_score_adj" => json!(-500),
        "provider" => json!({"type": "compose-x", "options": {"a": "b"}}),
        "runtime" => json!("kata"),
        "group_add" => json!(["keep-groups"]),
        "storage_opt" => json!({"size": "1G", "overlay.mountopt": "x"}),
        "post_start" | "pre_stop" => {
            json!([{"command": ["x"], "privileged": "yes", "user": "root"}])
        }
        _ => json!(true),
    }
}

fn wicked_volume(rng: &mut Rng) -> Value {
    match rng.below(5) {
        0 => json!({"driver_opts": {"type": "tmpfs", "device": "OUT/", "o=bind,x-a": "1"}}),
        1 => json!({"driver_opts": {"type": "none", "o": "bind", "device": "OUT/"}}),
        2 => {
            json!({"driver_opts": {"type": "overlay", "device": "overlay", "o": "lowerdir=/,upperdir=OUT/,workdir=OUT/"}})
        }
        3 => json!({"driver_opts": {"type": "tmpfs", "o": "size=1m", "device=OUT/,o": "bind"}}),
        _ => json!({"external": true, "name": "sbx-victim_data"}),
    }
}

fn wicked_network(rng: &mut Rng) -> Value {
    match rng.below(7) {
        5 => json!({"ipam": {"config": [{"subnet": "10.88.0.0/24", "ip_range": "10.88.0.0/25"}]}}),
        0 => json!({"ipam": {"config": [{"subnet": "198.51.100.0/24"}]}}),
        1 => json!({"ipam": {"config": [{"subnet": "0.0.0.0/1"}]}}),
        2 => json!({"driver_opts": {"com.docker.network.bridge.gateway_mode_ipv4": "routed"}}),
        3 => {
            json!({"ipam": {"driver": "host-local", "config": [{"subnet": "172.30.8.0/24", "gateway": "198.51.100.1", "aux_addresses": {"a": "198.51.100.9"}}]}})
        }
        4 => {
            json!({"driver_opts": {"com.docker.network.driver.mtu": "1400,parent=eth0"}, "driver": "bridge"})
        }
        _ => json!({"external": true, "name": "sbx-victim_default"}),
    }
}

/// Makes a file hostile at one place, or at two: more, and one of them is refused.
pub(crate) fn spoil(case: &mut Case, rng: &mut Rng) {
    for _ in 0..=rng.below(4) / 3 {
        if !case.project["services"]["web"].is_object() {
            return;
        }
        match rng.below(10) {
            0 | 1 => {
                let key = rng.pick(SERVICE);
                let wicked = wicked(rng, key);
                case.project["services"]["web"][key] = wicked;
            }
            2 => {
                // Something to spoil at a place that is rarely there.
                let key = rng.pick(SERVICE);
                case.project["services"]["web"][key] = grammar::value(rng, key);
                twist(&mut case.project["services"]["web"][key], rng);
            }
            3 => {
                let (section, name) =
                    (rng.pick(&["networks", "volumes"]), rng.pick(&["default", "data"]));
                let wicked =
                    if section == "networks" { wicked_network(rng) } else { wicked_volume(rng) };
                case.project[section][name] = wicked;
            }
            4 => twist(&mut case.project["volumes"]["data"], rng),
            5 => twist(&mut case.project["networks"]["default"], rng),
            6 => twist(&mut case.project["secrets"], rng),
            _ => twist(&mut case.project["services"]["web"], rng),
        }
    }
    match rng.below(14) {
        0 => behind_a_variable(case, rng),
        1 => behind_an_extends(case),
        2 => behind_an_override(case, rng),
        3 => behind_an_include(case, rng),
        _ => {}
    }
}

/// Changes something somewhere beneath.
fn twist(value: &mut Value, rng: &mut Rng) {
    match value {
        Value::Object(map) if !map.is_empty() && !rng.once_in(6) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = keys[rng.below(keys.len())].clone();
            match rng.below(8) {
                0 => rename(map, &key, rng),
                1 => {
                    let name = rng.pick(KEYS).to_owned();
                    let other = leaf(rng);
                    map.insert(name, other);
                }
                _ => twist(map.get_mut(&key).unwrap(), rng),
            }
        }
        Value::Array(items) if !items.is_empty() && !rng.once_in(6) => {
            let index = rng.below(items.len());
            if rng.once_in(5) {
                let mut again = items[index].clone();
                twist(&mut again, rng);
                items.push(again);
            } else {
                twist(&mut items[index], rng);
            }
        }
        Value::Object(map) if rng.once_in(2) => {
            // The other form: a list of `k=v`.
            let pairs =
                map.iter().map(|(key, value)| json!(format!("{key}={}", plain(value)))).collect();
            *value = Value::Array(pairs);
        }
        Value::Object(map) => {
            let name = rng.pick(KEYS).to_owned();
            let other = leaf(rng);
            map.insert(name, other);
        }
        Value::Array(items) if rng.once_in(2) => {
            *value = Value::Object(items.iter().map(|item| (plain(item), leaf(rng))).collect());
        }
        _ => *value = scalar(value, rng),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rename(map: &mut Map<String, Value>, key: &str, rng: &mut Rng) {
    let value = map.shift_remove(key).unwrap();
    let name = match rng.below(4) {
        0 => key.to_uppercase(),
        1 => rng.pick(KEYS).to_owned(),
        2 => format!("{key}{}", fragment(rng)),
        _ => format!("{}{}{key}", rng.pick(NAMES), rng.pick(SEPARATORS)),
    };
    map.insert(name.replace(['\n', '\0'], ""), value);
}

fn scalar(value: &Value, rng: &mut Rng) -> Value {
    let text = plain(value);
    match rng.below(12) {
        0..=4 => {
            let mut longer = text;
            for _ in 0..=rng.below(3) {
                longer.push_str(&fragment(rng));
            }
            json!(longer)
        }
        5 => json!(format!("{}{}{text}", rng.pick(NAMES), rng.pick(SEPARATORS))),
        6 | 7 => json!(rng.pick(OTHERS)),
        8 => json!(text.to_uppercase()),
        9 => json!(format!("{text}{}{}", rng.pick(&["/", "/../", "/./", ""]), rng.pick(OTHERS))),
        10 => json!([text, rng.pick(OTHERS)]),
        _ => leaf(rng),
    }
}

/// A separator and what a tool may read behind it.
fn fragment(rng: &mut Rng) -> String {
    let separator = rng.pick(SEPARATORS);
    match rng.below(3) {
        0 => format!("{separator}{}", rng.pick(SWITCHES)),
        1 => format!("{separator}{}", rng.pick(OTHERS)),
        _ => format!("{separator}{}={}", rng.pick(NAMES), rng.pick(OTHERS)),
    }
}

fn leaf(rng: &mut Rng) -> Value {
    match rng.below(9) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(1.5),
        5 => json!({rng.pick(NAMES): rng.pick(OTHERS)}),
        6 => json!([rng.pick(OTHERS)]),
        _ => json!(rng.pick(OTHERS)),
    }
}

/// The same text, but from `.env`.
fn behind_a_variable(case: &mut Case, rng: &mut Rng) {
    let mut texts = Vec::new();
    collect(&mut case.project["services"]["web"], &mut texts);
    if texts.is_empty() {
        return;
    }
    let index = rng.below(texts.len());
    let text = texts.swap_remove(index);
    if !text.contains(['\'', '\\', '\0', '$']) {
        case.beside.insert(".env".to_owned(), format!("V='{text}'\n"));
        "${V}".clone_into(text);
    }
}

fn collect<'v>(value: &'v mut Value, into: &mut Vec<&'v mut String>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| collect(item, into)),
        Value::Object(map) => map.values_mut().for_each(|item| collect(item, into)),
        _ => {}
    }
}

/// The same service, but from another file.
fn behind_an_extends(case: &mut Case) {
    let web = case.project["services"]["web"].take();
    case.beside.insert("base.yml".to_owned(), json!({"services": {"base": web}}).to_string());
    case.project["services"]["web"] = json!({"extends": {"file": "base.yml", "service": "base"}});
}

/// The same service, but in two files: what is in the upper one is laid over the lower one or replaces it.
fn behind_an_override(case: &mut Case, rng: &mut Rng) {
    let tagged = parted(case, rng);
    case.beside.insert(OVERRIDE.to_owned(), format!("{{\"services\": {{\"web\": {tagged}}}}}"));
}

/// The same service, but half of it is included.
fn behind_an_include(case: &mut Case, rng: &mut Rng) {
    let tagged = parted(case, rng);
    let lower = case.project["services"]["web"].take();
    case.beside.insert("part.yml".to_owned(), json!({"services": {"web": lower}}).to_string());
    case.beside.insert(
        OVERRIDE.to_owned(),
        format!("{{\"include\": [\"part.yml\"], \"services\": {{\"web\": {tagged}}}}}"),
    );
}

/// Takes some of the service away and gives it back as text, some of it with tags.
fn parted(case: &mut Case, rng: &mut Rng) -> String {
    let mut upper = Vec::new();
    if let Some(web) = case.project["services"]["web"].as_object_mut() {
        let keys: Vec<String> = web.keys().cloned().collect();
        for key in keys {
            if rng.once_in(2) {
                continue;
            }
            let value = web.shift_remove(&key).unwrap();
            if SERVICE.contains(&key.as_str()) && rng.once_in(2) {
                web.insert(key.clone(), grammar::value(rng, &key));
            }
            let tag = rng.pick(&["", "", "!override ", "!reset "]);
            upper.push(format!("{}: {tag}{value}", json!(key)));
        }
    }
    format!("{{{}}}", upper.join(", "))
}
