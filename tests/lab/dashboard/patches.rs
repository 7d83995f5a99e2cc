//! The acceptance list of semantics 7, key by key in the dashboard, and its tree of snapshots and sandboxes as it is shown.

use crate::lab::{Bench, DOCKER, on_host};
use crate::plain_console;
use crate::pty::Console;

/// The tree as the screen shows it, without ids and sizes: branches, names, and a mark for each patch.
fn tree(screen: &str) -> Vec<String> {
    let row = |line: &str| {
        let cells = line.split_once("││")?.1.trim_end().strip_suffix('│')?;
        let (branch, rest) = cells.split_at(cells.find(['◆', '●', '☾', '◐', '✗'])?);
        let mut branch: String = branch.chars().skip(2).collect();
        // A frame is read while it is written: only what is at rest counts.
        branch.extend(rest.starts_with('◐').then_some('◐'));
        let mut words = rest.split_whitespace().skip(1);
        let first = words.next()?;
        let is_id = first.len() == 8 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Some(format!("{branch}{first}"));
        }
        let name = words.next()?;
        let marks = words.filter(|word| word.chars().all(|c| "✓…✗?◐".contains(c)));
        Some(marks.fold(format!("{branch}{name}"), |row, marks| format!("{row} {marks}")))
    };
    screen.lines().filter_map(row).collect()
}

struct Walk<'a> {
    bench: &'a Bench,
    console: Console,
}

