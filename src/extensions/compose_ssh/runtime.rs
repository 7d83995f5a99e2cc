//! State of a project as the engine tells it, whichever compose tool started it, and what that is worth.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::facts::Flavour;
use crate::domain::name::SandboxId;
use crate::domain::sandbox::{Failure, Service};
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::workspace::step;
use crate::transport::{Command, Output, Transport};

const INSPECT_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("scripts/clock.sh"),
    include_str!("scripts/inspect.sh")
);
const LOGS_SH: &str = include_str!("scripts/logs.sh");

/// Container as the engine reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    /// Id, which no other container gets, whatever it is called.
    pub(super) id: String,
    pub(super) name: String,
    /// Our label's value: the id of its sandbox; empty where it has none.
    pub(super) sandbox: String,
    pub(super) service: String,
    pub(super) state: String,
    pub(super) exit_code: Option<i32>,
    pub(super) restarts: Option<u32>,
    pub(super) health: Option<String>,
    pub(super) ports: Vec<Published>,
    /// When it was started last, by the host's clock.
    pub(super) started_at: Option<Time>,
    /// When it ended last, if it did.
    pub(super) finished_at: Option<Time>,
}

/// Containers of a sandbox, and the host's clock just before it was asked for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) now: Time,
    pub(super) containers: Vec<Container>,
}

/// Published port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Published {
    pub(super) container_port: u16,
    pub(super) protocol: String,
    pub(super) host_ip: String,
    pub(super) host_port: u16,
}

/// How a stack stands against what its compose file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Every long-running service runs; one-shots ended well or still run.
    Ready,
    /// Something is on its way; a sentence.
    Waiting(String),
    /// Something ended and will not come back: its container and a sentence.
    Broken { container: Option<String>, why: String },
}

/// Asks the engine for a sandbox's containers; `owners` with blanks between.
pub(super) async fn containers(
    transport: &dyn Transport,
    engine: &str,
    id: &SandboxId,
    owners: &str,
) -> Result<Observed, Error> {
    let command = Command::script(INSPECT_SH).args([engine, id.as_str(), owners]);
    let output = step(transport, "ask the engine", &command).await?;
    parse_observed(&output.text()).ok_or_else(|| {
        Error::new(
            Code::OperationFailed,
            format!("{engine}'s answer about sandbox {id} cannot be read"),
        )
        .step("ask the engine")
    })
}

/// Reads the host's clock, and behind it what the engine printed.
pub(super) fn parse_observed(text: &str) -> Option<Observed> {
    let (clock, json) = text.split_once('\n')?;
    let (seconds, fraction) = clock.split_once('.')?;
    // A `date` without fractions says `%N` or nothing; then the host is taken to be at the second's beginning.
    let fraction = if fraction.is_empty() || fraction.contains(|c: char| !c.is_ascii_digit()) {
        "0"
    } else {
        fraction
    };
    Some(Observed {
        now: format!("{seconds}.{fraction}Z").parse().ok()?,
        containers: parse(json.as_bytes())?,
    })
}

/// Reads what `docker inspect` or `podman inspect` printed. podman-compose's own chatter never comes this way.
pub(super) fn parse(json: &[u8]) -> Option<Vec<Container>> {
    let list: Vec<Value> = serde_json::from_slice(json).ok()?;
    Some(sorted(&list))
}

/// Reads the same as an object a line.
pub(super) fn parse_lines(lines: &str) -> Option<Vec<Container>> {
    let objects = lines.lines().filter(|line| !line.trim().is_empty());
    let list: Vec<Value> = objects.map(serde_json::from_str).collect::<Result<_, _>>().ok()?;
    Some(sorted(&list))
}

fn sorted(list: &[Value]) -> Vec<Container> {
    let mut found: Vec<Container> = list.iter().map(container).collect();
    found.sort_by(|a, b| (&a.service, &a.name).cmp(&(&b.service, &b.name)));
    found
}

fn container(json: &Value) -> Container {
    let state = &json["State"];
    let word = state["Status"].as_str().unwrap_or("unknown").to_ascii_lowercase();
    // podman's `configured` is Docker's `created`; `stopped` is its `exited`. `initialized` and `stopping` are podman's alone:
    // a start or a stop is at it, or was killed.
    let word = match word.as_str() {
        "configured" => "created",
        "stopped" => "exited",
        other => other,
    };
    // What never was has the year 1.
    let moment = |key: &str| {
        state[key].as_str().and_then(|at| at.parse().ok()).filter(|at: &Time| at.unix() > 0)
    };
    let labels = &json["Config"]["Labels"];
    let health = ["Health", "Healthcheck"].iter().find_map(|key| state[*key]["Status"].as_str());
    Container {
        id: json["Id"].as_str().unwrap_or_default().to_owned(),
        name: json["Name"].as_str().unwrap_or_default().trim_start_matches('/').to_owned(),
        sandbox: labels["sandboxer.id"].as_str().unwrap_or_default().to_owned(),
        service: labels["com.docker.compose.service"].as_str().unwrap_or_default().to_owned(),
        state: word.to_owned(),
        exit_code: matches!(word, "exited" | "dead" | "restarting")
            .then(|| state["ExitCode"].as_i64().and_then(|code| i32::try_from(code).ok()))
            .flatten(),
        restarts: json["RestartCount"].as_u64().and_then(|count| u32::try_from(count).ok()),
        health: health.filter(|word| !word.is_empty()).map(str::to_owned),
        ports: ports(&json["NetworkSettings"]["Ports"]),
        started_at: moment("StartedAt"),
        finished_at: moment("FinishedAt"),
    }
}

