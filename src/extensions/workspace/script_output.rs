//! Answers of our scripts: `key=value` lines, whether they say it in one go or while they work for hours, and a few ways in
//! which a host cannot do what is asked.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::HostName;
use crate::domain::root::{MarkedRoot, RootMark};
use crate::domain::sandbox::Failure;
use crate::transport::probe::lines::{ScriptEntry, entries};
use crate::transport::{OUTPUT_LIMIT, Source, Transport};

/// The keys of lines that say how far a script is, each of which takes the place of the last one.
const PROGRESS: [&[u8]; 3] = [b"at=", b"bytes=", b"kib="];

/// Answer of a script that works for long, on its stdout, but for how far it is. Of a stream only the end is kept, and what
/// was said first is no longer in it after some hours of progress.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    text: String,
    cut: bool,
}

impl OutputBuffer {
    /// A line, as it comes.
    pub(crate) fn line(&mut self, source: Source, line: &[u8]) {
        if source == Source::Stderr || PROGRESS.iter().any(|key| line.starts_with(key)) {
            return;
        }
        if self.text.len() + line.len() >= OUTPUT_LIMIT {
            self.cut = true;
            return;
        }
        self.text.push_str(&String::from_utf8_lossy(line));
        self.text.push('\n');
    }

    /// Answer, as much of it as is kept.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// All of it.
    ///
    /// Errors: where it said more than [`OUTPUT_LIMIT`] bytes: nobody knows what of it is missing.
    pub(crate) fn said(&self) -> Result<ScriptOutput<'_>, Error> {
        if self.cut {
            return Err(Error::new(Code::OperationFailed, "the host said more than anybody reads"));
        }
        Ok(ScriptOutput::read(&self.text))
    }
}

/// The lines of one script.
pub(crate) struct ScriptOutput<'a>(Vec<ScriptEntry<'a>>);

impl<'a> ScriptOutput<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        Self(entries(text))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &ScriptEntry<'a>> {
        self.0.iter()
    }

    /// The value of the first line with this key.
    pub(crate) fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| entry.value)
    }

    /// The text beneath the first line with this key.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.0.iter().find(|entry| entry.key == key).map(ScriptEntry::text)
    }

    /// The SHA-256 behind the first line with this key. What is empty or cut off is none.
    pub(crate) fn hash(&self, key: &str) -> Option<String> {
        let is_hash =
            |text: &&str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.value(key).filter(is_hash).map(str::to_owned)
    }

    /// The mark of the root that the script was in, where it was not known.
    pub(crate) fn marked_root(&self) -> Option<MarkedRoot> {
        let text = self.text("mark")?;
        let (mark, path) = text.split_once(' ')?;
        let machine_id = self.value("machine").unwrap_or_default().to_owned();
        Some(MarkedRoot { mark: RootMark::parse(mark)?, machine_id, path: path.to_owned() })
    }

    /// The error that the script named, as a error that says what to do. `root` is where the sandbox is or was to be.
    pub(crate) fn check(
        &self,
        step: &str,
        transport: &dyn Transport,
        root: &str,
    ) -> Result<(), Error> {
        let host = &transport.spec().name;
        let missing: Vec<&str> =
            self.0.iter().filter(|entry| entry.key == "missing").map(|entry| entry.value).collect();
        if !missing.is_empty() {
            return Err(lacks(host, &missing).step(step));
        }
        let Some(kind) = self.value("error") else { return Ok(()) };
        let words = self.text("words").unwrap_or_default();
        let mut error = describe(kind, host.as_str(), root);
        if kind == "behind" {
            let counter = self.value("counter").and_then(|text| text.parse::<u64>().ok());
            error = error
                .detail("kind", kind)
                .detail("counter", counter)
                .of_kind(Kind::Behind(counter.unwrap_or(u64::MAX)));
        }
        let failure = Failure { step: step.to_owned(), exit_status: None, output: words.clone() };
        let error = error.step(step);
        let error = if words.is_empty() { error } else { error.because(words) };
        Err(error.evidence(failure))
    }
}

/// A host on which programs are missing.
pub(crate) fn lacks(host: &HostName, missing: &[&str]) -> Error {
    let list = missing.join(", ");
    Error::new(Code::MissingDependency, format!("host {host} lacks {list}"))
        .hint(format!("install {list} on {host}; nothing is installed there by sandboxer"))
        .detail("missing", missing)
}

