//! Telling lines: of what a program wrote, those that say why it failed. The tools that start stacks write their own calls, their
//! progress and the errors of what fails after the first failure around the one line that matters; every face shows that line
//! first, and the rest with its argument lists folded.

const SHOWN: usize = 3;

/// Words of an argument list that stay.
const STAYING: usize = 3;

/// Beginnings of a line, in lower case, that says that something is wrong.
const WRONG: [&str; 6] = ["error", "fatal", "failed", "panic", "traceback", "exception"];

/// Words in a line, in lower case, that say what is wrong.
const REASONS: [&str; 14] = [
    "error:",
    "error ",
    "cannot ",
    "can't ",
    "could not ",
    "denied",
    "no such ",
    "not found",
    "refused",
    "unable to",
    "invalid ",
    "failed",
    "no space left",
    "killed",
];

/// Words of a line that an earlier failure causes: what was not made is not there.
const CONSEQUENCES: [&str; 2] = ["no container with name or id", "no such container"];

/// States in which progress of docker compose ends a line.
const PROGRESS: [&str; 16] = [
    "creating",
    "created",
    "starting",
    "started",
    "running",
    "waiting",
    "healthy",
    "pulling",
    "pulled",
    "building",
    "built",
    "recreate",
    "recreated",
    "stopping",
    "stopped",
    "removed",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    /// A call of another program, progress, a number: nothing of why.
    Noise,
    /// A word of the program.
    Word,
    /// An error that an earlier one causes, or one that is tried again.
    Consequence,
    Error,
}

fn kind(line: &str) -> Line {
    let text = line.trim();
    if is_noise(text) {
        return Line::Noise;
    }
    let lower = text.to_lowercase();
    if CONSEQUENCES.iter().any(|words| lower.contains(words)) || lower.contains("retrying in ") {
        return Line::Consequence;
    }
    let wrong = WRONG.iter().any(|word| lower.starts_with(word))
        || REASONS.iter().any(|words| lower.contains(words));
    if wrong { Line::Error } else { Line::Word }
}

fn is_noise(text: &str) -> bool {
    let id = text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let said = ["exit code:", "using podman version", "podman-compose version", "** excluding"];
    let progress = text
        .split_whitespace()
        .last()
        .is_some_and(|last| PROGRESS.contains(&last.to_lowercase().as_str()));
    text.is_empty()
        || id
        || progress
        || is_call(text)
        || said.iter().any(|begin| text.starts_with(begin))
}

/// Whether a line is a call of another program, as podman-compose prints it or a shell that traces.
fn is_call(text: &str) -> bool {
    let listed = text.starts_with("['") && text.ends_with("']");
    let typed = |program: &str| {
        let rest = text.strip_prefix(program).and_then(|rest| rest.strip_prefix(' '));
        rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '-')
        })
    };
    listed || text.starts_with("+ ") || ["podman", "docker", "buildah"].into_iter().any(typed)
}

/// The lines that say why, the last of them last; of a program that says of nothing that it is wrong, its last words.
pub(crate) fn telling_lines(output: &str) -> Vec<&str> {
    let lines: Vec<(Line, &str)> = output.lines().map(|line| (kind(line), line.trim())).collect();
    let most = lines.iter().map(|(kind, _)| *kind).max().unwrap_or(Line::Noise);
    let mut telling: Vec<&str> = Vec::new();
    for (_, line) in lines.iter().filter(|(kind, line)| *kind == most && !line.is_empty()) {
        // A line that is said again is said once, where it was said last.
        telling.retain(|before| before != line);
        telling.push(line);
    }
    telling.split_off(telling.len().saturating_sub(SHOWN))
}

/// The line that says most of why, if anything was written.
pub(crate) fn last_telling_line(output: &str) -> Option<&str> {
    telling_lines(output).pop()
}

/// [`last_telling_line`], where it is called an error.
pub(crate) fn error_line(output: &str) -> Option<&str> {
    last_telling_line(output).filter(|line| kind(line) == Line::Error)
}

/// All of it, each argument list folded: `podman run --name=web … (26 more words)`.
pub(crate) fn folded(output: &str) -> String {
    let lines: Vec<String> = output.lines().map(folded_line).collect();
    lines.join("\n")
}

