//! Wishes that a compose file does not get, and the word that permits it.

use super::*;

#[allow(clippy::too_many_lines, reason = "one table")]
#[test]
fn what_leaves_the_sandbox_is_refused_with_the_item_that_permits_it() {
    let cases = [
        ("privileged: true", "services.web.privileged", "privileged"),
        ("privileged: 'yes'", "services.web.privileged", "privileged"),
        ("privileged: ${P:-true}", "services.web.privileged", "privileged"),
        ("cap_add: [NET_ADMIN]", "services.web.cap_add", "privileged"),
        ("security_opt: ['seccomp:unconfined']", "services.web.security_opt[0]", "privileged"),
        ("security_opt: seccomp=unconfined", "services.web.security_opt[0]", "privileged"),
        ("devices: ['/dev/kvm:/dev/kvm']", "services.web.devices", "devices"),
        ("device_cgroup_rules: ['c 1:3 mr']", "services.web.device_cgroup_rules", "devices"),
        ("gpus: all", "services.web.gpus", "devices"),
        (
            "deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}",
            "services.web.deploy.resources.reservations.devices",
            "devices",
        ),
        ("network_mode: host", "services.web.network_mode", "host-network"),
        ("network_mode: container:other", "services.web.network_mode", "external"),
        ("network_mode: ns:/proc/1/ns/net", "services.web.network_mode", "external"),
        ("network_mode: someones", "services.web.network_mode", "external"),
        ("pid: host", "services.web.pid", "privileged"),
        ("pid: container:other", "services.web.pid", "external"),
        ("pid: ns:/proc/1/ns/pid", "services.web.pid", "privileged"),
        ("ipc: host", "services.web.ipc", "privileged"),
        ("uts: host", "services.web.uts", "privileged"),
        ("userns_mode: host", "services.web.userns_mode", "privileged"),
        ("userns_mode: keep-id", "services.web.userns_mode", "privileged"),
        ("cgroup: host", "services.web.cgroup", "privileged"),
        ("cgroup_parent: /system.slice", "services.web.cgroup_parent", "privileged"),
        ("runtime: runc", "services.web.runtime", "privileged"),
        ("group_add: [keep-groups]", "services.web.group_add", "privileged"),
        ("oom_kill_disable: true", "services.web.oom_kill_disable", "privileged"),
        ("oom_score_adj: -500", "services.web.oom_score_adj", "privileged"),
        (
            "annotations: {run.oci.keep_original_groups: '1'}",
            "services.web.annotations.run.oci.keep_original_groups",
            "privileged",
        ),
        ("use_api_socket: true", "services.web.use_api_socket", "privileged"),
        ("volumes_from: [other]", "services.web.volumes_from", "external"),
        ("external_links: [other]", "services.web.external_links", "external"),
        ("credential_spec: {file: x}", "services.web.credential_spec", "external"),
        ("provider: {type: awesome}", "services.web.provider", "external"),
        ("models: [llm]", "services.web.models", "external"),
        ("logging: {driver: syslog}", "services.web.logging.driver", "external"),
        ("logging: {options: {path: /etc/x}}", "services.web.logging.options.path", "bind-mounts"),
        (
            "post_start: [{command: x, privileged: true}]",
            "services.web.post_start[0].privileged",
            "privileged",
        ),
        ("volumes: ['/etc:/etc:ro']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['../up:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./a/../../up:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['~/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['~root/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./out:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./out/deeper:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./abs:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['$HOME/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        (
            "volumes: [{type: bind, source: /etc, target: /x}]",
            "services.web.volumes[0].source",
            "bind-mounts",
        ),
        (
            "volumes: [{type: bind, source: out, target: /x}]",
            "services.web.volumes[0].source",
            "bind-mounts",
        ),
        ("volumes: ['./docker.sock:/x']", "services.web.volumes[0]", "privileged"),
        ("volumes: ['./ok:/x:rshared']", "services.web.volumes[0]", "privileged"),
        ("env_file: ../x.env", "services.web.env_file", "bind-mounts"),
        ("env_file: [out]", "services.web.env_file", "bind-mounts"),
        ("build: ..", "services.web.build.context", "bind-mounts"),
        ("build: ./out", "services.web.build.context", "bind-mounts"),
        ("build: https://example.org/x.git", "services.web.build.context", "external"),
        ("build: git@example.org:x.git", "services.web.build.context", "external"),
        (
            "build: {context: ., dockerfile: ../Dockerfile}",
            "services.web.build.dockerfile",
            "bind-mounts",
        ),
        (
            "build: {context: ., dockerfile: /etc/Dockerfile}",
            "services.web.build.dockerfile",
            "bind-mounts",
        ),
        (
            "build: {context: ., additional_contexts: {x: ../y}}",
            "services.web.build.additional_contexts.x",
            "bind-mounts",
        ),
        (
            "build: {context: ., additional_contexts: ['x=https://y/z.git']}",
            "services.web.build.additional_contexts.x",
            "external",
        ),
        ("build: {context: ., network: host}", "services.web.build.network", "host-network"),
        ("build: {context: ., privileged: true}", "services.web.build.privileged", "privileged"),
        (
            "build: {context: ., entitlements: [security.insecure]}",
            "services.web.build.entitlements",
            "privileged",
        ),
        ("build: {context: ., ssh: [default]}", "services.web.build.ssh", "external"),
        (
            "build: {context: ., cache_to: ['type=local,dest=/x']}",
            "services.web.build.cache_to",
            "external",
        ),
        (
            "build: {context: ., cache_from: ['type=local,src=/x']}",
            "services.web.build.cache_from",
            "bind-mounts",
        ),
    ];
    for (body, path, allow) in cases {
        let case = Case::web(body)
            .link("out", "../../etc")
            .link("abs", "/x/sbx-a1b2c3d4/workspace/ok")
            .file("ok/f", "");
        let refusals = case.refusals();
        assert_eq!(refusals.len(), 1, "{body}: {refusals:?}");
        assert_eq!((refusals[0].path.as_str(), word(&refusals[0])), (path, Some(allow)), "{body}");
        assert!(refusals[0].place.is_some(), "{body}");
        let item = refusals[0].allow.clone().unwrap();
        assert!(case.allow(&[item]).try_render().is_ok(), "{body} is permitted");
    }
}

