//! Whole renderings: what goes in, what comes out, what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::ports::ContainerPort;
use super::refusal::Refusal;
use super::*;
use crate::domain::profile::Compose;

mod cases;
mod dialects;
mod files;
mod on_hosts;
mod options;
mod projects;
mod refusals;
mod replaced;
mod started;

struct Case {
    files: Vec<(String, String)>,
    links: Vec<(String, String)>,
    compose: Compose,
    variables: BTreeMap<String, String>,
    file: Option<String>,
    dialect: Dialect,
    host: HostContext,
}

impl Case {
    fn new(compose: &str) -> Self {
        Self {
            files: vec![("docker-compose.yml".into(), compose.into())],
            links: Vec::new(),
            compose: Compose::default(),
            variables: BTreeMap::new(),
            file: None,
            dialect: Dialect::Full,
            host: HostContext::default(),
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
            tree.insert(path, Entry::File, content.as_bytes());
        }
        for (path, to) in &self.links {
            tree.insert(path, Entry::Link(to.clone()), "");
        }
        let host = HostContext { dialect: self.dialect, ..self.host.clone() };
        let input = RenderInput {
            sandbox_id: "a1b2c3d4",
            owner: "own-1",
            profile_id: "profile.compose-e2e",
            workdir: "/x/sbx-a1b2c3d4/workspace",
            compose_file: self.file.as_deref(),
            compose: &self.compose,
            variables: &self.variables,
            host: &host,
        };
        render(&tree, &input, &mut Vec::new())
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
        self.render()
            .1
            .rewrites
            .iter()
            .map(|rewrite| format!("{}: {}", rewrite.path, rewrite.what))
            .collect()
    }
}

fn word(refusal: &Refusal) -> Option<&str> {
    refusal.allow.as_ref().map(Allowance::as_str)
}

#[test]
fn a_plain_file_is_labelled_and_gets_its_network_spelled_out() {
    let (file, rendered) = Case::new(
        "services:\n  web:\n    image: nginx\n    ports: ['8080:80']\nvolumes:\n  data:\n",
    )
    .render();
    let ours = json!({"sandboxer.id": "a1b2c3d4", "sandboxer.owner": "own-1", "sandboxer.profile": "profile.compose-e2e"});
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
        needs: BTreeMap::new(),
    };
    assert_eq!(rendered.services, [plan]);
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
        rewrites
            .iter()
            .any(|line| line.starts_with("services.web.environment.PATH: `PATH` has no value")),
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
    let refusals = Case::web("command: ${A:?tell me}\nhostname: ${1}\nprivileged: true").refusals();
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
    let refusals =
        Case::web("env_file: [gone.env, bad.env]").file("bad.env", "A=1\nthis is wrong").refusals();
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
        [
            "name",
            "services.web.container_name",
            "services.db.container_name",
            "networks.n.name",
            "volumes.v.name"
        ]
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
            ("web", 3, true, "unless-stopped", false, 2),
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
        (&json!("sbx-a1b2c3d4-built:web"), &json!("sbx-a1b2c3d4-built:web"))
    );
    assert_eq!(file["services"]["plain"]["image"], "sbx-a1b2c3d4-built:plain");
    assert_eq!(rendered.images, ["pg"]);
    assert_eq!(rendered.rewrites.len(), 3, "{:?}", rendered.rewrites);
}

#[test]
fn podman_compose_1_0_gets_what_it_can_read() {
    let mut case = Case::web(
        "container_name: c\nsysctls: {net.a: 1}\nextra_hosts: {h: 1.2.3.4}\ntty: 'false'\ncommand: [sleep, 30]\nblkio_config:\n",
    );
    case.dialect = Dialect::Narrow;
    let web = case.web_service();
    assert_eq!(web["networks"], json!(["default"]));
    assert_eq!(
        (&web["sysctls"], &web["extra_hosts"], &web["tty"], &web["command"]),
        (&json!(["net.a=1"]), &json!(["h:1.2.3.4"]), &json!(false), &json!(["sleep", "30"]))
    );
    assert!(web.get("blkio_config").is_none());
    let mut case = Case::web("network_mode: none");
    case.dialect = Dialect::Narrow;
    assert!(case.refusals()[0].message.contains("podman-compose 1.0"));
    // It stops at a network that no service uses.
    let (file, _) =
        Case::new("services: {web: {image: a, networks: [n]}}\nnetworks: {n: , unused: }").render();
    assert_eq!(file["networks"].as_object().unwrap().keys().collect::<Vec<_>>(), ["n"]);
}

#[test]
fn the_shared_bridge_is_replaced_and_host_networking_publishes_nothing() {
    let case = Case::web("network_mode: bridge\nports: ['80']");
    assert_eq!(case.web_service()["networks"], json!(["default"]));
    let web = Case::web("network_mode: host\nports: ['80']")
        .allow(&[Allowance::HostNetwork])
        .web_service();
    assert!(
        web.get("ports").is_none()
            && web.get("networks").is_none()
            && web["network_mode"] == "host"
    );
}

#[test]
fn what_pyyaml_cannot_read_is_escaped() {
    let case = Case::web("environment: {A: \"x\\u007f\\u0085\\u2028\\ufeff\\U0001F600\\0\"}");
    let text = case.render().1.yaml;
    assert!(text.contains(r"x\u007f\u0085\u2028\ufeff😀\u0000"), "{text}");
}

#[test]
fn a_single_mount_or_file_may_stand_without_a_list() {
    let web = Case::web("volumes: './d:/d'\ntmpfs: /t").file("d/x", "").web_service();
    assert_eq!(web["volumes"], json!(["/x/sbx-a1b2c3d4/workspace/d:/d"]));
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
    fn no_service_makes_it_panic(key in prop::sample::select(super::shapes::Section::Service.keys()), value in value(3)) {
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
        prop::sample::select(vec!["bind", "type", "/x", "service:web", "80:80"])
            .prop_map(Value::from),
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
            prop::collection::vec((key.clone(), inner), 0..4).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}