/// Error of a workspace root that is not the one that it was, by what a script says; nothing for another kind of error.
pub(crate) fn other_root(kind: &str, host: &str) -> Option<Error> {
    let gone = "if it is gone for good, `sandboxer destroy --forget` and `sandboxer snapshots delete --force` give up what is recorded there";
    let (message, hint) = match kind {
        "root_away" => (
            format!("the workspace root on {host} is not there"),
            format!("mount its disk on {host}, then try again; {gone}"),
        ),
        "root_other" => (
            format!("the workspace root on {host} bears another mark than it did"),
            format!("look at what is mounted there on {host}; {gone}"),
        ),
        "root_bare" => (
            format!("the workspace root on {host} does not bear its mark any more"),
            format!(
                "mount its disk on {host}; where only the mark was lost, write it into that file again; {gone}"
            ),
        ),
        "root_unknown" => (
            format!("the workspace root on {host} is not known to be the one that records name"),
            format!(
                "is its disk mounted on {host}? it is known again when something of ours is in it; {gone}"
            ),
        ),
        _ => return None,
    };
    Some(
        Error::new(Code::HostChanged, message)
            .hint(format!("nothing was touched or written off; {hint}")),
    )
}

/// Error by the verdict of a script on a host that did not prove to be the one, or whose engine did not; nothing where it is
/// about something else.
pub(crate) fn unproved(verdict: &str, host: &str) -> Option<Error> {
    match verdict {
        "identity" | "engine" => Some(describe(verdict, host, "")),
        verdict => other_root(verdict, host),
    }
}

fn describe(kind: &str, host: &str, root: &str) -> Error {
    if let Some(error) = other_root(kind, host) {
        return error;
    }
    match kind {
        "root" => Error::new(Code::OperationFailed, format!("the workspace root {root} on {host} cannot be used"))
            .hint("set the host's workspace_root to a directory that the account can write"),
        "space" => Error::new(Code::OperationFailed, format!("the disk of {host} has no room for the sandbox"))
            .hint("destroy something there, exclude files, or use another host"),
        "taken" => Error::new(Code::Conflict, format!("something with this sandbox's id is on {host} already"))
            .hint("choose another id (--id), or remove what is there by hand"),
        "directory" => Error::new(Code::OperationFailed, format!("the sandbox's directory on {host} cannot be made"))
            .hint(format!("is the disk of {host} full, or {root} not writable?")),
        "write" => {
            Error::new(Code::OperationFailed, format!("nothing can be written into the sandbox's directory on {host}"))
                .hint(format!("is the disk of {host} full?"))
        }
        "unread" => Error::new(Code::OperationFailed, format!("the sandbox's directory on {host} cannot be read"))
            .hint(format!("look at it on {host}, then try again")),
        "identity" => Error::new(Code::HostChanged, format!("host {host} is not the one that the sandbox was made on"))
            .hint("nothing was touched; check what the host's name points to"),
        "theirs" => Error::new(
            Code::Conflict,
            format!("what is in the sandbox's place on {host} is not proved to be the sandbox; nothing was removed"),
        )
        .hint(format!("look at it on {host}; when it is moved away, `sandboxer destroy` removes the rest")),
        "behind" => {
            Error::new(Code::Conflict, format!("host {host} has seen more of this installation than is known here"))
        }
        "engine" => Error::new(Code::OperationFailed, format!("the container engine of {host} does not answer"))
            .hint("start it, then try again"),
        other => Error::new(Code::OperationFailed, format!("host {host} reported {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_first_is_known_after_days_of_progress() {
        let mut heard = OutputBuffer::default();
        heard.line(Source::Stdout, b"captured=db");
        for at in 0..400_000 {
            heard.line(Source::Stdout, format!("bytes={at}").as_bytes());
        }
        heard.line(Source::Stderr, b"captured=of somebody else");
        heard.line(Source::Stdout, b"path=");
        heard.line(Source::Stdout, b" bytes=1");
        let said = heard.said().unwrap();
        let captured: Vec<_> = said
            .entries()
            .filter(|entry| entry.key == "captured")
            .map(|entry| entry.value)
            .collect();
        assert_eq!(
            (captured, said.value("bytes"), said.text("path").as_deref()),
            (vec!["db"], None, Some("bytes=1"))
        );
    }

    #[test]
    fn what_nobody_can_keep_is_an_error() {
        let mut heard = OutputBuffer::default();
        let line = vec![b'x'; 1024 * 1024];
        (0..9).for_each(|_| heard.line(Source::Stdout, &line));
        assert!(heard.said().is_err());
    }
}
