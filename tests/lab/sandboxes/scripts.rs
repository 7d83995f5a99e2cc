//! Scripts for hosts, run here with an engine that is made up.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the scripts' sources.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Puts an engine into a folder, as the program `docker`.
pub(crate) fn engine_in(folder: &Path, engine: &str) {
    program_in(folder, "docker", engine);
}

/// Puts a program into a folder.
pub(crate) fn program_in(folder: &Path, name: &str, text: &str) {
    let program = folder.join(name);
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// These sources of scripts, one behind the other.
pub(crate) fn joined(paths: &[&str]) -> String {
    paths.iter().map(|path| fs::read_to_string(source().join(path)).unwrap()).collect()
}

/// Lines of shell behind definitions (`$src`: where scripts are), in a folder with this engine and two containers, `aa` and
/// `bb`, which are files with their state. What they say.
pub(crate) fn shell(engine: &str, state: &str, definitions: &str, lines: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    engine_in(folder.path(), engine);
    let script = format!(
        "PATH=$PWD:$PATH src=$1; echo {state} >aa; echo {state} >bb\nsbx_letting_go=$(cat $src/extensions/archives/scripts/let_go.sh); eval \"$sbx_letting_go\"\n{definitions}\n{lines}\n"
    );
    let mut sh = Command::new("sh");
    let ran =
        sh.args(["-c", &script, "sh"]).arg(source()).current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}
