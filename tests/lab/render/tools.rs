//! The compose tools, each asked what it would tell its engine.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::fuzz::judge::{Finding, Judge};
use crate::fuzz::world::{Host, ID, World};

const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Debian's podman-compose 1.0.3 and docker-compose 1.29, which the lab installs.
pub(crate) const DEBIAN: &str = "/usr/lib/python3/dist-packages";

/// Where the lab keeps a tool.
pub(crate) fn of_lab(name: &str) -> String {
    let lab = std::env::var("LAB_DIR").expect("LAB_DIR: run by tests/run");
    let path = format!("{lab}/cache/{name}");
    assert!(Path::new(&path).exists(), "{path} is not there: tests/lab/up fetches it");
    path
}

fn here(script: &str) -> String {
    format!("{}/tests/lab/render/{script}", env!("CARGO_MANIFEST_DIR"))
}

/// The project, as `up` names it.
pub(crate) fn project() -> String {
    format!("sbx-{ID}")
}

/// A program that answers a line with a line.
pub(crate) struct Lines {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Lines {
    pub(crate) fn start(world: &World, words: &[&str]) -> Self {
        let mut command = Command::new("/usr/bin/python3");
        command.arg(here(words[0])).args(&words[1..]).current_dir(&world.sandbox);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &world.scratch)
            .env("TMPDIR", &world.scratch);
        command.env("LANG", "C.UTF-8").env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, to, from }
    }

    pub(crate) fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.to, "{question}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("{error}: {line:?} to {question}"))
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what a tool would do: `None` when it stopped at the file.
pub(crate) trait Tool {
    fn read(&mut self, world: &World, host: Host, yaml: &str) -> Option<Vec<Finding>>;
}

/// podman-compose, of either version.
pub(crate) struct PodmanCompose(pub(crate) Lines);

impl PodmanCompose {
    pub(crate) fn start(world: &World, folder: &str) -> Self {
        Self(Lines::start(world, &["argv.py", folder]))
    }

    /// The calls of podman, the folders it makes, and what it says when it stops.
    pub(crate) fn calls(
        &mut self,
        engine: &str,
        yaml: &str,
    ) -> (Vec<Vec<String>>, Vec<String>, String) {
        let question =
            json!({"yaml": yaml, "project": project(), "engine": engine, "command": ["up", "-d"]});
        let answer = self.0.ask(&question);
        let calls = serde_json::from_value(answer["calls"].clone()).unwrap();
        let made = serde_json::from_value(answer["made"].clone()).unwrap();
        (calls, made, answer["error"].as_str().unwrap_or_default().to_owned())
    }
}

impl Tool for PodmanCompose {
    fn read(&mut self, world: &World, host: Host, yaml: &str) -> Option<Vec<Finding>> {
        let (calls, made, error) = self.calls(host.engine, yaml);
        let mut judge = Judge::new(world, host.engine);
        // What it called before it stopped was called.
        for call in &calls {
            judge.podman(call);
        }
        for folder in made {
            judge.made(&folder);
        }
        let findings = judge.close();
        (error.is_empty() || !findings.is_empty()).then_some(findings)
    }
}

/// docker-compose 1.29.
pub(crate) struct ComposeV1(pub(crate) Lines);

impl Tool for ComposeV1 {
    fn read(&mut self, world: &World, host: Host, yaml: &str) -> Option<Vec<Finding>> {
        let answer = self.0.ask(&json!({"yaml": yaml, "project": project()}));
        if answer["config"].is_null() {
            return None;
        }
        let mut judge = Judge::new(world, host.engine);
        judge.document(&answer["config"], true);
        Some(judge.close())
    }
}

/// `docker compose`, as a program of its own.
pub(crate) struct Compose {
    pub(crate) program: String,
    /// Does it show what it hands to buildx?
    pub(crate) bakes: bool,
}

impl Compose {
    fn run(&self, world: &World, words: &[&str]) -> Option<Value> {
        let mut command = Command::new(&self.program);
        command
            .args(["-p", &project(), "-f", "compose.yaml"])
            .args(words)
            .current_dir(&world.sandbox);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &world.scratch)
            .env("DOCKER_HOST", "unix:///nonexistent");
        command.env("DOCKER_CONFIG", format!("{}/docker", world.scratch));
        let output = command.stdin(Stdio::null()).output().unwrap();
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }
}

impl Tool for Compose {
    fn read(&mut self, world: &World, host: Host, yaml: &str) -> Option<Vec<Finding>> {
        std::fs::write(format!("{}/compose.yaml", world.sandbox), yaml).unwrap();
        let mut config = self.run(world, &["config", "--format", "json"])?;
        plain(&mut config);
        let mut judge = Judge::new(world, host.engine);
        judge.document(&config, true);
        if self.bakes
            && yaml.contains("\"build\"")
            && let Some(file) = self.run(world, &["build", "--print"])
        {
            judge.bake(&file);
        }
        Some(judge.close())
    }
}

/// `config` writes `$` so that it could be read again.
fn plain(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("$$", "$"),
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(map) => map.values_mut().for_each(plain),
        _ => {}
    }
}

/// A buildx that only says that it is there.
pub(crate) fn pretend_buildx(world: &World) {
    let folder = format!("{}/docker/cli-plugins", world.scratch);
    std::fs::create_dir_all(&folder).unwrap();
    script(
        &format!("{folder}/docker-buildx"),
        "case $1 in docker-cli-plugin-metadata) echo '{\"SchemaVersion\":\"0.1.0\",\"Vendor\":\"x\",\"Version\":\"v0.30.0\"}' ;;\n\
         *) echo 'github.com/docker/buildx v0.30.0 x' ;; esac\n",
    );
}

pub(crate) fn script(path: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
