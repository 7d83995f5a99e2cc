//! How containers are held and let go, by the scripts themselves with an engine that is made up: what a lab meets once in
//! many runs, each time.

use crate::sandboxes::scripts;

/// An engine with containers as files, of which each says how it stands. `LAG` is how long a pause takes.
const ENGINE: &str = r#"#!/bin/sh
case $1 in
  pause) : >begun; sleep "${LAG:-0}"; shift; for one; do echo paused >"$one"; done ;;
  unpause) echo running >"$2" ;;
  start) echo running >"$2" ;;
  inspect) for one; do :; done; cat "$one" ;;
esac
"#;

/// Definitions for holding, where two containers run.
fn shell(lines: &str) -> String {
    scripts::shell(ENGINE, "running", ". $src/extensions/archives/scripts/hold.sh", lines)
}

#[test]
fn what_is_held_is_let_go() {
    let said = shell(
        "(sbx_hold pause snap docker 1 aa bb); cat aa bb; sbx_let_go; cat aa bb; ls -A | grep held || :",
    );
    assert_eq!(said, "paused\npaused\nrunning\nrunning\n");
}

#[test]
fn a_client_that_begins_after_it_was_taken_back_does_nothing() {
    // Its beginning takes until it was called off.
    let slow = r#"printf '#!/bin/sh\nwhile [ -f .held ]; do sleep 0.05; done\nexec /usr/bin/setsid "$@"\n' >setsid; chmod +x setsid"#;
    let said = shell(&format!(
        "{slow}; (sbx_hold pause snap docker 1 aa bb) & until [ -s .held ]; do sleep 0.05; done; sbx_let_go; wait; cat aa bb; ls -A | grep held || :"
    ));
    assert_eq!(said, "running\nrunning\n", "it was not begun before it was called off");
}

#[test]
fn a_client_that_has_begun_is_waited_for() {
    let said = shell(
        "export LAG=2; (sbx_hold pause snap docker 1 aa bb) & until [ -f begun ]; do sleep 0.05; done; sbx_let_go; cat aa bb; wait; cat aa; ls -A | grep held || :",
    );
    assert_eq!(said, "running\nrunning\nrunning\n");
}

/// A start that was killed half-way leaves podman with a container that is neither: whoever comes next starts it.
#[test]
fn what_a_start_left_half_way_is_started() {
    for state in ["exited", "stopped", "initialized", "created"] {
        let said = shell(&format!(
            "printf 'stop docker aa\\nsnap\\n' >.held; echo {state} >aa; sbx_let_go; cat aa"
        ));
        assert_eq!(said, "running\n", "{state}");
    }
}

#[test]
fn what_another_snapshot_holds_is_left_to_it() {
    let said = shell(
        "printf 'pause docker aa\\nother\\n' >.held; echo paused >aa; sbx_let_go snap; cat aa; sbx_let_go other; cat aa",
    );
    assert_eq!(said, "paused\nrunning\n");
}

/// Without setsid, whatever else can begin a session does.
#[test]
fn the_guard_has_a_session_of_its_own() {
    let own = "sh -c 'cut -d \" \" -f 6 /proc/$$/stat'";
    for hidden in ["", "command() { case $2 in setsid) return 1 ;; esac; }; "] {
        let said = shell(&format!("{hidden}cut -d ' ' -f 6 /proc/$$/stat; sbx_alone {own}"));
        let (ours, its) = said.trim().split_once('\n').unwrap();
        assert_ne!(ours, its, "{hidden:?}");
    }
}
