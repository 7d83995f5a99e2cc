//! Text that a compose tool would hand on as options, and options that stand twice.

use super::*;

const DIALECTS: [Dialect; 4] = [Dialect::Full, Dialect::V1, Dialect::Podman, Dialect::Narrow];

fn case(body: &str, sections: &str, dialect: Dialect) -> Case {
    let mut case =
        Case { dialect, ..Case::web(body) }.file("ok/f", "").file("Dockerfile", "FROM x");
    case.files[0].1.push_str(sections);
    case
}

/// Refused for every dialect that reads the key, at this path or below it.
fn refused(body: &str, sections: &str, path: &str) {
    let mut met = 0;
    for dialect in DIALECTS {
        let case = case(body, sections, dialect);
        match case.try_render() {
            Err(RenderError::Refused(refusals)) => {
                assert!(
                    refusals.iter().any(|refusal| refusal.path.starts_with(path)),
                    "{dialect:?} {body} {sections}: {refusals:#?}"
                );
                met += 1;
            }
            Ok(rendered) => {
                let key = path.split(['.', '[']).nth(2).unwrap_or_default();
                let plain = dialect == Dialect::Narrow && key == "networks";
                assert!(
                    plain || !rendered.yaml.contains(&format!("\"{key}\":")),
                    "{dialect:?} {body}: {}",
                    rendered.yaml
                );
            }
            Err(other) => panic!("{body}: {other}"),
        }
    }
    assert!(met > 0, "{body} {sections} is refused by nobody");
}

