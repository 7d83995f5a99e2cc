//! Leftovers: what on a host names certain sandboxes and snapshots, whoever made it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::lines;
use crate::domain::error::{Code, Error};
use crate::domain::name::OperationId;
use crate::domain::teardown::Resource;
use crate::domain::text::clean_line;
use crate::transport::{Command, Transport};

const LEFTOVERS_SH: &str =
    concat!(include_str!("../scripts/runtime.sh"), include_str!("../scripts/leftovers.sh"));

/// Each call in it has a limit of its own, well below.
const DEADLINE: Duration = Duration::from_mins(2);

/// Names to look for.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftoverRequest {
    /// Where sandboxes live, as the host resolved it.
    pub root: String,
    /// The engines to ask.
    pub engines: Vec<String>,
    /// Ids of sandboxes, and of snapshots with their `snap-`.
    pub ids: Vec<String>,
    /// Volumes by name, wherever they are used.
    pub volumes: Vec<String>,
}

/// Containers, pods, networks, volumes, images, directories, mounts and processes that name one of the ids, or carry the
/// operation's id in a label; and the volumes that such a container uses.
///
/// Errors: the transport's; `operation_failed` when an engine does not say what it has: half a list is none.
pub(crate) async fn leftovers(
    transport: &dyn Transport,
    operation: &OperationId,
    want: &LeftoverRequest,
) -> Result<Vec<Resource>, Error> {
    let command = Command::script(LEFTOVERS_SH)
        .args([want.root.as_str(), operation.as_str()])
        .arg(want.engines.len().to_string())
        .args(&want.engines)
        .arg(want.ids.len().to_string())
        .args(&want.ids)
        .args(&want.volumes);
    let output = transport.run(&command, DEADLINE).await?;
    if !output.ok() {
        let words = clean_line(output.error_text().trim(), 400);
        return Err(Error::new(Code::OperationFailed, "the host could not be looked through")
            .because(words));
    }
    read(&output.text())
}

fn read(text: &str) -> Result<Vec<Resource>, Error> {
    let mut found = BTreeSet::new();
    for entry in lines::entries(text) {
        let text = entry.text();
        match entry.key {
            "failed" => {
                let error = Error::new(Code::OperationFailed, "an engine does not say what it has");
                return Err(error.because(clean_line(&text, 400)));
            }
            "container" | "pod" | "network" | "volume" | "image" | "directory" | "mount"
            | "process" => {
                found.insert((entry.key.to_owned(), clean_line(text.trim(), 400)));
            }
            _ => {}
        }
    }
    Ok(found.into_iter().map(|(kind, id)| Resource { kind, id }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_once_and_never_half_a_list() {
        let said = "banner\ncontainer=\n sbx-a_web_1\nvolume=\n 0f\nvolume=\n 0f\nprocess=\n 7 sh x=1\nelse=\n y\n";
        let found = read(said).unwrap();
        let found: Vec<String> =
            found.iter().map(|one| format!("{} {}", one.kind, one.id)).collect();
        assert_eq!(found, ["container sbx-a_web_1", "process 7 sh x=1", "volume 0f"]);
        let error = read(&format!("{said}failed=\n docker ps: no daemon\n")).unwrap_err();
        assert_eq!(
            (&error.code, error.causes),
            (&Code::OperationFailed, vec!["docker ps: no daemon".to_owned()])
        );
    }

    /// A podman whose list of volumes fails the first times, as one does while somebody removes a volume.
    fn found_by(failures: u32) -> Result<Vec<Resource>, Error> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let engine = folder.path().join("podman");
        let script = format!(
            "#!/bin/sh\n[ \"$1 $2\" = 'volume ls' ] || exit 0\necho >>asked\n\
             [ \"$(wc -l <asked)\" -gt {failures} ] || {{ echo half; echo 'Error: no such volume' >&2; exit 125; }}\necho sbx-a_kept x\n"
        );
        std::fs::write(&engine, script).unwrap();
        std::fs::set_permissions(&engine, std::fs::Permissions::from_mode(0o755)).unwrap();
        let words = ["-c", LEFTOVERS_SH, "sh", "/nowhere", "op-1", "1", "./podman", "1", "a"];
        let ran = std::process::Command::new("sh")
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let mut found = read(&String::from_utf8_lossy(&ran.stdout))?;
        found.retain(|one| one.kind == "volume");
        Ok(found)
    }

    #[test]
    fn a_list_that_fails_over_what_went_away_is_asked_for_again() {
        let volume = Resource { kind: "volume".to_owned(), id: "sbx-a_kept".to_owned() };
        assert_eq!(
            (found_by(0).unwrap(), found_by(2).unwrap()),
            (vec![volume.clone()], vec![volume])
        );
        let error = found_by(3).unwrap_err();
        assert!(error.causes[0].contains("no such volume"), "{error:?}");
    }
}
