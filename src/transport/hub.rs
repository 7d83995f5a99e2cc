//! HTTP way to a State Hub: TLS is verified, a redirect is not followed, an answer is bounded in time and size, and the token is
//! sent and nothing else.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use ureq::Agent;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::domain::error::{Code, Error};
use crate::domain::hub::{HubEndpoint, HubReply};
use crate::domain::secret::Secret;

/// Time for a connection, TLS included.
const CONNECT: Duration = Duration::from_secs(5);

/// Time for the body of an answer, whose status is known by then.
const BODY: Duration = Duration::from_secs(1);

/// Bytes of an answer's body that are read.
const BODY_BYTES: u64 = 4096;

const TOKEN_BYTES: u64 = 64 * 1024;

/// Source of the bearer token.
#[derive(Debug, Clone)]
pub enum HubToken {
    /// The hub wants none.
    None,
    /// Variable of this process: its name, and what it holds.
    Variable(String, Option<Secret>),
    /// File, read for each event: it may be written anew at any time.
    File(PathBuf),
}

/// State Hub behind HTTP.
pub struct HttpHub {
    client: Arc<HubClient>,
    address: String,
}

struct HubClient {
    url: String,
    token: HubToken,
    /// Made when first used: reading this machine's certificates costs more than most commands.
    agent: OnceLock<Agent>,
}

impl HttpHub {
    /// Hub at this URL (`http://` or `https://`, without a user). Connects to nothing.
    pub fn new(url: &str, token: HubToken) -> Self {
        let address = url.split(['?', '#']).next().unwrap_or_default().to_owned();
        let client = HubClient { url: url.to_owned(), token, agent: OnceLock::new() };
        Self { client: Arc::new(client), address }
    }
}

impl HubClient {
    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let agent = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                // Only the hub itself gets the token and the events.
                .proxy(None)
                .tls_config(tls(&self.url))
                .timeout_connect(Some(CONNECT))
                .timeout_recv_body(Some(BODY))
                .max_response_header_size(64 * 1024)
                .user_agent(concat!("sandboxer/", env!("CARGO_PKG_VERSION")))
                .build();
            Agent::new_with_config(agent)
        })
    }

    fn post(&self, message: &[u8], media_type: &'static str, limit: Duration) -> HubReply {
        let token = match self.token.read() {
            Ok(token) => token,
            Err(error) => return HubReply::NotSent(error),
        };
        let mut request = self
            .agent()
            .post(&self.url)
            .config()
            .timeout_global(Some(limit))
            .build()
            .header(CONTENT_TYPE, media_type);
        if let Some(token) = &token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.reveal()));
        }
        let mask = |text: String| token.as_ref().map_or(text.clone(), |token| token.masked(&text));
        let response = match request.send(message) {
            Ok(response) => response,
            Err(ureq::Error::Timeout(what)) => {
                return HubReply::TimedOut(format!("{what} took too long"));
            }
            Err(error) => return HubReply::Unreachable(mask(error.to_string())),
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        // The status stands, whatever becomes of the rest; read to its end, the connection serves the next event too.
        let mut text = Vec::new();
        let mut body = response.into_body();
        if let Err(error) = body.as_reader().take(BODY_BYTES).read_to_end(&mut text) {
            tracing::debug!(status, %error, "the body of the State Hub's answer could not be read");
        }
        let text = mask(String::from_utf8_lossy(&text).into_owned());
        HubReply::Answered { status, retry_after, text }
    }
}

/// Trust in what this machine trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` among it); where it has no certificates, Mozilla's.
fn tls(url: &str) -> TlsConfig {
    let mut config = TlsConfig::builder();
    if url.starts_with("https:") {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "certificates of this machine cannot be read");
        }
        if !found.certs.is_empty() {
            let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned());
            config = config.root_certs(RootCerts::from(certificates));
        }
    }
    config.build()
}

impl HubToken {
    fn read(&self) -> Result<Option<Secret>, Error> {
        let (token, source) = match self {
            Self::None => return Ok(None),
            Self::Variable(name, value) => {
                let missing =
                    || lacks(format!("{name} is not set, and state_hub.token_env names it"));
                (value.clone().ok_or_else(missing)?, name.clone())
            }
            Self::File(path) => (read_file(path)?, path.display().to_string()),
        };
        let is_sendable = |byte: u8| byte.is_ascii_graphic();
        if token.reveal().is_empty() || !token.reveal().bytes().all(is_sendable) {
            return Err(lacks(format!(
                "{source} holds no token: one line of printable ASCII is wanted"
            )));
        }
        Ok(Some(token))
    }