#[allow(clippy::too_many_lines, reason = "one table")]
#[test]
fn text_that_would_become_an_option_is_refused() {
    let cases = [
        (
            "volumes: [{type: bind, source: ./ok, target: '/x:O,upperdir=/u,workdir=/w'}]",
            "services.web.volumes[0].target",
        ),
        ("volumes: [{type: bind, source: './ok,b', target: /x}]", "services.web.volumes[0].source"),
        ("volumes: ['./ok:/x,y']", "services.web.volumes[0]"),
        ("volumes: [{type: tmpfs, target: '/x:rw,mode=0'}]", "services.web.volumes[0].target"),
        (
            "volumes: [{type: bind, source: ./ok, target: /x, bind: {selinux: 'z,O'}}]",
            "services.web.volumes[0].bind.selinux",
        ),
        (
            "volumes: [{type: bind, source: ./ok, target: /x, bind: {propagation: 'private,O'}}]",
            "services.web.volumes[0].bind.propagation",
        ),
        (
            "volumes: [{type: volume, target: /x, volume: {propagation: O}}]",
            "services.web.volumes[0].volume.propagation",
        ),
        (
            "volumes: [{type: volume, target: /x, volume: {subpath: '../..'}}]",
            "services.web.volumes[0].volume.subpath",
        ),
        (
            "volumes: [{type: tmpfs, target: /x, tmpfs: {size: '1m,mode=7'}}]",
            "services.web.volumes[0].tmpfs.size",
        ),
        ("tmpfs: ['/x:size=1m,bind']", "services.web.tmpfs[0]"),
        ("tmpfs: /x:U", "services.web.tmpfs[0]"),
        (
            "logging: {options: {max-size: '10m,path=/etc/x'}}",
            "services.web.logging.options.max-size",
        ),
        ("logging: {options: {'path=/etc/x': ''}}", "services.web.logging.options.path=/etc/x"),
        ("logging: {options: {tag: 'a,path=/etc/x'}}", "services.web.logging.options.tag"),
        ("logging: {options: {labels: 'a,path=/etc/x'}}", "services.web.logging.options.labels"),
        ("logging: {options: {Path: /etc/x}}", "services.web.logging.options.Path"),
        ("logging: {options: {driver: journald}}", "services.web.logging.options.driver"),
        (
            "annotations: {org.opencontainers.image.title: 'x,run.oci.keep_original_groups=1'}",
            "services.web.annotations",
        ),
        (
            "annotations: {org.opencontainers.image.title: \"x\\nrun.oci.a=1\"}",
            "services.web.annotations",
        ),
        (
            "annotations: {'org.opencontainers.image.x=1,run.oci.a': '1'}",
            "services.web.annotations",
        ),
        ("annotations: [io.katacontainers.config=1]", "services.web.annotations"),
        ("sysctls: {net.core.somaxconn: '1,kernel.core_pattern=x'}", "services.web.sysctls"),
        ("sysctls: {kernel.core_pattern: '|/x'}", "services.web.sysctls"),
        ("sysctls: [vm.max_map_count=262144]", "services.web.sysctls"),
        ("ulimits: {'nofile=1:1,core': 2}", "services.web.ulimits"),
        ("ulimits: {nofile: '1:2,core=1'}", "services.web.ulimits.nofile"),
        ("ulimits: host", "services.web.ulimits"),
        ("extra_hosts: ['a:1.2.3.4,b:host-gateway']", "services.web.extra_hosts"),
        ("extra_hosts: {a: \"1.2.3.4\\n5.6.7.8 b\"}", "services.web.extra_hosts"),
        ("group_add: ['1000,keep-groups']", "services.web.group_add"),
        ("cap_drop: ['NET_RAW,x']", "services.web.cap_drop"),
        ("dns: ['1.1.1.1,8.8.8.8']", "services.web.dns"),
        ("dns_opt: ['ndots:1,x']", "services.web.dns_opt"),
        ("expose: ['80,81']", "services.web.expose"),
        (
            "networks: {default: {aliases: ['a,ip=10.0.0.1']}}",
            "services.web.networks.default.aliases",
        ),
        (
            "networks: {default: {ipv4_address: '10.0.0.1,mac=x'}}",
            "services.web.networks.default.ipv4_address",
        ),
        (
            "networks: {default: {mac_address: '02:42:ac:11:00:02,ip=x'}}",
            "services.web.networks.default.mac_address",
        ),
        (
            "networks: {default: {driver_opts: {com.docker.network.endpoint.expose: x}}}",
            "services.web.networks.default.driver_opts",
        ),
        ("mac_address: '02:42:ac:11:00:02,alias=x'", "services.web.mac_address"),
        ("hostname: 'a,b'", "services.web.hostname"),
        ("user: '0:0,x'", "services.web.user"),
        ("cpuset: '0 --privileged'", "services.web.cpuset"),
        ("shm_size: '1m,x'", "services.web.shm_size"),
        ("stop_signal: '-x'", "services.web.stop_signal"),
        ("restart: 'always,x'", "services.web.restart"),
        ("platform: 'linux/amd64,x'", "services.web.platform"),
        ("pull_policy: 'always --tls-verify=false'", "services.web.pull_policy"),
        (
            "healthcheck: {test: x, interval: '1s --privileged'}",
            "services.web.healthcheck.interval",
        ),
        ("healthcheck: {test: x, intervall: 1s}", "services.web.healthcheck.intervall"),
        (
            "deploy: {resources: {limits: {memory: '1g,x'}}}",
            "services.web.deploy.resources.limits.memory",
        ),
        ("storage_opt: {size: '1g,x'}", "services.web.storage_opt"),
        ("labels: {'${X:-io.podman.compose.project}': y}", "services.web.labels"),
        ("labels: {'a=b': y}", "services.web.labels"),
        ("environment: {'${HOME}': y}", "services.web.environment"),
    ];
    for (body, path) in cases {
        refused(body, "", path);
    }
}

#[test]
fn text_of_a_build_that_would_become_an_option_is_refused() {
    let cases = [
        (
            "build: {context: ./ok, dockerfile: 'Dockerfile,/etc/passwd'}",
            "services.web.build.dockerfile",
        ),
        ("build: {context: ./ok, target: 'a,b'}", "services.web.build.target"),
        (
            "build: {context: ./ok, cache_from: ['type=registry,type=local,src=/x']}",
            "services.web.build.cache_from",
        ),
        (
            "build: {context: ./ok, cache_from: ['TYPE=local,src=/x']}",
            "services.web.build.cache_from",
        ),
        (
            "build: {context: ./ok, cache_from: ['\" type\"=local,src=/x']}",
            "services.web.build.cache_from",
        ),
        (
            "build: {context: ./ok, additional_contexts: {a: 'docker-image://dir:/etc'}}",
            "services.web.build.additional_contexts.a",
        ),
        (
            "build: {context: ./ok, additional_contexts: {a: 'service:nobody'}}",
            "services.web.build.additional_contexts.a",
        ),
        (
            "build: {context: ./ok, additional_contexts: {'a=b': ./ok}}",
            "services.web.build.additional_contexts",
        ),
        (
            "build: {context: ./ok, additional_contexts: {a: 'oci-layout:///x'}}",
            "services.web.build.additional_contexts.a",
        ),
        ("build: {context: ./ok, platforms: ['linux/amd64,x']}", "services.web.build.platforms"),
        ("build: {context: ./ok, secrets: [nobody]}", "services.web.build.secrets"),
        ("build: {context: ./ok, provenance: 'mode=max,type=x'}", "services.web.build.provenance"),
        ("build: {context: ./ok, ulimits: {'nofile=1,core': 1}}", "services.web.build.ulimits"),
        (
            "build: {context: ./ok, dockerfile: ../Dockerfile, dockerfile_inline: FROM x}",
            "services.web.build.dockerfile",
        ),
        (
            "build: {context: ./ok, dockerfile: /etc/passwd, dockerfile_inline: FROM x}",
            "services.web.build.dockerfile",
        ),
    ];
    for (body, path) in cases {
        refused(body, "", path);
    }
}