#[test]
fn the_engine_needs_two_permissions() {
    for source in [
        "/var/run/docker.sock",
        "/run",
        "/",
        "/run/user/1000/podman/podman.sock",
        "/home/me/.docker/run/docker.sock",
    ] {
        let body = format!("volumes: ['{source}:/s']");
        let items: BTreeSet<_> = Case::web(&body)
            .refusals()
            .iter()
            .filter_map(|refusal| refusal.allow.clone())
            .collect();
        assert_eq!(items, [Allowance::Privileged, Allowance::BindMounts].into(), "{source}");
        assert_eq!(Case::web(&body).allow(&[Allowance::BindMounts]).refusals().len(), 1);
        assert!(
            Case::web(&body)
                .allow(&[Allowance::BindMounts, Allowance::Privileged])
                .try_render()
                .is_ok()
        );
    }
}

#[test]
fn what_stays_in_the_sandbox_is_rendered() {
    for body in [
        "privileged: false",
        "privileged: '${P:-false}'",
        "cap_drop: [ALL]",
        "cap_add: []",
        "security_opt: ['no-new-privileges:true']",
        "network_mode: none",
        "ipc: shareable",
        "userns_mode: ''",
        "tmpfs: /tmp",
        "dns: 1.1.1.1",
        "extra_hosts: {a: 1.2.3.4}",
        "pull_policy: missing",
        "sysctls: {net.core.somaxconn: 1024}",
        "ulimits: {nofile: {soft: 1, hard: 2}}",
        "init: true",
        "group_add: [1000]",
        "logging: {driver: json-file}",
        "volumes: ['/data']",
        "volumes: ['/data:ro']",
        "volumes: ['./new:/x']",
        "volumes: ['.:/x:ro,z']",
        "volumes: [{type: tmpfs, target: /t, tmpfs: {size: 100}}]",
        "volumes: ['in/../ok:/x']",
        "build: .",
        "build: {context: ok, dockerfile: ../Dockerfile, additional_contexts: {b: 'docker-image://x'}}",
        "x-mine: 1",
        "healthcheck: {test: [CMD, 'true']}",
        "expose: [80]",
        "restart: no",
        "shm_size: 64m",
        "deploy: {resources: {limits: {cpus: '1'}}}",
        "blkio_config: null",
    ] {
        let body = body.replace("'in/", "'./in/");
        Case::web(&body).file("ok/f", "").file("Dockerfile", "").link("in", "ok").render();
    }
    for body in
        ["pid: service:db", "ipc: service:db", "network_mode: service:db", "links: ['db:other']"]
    {
        let mut case = Case::web(body);
        case.files[0].1.push_str("  db: {image: db}\n");
        case.render();
    }
}

