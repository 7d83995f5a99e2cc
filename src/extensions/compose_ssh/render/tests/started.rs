//! Things that start at all, from which images, and with which volumes; and what never would.

use super::*;

const DIALECTS: [Dialect; 4] = [Dialect::Full, Dialect::V1, Dialect::Podman, Dialect::Narrow];

/// File of `tests/cases`, for a host with this compose.
fn case(name: &str, dialect: Dialect) -> Case {
    let folder = format!("{}/tests/cases/{name}", env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let mut case = Case::new(&read("docker-compose.yml"));
    case.dialect = dialect;
    if std::path::Path::new(&folder).join("Dockerfile").exists() {
        case.file("Dockerfile", &read("Dockerfile"))
    } else {
        case
    }
}

#[test]
fn what_could_never_start_is_refused_whatever_the_host() {
    for dialect in DIALECTS {
        let refusals = case("cycle", dialect).refusals();
        assert_eq!(refusals.len(), 1, "{dialect:?}: {refusals:?}");
        assert!(refusals[0].message.contains("a → b → a"), "{refusals:?}");
        assert!(refusals[0].place.is_some(), "{refusals:?}");
        let refusals = case("only-profiles", dialect).refusals();
        assert_eq!(refusals.len(), 1, "{dialect:?}: {refusals:?}");
        assert!(
            refusals[0].message.contains("COMPOSE_PROFILES in .env, to one of x"),
            "{refusals:?}"
        );
        let enabled = case("only-profiles", dialect).file(".env", "COMPOSE_PROFILES=x\n");
        assert!(enabled.render().0["services"]["a"].is_object());
        // A configuration is a file that only podman-compose cannot give it; docker-compose 1.29 neither.
        let configs = case("podman-configs", dialect);
        match dialect {
            Dialect::Full => assert!(configs.render().0["configs"]["c"].is_object()),
            _ => assert_eq!(configs.refusals()[0].path, "services.web.configs", "{dialect:?}"),
        }
    }
}

#[test]
fn circles_are_found_over_everything_that_one_service_wants_of_another() {
    for (a, b, c, circle) in [
        ("depends_on: [a]", "", "", "a → a"),
        (
            "depends_on: {b: {condition: service_healthy}}",
            "links: ['c:x']",
            "network_mode: 'service:a'",
            "a → b → c → a",
        ),
        ("depends_on: [b, c]", "depends_on: [c]", "", ""),
        ("", "depends_on: [c]", "depends_on: [b]", "b → c → b"),
    ] {
        let text = format!(
            "services:\n  a: {{image: x, {a}}}\n  b: {{image: x, {b}}}\n  c: {{image: x, {c}}}\n"
        );
        let case = Case::new(&text.replace(", }", "}"));
        if circle.is_empty() {
            case.render();
        } else {
            let refusals = case.refusals();
            assert_eq!(refusals.len(), 1, "{text}: {refusals:?}");
            assert!(refusals[0].message.contains(&format!(": {circle};")), "{text}: {refusals:?}");
        }
    }
}

#[test]
fn what_is_built_is_looked_for_nowhere() {
    for dialect in DIALECTS {
        let web = case("build-is-pulled", dialect).web_service();
        assert_eq!(
            (&web["pull_policy"], web["image"].as_str().is_some_and(|name| name.ends_with(":web"))),
            (&json!("build"), true)
        );
        let mut both = Case::new(
            "services:\n  a: {build: ., image: app, pull_policy: always}\n  b: {image: app}\n  c: {image: other, pull_policy: always}\n",
        );
        both.dialect = dialect;
        let both = both.file("Dockerfile", "FROM x\n");
        let services = both.render().0["services"].clone();
        let policies = ["a", "b", "c"].map(|name| services[name]["pull_policy"].clone());
        assert_eq!(policies, [json!("build"), json!("never"), json!("always")], "{dialect:?}");
        assert!(
            both.rewrites()
                .iter()
                .any(|line| line.starts_with("services.a.pull_policy: `always` became `build`"))
        );
    }
}

#[test]
fn a_volume_without_a_name_has_one_where_podman_compose_would_make_one_that_is_nobodys() {
    for dialect in DIALECTS {
        let podman = matches!(dialect, Dialect::Podman | Dialect::Narrow);
        let (file, _) = case("anonymous-volume-podman", dialect).render();
        let mounts = &file["services"]["app"]["volumes"];
        assert_eq!(
            mounts,
            &if podman { json!(["app_cache:/cache"]) } else { json!(["/cache"]) },
            "{dialect:?}"
        );
        assert_eq!(
            file["volumes"]["app_cache"]["labels"]["sandboxer.id"].is_string(),
            podman,
            "{dialect:?}"
        );
    }
    let mut case = Case::web(
        "volumes: ['/a/b', '/a-b:ro', named:/n, ./d:/d, {type: volume, target: /l}, {type: tmpfs, target: /t}]",
    )
    .file("d/x", "");
    case.files[0].1.push_str("volumes: {named: {}, web_a-b: {}}\n");
    case.dialect = Dialect::Narrow;
    let (file, _) = case.render();
    let mounts = file["services"]["web"]["volumes"].as_array().unwrap();
    assert_eq!(
        (&mounts[0], &mounts[1], &mounts[2]),
        (&json!("web_a-b-2:/a/b"), &json!("web_a-b-3:/a-b:ro"), &json!("named:/n"))
    );
    assert_eq!(mounts[4]["source"], "web_l");
    let names: Vec<&str> =
        file["volumes"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["named", "web_a-b", "web_a-b-2", "web_a-b-3", "web_l"]);
    assert!(
        case.rewrites()
            .iter()
            .any(|line| line.starts_with("services.web.volumes[0]: `/a/b` is the volume"))
    );
}
