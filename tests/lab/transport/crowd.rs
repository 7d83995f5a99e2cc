//! More sessions than sshd gives on one connection: who is refused gets another one.

use std::fs;
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandboxer::domain::name::HostName;
use sandboxer::transport::pool::Pool;
use sandboxer::transport::transfer::{Limits, plan, send};
use sandboxer::transport::{Command, Transport, Transports};

use crate::transport::bench::{Bench, HOST, SOON, processes, signal, until};

/// Programs that hold every session of the connection.
struct Held(Vec<Child>, String);

impl Held {
    /// `MaxSessions` is 10 in the lab, as in sshd.
    async fn all_of(way: &Arc<dyn Transport>, nap: &str) -> Self {
        let shell = way.remote_shell();
        let hold = || {
            let mut program = Program::new(&shell.command[0]);
            program.args(&shell.command[1..]).arg(&shell.target).arg(format!("exec sleep {nap}"));
            program
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let taken = Self((0..12).map(|_| hold()).collect(), nap.to_owned());
        let count = || processes(|line| line.trim_end() == format!("sleep {nap}")).len();
        assert!(until(SOON, || count() >= 9).await, "{} sessions", count());
        taken
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
        // No watchdog of ours is over them.
        for pid in processes(|line| line.trim_end() == format!("sleep {}", self.1)) {
            signal("-KILL", pid);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_connection_that_others_fill_keeps_nobody_out() {
    let bench = Bench::new();
    let (first, way) = bench.open().await;
    way.run(&Command::new("true"), SOON).await.unwrap();
    let held = Held::all_of(&way, "317.001").await;

    let second = bench.pool("");
    let way = second.open(&HostName::new(HOST)).await.unwrap();
    let started = Instant::now();
    assert_eq!(way.run(&Command::script("echo in"), SOON).await.unwrap().text(), "in\n");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(bench.masters().len(), 2, "one more is enough");
    assert!(way.stream(&Command::new("true"), SOON, &mut |_, _| {}).await.unwrap().ok());

    // A program that was refused, as rsync is by a process that has had no session yet.
    let third = bench.pool("");
    let way = third.open(&HostName::new(HOST)).await.unwrap();
    let (source, dest) = (bench.dir.path().join("source"), bench.dir.path().join("dest"));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&dest).unwrap();
    fs::write(source.join("file"), "text").unwrap();
    let planned = plan(&source, &[], Limits::contract()).await.unwrap();
    send(way.as_ref(), &planned, &source, dest.to_str().unwrap(), true, &|_, _| {}).await.unwrap();
    assert_eq!(fs::read_to_string(dest.join("file")).unwrap(), "text");
    assert_eq!(bench.masters().len(), 2);
    drop(held);
    for pool in [first, second, third] {
        pool.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn those_who_hold_a_shell_do_not_wait_for_each_other() {
    let bench = Bench::new();
    bench.config("");
    // Each stands for a process that has its shell and now wants a stream: with ten sessions in all nobody could go on.
    let pools: Vec<Pool> = (0..25).map(|_| bench.pool("")).collect();
    let mut ways = Vec::new();
    for pool in &pools {
        let way = pool.open(&HostName::new(HOST)).await.unwrap();
        assert!(way.run(&Command::new("true"), SOON).await.unwrap().ok());
        ways.push(way);
    }
    let work: Vec<_> = ways
        .into_iter()
        .map(|way| {
            tokio::spawn(async move {
                let nap = Command::script("sleep 0.3");
                way.stream(&nap, Duration::from_mins(1), &mut |_, _| {}).await.unwrap().ok()
            })
        })
        .collect();
    for done in work {
        assert!(done.await.unwrap());
    }
    assert!((3..=8).contains(&bench.masters().len()), "{:?}", bench.masters());
    for pool in pools {
        pool.close().await;
    }
}
