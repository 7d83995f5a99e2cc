//! A State Hub of the tests: a real HTTP server that answers as it is told, and writes down what it was sent.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// Certificate of whoever signed the hub's. Keys of the tests protect nothing.
pub(super) const AUTHORITY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hub/tls/authority.pem");

/// What the hub does with a message.
#[derive(Clone)]
pub(super) enum Act {
    /// Answers this status, without a body.
    Status(u16),
    /// Answers exactly this.
    Raw(String),
    /// As [`Self::Status`], after so long.
    After(Duration, u16),
    /// Closes without a word.
    Close,
    /// Keeps the connection and says nothing, until the hub is let go.
    Hold,
}

impl Act {
    /// An answer with a body, and with headers such as `Retry-After: 40`.
    pub(super) fn answer(status: u16, headers: &str, body: &str) -> Self {
        let headers: String = headers.lines().flat_map(|line| [line, "\r\n"]).collect();
        let length = body.len();
        Self::Raw(format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n{body}"))
    }
}

/// A message as it came.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) path: String,
    /// By name in small letters.
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Value,
}

impl Message {
    pub(super) fn id(&self) -> String {
        self.body["id"].as_str().unwrap_or_default().to_owned()
    }

    /// The number of the event.
    pub(super) fn sequence(&self) -> u64 {
        self.body["sequence"].as_str().unwrap().parse().unwrap()
    }

    /// Its sandbox; empty for none.
    pub(super) fn subject(&self) -> String {
        self.body["subject"].as_str().unwrap_or_default().to_owned()
    }
}

/// How the hub answers: the message, and how many came before it.
type Rule = Box<dyn Fn(&Message, usize) -> Act + Send + Sync>;

struct Shared {
    rule: Mutex<Rule>,
    messages: Mutex<Vec<Message>>,
    /// Those that were answered with 2xx.
    taken: Mutex<Vec<Message>>,
    streams: Mutex<Vec<TcpStream>>,
    holding: Mutex<usize>,
    is_stopped: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

/// The hub. Dropped, it is down.
pub(super) struct TestHub {
    address: SocketAddr,
    shared: Arc<Shared>,
    listens: Option<std::thread::JoinHandle<()>>,
}

impl TestHub {
    /// A hub that takes everything.
    pub(super) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), None)
    }

    /// As [`Self::start`], behind TLS, at `localhost`.
    pub(super) fn start_with_tls() -> Self {
        let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/hub.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/hub.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Self::start_at("127.0.0.1:0".parse().unwrap(), Some(Arc::new(config)))
    }

    fn start_at(address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let shared = Arc::new(Shared {
            rule: Mutex::new(Box::new(|_, _| Act::Status(204))),
            messages: Mutex::default(),
            taken: Mutex::default(),
            streams: Mutex::default(),
            holding: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            tls,
        });
        let address = listener.local_addr().unwrap();
        let kept = Arc::clone(&shared);
        let listens = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if kept.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                kept.streams.lock().unwrap().push(stream.try_clone().unwrap());
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || kept.serve(stream));
            }
        });
        Self { address, shared, listens: Some(listens) }
    }

    /// Ends it, and every connection.
    pub(super) fn stop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(listens) = self.listens.take() {
            listens.join().unwrap();
        }
        self.close_all();
    }

    fn close_all(&self) {
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Another one at the same address, which knows nothing of what came before.
    pub(super) fn restarted(mut self) -> Self {
        self.stop();
        Self::start_at(self.address, self.shared.tls.clone())
    }

    pub(super) fn url(&self) -> String {
        match self.shared.tls {
            Some(_) => format!("https://localhost:{}/events", self.address.port()),
            None => format!("http://{}/events", self.address),
        }
    }

    /// From now on it answers by this rule.
    pub(super) fn answers(&self, rule: impl Fn(&Message, usize) -> Act + Send + Sync + 'static) {
        *self.shared.rule.lock().unwrap() = Box::new(rule);
    }

    /// Everything that came, in order.
    pub(super) fn messages(&self) -> Vec<Message> {
        self.shared.messages.lock().unwrap().clone()
    }

    /// What it answered with 2xx, in order.
    pub(super) fn taken(&self) -> Vec<Message> {
        self.shared.taken.lock().unwrap().clone()
    }

    /// Connections that it holds without a word right now.
    pub(super) fn holding(&self) -> usize {
        *self.shared.holding.lock().unwrap()
    }
}

impl Drop for TestHub {
    fn drop(&mut self) {
        self.stop();
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let stream: Box<dyn Stream> = match &self.tls {
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).unwrap();
                Box::new(StreamOwned::new(connection, stream))
            }
            None => Box::new(stream),
        };
        let mut stream = BufReader::new(stream);
        while let Some(message) = read(&mut stream) {
            if !self.answer(&mut stream, message) {
                break;
            }
        }
    }

    /// Whether the connection goes on.
    fn answer(&self, stream: &mut BufReader<Box<dyn Stream>>, message: Message) -> bool {
        let before = {
            let mut messages = self.messages.lock().unwrap();
            messages.push(message.clone());
            messages.len() - 1
        };
        let act = (self.rule.lock().unwrap())(&message, before);
        let raw = match act {
            Act::Status(status) => status_line(status),
            Act::After(wait, status) => {
                std::thread::sleep(wait);
                status_line(status)
            }
            Act::Raw(raw) => raw,
            Act::Close => return false,
            Act::Hold => {
                *self.holding.lock().unwrap() += 1;
                // Until the other end, or the hub's own, closes it.
                let _ = stream.read(&mut [0]);
                *self.holding.lock().unwrap() -= 1;
                return false;
            }
        };
        if raw.starts_with("HTTP/1.1 2") {
            self.taken.lock().unwrap().push(message);
        }
        let whole = raw.contains("\r\n\r\n") && !raw.ends_with("cut");
        stream.get_mut().write_all(raw.as_bytes()).is_ok()
            && stream.get_mut().flush().is_ok()
            && whole
    }
}

fn status_line(status: u16) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
}

/// The next message of a connection; none where it was closed.
fn read(stream: &mut BufReader<Box<dyn Stream>>) -> Option<Message> {
    let mut line = String::new();
    if stream.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("POST"), "{line}");
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some(Message { path, headers, body: serde_json::from_slice(&body).unwrap() })
}