fn folded_line(line: &str) -> String {
    let text = line.trim();
    if !is_call(text) {
        return line.to_owned();
    }
    let plain = text.trim_start_matches("['").trim_end_matches("']").replace("', '", " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    match words.len() {
        0..=5 => line.to_owned(),
        count => format!("{} … ({} more words)", words[..STAYING].join(" "), count - STAYING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// podman-compose 1.0.3 on podman 4.3.1, an image of a registry that is not there.
    const PODMAN_1_0: &str = r#"Trying to pull localhost:1/nosuch/web:1...
time="2026-11-29T08:59:35Z" level=warning msg="Failed, retrying in 1s ... (3/3). Error: initializing source docker://localhost:1/nosuch/web:1: pinging container registry localhost:1: Get \"https://localhost:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused"
Error: initializing source docker://localhost:1/nosuch/web:1: pinging container registry localhost:1: Get "https://localhost:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused
Error: no container with name or ID "wk32a_web_1" found: no such container
['podman', '--version', '']
using podman version: 4.3.1
** excluding:  set()
['podman', 'network', 'exists', 'wk32a_default']
['podman', 'network', 'create', '--label', 'io.podman.compose.project=wk32a', '--label', 'com.docker.compose.project=wk32a', 'wk32a_default']
podman run --name=wk32a_web_1 -d --label io.podman.compose.config-hash=123 --label io.podman.compose.project=wk32a -e A=b --net wk32a_default --network-alias web -p 127.0.0.1::80 localhost:1/nosuch/web:1 sh -c sleep 100
exit code: 125
podman start wk32a_web_1
exit code: 125
"#;

    /// podman-compose 1.6.0.
    const PODMAN_1_6: &str = r#"f0af98871e436fc26dbaf9573fd7406e606d87bf1ad517ce401e28c0c5419100
Trying to pull localhost:1/nosuch/web:1...
time="2026-11-29T08:59:43Z" level=warning msg="Failed, retrying in 1s ... (3/3). Error: initializing source docker://localhost:1/nosuch/web:1: dial tcp 127.0.0.1:1: connect: connection refused"
Error: initializing source docker://localhost:1/nosuch/web:1: dial tcp 127.0.0.1:1: connect: connection refused
Error: no container with name or ID "wk32b_web_1" found: no such container
"#;

    /// `docker compose` 2.26.
    const DOCKER: &str = " web Pulling \n web Error Get \"http://localhost:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused\n\
        Error response from daemon: Get \"http://localhost:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused\n";

    #[test]
    fn the_error_comes_before_calls_progress_and_what_it_caused() {
        for (output, begin) in [
            (PODMAN_1_0, "Error: initializing source docker://localhost:1/nosuch/web:1: pinging"),
            (PODMAN_1_6, "Error: initializing source docker://localhost:1/nosuch/web:1: dial"),
            (DOCKER, "Error response from daemon: Get"),
        ] {
            let last = last_telling_line(output).unwrap();
            assert!(last.starts_with(begin), "{last}");
        }
        assert_eq!(telling_lines(PODMAN_1_0).len(), 1);
    }

    #[test]
    fn where_nothing_is_called_wrong_the_last_words_are_told() {
        let progress = " Network x_default  Creating\n Network x_default  Created\nservice web exited with 3\n Container x  Started\n";
        assert_eq!(telling_lines(progress), ["service web exited with 3"]);
        assert_eq!(last_telling_line("one\ntwo\n\nthree\n\n"), Some("three"));
        assert_eq!(telling_lines("Error: a\nError: b\nError: a\n"), ["Error: b", "Error: a"]);
        assert_eq!(last_telling_line(""), None);
        assert_eq!(
            last_telling_line("exit code: 125\n"),
            Some("exit code: 125"),
            "better than nothing"
        );
        assert_eq!(
            last_telling_line("Error: no such container\n"),
            Some("Error: no such container")
        );
    }

    #[test]
    fn argument_lists_are_folded_and_nothing_else() {
        let folded = folded(PODMAN_1_0);
        assert!(folded.contains("podman run --name=wk32a_web_1 … (18 more words)\n"), "{folded}");
        assert!(folded.contains("podman network create … (5 more words)\n"), "{folded}");
        assert!(
            folded.contains("['podman', 'network', 'exists', 'wk32a_default']\n"),
            "a short one stays: {folded}"
        );
        assert!(
            folded.contains("\npodman start wk32a_web_1\n")
                && folded.contains("connection refused\n")
        );
        assert_eq!(folded.lines().count(), PODMAN_1_0.lines().count());
    }
}
