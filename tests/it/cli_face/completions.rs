//! Completion scripts: their question, and bash's script as bash runs it.

use std::path::Path;
use std::process::{Command, Output};

use sandboxer::domain::State;
use sandboxer::domain::host_view::HostState;
use serde_json::json;

use sandboxer::domain::snapshot::SnapshotKind;

use super::cli_world::*;
use super::snapshot_records::{relatives, snapshot};
use crate::test_env::fixture::host;

/// The answer to these words; the last one is being typed.
async fn answer(console: &Console, words: &[&str]) -> String {
    let args = ["sandboxer", "__complete"].iter().chain(words).map(|word| (*word).to_owned());
    let ran = run_args(World::default(), console, args.collect()).await;
    assert_eq!(ran.said(), (0, ""), "{words:?}");
    ran.stdout
}

#[tokio::test]
async fn words_of_each_kind() {
    let mut fixture = relatives();
    let mut undo = snapshot("snap-0000000e", None, "d1d2d3d4");
    (undo.kind, undo.sandbox_name) = (SnapshotKind::Undo, Some("shop".into()));
    fixture.snapshots.push(undo);
    fixture.records.truncate(1);
    fixture.hosts =
        vec![host("coulombcore", HostState::Up, Some(12)), host("Lab_2", HostState::Down, None)];
    let console = env_of(fixture).await;
    let sandboxes = "sandboxes\nmy-env\ta1b2c3d4, ready on coulombcore\na1b2c3d4\tmy-env, ready on coulombcore\n";
    assert_eq!(answer(&console, &["destroy", ""]).await, sandboxes);
    assert_eq!(
        answer(&console, &["create", "--host", ""]).await,
        "hosts\nlocal\t\ncoulombcore\tops@coulombcore\nLab_2\tops@Lab_2\n"
    );
    let compose = "\tRun a repository's compose stack in isolation\n";
    let short = answer(&console, &["create", "--profile="]).await;
    assert!(
        short.starts_with("profiles\n") && short.contains(&format!("\ncompose-e2e{compose}")),
        "{short}"
    );
    let begun = answer(&console, &["profiles", "show", "prof"]).await;
    assert!(begun.contains(&format!("\nprofile.compose-e2e{compose}")), "{begun}");
    assert!(
        answer(&console, &["extensions", "show", ""])
            .await
            .starts_with("extensions\ncompose-ssh\t")
    );
    assert_eq!(
        answer(&console, &["exec", "my-env", "--service", ""]).await,
        "services\nweb\trunning\n"
    );
    let snapshots = answer(&console, &["restore", ""]).await;
    assert!(snapshots.starts_with("snapshots\nbase\tsnap-0000000a, ready, of "), "{snapshots}");
    assert!(
        answer(&console, &["snapshots", "diff", "base", ""])
            .await
            .ends_with(&sandboxes["sandboxes\n".len()..])
    );
    let removed = answer(&console, &["undo", ""]).await;
    assert_eq!(removed, "removed\nshop\td1d2d3d4, snap-0000000e\nd1d2d3d4\tshop, snap-0000000e\n");
    assert!(
        answer(&console, &["patches", "remove", "base", ""]).await.starts_with("patches\npat-")
    );
    assert_eq!(answer(&console, &["operations", "get", ""]).await, "operations\n");
    for words in [["create", "--id", ""].as_slice(), &["label", "my-env", ""], &["des"], &[]] {
        assert_eq!(answer(&console, words).await, "", "{words:?}");
    }
    // A server would have to be asked; these records are not its own.
    let asked = console.calls().len();
    assert_eq!(answer(&console, &["--server", "unix:/x", "destroy", ""]).await, "sandboxes\n");
    assert_eq!(console.calls().len(), asked);
}

#[tokio::test]
async fn what_no_name_could_be_is_left_out() {
    let mut wicked = named("c0000001", "$(reboot)", State::Other("a\n\u{1b}[2Jb\tc".into()));
    wicked.host = "x\ny".into();
    let wicked =
        vec![wicked, named("-oX", "a b", State::Ready), named("x;y", "`id`", State::Ready)];
    let console = with(wicked).await;
    assert_eq!(
        answer(&console, &["get", ""]).await,
        "sandboxes\nc0000001\t$(reboot), a b c on x y\n"
    );
}

