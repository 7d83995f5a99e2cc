//! `directory` inputs: looked at on this machine, and refused where a sandbox has no business (contract, section 2).

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::domain::error::Error;
use crate::domain::facts::HostIdentity;
use crate::domain::name::HostName;
use crate::domain::profile::{InputKind, Profile};
use crate::domain::text::expand_home;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::recorded_roots;

/// Makes `directory` inputs absolute, without links, and refuses those that must not be copied to a host.
pub(crate) async fn resolve_directories(
    deps: &Deps,
    profile: &Profile,
    inputs: &mut BTreeMap<String, String>,
) -> Result<(), Error> {
    let home = deps.settings.home.clone();
    let mut forbidden = None;
    for (name, spec) in profile.inputs.iter() {
        if spec.kind != InputKind::Directory {
            continue;
        }
        let Some(value) = inputs.get_mut(name) else { continue };
        let given = expand_home(value, home.as_deref());
        let real = tokio::fs::canonicalize(&given).await.map_err(|error| {
            Error::invalid_input(name, format!("{name}: no directory {value:?} is here"))
                .because(error)
                .hint("give the path of a directory on this machine")
        })?;
        if !tokio::fs::metadata(&real).await.is_ok_and(|meta| meta.is_dir()) {
            return Err(Error::invalid_input(
                name,
                format!("{name}: {value:?} is not a directory"),
            ));
        }
        let forbidden = match &forbidden {
            Some(forbidden) => forbidden,
            None => forbidden.insert(Forbidden::new(home.as_deref(), &roots_here(deps).await?)),
        };
        forbidden.refuse(name, &real)?;
        *value = real.to_str().map(str::to_owned).ok_or_else(|| {
            Error::invalid_input(name, format!("{name}: the path is not UTF-8, and records are"))
                .hint("move the directory, or reach it through a symbolic link with a plain name")
        })?;
    }
    Ok(())
}

/// Every root that sandboxes use on this machine: the configured one, those of profiles, and those in which records have
/// something, whatever this machine is called there.
async fn roots_here(deps: &Deps) -> Result<Vec<PathBuf>, Error> {
    let home = deps.settings.home.as_deref();
    let local = HostName::new(HostName::LOCAL);
    let configured = deps.transports.spec(&local).map(|spec| spec.workspace_root);
    let roots = configured.into_iter().chain(deps.catalogue.workspace_roots());
    let mut roots: Vec<PathBuf> = roots.map(|root| expand_home(&root, home)).collect();
    let machine = deps.installation.machine_id();
    let is_here = |host: &HostName, identity: Option<&HostIdentity>| {
        host.same(local.as_str()) || identity.is_some_and(|identity| identity.machine_id == machine)
    };
    for root in recorded_roots(deps, is_here).await? {
        roots.push(root.path.into());
    }
    Ok(roots)
}

/// Makes `directory` inputs absolute where that can be done; what is wrong with them is said elsewhere.
pub(crate) fn normalize_directories(
    deps: &Deps,
    profile: &Profile,
    inputs: &mut BTreeMap<String, String>,
) {
    let home = deps.settings.home.as_deref();
    for (name, _) in profile.inputs.iter().filter(|(_, spec)| spec.kind == InputKind::Directory) {
        let Some(value) = inputs.get_mut(name) else { continue };
        let given = expand_home(value, home);
        let whole = std::fs::canonicalize(&given).or_else(|_| std::path::absolute(&given));
        if let Some(text) = whole.ok().as_deref().and_then(Path::to_str) {
            text.clone_into(value);
        }
    }
}

/// Folders where no `directory` input may be: as paths without links, and as folders, which have other paths where they
/// are mounted twice.
struct Forbidden {
    home: Option<Folder>,
    roots: Vec<Folder>,
}

/// A folder: its path, and what the file system calls it and each folder above it, the folder itself first.
struct Folder {
    path: PathBuf,
    above: Vec<(u64, u64)>,
}

