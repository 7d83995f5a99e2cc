//! Files of YAML: read with limits, so that nothing in a directory can hang or fill the program.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use super::document::{Document, MAX_FILE_BYTES};
use crate::domain::problem::ParseProblem;

/// Reads and parses one file, with limits: a directory, a pipe, over 1 MiB or not UTF-8 is a problem.
pub(crate) fn read_document(path: &Path) -> Result<Document, ParseProblem> {
    Document::from_bytes(&path.display().to_string(), &read_bytes(path)?)
}

/// Bytes of a regular file, at most one more than the limit. A pipe or device is not opened: it could block.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, ParseProblem> {
    let file = path.display().to_string();
    let unreadable = |error: std::io::Error| {
        ParseProblem::whole(&file, format!("the file cannot be read: {error}"))
    };
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        return Err(ParseProblem::whole(&file, "this is a directory, not a file"));
    }
    if !meta.is_file() {
        return Err(ParseProblem::whole(&file, "this is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(bytes)
}
