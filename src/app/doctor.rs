//! `doctor`: what works on this machine and what does not. Whatever is broken is a check that failed, never an early
//! end: this is the command for somebody to whom no other one answers.

use std::io::{self, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{Access, access, statvfs};
use tokio::process::Command;

use crate::config::{Colours, Config, Environment, Overrides, Paths, Terminal};
use crate::domain::child_process::child;
use crate::domain::error::Error;
use crate::domain::figures::bytes;
use crate::domain::request::{Check, CheckState};
use crate::domain::text::plural;
use crate::store::catalogue::{Catalogue, Entry};

/// Time that a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// Below this much free space records may soon not be written, in bytes.
const SCARCE: u64 = 256 << 20;

/// Below this much they are not, in bytes.
const FULL: u64 = 4 << 20;

/// Looks at everything that can be looked at: this machine first, then what the manager knows. With `claim` the data
/// directory is made this machine's.
pub async fn examine(overrides: &Overrides, environment: &Environment, claim: bool) -> Vec<Check> {
    let config = Config::load(overrides, environment);
    let mut checks = vec![configuration(&config)];
    // A file that cannot be read does not keep anybody from knowing where the others are.
    if let Ok(paths) = Paths::resolve(overrides, environment) {
        checks.push(data_directory(&paths.data_dir));
        checks.push(log_file(&paths.log_file));
        checks.extend(catalogue(&paths));
    }
    let remote = config
        .as_ref()
        .is_ok_and(|config| config.hosts.iter().any(|host| host.ssh_target().is_some()));
    let (ssh, rsync) = tokio::join!(ssh(remote), rsync());
    checks.extend([ssh, rsync, terminal(environment)]);
    match &config {
        Ok(config) => checks.extend(records(config, claim).await),
        Err(_) if claim => {
            let message = "nothing was claimed: the configuration comes first".to_owned();
            checks.push(check("claim", CheckState::Failed, message));
        }
        Err(_) => {}
    }
    checks
}

async fn records(config: &Config, claim: bool) -> Vec<Check> {
    let app = match super::local(config) {
        Ok(app) => app,
        Err(error) => return vec![failed("records", &error)],
    };
    let seen = app.manager.doctor(claim).await;
    app.client.close().await;
    seen.unwrap_or_else(|error| vec![failed(if claim { "claim" } else { "records" }, &error)])
}

fn configuration(config: &Result<Config, Error>) -> Check {
    let name = "configuration";
    match config {
        Err(error) => failed(name, error),
        Ok(config) => {
            let file = &config.paths.config_file;
            let hosts = config.hosts.len();
            let message = if file.exists() {
                format!("{}, {}, local among them", file.display(), counted(hosts, "host"))
            } else {
                format!("there is no {}; the defaults hold", file.display())
            };
            check(name, CheckState::Ok, message)
        }
    }
}

fn data_directory(dir: &Path) -> Check {
    let name = "data directory";
    let there = match writable(dir, true) {
        Ok(there) => there,
        Err(why) => {
            return hinted(
                check(name, CheckState::Failed, why),
                "nothing is done that cannot be written down",
            );
        }
    };
    let Ok(system) = statvfs(there) else {
        return check(name, CheckState::Ok, dir.display().to_string());
    };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let state = if free < FULL {
        CheckState::Failed
    } else if free < SCARCE {
        CheckState::Warning
    } else {
        CheckState::Ok
    };
    let made = if there == dir { "" } else { ", which the first write makes" };
    let said = format!("{}{made}, {} free", dir.display(), bytes(free));
    let open = there == dir && dir.metadata().is_ok_and(|found| found.mode() & 0o077 != 0);
    if open && state == CheckState::Ok {
        let hint = format!(
            "chmod 700 {}; the next write does it where nothing else is in there",
            dir.display()
        );
        return hinted(
            check(name, CheckState::Warning, format!("{said}; others may look into it")),
            &hint,
        );
    }
    check(name, state, said)
}

fn log_file(file: &Path) -> Check {
    let name = "log file";
    match writable(file, false) {
        Ok(_) => check(name, CheckState::Ok, file.display().to_string()),
        // A log is no reason to fail.
        Err(why) => hinted(
            check(name, CheckState::Warning, format!("{why}; nothing is logged")),
            "--log-file FILE",
        ),
    }
}

/// Whether a directory, or a file, can be written, or made; what of its path is there. Makes nothing.
fn writable(path: &Path, directory: bool) -> Result<&Path, String> {
    let there =
        path.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    let is_dir = there.is_dir();
    if is_dir != (directory || there != path) {
        let what = if is_dir { "a directory" } else { "no directory" };
        return Err(format!("{} is {what}", there.display()));
    }
    let wanted = if is_dir { Access::WRITE_OK | Access::EXEC_OK } else { Access::WRITE_OK };
    access(there, wanted)
        .map_err(|error| format!("{} cannot be written: {error}", there.display()))?;
    Ok(there)
}

fn catalogue(paths: &Paths) -> Vec<Check> {
    let catalogue = Catalogue::load(
        Some(&paths.profiles_dir),
        Some(&paths.extensions_dir),
        &super::available(),
    );
    let mut checks = entries("profile", catalogue.profiles());
    checks.extend(entries("extension", catalogue.extensions()));
    checks
}

/// Count of entries, and a check for each that is broken.
fn entries<T>(kind: &str, entries: &[Entry<T>]) -> Vec<Check> {
    let broken = |entry: &&Entry<T>| entry.definition.is_none() || !entry.problems.is_empty();
    let bad = entries.iter().filter(broken).count();
    let message = match bad {
        0 => counted(entries.len(), kind),
        _ => format!("{}, {bad} of them broken", counted(entries.len(), kind)),
    };
    let mut checks = vec![check(&format!("{kind}s"), CheckState::Ok, message)];
    checks.extend(entries.iter().filter(broken).filter_map(|entry| {
        let error = entry.definition().err()?;
        Some(failed(&format!("{kind} {}", entry.id), &error))
    }));
    checks
}

async fn ssh(needed: bool) -> Check {
    match version("ssh", "-V").await {
        Ok(version) => check("ssh", CheckState::Ok, version),
        Err(error) => {
            let state = if needed { CheckState::Failed } else { CheckState::Warning };
            let message = format!("ssh cannot be run: {error}; only local can be reached");
            hinted(check("ssh", state, message), "install an OpenSSH client")
        }
    }
}

async fn rsync() -> Check {
    let message = match version("rsync", "--version").await {
        Ok(version) => version,
        Err(error) => format!("rsync cannot be run: {error}; directories are sent as tar streams"),
    };
    check("rsync", CheckState::Ok, message)
}

/// The first line that a program says of itself.
async fn version(program: &str, flag: &str) -> io::Result<String> {
    let mut command = Command::from(child(program));
    let run = command.arg(flag).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, run)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if !output.status.success() {
        return Err(io::Error::other(output.status.to_string()));
    }
    // ssh says it on stderr.
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let line = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn terminal(environment: &Environment) -> Check {
    let name = "terminal";
    if !io::stdout().is_terminal() {
        return check(
            name,
            CheckState::Ok,
            "none here; the dashboard and shell need one".to_owned(),
        );
    }
    let terminal = Terminal::of(environment);
    let Some(kind) = terminal.kind else {
        let message = "TERM does not say what it can; the dashboard cannot be drawn".to_owned();
        return hinted(
            check(name, CheckState::Warning, message),
            "set TERM, such as TERM=xterm-256color",
        );
    };
    let mut words = vec![kind.to_owned()];
    words.extend(
        rustix::termios::tcgetwinsize(io::stdout())
            .map(|size| format!("{}x{}", size.ws_col, size.ws_row)),
    );
    words.push(colours(environment, terminal.colours).to_owned());
    if terminal.utf8 {
        return check(name, CheckState::Ok, words.join(", "));
    }
    words.push("the locale is not UTF-8".to_owned());
    hinted(
        check(name, CheckState::Warning, words.join(", ")),
        "the dashboard draws with ASCII characters only; set LANG, such as LANG=C.UTF-8",
    )
}

fn colours(environment: &Environment, colours: Colours) -> &'static str {
    match colours {
        Colours::None if environment.text("NO_COLOR").is_some() => "no colours (NO_COLOR)",
        Colours::None => "no colours",
        Colours::Sixteen => "16 colours",
        Colours::Indexed => "256 colours",
        Colours::True => "true colours",
    }
}

