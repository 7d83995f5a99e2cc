//! Watchdog: a command is sent to a shell framed, under a watchdog that ends it when our side is gone.
//!
//! Dropping a future, a lost connection and a killed console all look the same from the host: the shell's stdin ends.
//! The watchdog is a fork of that shell which waits for exactly this, then sends TERM and, after 5 s, KILL. It is
//! there while a request runs and is reaped with it, so nothing is left behind after a normal end.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::error::{Code, Error};
use crate::transport::shell::quote;
use crate::transport::{Command, Session};

/// The function `sbx_prelude`, which takes out of a shell's environment what would change what our scripts mean, wherever it
/// was set: the console, the account's start-up files, sshd, an exported function. `TAR_OPTIONS=--exclude=*.key` alone makes
/// snapshots that lack files and prove sound. What chooses an engine (`DOCKER_HOST`, `CONTAINERS_CONF`) and where programs
/// and their modules are (`PATH`, `LD_LIBRARY_PATH`, `PYTHONPATH`) is the account's own business and stays. No comments in
/// it, as in [`FEED`]; `sbx_locale` is what `LC_ALL` was. Times are told in UTC: hosts are in different zones.
pub(crate) const PRELUDE: &str = include_str!("scripts/prelude.sh");

/// The function `sbx_beat`, the watchdog of a command whose input is ours to give: the end of it is what the command waits
/// for, so this looks the other way. It writes a mark to stdout every 2 s, and cannot any more once our side is gone: the
/// shell that writes it is killed by SIGPIPE. Any other failure counts only when it lasts: a command may have made the pipe
/// that is full one that does not wait. `sbx_idle`: how long the command may stand still; empty: for ever. No comments in
/// it, as in [`FEED`].
const BEAT: &str = include_str!("scripts/beat.sh");

/// The definitions that every shell gets before its first request.
pub(crate) const PREAMBLE: &str = concat!(
    include_str!("scripts/prelude.sh"),
    include_str!("scripts/end.sh"),
    include_str!("scripts/watchdog.sh")
);

/// The wrapper of a command that is fed on stdin: `$1` nonce, `$2` seconds that it may stand still, `$3` script or
/// program, `$4` the script, then the parameters. No comments in it: it is seen in the host's process list.
///
/// Its watchdog is [`BEAT`]. (sshd hears of a stdout that nobody reads, and not of a stderr.) A link that is dead without a
/// word is noticed by neither: there it is the idle time that ends the command.
pub(crate) const FEED: &str = concat!(
    include_str!("scripts/prelude.sh"),
    include_str!("scripts/end.sh"),
    include_str!("scripts/beat.sh"),
    include_str!("scripts/feed.sh")
);

/// Time that the host waits longer than our side for a fed command that stands still.
const IDLE_MORE: Duration = Duration::from_secs(10);
/// Longest command line that travels as an argument; Linux takes 128 KiB for one.
const LINE_LIMIT: usize = 120 * 1024;

/// A random word that marks one request's frames. It travels on stdin, where no other account's `ps` sees it.
pub(crate) fn nonce() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The text of one request. `last`: the shell ends itself afterwards.
///
/// All of it is one compound command: a shell reads it whole before it runs any of it, so nothing of it is left in
/// the pipe for the watchdog to take as the end.
pub(crate) fn request(command: &Command, nonce: &str, last: bool) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(1024);
    text.extend_from_slice(
        format!("{{\nprintf '\\036B%s %d\\n' {nonce} $$; printf '\\036B%s %d\\n' {nonce} $$ >&2\n")
            .as_bytes(),
    );
    let (watch, ended) = match command.session() {
        Session::Input => {
            (format!("{BEAT}sbx_nonce={nonce} sbx_idle=\nsbx_beat & sbx_watcher=$!\n"), "USR1")
        }
        Session::Watched | Session::Lifeline => ("sbx_watch & sbx_watcher=$!\n".to_owned(), "KILL"),
    };
    text.extend_from_slice(watch.as_bytes());
    // A shell says on its stderr that a command was killed, which is not the command's own. The status is read inside the
    // braces: dash speaks of their last command when what it wrote is its own again.
    let (open, close) = if command.has_account_environment() {
        ("{ ( exec 2>&4 4>&-; ", "; sbx_status=$?; } 4>&2 2>/dev/null\n")
    } else {
        ("( ", "\nsbx_status=$?\n")
    };
    text.extend_from_slice(open.as_bytes());
    if command.session() != Session::Lifeline {
        text.extend_from_slice(b"exec 3<&-; ");
    }
    // Arguments are set inside the shell, because one that is passed to a program may not exceed 128 KiB.
    if let Some(script) = command.script_text() {
        text.extend_from_slice(b"set --");
        words(command, &mut text)?;
        text.extend_from_slice(if command.has_account_environment() {
            b"; eval "
        } else {
            b"; sbx_prelude; eval "
        });
        quote::quote(script.as_bytes(), &mut text)?;
    } else {
        // Not `"$@"`: that would prefer the shell's builtins to the programs of the same name.
        text.extend_from_slice(b"exec");
        words(command, &mut text)?;
    }
    let stdin = if command.session() == Session::Input { "" } else { " </dev/null" };
    text.extend_from_slice(format!(" ){stdin}{close}").as_bytes());
    // Waited for, so that it cannot take a byte of the next request.
    text.extend_from_slice(
        format!("{{ kill -{ended} $sbx_watcher; wait $sbx_watcher; }} 2>/dev/null\n").as_bytes(),
    );
    text.extend_from_slice(
        format!("printf '\\036E%s %d\\n' {nonce} $sbx_status >&2; printf '\\036E%s %d\\n' {nonce} $sbx_status\n")
            .as_bytes(),
    );
    text.extend_from_slice(if last { b"exit 0\n}\n" } else { b"}\n" });
    Ok(text)
}

