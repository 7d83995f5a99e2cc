//! From one compose tool to another: the stack is rendered anew for the tool of the host, and the volumes are the same.

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, http_get, rooms, text, url_of};
use crate::support::json_assertions::JsonAssertions as _;

/// A page that comes from a volume which the first start fills, and what compose tools write in more than one way.
const SHOP: &str = r#"name: shop
services:
  init:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "test -s /data/index.html || date +%s%N >/data/index.html"]
    volumes: ["data:/data"]
  web:
    image: localhost/sbx-lab:1
    container_name: web
    command: ["httpd", "-f", "-p", "80", "-h", "/data"]
    stop_signal: SIGKILL
    ports: ["18080:80"]
    environment: {GREETING: "a $$ and a 'quote'"}
    depends_on: {init: {condition: service_completed_successfully}}
    volumes: ["data:/data:ro", {type: bind, source: ./conf, target: /conf, read_only: true}]
volumes:
  data: {}
"#;

/// What the stack serves and has.
fn seen(bench: &Bench, record: &Value) -> [String; 3] {
    assert_eq!(record["state"], "ready", "{record:#}");
    let url = url_of(record);
    let page = http_get(&url).lines().last().unwrap_or_default().to_owned();
    let inside = |words: &[&str]| {
        let call =
            [&["exec", record["id"].as_str().unwrap(), "--service", "web", "--"], words].concat();
        text(&bench.ok(call)["stdout"])
    };
    [page, inside(&["cat", "/conf/word"]), inside(&["sh", "-c", "echo \"$GREETING\""])]
}

fn from_one_to_others(from: &'static str, others: &[&'static str]) {
    let bench = Bench::with(others);
    let before = bench.snapshot(from);
    let repo =
        bench.repository("shop", &[("docker-compose.yml", SHOP), ("conf/word", "configured\n")]);
    let source = bench.create_stack(from, &repo, &["--id", &format!("tool-{from}")]);
    let wanted = seen(&bench, &source);
    assert!(
        wanted[0].len() > 10 && wanted[1] == "configured\n" && wanted[2] == "a $ and a 'quote'\n",
        "{wanted:?}"
    );
    // Each from the one before it: the last has been through all of them.
    let mut last = text(&source["id"]);
    for (number, to) in others.iter().enumerate() {
        let name = format!("base-{number}");
        let told = bench.ok(["snapshot", &last, "--name", &name]);
        told.has(json!({"captured_volumes": [{"name": "data"}]}));
        let back = bench.ok(["restore", &name, "--host", to]);
        back.has(json!({"host": to, "not_preserved": {}}));
        assert_eq!(seen(&bench, &back), wanted, "{to}");
        last = text(&back["id"]);
    }
    bench.clear();
    bench.assert_unchanged(from, &before);
    for to in others {
        assert!(rooms(&bench.workspace_root(to)).is_empty(), "{to}");
    }
}

each_case! {
    from_one_to_others {
        docker_compose_2_to_1_to_5: DOCKER, &["sandboxer01-v1", "sandboxer01-v5"];
        podman_compose_1_0_to_1_6: PODMAN, &["coulombcore-new"];
    }
}
