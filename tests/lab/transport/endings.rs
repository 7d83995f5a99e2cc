//! Nothing runs on when nobody waits for it.

use std::fs;
use std::time::Duration;

use sandboxer::domain::error::Code;
use sandboxer::domain::name::HostName;
use sandboxer::transport::pool::PERSIST;
use sandboxer::transport::{Command, Source, Transports};

use crate::transport::bench::{
    Bench, GONE, HOST, SOON, another_process, another_process_that, processes, signal, sleeps,
    until,
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn cancelled_and_late_commands_leave_no_process() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, base) in [(&ssh, 312), (&local, 313)] {
        let naps: Vec<String> = (1..=5).map(|n| format!("{base}.00{n}")).collect();
        let short = Duration::from_secs(1);
        let late = way.run(&Command::script("sleep $1").arg(&naps[0]), short).await.unwrap_err();
        assert_eq!(late.code, Code::Timeout);
        let late = way
            .stream(&Command::new("sleep").arg(&naps[1]), short, &mut |_, _| {})
            .await
            .unwrap_err();
        assert_eq!(late.code, Code::Timeout);
        // Dropped, and deaf to TERM.
        let stubborn = Command::script("trap '' TERM; sleep $1").arg(&naps[2]);
        let mut sink = |_: Source, _: &[u8]| {};
        tokio::select! {
            ended = way.stream(&stubborn, SOON, &mut sink) => panic!("{ended:?}"),
            runs = until(SOON, || sleeps(&naps[2])) => assert!(runs),
        }
        let fed = Command::script("trap '' TERM; cat >/dev/null; sleep $1").arg(&naps[3]);
        assert!(tokio::time::timeout(short, way.feed(&fed, &mut &b"x"[..], SOON)).await.is_err());
        if !way.spec().name.is_local() {
            // A process group of its own, which only the session betrays.
            let hidden = Command::script("timeout 320 sleep $1").arg(&naps[4]);
            assert_eq!(way.run(&hidden, short).await.unwrap_err().code, Code::Timeout);
        }
        assert!(until(GONE, || naps.iter().all(|nap| !sleeps(nap))).await);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_normal_end_leaves_nothing_behind() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let command = Command::script("echo $$");
    let outputs = [
        way.stream(&command, SOON, &mut |_, _| {}).await.unwrap(),
        way.feed(&command, &mut &b""[..], SOON).await.unwrap(),
        way.run(&command, SOON).await.unwrap(),
    ];
    let shells = outputs.map(|output| output.text().trim().to_owned());
    pool.close().await;
    // Each shell led a session; nothing of it is left.
    let left = || {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let sessions =
            stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(3).map(str::to_owned));
        sessions.filter(|id| shells.contains(id)).count()
    };
    assert!(until(GONE, || left() == 0).await, "{shells:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_killed_console_leaves_no_process() {
    let bench = Bench::new();
    bench.config("");
    for (host, nap) in [(HOST, "314.001"), ("local", "314.002")] {
        let mut console = another_process(&bench, host, nap);
        assert!(
            until(SOON, || processes(|line| line.trim_end() == format!("sleep {nap}")).len() == 2)
                .await
        );
        console.kill().unwrap();
        console.wait().unwrap();
        assert!(until(GONE, || !sleeps(nap)).await);
    }
    let mut console = another_process(&bench, HOST, "314.003");
    assert!(until(SOON, || sleeps("314.003")).await);
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(GONE, || !sleeps("314.003")).await, "the shared connection was killed");
    assert!(!console.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_console_that_is_killed_while_it_sends_or_watches_leaves_no_process() {
    let bench = Bench::new();
    bench.config("");
    for (host, what, nap) in [
        (HOST, "feeds", "315.001"),
        ("local", "feeds", "315.002"),
        (HOST, "attends", "315.003"),
        ("local", "attends", "315.004"),
    ] {
        let mut console = another_process_that(&bench, host, what, nap);
        assert!(until(SOON, || sleeps(nap)).await, "{host} {what}");
        console.kill().unwrap();
        console.wait().unwrap();
        assert!(until(GONE, || !sleeps(nap)).await, "{host} {what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_copy_that_stands_still_ends_with_its_console() {
    let bench = Bench::new();
    bench.config("");
    let (source, dest) = (bench.dir.path().join("source"), bench.dir.path().join("315.005"));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&dest).unwrap();
    let noise: Vec<u8> =
        (0..300_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(source.join("large"), noise).unwrap();
    let mut console = another_process_that(&bench, HOST, "copies", "315.005");
    let dest = dest.to_string_lossy().into_owned();
    // Others copy at the same time: to stop theirs would be no favour to them.
    let ours = |pid: &i32| {
        fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|folder| folder.to_string_lossy() == dest)
    };
    let servers = || {
        processes(|line| {
            line.contains("rsync") && line.contains("--server") && !line.contains("ssh -F")
        })
    };
    let there = || servers().into_iter().filter(ours).collect::<std::collections::BTreeSet<_>>();
    let here = || {
        processes(|line| {
            line.contains("rsync") && line.contains(&dest) && !line.contains("--server")
        })
    };
    let receiving = || fs::read_dir(&dest).unwrap().count() > 0;
    assert!(until(SOON, || !here().is_empty() && receiving()).await);
    let stopped = there();
    assert!(!stopped.is_empty(), "{:?}", servers());
    for pid in &stopped {
        signal("-STOP", *pid);
    }
    console.kill().unwrap();
    console.wait().unwrap();
    let gone = until(GONE, || here().is_empty()).await;
    for pid in &stopped {
        signal("-CONT", *pid);
    }
    assert!(gone, "the local rsync and its ssh: {:?}", here());
    assert!(until(GONE, || there().intersection(&stopped).next().is_none()).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn no_master_and_no_socket_outlives_a_killed_console_by_90_seconds() {
    // A connection stays for less than `PERSIST` here, and the limit is shorter by as much.
    let persist = Duration::from_secs(3);
    let limit = Duration::from_secs(90).saturating_sub(PERSIST) + persist;
    let bench = Bench::persisting(persist);
    bench.config("");
    let mut work = another_process(&bench, HOST, "315.006");
    let mut watch = another_process_that(&bench, HOST, "attends", "315.007");
    assert!(until(SOON, || sleeps("315.006") && sleeps("315.007")).await);
    assert_eq!(bench.masters().len(), 2);
    for console in [&mut work, &mut watch] {
        console.kill().unwrap();
        console.wait().unwrap();
    }
    assert!(until(limit, || bench.masters().is_empty() && bench.sockets() == 0).await);
    let logs = fs::read_dir(bench.control()).unwrap().filter_map(Result::ok);
    assert_eq!(
        logs.filter(|entry| entry.path().extension().is_some_and(|end| end == "log")).count(),
        0
    );
}
