//! Questions on a real terminal: the binary in a pty, with its streams led elsewhere.

use std::time::Duration;

use crate::dashboard::pty::Place;
use crate::support::pty::Console;

/// Runs a line of a shell on a terminal; `$1` is the binary, `$2` the sandbox, `$3` a folder.
fn types(place: &Place, line: &str) -> Console {
    let (id, folder) = (place.only_id(), place.home().to_str().unwrap());
    let args = ["-c", line, "sh", env!("CARGO_BIN_EXE_sandboxer"), &id, folder];
    Console::start_program("sh", &args, &place.env(), 120, 30)
}

fn is_there(place: &Place) -> bool {
    !place.only().is_null()
}

fn ends(console: &mut Console, status: u32) {
    assert_eq!(console.ended_within(Duration::from_mins(1)), status, "{}", console.text());
}

#[test]
fn a_destroy_asks_on_the_terminal_and_only_what_is_typed_then_answers() {
    let place = Place::new();
    place.make(&["create", "--profile", "sandbox-canary", "--host", "local", "--json"]);
    // Where stderr leads is nobody's answer.
    for line in [
        "exec \"$1\" destroy \"$2\" 2>\"$3/err\"",
        "\"$1\" destroy \"$2\" 2>&1 >\"$3/out\" | cat >\"$3/err\"; exit 130",
    ] {
        let mut console = types(&place, line);
        console.wait_for("Destroy this sandbox? [y/N]");
        console.keys("n\r");
        ends(&mut console, 130);
        let said = std::fs::read_to_string(place.home().join("err")).unwrap();
        assert_eq!(said, "error: nothing was changed\n");
        assert!(is_there(&place), "{line}");
    }
    // What was typed before the question was meant for something else.
    let line = "echo typing; while ! [ -e \"$3/go\" ]; do sleep 0.05; done; exec \"$1\" destroy \"$2\" --quiet";
    let mut console = types(&place, line);
    console.wait_for("typing");
    console.keys("y\r");
    console.wait_for("typing\ny");
    std::fs::write(place.home().join("go"), "").unwrap();
    console.wait_for("Destroy this sandbox? [y/N]");
    console.keys("\r");
    ends(&mut console, 130);
    assert!(is_there(&place));
    // No terminal of its own: nobody can be asked, and standard input is one all the same.
    let mut console = types(&place, "exec setsid -w \"$1\" destroy \"$2\"");
    console.wait_for("asks on /dev/tty, which cannot be used");
    ends(&mut console, 2);
    assert!(is_there(&place));
    for (keys, status) in [("\u{3}", 130), ("yes\r", 0)] {
        let mut console = types(&place, "exec \"$1\" destroy \"$2\" 2>/dev/null");
        console.wait_for("Destroy this sandbox? [y/N]");
        console.keys(keys);
        ends(&mut console, status);
        assert_eq!(is_there(&place), status != 0);
    }
}
