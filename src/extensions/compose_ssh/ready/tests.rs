//! Since when a service must run.

use super::*;

const SETTLE: Duration = Duration::from_secs(2);

fn container(
    state: &str,
    exit_code: Option<i32>,
    started: &str,
    finished: Option<&str>,
) -> Container {
    Container {
        id: "1".to_owned(),
        name: "sbx-1-db-1".to_owned(),
        sandbox: "1".to_owned(),
        service: "db".to_owned(),
        state: state.to_owned(),
        exit_code,
        restarts: Some(0),
        health: None,
        ports: Vec::new(),
        started_at: started.parse().ok(),
        finished_at: finished.map(|at| at.parse().unwrap()),
    }
}

fn service(one_shot: bool) -> Expected {
    let (name, restart) = ("db".to_owned(), "no".to_owned());
    Expected { name, replicas: 1, restart, one_shot, needs: BTreeMap::new() }
}

fn left(container: &Container, one_shot: bool) -> Option<Duration> {
    let now: Time = "2026-11-29T08:00:10.5Z".parse().unwrap();
    let left =
        Runs::default().left(&[service(one_shot)], std::slice::from_ref(container), now, SETTLE);
    left.map(|(_, left)| left)
}

#[test]
fn a_service_has_settled_when_it_has_run_for_long_enough_by_the_hosts_clock() {
    let old = container("running", None, "2026-11-29T08:00:08.5Z", None);
    assert_eq!(left(&old, false), None);
    // Wherever the host is.
    let abroad = container("running", None, "2026-11-29T10:00:08.5+02:00", None);
    assert_eq!(left(&abroad, false), None);
    let young = container("running", None, "2026-11-29T08:00:10Z", None);
    assert_eq!(left(&young, false), Some(Duration::from_millis(1500)));
    assert_eq!(left(&young, true), None, "a one-shot is not to stay");
    assert_eq!(
        left(&Container { health: Some("healthy".to_owned()), ..young.clone() }, false),
        None
    );
    assert!(
        left(&Container { health: Some("starting".to_owned()), ..young.clone() }, false).is_some()
    );
    assert!(
        left(&Container { started_at: None, ..young.clone() }, false).is_some(),
        "nobody says since when"
    );
    let ahead = container("running", None, "2026-11-29T09:00:00Z", None);
    assert!(left(&ahead, false).is_some(), "a clock that was set back tells nothing");
    assert_eq!(
        left(&container("exited", Some(0), "2026-11-29T08:00:10Z", None), false),
        None,
        "it is judged elsewhere"
    );
}

#[test]
fn what_ended_after_it_had_settled_is_no_failure_of_the_start() {
    let judged = |finished: &str| {
        let ended = container("exited", Some(3), "2026-11-29T08:00:00Z", Some(finished));
        runtime::judge(&[service(false)], &excused(&[ended], SETTLE))
    };
    assert!(matches!(judged("2026-11-29T08:00:00.2Z"), Judgement::Broken { .. }));
    assert_eq!(judged("2026-11-29T08:00:02Z"), Judgement::Ready);
}
