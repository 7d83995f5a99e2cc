//! sandboxer: a sandbox establishment service with a terminal operator console.
//!
//! A *profile* (a versioned recipe) is bound to an *extension* (a backend adapter). `create` makes a sandbox on a
//! *host*, confirms that it is reachable, and reports what happened; later verbs remove it again. The floors, from
//! bottom to top (an import goes down or sideways, never up; `tests/it/architecture` checks it):
//!
//! * [`domain`]: nouns and rules; no I/O, no clock.
//! * [`transport`]: how to run something somewhere; knows hosts, not sandboxes.
//! * [`extensions`]: how to make a sandbox; return handles, write no state.
//! * [`store`]: what survives; traits, and the files that keep them.
//! * [`manager`]: the verbs, over traits only.
//! * [`client`]: the one door for every face.
//! * [`cli`] and [`tui`]: the faces: one-shot commands, and the dashboard.
//! * [`config`] and [`app`]: settings, and the one place that puts concrete parts together.

pub mod app;
pub mod cli;
pub mod client;
pub mod config;
pub mod domain;
pub mod extensions;
pub mod failpoint;
pub mod log;
pub mod manager;
pub mod store;
pub mod transport;
pub mod tui;