#[test]
fn definitions_hold_no_options_either() {
    let cases = [
        (
            "volumes: {v: {driver_opts: {type: tmpfs, device: /etc, 'o=bind,x-a': '1'}}}",
            "volumes.v.driver_opts",
        ),
        ("volumes: {v: {driver_opts: {type: tmpfs, device: /etc}}}", "volumes.v.driver_opts"),
        (
            "volumes: {v: {driver_opts: {type: tmpfs, device: tmpfs, o: 'size=1m,x-a'}}}",
            "volumes.v.driver_opts",
        ),
        (
            "volumes: {v: {driver_opts: {type: tmpfs, device: tmpfs, O: bind}}}",
            "volumes.v.driver_opts",
        ),
        (
            "volumes: {v: {driver_opts: {type: none, device: ./ok, o: 'bind,X-mount.mkdir'}}}",
            "volumes.v.driver_opts",
        ),
        (
            "volumes: {v: {driver_opts: {type: none, device: ./ok, o: 'bind,ro,rw'}}}",
            "volumes.v.driver_opts",
        ),
        ("volumes: {v: {labels: {'a=b': c}}}", "volumes.v.labels"),
        ("secrets: {s: {file: './ok,src=/etc/shadow'}}", "secrets.s.file"),
        ("secrets: {s: {file: './ok:O'}}", "secrets.s.file"),
    ];
    for (section, path) in cases {
        let mut met = 0;
        for dialect in [Dialect::Full, Dialect::V1, Dialect::Podman, Dialect::Narrow] {
            match case("volumes: ['/v']", &format!("{section}\n"), dialect).try_render() {
                Err(RenderError::Refused(all))
                    if all.iter().any(|refusal| refusal.path.starts_with(path)) =>
                {
                    met += 1;
                }
                other => panic!("{dialect:?} {section}: {other:?}"),
            }
        }
        assert_eq!(met, 4, "{section}");
    }
    for target in ["/x:rw,O", "../x,y", "a:b"] {
        let body = format!("secrets: [{{source: s, target: '{target}'}}]");
        let refusals = case(&body, "secrets: {s: {file: ./ok/f}}\n", Dialect::Podman).refusals();
        assert_eq!(refusals[0].path, "services.web.secrets[0].target", "{refusals:?}");
    }
}

/// Docker's build tool evaluates `${…}` in what its compose hands on, so that a folder of such a name is another folder.
#[test]
fn a_build_reads_no_template() {
    let folder = "${base64decode(\"Li4vb3V0c2lkZQ==\")}";
    for key in ["context", "dockerfile"] {
        let build = json!({"context": ".", key: format!("./{}", folder.replace('$', "$$"))});
        let case = Case::new(&json!({"services": {"web": {"build": build}}}).to_string())
            .file(&format!("{folder}/f"), "");
        let refusals = case.refusals();
        assert_eq!(refusals[0].path, format!("services.web.build.{key}"), "{refusals:?}");
    }
}

