//! Words that each compose tool is given where it reads less than Docker's own.

use super::*;
use crate::domain::facts::{Flavour, Runtime};

fn with(dialect: Dialect, body: &str) -> Case {
    Case { dialect, ..Case::web(body) }
}

#[test]
fn a_runtime_has_its_dialect() {
    let runtime = |flavour, version: &str| Runtime {
        flavour,
        version: version.into(),
        command: vec!["compose".into()],
        engine: "docker".into(),
        engine_version: None,
        engine_id: None,
        rootless: false,
        chosen: "detected".into(),
        podman_behind: false,
    };
    for (flavour, version, dialect) in [
        (Flavour::DockerComposeV2, "2.26.1", Dialect::Full),
        (Flavour::DockerComposeV2, "5.6.1", Dialect::Full),
        (Flavour::DockerComposeV1, "1.29.2", Dialect::V1),
        (Flavour::PodmanCompose, "1.0.3", Dialect::Narrow),
        (Flavour::PodmanCompose, "0.1.11", Dialect::Narrow),
        (Flavour::PodmanCompose, "1.6.0", Dialect::Podman),
        (Flavour::PodmanCompose, "1.10.0", Dialect::Podman),
    ] {
        assert_eq!(Dialect::of(&runtime(flavour, version)), dialect, "{version}");
    }
}

#[test]
fn what_a_tool_ignores_is_said() {
    let body = "pids_limit: 50\nattach: false\noom_score_adj: 5\ndomainname: d\ndns: [9.9.9.9]";
    for (dialect, said) in [
        (Dialect::Full, &[][..]),
        (Dialect::V1, &[]),
        (Dialect::Podman, &["oom_score_adj", "domainname"]),
        (Dialect::Narrow, &["pids_limit", "oom_score_adj", "domainname", "dns"]),
    ] {
        let case = with(dialect, body);
        let found = case.rewrites();
        assert_eq!(found.len(), said.len(), "{dialect:?}: {found:?}");
        for key in said {
            assert!(
                found
                    .iter()
                    .any(|line| line.starts_with(&format!("services.web.{key}: is left out"))),
                "{found:?}"
            );
            assert!(case.web_service().get(*key).is_none());
        }
    }
    assert!(
        with(Dialect::V1, body).web_service().get("attach").is_none(),
        "docker-compose 1.29 stops at it"
    );
}

#[test]
fn what_a_service_cannot_do_without_is_refused() {
    for (dialect, body) in [
        (Dialect::V1, "configs: [c]"),
        (Dialect::Podman, "configs: [c]"),
        (Dialect::Narrow, "configs: [c]"),
        (Dialect::V1, "post_start: [{command: [x]}]"),
        (Dialect::Narrow, "pre_stop: [{command: [x]}]"),
    ] {
        let mut case = with(dialect, body).file("c.txt", "c");
        case.files[0].1.push_str("configs: {c: {file: ./c.txt}}\n");
        let refusals = case.refusals();
        assert_eq!(refusals.len(), 1, "{dialect:?} {body}: {refusals:?}");
        assert!(refusals[0].message.contains("compose"), "it names the tool: {refusals:?}");
        assert!(refusals[0].place.is_some());
    }
}

#[test]
fn docker_compose_1_29_gets_the_words_of_its_time() {
    let web = with(
        Dialect::V1,
        "pull_policy: missing\ndeploy: {replicas: 2, resources: {limits: {cpus: '0.5', memory: 64M, pids: 9}}}\n\
         volumes: [{type: bind, source: ./d, target: /d, bind: {create_host_path: true}}]\n\
         healthcheck: {test: [CMD, x], start_interval: 1s}",
    )
    .file("d/x", "")
    .web_service();
    assert_eq!(web["pull_policy"], "if_not_present");
    assert_eq!(
        (&web["scale"], web["deploy"].get("replicas")),
        (&json!(2), None),
        "it stops where both are set"
    );
    assert_eq!(
        (&web["cpus"], &web["mem_limit"], &web["pids_limit"]),
        (&json!(0.5), &json!("64M"), &json!(9))
    );
    assert_eq!(web["volumes"][0]["bind"], json!({}));
    assert!(web["healthcheck"].get("start_interval").is_none());
    let mut case = Case::new(
        "services:\n  a: {image: x, depends_on: {b: {condition: service_healthy, required: true, restart: true}}}\n  b: {image: x}\n",
    );
    case.dialect = Dialect::V1;
    assert_eq!(
        case.render().0["services"]["a"]["depends_on"],
        json!({"b": {"condition": "service_healthy"}})
    );
    assert!(
        case.rewrites()[0].starts_with("services.a.depends_on.b.restart: "),
        "{:?}",
        case.rewrites()
    );
}

#[test]
fn what_docker_starts_again_stays_stopped_when_it_was_stopped() {
    for dialect in [Dialect::Full, Dialect::V1, Dialect::Podman, Dialect::Narrow] {
        let docker = matches!(dialect, Dialect::Full | Dialect::V1);
        let case = with(dialect, "restart: always");
        assert_eq!(
            case.web_service()["restart"],
            if docker { "unless-stopped" } else { "always" },
            "{dialect:?}"
        );
        let said = case
            .rewrites()
            .iter()
            .any(|line| line.starts_with("services.web.restart: `always` became"));
        assert_eq!(said, docker, "{dialect:?}");
        for restart in ["on-failure:3", "unless-stopped", "'no'"] {
            let case = with(dialect, &format!("restart: {restart}"));
            assert_eq!(case.web_service()["restart"], restart.trim_matches('\''));
            assert_eq!(case.rewrites(), [""; 0], "{dialect:?} {restart}");
        }
    }
    let policy = "deploy: {replicas: 2, restart_policy: {condition: any, delay: 1s}}";
    let case = with(Dialect::Full, policy);
    let web = case.web_service();
    assert_eq!(
        web["deploy"]["restart_policy"],
        json!({"condition": "unless-stopped", "delay": "1s"})
    );
    assert!(
        case.rewrites()[0]
            .starts_with("services.web.deploy.restart_policy.condition: `any` became")
    );
    let web = with(Dialect::V1, policy).web_service();
    assert_eq!(
        (&web["restart"], web["deploy"].get("restart_policy")),
        (&json!("unless-stopped"), None)
    );
    let web =
        with(Dialect::Full, "deploy: {restart_policy: {condition: on-failure}}").web_service();
    assert_eq!(web["deploy"]["restart_policy"]["condition"], "on-failure");
}

#[test]
fn podman_compose_1_0_waits_for_nothing_and_makes_plain_volumes() {
    let text = |options: &str| {
        let mut case = Case::new(&format!(
            "services:\n  a: {{image: x, depends_on: {{b: {{condition: service_healthy}}}}, volumes: ['v:/v']}}\n  b: {{image: x}}\nvolumes: {{v: {{driver_opts: {options}}}}}\n"
        ))
        .file("d/x", "")
        .allow(&[Allowance::BindMounts, Allowance::External]);
        case.dialect = Dialect::Narrow;
        case
    };
    let memory = text("{type: tmpfs, device: tmpfs, o: size=1m}");
    assert!(memory.render().0["volumes"]["v"].get("driver_opts").is_none());
    assert_eq!(
        memory.rewrites().len(),
        2,
        "the condition and the options: {:?}",
        memory.rewrites()
    );
    for elsewhere in ["{type: none, o: bind, device: ./d}", "{type: nfs, device: ':/x', o: addr=h}"]
    {
        assert!(text(elsewhere).refusals()[0].message.contains("empty volume"), "{elsewhere}");
    }
}
