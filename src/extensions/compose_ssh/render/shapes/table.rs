//! Every key that is rendered, and what it may hold.

use super::shape::Shape::{
    self, Any, Context, Keys, Line, List, LogOptions, Long, Mount, Names, OneOf, Open, Source,
    Switch, Text, Texts, Word,
};
use super::{mounts, words};

pub(super) const NAME: Shape = Word(words::is_name, "a name of letters, digits, `.`, `_` and `-`");
const HOST: Shape = Word(words::is_host, "a name of letters, digits, `.`, `_` and `-`");
const KEY: Shape = Word(words::is_key, "a name without `=`, `$`, quotes and line breaks");
const OPTION: Shape =
    Word(words::is_option_key, "the name of an option: letters, digits, `.`, `_` and `-`");
pub(super) const VALUE: Shape =
    Word(words::is_csv_value, "one value without `,`, quotes and line breaks");
const NUMBER: Shape = Word(words::is_number, "a number");
const INTEGER: Shape = Word(words::is_integer, "a whole number");
const SIZE: Shape = Word(words::is_size, "a size such as `64m`");
const DURATION: Shape = Word(words::is_duration, "a duration such as `1m30s`");
const TARGET: Shape =
    Word(words::is_target, "an absolute path in the container, without `,`, `:`, `=` and quotes");
const BELOW: Shape =
    Word(words::is_below, "a path below it, without `..`, `,`, `:`, `=` and quotes");
const FILE_TARGET: Shape = Word(
    words::is_file_target,
    "a name below /run/secrets or an absolute path in the container, without `,`, `:`, `=` and quotes",
);
pub(super) const IMAGE: Shape = Word(words::is_image, "`name:tag`");
const IP: Shape = Word(words::is_ip, "an IP address");
const MAC: Shape = Word(words::is_mac, "six pairs of hex digits with `:` between them");
const NAME_LIST: Shape = Word(words::is_name_list, "names with `,` between them");
/// Drivers of logs want it as text.
const WRITTEN_SWITCH: Shape = OneOf(&["true", "false"]);
const USER: Shape = Word(words::is_user, "`user` or `user:group`");
const SYSCTL: Shape = Word(
    words::is_sysctl,
    "`name=value` of a setting that each container has of its own: net.*, fs.mqueue.*, kernel.sem, kernel.msg*, kernel.shm*",
);
const PLATFORM: Shape = Word(words::is_platform, "a platform such as `linux/amd64`");
const EXTRA_HOST: Shape =
    Word(words::is_extra_host, "`name:address` with an IP address or `host-gateway`");

/// Labels, variables and build arguments: `KEY=VALUE` in one argument, taken apart at the first `=`.
const ASSIGNMENTS: Shape = Open(&KEY, &Text);

pub(super) const PROJECT: Shape = Keys(&[
    ("services", Open(&NAME, &Keys(SERVICE))),
    ("networks", Open(&NAME, &Keys(NETWORK))),
    ("volumes", Open(&NAME, &Keys(VOLUME))),
    ("secrets", Open(&NAME, &Keys(FILE))),
    ("configs", Open(&NAME, &Keys(FILE))),
    ("models", Any),
]);

const ULIMITS: Shape = Open(
    &Word(words::is_ulimit, "the name of a limit, such as `nofile` or `memlock`"),
    &Long(&INTEGER, &[("soft", INTEGER), ("hard", INTEGER)]),
);

const HOOK: &[(&str, Shape)] = &[
    ("command", Texts),
    ("user", USER),
    ("privileged", Switch),
    ("working_dir", Line),
    ("environment", ASSIGNMENTS),
];

const FILE_REFERENCE: Shape = Long(
    &NAME,
    &[
        ("source", NAME),
        ("target", FILE_TARGET),
        ("uid", INTEGER),
        ("gid", INTEGER),
        ("mode", INTEGER),
    ],
);

