//! Connecting, sharing a connection, and losing it.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::name::HostName;
use sandboxer::transport::pool::Pool;
use sandboxer::transport::{Command, Transports};

use crate::transport::bench::{
    Bench, GONE, HOST, SOON, another_process, kind, pool, signal, sleeps, until,
};

async fn refusal(pool: &Pool) -> Error {
    match pool.open(&HostName::new(HOST)).await {
        Ok(_) => panic!("connected"),
        Err(fault) => fault,
    }
}

/// A new private key that nobody knows.
fn stranger(bench: &Bench) -> PathBuf {
    let key = bench.dir.path().join("stranger");
    let mut program = Program::new("ssh-keygen");
    program.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).stdin(Stdio::null());
    assert!(program.status().unwrap().success());
    key
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_closed_port_and_an_unknown_name_are_told_apart() {
    let bench = Bench::new();
    let started = Instant::now();
    // A port that is given to nobody, unlike one that was free a moment ago.
    let fault = refusal(&bench.pool(&format!("Host {HOST}\n Port 1\n"))).await;
    assert_eq!(
        (fault.code.clone(), kind(&fault).as_str(), fault.retryable),
        (Code::HostUnreachable, "refused", true)
    );
    assert!(fault.causes[0].contains("Connection refused"), "{fault:?}");
    assert!(started.elapsed() < Duration::from_secs(9), "{fault:?}");

    let fault = refusal(&bench.pool(&format!("Host {HOST}\n HostName nosuch.invalid\n"))).await;
    assert_eq!(kind(&fault), "resolve", "{:?}", fault.causes);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn keys_that_are_wrong_unknown_or_changed_are_told_apart() {
    let bench = Bench::new();
    let key = stranger(&bench);
    let config = bench.config("");
    let text = fs::read_to_string(&config).unwrap();
    // The lab's configuration with one of its lines replaced.
    let with = |from: &str, to: &str| {
        let lines =
            text.lines().map(|line| if line.trim_start().starts_with(from) { to } else { line });
        fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
        pool(&config, &bench.control())
    };

    let fault = refusal(&with("IdentityFile ", &format!("IdentityFile {}", key.display()))).await;
    assert_eq!(
        (kind(&fault).as_str(), fault.hint.as_deref(), fault.retryable),
        ("credentials", Some("run renew"), false)
    );
    assert!(fault.causes[0].contains("Permission denied"), "{:?}", fault.causes);

    for strict in ["StrictHostKeyChecking yes", "StrictHostKeyChecking ask"] {
        let fault = refusal(&with(
            "UserKnownHostsFile ",
            &format!("{strict}\nUserKnownHostsFile /dev/null"),
        ))
        .await;
        assert_eq!(kind(&fault), "unknown_host_key", "{:?}", fault.causes);
        let hint = fault.hint.unwrap();
        assert!(
            hint.ends_with(&format!(
                "ssh -F {} -o StrictHostKeyChecking=ask {HOST} true",
                config.display()
            )),
            "{hint}"
        );
    }

    let known = bench.dir.path().join("known");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(&known, format!("{HOST} {public}")).unwrap();
    let fault =
        refusal(&with("UserKnownHostsFile ", &format!("UserKnownHostsFile {}", known.display())))
            .await;
    assert_eq!(fault.code, Code::HostChanged, "{:?}", fault.causes);
    assert!(fault.hint.unwrap().contains(&format!("ssh-keygen -R {HOST} -f {}", known.display())));
    assert!(bench.masters().is_empty(), "no attempt leaves a process behind");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_silent_peer_is_given_up_once_for_all_who_wait() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pool = Arc::new(bench.pool(&format!("Host {HOST}\n Port {port}\n")));
    let started = Instant::now();
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { refusal(&pool).await })
        })
        .collect();
    for fault in waiting {
        let fault = fault.await.unwrap();
        assert_eq!(fault.code.clone(), Code::HostUnreachable, "{:?}", fault.causes);
        assert_eq!(kind(&fault).as_str(), "timeout", "{:?}", fault.causes);
    }
    // One after the other they would wait five times 10 s.
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());

    // Dropped half-way, the attempt leaves nothing that goes on connecting.
    let dropped =
        tokio::time::timeout(Duration::from_millis(500), pool.open(&HostName::new(HOST))).await;
    assert!(dropped.is_err());
    assert!(
        until(Duration::from_secs(8), || bench.masters().is_empty()).await,
        "it would go on for 10 s"
    );
    let left = || {
        fs::read_dir(bench.control())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let locks =
        || left().iter().all(|path| path.extension().is_some_and(|extension| extension == "lock"));
    assert!(until(SOON, locks).await, "{:?}", left());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_connection_that_is_cut_is_lost_and_made_again() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    // The shell's parent is the sshd of our own connection.
    let sshd: i32 =
        way.run(&Command::script("echo $PPID"), SOON).await.unwrap().text().trim().parse().unwrap();
    let busy = {
        let way = way.clone();
        tokio::spawn(async move { way.run(&Command::script("sleep 311.001"), SOON).await })
    };
    assert!(until(SOON, || sleeps("311.001")).await);
    signal("-KILL", sshd);
    let fault = busy.await.unwrap().unwrap_err();
    assert_eq!(fault.code.clone(), Code::HostUnreachable, "{fault:?}");
    assert_eq!(kind(&fault).as_str(), "lost", "{fault:?}");
    assert!(fault.retryable, "{fault:?}");
    assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0, "connected again");
    assert!(until(GONE, || !sleeps("311.001")).await, "what ran is ended by its watchdog");

    // A master that is killed between two commands.
    bench.kill_masters().await;
    assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0);
    bench.kill_masters().await;
    let again = pool.open(&HostName::new(HOST)).await.unwrap();
    assert!(Arc::ptr_eq(&way, &again));
    assert_eq!(again.stream(&Command::new("true"), SOON, &mut |_, _| {}).await.unwrap().status, 0);
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn processes_share_one_connection() {
    let bench = Bench::new();
    bench.config("");
    let consoles: Vec<_> = (0..4).map(|_| another_process(&bench, HOST, "1")).collect();
    for mut console in consoles {
        assert!(console.wait().unwrap().success());
    }
    assert_eq!(bench.masters().len(), 1);

    // A socket that nobody listens on any more is no obstacle.
    bench.kill_masters().await;
    assert_eq!(bench.sockets(), 1);
    assert!(another_process(&bench, HOST, "0.1").wait().unwrap().success());
    assert_eq!((bench.sockets(), bench.masters().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn another_program_uses_our_connection_or_none() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let shell = way.remote_shell();
    let ssh = || {
        let mut program = Program::new(&shell.command[0]);
        program
            .args(&shell.command[1..])
            .arg(&shell.target)
            .arg("echo over")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    assert_eq!(ssh().stdout, b"over\n");
    bench.kill_masters().await;
    let dead = ssh();
    assert_eq!((dead.status.code(), dead.stdout.len()), (Some(255), 0));
    pool.close().await;
}
