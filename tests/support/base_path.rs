//! A machine with nothing but Debian's base: a PATH whose programs have nothing to do with containers. A sandbox on `local`
//! is then made without asking an engine, which takes ten times as long.

use std::path::Path;

/// Whatever has to do with containers, and what is nice to have.
const NOT_IN_BASE: [&str; 11] = [
    "docker",
    "podman",
    "buildah",
    "crun",
    "runc",
    "ctr",
    "containerd",
    "rsync",
    "zstd",
    "unzstd",
    "compose",
];

/// Makes a folder of links to the programs that are left.
pub(crate) fn make(bin: &Path) {
    std::fs::create_dir(bin).unwrap();
    for folder in ["/usr/bin", "/usr/sbin", "/bin", "/sbin"] {
        for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
            let name = entry.file_name();
            if !NOT_IN_BASE.iter().any(|word| name.to_string_lossy().contains(word)) {
                let _ = std::os::unix::fs::symlink(entry.path(), bin.join(name));
            }
        }
    }
}