pub(super) const SERVICE: &[(&str, Shape)] = &[
    ("annotations", Open(&OPTION, &VALUE)),
    ("attach", Switch),
    ("blkio_config", Keys(BLKIO)),
    ("build", Keys(BUILD)),
    ("cap_add", List(&CAPABILITY)),
    ("cap_drop", List(&CAPABILITY)),
    ("cgroup", Line),
    ("cgroup_parent", Line),
    ("command", Texts),
    ("configs", List(&FILE_REFERENCE)),
    ("cpu_count", NUMBER),
    ("cpu_percent", NUMBER),
    ("cpu_period", DURATION),
    ("cpu_quota", DURATION),
    ("cpu_rt_period", DURATION),
    ("cpu_rt_runtime", DURATION),
    ("cpu_shares", NUMBER),
    ("cpus", NUMBER),
    ("cpuset", Word(words::is_cpus, "CPUs such as `0-3` or `0,1`")),
    ("credential_spec", Any),
    ("depends_on", Names(&NAME, &Keys(DEPENDENCY))),
    ("deploy", Keys(DEPLOY)),
    ("device_cgroup_rules", List(&Word(words::is_device_rule, "a rule such as `c 1:3 mr`"))),
    (
        "devices",
        List(&Long(&DEVICE, &[("source", DEVICE), ("target", DEVICE), ("permissions", NAME)])),
    ),
    ("dns", List(&Word(words::is_resolver, "an IP address"))),
    ("dns_opt", List(&Word(words::is_resolver_option, "a resolver's option such as `ndots:1`"))),
    ("dns_search", List(&Word(words::is_search, "a domain"))),
    ("domainname", HOST),
    ("entrypoint", Texts),
    (
        "env_file",
        List(&Long(
            &Source,
            &[("path", Source), ("required", Switch), ("format", OneOf(&["raw"]))],
        )),
    ),
    ("environment", ASSIGNMENTS),
    ("expose", List(&Word(words::is_exposed, "a port such as `80` or `53/udp`"))),
    ("external_links", List(&LINK)),
    ("extra_hosts", Names(&EXTRA_HOST, &ADDRESS)),
    ("gpus", Any),
    ("group_add", List(&Word(words::is_group, "a group's name or number"))),
    ("healthcheck", Keys(HEALTHCHECK)),
    ("hostname", HOST),
    ("image", IMAGE),
    ("init", Switch),
    ("ipc", Line),
    ("isolation", NAME),
    ("labels", ASSIGNMENTS),
    ("links", List(&LINK)),
    (
        "logging",
        Keys(&[
            ("driver", Word(words::is_image, "a log driver such as `json-file`")),
            ("options", LogOptions),
        ]),
    ),
    ("mac_address", MAC),
    ("mem_limit", SIZE),
    ("mem_reservation", SIZE),
    ("mem_swappiness", INTEGER),
    ("memswap_limit", SIZE),
    ("models", Any),
    ("network_mode", Line),
    ("networks", Names(&NAME, &Keys(ATTACHMENT))),
    ("oom_kill_disable", Switch),
    ("oom_score_adj", INTEGER),
    ("pid", Line),
    ("pids_limit", INTEGER),
    ("platform", PLATFORM),
    ("ports", List(&Word(words::is_port, "`8080:80`"))),
    ("post_start", List(&Keys(HOOK))),
    ("pre_stop", List(&Keys(HOOK))),
    ("privileged", Switch),
    ("provider", Any),
    ("pull_policy", Word(words::is_pull_policy, "`always`, `never`, `missing` or `build`")),
    ("pull_refresh_after", DURATION),
    ("read_only", Switch),
    (
        "restart",
        Word(words::is_restart, "`no`, `always`, `unless-stopped`, `on-failure` or `on-failure:3`"),
    ),
    ("runtime", Line),
    ("scale", INTEGER),
    ("secrets", List(&FILE_REFERENCE)),
    ("security_opt", List(&Line)),
    ("shm_size", SIZE),
    ("stdin_open", Switch),
    ("stop_grace_period", DURATION),
    ("stop_signal", Word(words::is_signal, "a signal such as `SIGTERM`")),
    ("storage_opt", Keys(&[("size", SIZE)])),
    ("sysctls", List(&SYSCTL)),
    (
        "tmpfs",
        List(&Word(
            mounts::is_tmpfs,
            "`/path` or `/path:size=64m,mode=1777`, and no other options than those of memory",
        )),
    ),
    ("tty", Switch),
    ("ulimits", ULIMITS),
    ("use_api_socket", Switch),
    ("user", USER),
    ("userns_mode", Line),
    ("uts", Line),
    ("volumes", List(&Mount)),
    ("volumes_from", List(&Line)),
    ("working_dir", Line),
];

