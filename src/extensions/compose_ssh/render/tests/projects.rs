//! Projects of several files, and files that are none.

use super::*;

#[test]
fn paths_are_relative_to_the_compose_files_folder() {
    let mut case = Case::new("")
        .file(
            "deploy/stack.yml",
            "services: {web: {image: a, volumes: ['.:/a', '../src:/b'], environment: [A, B]}}",
        )
        .file("src/x", "")
        .file(".env", "A=root\nB=root")
        .file("deploy/.env", "A=near");
    case.file = Some("./deploy/stack.yml".into());
    let web = case.web_service();
    assert_eq!(
        web["volumes"],
        json!(["/x/sbx-a1b2c3d4/workspace/deploy:/a", "/x/sbx-a1b2c3d4/workspace/src:/b"])
    );
    assert_eq!(web["environment"], json!({"A": "near", "B": "root"}));
}

#[test]
fn extends_merges_from_this_file_and_others() {
    let case = Case::new("services:\n  base: {image: a, environment: [A=1, B=1], ports: ['80']}\n  web: {extends: base, environment: {B: 2}, ports: ['81'], command: x}\n  api: {extends: {file: sub/common.yml, service: c}, environment: {Z: z}}\n")
        .file("sub/common.yml", "services:\n  c: {extends: d, volumes: ['./here:/h'], env_file: e.env}\n  d: {image: deep}\n").file("sub/e.env", "E=e").file("sub/here/x", "");
    let (file, _) = case.render();
    assert_eq!(file["services"]["web"]["environment"], json!({"A": "1", "B": "2"}));
    assert_eq!(file["services"]["web"]["ports"], json!(["127.0.0.1::80", "127.0.0.1::81"]));
    let api = &file["services"]["api"];
    assert_eq!(
        (&api["image"], &api["volumes"]),
        (&json!("deep"), &json!(["/x/sbx-a1b2c3d4/workspace/sub/here:/h"]))
    );
    assert_eq!(api["environment"], json!({"E": "e", "Z": "z"}));
    assert!(!case.render().1.yaml.contains("extends"));
}

#[test]
fn extends_that_cannot_be_followed_is_refused() {
    let cases = [
        ("services: {a: {extends: b}, b: {extends: a}}", "circle"),
        ("services: {a: {extends: a}}", "circle"),
        ("services: {a: {image: i, extends: nobody}}", "no service `nobody`"),
        (
            "services: {a: {image: i, extends: {file: ../o.yml, service: x}}}",
            "outside the workspace",
        ),
        (
            "services: {a: {image: i, extends: {file: out.yml, service: x}}}",
            "goes through the link",
        ),
        (
            "services: {a: {image: i, extends: {file: gone.yml, service: x}}}",
            "is not in the workspace",
        ),
        ("services: {a: {image: i, extends: {}}}", "name the service"),
        ("services: {a: {image: i, extends: {file: f.yml, service: x}}}", "a privileged container"),
    ];
    for (text, want) in cases {
        let refusals = Case::new(text)
            .link("out.yml", "/etc/x.yml")
            .file("f.yml", "services: {x: {privileged: true}}")
            .refusals();
        assert!(
            refusals.iter().any(|refusal| refusal.message.contains(want)),
            "{text}: {refusals:?}"
        );
    }
}

#[test]
fn include_is_resolved_with_its_own_folder_and_variables() {
    let case = Case::new("include: [sub/db.yml]\nservices: {web: {image: a, depends_on: [db]}}")
        .file(
            "sub/db.yml",
            "services: {db: {image: 'pg:${V}', volumes: ['./d:/d', 'data:/e']}}\nvolumes: {data: }",
        )
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
        ("[{path: []}]", "name a file"),
        ("[{path: [sub/db.yml, {a: b}]}]", "name a file"),
        ("[{path: [sub/db.yml, docker-compose.yml]}]", "circle"),
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
    let refusals = Case::new(
        "services: {web: {image: a, depends_on: [tool]}, tool: {image: b, profiles: [debug]}}",
    )
    .refusals();
    assert!(refusals[0].message.contains("COMPOSE_PROFILES"));
    Case::new("services: {web: {image: a, depends_on: {tool: {condition: service_started, required: false}}}, tool: {image: b, profiles: [debug]}}").render();
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
    case.files =
        vec![("sub/compose.yaml".into(), String::new()), ("compose.yml".into(), String::new())];
    case.file = Some("docker-compose.yml".into());
    assert!(case.try_render().unwrap_err().to_string().contains("did you mean compose.yml?"));
    case.file = Some("sub/docker-compose.yml".into());
    assert!(case.try_render().unwrap_err().to_string().contains("did you mean sub/compose.yaml?"));
    case.file = Some("other/x.yml".into());
    assert!(case.try_render().unwrap_err().to_string().contains("name one with the input"));
}

#[test]
fn the_compose_file_itself_must_be_inside() {
    for file in ["../x.yml", "/etc/x.yml", "", "a/../../x", "link.yml", "up/x.yml", "a\nb", "sub"] {
        let mut case = Case::new("services: {web: {image: a}}")
            .link("link.yml", "../x.yml")
            .link("up", "..")
            .file("sub/x", "");
        case.file = Some(file.into());
        assert!(matches!(case.try_render(), Err(RenderError::Outside { .. })), "{file}");
    }
}

#[test]
fn a_dotenv_that_points_out_is_refused() {
    let refusals = Case::web("").link(".env", "/root/.aws/credentials").refusals();
    assert_eq!(refusals[0].path, ".env");
}

#[test]
fn a_project_is_bounded() {
    let many: Vec<_> = (0..501).map(|n| format!("s{n}: {{image: a}}")).collect();
    assert!(
        Case::new(&format!("services: {{{}}}", many.join(", "))).refusals()[0]
            .message
            .contains("at most 500")
    );
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
