//! Jobs when the terminal is gone, or a signal ends the dashboard: a canary that is held in the midst of its making.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Place, assert_restored, signal};
use crate::support::pty::{Console, Owned};

/// A gate that holds a canary in the midst of its making, until its file is there.
pub(super) struct Gate(PathBuf);

impl Gate {
    pub(super) fn new(place: &Place) -> Self {
        Self(place.home().join("gate"))
    }

    pub(super) fn failpoints(&self) -> PathBuf {
        PathBuf::from(format!("create.provisioned=return({})", self.0.display()))
    }

    /// Waits until something is held here.
    pub(super) fn wait(&self) {
        let reached = self.0.with_extension("reached");
        wait_until("something at the gate", || reached.exists());
    }

    pub(super) fn open(&self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// A place, and a dashboard in it that is making a canary.
fn while_creating() -> (Place, Gate, Console) {
    while_creating_with("")
}

/// The same with more failpoints, each behind a `;`.
fn while_creating_with(more: &str) -> (Place, Gate, Console) {
    let place = Place::new();
    let gate = Gate::new(&place);
    let points = PathBuf::from(format!("{}{more}", gate.failpoints().display()));
    let [home, path, shell] = place.env();
    let mut console = Console::start(&[], &[home, path, shell, ("FAILPOINTS", &points)], 120, 36);
    console.wait_for("Sandboxes");
    console.keys("n");
    console.wait_for("An empty workspace");
    console.keys("\r");
    console.wait_for("on local");
    console.keys("\r");
    gate.wait();
    (place, gate, console)
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !is() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_state_file(place: &Place) -> bool {
    let folder = place.home().join(".local/state/sandboxer");
    let names = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).any(|name| name.starts_with("dashboard-"))
}

#[test]
fn a_hang_up_takes_the_screen_at_once_and_finishes_what_runs() {
    let (place, gate, mut console) = while_creating();
    signal(&console, "-HUP");
    assert_restored(&console);
    signal(&console, "-HUP");
    assert!(console.child.try_wait().unwrap().is_none(), "what runs is finished");
    assert_eq!(place.only()["state"], "provisioning");
    gate.open();
    assert_eq!(console.ended_within(Duration::from_mins(1)), 129);
    assert_eq!(place.only()["state"], "ready");
}

#[test]
fn a_lost_terminal_finishes_what_runs() {
    let place = Place::new();
    let gate = Gate::new(&place);
    let points = gate.failpoints();
    let [home, path, shell] = place.env();
    let mut dashboard = Owned::start(&[], &[home, path, shell, ("FAILPOINTS", &points)]);
    dashboard.keys("n");
    dashboard.wait_for("An empty workspace");
    dashboard.keys("\r");
    dashboard.wait_for("on local");
    dashboard.keys("\r");
    gate.wait();
    dashboard.lose();
    // The process has nothing to draw on any more, and is there.
    std::thread::sleep(Duration::from_secs(1));
    assert!(dashboard.is_there());
    gate.open();
    dashboard.wait_for_end();
    assert_eq!(place.only()["state"], "ready");
}

#[test]
fn a_termination_rolls_back_what_runs_also_after_a_hang_up() {
    for signals in [&["-TERM"][..], &["-HUP", "-TERM"]] {
        let (place, gate, mut console) = while_creating();
        for name in signals {
            signal(&console, name);
            assert_restored(&console);
        }
        // Written when the loop has ended, right before what runs is rolled back.
        wait_until("the state file", || has_state_file(&place));
        gate.open();
        assert_eq!(console.ended_within(Duration::from_mins(1)), 143, "{signals:?}");
        let record = place.only();
        assert_eq!(
            (&record["state"], &record["reason"]),
            (&"failed".into(), &"cancelled".into()),
            "{signals:?}"
        );
    }
}

/// Ticks of CPU that a process has used.
fn used(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn what_never_ends_is_rolled_back_after_the_limit_and_the_process_ends() {
    let (place, _gate, mut console) = while_creating_with(";unseen.limit=return(1)");
    signal(&console, "-HUP");
    // The gate stays shut: neither the work nor its rollback ever ends.
    assert_eq!(console.ended_within(Duration::from_mins(1)), 129);
    place.make(&["recover"]);
    assert_ne!(place.only()["state"], "provisioning", "recover brings it into order");
}

#[test]
fn a_console_without_a_terminal_does_next_to_nothing_while_it_waits() {
    let (_place, gate, mut console) = while_creating();
    let pid = console.child.process_id().unwrap();
    signal(&console, "-HUP");
    assert_restored(&console);
    let before = used(pid);
    std::thread::sleep(Duration::from_secs(2));
    let ticks = used(pid) - before;
    // Of 200 that a loop which spins would use; how busy the machine is adds nothing to it.
    assert!(ticks < 40, "{ticks} ticks in two seconds");
    gate.open();
    assert_eq!(console.ended_within(Duration::from_mins(1)), 129);
}

#[test]
fn a_shell_that_is_open_at_a_hang_up_ends_and_what_runs_is_finished() {
    let (place, gate, mut console) = while_creating();
    // A second one, whose shell is open.
    place.make(&["create", "--name", "other"]);
    console.wait_for("● other");
    console.keys(":other\r!");
    console.wait_until("a prompt", |text| !text.contains("Sandboxes"));
    console.keys("echo the-shell-is-$((40+2)); sleep 1000\r");
    console.wait_for("the-shell-is-42");
    signal(&console, "-HUP");
    std::thread::sleep(Duration::from_millis(300));
    assert!(console.child.try_wait().unwrap().is_none(), "what runs is finished");
    gate.open();
    assert_eq!(console.ended_within(Duration::from_mins(1)), 129);
    let listed = place.json(&["list", "--state", "ready"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
}