/// The words of a fed command: `sh -c WRAPPER sbx NONCE ...`. `idle`: how long it may stand still.
pub(crate) fn feed_words(
    command: &Command,
    nonce: &str,
    idle: Duration,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut list: Vec<Vec<u8>> =
        [b"sh".as_slice(), b"-c", FEED.as_bytes(), b"sbx", nonce.as_bytes()]
            .map(<[u8]>::to_vec)
            .into();
    // Our own side gives up first, where it still can.
    list.push((idle + IDLE_MORE).as_secs().to_string().into());
    let (form, script) = command.script_text().map_or(("program", ""), |script| ("script", script));
    list.push(form.into());
    list.push(script.into());
    list.extend(command.words().iter().map(|word| word.as_bytes().to_vec()));
    if list.iter().any(|word| word.contains(&0)) {
        return Err(quote::nul());
    }
    Ok(list)
}

/// A command as words that need no shell of ours around them: a script becomes `sh -c SCRIPT sbx ...`.
pub(crate) fn bare_words(command: &Command) -> Result<Vec<Vec<u8>>, Error> {
    let head: &[&[u8]] = match command.script_text() {
        Some(script) => &[b"sh", b"-c", script.as_bytes(), b"sbx"],
        None => &[],
    };
    let mut list: Vec<Vec<u8>> = head.iter().map(|word| word.to_vec()).collect();
    list.extend(command.words().iter().map(|word| word.as_bytes().to_vec()));
    if list.iter().any(|word| word.contains(&0)) {
        return Err(quote::nul());
    }
    Ok(list)
}

/// Words as one line for the login shell of a host, which becomes the program.
pub(crate) fn login_line(words: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
    let mut line = b"exec".to_vec();
    for word in words {
        line.push(b' ');
        quote::quote(word, &mut line)?;
    }
    if line.len() > LINE_LIMIT {
        return Err(Error::new(
            Code::InvalidInput,
            "the arguments of a command are too long to be sent in one line",
        ));
    }
    Ok(line)
}

/// Names that the prelude takes out of the environment, for programs that are started without a shell.
pub(crate) fn scrubbed_names() -> impl Iterator<Item = &'static str> {
    PRELUDE
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("unset -v "))
        .flat_map(str::split_whitespace)
        .filter(|name| !name.contains('$'))
}

