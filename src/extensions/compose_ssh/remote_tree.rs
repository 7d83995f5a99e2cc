//! The workspace of a sandbox that is restored, as the renderer reads it: it lies on the host, and what the renderer asks for
//! is fetched from there. The renderer runs again until it has asked for nothing new.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::domain::error::{Code, Error};
use crate::domain::extension::ProvisionRequest;
use crate::extensions::compose_ssh::render::{Entry, HostContext, RenderError, Rendered, Tree};
use crate::extensions::compose_ssh::source;
use crate::extensions::workspace::failed;
use crate::transport::{Command, Transport};

const FETCH_SH: &str = include_str!("../archives/scripts/fetch.sh");

/// How long one question may take.
const LIMIT: Duration = Duration::from_mins(2);
/// How often it is asked: a chain of includes this deep is nobody's.
const ROUNDS: usize = 24;
/// Paths in one question.
const AT_ONCE: usize = 200;

/// Knowledge of the workspace, and what was asked for and is not known.
#[derive(Default)]
struct RemoteTree {
    known: BTreeMap<String, (Entry, Vec<u8>)>,
    wanted: RefCell<BTreeSet<String>>,
    unreadable: BTreeSet<String>,
}

impl Tree for RemoteTree {
    fn entry(&self, path: &str) -> io::Result<Entry> {
        if path.is_empty() {
            return Ok(Entry::Directory);
        }
        if let Some((entry, _)) = self.known.get(path) {
            return Ok(entry.clone());
        }
        self.wanted.borrow_mut().insert(path.to_owned());
        // Not an end: the renderer goes on and names what else it wants.
        Ok(Entry::Missing)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if self.unreadable.contains(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if let Some((_, content)) = self.known.get(path) {
            return Ok(content.clone());
        }
        self.wanted.borrow_mut().insert(path.to_owned());
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Renders the compose file of the workspace at `workspace` on the host.
pub(super) async fn render(
    transport: &dyn Transport,
    request: &ProvisionRequest,
    workspace: &str,
    host: &HostContext,
) -> Result<Result<Rendered, RenderError>, Error> {
    let mut tree = RemoteTree::default();
    for _ in 0..ROUNDS {
        let (rendered, asked) = tokio::task::block_in_place(|| {
            let rendered = source::render_tree(&tree, request, workspace, host, &mut Vec::new());
            (rendered, tree.wanted.take())
        });
        if asked.is_empty() {
            return Ok(rendered);
        }
        fetch(transport, workspace, &asked, &mut tree).await?;
    }
    Err(Error::new(Code::OperationFailed, "the compose file includes others without an end")
        .step("render"))
}

async fn fetch(
    transport: &dyn Transport,
    workspace: &str,
    asked: &BTreeSet<String>,
    tree: &mut RemoteTree,
) -> Result<(), Error> {
    // What stands above a path is asked for with it: the renderer looks at each folder on the way.
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for path in asked {
        paths.insert(path);
        paths.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
    }
    let paths: Vec<&str> = paths
        .into_iter()
        .filter(|path| !path.is_empty() && !tree.known.contains_key(*path))
        .collect();
    for part in paths.chunks(AT_ONCE) {
        let command = Command::script(FETCH_SH).arg(workspace).args(part);
        let output = transport.run(&command, LIMIT).await.map_err(|error| error.step("render"))?;
        let text = output.text();
        let lines: Vec<&str> = text.lines().collect();
        if !output.ok() || output.truncated || lines.len() != part.len() {
            let message = format!("the workspace on {} cannot be read", transport.spec().name);
            return Err(failed("render", message, &output));
        }
        for (path, line) in part.iter().zip(lines) {
            let found = read(line).ok_or_else(|| {
                failed(
                    "render",
                    format!("what {} says of {path} cannot be read", transport.spec().name),
                    &output,
                )
            })?;
            if line == "u" {
                tree.unreadable.insert((*path).to_owned());
            }
            tree.known.insert((*path).to_owned(), found);
        }
    }
    Ok(())
}

fn read(line: &str) -> Option<(Entry, Vec<u8>)> {
    let (kind, text) = line.split_once(' ').unwrap_or((line, ""));
    let content = || BASE64_STANDARD.decode(text).ok();
    Some(match kind {
        "m" => (Entry::Missing, Vec::new()),
        "d" => (Entry::Directory, Vec::new()),
        "u" => (Entry::File, Vec::new()),
        "o" => (Entry::Other, Vec::new()),
        "f" => (Entry::File, content()?),
        "l" => {
            let mut target = content()?;
            // readlink's own line break.
            target.pop();
            (String::from_utf8(target).map_or(Entry::OddLink, Entry::Link), Vec::new())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(read("l dGhlcmUK"), Some((Entry::Link("there".into()), Vec::new())));
        assert_eq!(read("f aGk="), Some((Entry::File, b"hi".to_vec())));
        assert_eq!(read("m"), Some((Entry::Missing, Vec::new())));
        assert_eq!(read("x"), None);
    }
}
