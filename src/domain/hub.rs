//! State Hub: who hears of every event, how it is asked, and how far it has heard.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::Time;
use crate::domain::error::{Code, Error};
use crate::domain::event::Event;
use crate::domain::name::OwnerId;
use crate::domain::text::clean_line;
use crate::domain::words::string_enum;

/// Longest text of a hub that is kept, in columns.
const TEXT: usize = 300;

/// Prefix of an event's kind, as a `CloudEvents` type.
const TYPE_PREFIX: &str = "dev.coulomb.sandboxer.";

string_enum! {
    /// Form of what a State Hub gets.
    pub enum HubFormat {
        /// `CloudEvents` 1.0.
        CloudEvents = "cloudevents",
        /// The event as it is stored.
        Plain = "plain",
    }
}

impl HubFormat {
    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            Self::Plain => "application/json",
            Self::CloudEvents | Self::Other(_) => "application/cloudevents+json; charset=utf-8",
        }
    }

    /// Message of an event, as JSON.
    ///
    /// A `CloudEvents` attribute of our own is a string of small letters: `actor`, and `sandboxseq`, the event's place in its
    /// sandbox's order.
    pub fn message(&self, event: &Event, owner: &OwnerId) -> Result<Vec<u8>, Error> {
        let written = match self {
            Self::Plain => serde_json::to_vec(event),
            Self::CloudEvents | Self::Other(_) => serde_json::to_vec(&cloud_event(event, owner)),
        };
        written
            .map_err(|error| Error::internal("an event cannot be written as JSON").because(error))
    }
}

fn cloud_event(event: &Event, owner: &OwnerId) -> Map<String, Value> {
    let mut message = Map::new();
    let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
    put("specversion", "1.0".into());
    put("id", event.id.as_str().into());
    put("source", format!("sandboxer/{owner}").into());
    put("type", format!("{TYPE_PREFIX}{}", event.kind).into());
    if let Some(sandbox) = &event.sandbox_id {
        put("subject", sandbox.as_str().into());
    }
    put("time", event.time.to_string().into());
    put("sequence", event.seq.to_string().into());
    if let Some(number) = event.sandbox_seq {
        put("sandboxseq", number.to_string().into());
    }
    put("actor", event.actor.to_string().into());
    if !event.data.is_null() {
        put("datacontenttype", "application/json".into());
        put("data", event.data.clone());
    }
    message
}

/// Reply of a hub to one event.
#[derive(Debug, Clone, PartialEq)]
pub enum HubReply {
    /// Answer by HTTP.
    Answered {
        status: u16,
        /// Header `Retry-After`, as it is written.
        retry_after: Option<String>,
        /// Beginning of its body, without what is secret.
        text: String,
    },
    /// No answer in time.
    TimedOut(String),
    /// No answer: why.
    Unreachable(String),
    /// Nothing was sent: this process lacks what it takes.
    NotSent(Error),
}

/// Way to a State Hub.
#[async_trait]
pub trait HubEndpoint: Send + Sync {
    /// Address for people, without what may be secret in it.
    fn address(&self) -> &str;

    /// Facts that an operator should know of the way: a token that travels in clear text.
    ///
    /// Errors: what this process lacks to ask it, such as its token.
    async fn check(&self) -> Result<Vec<String>, Error>;

    /// Posts a message, and waits for the answer at most so long. A caller that goes away does not learn whether it arrived.
    async fn post(&self, message: Vec<u8>, media_type: &'static str, limit: Duration) -> HubReply;
}

/// Events that a failure holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// Events of the same sandbox alone.
    Sandbox,
    /// All events: the hub itself does not work.
    Hub,
}

/// Failure of a try: it is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct HubFailure {
    /// Events that it holds back.
    pub scope: FailureScope,
    pub error: Error,
    /// Time for which the hub wants not to be asked.
    pub retry_after: Option<Duration>,
}

/// Judgement of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Receipt {
    /// The hub has the event.
    Taken,
    /// The hub will never have it: the status, and why.
    Refused(u16, String),
    /// Event is tried again.
    Failed(Box<HubFailure>),
    /// Nothing was sent, and no try counts.
    NotSent(Box<Error>),
}

impl Receipt {
    /// Judges a reply by the contract (section 8): 2xx has it; a 4xx other than 408, 425 and 429 refuses it; all else is tried
    /// again.
    ///
    /// Rule of the scope. 500 and its like, 408 and 425 may be about this event. What tells that nobody is there to judge any
    /// (429, 502 to 504, a redirect, no answer) is about the hub.
    pub fn of(reply: HubReply, now: Time) -> Self {
        let failed = |scope, error, retry_after| {
            Self::Failed(Box::new(HubFailure { scope, error, retry_after }))
        };
        match reply {
            HubReply::NotSent(error) => Self::NotSent(Box::new(error)),
            HubReply::TimedOut(why) => {
                let error = Error::new(Code::Timeout, "the State Hub gave no answer in time");
                failed(FailureScope::Hub, error.because(clean_line(&why, TEXT)), None)
            }
            HubReply::Unreachable(why) => {
                let error = Error::new(Code::ServerUnreachable, "the State Hub did not answer");
                failed(FailureScope::Hub, error.because(clean_line(&why, TEXT)), None)
            }
            HubReply::Answered { status: 200..=299, .. } => Self::Taken,
            HubReply::Answered { status, text, retry_after } => {
                let words = words(status, &text);
                let (scope, code) = match status {
                    408 | 425 => (FailureScope::Sandbox, Code::OperationFailed),
                    429 => (FailureScope::Hub, Code::Overloaded),
                    400..=499 => return Self::Refused(status, words),
                    502..=504 => (FailureScope::Hub, Code::OperationFailed),
                    500..=599 => (FailureScope::Sandbox, Code::OperationFailed),
                    _ => (FailureScope::Hub, Code::OperationFailed),
                };
                let mut error = Error::new(code, words).retryable(true).detail("status", status);
                if (300..=399).contains(&status) {
                    error = error.hint(
                        "a redirect is not followed, since the token would go along; set state_hub.url to where it leads",
                    );
                }
                let wait = retry_after.and_then(|text| retry_after_of(&text, now));
                failed(scope, error, wait)
            }
        }
    }
}

/// `the State Hub answered 400: unknown kind`.
fn words(status: u16, text: &str) -> String {
    let text = clean_line(text.trim(), TEXT);
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    format!("the State Hub answered {status}{said}")
}

/// Wait that a header `Retry-After` asks for: seconds, or a date.
fn retry_after_of(text: &str, now: Time) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    date.parse_timestamp(text).ok().map(|then| Time::new(then).since(now))
}

/// Backlog of a State Hub that is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HubBacklog {
    /// Events that it has not taken yet.
    pub waiting: u64,
    /// When the oldest of them happened; null where none waits.
    pub oldest_at: Option<Time>,
    /// Events that it refused for good, or that left the log before it took them; in the dead letter.
    pub dead: u64,
    /// When it is tried again; null where no backoff runs.
    pub next_try_at: Option<Time>,
    /// Error of the last failed try.
    pub last_error: Option<String>,
}

/// Report of a delivery.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlushReport {
    /// Events that the hub took.
    pub delivered: u64,
    /// Events that went to the dead letter meanwhile.
    pub dead: u64,
    /// Backlog afterwards.
    pub backlog: HubBacklog,
    /// Why not all were delivered.
    pub error: Option<Error>,
}

#[cfg(test)]
mod tests;