fn words(command: &Command, text: &mut Vec<u8>) -> Result<(), Error> {
    for word in command.words() {
        text.push(b' ');
        quote::quote(word.as_bytes(), text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::{Read, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command as Program, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Whatever a host calls `sh`.
    const SHELLS: [&[&str]; 4] = [&["sh"], &["dash"], &["bash", "--posix"], &["busybox", "sh"]];

    fn start(shell: &[&str]) -> Option<Child> {
        let mut program = Program::new(shell[0]);
        program.args(&shell[1..]).process_group(0);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()
    }

    fn send(child: &mut Child, text: &[u8]) {
        child.stdin.as_mut().unwrap().write_all(text).unwrap();
    }

    fn read_to_end(mut child: Child) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        child.stderr.take().unwrap().read_to_end(&mut err).unwrap();
        child.wait().unwrap();
        (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
    }

    #[test]
    fn every_shell_answers_requests_in_frames() {
        for shell in SHELLS {
            let Some(mut child) = start(shell) else { continue };
            send(&mut child, PREAMBLE.as_bytes());
            // Longer than what a shell reads at once, so that the rest is still in the pipe.
            let long = "x".repeat(70_000);
            send(
                &mut child,
                &request(
                    &Command::script("printf %s \"$1\" | wc -c; exit 3").arg(&long),
                    "n1",
                    false,
                )
                .unwrap(),
            );
            // The second goes out when the first is answered, as always.
            let mut answer = Vec::new();
            while !String::from_utf8_lossy(&answer).contains("\u{1e}En1") {
                let mut byte = [0];
                assert_eq!(child.stdout.as_mut().unwrap().read(&mut byte).unwrap(), 1, "{shell:?}");
                answer.extend(byte);
            }
            assert!(String::from_utf8_lossy(&answer).contains("70000"), "{shell:?}");
            send(
                &mut child,
                &request(
                    &Command::new("sh").args(["-c", "echo err >&2; kill -KILL $$"]),
                    "n2",
                    true,
                )
                .unwrap(),
            );
            let pid = child.id();
            let (out, err) = read_to_end(child);
            assert_eq!(out, format!(" 3\n\u{1e}Bn2 {pid}\n\u{1e}En2 137\n"), "{shell:?}");
            let err = err
                .split_once(&format!("\u{1e}Bn2 {pid}\nerr\n"))
                .unwrap_or_else(|| panic!("{shell:?}: {err}"))
                .1;
            assert!(err.ends_with("\u{1e}En2 137\n") && !err.contains("watch"), "{shell:?}: {err}");
        }
    }

    #[test]
    fn every_shell_forgets_what_the_environment_says_to_our_programs_and_not_for_a_users() {
        const TELL: &str = r#"echo "${TAR_OPTIONS-none} ${CDPATH-none} ${DOCKER_HOST-none} $LC_ALL $(umask) $(cat /dev/null; echo cat) ${COMPOSE_PROJECT_DIR-none} ${PODMAN_COMPOSE_IN_POD-none} ${TZ-none}""#;
        for shell in SHELLS {
            for (kept, script) in [
                (false, Command::script(TELL)),
                (true, Command::script(TELL).with_account_environment()),
            ] {
                let mut program = Program::new(shell[0]);
                program
                    .args(&shell[1..])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                program
                    .env("TAR_OPTIONS", "--exclude=x")
                    .env("CDPATH", "/usr")
                    .env("DOCKER_HOST", "unix:///x");
                program
                    .env("COMPOSE_PROJECT_DIR", "/evil")
                    .env("PODMAN_COMPOSE_IN_POD", "evil")
                    .env("LC_ALL", "C.UTF-8")
                    .env("TZ", "Asia/Kathmandu")
                    .env("BASH_FUNC_umask%%", "() { echo 7; }")
                    .env("SHELLOPTS", "noglob:noclobber");
                let Ok(mut child) = program.spawn() else { continue };
                send(&mut child, PREAMBLE.as_bytes());
                send(&mut child, &request(&script, "n1", true).unwrap());
                let (out, _) = read_to_end(child);
                let bash = shell[0] == "bash";
                let expected = match kept {
                    false => "none none unix:///x C 0022 cat none none UTC0\n",
                    true if bash => "--exclude=x /usr unix:///x C.UTF-8 7 cat",
                    true => "--exclude=x /usr unix:///x C.UTF-8 ",
                };
                assert!(out.contains(expected), "{shell:?} {kept}: {out}");
                assert_eq!(out.contains("Asia/Kathmandu"), kept, "{shell:?}: {out}");
            }
        }
    }

    #[test]
    fn programs_without_a_shell_forget_the_same() {
        let names: Vec<&str> = scrubbed_names().collect();
        for name in ["TAR_OPTIONS", "GZIP", "ZSTD_CLEVEL", "RSYNC_RSH", "POSIXLY_CORRECT", "CDPATH"]
        {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(names.iter().all(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        }));
        assert!(
            !names
                .iter()
                .any(|name| ["PATH", "HOME", "DOCKER_HOST", "CONTAINERS_CONF"].contains(name))
        );
    }

    /// Number of processes that are a `sleep` of this many seconds.
    fn sleeps(nap: &str) -> usize {
        let found = Program::new("pgrep")
            .args(["-fx", &format!("sleep {nap}")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&found.stdout).lines().count()
    }

    /// Waits until as many sleep it as `done` says.
    fn wait_for(shell: &[&str], nap: &str, done: impl Fn(usize) -> bool) {
        let started = Instant::now();
        while !done(sleeps(nap)) {
            let limit = Duration::from_mins(1);
            assert!(started.elapsed() < limit, "{shell:?}: {} run", sleeps(nap));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Leaves a command in every shell at once, each with a nap of its own.
    fn leave_in_each(leave: fn(&[&str], &str), nap: &str) {
        std::thread::scope(|scope| {
            for (index, shell) in SHELLS.iter().enumerate() {
                scope.spawn(move || leave(shell, &format!("{nap}{index}")));
            }
        });
    }

    fn leave(shell: &[&str], nap: &str) {
        let Some(mut child) = start(shell) else { return };
        send(&mut child, PREAMBLE.as_bytes());
        let script = Command::script("(trap '' TERM; sleep $1) & sleep $1").arg(nap);
        send(&mut child, &request(&script, "n1", true).unwrap());
        wait_for(shell, nap, |count| count == 2);
        child.stdin = None;
        // TERM takes one of them, KILL the one that is deaf to it.
        wait_for(shell, nap, |count| count == 1);
        wait_for(shell, nap, |count| count == 0);
        child.wait().unwrap();
    }

    #[test]
    fn every_shell_ends_its_command_when_its_stdin_ends() {
        leave_in_each(leave, "309.00");
    }

    #[test]
    fn no_shell_says_of_a_users_command_that_it_was_killed() {
        for shell in SHELLS {
            let Some(mut child) = start(shell) else { continue };
            send(&mut child, PREAMBLE.as_bytes());
            let command = Command::script("echo err >&2; kill -KILL $(sh -c 'echo $PPID')")
                .with_account_environment();
            send(&mut child, &request(&command, "n1", true).unwrap());
            let pid = child.id();
            let (out, err) = read_to_end(child);
            assert_eq!(out, format!("\u{1e}Bn1 {pid}\n\u{1e}En1 137\n"), "{shell:?}");
            assert_eq!(err, format!("\u{1e}Bn1 {pid}\nerr\n\u{1e}En1 137\n"), "{shell:?}");
        }
    }

    /// A command that has not read its input to the end, and that is deaf to TERM.
    fn leave_reading(shell: &[&str], nap: &str) {
        let Some(mut child) = start(shell) else { return };
        send(&mut child, PREAMBLE.as_bytes());
        let script = Command::script("trap '' TERM; sleep $1; sleep $1").arg(nap).with_input();
        send(&mut child, &request(&script, "n1", true).unwrap());
        wait_for(shell, nap, |count| count > 0);
        send(&mut child, b"touch /no/command\n");
        drop(child.stdout.take());
        wait_for(shell, nap, |count| count == 0);
        child.wait().unwrap();
    }

    #[test]
    fn every_shell_ends_a_command_with_input_that_nobody_listens_to() {
        leave_in_each(leave_reading, "307.20");
    }

    /// A fed command that is deaf to the end of its input and to TERM, and whose input nobody ends here.
    fn leave_fed(shell: &[&str], nap: &str) {
        let script = Command::script("trap '' TERM; cat >/dev/null & sleep $1; sleep $1").arg(nap);
        let words = feed_words(&script, "n1", Duration::from_mins(2)).unwrap();
        let mut program = Program::new(shell[0]);
        program
            .args(&shell[1..])
            .args(words[1..].iter().map(|word| OsStr::from_bytes(word)))
            .process_group(0);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = program.spawn() else { return };
        wait_for(shell, nap, |count| count > 0);
        drop(child.stdout.take());
        wait_for(shell, nap, |count| count == 0);
        child.wait().unwrap();
    }

    #[test]
    fn every_shell_ends_a_fed_command_that_nobody_listens_to() {
        leave_in_each(leave_fed, "308.10");
    }

    #[test]
    fn a_fed_line_is_quoted_and_bounded() {
        let command = Command::script("cat").arg("it's");
        let line =
            |command: &Command| login_line(&feed_words(command, "n", Duration::from_mins(2))?);
        let text = String::from_utf8(line(&command).unwrap()).unwrap();
        assert!(text.starts_with("exec 'sh' '-c' '"), "{text}");
        assert!(text.ends_with(r"'n' '130' 'script' 'cat' 'it'\''s'"), "{text}");
        assert!(line(&command.arg("x".repeat(130_000))).is_err());
        assert!(
            line(&Command::new("a\0b")).is_err()
                && request(&Command::new("a\0b"), "n", false).is_err()
        );
        let bare = bare_words(&Command::script("echo $1").arg("a b")).unwrap();
        assert_eq!(login_line(&bare).unwrap(), b"exec 'sh' '-c' 'echo $1' 'sbx' 'a b'");
    }
}
