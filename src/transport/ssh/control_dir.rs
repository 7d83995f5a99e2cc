//! The folder of the control sockets: short (a socket's path has 108 bytes), ours, and closed to everybody else.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::error::{Code, Error};

/// The longest path: 108 bytes with the final NUL, less `/`, 16 of the name, and the 17 that ssh adds while it binds.
const LONGEST: usize = 108 - 1 - 1 - 16 - 17;

/// Where control sockets go: `sbx` in the user's runtime folder (`XDG_RUNTIME_DIR`) if that is short enough, else
/// `/tmp/sbx-UID`.
pub(crate) fn default_control_dir(runtime_dir: Option<&OsStr>) -> PathBuf {
    let runtime = runtime_dir
        .map(Path::new)
        .filter(|dir| dir.is_absolute() && dir.is_dir())
        .map(|dir| dir.join("sbx"));
    runtime.filter(|dir| dir.as_os_str().len() <= LONGEST).unwrap_or_else(|| {
        PathBuf::from(format!("/tmp/sbx-{}", rustix::process::geteuid().as_raw()))
    })
}

/// Makes the folder if it is not there and makes sure that nobody else can put anything into it.
pub(crate) fn prepare(dir: &Path) -> Result<(), Error> {
    if dir.as_os_str().len() > LONGEST {
        return Err(refused(dir, "its path is too long for a control socket"));
    }
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        return Err(refused(dir, "it cannot be made").because(error));
    }
    // Not `metadata`: a link that somebody put there first would be followed.
    let found = fs::symlink_metadata(dir)
        .map_err(|error| refused(dir, "it cannot be read").because(error))?;
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

/// Time for which a log of an attempt to connect is anybody's: the attempt is over long before.
const LOG_KEPT: Duration = Duration::from_mins(5);

/// Removes what processes left that were killed: sockets that nobody listens on, and logs of attempts that are over. To
/// be called now and then; what cannot be removed stays. Lock files stay too: whoever waits holds one open.
pub(crate) fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let old = || {
            found.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > LOG_KEPT)
        };
        let extension = path.extension().and_then(OsStr::to_str);
        let dead = if found.file_type().is_socket() {
            // A master that is only busy or stuck still has its socket open, and is not refused. Under a longer name ssh
            // makes its socket first, and listens on it a moment later.
            (extension.is_none() || old())
                && UnixStream::connect(&path)
                    .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        } else {
            extension == Some("log") && old()
        };
        if dead {
            drop(fs::remove_file(&path));
        }
    }
}

fn refused(dir: &Path, why: &str) -> Error {
    Error::new(
        Code::OperationFailed,
        format!("{} is not used for SSH control sockets: {why}", dir.display()),
    )
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
    fn what_the_dead_left_is_swept_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let file = |name: &str, age: u64| {
            let file = fs::File::create(home.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        let living = std::os::unix::net::UnixListener::bind(home.path().join("living")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(home.path().join("dead")).unwrap());
        file("a.1.log", 400);
        file("a.2.log", 10);
        file("a.lock", 4000);
        sweep(home.path());
        let left = fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut left: Vec<String> = left.collect();
        left.sort();
        assert_eq!(left, ["a.2.log", "a.lock", "living"]);
        drop(living);
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