#[test]
fn all_refusals_come_at_once_with_places_and_words() {
    let error = Case::new("services:\n  web:\n    image: a\n    privileged: true\n    prots: []\n  db:\n    image: b\n    pid: host\nnetwroks: {}\n").try_render().unwrap_err();
    let text = error.to_string();
    for want in [
        "services.web.privileged: a privileged container is root on the host; remove it; `compose.allow: [privileged]` in the profile permits it (docker-compose.yml line 4 column 5)",
        "unknown key `prots`, did you mean `ports`? (docker-compose.yml line 5 column 5)",
        "services.db.pid",
        "did you mean `networks`?",
    ] {
        assert!(text.contains(want), "{text}");
    }
}

#[test]
fn external_and_foreign_resources_need_permission() {
    let cases = [
        ("networks: {n: {external: true}}", "networks.n.external", "external"),
        ("networks: {n: {external: {name: x}}}", "networks.n.external", "external"),
        ("networks: {n: {driver: macvlan}}", "networks.n.driver", "host-network"),
        (
            "networks: {n: {driver_opts: {com.docker.network.bridge.name: docker0}}}",
            "networks.n.driver_opts.com.docker.network.bridge.name",
            "host-network",
        ),
        ("volumes: {v: {external: true}}", "volumes.v.external", "external"),
        ("volumes: {v: {driver: rexray}}", "volumes.v.driver", "external"),
        (
            "volumes: {v: {driver_opts: {type: none, o: bind, device: /etc}}}",
            "volumes.v.driver_opts.device",
            "bind-mounts",
        ),
        (
            "volumes: {v: {driver_opts: {type: none, o: 'ro,rbind', device: ../x}}}",
            "volumes.v.driver_opts.device",
            "bind-mounts",
        ),
        (
            "volumes: {v: {driver_opts: {o: bind, device: out}}}",
            "volumes.v.driver_opts.device",
            "bind-mounts",
        ),
        (
            "volumes: {v: {driver_opts: {type: nfs, o: addr=1.2.3.4, device: ':/x'}}}",
            "volumes.v.driver_opts",
            "external",
        ),
        (
            "volumes: {v: {driver_opts: {type: overlay, o: 'lowerdir=/,upperdir=/x', device: overlay}}}",
            "volumes.v.driver_opts",
            "external",
        ),
        (
            "volumes: {v: {driver_opts: {type: ext4, device: /dev/sda1}}}",
            "volumes.v.driver_opts.device",
            "devices",
        ),
        ("secrets: {s: {file: /etc/shadow}}", "secrets.s.file", "bind-mounts"),
        ("secrets: {s: {file: out}}", "secrets.s.file", "bind-mounts"),
        ("configs: {c: {file: ../x}}", "configs.c.file", "bind-mounts"),
        ("secrets: {s: {external: true}}", "secrets.s.external", "external"),
        ("models: {m: {model: x}}", "models", "external"),
    ];
    for (section, path, allow) in cases {
        let case = Case::new(&format!("services: {{web: {{image: a}}}}\n{section}\n"))
            .link("out", "../../x");
        let refusals = case.refusals();
        assert_eq!(refusals.len(), 1, "{section}: {refusals:?}");
        assert_eq!(
            (refusals[0].path.as_str(), word(&refusals[0])),
            (path, Some(allow)),
            "{section}"
        );
        let item = refusals[0].allow.clone().unwrap();
        case.allow(&[item]).render();
    }
    let host = Case::new(
        "services: {web: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: host}}",
    )
    .allow(&[Allowance::External]);
    assert_eq!(word(&host.refusals()[0]), Some("host-network"));
    let refusals =
        Case::new("services: {web: {image: a}}\nsecrets: {s: {environment: HOME}}").refusals();
    assert_eq!(refusals[0].allow, None);
}

