//! What our scripts say: `key=value` lines, and a few ways in which a host cannot do what is asked.

use crate::domain::extension::ExtensionError;
use crate::domain::fault::{Code, Fault};
use crate::domain::name::HostName;
use crate::domain::sandbox::Failure;
use crate::transport::Transport;
use crate::transport::probe::lines::{Entry, entries};

/// The lines of one script.
pub(crate) struct Said<'a>(Vec<Entry<'a>>);

impl<'a> Said<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        Self(entries(text))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.0.iter()
    }

    /// The value of the first line with this key.
    pub(crate) fn value(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| entry.value)
    }

    /// The text beneath the first line with this key.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.0.iter().find(|entry| entry.key == key).map(Entry::text)
    }

    /// The error that the script named, as a fault that says what to do. `root` is where the sandbox is or was to be.
    pub(crate) fn check(&self, step: &str, transport: &dyn Transport, root: &str) -> Result<(), ExtensionError> {
        let host = &transport.spec().name;
        let missing: Vec<&str> =
            self.0.iter().filter(|entry| entry.key == "missing").map(|entry| entry.value).collect();
        if !missing.is_empty() {
            return Err(lacks(host, &missing).detail("step", step).into());
        }
        let Some(kind) = self.value("error") else { return Ok(()) };
        let words = self.text("words").unwrap_or_default();
        let mut fault = describe(kind, host.as_str(), root);
        if kind == "behind" {
            let counter = self.value("counter").and_then(|text| text.parse::<u64>().ok());
            fault = fault.detail("kind", kind).detail("counter", counter);
        }
        let failure = Failure { step: step.to_owned(), exit_status: None, output: words.clone() };
        let fault = fault.detail("step", step);
        let fault = if words.is_empty() { fault } else { fault.because(words) };
        Err(ExtensionError { fault, failure: Some(failure), untouched: false })
    }
}

/// A host on which programs are missing.
pub(crate) fn lacks(host: &HostName, missing: &[&str]) -> Fault {
    let list = missing.join(", ");
    Fault::new(Code::MissingDependency, format!("host {host} lacks {list}"))
        .hint(format!("install {list} on {host}; nothing is installed there by sandboxer"))
        .detail("missing", missing)
}

fn describe(kind: &str, host: &str, root: &str) -> Fault {
    match kind {
        "root" => Fault::new(Code::OperationFailed, format!("the workspace root {root} on {host} cannot be used"))
            .hint("set the host's workspace_root to a directory that the account can write"),
        "space" => Fault::new(Code::OperationFailed, format!("the disk of {host} has no room for the sandbox"))
            .hint("destroy something there, exclude files, or use another host"),
        "taken" => Fault::new(Code::Conflict, format!("something with this sandbox's id is on {host} already"))
            .hint("choose another id, or remove what is there by hand"),
        "directory" => Fault::new(Code::OperationFailed, format!("the sandbox's directory on {host} cannot be made"))
            .hint(format!("is the disk of {host} full, or {root} not writable?")),
        "write" => {
            Fault::new(Code::OperationFailed, format!("nothing can be written into the sandbox's directory on {host}"))
                .hint(format!("is the disk of {host} full?"))
        }
        "identity" => Fault::new(Code::HostChanged, format!("host {host} is not the one that the sandbox was made on"))
            .hint("nothing was touched; check what the host's name points to"),
        "behind" => {
            Fault::new(Code::Conflict, format!("host {host} has seen more of this installation than is known here"))
        }
        "engine" => Fault::new(Code::OperationFailed, format!("the container engine of {host} does not answer"))
            .hint("start it, then try again"),
        other => Fault::new(Code::OperationFailed, format!("host {host} reported {other:?}")),
    }
}