#[test]
fn what_stands_twice_or_against_another_is_refused() {
    let cases = [
        ("volumes: ['./ok:/w:ro,rw']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w:rw,ro']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w:ro,ro']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w:z,Z']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w:ro,']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w:private,rslave']", "services.web.volumes[0]"),
        ("volumes: ['./ok:/w', '/w/']", "services.web.volumes[1]"),
        ("volumes: ['./ok:/w']\ntmpfs: ['/x/../w:size=1m']", "services.web.tmpfs[0]"),
        ("tmpfs: [/t, /t]", "services.web.tmpfs[1]"),
        ("tmpfs: ['/t:ro,rw']", "services.web.tmpfs[0]"),
        ("tmpfs: ['/t:size=1m,size=2m']", "services.web.tmpfs[0]"),
        ("labels: [a=1, a=2]", "services.web.labels"),
        (
            "annotations: [org.opencontainers.image.title=1, org.opencontainers.image.title=2]",
            "services.web.annotations",
        ),
        ("sysctls: [net.core.somaxconn=1, net.core.somaxconn=2]", "services.web.sysctls[1]"),
        (
            "volumes: [{type: bind, source: ./ok, target: /w, read_only: perhaps}]",
            "services.web.volumes[0].read_only",
        ),
    ];
    for (body, path) in cases {
        refused(body, "", path);
    }
}

#[test]
fn a_switch_that_is_text_is_what_every_tool_takes_for_it() {
    for (text, on) in [
        ("'yes'", true),
        ("on", true),
        ("1", true),
        ("'True'", true),
        ("'no'", false),
        ("'false'", false),
        ("0", false),
    ] {
        for dialect in DIALECTS {
            let body =
                format!("volumes: [{{type: bind, source: ./ok, target: /w, read_only: {text}}}]");
            assert_eq!(
                case(&body, "", dialect).web_service()["volumes"][0]["read_only"],
                on,
                "{dialect:?} {text}"
            );
        }
    }
    // Until every tool agrees it counts as writable.
    let two = "services:\n  a: {image: x, volumes: [{type: bind, source: ., target: /w, read_only: 'yes'}]}\n  b: {image: x, volumes: ['./ok:/s']}\n";
    assert_eq!(Case::new(two).file("ok/f", "").refusals()[0].path, "services.a.volumes[0].source");
    let gives = two.replace("{type: bind, source: ., target: /w, read_only: 'yes'}", "'.:/w:ro,U'");
    assert_eq!(Case::new(&gives).file("ok/f", "").refusals()[0].path, "services.a.volumes[0]");
}

#[test]
fn a_folder_below_a_volume_of_the_workspace_is_mounted_by_its_path() {
    let text = "services: {a: {image: x, volumes: [{type: volume, source: v, target: /x, volume: {subpath: a}}]}}\n";
    let refusals = Case::new(&format!(
        "{text}volumes: {{v: {{driver_opts: {{type: none, o: bind, device: ./ok}}}}}}\n"
    ))
    .file("ok/f", "")
    .refusals();
    assert_eq!(refusals[0].path, "services.a.volumes[0].volume.subpath");
    Case::new(&format!("{text}volumes: {{v: {{}}}}\n")).render();
}

#[test]
fn every_way_to_a_label_leaves_reserved_ones_out() {
    let reserved = "COM.docker.stack.namespace=x\nio.podman.compose.project=sbx-victim\nio.containers.autoupdate=registry\nPODMAN_SYSTEMD_UNIT=sshd.service\ncom.docker.compose.service=x\nsandboxer.owner=x\nmine=1\n";
    let list = format!("[{}]", reserved.trim().replace('\n', ", "));
    let case = Case::web(&format!(
        "label_file: l.env\ndeploy: {{labels: {list}}}\nbuild: {{context: ., labels: {list}}}\nvolumes: [{{type: volume, source: v, target: /v, volume: {{labels: {list}}}}}]\nnetworks: [n]"
    ))
    .file("l.env", reserved)
    .file("Dockerfile", "FROM x");
    let mut case = case;
    let _ = writeln!(
        case.files[0].1,
        "volumes: {{v: {{labels: {list}}}}}\nnetworks: {{n: {{labels: {list}}}}}"
    );
    let (file, _) = case.render();
    let web = &file["services"]["web"];
    for labels in [
        &web["labels"],
        &web["deploy"]["labels"],
        &web["build"]["labels"],
        &web["volumes"][0]["volume"]["labels"],
        &file["volumes"]["v"]["labels"],
        &file["networks"]["n"]["labels"],
    ] {
        let mut names: Vec<_> = labels.as_object().unwrap().keys().map(String::as_str).collect();
        names.retain(|name| !["sandboxer.id", "sandboxer.profile"].contains(name));
        assert!(
            names == ["mine"]
                || (names == ["mine", "sandboxer.owner"] && labels["sandboxer.owner"] == "own-1"),
            "{labels}"
        );
    }
}

