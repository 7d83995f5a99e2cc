use super::*;

const DOCKER: &str = "rt.docker.status=0\nrt.docker=WARN something\nrt.docker=sbx|65QY:NZGL|20.10.24+dfsg1|[\"name=seccomp,profile=default\"]|/var/lib/docker\nrt.docker=inode|77\n\
rt.docker-server=sbx|20.10.24+dfsg1|Engine|containerd|runc\nrt.docker-server.status=0\n";
const DOCKER_DEAD: &str = "rt.docker.status=1\nrt.docker=sbx|||null|\nrt.docker=Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n";
const DOCKER_IS_PODMAN: &str = "rt.docker.status=0\nrt.docker=sbx|a1b2-uuid|4.3.1|[\"name=rootless\"]|/home/u/storage\nrt.docker=inode|5\n\
rt.docker-server.status=0\nrt.docker-server=sbx|4.3.1|Podman Engine|Conmon\n";
const PODMAN: &str = "rt.podman.status=0\nrt.podman=sbx|5|/home/u/storage\nrt.podman-version=podman version 4.3.1\nrt.podman-version.status=0\nrt.uid=1000\n";
const COMPOSE: &str =
    "rt.docker-compose-v2.status=0\nrt.docker-compose-v2=Docker Compose version v2.26.1-4\n";
const PODMAN_COMPOSE: &str = "rt.podman-compose.status=0\nrt.podman-compose=['podman', '--version', '']\n\
rt.podman-compose=using podman version: 4.3.1\nrt.podman-compose=podman-composer version  1.0.3\nrt.podman-compose=podman version 4.3.1\n";
const COMPOSE_V1: &str = "rt.docker-compose.status=0\nrt.docker-compose=docker-compose version 1.29.2, build unknown\n\
rt.docker-compose=docker-py version: 5.0.3\n";

/// `flavour version command engine/version/id rootless`, a word or two per runtime.
fn told(parts: &[&str]) -> Vec<String> {
    parse_runtimes(&parts.concat())
        .runtimes
        .into_iter()
        .map(|r| {
            format!(
                "{} {} [{}] {} {} {} {}{}",
                r.flavour,
                r.version,
                r.command.join(" "),
                r.engine,
                r.engine_version.unwrap_or_default(),
                r.engine_id.unwrap_or_default(),
                r.chosen,
                if r.rootless { " rootless" } else { "" }
            )
        })
        .collect()
}

#[test]
fn each_tool_with_the_engine_it_drives() {
    let docker = "docker 20.10.24+dfsg1 65QY:NZGL detected";
    let podman = "podman 4.3.1 /home/u/storage:5 detected rootless";
    for (said, expected) in [
        (vec![DOCKER, COMPOSE], vec![format!("docker-compose-v2 2.26.1-4 [docker compose] {docker}")]),
        (
            vec![PODMAN_COMPOSE, PODMAN, COMPOSE, DOCKER],
            vec![
                format!("docker-compose-v2 2.26.1-4 [docker compose] {docker}"),
                format!("podman-compose 1.0.3 [podman-compose] {podman}"),
            ],
        ),
        (vec![DOCKER, COMPOSE_V1], vec![format!("docker-compose-v1 1.29.2 [docker-compose] {docker}")]),
        // A client without an engine counts for nothing.
        (
            vec![DOCKER_DEAD, COMPOSE, PODMAN, PODMAN_COMPOSE],
            vec![format!("podman-compose 1.0.3 [podman-compose] {podman}")],
        ),
        // Docker's client on podman's socket: podman is asked, if it is the same storage.
        (
            vec![DOCKER_IS_PODMAN, PODMAN, COMPOSE],
            vec![format!("docker-compose-v2 2.26.1-4 [docker compose] {podman}")],
        ),
        (
            vec![DOCKER_IS_PODMAN, COMPOSE],
            vec![
                "docker-compose-v2 2.26.1-4 [docker compose] docker 4.3.1 /home/u/storage:5 detected rootless"
                    .to_owned(),
            ],
        ),
        // docker-compose on podman's socket, no docker client.
        (vec![PODMAN, COMPOSE_V1], vec![]),
        (
            vec![PODMAN, COMPOSE_V1, "rt.socket=unix:///run/podman.sock\n"],
            vec![format!("docker-compose-v1 1.29.2 [docker-compose] {podman}")],
        ),
        (vec![PODMAN_COMPOSE], vec![]),
        (vec![""], vec![]),
    ] {
        assert_eq!(told(&said), expected, "{said:?}");
    }
}

