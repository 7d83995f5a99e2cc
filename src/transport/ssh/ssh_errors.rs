//! ssh's words become a [`Error`] here and nowhere else. They are read in the C locale, at log level ERROR.

use std::path::PathBuf;

use crate::domain::error::{Code, Error};
use crate::domain::host::HostSpec;

/// Configuration of ssh for a target (`ssh -G`), as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResolvedConfig {
    /// The name or address it connects to.
    pub(crate) hostname: String,
    pub(crate) port: String,
    /// The name its key is kept under, if that is another.
    pub(crate) host_key_alias: Option<String>,
}

impl ResolvedConfig {
    /// Reads the output of `ssh -G`.
    pub(crate) fn parse(text: &str) -> Self {
        let value = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
                .map(str::to_owned)
        };
        Self {
            hostname: value("hostname").unwrap_or_default(),
            port: value("port").unwrap_or_default(),
            host_key_alias: value("hostkeyalias"),
        }
    }

    /// The name under which known-hosts files have its key.
    fn key_name(&self) -> String {
        match &self.host_key_alias {
            Some(alias) => alias.clone(),
            None if self.port.is_empty() || self.port == "22" => self.hostname.clone(),
            None => format!("[{}]:{}", self.hostname, self.port),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Peer<'a> {
    pub(crate) spec: &'a HostSpec,
    /// Name with which ssh is called.
    pub(crate) target: &'a str,
    /// Passed as `-F`.
    pub(crate) config: Option<&'a PathBuf>,
    pub(crate) resolved: &'a ResolvedConfig,
}

/// Why a connection could not be made, from what ssh wrote about it.
pub(crate) fn classify(words: &str, peer: &Peer<'_>) -> Error {
    let host = &peer.spec.name;
    let has = |text: &str| words.contains(text);
    let error = if has("REMOTE HOST IDENTIFICATION HAS CHANGED") || has("REVOKED HOST KEY DETECTED")
    {
        Error::new(
            Code::HostChanged,
            format!("the SSH host key of {host} is not the one that is known"),
        )
        .hint(changed_hint(words, peer))
    } else if has("Host key verification failed") || has("host key is known for") {
        let hint = format!("look at its key and accept it once: {}", accept_line(peer));
        unreachable(host.as_str(), "unknown_host_key", "is not known by its SSH host key")
            .retryable(false)
            .hint(hint)
    } else if has("Permission denied (") || has("Too many authentication failures") {
        let hint =
            peer.spec.login_hint.clone().unwrap_or_else(|| format!("try: {}", by_hand(peer, "")));
        unreachable(host.as_str(), "credentials", "refuses our credentials")
            .retryable(false)
            .hint(hint)
    } else if has("Could not resolve hostname") {
        unreachable(host.as_str(), "resolve", "cannot be found: its name does not resolve").hint(
            format!(
                "check the name, or say under hosts.{host} of the configuration how ssh reaches it"
            ),
        )
    } else if has("Connection refused") {
        unreachable(host.as_str(), "refused", "refuses the connection")
            .hint("is sshd running there, and on that port?")
    } else if has("timed out") || has("Timeout, server") {
        unreachable(host.as_str(), "timeout", "does not answer")
            .hint(format!("is it up, and reachable from here? try: {}", by_hand(peer, "")))
    } else if has("configuration option")
        || has("Can't open user config file")
        || has("Bad owner or permissions")
    {
        unreachable(host.as_str(), "other", "has an SSH configuration that ssh refuses")
            .retryable(false)
    } else {
        unreachable(host.as_str(), "other", "cannot be reached")
            .hint(format!("try: {}", by_hand(peer, "")))
    };
    let words = words.trim();
    let error = error.detail("host", host.as_str());
    if words.is_empty() { error } else { error.because(words.to_owned()) }
}

/// Whether the server dropped the connection before it looked at us, as it does when many arrive at once
/// (`MaxStartups`): the same attempt may succeed a moment later.
pub(crate) fn dropped_early(words: &str) -> bool {
    let early = [
        "kex_exchange_identification: ",
        "ssh_exchange_identification: ",
        "Connection closed by",
        "Connection reset by",
    ];
    let not_that = [
        "refused",
        "timed out",
        "Could not resolve",
        "Permission denied",
        "Host key verification",
        "open failed",
    ];
    early.iter().any(|text| words.contains(text))
        && !not_that.iter().any(|text| words.contains(text))
}

/// Error of a connection, with the kind of `details.kind`.
pub(crate) fn unreachable(host: &str, kind: &str, what: &str) -> Error {
    Error::new(Code::HostUnreachable, format!("host {host} {what}"))
        .detail("kind", kind)
        .detail("host", host)
}

pub(crate) fn no_ssh(error: std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Error::new(Code::MissingDependency, "there is no ssh program on this machine")
            .hint("install the OpenSSH client")
            .because(error);
    }
    Error::new(Code::OperationFailed, "ssh could not be started").because(error)
}