#[test]
fn podman_looks_for_a_dockerfile_by_more_names() {
    for (dialect, fine) in
        [(Dialect::Full, true), (Dialect::Podman, false), (Dialect::Narrow, false)]
    {
        let case = Case { dialect, ..Case::web("build: .") }
            .file("Dockerfile", "FROM x")
            .link("Containerfile", "/etc/shadow");
        assert_eq!(case.try_render().is_ok(), fine, "{dialect:?}");
    }
}

#[test]
fn what_honest_files_say_keeps_working() {
    let cases = [
        "logging: {driver: json-file, options: {max-size: 10m, max-file: '3', compress: 'true', labels: 'a,b', env: OS, tag: '{{.Name}}/{{.ID}}'}}",
        "sysctls: [net.ipv4.conf.all.src_valid_mark=1, 'net.ipv4.ip_local_port_range=1024 65000', kernel.shmmax=1]",
        "ulimits: {nproc: 65535, memlock: -1, nofile: {soft: 20000, hard: '40000'}}",
        "tmpfs: ['/run:rw,noexec,nosuid,size=65536k,mode=1777', '/tmp:uid=1000,gid=1000', /var/cache]",
        "volumes: ['./ok:/x:ro,z', './ok:/w:ro', '/anonymous', {type: tmpfs, target: /t, tmpfs: {size: 64m, mode: 0o1777}}, {type: bind, source: ./other, target: /b, bind: {create_host_path: false, propagation: rprivate}}]",
        "healthcheck: {test: 'curl -f http://localhost, || exit 1', interval: 1m30s, timeout: 10s, retries: 3, start_period: 40s}",
        "extra_hosts: ['host.docker.internal:host-gateway', 'v6=[::1]', 'some.host:10.0.0.1', 'some.host:10.0.0.2']",
        "networks: {default: {aliases: [db, db.local], ipv4_address: 172.28.0.5, priority: 10}}",
        "labels: ['traefik.http.routers.x.rule=Host(`a.b`) && PathPrefix(`/c`)', 'a.b=1,2:3=4', 'caddy.@assets.path=*.css']",
        "labels: [a=1, a=1]",
        "environment: {A: 'b,c:d=e', B: \"line\\nbreak\"}",
        "command: ['--flag=a,b', '-x']\nentrypoint: sh -c",
        "annotations: {org.opencontainers.image.title: x}",
        "user: '1000:1000'\nworking_dir: '/a dir'\nhostname: my_host\nstop_signal: SIGRTMIN+3\nstop_grace_period: 1m\nshm_size: '2gb'\ncpuset: 0,1\nmem_limit: 1.5g\npids_limit: -1",
        "build: {context: ./ok, args: {A: 'b,c'}, target: prod, cache_from: ['app:1', 'type=registry,ref=registry.example:5000/app:cache'], shm_size: 1g, extra_hosts: ['a:1.2.3.4'], platforms: [linux/amd64], secrets: [s, {source: s, target: t}], ulimits: {nofile: 1024}, labels: {a: b}, network: none}",
        "dns: 1.1.1.1\ndns_opt: ['ndots:1', use-vc]\ndns_search: [example.com]\nexpose: [80, '53/udp', 3000-3005]\ncap_drop: ALL\ngroup_add: [docker, 1000]",
        "deploy: {mode: replicated, replicas: 1, resources: {limits: {cpus: '0.5', memory: 64M}, reservations: {memory: 32M}}, restart_policy: {condition: on-failure, delay: 5s, max_attempts: 3, window: 120s}, placement: {constraints: ['node.role == manager']}, update_config: {parallelism: 2}}",
        "restart: on-failure:5\npull_policy: always\nblkio_config: {weight: 300, device_read_bps: [{path: /dev/sda, rate: 12mb}]}\noom_score_adj: 5\ncpu_quota: 50000\nstorage_opt: {size: 1g}",
        "secrets: [s, {source: s, target: other, mode: 0o440, uid: '103'}, {source: s, target: /etc/s}]",
    ];
    for body in cases {
        for dialect in DIALECTS {
            let case = case(
                body,
                "secrets: {s: {file: ./ok/f}}\nnetworks: {default: {ipam: {config: [{subnet: 172.28.0.0/16}]}}}\nvolumes: {m: {driver_opts: {type: tmpfs, device: tmpfs, o: 'size=100m,uid=1000'}}}\n",
                dialect,
            );
            if let Err(error) = case.try_render() {
                panic!("{dialect:?} {body}: {error}");
            }
        }
    }
}
