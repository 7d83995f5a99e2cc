//! The sections of the configuration, each with its defaults.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::hub::HubFormat;
use crate::domain::profile::{Bytes, Seconds};
use crate::domain::words::string_enum;

/// Receiver of every event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StateHub {
    /// Where events are posted: `http://` or `https://`.
    pub url: String,
    /// Variable that holds the bearer token.
    pub token_env: Option<String>,
    /// File that holds the bearer token; absolute. Without this and `token_env` there is no token.
    pub token_file: Option<PathBuf>,
    /// Format of what is posted.
    #[serde(default = "cloud_events")]
    pub format: HubFormat,
}

/// `format` where the file does not say it.
fn cloud_events() -> HubFormat {
    HubFormat::CloudEvents
}

impl StateHub {
    /// Its keys that cannot be meant, each with the reason.
    pub(super) fn validate(&self) -> Vec<(&'static str, &'static str)> {
        let url = &self.url;
        let address = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let host = address.and_then(|address| address.split(['/', '?', '#']).next());
        let mut found = Vec::new();
        if host.is_none_or(str::is_empty)
            || url.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            found.push((
                "state_hub.url",
                "'url' must begin with http:// or https:// and name a host",
            ));
        } else if host.is_some_and(|host| host.contains('@')) {
            found.push((
                "state_hub.url",
                "'url' must not have a user or password in it; a token comes by 'token_env' or 'token_file'",
            ));
        }
        if self.token_env.as_ref().is_some_and(|name| name.is_empty() || name.contains('=')) {
            found.push(("state_hub.token_env", "'token_env' is the name of a variable"));
        }
        if self.token_env.is_some() && self.token_file.is_some() {
            found.push(("state_hub.token_file", "'token_file' and 'token_env' are both given"));
        }
        found
    }
}

/// The sweep of a dashboard or server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SweepSettings {
    /// How often it judges.
    pub interval: Seconds,
    /// Whether it ends what is over; else it only shows.
    pub reap: bool,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self { interval: Seconds(5), reap: true }
    }
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServeSettings {
    /// The largest upload.
    pub max_upload: Bytes,
    /// Directories of the server's disk that inputs may name; absolute.
    pub input_roots: Vec<PathBuf>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self { max_upload: Bytes::gib(2), input_roots: Vec::new() }
    }
}

/// The dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dashboard {
    /// Its colours.
    pub theme: Theme,
    /// Actions by name, and the key each gets instead of its own. The keymap judges them.
    pub keys: BTreeMap<String, String>,
    /// How often hosts are asked.
    pub refresh: Seconds,
    /// How it calls for attention.
    pub notify: Notify,
    /// Whether times are shown in UTC, and not in this machine's zone.
    pub utc: bool,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self {
            theme: Theme::Terminal,
            keys: BTreeMap::new(),
            refresh: Seconds(2),
            notify: Notify::Bell,
            utc: false,
        }
    }
}

string_enum! {
    /// The dashboard's colours.
    pub enum Theme {
        /// The terminal's own 16 colours.
        Terminal = "terminal",
        /// For a dark background.
        Dark = "dark",
        /// For a light background.
        Light = "light",
        /// The strongest contrast.
        HighContrast = "high-contrast",
        /// No colours.
        Mono = "mono",
    }
}

string_enum! {
    /// How the dashboard calls for attention.
    pub enum Notify {
        /// The terminal's bell.
        Bell = "bell",
        /// A desktop notification, by the terminal (OSC 9).
        Osc9 = "osc9",
        /// Not at all.
        None = "none",
    }
}
