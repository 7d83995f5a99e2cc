//! Projects of several files that lie over each other.

use super::*;

/// A project of these files, without one that is there by itself.
fn files(files: &[(&str, &str)]) -> Case {
    let mut case = Case::new("");
    case.files =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    case
}

fn named(mut case: Case, input: &str) -> Case {
    case.file = Some(input.to_owned());
    case
}

/// The services' images by name.
fn images(case: &Case) -> Vec<String> {
    case.render().1.services.iter().map(|plan| format!("{}={}", plan.name, plan.image)).collect()
}

#[test]
fn compose_names_are_found_in_composes_order_with_the_override_beside_them() {
    let names = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];
    let overrides = [
        "compose.override.yml",
        "compose.override.yaml",
        "docker-compose.override.yml",
        "docker-compose.override.yaml",
    ];
    for first in 0..4 {
        let mut all: Vec<(&str, String)> = Vec::new();
        for name in names[first..].iter().chain(&overrides[first..]) {
            all.push((
                name,
                format!("services: {{web: {{image: a, environment: {{'{name}': x}}}}}}"),
            ));
        }
        let all: Vec<_> = all.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let case = files(&all);
        let environment = &case.web_service()["environment"];
        assert_eq!(environment, &json!({names[first]: "x", overrides[first]: "x"}));
        assert_eq!(case.rewrites().len(), 2 * (3 - first), "{:?}", case.rewrites());
    }
    let none = files(&[("other.yml", "services: {web: {image: a}}")])
        .try_render()
        .unwrap_err()
        .to_string();
    assert!(
        none.contains("compose.yaml, compose.yml, docker-compose.yml, docker-compose.yaml; name"),
        "{none}"
    );
}

#[test]
fn an_override_is_judged_as_the_rest_of_the_file() {
    let case = files(&[
        ("compose.yaml", "services: {web: {image: a, ports: ['80']}}"),
        ("compose.override.yaml", "services:\n  web: {privileged: true, volumes: ['/etc:/e']}"),
    ]);
    let refusals = case.refusals();
    let paths: Vec<_> = refusals.iter().map(|refusal| refusal.path.as_str()).collect();
    assert_eq!(paths, ["services.web.privileged", "services.web.volumes[0]"]);
    for refusal in refusals {
        assert_eq!(
            refusal.place.map(|place| (place.file, place.line)),
            Some(("compose.override.yaml".into(), 2))
        );
    }
}

#[test]
fn files_that_the_input_names_are_read_alone_and_in_order() {
    let case = files(&[
        ("compose.yaml", "services: {web: {image: a, command: [x]}}"),
        ("compose.override.yaml", "services: {web: {image: never}}"),
        ("deploy/b.yml", "services: {web: {image: b}, db: {image: d, volumes: ['./data:/d']}}"),
        (".env", "COMPOSE_FILE=gone.yml"),
    ]);
    let case = named(case, "compose.yaml, deploy/b.yml");
    assert_eq!(images(&case), ["web=b", "db=d"]);
    assert_eq!(
        case.rewrites(),
        ["compose.override.yaml: is not read: where files are named, compose reads these alone"]
    );
    // Paths begin where the first file lies.
    assert_eq!(
        case.render().0["services"]["db"]["volumes"],
        json!(["/x/sbx-a1b2c3d4/workspace/data:/d"])
    );
    let case = named(case, "deploy/b.yml,compose.yaml");
    assert_eq!(images(&case)[0], "web=a");
    assert_eq!(
        case.render().0["services"]["db"]["volumes"],
        json!(["/x/sbx-a1b2c3d4/workspace/deploy/data:/d"])
    );
    for (input, want) in [
        ("compose.yaml,", "no path"),
        ("compose.yaml,../x.yml", "no path"),
        ("compose.yaml,x.yml", "x.yml is not in"),
    ] {
        let error = named(files(&[("compose.yaml", "services: {web: {image: a}}")]), input)
            .try_render()
            .unwrap_err();
        assert!(error.to_string().contains(want), "{input}: {error}");
    }
}

