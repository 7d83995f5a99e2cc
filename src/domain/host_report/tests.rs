use super::*;
use crate::domain::facts::Flavour;

const MARK: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn at(unix: i64) -> Time {
    Time::from_unix(1_000_000 + unix)
}

fn runtime(command: &[&str], engine: &str) -> Runtime {
    Runtime {
        flavour: Flavour::DockerComposeV2,
        version: "2.26.1".into(),
        command: command.iter().map(|&word| word.to_owned()).collect(),
        engine: engine.into(),
        engine_version: Some("20.10".into()),
        engine_id: Some("e".into()),
        rootless: false,
        chosen: "detected".into(),
        podman_behind: false,
    }
}

fn detection() -> RuntimeDetection {
    RuntimeDetection {
        at: at(0),
        fingerprint: MARK.into(),
        compose_cmd: Vec::new(),
        scope: DetectionScope::First,
        runtimes: vec![runtime(&["docker", "compose"], "docker")],
        findings: Vec::new(),
        address_pools: None,
    }
}

fn facts(machine: &str, at: Time) -> HostFacts {
    serde_json::from_value(serde_json::json!({
        "at": at, "machine_id": machine, "hostname": "h", "kernel": "k", "os": null, "user": "u",
        "uid": 0, "cpus": 2, "load1": 0.1, "mem_total_bytes": 2, "mem_available_bytes": 1,
        "disk": null, "workspace_root": "/s", "clock_offset_s": null,
        "runtimes": [runtime(&["docker", "compose"], "docker")], "inventory": {"sandboxes": []},
    }))
    .unwrap()
}

fn certified(fingerprint: &str) -> CertifiedRuntime {
    CertifiedRuntime {
        fingerprint: fingerprint.into(),
        certificate: Certificate {
            at: at(0),
            runtime: Some(runtime(&["docker", "compose"], "docker")),
            exit_codes_trusted: Some(true),
            ps_format: None,
            findings: Vec::new(),
        },
    }
}

#[test]
fn a_detection_holds_for_a_day_and_for_minutes_where_something_did_not_answer() {
    let first = DetectionScope::First;
    let whole = detection();
    let part = RuntimeDetection { findings: vec!["docker: no engine".into()], ..detection() };
    for (detection, seconds, holds) in [
        (&whole, 0, true),
        (&whole, 86_400, true),
        (&whole, 86_401, false),
        (&whole, -1, false),
        (&part, 600, true),
        (&part, 601, false),
    ] {
        assert_eq!(detection.holds(at(seconds), &[], &first), holds, "{seconds} s");
    }
    assert!(!whole.holds(at(0), &[], &DetectionScope::All), "others were not looked for");
}

#[test]
fn no_other_command_is_taken_from_the_file_than_a_known_or_named_one() {
    let named = ["/opt/compose".to_owned()];
    let with = |command: &[&str], engine: &str, compose_cmd: &[String]| RuntimeDetection {
        runtimes: vec![runtime(command, engine)],
        compose_cmd: compose_cmd.to_vec(),
        ..detection()
    };
    for (found, compose_cmd, holds) in [
        (with(&["podman-compose"], "podman", &[]), &[][..], true),
        (with(&["sh", "-c", "evil"], "docker", &[]), &[], false),
        (with(&["docker", "compose", "--evil"], "docker", &[]), &[], false),
        (with(&["docker-compose"], "sh", &[]), &[], false),
        (with(&["/opt/compose"], "docker", &named), &named, true),
        (with(&["/opt/other"], "docker", &named), &named, false),
        (with(&["docker", "compose"], "docker", &[]), &named, false),
        (with(&["/opt/compose"], "docker", &named), &[], false),
    ] {
        let words = &found.runtimes[0].command;
        assert_eq!(found.holds(at(0), compose_cmd, &DetectionScope::First), holds, "{words:?}");
    }
    let none = RuntimeDetection { runtimes: Vec::new(), ..detection() };
    let odd = RuntimeDetection { fingerprint: "$(reboot)".into(), ..detection() };
    for found in [none, odd] {
        assert!(!found.holds(at(0), &[], &DetectionScope::First));
    }
}

#[test]
fn a_report_is_fresh_for_half_a_minute_on_the_same_host() {
    let report = HostReport {
        certificate: Some(certified(MARK)),
        ..HostReport::of(facts("m", at(0)), Some(detection()))
    };
    for (seconds, fingerprint, fresh) in
        [(30, MARK, true), (31, MARK, false), (-5, MARK, false), (0, "another", false)]
    {
        assert_eq!(report.is_fresh(at(seconds), fingerprint), fresh, "{seconds} s {fingerprint}");
    }
    let upgraded = HostReport {
        facts: report.facts.clone().map(|mut facts| {
            facts.runtimes[0].engine_version = Some("27".into());
            facts
        }),
        ..report
    };
    assert!(!upgraded.is_fresh(at(0), MARK), "its certificate is of another engine");
}

#[test]
fn what_is_new_takes_the_place_of_what_was_and_another_machine_of_all() {
    let mut report = HostReport::of(facts("m", at(0)), Some(detection()));
    report.certificate = Some(certified(MARK));
    report.renew(HostReport::of(facts("m", at(5)), None));
    assert_eq!(report.facts.as_ref().unwrap().at, at(5));
    assert!(report.detection.is_some() && report.certificate.is_some(), "they hold as before");
    report.renew(HostReport { detection: Some(detection()), ..HostReport::default() });
    assert_eq!(report.facts.as_ref().unwrap().at, at(5), "a detection says nothing of facts");
    let pools = Some(Vec::new());
    let asked = RuntimeDetection { address_pools: pools.clone(), ..detection() };
    for found in [asked, detection()] {
        report.renew(HostReport { detection: Some(found), ..HostReport::default() });
    }
    assert_eq!(report.detection.as_ref().unwrap().address_pools, pools, "they hold as long");
    report.renew(HostReport::of(facts("other", at(6)), None));
    assert!(report.detection.is_none() && report.certificate.is_none());
}
