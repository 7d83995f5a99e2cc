//! Ways out that open only while the stack runs, and images that are no images of a registry.

use super::*;

fn paths(case: &Case) -> Vec<String> {
    match case.try_render() {
        Ok(_) => Vec::new(),
        Err(RenderError::Refused(refusals)) => {
            refusals.into_iter().map(|refusal| refusal.path).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_a_container_can_replace_by_a_link_is_not_mounted_elsewhere() {
    let two = |a: &str, b: &str| {
        Case::new(&format!(
            "services:\n  a: {{image: x, volumes: [{a}]}}\n  b: {{image: x, volumes: [{b}]}}\n"
        ))
        .file("evil/f", "")
        .file("deep/er/f", "")
    };
    for (a, b) in [
        ("'.:/w'", "'./evil:/x'"),
        ("'.:/w'", "'./evil:/x:ro'"),
        ("'./deep:/w'", "'./deep/er:/x'"),
        ("'.:/w'", "'./not-yet/there:/x'"),
        (
            "{type: bind, source: ., target: /w}",
            "{type: bind, source: ./evil, target: /x, read_only: true}",
        ),
    ] {
        let case = two(a, b);
        assert_eq!(paths(&case).len(), 1, "{a} and {b}");
        assert!(
            paths(&case)[0].starts_with("services.a.volumes[0]"),
            "{a} and {b}: {:?}",
            paths(&case)
        );
        assert!(
            case.allow(&[Allowance::BindMounts]).try_render().is_ok(),
            "{a} and {b} are permitted"
        );
    }
    for (a, b) in [
        ("'.:/w:ro'", "'./evil:/x'"),
        ("'.:/w'", "'.:/x:ro'"),
        ("'./evil:/w'", "'./deep:/x'"),
        ("'./evil:/w'", "'./evil:/x'"),
        ("{type: bind, source: ., target: /w, read_only: true}", "'./evil:/x'"),
    ] {
        assert_eq!(paths(&two(a, b)), Vec::<String>::new(), "{a} and {b}");
    }
    let top = "services: {a: {image: x, volumes: ['.:/w'], secrets: [s], configs: [c]}}\n";
    for rest in [
        "secrets: {s: {file: ./evil/f}}\nconfigs: {c: {content: x}}",
        "secrets: {s: {file: ./f}}\nconfigs: {c: {file: ./g}}",
    ] {
        let case =
            Case::new(&format!("{top}{rest}\n")).file("evil/f", "").file("f", "").file("g", "");
        assert_eq!(paths(&case), ["services.a.volumes[0]"], "{rest}");
    }
    let volume = "services: {a: {image: x, volumes: ['.:/w', 'v:/v']}}\nvolumes: {v: {driver_opts: {type: none, o: bind, device: ./evil}}}\n";
    assert_eq!(paths(&Case::new(volume).file("evil/f", "")), ["services.a.volumes[0]"]);
}

#[test]
fn a_build_beside_a_writable_workspace_is_no_way_out() {
    let case = Case::web("build: ./app\nvolumes: ['.:/w']").file("app/Dockerfile", "FROM x");
    assert_eq!(paths(&case), Vec::<String>::new());
}

#[test]
fn an_image_is_a_name_and_no_file_of_the_host() {
    for image in [
        "oci-archive:/tmp/x.tar",
        "docker-archive:workspace/evil.tar",
        "dir:/etc",
        "oci:/etc",
        "oci:layout",
        "docker-daemon:x:y",
        "containers-storage:x",
        "sif:/x",
        "ostree:x",
        "docker://registry/x",
        "tarball:x",
        "sbx-other-built:web",
        "localhost/sbx-other-built:web",
        "x:a/b",
    ] {
        let case = Case::new(&format!("services: {{a: {{image: '{image}'}}}}\n"));
        assert_eq!(paths(&case), ["services.a.image"], "{image}");
    }
    for image in [
        "app",
        "app:1",
        "localhost/sbx-lab:1",
        "registry.example:5000/team/app:1.2",
        "localhost:5000/app",
        "docker.io/library/nginx:alpine",
        "app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "app:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ] {
        let case = Case::new(&format!("services: {{a: {{image: '{image}'}}}}\n"));
        assert_eq!(paths(&case), Vec::<String>::new(), "{image}");
    }
}

#[test]
fn a_file_of_the_top_folder_can_be_included() {
    for include in ["other.yml", "{path: other.yml}", "{path: other.yml, project_directory: .}"] {
        let case = Case::new(&format!("include: [{include}]\nservices: {{a: {{image: x}}}}\n"))
            .file("other.yml", "services: {b: {image: \"y:$TAG\"}}\n")
            .file(".env", "TAG=7\n");
        assert!(case.try_render().unwrap().images.contains(&"y:7".to_owned()), "{include}");
    }
}

#[test]
fn a_volume_with_one_letter_is_a_volume() {
    let rendered = Case::new("services: {a: {image: x, volumes: ['v:/x']}}\nvolumes: {v: {}}\n")
        .try_render()
        .unwrap();
    assert!(rendered.yaml.contains("\"v:/x\""), "{}", rendered.yaml);
    assert_eq!(
        paths(&Case::new("services: {a: {image: x, volumes: ['v:/x']}}\n")),
        ["services.a.volumes[0]"]
    );
}