#[test]
fn compose_file_of_dotenv_names_files() {
    let text = "services: {web: {image: a}}";
    let more = "services: {db: {image: b}}";
    for dotenv in [
        "COMPOSE_FILE=x.yml:y.yml",
        "COMPOSE_FILE=x.yml;y.yml\nCOMPOSE_PATH_SEPARATOR=;",
        "F=x.yml\nCOMPOSE_FILE=${F}:y.yml",
    ] {
        let case = files(&[
            (".env", dotenv),
            ("x.yml", text),
            ("y.yml", more),
            ("compose.yaml", "services: {n: {image: n}}"),
        ]);
        assert_eq!(images(&case), ["web=a", "db=b"], "{dotenv}");
    }
    let outside = files(&[(".env", "COMPOSE_FILE=/etc/x.yml"), ("compose.yaml", text)]);
    assert!(matches!(outside.try_render(), Err(RenderError::Outside { .. })));
    // An empty one names nothing.
    assert_eq!(images(&files(&[(".env", "COMPOSE_FILE="), ("compose.yaml", text)])), ["web=a"]);
}

#[test]
fn tags_reset_and_replace_what_lies_below() {
    let case = files(&[
        (
            "compose.yaml",
            "services:\n  web: {image: a, ports: ['80'], privileged: true, environment: [A=1, B=2], volumes: ['/etc:/e'], build: {context: ., dockerfile: D}}\n  gone: {image: g, privileged: true}\nnetworks: {corp: {external: true}}\n",
        ),
        (
            "compose.override.yaml",
            "services:\n  web: {ports: !override ['81'], privileged: !reset null, environment: {A: !reset null}, volumes: !reset [], build: !reset null}\n  gone: !reset null\nnetworks: !reset {}\n",
        ),
    ]);
    let (file, _) = case.render();
    let web = &file["services"]["web"];
    assert_eq!(web["ports"], json!(["127.0.0.1::81"]));
    assert_eq!(web["environment"], json!({"B": "2"}));
    assert!(
        web.get("volumes").is_none()
            && web.get("privileged").is_none()
            && web.get("build").is_none()
    );
    assert_eq!(file["services"].as_object().unwrap().len(), 1);
    // Replaced and not reset: it is judged.
    let case = files(&[
        ("compose.yaml", "services: {web: {image: a, volumes: ['data:/e']}}\nvolumes: {data: }"),
        ("compose.override.yaml", "services: {web: {volumes: !override ['/etc:/e']}}"),
    ]);
    assert_eq!(case.refusals()[0].path, "services.web.volumes[0]");
}

#[test]
fn tags_work_on_what_is_extended_and_on_what_is_included() {
    let base = "services: {web: {image: a, ports: ['80:80'], environment: {A: 1}}}";
    let extends = "services: {web: {extends: {file: base.yml, service: web}, ports: !override ['81:81'], environment: !reset null}}";
    let include = "include: [base.yml]\nservices: {web: {ports: !override ['81:81'], environment: !reset null}}";
    for text in [extends, include] {
        let web = files(&[("compose.yaml", text), ("base.yml", base)]).web_service();
        assert_eq!(web["ports"], json!(["127.0.0.1::81"]), "{text}");
        assert!(web.get("environment").is_none(), "{text}");
    }
}

#[test]
fn an_includer_lies_over_what_it_includes_and_the_first_include_over_the_next() {
    let case = files(&[
        (
            "compose.yaml",
            "include: [p1.yml, p2.yml]\nservices: {db: {environment: {TZ: UTC}}}\nvolumes: {v: {labels: [a=1]}}",
        ),
        (
            "p1.yml",
            "services: {db: {image: one, environment: {A: 1}}, both: {image: one}}\nvolumes: {v: {labels: {b: 2}}}",
        ),
        ("p2.yml", "services: {both: {image: two, environment: {B: 3}}}"),
    ]);
    let (file, _) = case.render();
    assert_eq!(file["services"]["db"]["environment"], json!({"A": "1", "TZ": "UTC"}));
    assert_eq!(
        (&file["services"]["both"]["image"], &file["services"]["both"]["environment"]),
        (&json!("one"), &json!({"B": "3"}))
    );
    assert_eq!(
        (&file["volumes"]["v"]["labels"]["a"], &file["volumes"]["v"]["labels"]["b"]),
        (&json!("1"), &json!("2"))
    );
    // It is no way around the gate.
    let case = files(&[
        (
            "compose.yaml",
            "include: [p.yml]\nservices: {db: {volumes: ['x:/x']}}\nvolumes: {x: {driver_opts: {type: none, o: bind}}}",
        ),
        ("p.yml", "services: {db: {image: one}}\nvolumes: {x: {driver_opts: {device: /etc}}}"),
    ]);
    assert_eq!(case.refusals()[0].path, "volumes.x.driver_opts.device");
    let case = files(&[
        (
            "compose.yaml",
            "services: {db: {image: a, volumes: ['x:/x']}}\nvolumes: {x: {driver_opts: {device: ./d}}}",
        ),
        ("compose.override.yaml", "volumes: {x: {driver_opts: {type: none, o: bind}}}"),
        ("d/x", ""),
    ]);
    let device = case.render().0["volumes"]["x"]["driver_opts"]["device"].take();
    assert_eq!(device, "/x/sbx-a1b2c3d4/workspace/d");
}