const CAPABILITY: Shape = Word(words::is_capability, "a capability such as `NET_RAW`");
const DEVICE: Shape = Word(words::is_device, "a device such as `/dev/fuse`");
const ADDRESS: Shape = Word(words::is_address, "an IP address or `host-gateway`");
const LINK: Shape = Word(words::is_link, "`service` or `service:alias`");

const DEPENDENCY: &[(&str, Shape)] = &[
    ("condition", OneOf(&["service_started", "service_healthy", "service_completed_successfully"])),
    ("required", Switch),
    ("restart", Switch),
];

const HEALTHCHECK: &[(&str, Shape)] = &[
    ("test", Texts),
    ("interval", DURATION),
    ("timeout", DURATION),
    ("start_period", DURATION),
    ("start_interval", DURATION),
    ("retries", INTEGER),
    ("disable", Switch),
];

const RATES: Shape = List(&Keys(&[("path", TARGET), ("rate", SIZE)]));

const BLKIO: &[(&str, Shape)] = &[
    ("weight", INTEGER),
    ("weight_device", List(&Keys(&[("path", TARGET), ("weight", INTEGER)]))),
    ("device_read_bps", RATES),
    ("device_read_iops", RATES),
    ("device_write_bps", RATES),
    ("device_write_iops", RATES),
];

const RESERVED_DEVICE: &[(&str, Shape)] = &[
    ("capabilities", List(&NAME)),
    ("count", NAME),
    ("device_ids", List(&DEVICE)),
    ("driver", NAME),
    ("options", Open(&OPTION, &VALUE)),
];

const DEPLOY: &[(&str, Shape)] = &[
    ("endpoint_mode", Any),
    ("labels", ASSIGNMENTS),
    ("mode", NAME),
    ("placement", Any),
    ("replicas", INTEGER),
    (
        "resources",
        Keys(&[
            ("limits", Keys(&[("cpus", NUMBER), ("memory", SIZE), ("pids", INTEGER)])),
            (
                "reservations",
                Keys(&[
                    ("cpus", NUMBER),
                    ("memory", SIZE),
                    ("devices", List(&Keys(RESERVED_DEVICE))),
                    ("generic_resources", Any),
                ]),
            ),
        ]),
    ),
    (
        "restart_policy",
        Keys(&[
            ("condition", NAME),
            ("delay", DURATION),
            ("max_attempts", INTEGER),
            ("window", DURATION),
        ]),
    ),
    ("rollback_config", Any),
    ("update_config", Any),
];

/// A service on a network.
const ATTACHMENT: &[(&str, Shape)] = &[
    ("aliases", List(&NAME)),
    (
        "driver_opts",
        Keys(&[
            (
                "com.docker.network.endpoint.sysctls",
                Word(words::is_interface_sysctls, "`net.….IFNAME.…=value`"),
            ),
            ("com.docker.network.endpoint.ifname", INTERFACE),
        ]),
    ),
    ("gw_priority", INTEGER),
    ("interface_name", INTERFACE),
    ("ipv4_address", Word(words::is_ipv4, "an IPv4 address")),
    ("ipv6_address", Word(words::is_ipv6, "an IPv6 address")),
    ("link_local_ips", List(&IP)),
    ("mac_address", MAC),
    ("priority", INTEGER),
];

const INTERFACE: Shape = Word(words::is_interface, "an interface's name of at most 15 characters");

/// A mount in the long syntax.
pub(super) const MOUNT: &[(&str, Shape)] = &[
    ("type", OneOf(&["bind", "volume", "tmpfs", "image", "cluster"])),
    ("source", Any),
    ("target", TARGET),
    ("read_only", Switch),
    ("consistency", OneOf(&["", "cached", "delegated", "consistent", "default"])),
    (
        "bind",
        Keys(&[
            (
                "propagation",
                OneOf(&["", "private", "rprivate", "slave", "rslave", "shared", "rshared"]),
            ),
            ("create_host_path", Switch),
            ("recursive", OneOf(&["enabled", "disabled", "writable", "readonly"])),
            ("selinux", OneOf(&["", "z", "Z"])),
        ]),
    ),
    ("volume", Keys(&[("labels", ASSIGNMENTS), ("nocopy", Switch), ("subpath", BELOW)])),
    ("tmpfs", Keys(&[("size", SIZE), ("mode", INTEGER)])),
    ("image", Keys(&[("subpath", BELOW)])),
];

