//! Whole renderings: what goes in, what comes out, what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tree::MemoryTree;
use super::*;

struct Case {
    files: Vec<(String, String)>,
    links: Vec<(String, String)>,
    compose: Compose,
    variables: BTreeMap<String, String>,
    file: String,
    dialect: Dialect,
}

impl Case {
    fn new(compose: &str) -> Self {
        Self {
            files: vec![("docker-compose.yml".into(), compose.into())],
            links: Vec::new(),
            compose: Compose::default(),
            variables: BTreeMap::new(),
            file: "docker-compose.yml".into(),
            dialect: Dialect::Full,
        }
    }

    /// A compose file with one service `web` that says `body` beside its image.
    fn web(body: &str) -> Self {
        let mut text = String::from("services:\n  web:\n    image: app:1\n");
        for line in body.lines() {
            let _ = writeln!(text, "    {line}");
        }
        Self::new(&text)
    }

    fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }

    fn link(mut self, path: &str, to: &str) -> Self {
        self.links.push((path.into(), to.into()));
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    fn allow(mut self, allow: &[Allowance]) -> Self {
        self.compose.allow = allow.to_vec();
        self
    }

    fn try_render(&self) -> Result<Rendered, RenderError> {
        let mut tree = MemoryTree::default();
        for (path, content) in &self.files {
            tree.put(path, Entry::File, content.as_bytes());
        }
        for (path, to) in &self.links {
            tree.put(path, Entry::Link(to.clone()), b"");
        }
        let input = RenderInput {
            sandbox_id: "a1b2c3d4",
            owner: "own-1",
            profile_id: "profile.compose-e2e",
            workdir: "/x/sbx-a1b2c3d4/workspace",
            compose_file: &self.file,
            compose: &self.compose,
            variables: &self.variables,
            dialect: self.dialect,
        };
        render(&tree, &input)
    }

    fn render(&self) -> (Value, Rendered) {
        let rendered = self.try_render().unwrap_or_else(|error| panic!("{error}"));
        let text = rendered.yaml.split_once('\n').unwrap().1;
        (serde_json::from_str(text).unwrap(), rendered)
    }

    fn web_service(&self) -> Value {
        self.render().0["services"]["web"].take()
    }

    fn refusals(&self) -> Vec<Refusal> {
        match self.try_render() {
            Err(RenderError::Refused(refusals)) => refusals,
            Ok(rendered) => panic!("rendered:\n{}", rendered.yaml),
            Err(error) => panic!("{error}"),
        }
    }

    fn rewrites(&self) -> Vec<String> {
        self.render().1.rewrites.iter().map(|rewrite| format!("{}: {}", rewrite.path, rewrite.what)).collect()
    }
}

fn word(refusal: &Refusal) -> Option<&str> {
    refusal.allow.as_ref().map(Allowance::as_str)
}