#[test]
fn an_include_of_several_files_has_one_folder_and_its_variables() {
    let part = "services: {s: {image: 'i:${V}', volumes: ['./d:/d']}}";
    let over = "services: {s: {environment: {B: '${V}'}, volumes: ['./e:/e']}}";
    let base = [
        ("sub/x.yml", part),
        ("y.yml", over),
        ("i.yml", "include: [e.yml]\nservices: {}"),
        ("sub/e.yml", "services: {}"),
        ("sub/.env", "V=dot"),
        ("one.env", "V=one\nW=w"),
        ("two.env", "V=two"),
    ];
    for (include, version, folder) in [
        ("{path: [sub/x.yml, y.yml]}", "dot", "sub/"),
        (
            "{path: [sub/x.yml, y.yml], project_directory: ., env_file: [one.env, two.env]}",
            "two",
            "",
        ),
        ("{path: [sub/x.yml, y.yml], env_file: one.env}", "one", "sub/"),
        // Twenty files over each other are no chain of twenty.
        (
            "{path: [sub/x.yml, y.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml, i.yml]}",
            "dot",
            "sub/",
        ),
    ] {
        let text = format!("include: [{include}]\nservices: {{}}");
        let case = files(&[&[("compose.yaml", text.as_str())], &base[..]].concat());
        let service = case.render().0["services"]["s"].take();
        let at = format!("/x/sbx-a1b2c3d4/workspace/{folder}");
        assert_eq!(service["image"], format!("i:{version}"), "{include}");
        assert_eq!(service["environment"], json!({"B": version}), "{include}");
        assert_eq!(
            service["volumes"],
            json!([format!("{at}d:/d"), format!("{at}e:/e")]),
            "{include}"
        );
    }
}

#[test]
fn extends_reaches_the_files_below_and_its_own_file_first() {
    let case = files(&[
        ("compose.yaml", "services: {base: {image: a, environment: {A: 1}}}"),
        ("compose.override.yaml", "services: {web: {extends: base, environment: {B: 2}}}"),
    ]);
    assert_eq!(case.web_service()["environment"], json!({"A": "1", "B": "2"}));
    let case = files(&[
        ("compose.yaml", "services: {base: {image: a, environment: {A: 1}}}"),
        (
            "compose.override.yaml",
            "services: {base: {image: b}, web: {extends: base, environment: {B: 2}}}",
        ),
    ]);
    assert_eq!(
        (case.web_service()["image"].take(), case.web_service()["environment"].take()),
        (json!("b"), json!({"B": "2"}))
    );
    // A file that is named holds it or not.
    let case = files(&[
        ("compose.yaml", "services: {base: {image: a}}"),
        ("compose.override.yaml", "services: {web: {extends: {file: other.yml, service: base}}}"),
        ("other.yml", "services: {x: {image: a}}"),
    ]);
    assert!(case.refusals()[0].message.contains("no service `base` in other.yml"));
}

#[test]
fn a_build_that_says_more_keeps_its_context() {
    let case = files(&[
        ("compose.yaml", "services: {web: {build: ./app}, job: {build: {dockerfile: D}}}"),
        ("compose.override.yaml", "services: {web: {build: {args: {A: 1}}}}"),
        ("app/Dockerfile", ""),
        ("D", ""),
    ]);
    let (file, _) = case.render();
    let at = "/x/sbx-a1b2c3d4/workspace";
    assert_eq!(
        file["services"]["web"]["build"],
        json!({"context": format!("{at}/app"), "args": {"A": "1"}})
    );
    assert_eq!(file["services"]["job"]["build"], json!({"context": at, "dockerfile": "D"}));
}

