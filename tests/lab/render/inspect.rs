//! Docker's own word on what it made of files that are rendered and read back clean.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::tools::{Compose, Tool, of_lab, project};
use crate::fuzz::course::case;
use crate::fuzz::seed::Plan;
use crate::fuzz::world::{HOSTS, World, rendered};

const IMAGE: &str = "localhost/sbx-lab:1";

/// The lab's docker engine, and a compose tool on it.
struct Engine<'w> {
    world: &'w World,
    socket: String,
}

impl Engine<'_> {
    fn run(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.world.sandbox).env_clear();
        command
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", &self.world.scratch);
        command
            .env("DOCKER_HOST", &self.socket)
            .env("COMPOSE_PROJECT_NAME", project())
            .env("LANG", "C.UTF-8");
        let output = command.stdin(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Removes whatever bears the project's label.
    fn clear(&self) {
        let label = format!("label=com.docker.compose.project={}", project());
        for (list, remove) in [
            (&["docker", "ps", "-aq", "--filter"][..], &["docker", "rm", "-f", "-v"][..]),
            (&["docker", "network", "ls", "-q", "--filter"], &["docker", "network", "rm"]),
            (&["docker", "volume", "ls", "-q", "--filter"], &["docker", "volume", "rm"]),
        ] {
            let told = self.run(&[list, &[label.as_str()]].concat()).unwrap_or_default();
            for id in told.split_whitespace() {
                self.run(&[remove, &[id]].concat());
            }
        }
    }

    fn containers(&self) -> Vec<Value> {
        let label = format!("label=com.docker.compose.project={}", project());
        let ids = self.run(&["docker", "ps", "-aq", "--filter", &label]).unwrap_or_default();
        let ids: Vec<&str> = ids.split_whitespace().collect();
        if ids.is_empty() {
            return Vec::new();
        }
        let told = self.run(&[&["docker", "inspect"][..], &ids].concat()).unwrap();
        serde_json::from_str(&told).unwrap()
    }
}

/// Nothing is pulled or built here, and no network takes addresses that this machine may need.
fn startable(yaml: &str) -> Option<String> {
    let mut file: Value = serde_json::from_str(yaml.split_once('\n')?.1).ok()?;
    for service in file["services"].as_object_mut()?.values_mut() {
        let service = service.as_object_mut()?;
        if service.contains_key("build") || service.contains_key("platform") {
            return None;
        }
        service.insert("image".into(), IMAGE.into());
        service.insert("pull_policy".into(), "never".into());
        service.shift_remove("scale");
        service.shift_remove("deploy");
    }
    for network in file.get_mut("networks").and_then(Value::as_object_mut)?.values_mut() {
        network.as_object_mut()?.shift_remove("ipam");
    }
    Some(file.to_string())
}

/// Creates `count` projects by `tool` and judges what the engine made.
pub(crate) fn what_docker_made_of_clean_files(world: &World, tool: &str, count: usize) {
    let lab = std::env::var("LAB_DIR").expect("LAB_DIR: run by tests/run");
    let told = Command::new("ssh")
        .args(["-F", &format!("{lab}/ssh_config"), "sandboxer01", "printenv", "DOCKER_HOST"])
        .output()
        .unwrap();
    let socket = String::from_utf8(told.stdout).unwrap().trim().to_owned();
    assert!(socket.starts_with("unix://"), "the lab's docker: {socket:?}");
    let engine = Engine { world, socket };
    engine.clear();
    let host = HOSTS[usize::from(tool == "docker-compose")];
    let mut reader = Compose { program: of_lab("compose-debian"), bakes: false };
    let plan = Plan::read(100_000);
    let (mut made, mut tried, mut broken) = (0, 0, Vec::new());
    for number in plan.cases() {
        if made == count || tried == 4 * count {
            break;
        }
        // One honest file to three hostile ones that are rendered.
        let Ok(rendered) = rendered(&case(plan.seed, number, number % 4 != 0).files(), world, host)
        else {
            continue;
        };
        let clean =
            reader.read(world, host, &rendered.yaml).is_some_and(|findings| findings.is_empty());
        let Some(file) = startable(&rendered.yaml).filter(|_| clean) else { continue };
        fs::write(format!("{}/compose.yaml", world.sandbox), &file).unwrap();
        tried += 1;
        let words: &[&str] = if tool == "docker-compose" {
            &[tool, "-f", "compose.yaml", "up", "--no-start"]
        } else {
            &[tool, "-f", "compose.yaml", "create"]
        };
        engine.run(words);
        let containers = engine.containers();
        for container in &containers {
            let mut judge = crate::fuzz::judge::Judge::new(world, host.engine);
            judge.inspected(container);
            for finding in judge.close() {
                broken.push(format!("case {number}: {finding}\n{file}"));
            }
        }
        made += usize::from(!containers.is_empty());
        engine.clear();
    }
    println!("{made} of {tried} projects were made by {tool} and looked at");
    assert!(made * 2 >= count, "{made} of {tried} projects were made");
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
}
