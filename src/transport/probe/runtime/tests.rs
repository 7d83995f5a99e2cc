use super::*;

mod script;

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
    let runtime = parse_runtimes(&said.concat()).runtimes.remove(0);
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

const MARK: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn found_on_docker() -> RuntimeDetection {
    let now = Time::from_unix(1000);
    let anew = Detecting::new(DetectionScope::First, &[], None, now);
    assert_eq!(anew.arguments(), ("first", Vec::new()));
    let said = [DOCKER, COMPOSE, "rt.fingerprint=", MARK, "\n"].concat();
    anew.read(&said).detection.unwrap()
}

#[test]
fn what_is_known_follows_the_engine() {
    let known = found_on_docker();
    let now = Time::from_unix(1010);
    let again = Detecting::new(DetectionScope::First, &[], Some(&known), now);
    let words = ["first", MARK, "docker"].map(str::to_owned).to_vec();
    assert_eq!(again.arguments(), ("known", words));
    let said = format!("rt.known=yes\nrt.fingerprint={MARK}\n{DOCKER}").replace("65QY", "NEWID");
    let report = again.read(&said);
    assert_eq!(report.runtimes[0].engine_id.as_deref(), Some("NEWID:NZGL"));
    assert_eq!((report.runtimes[0].version.as_str(), &report.detection), ("2.26.1-4", &None));
    // Podman behind the same words, and an engine that ended: nothing of what was known is left.
    for said in [DOCKER_IS_PODMAN, DOCKER_DEAD] {
        let report = again.read(&format!("rt.known=yes\n{said}"));
        assert_eq!((report.runtimes, report.detection), (vec![], None), "{said}");
    }
}

#[test]
fn what_is_known_is_nothing_where_the_fingerprint_or_the_question_is_another_one() {
    let known = found_on_docker();
    let now = Time::from_unix(1010);
    let again = Detecting::new(DetectionScope::First, &[], Some(&known), now);
    let other = MARK.replace('0', "f");
    let said = format!("{DOCKER}{COMPOSE}rt.fingerprint={other}\n").replace("2.26.1-4", "5.0.0");
    let report = again.read(&said);
    let detection = report.detection.unwrap();
    assert_eq!((detection.runtimes[0].version.as_str(), detection.fingerprint), ("5.0.0", other));
    let named = ["/opt/compose".to_owned()];
    for (scope, words, now) in [
        (DetectionScope::All, &[][..], now),
        (DetectionScope::First, &named, now),
        (DetectionScope::First, &[], Time::from_unix(900)),
    ] {
        let asked = Detecting::new(scope, words, Some(&known), now);
        assert_ne!(asked.arguments().0, "known", "{words:?}");
    }
    // A host without one, or with something else in its place, is asked in full each time.
    for line in ["", "rt.fingerprint=\n", "rt.fingerprint=sha256sum: not found\n"] {
        let anew = again.anew();
        assert_eq!(anew.read(&[DOCKER, COMPOSE, line].concat()).detection, None, "{line}");
    }
}