fn ports(json: &Value) -> Vec<Published> {
    let Some(map) = json.as_object() else { return Vec::new() };
    let mut found: Vec<Published> = map
        .iter()
        .filter_map(|(port, bindings)| {
            let (number, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
            Some((number.parse::<u16>().ok()?, protocol, bindings.as_array()?))
        })
        .flat_map(|(container_port, protocol, bindings)| {
            bindings.iter().filter_map(move |binding| {
                let host_port = &binding["HostPort"];
                let host_port = host_port
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .or_else(|| host_port.as_u64().and_then(|number| u16::try_from(number).ok()))?;
                Some(Published {
                    container_port,
                    protocol: protocol.to_owned(),
                    host_ip: binding["HostIp"].as_str().unwrap_or_default().to_owned(),
                    host_port,
                })
            })
        })
        .collect();
    // `public` publishes on IPv4 and IPv6 under one port: one endpoint.
    found.sort();
    found.dedup_by(|a, b| {
        (a.container_port, &a.protocol, a.host_port) == (b.container_port, &b.protocol, b.host_port)
    });
    found
}

/// Holds what runs against what was asked for.
pub(super) fn judge(expected: &[Expected], found: &[Container]) -> Judgement {
    let mut by_service: BTreeMap<&str, Vec<&Container>> = BTreeMap::new();
    for container in found {
        by_service.entry(container.service.as_str()).or_default().push(container);
    }
    let mut waiting = None;
    for want in expected {
        let have = by_service.get(want.name.as_str()).map_or(&[][..], Vec::as_slice);
        for container in have {
            match judge_one(want, container) {
                Judgement::Ready => {}
                Judgement::Waiting(why) => waiting = waiting.or(Some(why)),
                broken @ Judgement::Broken { .. } => return broken,
            }
        }
        if have.len() < want.replicas as usize {
            let why =
                format!("service {} has {} of {} containers", want.name, have.len(), want.replicas);
            waiting = waiting.or(Some(why));
        }
    }
    waiting.map_or(Judgement::Ready, Judgement::Waiting)
}

fn judge_one(want: &Expected, container: &Container) -> Judgement {
    let comes_back = matches!(want.restart.as_str(), "always" | "unless-stopped")
        || want.restart.starts_with("on-failure");
    match (container.state.as_str(), container.exit_code) {
        ("running", _) => Judgement::Ready,
        // A one-shot that ended well is fine, whether or not the file says that it is one.
        ("exited", Some(0)) if !comes_back || want.restart.starts_with("on-failure") => {
            Judgement::Ready
        }
        ("exited" | "dead", code) if !comes_back => Judgement::Broken {
            container: Some(container.name.clone()),
            why: match code {
                Some(code) => format!("service {} ended with status {code}", want.name),
                None => format!("service {} ended", want.name),
            },
        },
        (state, _) => Judgement::Waiting(format!("service {} is {state}", want.name)),
    }
}

/// Refuses a stack of which something is missing or was never started, where the exit status of `up -d` cannot be trusted
/// (podman-compose 1.0.x says 0 when nothing started). That is over: what is so now stays so.
pub(super) fn check_started(
    stack: &Stack,
    found: &[Container],
    (output, said): (&Output, &str),
) -> Result<(), Error> {
    let Some(runtime) =
        stack.runtime.as_ref().filter(|runtime| runtime.flavour == Flavour::PodmanCompose)
    else {
        return Ok(());
    };
    let lacking = stack.services.iter().find_map(|want| {
        let have: Vec<&Container> = found.iter().filter(|c| c.service == want.name).collect();
        if have.len() < want.replicas as usize {
            return Some(format!(
                "service {} has {} of {} containers",
                want.name,
                have.len(),
                want.replicas
            ));
        }
        have.iter()
            .any(|c| matches!(c.state.as_str(), "created" | "initialized"))
            .then(|| format!("service {} was made but did not start", want.name))
    });
    let Some(lacking) = lacking else { return Ok(()) };
    let command = runtime.command.join(" ");
    Err(Error::new(Code::OperationFailed, format!("{command} said it was done, but {lacking}"))
        .step("up")
        .hint("its output is in the record's failure")
        .evidence(Failure {
            step: "up".to_owned(),
            exit_status: Some(output.status),
            output: said.to_owned(),
        }))
}

/// The last lines of one container, as evidence; nothing if they cannot be had.
pub(super) async fn last_words(transport: &dyn Transport, engine: &str, container: &str) -> String {
    let command = Command::script(LOGS_SH).arg(engine).arg(container);
    let limit = std::time::Duration::from_secs(20);
    transport.run(&command, limit).await.map(|output| output.text()).unwrap_or_default()
}

/// Line per service for the record: the worst container speaks for it.
pub(super) fn services(expected: &[Expected], found: &[Container]) -> Vec<Service> {
    let rank = |c: &&Container| match (c.state.as_str(), c.exit_code) {
        ("running", _) => 2,
        ("exited", Some(0)) => 1,
        _ => 0,
    };
    expected
        .iter()
        .filter(|want| want.replicas > 0)
        .map(|want| {
            let worst = found.iter().filter(|c| c.service == want.name).min_by_key(rank);
            Service {
                name: want.name.clone(),
                state: worst.map_or_else(|| "missing".to_owned(), |c| c.state.clone()),
                exit_code: worst.and_then(|c| c.exit_code),
                restarts: worst.and_then(|c| c.restarts),
                health: worst.and_then(|c| c.health.clone()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(name: &str, restart: &str) -> Expected {
        Expected {
            name: name.into(),
            replicas: 1,
            restart: restart.into(),
            one_shot: false,
            needs: BTreeMap::new(),
        }
    }

    fn have(service: &str, state: &str, exit_code: Option<i32>) -> Container {
        Container {
            id: String::new(),
            name: format!("sbx-1_{service}_1"),
            sandbox: "1".into(),
            service: service.into(),
            state: state.into(),
            exit_code,
            restarts: None,
            health: None,
            ports: Vec::new(),
            started_at: None,
            finished_at: None,
        }
    }

    #[test]
    fn ready_is_what_the_engine_says_and_nothing_else() {
        let cases: &[(&str, &str, Option<i32>, &str)] = &[
            ("no", "running", None, "ready"),
            ("no", "exited", Some(0), "ready"),
            ("on-failure", "exited", Some(0), "ready"),
            ("always", "exited", Some(0), "waiting"),
            ("no", "exited", Some(1), "broken"),
            ("no", "dead", None, "broken"),
            ("always", "exited", Some(1), "waiting"),
            ("on-failure:3", "exited", Some(1), "waiting"),
            ("no", "created", None, "waiting"),
            ("no", "restarting", None, "waiting"),
            ("no", "paused", None, "waiting"),
        ];
        for (restart, state, code, outcome) in cases {
            let judged = match judge(&[want("web", restart)], &[have("web", state, *code)]) {
                Judgement::Ready => "ready",
                Judgement::Waiting(_) => "waiting",
                Judgement::Broken { .. } => "broken",
            };
            assert_eq!(judged, *outcome, "{restart} {state} {code:?}");
        }
    }

    #[test]
    fn a_service_without_its_containers_is_not_ready() {
        assert!(matches!(judge(&[want("web", "no")], &[]), Judgement::Waiting(_)));
        let twice = Expected { replicas: 2, ..want("web", "no") };
        assert!(matches!(judge(&[twice], &[have("web", "running", None)]), Judgement::Waiting(_)));
        let none = Expected { replicas: 0, ..want("web", "no") };
        assert_eq!(judge(&[none], &[]), Judgement::Ready);
    }

    #[test]
    fn both_engines_answers_are_read_alike() {
        let docker = br#"[{"Name":"/sbx-1-web-1","RestartCount":2,"State":{"Status":"running","ExitCode":0,"Health":{"Status":"healthy"}},
            "Config":{"Labels":{"com.docker.compose.service":"web"}},
            "NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"49153"}],"90/udp":null}}}]"#;
        let podman = br#"[{"Name":"sbx-1_web_1","RestartCount":2,"State":{"Status":"running","ExitCode":0,"Health":{"Status":"healthy"}},
            "Config":{"Labels":{"com.docker.compose.service":"web"}},
            "NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"127.0.0.1","HostPort":"49153"}],"90/udp":null}}}]"#;
        for (json, name) in [(&docker[..], "sbx-1-web-1"), (&podman[..], "sbx-1_web_1")] {
            let found = parse(json).unwrap();
            assert_eq!(found[0].name, name);
            assert_eq!(found[0].exit_code, None, "a running container has no exit status");
            assert_eq!(found[0].health.as_deref(), Some("healthy"));
            assert_eq!(found[0].ports.len(), 1);
            assert_eq!(found[0].ports[0].host_port, 49153);
        }
        let lines = "{\"Name\":\"/b\",\"Config\":{\"Labels\":{\"sandboxer.id\":\"1\"}}}\n\n{\"Name\":\"a\",\"Config\":{\"Labels\":null}}";
        let found = parse_lines(lines).unwrap();
        let of: Vec<(&str, &str)> =
            found.iter().map(|c| (c.name.as_str(), c.sandbox.as_str())).collect();
        assert_eq!(of, [("a", ""), ("b", "1")]);
        assert!(
            parse(b"Error: no such container").is_none()
                && parse_lines("Error: no such container").is_none()
        );
        assert_eq!(parse(b"[]"), Some(Vec::new()));
    }
}
