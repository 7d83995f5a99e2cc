//! Reads what a compose tool tells its engine, as the engine reads it, and says which promise that breaks.
//!
//! Written from podman-run(1), podman-build(1), podman-network-create(1), podman-volume-create(1), the compose
//! specification and Docker's API. It shares nothing with the renderer. What it does not know is a finding too.

mod bake;
mod document;
mod inspect;
mod parts;
mod podman;
mod words;

use std::fmt;

use super::world::{ID, LINKS, World};

/// Promises: what a sandbox does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Promise {
    /// Mounts nothing but the workspace, its own volumes, and memory.
    Mounts,
    /// Reads and writes no other file of the host.
    HostFiles,
    /// Touches no container, network, volume or image of somebody else.
    Others,
    /// Adds no privilege.
    Privileges,
    /// Shares no namespace with the host.
    Namespaces,
    /// Bears no label or annotation that an engine, a runtime or another project acts upon.
    Labels,
    /// Takes over no route of the host.
    Networks,
    /// Publishes on random ports of 127.0.0.1 only.
    Ports,
    /// Names and labels of what it makes are its own, and cannot be another's.
    Names,
    /// Says nothing twice and contradicts nothing.
    Repeats,
    /// Mounts nothing that a container can replace by a link.
    Replaceable,
    /// Builds nothing on an engine whose builds lead out.
    Builds,
    /// Nobody wrote down what this does.
    Unknown,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) promise: Promise,
    /// Word that the engine was told.
    pub(crate) word: String,
    pub(crate) why: String,
}

impl Finding {
    /// Key that two findings of one fault share.
    pub(crate) fn kind(&self) -> (Promise, String) {
        (self.promise, self.why.clone())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} in {:?}", self.promise, self.why, self.word)
    }
}

/// A mount of a path of the host.
#[derive(Clone, Debug)]
struct Mount {
    source: String,
    writable: bool,
}

/// Project under judgement.
pub(crate) struct Judge<'w> {
    pub(crate) world: &'w World,
    /// Version of the engine.
    pub(crate) engine: &'w str,
    pub(crate) findings: Vec<Finding>,
    mounts: Vec<Mount>,
    /// Volumes that the file declares; each is judged as one of the sandbox's own.
    declared: Vec<String>,
}

impl<'w> Judge<'w> {
    pub(crate) fn new(world: &'w World, engine: &'w str) -> Self {
        Self { world, engine, findings: Vec::new(), mounts: Vec::new(), declared: Vec::new() }
    }

    fn find(&mut self, promise: Promise, word: impl Into<String>, why: impl Into<String>) {
        let finding = Finding { promise, word: word.into(), why: why.into() };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    /// Findings that can only be made when everything was read.
    pub(crate) fn close(mut self) -> Vec<Finding> {
        let mounts = std::mem::take(&mut self.mounts);
        for outer in mounts.iter().filter(|mount| mount.writable) {
            for inner in &mounts {
                let rest = inner.source.strip_prefix(&outer.source);
                if rest.is_some_and(|rest| rest.starts_with('/')) {
                    let word = format!("{} in {}", inner.source, outer.source);
                    let why = "a mounted path lies in a writable mount";
                    self.find(Promise::Replaceable, word, why);
                }
            }
        }
        self.findings
    }

    /// Is this absolute path one of the workspace, with no link on its way?
    fn inside(&self, path: &str) -> bool {
        let workspace = self.world.workspace.as_str();
        let Some(relative) = path.strip_prefix(workspace) else { return false };
        if relative.is_empty() {
            return true;
        }
        let Some(relative) = relative.strip_prefix('/') else { return false };
        let mut walked = String::new();
        for part in relative.split('/') {
            if part == ".." {
                return false;
            }
            if part.is_empty() || part == "." {
                continue;
            }
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(part);
            if LINKS.iter().any(|(link, _)| *link == walked) {
                return false;
            }
        }
        true
    }

    /// Is this a secret that was written beside the rendered file? No container can write there.
    fn own_secret(&self, path: &str) -> bool {
        let name = path
            .strip_prefix(self.world.sandbox.as_str())
            .and_then(|rest| rest.strip_prefix("/secret."));
        name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
    }

    /// A file that the engine or the tool reads on the host.
    fn host_file(&mut self, path: &str, word: &str, what: &str) {
        if !self.inside(path) && !self.own_secret(path) {
            self.find(Promise::HostFiles, word, format!("{what} outside of the workspace"));
        }
    }

    /// A folder that the tool makes before it calls its engine.
    pub(crate) fn made(&mut self, path: &str) {
        if !self.inside(path) {
            self.find(Promise::HostFiles, path, "makes a folder outside of the workspace");
        }
    }

    /// A mount of the host's `source`.
    fn bind(&mut self, source: &str, writable: bool, word: &str) {
        let clock = matches!(source, "/etc/localtime" | "/etc/timezone") && !writable;
        if clock {
            return;
        }
        if !writable && self.own_secret(source) {
            return;
        }
        if !self.inside(source) {
            self.find(Promise::Mounts, word, "mounts a path outside of the workspace");
        }
        let source = source.trim_end_matches('/').to_owned();
        self.mounts.push(Mount { source, writable });
    }

    /// A mount that is shared with the host.
    fn shared_mount(&mut self, word: &str) {
        self.find(Promise::Privileges, word, "mounts of the container appear on the host");
    }

    fn open_port(&mut self, word: &str) {
        self.find(Promise::Ports, word, "a port that is not a random one on 127.0.0.1");
    }

    /// Something of the engine's that has a name.
    fn own_name(&mut self, name: &str, separator: &[char], word: &str, what: &str) {
        if !is_own(name, separator) {
            self.find(Promise::Others, word, format!("{what} of another name than the sandbox's"));
        }
    }
}

/// `sbx-<id>` and then one of these: `_` stands in no id, so `sbx-<id>_` is nobody else's.
fn is_own(name: &str, separator: &[char]) -> bool {
    let rest = name.strip_prefix(&format!("sbx-{ID}"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}