    fn remarks(&self, url: &str) -> Vec<String> {
        let mut remarks = Vec::new();
        if !matches!(self, Self::None) && is_in_clear(url) {
            remarks.push("the token travels in clear text; use https".to_owned());
        }
        if let Self::File(path) = self
            && let Ok(found) = path.metadata()
            && std::os::unix::fs::MetadataExt::mode(&found) & 0o077 != 0
        {
            remarks.push(format!("others may read {}; chmod 600", path.display()));
        }
        remarks
    }
}

fn read_file(path: &Path) -> Result<Secret, Error> {
    let failed = |error: std::io::Error| {
        lacks(format!("the token of the State Hub cannot be read from {}", path.display()))
            .because(error)
    };
    // Opening a pipe would wait for ever.
    let found = path.metadata().map_err(failed)?;
    if !found.is_file() || found.len() > TOKEN_BYTES {
        return Err(lacks(format!("{} is no file with a token", path.display())));
    }
    let text = std::fs::read(path).map_err(failed)?;
    // Bytes that are no text are no token, and none of them is said.
    Ok(Secret::new(String::from_utf8(text).unwrap_or_default().trim()))
}

fn lacks(message: String) -> Error {
    Error::new(Code::InvalidConfig, message).hint("nothing is delivered by this process without it")
}

/// Whether what is sent to a URL can be read on its way.
fn is_in_clear(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    !is_loopback && !host.eq_ignore_ascii_case("localhost")
}

#[async_trait]
impl HubEndpoint for HttpHub {
    fn address(&self) -> &str {
        &self.address
    }

    async fn check(&self) -> Result<Vec<String>, Error> {
        let client = Arc::clone(&self.client);
        let checked = tokio::task::spawn_blocking(move || {
            client.token.read().map(|_| client.token.remarks(&client.url))
        });
        checked.await.unwrap_or_else(|error| {
            Err(Error::internal("the way to the State Hub could not be checked").because(error))
        })
    }

    async fn post(&self, message: Vec<u8>, media_type: &'static str, limit: Duration) -> HubReply {
        let client = Arc::clone(&self.client);
        let posted = tokio::task::spawn_blocking(move || client.post(&message, media_type, limit));
        posted.await.unwrap_or_else(|error| {
            let error = Error::internal("an event could not be posted").because(error);
            HubReply::NotSent(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_from_its_place_and_shown_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let read = |token: &HubToken| token.read().map(|token| token.unwrap().reveal().to_owned());
        std::fs::write(&file, "s3cr3t\n").unwrap();
        let of_file = HubToken::File(file.clone());
        assert_eq!(read(&of_file).unwrap(), "s3cr3t");
        let variable = |value| HubToken::Variable("HUB".into(), value);
        assert_eq!(read(&variable(Some(Secret::new("s3cr3t")))).unwrap(), "s3cr3t");
        assert!(HubToken::None.read().unwrap().is_none());
        for (text, token) in [
            (&b"s3cr3t\nX-Other: 1"[..], &of_file),
            (b"", &of_file),
            (b"s3cr3t\xff", &of_file),
            (b"", &variable(Some(Secret::new("s3cr3t \u{7}")))),
            (b"", &variable(None)),
            (b"", &HubToken::File(folder.path().to_owned())),
            (b"", &HubToken::File(folder.path().join("absent"))),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = token.read().unwrap_err();
            assert_eq!(error.code, Code::InvalidConfig);
            assert!(!format!("{error:?} {token:?}").contains("s3cr3t"), "{error:?} {token:?}");
        }
    }

    #[test]
    fn an_operator_is_told_of_a_token_that_others_can_read() {
        let token = HubToken::Variable("HUB".into(), None);
        for (url, remarks) in [
            ("http://hub.example:8787/events", 1),
            ("http://10.0.0.1/events", 1),
            ("http://[2001:db8::1]/", 1),
            ("http://localhost.example/", 1),
            ("https://hub.example/events", 0),
            ("http://127.0.0.1:8787/events", 0),
            ("http://[::1]:8787/", 0),
            ("http://LOCALHOST/", 0),
        ] {
            assert_eq!(token.remarks(url).len(), remarks, "{url}");
            assert!(HubToken::None.remarks(url).is_empty());
        }
        let hub = HttpHub::new("https://hub.example/events?key=s3cr3t#x", HubToken::None);
        assert_eq!(hub.address(), "https://hub.example/events");
    }
}
