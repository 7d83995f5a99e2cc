//! Questions on a real terminal: the binary in a pty, with its streams led elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::pty::Console;
use crate::support::{base_path, busy_machine};

/// A home with one sandbox in it, on this machine.
struct Place {
    folder: tempfile::TempDir,
    home: PathBuf,
    bin: PathBuf,
    id: String,
}

impl Place {
    fn with_a_canary() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
        std::fs::create_dir(&home).unwrap();
        busy_machine::take_all(&home);
        base_path::make(&bin);
        let mut place = Self { folder, home, bin, id: String::new() };
        let made = place.sandboxer(&[
            "create",
            "--profile",
            "sandbox-canary",
            "--host",
            "local",
            "--json",
        ]);
        let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
        made["id"].as_str().unwrap().clone_into(&mut place.id);
        place
    }

    fn env(&self) -> [(&str, &Path); 2] {
        [("HOME", &self.home), ("PATH", &self.bin)]
    }

    fn sandboxer(&self, args: &[&str]) -> Vec<u8> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        command.env_clear().envs(self.env()).args(args);
        command.output().unwrap().stdout
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a line of a shell on a terminal; `$1` is the binary, `$2` the sandbox, `$3` a folder.
    fn types(&self, line: &str) -> Console {
        let folder = self.folder.path().to_str().unwrap();
        let args = ["-c", line, "sh", env!("CARGO_BIN_EXE_sandboxer"), &self.id, folder];
        Console::start_program("sh", &args, &self.env(), 120, 30)
    }

    fn is_there(&self) -> bool {
        String::from_utf8(self.sandboxer(&["list", "--json"])).unwrap().contains(&self.id)
    }
}

fn ends(console: &mut Console, status: u32) {
    assert_eq!(console.ended_within(Duration::from_mins(1)), status, "{}", console.text());
}

#[test]
fn a_destroy_asks_on_the_terminal_and_only_what_is_typed_then_answers() {
    let place = Place::with_a_canary();
    // Where stderr leads is nobody's answer.
    for line in [
        "exec \"$1\" destroy \"$2\" 2>\"$3/err\"",
        "\"$1\" destroy \"$2\" 2>&1 >\"$3/out\" | cat >\"$3/err\"; exit 130",
    ] {
        let mut console = place.types(line);
        console.wait_for("Destroy this sandbox? [y/N]");
        console.keys("n\r");
        ends(&mut console, 130);
        assert_eq!(
            std::fs::read_to_string(place.file("err")).unwrap(),
            "error: nothing was changed\n"
        );
        assert!(place.is_there(), "{line}");
    }
    // What was typed before the question was meant for something else.
    let mut console =
        place.types("echo typing; while ! [ -e \"$3/go\" ]; do sleep 0.05; done; exec \"$1\" destroy \"$2\" --quiet");
    console.wait_for("typing");
    console.keys("y\r");
    console.wait_for("typing\ny");
    std::fs::write(place.file("go"), "").unwrap();
    console.wait_for("Destroy this sandbox? [y/N]");
    console.keys("\r");
    ends(&mut console, 130);
    assert!(place.is_there());
    // No terminal of its own: nobody can be asked, and standard input is one all the same.
    let mut console = place.types("exec setsid -w \"$1\" destroy \"$2\"");
    console.wait_for("asks on /dev/tty, which cannot be used");
    ends(&mut console, 2);
    assert!(place.is_there());
    let mut console = place.types("exec \"$1\" destroy \"$2\" 2>/dev/null");
    console.wait_for("Destroy this sandbox? [y/N]");
    console.keys("\u{3}");
    ends(&mut console, 130);
    assert!(place.is_there());
    let mut console = place.types("exec \"$1\" destroy \"$2\" 2>/dev/null");
    console.wait_for("Destroy this sandbox? [y/N]");
    console.keys("yes\r");
    ends(&mut console, 0);
    assert!(!place.is_there());
}
