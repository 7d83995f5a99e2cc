//! Text that a compose tool would hand to its engine as options. Each file here got out of its sandbox once, on the engine it is
//! tried on; no profile allows it anything. A refusal costs no container and leaves the host as it was.

use std::path::Path;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, text};

/// podman-compose 1.6 on the same engine.
const NEW: &str = "coulombcore-new";

/// A file that is refused: what it is called here, its text, and the key that the refusal names.
type Way = (&'static str, Value, &'static str);

fn service(more: &Value) -> Value {
    let mut service = json!({"image": "localhost/sbx-lab:1", "command": ["sleep", "600"], "stop_signal": "SIGKILL"});
    service.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"services": {"a": service}})
}

fn with(mut file: Value, section: &str, content: Value) -> Value {
    file[section] = content;
    file
}

/// Ways into `outside`, a folder of the test's own beside all workspaces.
fn ways(outside: &Path) -> Vec<Way> {
    let at = outside.display();
    let mount = |target: String| json!({"volumes": [{"type": "bind", "source": "./sub", "target": target}]});
    let log = |key: String, value: String| json!({"logging": {"driver": "k8s-file", "options": {key: value}}});
    let volume = json!({"volumes": [{"type": "volume", "source": "data", "target": "/x,source=sbx-other_data"}]});
    let memory = json!({"type": "tmpfs", "device": format!("{at}"), "o=bind,x-a": "1"});
    let build = json!({"build": {"context": ".", "secrets": ["s"]}});
    vec![
        (
            "overlay",
            service(&mount(format!("/x:O,upperdir={at}/upper,workdir={at}/work"))),
            "services.a.volumes[0].target",
        ),
        (
            "tmpfs",
            with(
                service(&json!({"volumes": ["v:/x"]})),
                "volumes",
                json!({"v": {"driver_opts": memory}}),
            ),
            "volumes.v.driver_opts",
        ),
        (
            "log-value",
            service(&log("max-size".into(), format!("10m,path={at}/log"))),
            "services.a.logging.options.max-size",
        ),
        (
            "log-key",
            service(&log(format!("path={at}/log"), String::new())),
            "services.a.logging.options.path=",
        ),
        (
            "volume",
            with(service(&volume), "volumes", json!({"data": {}})),
            "services.a.volumes[0].target",
        ),
        (
            "secret",
            with(
                service(&build),
                "secrets",
                json!({"s": {"file": format!("./f,src={at}/victim")}}),
            ),
            "secrets.s.file",
        ),
        (
            "note",
            service(
                &json!({"annotations": {"org.opencontainers.image.title": "x,run.oci.keep_original_groups=1"}}),
            ),
            "services.a.annotations.org.opencontainers.image.title",
        ),
        (
            "label",
            service(&json!({"labels": {"${NO:-io.podman.compose.project}": "sbx-other"}})),
            "services.a.labels.",
        ),
        ("groups", service(&json!({"group_add": ["1000,keep-groups"]})), "services.a.group_add[0]"),
        (
            "twice",
            service(&json!({"volumes": [".:/w:ro,rw", "./sub:/s"], "restart": "always"})),
            "services.a.volumes[0]",
        ),
        (
            "inline",
            service(
                &json!({"build": {"context": ".", "dockerfile": format!("{at}/victim"), "dockerfile_inline": "FROM localhost/sbx-lab:1"}}),
            ),
            "services.a.build.dockerfile",
        ),
        (
            "cache",
            service(
                &json!({"build": {"context": ".", "cache_from": [format!("TYPE=local,src={at}")]}}),
            ),
            "services.a.build.cache_from",
        ),
        (
            "template",
            service(&json!({"build": {"context": "./$${base64decode(\"Li4vb3V0c2lkZQ==\")}"}})),
            "services.a.build.context",
        ),
    ]
}

fn text_that_would_be_read_as_options_is_refused(hosts: &[&'static str]) {
    let bench = Bench::with(&hosts[1..]);
    let outside = bench.path("outside");
    for folder in ["upper", "work"] {
        std::fs::create_dir_all(outside.join(folder)).unwrap();
    }
    std::fs::write(outside.join("victim"), "the host's own\n").unwrap();
    let before: Vec<_> = hosts.iter().map(|host| bench.snapshot(host)).collect();
    for (name, file, path) in ways(&outside) {
        let files = [
            ("docker-compose.yml", file.to_string()),
            ("sub/f", "x".to_owned()),
            ("Dockerfile", "FROM localhost/sbx-lab:1\n".to_owned()),
            (
                "${base64decode(\"Li4vb3V0c2lkZQ==\")}/Dockerfile",
                "FROM localhost/sbx-lab:1\n".to_owned(),
            ),
        ];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let repo = bench.repository(name, &files);
        for host in hosts {
            let error = bench.try_stack(host, &repo, &[]).error("invalid_input");
            let refusals = error["details"]["refusals"].as_array().cloned().unwrap_or_default();
            let named = refusals.iter().find(|refusal| text(&refusal["path"]).starts_with(path));
            assert!(named.is_some(), "{name} on {host}: {error:#}");
        }
    }
    assert_eq!(bench.stored().len(), 0, "refused before anything is written");
    for (host, before) in hosts.iter().zip(&before) {
        bench.assert_unchanged(host, before);
    }
    let left: Vec<_> =
        std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing was written beside the workspaces: {left:?}");
}

each_case! {
    text_that_would_be_read_as_options_is_refused {
        by_both_podman_composes: &[PODMAN, NEW];
        by_both_docker_composes: &[DOCKER, "sandboxer01-v5"];
    }
}