pub(super) const BUILD: &[(&str, Shape)] = &[
    ("additional_contexts", Open(&NAME, &Context)),
    ("args", ASSIGNMENTS),
    (
        "cache_from",
        List(&Word(
            words::is_cache_source,
            "an image's `name:tag`, or `type=registry,ref=name:tag`",
        )),
    ),
    ("cache_to", List(&Line)),
    ("context", Context),
    ("dockerfile", Source),
    ("dockerfile_inline", Text),
    ("entitlements", List(&NAME)),
    ("extra_hosts", Names(&EXTRA_HOST, &ADDRESS)),
    ("isolation", NAME),
    ("labels", ASSIGNMENTS),
    ("network", NAME),
    ("no_cache", Switch),
    ("no_cache_filter", List(&NAME)),
    ("platforms", List(&PLATFORM)),
    ("privileged", Switch),
    ("provenance", Word(words::is_attestation, "`true`, `false`, `mode=min` or `mode=max`")),
    ("pull", Switch),
    ("sbom", Word(words::is_attestation, "`true`, `false` or `generator=name:tag`")),
    (
        "secrets",
        List(&Long(
            &NAME,
            &[
                ("source", NAME),
                ("target", NAME),
                ("uid", INTEGER),
                ("gid", INTEGER),
                ("mode", INTEGER),
            ],
        )),
    ),
    ("shm_size", SIZE),
    ("ssh", Any),
    ("target", Word(words::is_host, "the name of a stage")),
    ("ulimits", ULIMITS),
];

pub(super) const NETWORK: &[(&str, Shape)] = &[
    ("attachable", Switch),
    ("driver", HOST),
    ("driver_opts", Open(&OPTION, &VALUE)),
    ("enable_ipv4", Switch),
    ("enable_ipv6", Switch),
    ("external", Switch),
    ("internal", Switch),
    (
        "ipam",
        Keys(&[
            ("driver", HOST),
            (
                "config",
                List(&Keys(&[
                    ("subnet", SUBNET),
                    ("ip_range", SUBNET),
                    ("gateway", IP),
                    ("aux_addresses", Open(&NAME, &IP)),
                ])),
            ),
            ("options", Open(&OPTION, &VALUE)),
        ]),
    ),
    ("labels", ASSIGNMENTS),
    ("name", NAME),
];

const SUBNET: Shape = Word(words::is_subnet, "a network such as `172.28.0.0/16`");

pub(super) const VOLUME: &[(&str, Shape)] = &[
    ("driver", Word(words::is_image, "the name of a driver")),
    ("driver_opts", Open(&OPTION, &Line)),
    ("external", Switch),
    ("labels", ASSIGNMENTS),
    ("name", NAME),
];

/// A secret or config. Driver, environment and template are there when the profile permits them.
pub(super) const FILE: &[(&str, Shape)] = &[
    ("content", Text),
    ("driver", HOST),
    ("driver_opts", Open(&OPTION, &VALUE)),
    ("environment", NAME),
    ("external", Switch),
    ("file", Source),
    ("name", NAME),
    ("template_driver", HOST),
];

pub(super) const LOG_OPTIONS: &[(&str, Shape)] = &[
    ("cache-compress", WRITTEN_SWITCH),
    ("cache-disabled", WRITTEN_SWITCH),
    ("cache-max-file", INTEGER),
    ("cache-max-size", SIZE),
    ("compress", WRITTEN_SWITCH),
    ("env", NAME_LIST),
    ("env-regex", VALUE),
    ("keep-file", WRITTEN_SWITCH),
    ("labels", NAME_LIST),
    ("labels-regex", VALUE),
    ("max-buffer-size", SIZE),
    ("max-file", INTEGER),
    ("max-size", SIZE),
    ("mode", OneOf(&["blocking", "non-blocking"])),
    ("no-file", WRITTEN_SWITCH),
    ("path", Source),
    ("tag", VALUE),
];

/// How options of drivers begin that send logs elsewhere, which the profile has to permit.
pub(super) const LOG_PREFIXES: &[&str] =
    &["awslogs-", "fluentd-", "gcp-", "gelf-", "loki-", "splunk-", "syslog-"];