impl Folder {
    /// Folder at a path, as far as it exists; without links.
    fn at(path: &Path) -> Self {
        let path = real(path);
        let above = path.ancestors().filter_map(|folder| std::fs::metadata(folder).ok());
        let above = above.map(|found| (found.dev(), found.ino())).collect();
        Self { path, above }
    }

    fn is(&self, other: &Self) -> bool {
        let same = self.exists() && other.exists() && self.above.first() == other.above.first();
        self.path == other.path || same
    }

    /// Whether it is the other one, or in it.
    fn is_within(&self, other: &Self) -> bool {
        let within =
            other.exists() && other.above.first().is_some_and(|other| self.above.contains(other));
        self.path.starts_with(&other.path) || within
    }

    fn exists(&self) -> bool {
        self.above.len() == self.path.ancestors().count()
    }
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let existing =
        path.ancestors().find_map(|folder| Some((folder, std::fs::canonicalize(folder).ok()?)));
    match existing {
        Some((folder, real)) => {
            path.strip_prefix(folder).map_or_else(|_| path.to_owned(), |rest| real.join(rest))
        }
        None => path.to_owned(),
    }
}

impl Forbidden {
    fn new(home: Option<&Path>, roots: &[PathBuf]) -> Self {
        Self {
            home: home.map(Folder::at),
            roots: roots.iter().map(|root| Folder::at(root)).collect(),
        }
    }

    fn refuse(&self, name: &str, path: &Path) -> Result<(), Error> {
        let given = Folder::at(path);
        let why = if given.path == Path::new("/") || given.is(&Folder::at(Path::new("/"))) {
            "is the whole file system".to_owned()
        } else if self.home.as_ref().is_some_and(|home| given.is(home)) {
            "is your home directory".to_owned()
        } else if let Some(root) = self.roots.iter().find(|root| given.is_within(root)) {
            format!("is (in) a directory that holds sandboxes, {}", root.path.display())
        } else if let Some(root) = self.roots.iter().find(|root| root.is_within(&given)) {
            format!("contains a directory that holds sandboxes, {}", root.path.display())
        } else {
            return Ok(());
        };
        Err(Error::invalid_input(name, format!("{name}: {} {why}", path.display()))
            .hint("give the directory of one repository"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(forbidden: &Forbidden, path: &Path) -> bool {
        forbidden.refuse("repo", path).is_err()
    }

    #[test]
    fn what_must_not_be_copied_is_refused() {
        let roots = ["/home/ops/sandboxes".into(), "/build".into()];
        let forbidden = Forbidden::new(Some(Path::new("/home/ops")), &roots);
        for (path, expected) in [
            ("/", true),
            ("/home/ops", true),
            ("/home", true),
            ("/home/ops/sandboxes", true),
            ("/home/ops/sandboxes/sbx-1/workspace", true),
            ("/build", true),
            ("/build/sbx-1", true),
            ("/home/ops/sandboxes-of-mine", false),
            ("/home/ops/repo", false),
            ("/builder", false),
        ] {
            assert_eq!(refused(&forbidden, Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn folders_are_compared_by_where_they_lead() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("disk/root/sbx-1")).unwrap();
        std::fs::create_dir_all(at("repo")).unwrap();
        std::os::unix::fs::symlink(at("disk"), at("link")).unwrap();
        // Configured through a link; one is not there yet.
        let forbidden = Forbidden::new(None, &[at("link/root"), at("link/later/root")]);
        for (name, expected) in [
            ("disk", true),
            ("disk/root", true),
            ("disk/root/sbx-1", true),
            ("link", true),
            ("link/root/sbx-1", true),
            (".", true),
            ("repo", false),
        ] {
            assert_eq!(refused(&forbidden, &at(name)), expected, "{name}");
        }
        std::fs::create_dir_all(at("disk/later")).unwrap();
        assert!(refused(&forbidden, &at("disk/later")), "what is to hold a root");
    }
}
