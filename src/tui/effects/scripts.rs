//! Scripts of patches, read from files.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::client::{Client, Error, PatchRequest};
use crate::domain::error::Code;
use crate::domain::patch::MAX_SCRIPT_BYTES;

/// Adds a patch, with its script from a file where there is one.
pub(super) async fn add_patch(
    client: &dyn Client,
    mut request: PatchRequest,
    file: Option<PathBuf>,
) -> Result<Box<crate::domain::Patch>, Error> {
    if let Some(path) = file {
        let read = tokio::task::spawn_blocking(move || read_script(&path)).await;
        request.script = read.map_err(|error| Error::new(Code::Internal, error.to_string()))??;
    }
    client.add_patch(request).await.map(Box::new)
}

/// Reads a script; of one that is too large only so much that it can be refused.
fn read_script(path: &Path) -> Result<String, Error> {
    let refused = |message: String, cause: Option<String>| {
        let mut problem = Error::new(Code::InvalidInput, message);
        problem.causes.extend(cause);
        problem.details = serde_json::json!({"field": "script"});
        problem
    };
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| refused(format!("{shown} cannot be read: {error}"), None);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(refused(format!("{shown} is not a file"), None));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_SCRIPT_BYTES).unwrap_or(u64::MAX) + 1;
    file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map_err(|error| refused(format!("{shown} is no text"), Some(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_a_file_with_text_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fix.sh");
        std::fs::write(&path, "echo grüße\n").unwrap();
        assert_eq!(read_script(&path).unwrap(), "echo grüße\n");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        for (path, words) in [
            (path.as_path(), "is no text"),
            (folder.path(), "is not a file"),
            (&path.join("no"), "cannot be read"),
        ] {
            let problem = read_script(path).unwrap_err();
            assert!(problem.message.contains(words), "{}", problem.message);
            assert_eq!(problem.details["field"], "script");
        }
        std::fs::write(&path, vec![b'x'; 2 * MAX_SCRIPT_BYTES]).unwrap();
        assert_eq!(read_script(&path).unwrap().len(), MAX_SCRIPT_BYTES + 1, "enough to be refused");
    }
}
