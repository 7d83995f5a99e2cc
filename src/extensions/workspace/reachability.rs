//! How somebody gets to a sandbox: commands to paste.

use std::path::Path;

use crate::domain::host::HostSpec;
use crate::domain::sandbox::{Endpoint, Reachability};
use crate::transport::shell::quote::quote;

/// A port of the sandbox as its host publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door<'a> {
    /// The service behind it.
    pub(crate) service: &'a str,
    pub(crate) container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub(crate) protocol: &'a str,
    /// The address on the host; empty or unspecified: all of its interfaces.
    pub(crate) host_ip: &'a str,
    pub(crate) host_port: u16,
}

/// How to get to a workspace on this host and to these ports.
pub(crate) fn reachability<'a>(
    spec: &HostSpec,
    workspace: &str,
    doors: impl Iterator<Item = Door<'a>>,
) -> Reachability {
    let ssh = ssh_words(spec);
    let enter = format!("cd {} && exec \"$SHELL\" -l", quoted(workspace));
    let mut endpoints: Vec<Endpoint> = doors.map(|door| endpoint(&door, ssh.as_ref())).collect();
    endpoints.sort_by(|a, b| {
        (&a.service, a.container_port, a.host_port).cmp(&(
            &b.service,
            b.container_port,
            b.host_port,
        ))
    });
    Reachability {
        host: spec.name.clone(),
        ssh: match &ssh {
            Some(words) => format!("ssh {} -t {} {}", words.options, words.target, quoted(&enter))
                .replace("  ", " "),
            None => format!("cd {}", quoted(workspace)),
        },
        workdir: workspace.to_owned(),
        endpoints,
        attachments: Vec::new(),
    }
}

fn endpoint(door: &Door<'_>, ssh: Option<&SshWords>) -> Endpoint {
    let ip = match door.host_ip {
        "" | "0.0.0.0" | "::" => "127.0.0.1",
        ip => ip,
    };
    let scheme = if door.protocol == "tcp" { "http" } else { door.protocol };
    let at = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    let port = door.host_port;
    Endpoint {
        service: door.service.to_owned(),
        container_port: door.container_port,
        host_port: port,
        protocol: door.protocol.to_owned(),
        url: format!("{scheme}://{at}:{port}"),
        // ssh forwards TCP only.
        tunnel: ssh.filter(|_| door.protocol == "tcp").map(|words| {
            format!("ssh {} -N -L {port}:{at}:{port} {}", words.options, words.target)
                .replace("  ", " ")
        }),
    }
}

struct SshWords {
    options: String,
    target: String,
}

fn ssh_words(spec: &HostSpec) -> Option<SshWords> {
    let target = spec.ssh_target()?;
    let options = spec
        .ssh_config
        .as_deref()
        .map(|path| format!("-F {}", quoted_path(path)))
        .unwrap_or_default();
    Some(SshWords { options, target: quoted(target) })
}

fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A word of a command to paste: bare where that is safe, else in single quotes, which a reader can check.
fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !text.is_empty() && text.chars().all(safe) {
        return text.to_owned();
    }
    let mut word = Vec::new();
    match quote(text.as_bytes(), &mut word) {
        Ok(()) => String::from_utf8_lossy(&word).into_owned(),
        Err(_) => "''".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_to_paste_are_quoted_and_name_the_configuration() {
        let mut spec = HostSpec::named("coulombcore");
        spec.ssh = Some("ops@coulombcore".to_owned());
        spec.ssh_config = Some("/etc/my lab/config".into());
        let web = Door {
            service: "web",
            container_port: 80,
            protocol: "tcp",
            host_ip: "127.0.0.1",
            host_port: 4711,
        };
        let there = reachability(&spec, "/srv/a b/sbx-1/workspace", [web].into_iter());
        assert_eq!(
            there.ssh,
            r#"ssh -F '/etc/my lab/config' -t ops@coulombcore 'cd '\''/srv/a b/sbx-1/workspace'\'' && exec "$SHELL" -l'"#
        );
        assert_eq!(there.endpoints[0].url, "http://127.0.0.1:4711");
        assert_eq!(
            there.endpoints[0].tunnel.as_deref(),
            Some("ssh -F '/etc/my lab/config' -N -L 4711:127.0.0.1:4711 ops@coulombcore")
        );
    }
}