impl Walk<'_> {
    fn keys(&mut self, keys: &str) {
        self.console.keys(keys);
    }

    /// Waits until the tree is this one and nothing runs any more.
    fn tree_is(&self, wanted: &[&str]) {
        let settled = |text: &str| tree(text) == wanted && !text.contains(" running");
        self.console.wait_until(&wanted.join("\n"), settled);
    }

    /// What the patches wrote in a sandbox.
    fn log(&self, name: &str) -> String {
        let id = self.bench.get(name)["id"].as_str().unwrap().to_owned();
        let path = self.bench.directory(DOCKER, &id).join("workspace/log");
        on_host(DOCKER, &["cat \"$1\"", path.to_str().unwrap()])
    }

    /// Adds a patch to the snapshot under the cursor, whose patches are open.
    fn add(&mut self, number: u64, script: &str) {
        let path = self.bench.path(format!("patch-{number}.sh"));
        std::fs::write(&path, script).unwrap();
        self.keys("a");
        self.console.wait_for("A patch on my-env");
        self.console.wait_for(&format!("It becomes patch {number}."));
        self.keys(&format!("{}\r", path.display()));
        self.console.wait_for(&format!("patch {number} is on my-env"));
    }

    /// Opens the patches of the snapshot in the first row.
    fn open_patches(&mut self) {
        self.keys("2gp");
        self.console.wait_for("Patches of my-env");
    }

    fn close_patches(&mut self) {
        self.keys("\u{1b}");
        self.console.wait_until("the panes", |text| !text.contains("Patches of my-env"));
    }

    /// Puts the sandbox in the second row to sleep and wakes it; what the question said it gets.
    fn sleep_and_wake(&mut self, marks: &str) -> String {
        self.keys("2gjz");
        self.console.wait_for("Put this sandbox to sleep?");
        self.keys("\t\r");
        self.console
            .wait_until("it sleeps", |text| text.contains("☾") && !text.contains(" running"));
        self.keys("w");
        let question = self.console.wait_for("Wake this sandbox?");
        self.keys("\t\r");
        let row = format!("├ one {marks}");
        let awake = |text: &str| {
            tree(text).contains(&row) && !text.contains(" running") && !text.contains('☾')
        };
        self.console.wait_until(&row, awake);
        question
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn the_acceptance_list_of_patches_and_its_tree() {
    let bench = Bench::new();
    bench.create_stack(DOCKER, &bench.web_stack("hello"), &["--name", "golden"]);
    let mut walk = Walk { bench: &bench, console: plain_console(&bench) };
    walk.console.wait_until("the stack", |text| text.contains("golden") && text.contains("ready"));

    // The first patch has sequence 1, and is applied on restore.
    walk.keys("s");
    walk.console.wait_for("Snapshot of");
    walk.keys("my-env\r");
    walk.tree_is(&["my-env"]);
    walk.open_patches();
    walk.add(1, "echo one >> log\n");
    walk.close_patches();
    for name in ["one", "two"] {
        walk.keys("2gr");
        walk.console.wait_for("Restore snap-");
        walk.console.wait_for("gets 1 patch before it is ready");
        walk.keys(&format!("{name}\r"));
        walk.console.wait_until(name, |text| {
            tree(text).iter().any(|row| row.ends_with(&format!("{name} ✓")))
        });
        walk.console.wait_until("no running job", |text| !text.contains(" running"));
        assert_eq!(walk.log(name).trim(), "one");
    }
    walk.tree_is(&["my-env", "├ one ✓", "└ two ✓"]);

    // A second one reaches it only after sleep and wake, with the first one's effects intact.
    walk.open_patches();
    walk.add(2, "test \"$(cat log)\" = one\necho two >> log\n");
    walk.close_patches();
    walk.tree_is(&["my-env", "├ one ✓…", "└ two ✓…"]);
    assert_eq!(walk.log("one").trim(), "one");
    let question = walk.sleep_and_wake("✓✓");
    assert!(question.contains("gets patch 2"), "{question}");
    assert_eq!(walk.log("one").lines().collect::<Vec<_>>(), ["one", "two"]);
    walk.tree_is(&["my-env", "├ one ✓✓", "└ two ✓…"]);

    // A third that fails blocks a fourth, and its output is at hand.
    walk.open_patches();
    walk.add(3, "echo no such table\nexit 7\n");
    walk.add(4, "echo four >> log\n");
    walk.close_patches();
    walk.sleep_and_wake("✓✓✗…");
    walk.console.wait_until("how the wake ended", |text| {
        text.lines().any(|line| line.contains("⚠ wake") && line.contains("but"))
    });
    assert_eq!(walk.log("one").lines().collect::<Vec<_>>(), ["one", "two"]);
    walk.keys("2gj\rG");
    walk.console.wait_for("Timeline");
    walk.keys("g");
    walk.keys("\u{1b}");
    // Behind an escape a key would be taken for one with alt.
    walk.console
        .wait_until("the panes", |text| !text.contains("Timeline") && !text.contains("Reach it"));
    walk.open_patches();
    let failed = |text: &str| {
        text.contains("✗") && text.contains("exit 7") && text.contains("no such table")
    };
    walk.console.wait_until("what failed", failed);
    walk.console.wait_for("waits: an earlier one failed");

    // Without the third the list is 1, 2, 4; the next wake applies 4 and clears the error. Taken away again: not found.
    walk.keys("gjjjjjjx");
    walk.console.wait_until("the question", |text| {
        text.contains("Take this patch away?") && text.contains(" 3 no description")
    });
    walk.keys("\t\r");
    walk.console.wait_for("patch 3 is taken away");
    walk.close_patches();
    walk.tree_is(&["my-env", "├ one ✓✓…", "└ two ✓……"]);
    walk.sleep_and_wake("✓✓✓");
    assert_eq!(walk.log("one").lines().collect::<Vec<_>>(), ["one", "two", "four"]);
    assert!(bench.get("one")["patch_error"].is_null());
    bench.run(["patches", "remove", "my-env", "3", "--yes"]).error("not_found");

    // After the fourth was taken away a new one is 5.
    walk.open_patches();
    walk.keys("gjjjjjjx");
    walk.console.wait_until("the question", |text| {
        text.contains("Take this patch away?") && text.contains(" 4 no description")
    });
    walk.keys("\t\r");
    walk.console.wait_for("patch 4 is taken away");
    walk.add(5, "echo five >> log\n");
    walk.close_patches();

    // A snapshot of 1, and a sandbox on that: neither gets a patch of the first snapshot, ever.
    walk.keys("2gjs");
    walk.console.wait_for("Snapshot of");
    walk.keys("my-env-2\r");
    walk.tree_is(&["my-env", "├ one ✓✓…", "│ └ my-env-2", "└ two ✓……"]);
    walk.keys("2gjjr");
    walk.console.wait_for("no patches: it starts as it was");
    walk.keys("three\r");
    walk.tree_is(&["my-env", "├ one ✓✓…", "│ └ my-env-2", "│   └ three", "└ two ✓……"]);
    assert_eq!(walk.log("three").lines().collect::<Vec<_>>(), ["one", "two", "four"]);
    let shown = walk.console.text();
    assert!(!tree(&shown).iter().any(|row| row.contains("golden")), "{shown}");

    // In use, with everything that depends on it; and by force nothing happens that was not typed.
    walk.keys("2gd");
    let question = walk.console.wait_for("it is in use");
    for dependant in ["patch 1 (", "patch 2 (", "patch 5 (", "sandbox one (", "sandbox two ("] {
        assert!(question.contains(dependant), "{dependant}: {question}");
    }
    walk.keys("\t\r\u{1b}");
    walk.console.wait_until("the panes", |text| !text.contains("it is in use"));
    walk.tree_is(&["my-env", "├ one ✓✓…", "│ └ my-env-2", "│   └ three", "└ two ✓……"]);
    walk.keys("q");
    assert_eq!(walk.console.ended_within(std::time::Duration::from_mins(1)), 0);
}
