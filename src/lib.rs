//! sandboxer: a sandbox establishment service with a terminal operator console.
//!
//! A *profile* (a versioned description) is bound to an *extension* (a backend adapter). `create` makes a sandbox on a
//! *host*, confirms that it is reachable, and reports what happened; later verbs remove it again. The floors, from
//! bottom to top; an import goes down or sideways, never up, and never round in a circle (`tests/it/architecture` checks it).
//! The words are those of `docs/glossary.md`.
//!
//! [`domain`] has the nouns and rules: ids, profiles, hosts, the records of sandboxes, snapshots, patches and operations with
//! the moves they may make, events, the one [`domain::error::Error`], and the contracts of extensions
//! ([`domain::extension`]) and archives ([`domain::archive`]). No I/O, no clock: time comes in as an argument.
//!
//! [`transport`] runs something somewhere: on this machine or over SSH, a small command, a stream, or a tree of files. It knows
//! hosts, not sandboxes. A command is arguments or a script that is compiled in, under a watchdog that ends it when this
//! side is gone.
//!
//! [`extensions`] make sandboxes: `compose_ssh` a compose stack, `vm_packer` a workspace on a prepared machine; `workspace` is
//! what all of them have on a host, archives included. They return handles, report progress, and write no state.
//!
//! [`store`] keeps what survives: traits with compare-and-set, the files of a data directory that implement them, locks across
//! processes, and the catalogue of profiles and manifests.
//!
//! [`manager`] has the verbs, over traits only. A verb is a free function in the room of its noun (sandboxes, snapshots, patches,
//! hosts, upkeep). One that takes time works on an operation, an object that holds its lock, its record and its end; every
//! write goes through the journal, with the events it causes. [`manager::SandboxManager`] has a line for each.
//!
//! [`client`] is the one door for every face: a [`client::Request`] starts an operation, `wait` answers how it ended, the rest
//! are queries and streams. [`client::problem`] is the one table from an error's code to an exit status.
//!
//! `present` turns a record into rows and words, once for every face: tables, documents, sentences, signs.
//!
//! [`cli`] and [`tui`] are the faces. The commands are a clap tree and a file for each noun, and print a table or JSON. The
//! dashboard is a model, a pure update, effects that call the client, and a view.
//!
//! [`config`] reads the settings; [`app`] is the one place that puts concrete parts together. `failpoint` (named points at
//! which tests stop a process) and [`log`] are open to everyone.

pub mod app;
pub mod cli;
pub mod client;
pub mod config;
pub mod domain;
pub mod extensions;
pub(crate) mod failpoint;
pub mod log;
pub mod manager;
pub(crate) mod present;
pub mod store;
pub mod transport;
pub mod tui;
pub(crate) mod yaml;