/// The program itself, in a home of its own.
fn program(home: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
    command.args(args).env_clear().env("HOME", home).output().unwrap()
}

/// A home with a sandbox, a host and a configuration.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".local/share/sandboxer");
    std::fs::create_dir_all(&data).unwrap();
    let records = json!({"schema": 1, "revision": 1, "records": [ready("a1b2c3d4")]});
    std::fs::write(data.join("sandboxes.json"), records.to_string()).unwrap();
    let config = home.path().join(".config/sandboxer/config.yaml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "hosts: {coulombcore: {ssh: nobody@192.0.2.1}}").unwrap();
    home
}

#[test]
fn an_answer_makes_nothing_and_is_silent() {
    let files = |home: &Path| {
        let listed = Command::new("find").arg(home).output().unwrap().stdout;
        String::from_utf8(listed).unwrap().lines().count()
    };
    let home = home();
    let (before, empty) = (files(home.path()), tempfile::tempdir().unwrap());
    let told = |home: &Path, args: &[&str]| {
        let output = program(home, args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told(home.path(), &["__complete", "get", ""]).contains("\nmy-env\t"));
    assert!(told(home.path(), &["__complete", "create", "--host", ""]).contains("\ncoulombcore\t"));
    assert_eq!(told(empty.path(), &["__complete", "get", ""]), "sandboxes\n");
    let elsewhere = home.path().join(".local/share/sandboxer").display().to_string();
    assert!(
        told(empty.path(), &["__complete", "--data-dir", &elsewhere, "get", ""])
            .contains("\nmy-env\t")
    );
    assert_eq!((files(home.path()), files(empty.path())), (before, 1));
    std::fs::write(home.path().join(".local/share/sandboxer/sandboxes.json"), "{").unwrap();
    assert_eq!(told(home.path(), &["__complete", "get", ""]), "sandboxes\n");
    std::fs::write(home.path().join(".config/sandboxer/config.yaml"), "hosts: [").unwrap();
    assert_eq!(told(home.path(), &["__complete", "create", "--host", ""]), "hosts\n");
    assert_eq!(told(home.path(), &["__complete", "--nothing", "--", "x"]), "");
    assert_eq!(told(home.path(), &["__complete"]), "");
}

#[test]
fn bash_offers_what_is_known_and_else_what_clap_wrote() {
    let home = home();
    let script = program(home.path(), &["completions", "bash"]).stdout;
    std::fs::write(home.path().join("script"), script).unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_sandboxer")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(folder.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    // The words as bash cuts them, and the last one up to the cursor.
    let offered = |words: &[&str], cursor: &str| {
        let asks = r#"source "$HOME/script"; cursor=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            function=$(complete -p sandboxer); [[ $function =~ -F\ ([^ ]+) ]]
            "${BASH_REMATCH[1]}" sandboxer "$cursor" "${COMP_WORDS[COMP_CWORD-1]}"; printf '%s\n' "${COMPREPLY[@]}""#;
        let mut bash = Command::new("bash");
        bash.args(["--norc", "--noprofile", "-c", asks, "bash", cursor, "sandboxer"]).args(words);
        bash.env_clear()
            .env("HOME", home.path())
            .env("PATH", path.as_ref().unwrap())
            .current_dir(home.path());
        let output = bash.output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(offered(&["destroy", ""], ""), "my-env\na1b2c3d4\n");
    assert_eq!(offered(&["destroy", "my-env", "a1"], "a1"), "a1b2c3d4\n");
    assert_eq!(offered(&["create", "--host", "c"], "c"), "coulombcore\n");
    assert_eq!(offered(&["create", "--host", "="], ""), "local\ncoulombcore\n");
    assert_eq!(offered(&["create", "--host", "=", "lo"], "lo"), "local\n");
    assert!(offered(&["create", "--profile", ""], "").contains("sandbox-canary\n"));
    // No file's name where nothing fits.
    assert_eq!(offered(&["snapshots", "get", "s"], "s"), "\n");
    assert_eq!(offered(&["dest"], "dest"), "destroy\n");
    assert_eq!(offered(&["destroy", "--force-p"], "--force-p"), "--force-protected\n");
    assert_eq!(offered(&["snapshots", "import", "--host", "local", "scr"], "scr"), "\n");
    assert_eq!(offered(&["--config", "scr"], "scr"), "script\n");
}