#[test]
fn an_external_network_that_is_permitted_is_named_outright() {
    let case =
        Case::new("services: {web: {image: a, networks: [n]}}\nnetworks: {n: {external: true}}")
            .allow(&[Allowance::External]);
    assert_eq!(case.render().0["networks"], json!({"n": {"external": true, "name": "n"}}));
}

#[test]
fn a_bind_volume_inside_the_workspace_is_fine() {
    let case = Case::new("services: {web: {image: a, volumes: ['v:/x']}}\nvolumes: {v: {driver_opts: {type: none, o: bind, device: ./d}}}").file("d/x", "");
    assert_eq!(
        case.render().0["volumes"]["v"]["driver_opts"]["device"],
        "/x/sbx-a1b2c3d4/workspace/d"
    );
}

#[test]
fn what_is_not_declared_or_malformed_is_refused() {
    let cases = [
        ("volumes: ['data:/x']", "not declared"),
        ("volumes: ['./a:b']", "no absolute path"),
        ("volumes: ['a:b:c:d']", "no mount"),
        ("volumes: ['./a:/b:wat']", "no known mount option"),
        ("volumes: [1]", "a mount is written"),
        ("volumes: [{target: /x}]", "no kind of mount"),
        ("volumes: [{type: bind, source: a}]", "needs `target:`"),
        ("volumes: [{type: npipe, source: x, target: /x}]", "no kind of mount"),
        ("networks: [n]", "not declared"),
        ("secrets: [s]", "not declared"),
        ("links: [x]", "no service `x`"),
        ("depends_on: [x]", "no service `x`"),
        ("pid: service:x", "no such service"),
        ("build: 1", "write `build:"),
        ("build: ./gone", "no folder `gone`"),
        ("environment: 1", "write it as a mapping"),
        ("environment: {A: [1]}", "quote it"),
        ("labels: 1", "write labels"),
        ("image: ''", "neither an image"),
        ("image: '--privileged'", "no name of an image"),
        ("image: 'a b'", "no name of an image"),
        ("networks: [default]\nnetwork_mode: none", "exclude each other"),
        ("annotations: x", "as a mapping"),
        ("logging: [x]", "is a mapping"),
        ("build: {context: ., additional_contexts: x}", "is a mapping"),
        ("volumes: ['C:\\x:/x']", "no absolute path"),
    ];
    for (body, want) in cases {
        let body =
            if body.starts_with("image") { body.to_owned() } else { format!("image: a\n{body}") };
        let text = format!("services:\n  web:\n    {}\n", body.replace('\n', "\n    "));
        let refusals = Case::new(&text).refusals();
        assert!(
            refusals.iter().any(|refusal| refusal.message.contains(want)),
            "{body}: {refusals:?}"
        );
    }
}

#[test]
fn the_clock_of_the_host_is_read_and_nothing_else_of_it() {
    let clock = |target: &str| json!({"type": "bind", "source": "/etc/timezone", "target": target, "read_only": true, "bind": {"create_host_path": false}});
    for volume in [
        "/etc/timezone:/tz:ro",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: true}",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: true, bind: {create_host_path: true}}",
    ] {
        let web = Case::web(&format!(
            "volumes: [{}]",
            if volume.starts_with('/') { format!("'{volume}'") } else { volume.to_owned() }
        ));
        assert_eq!(web.web_service()["volumes"], json!([clock("/tz")]), "{volume}");
    }
    for volume in [
        "'/etc/timezone:/tz'",
        "'/etc/timezone:/tz:rw'",
        "'/etc/timezone:/tz:ro,z'",
        "'/etc/timezone:/tz:ro,U'",
        "'/etc/timezone:/tz:Z'",
        "'/etc/localtime/:/tz/x:ro,Z'",
        "'/etc/localtime.d:/tz:ro'",
        "'/etc:/tz:ro'",
        "{type: bind, source: /etc/timezone, target: /tz}",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: false}",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: 'true'}",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: true, bind: {selinux: Z}}",
        "{type: bind, source: /etc/timezone, target: /tz, read_only: true, bind: {propagation: shared}}",
    ] {
        let refusals = Case::web(&format!("volumes: [{volume}]")).refusals();
        assert!(
            refusals.iter().any(|refusal| word(refusal) == Some("bind-mounts")),
            "{volume}: {refusals:?}"
        );
    }
    for target in ["x", "/x,rw", "/x:rw", ""] {
        let volume =
            format!("{{type: bind, source: /etc/timezone, target: '{target}', read_only: true}}");
        assert!(!Case::web(&format!("volumes: [{volume}]")).refusals().is_empty(), "{target}");
    }
    // A volume that is that file is written by whoever mounts it.
    let text = "services: {web: {image: a, volumes: ['v:/v:ro']}}\nvolumes: {v: {driver_opts: {type: none, o: bind, device: /etc/timezone}}}";
    assert_eq!(word(&Case::new(text).refusals()[0]), Some("bind-mounts"));
}

