//! Small repositories that real compose files led to (`tests/cases`), for each tool.

use super::*;

const DIALECTS: [Dialect; 4] = [Dialect::Full, Dialect::V1, Dialect::Podman, Dialect::Narrow];

/// The case as it is rendered for each tool.
fn each(name: &str, file: Option<&str>, mut judge: impl FnMut(Dialect, &Value, &Rendered)) {
    let tree = LocalTree::new(format!("{}/tests/cases/{name}", env!("CARGO_MANIFEST_DIR")));
    for dialect in DIALECTS {
        let podman = matches!(dialect, Dialect::Podman | Dialect::Narrow);
        let host = HostContext { dialect, podman, ..HostContext::default() };
        let input = RenderInput {
            sandbox_id: "a1b2c3d4",
            owner: "own-1",
            profile_id: "profile.compose-e2e",
            workdir: "/x/sbx-a1b2c3d4/workspace",
            compose_file: file,
            compose: &Compose::default(),
            variables: &BTreeMap::new(),
            host: &host,
        };
        let rendered = render(&tree, &input, &mut Vec::new())
            .unwrap_or_else(|error| panic!("{name} {dialect:?}: {error}"));
        let project: Value =
            serde_json::from_str(rendered.yaml.split_once('\n').unwrap().1).unwrap();
        judge(dialect, &project, &rendered);
        // A recreate judges it once more.
        judge_rendered(&rendered.yaml, &input)
            .unwrap_or_else(|error| panic!("{name} {dialect:?} again: {error}"));
    }
}

fn services(rendered: &Rendered) -> Vec<&str> {
    rendered.services.iter().map(|plan| plan.name.as_str()).collect()
}

#[test]
fn several_files_are_one_project() {
    each("two-files", Some("docker-compose.yml,extra.yml"), |_, _, rendered| {
        assert_eq!(services(rendered), ["web", "worker"]);
    });
    each("compose-file-in-dotenv", None, |_, _, rendered| {
        assert_eq!(services(rendered), ["web", "db"]);
    });
    each("compose-yaml-name", None, |_, _, rendered| assert_eq!(services(rendered), ["web"]));
    each("include-override", None, |_, project, _| {
        let db = &project["services"]["db"];
        assert_eq!(
            (&db["image"], &db["environment"]),
            (&json!("lab/box:1"), &json!({"TZ": "UTC"}))
        );
    });
    each("override-tag", None, |_, project, _| {
        assert_eq!(project["services"]["web"]["ports"], json!(["127.0.0.1::81"]));
    });
}

#[test]
fn a_dollar_that_begins_no_variable_stays() {
    each("dollar", None, |_, project, rendered| {
        let want = json!({"RE": "^a$$", "HASH": "$$2b$$10"});
        assert_eq!(project["services"]["web"]["environment"], want);
        assert!(
            rendered.rewrites.iter().any(|rewrite| rewrite.what.contains("`xyz`")),
            "{:?}",
            rendered.rewrites
        );
    });
}

#[test]
fn default_capabilities_are_kept() {
    each("default-caps", None, |_, project, _| {
        let web = &project["services"]["web"];
        assert_eq!(web["cap_add"], json!(["NET_BIND_SERVICE", "CHOWN", "SETUID", "SETGID"]));
        assert_eq!(web["cap_drop"], json!(["ALL"]));
    });
}

#[test]
fn the_clock_of_the_host_is_read() {
    each("localtime", None, |dialect, project, _| {
        let mut want = json!({"type": "bind", "source": "/etc/localtime", "target": "/etc/localtime", "read_only": true, "bind": {"create_host_path": false}});
        if dialect == Dialect::V1 {
            want["bind"] = json!({});
        }
        assert_eq!(project["services"]["web"]["volumes"], json!([want]));
    });
}

#[test]
fn a_secret_is_what_dotenv_says() {
    each("secret-from-dotenv", None, |_, project, rendered| {
        assert_eq!(project["secrets"], json!({"tok": {"file": "/x/sbx-a1b2c3d4/secret.tok"}}));
        assert_eq!(rendered.secrets, BTreeMap::from([("secret.tok".to_owned(), "one".to_owned())]));
    });
}