fn changed_hint(words: &str, peer: &Peer<'_>) -> String {
    let file = words.lines().find_map(|line| {
        let (_, place) = line.trim().strip_prefix("Offending ")?.split_once(" in ")?;
        Some(place.rsplit_once(':')?.0.to_owned())
    });
    let file = file.map(|file| format!(" -f {}", word(&file))).unwrap_or_default();
    let line = format!("ssh-keygen -R {}{file}", word(&peer.resolved.key_name()));
    format!(
        "somebody may be listening in: ask the host's keeper whether its key was changed; if so: {line} && {}",
        accept_line(peer)
    )
}

/// The line that shows an unknown key and asks, also where the configuration says never to ask.
fn accept_line(peer: &Peer<'_>) -> String {
    by_hand(peer, "-o StrictHostKeyChecking=ask ")
}

fn by_hand(peer: &Peer<'_>, options: &str) -> String {
    let config = peer
        .config
        .map(|path| format!("-F {} ", word(&path.to_string_lossy())))
        .unwrap_or_default();
    let guard = if peer.target.starts_with('-') { "-- " } else { "" };
    format!("ssh {config}{options}{guard}{} true", word(peer.target))
}

/// A word to paste into a shell.
fn word(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(words: &str) -> (String, String, bool) {
        let mut spec = HostSpec::named("lab");
        spec.login_hint = Some("run ops-warden renew".to_owned());
        let resolved = ResolvedConfig {
            hostname: "10.0.0.7".into(),
            port: "2222".into(),
            host_key_alias: None,
        };
        let config = PathBuf::from("/home/me/lab config");
        let peer =
            Peer { spec: &spec, target: "ops@lab", config: Some(&config), resolved: &resolved };
        let error = classify(words, &peer);
        let kind = error
            .details
            .get("kind")
            .and_then(|kind| kind.as_str())
            .unwrap_or(error.code.as_str())
            .to_owned();
        (kind, error.hint.clone().unwrap_or_default(), error.retryable)
    }

    #[test]
    fn every_text_of_ssh_has_its_kind() {
        for (words, kind, retryable) in [
            ("ssh: connect to host 127.0.0.1 port 1: Connection refused\r\n", "refused", true),
            (
                "ssh: Could not resolve hostname nosuch.invalid: Name or service not known\r\n",
                "resolve",
                true,
            ),
            ("ssh: connect to host 10.1.1.1 port 22: Connection timed out\r\n", "timeout", true),
            ("ssh: connect to host 10.1.1.1 port 22: Operation timed out\r\n", "timeout", true),
            (
                "Connection timed out during banner exchange\r\nConnection to 127.0.0.1 port 9 timed out\r\n",
                "timeout",
                true,
            ),
            ("me@10.0.0.7: Permission denied (publickey).\r\n", "credentials", false),
            (
                "Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures\r\n",
                "credentials",
                false,
            ),
            ("Host key verification failed.\r\n", "unknown_host_key", false),
            (
                "No ED25519 host key is known for [10.0.0.7]:2222 and you have requested strict checking.\r\nHost key verification failed.\r\n",
                "unknown_host_key",
                false,
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nOffending ED25519 key in /home/me/known hosts:3\r\nHost key verification failed.\r\n",
                "host_changed",
                false,
            ),
            ("/x: line 1: Bad configuration option: nonsense\r\n", "other", false),
            ("kex_exchange_identification: Connection closed by remote host\r\n", "other", true),
            (
                "channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding failed\r\nkex_exchange_identification: Connection closed by remote host\r\n",
                "refused",
                true,
            ),
            ("ssh: connect to host 10.1.1.1 port 22: No route to host\r\n", "other", true),
            ("", "other", true),
        ] {
            let (got, _, again) = judged(words);
            assert_eq!((got.as_str(), again), (kind, retryable), "{words}");
        }
    }

    #[test]
    fn hints_are_lines_to_paste() {
        assert_eq!(judged("a@b: Permission denied (publickey).").1, "run ops-warden renew");
        let unknown = judged("Host key verification failed.").1;
        assert!(
            unknown.ends_with(
                "ssh -F '/home/me/lab config' -o StrictHostKeyChecking=ask ops@lab true"
            ),
            "{unknown}"
        );
        let changed =
            judged("REMOTE HOST IDENTIFICATION HAS CHANGED!\r\nOffending ED25519 key in /home/me/known hosts:3\r\n").1;
        assert!(
            changed.contains("ssh-keygen -R '[10.0.0.7]:2222' -f '/home/me/known hosts'"),
            "{changed}"
        );
    }

    #[test]
    fn only_a_busy_server_is_tried_again() {
        assert!(dropped_early(
            "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.7 port 22\r\n"
        ));
        assert!(dropped_early("kex_exchange_identification: read: Connection reset by peer\r\n"));
        assert!(!dropped_early("ssh: connect to host 10.0.0.7 port 22: Connection refused\r\n"));
        assert!(!dropped_early(
            "channel 0: open failed: connect failed: x\r\nkex_exchange_identification: Connection closed by remote host\r\n"
        ));
    }

    #[test]
    fn the_resolved_target_is_read() {
        let resolved =
            ResolvedConfig::parse("host lab\nhostname 10.0.0.7\nport 22\nhostkeyalias lab-key\n");
        assert_eq!(resolved.key_name(), "lab-key");
        assert_eq!(ResolvedConfig::parse("hostname h\nport 22\n").key_name(), "h");
    }
}
