//! The container engine, as something a mount can hand out.

use std::path::Path;

/// Where engines listen. A mount of one of these, or of a folder above, is the engine.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/user/0/docker.sock",
    "/run/user/0/podman/podman.sock",
];

/// Does a mount of this path hand out a container engine's socket?
pub(super) fn reaches_engine(path: &str) -> bool {
    let named = |socket: &&str| Path::new(socket).file_name() == Path::new(path).file_name();
    if path == "/" || path == "/var" || SOCKETS.iter().any(named) {
        return true;
    }
    let path = path
        .strip_prefix("/var")
        .filter(|rest| *rest == "/run" || rest.starts_with("/run/"))
        .unwrap_or(path);
    // /run/user/1000 stands for every account's.
    let any_user = path
        .split('/')
        .enumerate()
        .map(|(i, part)| if i == 3 && path.starts_with("/run/user/") { "0" } else { part });
    let path = any_user.collect::<Vec<_>>().join("/");
    SOCKETS
        .iter()
        .any(|socket| socket.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_recognised_from_any_side() {
        for path in [
            "/",
            "/var",
            "/run",
            "/var/run",
            "/run/docker.sock",
            "/var/run/docker.sock",
            "/run/podman",
            "/run/user",
            "/run/user/1000",
            "/run/user/1000/podman",
            "/home/me/.docker/run/docker.sock",
            "/srv/podman.sock",
            "/run/containerd",
            "/var/run/user/7/podman/podman.sock",
        ] {
            assert!(reaches_engine(path), "{path}");
        }
        for path in [
            "/etc",
            "/var/lib",
            "/runner",
            "/run/lock",
            "/run/user/1000/bus",
            "/home/me",
            "/x/docker.sock.d",
            "/var/runner",
        ] {
            assert!(!reaches_engine(path), "{path}");
        }
    }
}