fn counted(count: usize, word: &str) -> String {
    plural(count as u64, word, &format!("{word}s"))
}

fn check(name: &str, state: CheckState, message: String) -> Check {
    Check { name: name.to_owned(), state, message, hint: None }
}

fn hinted(check: Check, hint: &str) -> Check {
    Check { hint: Some(hint.to_owned()), ..check }
}

fn failed(name: &str, error: &Error) -> Check {
    let words: Vec<_> =
        std::iter::once(error.message.clone()).chain(error.causes.clone()).collect();
    Check { hint: error.hint.clone(), ..check(name, CheckState::Failed, words.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_broken_is_a_check_that_failed() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::create_dir_all(path("profiles")).unwrap();
        std::fs::write(path("profiles/bad.yaml"), "id: profile.bad\nversion: 1\n").unwrap();
        std::fs::write(path("config.yaml"), "default_hots: local\n").unwrap();
        std::fs::write(path("data"), "a file").unwrap();
        let overrides = Overrides {
            config: Some(path("config.yaml")),
            profiles_dir: Some(path("profiles")),
            data_dir: Some(path("data")),
            log_file: Some(path("data/x.log")),
            ..Overrides::default()
        };
        let environment = Environment::from_pairs([("HOME", home.path())]);
        let checks = examine(&overrides, &environment, true).await;
        let state = |name: &str| {
            checks.iter().find(|check| check.name == name).map(|check| check.state.as_str())
        };
        for (name, expected) in [
            ("configuration", "failed"),
            ("data directory", "failed"),
            ("log file", "warning"),
            ("profiles", "ok"),
            ("profile profile.bad", "failed"),
            ("extensions", "ok"),
            ("claim", "failed"),
        ] {
            assert_eq!(state(name), Some(expected), "{name}: {checks:#?}");
        }
        // Without HOME nobody knows where anything is, and that is what is said.
        let checks = examine(&Overrides::default(), &Environment::default(), false).await;
        assert_eq!(checks[0].state, CheckState::Failed);
        assert!(checks[0].message.contains("HOME is not set"), "{checks:#?}");
    }

    #[test]
    fn nothing_is_made_where_something_could_be() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        assert_eq!(writable(&deep, true), Ok(folder.path()));
        assert_eq!(writable(&deep, false), Ok(folder.path()));
        assert!(!folder.path().join("a").exists());
        assert!(writable(folder.path(), false).is_err_and(|why| why.ends_with("is a directory")));
    }
}