#[test]
fn a_plain_file_is_labelled_and_gets_its_network_spelled_out() {
    let (file, rendered) =
        Case::new("services:\n  web:\n    image: nginx\n    ports: ['8080:80']\nvolumes:\n  data:\n").render();
    let ours =
        json!({"sandboxer.id": "a1b2c3d4", "sandboxer.owner": "own-1", "sandboxer.profile": "profile.compose-e2e"});
    let want = json!({
        "services": {"web": {"image": "nginx", "labels": ours, "ports": ["127.0.0.1::80"], "networks": ["default"]}},
        "networks": {"default": {"labels": ours}},
        "volumes": {"data": {"labels": ours}},
    });
    assert_eq!(file, want);
    assert_eq!(rendered.images, ["nginx"]);
    let plan = ServicePlan {
        name: "web".into(),
        image: "nginx".into(),
        built: false,
        replicas: 1,
        ports: vec![ContainerPort { port: 80, protocol: "tcp".into() }],
        has_healthcheck: false,
        restart: "no".into(),
        one_shot: false,
    };
    assert_eq!(rendered.services, [plan]);
}

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
        ("post_start: [{command: x, privileged: true}]", "services.web.post_start[0].privileged", "privileged"),
        ("volumes: ['/etc:/etc:ro']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['../up:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./a/../../up:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['~/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['~root/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./out:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./out/deeper:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['./abs:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: ['$HOME/x:/x']", "services.web.volumes[0]", "bind-mounts"),
        ("volumes: [{type: bind, source: /etc, target: /x}]", "services.web.volumes[0].source", "bind-mounts"),
        ("volumes: [{type: bind, source: out, target: /x}]", "services.web.volumes[0].source", "bind-mounts"),
        ("volumes: ['./docker.sock:/x']", "services.web.volumes[0]", "privileged"),
        ("volumes: ['./ok:/x:rshared']", "services.web.volumes[0]", "privileged"),
        ("env_file: ../x.env", "services.web.env_file", "bind-mounts"),
        ("env_file: [out]", "services.web.env_file", "bind-mounts"),
        ("build: ..", "services.web.build.context", "bind-mounts"),
        ("build: ./out", "services.web.build.context", "bind-mounts"),
        ("build: https://example.org/x.git", "services.web.build.context", "external"),
        ("build: git@example.org:x.git", "services.web.build.context", "external"),
        ("build: {context: ., dockerfile: ../Dockerfile}", "services.web.build.dockerfile", "bind-mounts"),
        ("build: {context: ., dockerfile: /etc/Dockerfile}", "services.web.build.dockerfile", "bind-mounts"),
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
        ("build: {context: ., entitlements: [security.insecure]}", "services.web.build.entitlements", "privileged"),
        ("build: {context: ., ssh: [default]}", "services.web.build.ssh", "external"),
        ("build: {context: ., cache_to: ['type=local,dest=/x']}", "services.web.build.cache_to", "external"),
        ("build: {context: ., cache_from: ['type=local,src=/x']}", "services.web.build.cache_from", "bind-mounts"),
    ];
    for (body, path, allow) in cases {
        let case =
            Case::web(body).link("out", "../../etc").link("abs", "/x/sbx-a1b2c3d4/workspace/ok").file("ok/f", "");
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
    for source in
        ["/var/run/docker.sock", "/run", "/", "/run/user/1000/podman/podman.sock", "/home/me/.docker/run/docker.sock"]
    {
        let body = format!("volumes: ['{source}:/s']");
        let items: BTreeSet<_> =
            Case::web(&body).refusals().iter().filter_map(|refusal| refusal.allow.clone()).collect();
        assert_eq!(items, [Allowance::Privileged, Allowance::BindMounts].into(), "{source}");
        assert_eq!(Case::web(&body).allow(&[Allowance::BindMounts]).refusals().len(), 1);
        assert!(Case::web(&body).allow(&[Allowance::BindMounts, Allowance::Privileged]).try_render().is_ok());
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
        "pid: service:web",
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
fn relative_paths_become_absolute_and_links_are_resolved() {
    let web = Case::web("volumes: ['./src:/a:ro', './in:/b', {type: bind, source: src, target: /c}, 'data:/d']\nbuild: {context: ./src, dockerfile: D}")
        .file("src/D", "").link("in", "src");
    let case = Case {
        files: {
            let mut f = web.files.clone();
            f[0].1.push_str("volumes: {data: }\n");
            f
        },
        ..web
    };
    let (file, rendered) = case.render();
    let web = &file["services"]["web"];
    let at = "/x/sbx-a1b2c3d4/workspace/src";
    assert_eq!(
        web["volumes"],
        json!([format!("{at}:/a:ro"), format!("{at}:/b"), {"type": "bind", "source": at, "target": "/c"}, "data:/d"])
    );
    assert_eq!(web["build"], json!({"context": at, "dockerfile": "D"}));
    assert_eq!(rendered.sources, ["src"]);
}

#[test]
fn paths_are_relative_to_the_compose_files_folder() {
    let mut case = Case::new("")
        .file("deploy/stack.yml", "services: {web: {image: a, volumes: ['.:/a', '../src:/b'], environment: [A, B]}}")
        .file("src/x", "")
        .file(".env", "A=root\nB=root")
        .file("deploy/.env", "A=near");
    case.file = "./deploy/stack.yml".into();
    let web = case.web_service();
    assert_eq!(web["volumes"], json!(["/x/sbx-a1b2c3d4/workspace/deploy:/a", "/x/sbx-a1b2c3d4/workspace/src:/b"]));
    assert_eq!(web["environment"], json!({"A": "near", "B": "root"}));
}

#[test]
fn variables_come_from_dotenv_and_the_profile_only() {
    let case =
        Case::web("command: \"$A ${B} ${C:-c} $$D $PATH ${COMPOSE_PROJECT_NAME}\"\nenvironment: [A, PATH, Z=$$z]")
            .file(".env", "A=file\nB=file")
            .variable("B", "profile");
    let web = case.web_service();
    assert_eq!(web["command"], "file profile c $$D  sbx-a1b2c3d4");
    assert_eq!(web["environment"], json!({"A": "file", "Z": "$$z"}));
    let rewrites = case.rewrites();
    assert!(
        rewrites.iter().any(|line| line.starts_with("services.web.command: `PATH` is set neither")),
        "{rewrites:?}"
    );
    assert!(
        rewrites.iter().any(|line| line.starts_with("services.web.environment.PATH: `PATH` has no value")),
        "{rewrites:?}"
    );
}

#[test]
fn no_dollar_is_left_for_the_engine_to_fill_in() {
    let case = Case::web("environment: {A: '$X'}\nhealthcheck: {test: 'echo $$HOME ${Y:-$$(id)}'}\nlabels: {a: '$$b'}")
        .variable("X", "pa$HOME$$");
    let web = case.web_service();
    assert_eq!(web["environment"]["A"], "pa$$HOME$$$$");
    assert_eq!(web["healthcheck"]["test"], "echo $$HOME $$(id)");
    assert_eq!(web["labels"]["a"], "$$b");
}

#[test]
fn a_required_variable_is_a_refusal_among_the_others() {
    let refusals = Case::web("command: ${A:?tell me}\nhostname: $1\nprivileged: true").refusals();
    assert_eq!(refusals.len(), 3);
    assert!(refusals[0].message.contains("`A` is required (tell me)"));
    assert_eq!(refusals[0].place.as_ref().map(|place| place.line), Some(4));
}

#[test]
fn environment_files_are_inlined_in_order() {
    let case = Case::web("env_file: [a.env, {path: b.env, format: raw}, {path: gone.env, required: false}]\nenvironment: {C: 3, D: , E: true, F: 0755}")
        .file("a.env", "A=1\nB='$x' # c\nC=1\nI=${V}i\nK").file("b.env", "B='2'").variable("V", "v").variable("D", "d").variable("K", "k");
    let web = case.web_service();
    assert_eq!(
        web["environment"],
        json!({"A": "1", "B": "'2'", "C": "3", "I": "vi", "K": "k", "D": "d", "E": "true", "F": "493"})
    );
    assert!(web.get("env_file").is_none());
    let refusals = Case::web("env_file: [gone.env, bad.env]").file("bad.env", "A=1\nthis is wrong").refusals();
    assert!(refusals[0].message.contains("`gone.env` is not in the workspace"));
    assert_eq!(refusals[1].path, "bad.env line 2");
}

#[test]
fn fixed_names_are_dropped_and_listed() {
    let case = Case::new(
        "name: mine\nservices: {web: {image: a, container_name: web1, networks: [n]}, db: {image: b, container_name: db1}}\nnetworks: {n: {name: fixed}}\nvolumes: {v: {name: fixed}}\n",
    );
    let (file, rendered) = case.render();
    assert!(!rendered.yaml.contains("fixed") && file.get("name").is_none());
    assert!(file["services"]["web"].get("container_name").is_none());
    // Others may call the container by that name.
    assert_eq!(file["services"]["web"]["networks"], json!({"n": {"aliases": ["web1"]}}));
    assert_eq!(file["services"]["db"]["networks"], json!({"default": {"aliases": ["db1"]}}));
    let paths: Vec<_> = rendered.rewrites.iter().map(|rewrite| rewrite.path.as_str()).collect();
    assert_eq!(
        paths,
        ["name", "services.web.container_name", "services.db.container_name", "networks.n.name", "volumes.v.name"]
    );
}

#[test]
fn labels_of_both_forms_survive_and_reserved_ones_do_not() {
    for labels in [
        "[a=b, 'com.docker.compose.project=other', sandboxer.id=x]",
        "{a: b, com.docker.compose.project: other, sandboxer.id: x}",
    ] {
        let case = Case::web(&format!("labels: {labels}"));
        assert_eq!(
            case.web_service()["labels"],
            json!({"a": "b", "sandboxer.id": "a1b2c3d4", "sandboxer.owner": "own-1", "sandboxer.profile": "profile.compose-e2e"})
        );
        assert_eq!(case.rewrites().len(), 2);
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
            "networks.n.driver_opts",
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
        ("volumes: {v: {driver_opts: {o: bind, device: out}}}", "volumes.v.driver_opts.device", "bind-mounts"),
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
        ("volumes: {v: {driver_opts: {type: ext4, device: /dev/sda1}}}", "volumes.v.driver_opts.device", "devices"),
        ("secrets: {s: {file: /etc/shadow}}", "secrets.s.file", "bind-mounts"),
        ("secrets: {s: {file: out}}", "secrets.s.file", "bind-mounts"),
        ("configs: {c: {file: ../x}}", "configs.c.file", "bind-mounts"),
        ("secrets: {s: {external: true}}", "secrets.s.external", "external"),
        ("models: {m: {model: x}}", "models", "external"),
    ];
    for (section, path, allow) in cases {
        let case = Case::new(&format!("services: {{web: {{image: a}}}}\n{section}\n")).link("out", "../../x");
        let refusals = case.refusals();
        assert_eq!(refusals.len(), 1, "{section}: {refusals:?}");
        assert_eq!((refusals[0].path.as_str(), word(&refusals[0])), (path, Some(allow)), "{section}");
        let item = refusals[0].allow.clone().unwrap();
        case.allow(&[item]).render();
    }
    let host = Case::new("services: {web: {image: a, networks: [n]}}\nnetworks: {n: {external: true, name: host}}")
        .allow(&[Allowance::External]);
    assert_eq!(word(&host.refusals()[0]), Some("host-network"));
    let refusals = Case::new("services: {web: {image: a}}\nsecrets: {s: {environment: HOME}}").refusals();
    assert_eq!(refusals[0].allow, None);
}

#[test]
fn an_external_network_that_is_permitted_is_named_outright() {
    let case = Case::new("services: {web: {image: a, networks: [n]}}\nnetworks: {n: {external: true}}")
        .allow(&[Allowance::External]);
    assert_eq!(case.render().0["networks"], json!({"n": {"external": true, "name": "n"}}));
}

#[test]
fn a_bind_volume_inside_the_workspace_is_fine() {
    let case = Case::new("services: {web: {image: a, volumes: ['v:/x']}}\nvolumes: {v: {driver_opts: {type: none, o: bind, device: ./d}}}").file("d/x", "");
    assert_eq!(case.render().0["volumes"]["v"]["driver_opts"]["device"], "/x/sbx-a1b2c3d4/workspace/d");
}

#[test]
fn extends_merges_from_this_file_and_others() {
    let case = Case::new("services:\n  base: {image: a, environment: [A=1, B=1], ports: ['80']}\n  web: {extends: base, environment: {B: 2}, ports: ['81'], command: x}\n  api: {extends: {file: sub/common.yml, service: c}, environment: {Z: z}}\n")
        .file("sub/common.yml", "services:\n  c: {extends: d, volumes: ['./here:/h'], env_file: e.env}\n  d: {image: deep}\n").file("sub/e.env", "E=e").file("sub/here/x", "");
    let (file, _) = case.render();
    assert_eq!(file["services"]["web"]["environment"], json!({"A": "1", "B": "2"}));
    assert_eq!(file["services"]["web"]["ports"], json!(["127.0.0.1::80", "127.0.0.1::81"]));
    let api = &file["services"]["api"];
    assert_eq!((&api["image"], &api["volumes"]), (&json!("deep"), &json!(["/x/sbx-a1b2c3d4/workspace/sub/here:/h"])));
    assert_eq!(api["environment"], json!({"E": "e", "Z": "z"}));
    assert!(!case.render().1.yaml.contains("extends"));
}

#[test]
fn extends_that_cannot_be_followed_is_refused() {
    let cases = [
        ("services: {a: {extends: b}, b: {extends: a}}", "circle"),
        ("services: {a: {extends: a}}", "circle"),
        ("services: {a: {image: i, extends: nobody}}", "no service `nobody`"),
        ("services: {a: {image: i, extends: {file: ../o.yml, service: x}}}", "outside the workspace"),
        ("services: {a: {image: i, extends: {file: out.yml, service: x}}}", "goes through the link"),
        ("services: {a: {image: i, extends: {file: gone.yml, service: x}}}", "is not in the workspace"),
        ("services: {a: {image: i, extends: {}}}", "name the service"),
        ("services: {a: {image: i, extends: {file: f.yml, service: x}}}", "a privileged container"),
    ];
    for (text, want) in cases {
        let refusals =
            Case::new(text).link("out.yml", "/etc/x.yml").file("f.yml", "services: {x: {privileged: true}}").refusals();
        assert!(refusals.iter().any(|refusal| refusal.message.contains(want)), "{text}: {refusals:?}");
    }
}

#[test]
fn include_is_resolved_with_its_own_folder_and_variables() {
    let case = Case::new("include: [sub/db.yml]\nservices: {web: {image: a, depends_on: [db]}}")
        .file("sub/db.yml", "services: {db: {image: 'pg:${V}', volumes: ['./d:/d', 'data:/e']}}\nvolumes: {data: }")
        .file("sub/.env", "V=9")
        .file("sub/d/x", "");
    let (file, rendered) = case.render();
    assert_eq!(file["services"]["db"]["image"], "pg:9");
    assert_eq!(file["services"]["db"]["volumes"][0], "/x/sbx-a1b2c3d4/workspace/sub/d:/d");
    assert!(file["volumes"]["data"]["labels"].is_object() && file.get("include").is_none());
    assert_eq!(rendered.services.len(), 2);
    for (include, want) in [
        ("['../x.yml']", "outside"),
        ("['gone.yml']", "not in the workspace"),
        ("['docker-compose.yml']", "circle"),
        ("[{path: [a, b]}]", "exactly one"),
        ("[sub/db.yml]", ""),
    ] {
        let case = Case::new(&format!("include: {include}\nservices: {{db: {{image: other}}}}"))
            .file("sub/db.yml", "services: {db: {image: pg}}");
        assert!(case.try_render().unwrap_err().to_string().contains(want), "{include}");
    }
}

#[test]
fn services_with_a_profile_are_left_out_unless_enabled() {
    let text = "services: {web: {image: a}, tool: {image: b, profiles: [debug]}}";
    let (file, rendered) = Case::new(text).render();
    assert!(file["services"].get("tool").is_none());
    assert_eq!(rendered.services.len(), 1);
    assert_eq!(rendered.rewrites[0].path, "services.tool");
    let (file, _) = Case::new(text).file(".env", "COMPOSE_PROFILES=x,debug").render();
    assert!(file["services"]["tool"].get("profiles").is_none());
    let refusals =
        Case::new("services: {web: {image: a, depends_on: [tool]}, tool: {image: b, profiles: [debug]}}").refusals();
    assert!(refusals[0].message.contains("COMPOSE_PROFILES"));
    Case::new("services: {web: {image: a, depends_on: {tool: {condition: service_started, required: false}}}, tool: {image: b, profiles: [debug]}}").render();
}

#[test]
fn plans_say_what_is_expected_to_run() {
    let case = Case::new(
        "services:\n  migrate: {image: m}\n  web: {image: w, restart: always, deploy: {replicas: 3}, healthcheck: {test: x}, ports: ['80', '53/udp'], depends_on: {migrate: {condition: service_completed_successfully}}}\n  none: {image: n, scale: 0, healthcheck: {test: [NONE]}}\n  off: {image: n, healthcheck: {test: x, disable: true}}\n",
    );
    let (file, rendered) = case.render();
    let shown: Vec<_> = rendered
        .services
        .iter()
        .map(|plan| {
            (
                plan.name.as_str(),
                plan.replicas,
                plan.has_healthcheck,
                plan.restart.as_str(),
                plan.one_shot,
                plan.ports.len(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("migrate", 1, false, "no", true, 0),
            ("web", 3, true, "always", false, 2),
            ("none", 0, false, "no", false, 0),
            ("off", 1, false, "no", false, 0)
        ]
    );
    assert_eq!(
        (&file["services"]["web"]["scale"], &file["services"]["none"]["deploy"]["replicas"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(rendered.images, ["m", "n", "w"]);
    assert!(Case::web("scale: 100000").refusals()[0].message.contains("from 0 to 64"));
}

#[test]
fn built_images_belong_to_the_sandbox() {
    let case = Case::new(
        "services: {web: {build: ., image: 'app:dev'}, worker: {image: 'app:dev'}, db: {image: pg}, plain: {build: {context: ., tags: [x]}}}",
    );
    let (file, rendered) = case.render();
    assert_eq!(
        (&file["services"]["web"]["image"], &file["services"]["worker"]["image"]),
        (&json!("sbx-a1b2c3d4-web"), &json!("sbx-a1b2c3d4-web"))
    );
    assert_eq!(file["services"]["plain"]["image"], "sbx-a1b2c3d4-plain");
    assert_eq!(rendered.images, ["pg"]);
    assert_eq!(rendered.rewrites.len(), 3, "{:?}", rendered.rewrites);
}

#[test]
fn podman_compose_1_0_gets_what_it_can_read() {
    let mut case = Case::web(
        "container_name: c\nsysctls: {a: 1}\nextra_hosts: {h: 1.2.3.4}\ntty: 'false'\ncommand: [sleep, 30]\nblkio_config:\n",
    );
    case.dialect = Dialect::Narrow;
    let web = case.web_service();
    assert_eq!(web["networks"], json!(["default"]));
    assert_eq!(
        (&web["sysctls"], &web["extra_hosts"], &web["tty"], &web["command"]),
        (&json!(["a=1"]), &json!(["h:1.2.3.4"]), &json!(false), &json!(["sleep", "30"]))
    );
    assert!(web.get("blkio_config").is_none());
    let mut case = Case::web("network_mode: none");
    case.dialect = Dialect::Narrow;
    assert!(case.refusals()[0].message.contains("podman-compose 1.0"));
    // It stops at a network that no service uses.
    let (file, _) = Case::new("services: {web: {image: a, networks: [n]}}\nnetworks: {n: , unused: }").render();
    assert_eq!(file["networks"].as_object().unwrap().keys().collect::<Vec<_>>(), ["n"]);
}

#[test]
fn the_shared_bridge_is_replaced_and_host_networking_publishes_nothing() {
    let case = Case::web("network_mode: bridge\nports: ['80']");
    assert_eq!(case.web_service()["networks"], json!(["default"]));
    let web = Case::web("network_mode: host\nports: ['80']").allow(&[Allowance::HostNetwork]).web_service();
    assert!(web.get("ports").is_none() && web.get("networks").is_none() && web["network_mode"] == "host");
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
        let body = if body.starts_with("image") { body.to_owned() } else { format!("image: a\n{body}") };
        let text = format!("services:\n  web:\n    {}\n", body.replace('\n', "\n    "));
        let refusals = Case::new(&text).refusals();
        assert!(refusals.iter().any(|refusal| refusal.message.contains(want)), "{body}: {refusals:?}");
    }
}

#[test]
fn files_that_are_no_compose_files_say_so() {
    let cases = [
        ("", "it is empty"),
        ("   \n", "it is empty"),
        ("42", "not a mapping"),
        ("- a", "not a mapping"),
        ("services:", "no service is defined"),
        ("services: 1", "a mapping from names"),
        ("services: {web: }", "neither an image nor a build"),
        ("services: {web: 1}", "a service is a mapping"),
        ("services: {-x: {image: a}}", "a service's name"),
        ("services: {'a b': {image: a}}", "a service's name"),
        ("web: {image: a}", "unknown key `web`"),
        ("services: {web: {image: a}}\nvolumes: [a]", "`volumes` is a mapping"),
        ("services: {web: {image: a}}\nnetworks: {n: 1}", "it is a mapping"),
        ("services: {web: {image: a}}\nvolumes: {v: {sise: 1}}", "unknown key"),
        ("a: [", "line 1"),
        ("a: 1\na: 2", "line 2 column 1"),
    ];
    for (text, want) in cases {
        let error = Case::new(text).try_render().expect_err(text).to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn a_missing_file_names_the_one_that_is_there() {
    let mut case = Case::new("");
    case.files = vec![("sub/compose.yaml".into(), String::new()), ("compose.yml".into(), String::new())];
    assert!(case.try_render().unwrap_err().to_string().contains("did you mean compose.yml?"));
    case.file = "sub/docker-compose.yml".into();
    assert!(case.try_render().unwrap_err().to_string().contains("did you mean sub/compose.yaml?"));
    case.file = "other/x.yml".into();
    assert!(case.try_render().unwrap_err().to_string().contains("name one with the input"));
}

#[test]
fn the_compose_file_itself_must_be_inside() {
    for file in ["../x.yml", "/etc/x.yml", "", "a/../../x", "link.yml", "up/x.yml", "a\nb", "sub"] {
        let mut case =
            Case::new("services: {web: {image: a}}").link("link.yml", "../x.yml").link("up", "..").file("sub/x", "");
        case.file = file.into();
        assert!(matches!(case.try_render(), Err(RenderError::Outside { .. })), "{file}");
    }
}

#[test]
fn a_dotenv_that_points_out_is_refused() {
    let refusals = Case::web("").link(".env", "/root/.aws/credentials").refusals();
    assert_eq!(refusals[0].path, ".env");
}

#[test]
fn what_pyyaml_cannot_read_is_escaped() {
    let case = Case::web("environment: {A: \"x\\u007f\\u0085\\u2028\\ufeff\\U0001F600\\0\"}");
    let text = case.render().1.yaml;
    assert!(text.contains(r"x\u007f\u0085\u2028\ufeff😀\u0000"), "{text}");
}

#[test]
fn an_override_file_is_mentioned_and_left_alone() {
    let case = Case::web("").file("docker-compose.override.yml", "services: {web: {privileged: true}}");
    assert_eq!(
        case.rewrites(),
        ["docker-compose.override.yml: is not read: a sandbox starts the named compose file alone"]
    );
}

#[test]
fn a_single_mount_or_file_may_stand_without_a_list() {
    let web = Case::web("volumes: './d:/d'\ntmpfs: /t").file("d/x", "").web_service();
    assert_eq!(web["volumes"], json!(["/x/sbx-a1b2c3d4/workspace/d:/d"]));
}

#[test]
fn a_project_is_bounded() {
    let many: String = (0..501).map(|n| format!("  s{n}: {{image: a}}\n")).collect();
    assert!(Case::new(&format!("services:\n{many}")).refusals()[0].message.contains("at most 500"));
    let big = "# ".repeat(500_000);
    let files: Vec<_> = (0..40).map(|n| format!("f{n}.env")).collect();
    let mut case = Case::new(&format!(
        "services: {{a: {{image: a, env_file: [{}]}}, b: {{image: a, env_file: [{}]}}}}",
        files[..20].join(","),
        files[20..].join(",")
    ));
    for file in &files {
        case = case.file(file, &big);
    }
    assert!(matches!(case.try_render(), Err(RenderError::TooLarge { .. })));
}

#[test]
fn rendering_twice_gives_the_same_file() {
    let case = Case::web("ports: ['80']\nenvironment: {B: 1, A: 2}\nvolumes: ['.:/x']");
    assert_eq!(case.render().1, case.render().1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_it_panic(text in "[a-z:\\- \n{}\\[\\]'\"&*$#|>!~.0-9]{0,200}") {
        let _ = Case::new(&text).try_render();
    }

    #[test]
    fn no_service_makes_it_panic(key in prop::sample::select(super::keys::SERVICE), value in value(3)) {
        let text = json!({"services": {"web": {"image": "a", key: value.clone()}, "x": {"extends": "web"}}, "volumes": {"v": value.clone()}, "networks": {"n": value.clone()}, "secrets": {"s": value}});
        let _ = Case::new(&text.to_string()).try_render();
    }
}

fn value(depth: u32) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z./:~$=\\-]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["bind", "type", "/x", "service:web", "80:80"]).prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "type",
        "source",
        "target",
        "file",
        "path",
        "name",
        "external",
        "context",
        "driver_opts",
        "o",
        "device",
        "test",
        "a",
        "environment",
        "service",
    ]);
    leaf.prop_recursive(depth, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
        ]
    })
}