#[test]
fn capabilities_that_a_container_has_anyway_depend_on_the_engine() {
    for (added, docker, podman) in [
        ("[CHOWN, cap_kill, CAP_SETUID]", true, true),
        ("NET_BIND_SERVICE", true, true),
        ("[NET_RAW, MKNOD, AUDIT_WRITE]", true, false),
        ("[CHOWN, SYS_ADMIN]", false, false),
        ("[ALL]", false, false),
        ("['CHOWN,SYS_ADMIN']", false, false),
        ("[CAP_CAP_CHOWN]", false, false),
        ("{CHOWN: true}", false, false),
    ] {
        for (is_podman, dialect, fine) in [
            (false, Dialect::Full, docker),
            (true, Dialect::Full, podman),
            (true, Dialect::Narrow, podman),
        ] {
            let mut case = Case::web(&format!("cap_drop: [ALL]\ncap_add: {added}"));
            case.dialect = dialect;
            case.host.podman = is_podman;
            let paths = |error| match error {
                RenderError::Refused(refusals) => {
                    refusals.into_iter().map(|refusal| refusal.path).collect::<Vec<_>>()
                }
                other => panic!("{other}"),
            };
            let refused = case.try_render().map_err(paths).err().unwrap_or_default();
            assert_eq!(refused.is_empty(), fine, "{added} podman {is_podman}: {refused:?}");
            assert!(refused.iter().all(|path| path == "services.web.cap_add"), "{refused:?}");
        }
    }
}

#[test]
fn a_secret_or_config_has_one_source_and_a_value() {
    let of = |section: &str, definition: &str| {
        Case::new(&format!(
            "services: {{web: {{image: a, {section}: [s]}}}}\n{section}: {{s: {definition}}}"
        ))
        .file(".env", "TOK=a$$b\nEMPTY=")
        .file("f", "x")
    };
    let (file, rendered) = of("secrets", "{environment: TOK}").render();
    assert_eq!(file["secrets"]["s"], json!({"file": "/x/sbx-a1b2c3d4/secret.s"}));
    assert_eq!(rendered.secrets["secret.s"], "a$b");
    // What is written in the file is filled in once more.
    assert_eq!(
        of("configs", "{environment: TOK}").render().0["configs"]["s"],
        json!({"content": "a$$b"})
    );
    assert_eq!(of("secrets", "{environment: EMPTY}").render().1.secrets["secret.s"], "");
    assert_eq!(
        of("secrets", "{environment: TOK}").variable("TOK", "p").render().1.secrets["secret.s"],
        "p"
    );
    for (definition, path, want) in [
        (
            "{environment: HOME}",
            "secrets.s.environment",
            "`HOME` has no value, in .env and the profile neither",
        ),
        ("{environment: [a]}", "secrets.s.environment", "has no value"),
        ("{environment: TOK, file: /etc/shadow}", "secrets.s", "exclude each other"),
        ("{file: f, content: x}", "secrets.s", "exclude each other"),
        ("{file: ../secret.t}", "secrets.s.file", "outside"),
        ("{file: ../secret.s/../../x}", "secrets.s.file", "outside"),
    ] {
        let refusals = of("secrets", definition).refusals();
        assert_eq!(refusals[0].path, path, "{definition}");
        assert!(refusals[0].message.contains(want), "{definition}: {refusals:?}");
    }
    assert_eq!(of("configs", "{file: ../secret.s}").refusals()[0].path, "configs.s.file");
}
