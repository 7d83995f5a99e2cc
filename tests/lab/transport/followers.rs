//! What somebody watches or works in: attach and interactive, on connections of their own.

use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

use async_trait::async_trait;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use sandboxer::domain::error::Code;
use sandboxer::domain::name::HostName;
use sandboxer::domain::output::OutputSink;
use sandboxer::transport::{Command, Source, Transports};

use crate::transport::bench::{Bench, GONE, SOON, kind, processes, signal, sleeps, until};

/// Keeps what it is given, up to a limit; then wants no more.
struct Kept {
    out: Vec<u8>,
    err: Vec<u8>,
    limit: usize,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self { out: Vec::new(), err: Vec::new(), limit }
    }
}

#[async_trait]
impl OutputSink for Kept {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        if source == Source::Stdout { &mut self.out } else { &mut self.err }
            .extend_from_slice(bytes);
        self.out.len() + self.err.len() < self.limit
    }
}

/// Counts, stands still for a while after so many bytes, and then wants no more.
struct Slow {
    bytes: usize,
    stop_at: usize,
}

#[async_trait]
impl OutputSink for Slow {
    async fn take(&mut self, _: Source, bytes: &[u8]) -> bool {
        self.bytes += bytes.len();
        if self.bytes < self.stop_at {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn attached_output_comes_byte_for_byte_with_the_status() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        for status in [0, 1, 126, 127, 255] {
            let command =
                Command::script("printf 'a\\n\\0\\377%s' \"$2\"; echo err >&2; exit \"$1\"");
            let command = command.arg(status.to_string()).arg("it's $(id)");
            let mut kept = Kept::new(usize::MAX);
            assert_eq!(way.attach(&command, &mut kept).await.unwrap(), Some(status));
            assert_eq!(kept.out.as_slice(), &b"a\n\0\xffit's $(id)"[..]);
            assert_eq!(kept.err.as_slice(), &b"err\n"[..]);
        }
        let killed = way
            .attach(&Command::script("sh -c 'kill -TERM $$'"), &mut Kept::new(usize::MAX))
            .await
            .unwrap();
        assert_eq!(killed, Some(128 + 15));
        // Descriptor 3 is there for who asks for it, and ends when our side does, not before.
        let lifeline = Command::script("timeout 1 cat <&3; echo $?").with_lifeline();
        let mut kept = Kept::new(usize::MAX);
        way.attach(&lifeline, &mut kept).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&kept.out), "124\n");
    }
    assert_eq!(bench.masters().len(), 2, "one for work, one for followers");
    pool.close().await;
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_flood_waits_for_its_reader_and_ends_with_it() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, length) in [(&ssh, "31810000000001"), (&local, "31810000000002")] {
        let flood = format!("head -c {length} /dev/zero");
        let runs = || !processes(|line| line.trim_end() == flood).is_empty();
        let before = resident_kib();
        let mut slow = Slow { bytes: 0, stop_at: 200_000_000 };
        let attached = way
            .attach(&Command::new("head").args(["-c", length, "/dev/zero"]), &mut slow)
            .await
            .unwrap();
        assert_eq!(attached, None, "it wanted no more");
        let grown = resident_kib().saturating_sub(before);
        assert!(grown < 30_000, "200 MB passed and {grown} KiB stayed");
        assert!(slow.bytes < 201_000_000, "nothing was read while it stood still");
        assert!(until(GONE, || !runs()).await);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn what_is_attached_ends_with_us_and_takes_no_work_with_it() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, nap) in [(&ssh, "318.001"), (&local, "318.002")] {
        let deaf = Command::script("trap '' TERM; sleep $1").arg(nap);
        let mut kept = Kept::new(1);
        tokio::select! {
            ended = way.attach(&deaf, &mut kept) => panic!("{ended:?}"),
            runs = until(SOON, || sleeps(nap)) => assert!(runs),
        }
        assert!(until(GONE, || !sleeps(nap)).await);
    }
    // Eleven who watch leave the work its sessions; the eleventh has a connection of its own again.
    let watching: Vec<_> = (0..11)
        .map(|_| {
            let way = ssh.clone();
            tokio::spawn(async move {
                way.attach(&Command::script("sleep 318.003"), &mut Kept::new(1)).await
            })
        })
        .collect();
    let count = || processes(|line| line.trim_end() == "sleep 318.003").len();
    assert!(until(SOON, || count() == 11).await, "{} of 11", count());
    let work: Vec<_> = (0..6)
        .map(|_| {
            let way = ssh.clone();
            tokio::spawn(async move {
                way.stream(&Command::new("true"), SOON, &mut |_, _| {}).await.unwrap().ok()
            })
        })
        .collect();
    for done in work {
        assert!(done.await.unwrap());
    }
    assert_eq!(bench.masters().len(), 3);

    // The followers' connections are cut: who watched hears of it, and the work goes on.
    let control = bench.control();
    let followers = processes(|line| {
        line.contains("-M")
            && line.contains(&*control.to_string_lossy())
            && (line.contains("f0 ") || line.contains("f1 "))
    });
    assert_eq!(followers.len(), 2);
    for master in followers {
        signal("-KILL", master);
    }
    for watcher in watching {
        let fault = watcher.await.unwrap().unwrap_err();
        assert_eq!(fault.code.clone(), Code::HostUnreachable, "{fault:?}");
        assert_eq!(kind(&fault).as_str(), "lost", "{fault:?}");
    }
    assert!(until(GONE, || count() == 0).await);
    assert!(ssh.run(&Command::new("true"), SOON).await.unwrap().ok());
    let found = ssh.attach(&Command::new("true"), &mut Kept::new(1)).await.unwrap();
    assert_eq!(found, Some(0), "connected again");
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn an_interactive_command_has_the_terminal() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        let script = "test -t 0 && test -t 1 && stty size; printf '<%s>' \"$1\"; read -r line; echo \"got $line\"; exit 3";
        let words =
            way.interactive(&Command::script(script).arg("it's $(id) \"x\"\n-")).await.unwrap();
        let pty = native_pty_system()
            .openpty(PtySize { rows: 33, cols: 77, ..PtySize::default() })
            .unwrap();
        let mut builder = CommandBuilder::new(&words[0]);
        builder.args(&words[1..]);
        let mut child = pty.slave.spawn_command(builder).unwrap();
        drop(pty.slave);
        let mut keyboard = pty.master.take_writer().unwrap();
        // Typed before anybody asks for it.
        keyboard.write_all(b"a line\r").unwrap();
        let mut screen = pty.master.try_clone_reader().unwrap();
        let said = tokio::task::spawn_blocking(move || {
            let mut said = Vec::new();
            let _ = screen.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        let status = child.wait().unwrap();
        drop((keyboard, pty.master));
        let said = said.await.unwrap();
        assert_eq!(status.exit_code(), 3, "{said}");
        assert!(said.contains("33 77\r\n") && said.contains("<it's $(id) \"x\"\r\n->"), "{said:?}");
        assert!(said.contains("got a line\r\n") && !said.contains("losed"), "{said:?}");
    }
    pool.close().await;
}