#[test]
fn an_override_is_the_only_one() {
    let said = [
        DOCKER,
        PODMAN,
        "rt.word=/opt/my tools/docker-compose\nrt.word=--ansi=never\nrt.override.status=0\nrt.override=Docker Compose version v5.6.1\n",
    ];
    let runtime = parse_runtime(&said.concat()).unwrap();
    assert_eq!(runtime.command, ["/opt/my tools/docker-compose", "--ansi=never"]);
    assert_eq!(
        (runtime.chosen.as_str(), runtime.version.as_str(), runtime.engine.as_str()),
        ("override", "5.6.1", "docker")
    );
    let report = parse_runtimes(
        "rt.word=nope\nrt.override.status=127\nrt.override=timeout: nope: No such file\n",
    );
    assert_eq!(report.runtimes, []);
    assert_eq!(report.findings, ["nope: does not run: timeout: nope: No such file"]);
    let report = parse_runtimes("rt.word=echo\nrt.override.status=0\nrt.override=version\n");
    assert_eq!(report.findings.len(), 1);
}

#[test]
fn why_something_does_not_count() {
    let report = parse_runtimes(&[DOCKER_DEAD, COMPOSE].concat());
    assert_eq!(
        report.findings,
        [
            "docker: no engine answers: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
            "docker compose: there is no engine that answers it",
        ]
    );
    let report = parse_runtimes(
        "rt.docker.status=124\nrt.podman.status=125\nrt.podman=Error: \u{1b}[31mno\n",
    );
    assert_eq!(
        report.findings,
        [
            "docker: no engine answers: it did not answer in time",
            "podman: does not answer: Error: no"
        ]
    );
    let report = parse_runtimes(
        &[DOCKER, "rt.docker-compose-v2.status=1\nrt.docker-compose-v2=docker: 'compose' is not a docker command.\n"]
            .concat(),
    );
    assert_eq!(
        report.findings,
        ["docker compose: does not run: docker: 'compose' is not a docker command."]
    );
}

#[test]
fn versions_in_many_words() {
    for (line, expected) in [
        ("Docker Compose version v2.26.1-4", Some((Flavour::DockerComposeV2, "2.26.1-4"))),
        ("Docker Compose version 5.6.1", Some((Flavour::DockerComposeV2, "5.6.1"))),
        (
            "docker-compose version 1.29.2, build 5becea4c",
            Some((Flavour::DockerComposeV1, "1.29.2")),
        ),
        ("docker-compose version: 2.0.1", Some((Flavour::DockerComposeV2, "2.0.1"))),
        ("podman-composer version  1.0.3", Some((Flavour::PodmanCompose, "1.0.3"))),
        ("podman-compose version 1.6.0", Some((Flavour::PodmanCompose, "1.6.0"))),
        ("podman-compose version: 1.0.6", Some((Flavour::PodmanCompose, "1.0.6"))),
        ("podman version 4.3.1", None),
        ("Docker Compose version", None),
        ("Docker Compose version \u{1b}[2J", None),
        ("", None),
    ] {
        assert_eq!(
            flavour(line),
            expected.map(|(flavour, version)| (flavour, version.to_owned())),
            "{line:?}"
        );
    }
}

#[test]
fn what_is_known_follows_the_engine() {
    let known = parse_runtimes(&[DOCKER, COMPOSE].concat()).runtimes;
    let mut again = parse_runtimes(&DOCKER.replace("65QY", "NEWID"));
    refresh(&known, &mut again);
    assert_eq!(again.runtimes[0].engine_id.as_deref(), Some("NEWID:NZGL"));
    assert_eq!(again.runtimes[0].version, "2.26.1-4");
    let mut gone = parse_runtimes(DOCKER_DEAD);
    refresh(&known, &mut gone);
    assert_eq!(gone.runtimes, []);
    assert_eq!(gone.findings.len(), 2);
}
