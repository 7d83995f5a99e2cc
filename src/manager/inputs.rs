//! `directory` inputs: looked at on this machine, and refused where a sandbox has no business (contract, section 2).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::fault::Fault;
use crate::domain::name::HostName;
use crate::domain::profile::{InputKind, Profile};
use crate::domain::text::expand_home;
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Makes `directory` inputs absolute, without links, and refuses those that must not be copied to a host.
    pub(super) async fn settle_directories(
        &self,
        profile: &Profile,
        inputs: &mut BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let root = self.local_root();
        let home = self.parts.settings.home.clone();
        for (name, spec) in profile.inputs.iter() {
            if spec.kind != InputKind::Directory {
                continue;
            }
            let Some(value) = inputs.get_mut(name) else { continue };
            let given = expand_home(value, home.as_deref());
            let real = tokio::fs::canonicalize(&given).await.map_err(|error| {
                Fault::invalid_input(name, format!("{name}: no directory {value:?} is here"))
                    .because(error)
                    .hint("give the path of a directory on this machine")
            })?;
            if !tokio::fs::metadata(&real).await.is_ok_and(|meta| meta.is_dir()) {
                return Err(Fault::invalid_input(name, format!("{name}: {value:?} is not a directory")));
            }
            refuse(name, &real, home.as_deref(), root.as_deref())?;
            *value = real.to_str().map(str::to_owned).ok_or_else(|| {
                Fault::invalid_input(name, format!("{name}: the path is not UTF-8, and records are"))
                    .hint("move the directory, or reach it through a symbolic link with a plain name")
            })?;
        }
        Ok(())
    }

    /// Makes `directory` inputs absolute where that can be done; what is wrong with them is said elsewhere.
    pub(super) fn spell_out_directories(&self, profile: &Profile, inputs: &mut BTreeMap<String, String>) {
        let home = self.parts.settings.home.as_deref();
        for (name, _) in profile.inputs.iter().filter(|(_, spec)| spec.kind == InputKind::Directory) {
            let Some(value) = inputs.get_mut(name) else { continue };
            let given = expand_home(value, home);
            let whole = std::fs::canonicalize(&given).or_else(|_| std::path::absolute(&given));
            if let Some(text) = whole.ok().as_deref().and_then(Path::to_str) {
                text.clone_into(value);
            }
        }
    }

    /// The workspace root of `local`, as far as it exists, without links.
    fn local_root(&self) -> Option<PathBuf> {
        let spec = self.parts.transports.spec(&HostName::new(HostName::LOCAL))?;
        let root = expand_home(&spec.workspace_root, self.parts.settings.home.as_deref());
        Some(std::fs::canonicalize(&root).unwrap_or(root))
    }
}

fn refuse(name: &str, real: &Path, home: Option<&Path>, root: Option<&Path>) -> Result<(), Fault> {
    let why = if real == Path::new("/") {
        "is the whole file system"
    } else if home.is_some_and(|home| real == std::fs::canonicalize(home).as_deref().unwrap_or(home)) {
        "is your home directory"
    } else if root.is_some_and(|root| real.starts_with(root)) {
        "is (in) the directory that holds sandboxes"
    } else if root.is_some_and(|root| root.starts_with(real)) {
        "contains the directory that holds sandboxes"
    } else {
        return Ok(());
    };
    Err(Fault::invalid_input(name, format!("{name}: {} {why}", real.display()))
        .hint("give the directory of one repository"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_be_copied_is_refused() {
        let home = Path::new("/home/ops");
        let root = Path::new("/home/ops/sandboxes");
        for (path, refused) in [
            ("/", true),
            ("/home/ops", true),
            ("/home", true),
            ("/home/ops/sandboxes", true),
            ("/home/ops/sandboxes/sbx-1/workspace", true),
            ("/home/ops/sandboxes-of-mine", false),
            ("/home/ops/repo", false),
        ] {
            assert_eq!(refuse("repo", Path::new(path), Some(home), Some(root)).is_err(), refused, "{path}");
        }
    }
}