#[test]
fn real_projects_fit_and_bombs_do_not() {
    let mut many = vec![("compose.yaml".to_owned(), String::from("include:\n"))];
    for n in 0..200 {
        let _ = writeln!(many[0].1, "  - f{n}.yml");
        many.push((format!("f{n}.yml"), format!("services: {{s{n}: {{image: a}}}}")));
    }
    let mut case = Case::new("");
    case.files = many.clone();
    assert_eq!(case.render().1.services.len(), 200);
    for n in 200..300 {
        let _ = writeln!(many[0].1, "  - f{n}.yml");
        many.push((format!("f{n}.yml"), format!("services: {{s{n}: {{image: a}}}}")));
    }
    case.files = many;
    assert!(matches!(case.try_render(), Err(RenderError::TooLarge { .. })));
    // A long value, copied or filled in often.
    let long = "x".repeat(100_000);
    let mut copied = format!("services:\n  base: {{image: a, environment: {{A: {long}}}}}\n");
    let (mut passed, mut read) = (String::from("services:\n"), String::from("services:\n"));
    for n in 0..490 {
        let _ = writeln!(copied, "  s{n}: {{extends: base}}");
        let _ = writeln!(passed, "  s{n}: {{image: a, environment: [BIG]}}");
        let _ = writeln!(read, "  s{n}: {{image: a, env_file: big.env}}");
    }
    assert!(matches!(Case::new(&copied).try_render(), Err(RenderError::TooLarge { .. })));
    for text in [passed, read] {
        let case =
            Case::new(&text).file(".env", &format!("BIG={long}")).file("big.env", "A=${BIG}");
        assert!(
            case.refusals()
                .iter()
                .all(|refusal| refusal.message.contains("variables are filled in"))
        );
    }
    // Each file is small, and what each service copies is not.
    let entries: Vec<_> = (0..5_000).map(|n| format!("A{n}: x")).collect();
    let mut text =
        format!("services:\n  base: {{image: a, environment: {{{}}}}}\n", entries.join(", "));
    for n in 0..490 {
        let _ = writeln!(text, "  s{n}: {{extends: base}}");
    }
    assert!(matches!(Case::new(&text).try_render(), Err(RenderError::TooLarge { .. })));
}

#[test]
fn the_working_folder_of_compose_is_the_workspace() {
    let case = Case::web("volumes: ['${PWD}/src:/s']\nenvironment: [PWD]").file("src/x", "");
    let web = case.web_service();
    let at = "/x/sbx-a1b2c3d4/workspace";
    assert_eq!(web["volumes"], json!([format!("{at}/src:/s")]));
    assert_eq!(web["environment"], json!({"PWD": at}));
    // It is a path and no secret, whatever its name sounds like.
    assert!(!case.render().1.variables.contains_key("PWD"));
    let refusals = Case::web("volumes: ['${PWD}/../x:/s']").refusals();
    assert!(refusals[0].message.contains("`/x/sbx-a1b2c3d4/x` is outside"), "{refusals:?}");
    // A profile has the last word.
    let web = Case::web("command: $PWD").variable("PWD", "/p").file(".env", "PWD=/e").web_service();
    assert_eq!(web["command"], "/p");
}

#[test]
fn what_is_passed_through_and_unset_is_said_in_one_line() {
    let names: Vec<String> = (0..424).map(|n| format!("V{n:03}")).collect();
    let case =
        Case::web(&format!("environment: [{}]\nbuild: {{args: [V000, W]}}", names.join(", ")));
    assert_eq!(
        case.rewrites()[1..],
        [
            "services: `V000`, `V001`, `V002`, `V003`, `V004`, `V005`, `V006`, `V007` and 417 more have no value, in .env and the profile neither: left out"
        ]
    );
    let case = Case::web("environment: [A, B]");
    assert_eq!(
        case.rewrites(),
        ["services: `A`, `B` have no value, in .env and the profile neither: left out"]
    );
}
