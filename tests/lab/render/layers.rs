//! Files that lie over each other: what the renderer makes of them is what it makes of the one file into which the tool merges them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::tools::{of_lab, project};
use crate::each_case::each_case;
use crate::fuzz::world::{FILE, HOSTS, OVERRIDE, World, rendered};

/// A project: its files, and whether compose before version 5 takes it too.
struct Layers {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    old: bool,
}

const BASE: &str = "services:
  web:
    image: nginx:1
    command: [a, b]
    entrypoint: /bin/x
    environment: [A=1, B=2]
    labels: {com.example.a: '1'}
    ports: ['80:80', '81:81']
    expose: [90]
    volumes: ['./app:/a', 'data:/d', '/anonymous']
    tmpfs: /run
    dns: 9.9.9.9
    networks: [back]
    depends_on: [db]
    healthcheck: {test: [CMD, 'true'], interval: 5s, retries: 2}
    logging: {options: {max-size: 1m}}
    deploy: {resources: {limits: {cpus: '0.5'}}, labels: [com.example.d=1]}
    ulimits: {nofile: {soft: 10, hard: 20}, nproc: 5}
    sysctls: {net.core.somaxconn: 1}
    build: ./app
    secrets: [tok]
    env_file: web.env
    cap_drop: [NET_RAW]
  db: {image: 'postgres:16'}
networks: {back: {labels: [com.example.n=1]}, front: }
volumes: {data: {labels: {com.example.v: '1'}}}
secrets: {tok: {file: ./tok.txt}, key: {file: ./tok.txt}}
";

const CASES: &[Layers] = &[
    Layers {
        name: "every kind of value is laid over another",
        files: &[
            (FILE, BASE),
            (
                OVERRIDE,
                "services:
  web:
    command: c
    environment: {B: 3, C: '$$x'}
    labels: [com.example.b=2, com.example.a=3]
    ports: ['81:81', '82:82']
    expose: ['90', 91]
    volumes: ['./conf:/a:ro', {type: volume, source: data, target: /e}]
    dns: [9.9.9.9, 1.1.1.1]
    networks: {front: {aliases: [w]}, back: {priority: 5}}
    depends_on: {db: {condition: service_started}, job: {condition: service_completed_successfully}}
    healthcheck: {test: 'false', timeout: 1s}
    logging: {driver: json-file, options: {max-file: '2'}}
    deploy: {resources: {limits: {memory: 64M}}, labels: {com.example.e: '2'}}
    ulimits: {nofile: 7}
    sysctls: [net.core.somaxconn=2]
    build: {args: [V=1], dockerfile: alt.Dockerfile}
    secrets: [key, {source: tok, target: t}]
    env_file: [{path: web.env, required: false}]
    cap_drop: [NET_RAW, MKNOD]
    restart: always
  job: {image: 'job:1'}
networks: {back: {internal: true, labels: {com.example.m: '2'}}}
volumes: {data: {driver: local}, more: }
",
            ),
        ],
        old: true,
    },
    Layers {
        name: "nothing over something",
        files: &[
            (FILE, BASE),
            (OVERRIDE, "services: {web: {command: null, ports: , environment: , healthcheck: , volumes: [], labels: {}}, db: {image: 'pg:2'}}"),
        ],
        old: true,
    },
    Layers {
        name: "tags",
        files: &[
            (FILE, BASE),
            (
                OVERRIDE,
                "services:
  web: {ports: !override ['83:83'], volumes: !reset [], labels: !override {com.example.z: '1'}, build: !reset null, networks: {back: !reset null, front: }, depends_on: !reset {}, secrets: !override [key], healthcheck: !override {disable: true}}
  db: !reset null
",
            ),
        ],
        old: true,
    },
    Layers {
        name: "extends in the upper file, with tags",
        files: &[
            (FILE, BASE),
            (
                OVERRIDE,
                "services:
  web: {extends: {file: part.yml, service: base}, tmpfs: !override [/tmp]}
  more: {extends: {service: web}, image: 'more:1', ports: !reset []}
",
            ),
            ("part.yml", "services: {base: {image: 'part:1', environment: {P: 1}, tmpfs: [/var], ports: ['99:99']}}"),
        ],
        old: true,
    },
    Layers {
        name: "an include of several files",
        files: &[
            (FILE, "include: [{path: [conf/part.yml, more.yml]}]\nservices: {web: {image: 'nginx:1', depends_on: [s]}}"),
            ("conf/part.yml", "services: {s: {image: 's:${V:-0}', volumes: ['./app.conf:/c:ro'], environment: [A=1]}}"),
            ("more.yml", "services: {s: {environment: {B: '${V:-0}'}, command: x}}"),
            ("conf/.env", "V=7"),
        ],
        old: true,
    },
    Layers {
        name: "an includer over what it includes, and one include over the next",
        files: &[
            (
                FILE,
                "include: [part.yml, more.yml]\nservices: {s: {environment: {B: 2}, ports: !override ['81:81'], labels: {com.example.a: '1'}}, web: {image: 'nginx:1'}}\nvolumes: {data: {labels: {com.example.v: '1'}}}",
            ),
            ("part.yml", "services: {s: {image: 's:1', ports: ['80:80'], environment: [A=1]}, t: {image: 't:1'}}\nvolumes: {data: }"),
            ("more.yml", "services: {t: {image: 't:2', command: x}}"),
        ],
        old: false,
    },
];

/// The tool's own reading of the files in the folder.
fn config(program: &str, folder: &str, home: &str) -> Value {
    let mut command = Command::new(program);
    command
        .args(["-p", &project(), "config", "--format", "json"])
        .current_dir(folder)
        .stdin(Stdio::null());
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home)
        .env("DOCKER_HOST", "unix:///nonexistent");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Lists in one order; the tools keep none.
fn sorted(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sorted);
            items.sort_by_key(ToString::to_string);
        }
        Value::Object(map) => {
            map.values_mut().for_each(sorted);
            map.sort_keys();
        }
        _ => {}
    }
}

/// What a tool reads in the file that is rendered of these.
fn read(program: &str, world: &World, files: &BTreeMap<String, String>) -> Value {
    let rendered =
        rendered(files, world, HOSTS[0]).unwrap_or_else(|error| panic!("{error}: {files:#?}"));
    fs::write(format!("{}/compose.yaml", world.sandbox), rendered.yaml).unwrap();
    let mut read = config(program, &world.sandbox, &world.scratch);
    // Words of a test are in an order of their own.
    for service in read["services"].as_object_mut().unwrap().values_mut() {
        for key in ["command", "entrypoint"] {
            service[key] = service[key].to_string().into();
        }
        service["test"] = service["healthcheck"]["test"].to_string().into();
    }
    sorted(&mut read);
    read
}

fn several_files_are_merged(program: &str, new: bool) {
    for layers in CASES.iter().filter(|layers| new || layers.old) {
        let (_folder, world) = super::world();
        for (path, content) in layers.files {
            fs::write(format!("{}/{path}", world.workspace), content).unwrap();
        }
        let merged = config(program, &world.workspace, &world.scratch);
        let files = layers
            .files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()))
            .collect();
        let one = BTreeMap::from([(FILE.to_owned(), merged.to_string())]);
        let (ours, theirs) = (read(program, &world, &files), read(program, &world, &one));
        assert_eq!(ours, theirs, "{}: {merged:#}", layers.name);
    }
}

each_case! {
    several_files_are_merged {
        as_docker_compose_2_does: &of_lab("compose-debian"), false;
        as_docker_compose_5_does: &of_lab("compose-pypi"), true;
    }
}
