//! The folder of the control sockets: short (a socket's path has 108 bytes), ours, and closed to everybody else.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::domain::fault::{Code, Fault};

/// The longest path: 108 bytes with the final NUL, less `/`, 16 of the name, and the 17 that ssh adds while it binds.
const LONGEST: usize = 108 - 1 - 1 - 16 - 17;

/// Where control sockets go: `sbx` in the user's runtime folder (`XDG_RUNTIME_DIR`) if that is short enough, else
/// `/tmp/sbx-UID`.
pub fn default_control_dir(runtime_dir: Option<&OsStr>) -> PathBuf {
    let runtime = runtime_dir.map(Path::new).filter(|dir| dir.is_absolute() && dir.is_dir()).map(|dir| dir.join("sbx"));
    runtime
        .filter(|dir| dir.as_os_str().len() <= LONGEST)
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/sbx-{}", rustix::process::geteuid().as_raw())))
}

/// Makes the folder if it is not there and makes sure that nobody else can put anything into it.
pub(crate) fn prepare(dir: &Path) -> Result<(), Fault> {
    if dir.as_os_str().len() > LONGEST {
        return Err(refused(dir, "its path is too long for a control socket"));
    }
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        return Err(refused(dir, "it cannot be made").because(error));
    }
    // Not `metadata`: a link that somebody put there first would be followed.
    let found = fs::symlink_metadata(dir).map_err(|error| refused(dir, "it cannot be read").because(error))?;
    if !found.is_dir() {
        return Err(refused(dir, "it is not a folder"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(dir, "it belongs to somebody else"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(refused(dir, "others may enter it"));
    }
    Ok(())
}

fn refused(dir: &Path, why: &str) -> Fault {
    Fault::new(Code::OperationFailed, format!("{} is not used for SSH control sockets: {why}", dir.display()))
        .hint("remove it, or set XDG_RUNTIME_DIR to a folder of your own")
        .detail("path", dir.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_new_folder_is_closed_and_a_hostile_one_refused() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("sbx");
        prepare(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        prepare(&dir).unwrap();

        let link = home.path().join("link");
        symlink(&dir, &link).unwrap();
        assert!(prepare(&link).is_err());

        fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(prepare(&dir).is_err());

        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(prepare(&file).is_err());

        assert!(prepare(&home.path().join("x".repeat(LONGEST))).is_err());
    }

    #[test]
    fn the_runtime_folder_is_taken_when_it_fits() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(default_control_dir(Some(home.path().as_os_str())), home.path().join("sbx"));
        for unfit in [None, Some("relative"), Some("/nonexistent-folder")] {
            assert!(default_control_dir(unfit.map(OsStr::new)).starts_with("/tmp"));
        }
    }
}
