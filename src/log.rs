//! The log file: never the terminal, which belongs to the faces. 10 MiB, five of them kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::ParseError;

/// A file's size at which the next one is begun, in bytes.
const LIMIT: u64 = 10 * 1024 * 1024;

/// Files that are kept, the current one included.
const KEPT: u32 = 5;

const DEFAULT_FILTER: &str = "sandboxer=info";

/// Sends everything that is logged from now on to this file. The file is made by the first line; if it cannot be
/// made, the lines are lost: a log is no reason to fail.
///
/// Errors: for what is no filter.
pub fn start(path: &Path, filter: Option<&str>) -> Result<(), ParseError> {
    let filter = filter.unwrap_or(DEFAULT_FILTER);
    // A word alone is taken for a part of the program, so that a level that is typed wrong would turn everything off.
    let strange = |part: &&str| !part.contains(['=', '[']) && part.parse::<LevelFilter>().is_err();
    if let Some(word) = filter
        .split(',')
        .map(str::trim)
        .find(|part| strange(part) && !part.starts_with("sandboxer"))
    {
        EnvFilter::try_new(format!("sandboxer={word}"))?;
    }
    let filter = EnvFilter::try_new(filter)?;
    let writer = Mutex::new(LogFile { path: path.to_owned(), file: None, size: 0 });
    // A second call (a test) finds a subscriber in place, which is fine.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(writer)
        .try_init();
    Ok(())
}

/// A file that begins anew when it is full. Several processes may write to it: each line is one write to a file
/// opened for appending.
struct LogFile {
    path: PathBuf,
    file: Option<File>,
    size: u64,
}

impl LogFile {
    fn open(&mut self) -> io::Result<&mut File> {
        if self.size >= LIMIT {
            self.rotate();
        }
        if self.file.is_none() {
            if let Some(folder) = self.path.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            self.size = file.metadata()?.len();
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("no log file"))
    }

    fn rotate(&mut self) {
        self.file = None;
        self.size = 0;
        // Another process may have done it already: then the file at this path is small again.
        if fs::metadata(&self.path).is_ok_and(|meta| meta.len() < LIMIT) {
            return;
        }
        for number in (1..KEPT).rev() {
            let _ = fs::rename(numbered(&self.path, number - 1), numbered(&self.path, number));
        }
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.open()?.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_filter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sandboxer.log");
        assert!(start(&path, Some("sandboxer=verbose")).is_err());
        assert!(start(&path, Some("debgu")).is_err(), "no part of the program is called so");
        assert!(start(&path, Some("info,sandboxer::manager=trace")).is_ok());
        assert!(start(&path, Some("warn, sandboxer::store")).is_ok());
    }

    #[test]
    fn five_files_of_ten_mebibytes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/sandboxer.log");
        let mut log = LogFile { path: path.clone(), file: None, size: 0 };
        let line = vec![b'x'; 1024 * 1024];
        for _ in 0..75 {
            log.write_all(&line).unwrap();
        }
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 5);
        assert!(fs::metadata(numbered(&path, 4)).unwrap().len() <= LIMIT);
        assert!(!numbered(&path, 5).exists());
    }
}
