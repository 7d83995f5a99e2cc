//! The transport against real sshd: `tests/lab/up` first, then `tests/run --test lab transport::`.

mod bench;
mod commands;
mod connection;
mod crowd;
mod endings;
mod followers;

use std::path::PathBuf;
use std::time::Duration;

use sandboxer::domain::name::HostName;
use sandboxer::domain::output::OutputSink;
use sandboxer::transport::transfer::{Limits, plan, send};
use sandboxer::transport::{Command, Source, Transports};

use crate::transport::bench::{SOON, pool};

/// Not a test of its own: what some tests start as another process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn as_another_process() {
    let (Some(dir), Some(nap)) = (std::env::var_os("SBX_BENCH"), std::env::var_os("SBX_NAP"))
    else {
        return;
    };
    let dir = PathBuf::from(dir);
    let persist = std::env::var("SBX_PERSIST").unwrap().parse().unwrap();
    let pool = pool(&dir.join("config"), &dir.join("c")).persisting(Duration::from_secs(persist));
    let host = HostName::new(std::env::var("SBX_HOST").unwrap());
    let way = pool.open(&host).await.unwrap();
    let sleeps =
        (Command::script("trap '' TERM; sleep $1").arg(&nap), Command::new("sleep").arg(&nap));
    match std::env::var("SBX_WHAT").unwrap().as_str() {
        // Deaf to TERM and to the end of its input, which does not end here.
        "feeds" => {
            let deaf =
                Command::script("trap '' TERM; cat >/dev/null & sleep $1; sleep $1").arg(&nap);
            way.feed(&deaf, &mut tokio::io::repeat(0), Duration::from_mins(2)).await.unwrap();
        }
        "copies" => {
            let (source, dest) = (dir.join("source"), dir.join(&nap));
            let plan = plan(&source, &[], Limits::contract()).await.unwrap();
            send(way.as_ref(), &plan, &source, dest.to_str().unwrap(), true, &|_, _| {})
                .await
                .unwrap();
        }
        "attends" => drop(way.attach(&sleeps.0, &mut Nobody).await.unwrap()),
        _ => {
            let mut sink = |_: Source, _: &[u8]| {};
            let (ran, streamed) =
                tokio::join!(way.run(&sleeps.0, SOON), way.stream(&sleeps.1, SOON, &mut sink));
            assert!(ran.unwrap().ok() && streamed.unwrap().ok());
        }
    }
    pool.close().await;
}

struct Nobody;

#[async_trait::async_trait]
impl OutputSink for Nobody {
    async fn take(&mut self, _: Source, _: &[u8]) -> bool {
        true
    }
}
