//! The transport against real sshd: `tests/lab/up` first, then `cargo test --test lab_transport -- --ignored`.

// A test's panic is its verdict.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod commands;
mod connection;
mod endings;

use std::path::PathBuf;

use sandboxer::domain::name::HostName;
use sandboxer::transport::{Command, Source, Transports};

use crate::bench::{SOON, pool};

/// Not a test of its own: what some tests start as another process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn as_another_process() {
    let (Some(dir), Some(nap)) = (std::env::var_os("SBX_BENCH"), std::env::var_os("SBX_NAP")) else { return };
    let dir = PathBuf::from(dir);
    let pool = pool(&dir.join("config"), &dir.join("c"));
    let host = HostName::new(std::env::var("SBX_HOST").unwrap());
    let way = pool.open(&host).await.unwrap();
    let (first, second) = (Command::script("trap '' TERM; sleep $1").arg(&nap), Command::new("sleep").arg(&nap));
    let mut sink = |_: Source, _: &[u8]| {};
    let (ran, streamed) = tokio::join!(way.run(&first, SOON), way.stream(&second, SOON, &mut sink));
    assert!(ran.unwrap().ok() && streamed.unwrap().ok());
    pool.close().await;
}
