//! What a command is given and what comes back.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

use sandboxer::domain::error::Code;
use sandboxer::domain::name::HostName;
use sandboxer::transport::{Command, OUTPUT_LIMIT, Source, Transports};

use crate::transport::bench::{Bench, GONE, HOST, SOON, sleeps, until};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn hostile_arguments_arrive_byte_for_byte() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    let words: Vec<Vec<u8>> = vec![
        (1..=255).collect(),
        b"".to_vec(),
        b"$(reboot) `id` \\ \" ' ! * ~ ; & | < > # x".to_vec(),
        b"'; exit 9; '".to_vec(),
        b"\n\n-n\n".to_vec(),
        b"\xff\xfe \xc3\x28".to_vec(),
        "ünï→😀\u{202e}".into(),
    ];
    let expected: Vec<u8> =
        words.iter().flat_map(|word| [word.as_slice(), b"\n=\n"].concat()).collect();
    let words: Vec<_> = words.into_iter().map(std::ffi::OsString::from_vec).collect();
    for way in [&ssh, &local] {
        let script = way
            .run(&Command::script("printf '%s\\n=\\n' \"$@\"").args(&words), SOON)
            .await
            .unwrap();
        assert_eq!(script.stdout, expected);
        let program =
            way.run(&Command::new("printf").arg("%s\\n=\\n").args(&words), SOON).await.unwrap();
        assert_eq!(program.stdout, expected);
        let fed = Command::script("printf '%s\\n=\\n' \"$@\"; cat >&2").args(&words);
        let fed = way.feed(&fed, &mut &b"in\0put"[..], SOON).await.unwrap();
        assert_eq!((&fed.stdout, fed.stderr.as_slice()), (&expected, b"in\0put".as_slice()));
        let nul =
            way.run(&Command::new("echo").arg(OsStr::from_bytes(b"a\0b")), SOON).await.unwrap_err();
        assert_eq!(nul.code, Code::InvalidInput);
        let large = "x".repeat(1 << 20);
        let counted =
            way.run(&Command::script("printf %s \"$1\" | wc -c").arg(&large), SOON).await.unwrap();
        assert_eq!(counted.text().trim(), "1048576");
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn every_exit_status_comes_back() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        for status in [0, 1, 126, 127, 255] {
            let command =
                Command::script("echo out; echo err >&2; exit \"$1\"").arg(status.to_string());
            let ran = way.run(&command, SOON).await.unwrap();
            assert_eq!(
                (ran.status, ran.text().as_str(), ran.error_text().as_str()),
                (status, "out\n", "err\n")
            );
            let streamed = way.stream(&command, SOON, &mut |_, _| {}).await.unwrap();
            assert_eq!((streamed.status, streamed.text().as_str()), (status, "out\n"));
            let fed = way.feed(&command, &mut &b""[..], SOON).await.unwrap();
            assert_eq!((fed.status, fed.error_text().as_str()), (status, "err\n"));
        }
        let killed = way.run(&Command::script("sh -c 'kill -KILL $$'"), SOON).await.unwrap();
        assert_eq!(killed.status, 128 + 9);
        assert_eq!(way.run(&Command::new("no-such-program"), SOON).await.unwrap().status, 127);
        // The command ends its own shell: no status, but the connection is well and so is the next command.
        let suicide = way.run(&Command::script("kill -KILL $$; sleep 1"), SOON).await.unwrap_err();
        assert_eq!(suicide.code, Code::OperationFailed);
        assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn thirty_at_once_are_served() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let work = (0..30).map(|n: i32| {
        let way = way.clone();
        tokio::spawn(async move {
            let command = Command::script("sleep 0.1; echo $1").arg(n.to_string());
            match n % 3 {
                0 => way.run(&command, SOON).await.unwrap().text(),
                1 => way.stream(&command, SOON, &mut |_, _| {}).await.unwrap().text(),
                _ => way.feed(&command, &mut &b"x"[..], SOON).await.unwrap().text(),
            }
        })
    });
    for (n, done) in work.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(done.await.unwrap().trim(), n.to_string());
    }
    assert_eq!(bench.masters().len(), 1, "one process keeps within what sshd allows");
    // Three pools stand for three processes: more sessions are wanted than sshd gives on one connection.
    let (second, third) = (bench.pool(""), bench.pool(""));
    let host = HostName::new(HOST);
    let ways = [way, second.open(&host).await.unwrap(), third.open(&host).await.unwrap()];
    let work = (0..60).map(|n: usize| {
        let way = ways[n % 3].clone();
        tokio::spawn(async move {
            way.stream(&Command::script("sleep 0.1"), SOON, &mut |_, _| {}).await.unwrap().status
        })
    });
    for done in work.collect::<Vec<_>>() {
        assert_eq!(done.await.unwrap(), 0);
    }
    assert!(bench.masters().len() <= 3, "{:?}", bench.masters());
    for pool in [pool, second, third] {
        pool.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_small_command_costs_one_round_trip_and_waits_for_no_slow_one() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    way.run(&Command::new("true"), SOON).await.unwrap();
    let shell = way.run(&Command::script("echo $$"), SOON).await.unwrap().text();
    let before = way.round_trips();
    for _ in 0..20 {
        let found = way.run(&Command::script("echo $$"), SOON).await.unwrap().text();
        assert_eq!(found, shell, "the same shell");
    }
    assert_eq!(way.round_trips() - before, 20);
    let asked = Instant::now();
    way.run(&Command::new("true"), SOON).await.unwrap();
    assert!(way.latency().unwrap() <= asked.elapsed(), "{:?}", way.latency());

    let slow = {
        let way = way.clone();
        tokio::spawn(async move { way.run(&Command::script("sleep 310.003"), SOON).await })
    };
    assert!(until(SOON, || sleeps("310.003")).await);
    way.run(&Command::new("true"), SOON).await.unwrap();
    assert!(sleeps("310.003") && !slow.is_finished(), "it did not wait");
    slow.abort();
    assert!(until(GONE, || !sleeps("310.003")).await);
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn lines_come_as_they_are_written() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        let started = Instant::now();
        let mut seen = Vec::new();
        let command = Command::script(
            "for i in 1 2 3; do echo line $i; sleep 0.5; done; echo err >&2; printf last",
        );
        let mut sink = |source: Source, line: &[u8]| {
            seen.push((source, String::from_utf8_lossy(line).into_owned(), started.elapsed()));
        };
        way.stream(&command, SOON, &mut sink).await.unwrap();
        let of = |wanted: Source| {
            seen.iter().filter(move |(source, ..)| *source == wanted).collect::<Vec<_>>()
        };
        let out = of(Source::Stdout);
        assert_eq!(
            out.iter().map(|(_, text, _)| text.as_str()).collect::<Vec<_>>(),
            ["line 1", "line 2", "line 3", "last"]
        );
        assert_eq!(of(Source::Stderr)[0].1, "err");
        assert!(out[2].2 > out[0].2 + Duration::from_millis(250), "{seen:?}");

        let mut lengths = Vec::new();
        let flood = Command::script("head -c 9000000 /dev/zero; echo; echo end");
        let kept =
            way.stream(&flood, SOON, &mut |_, line: &[u8]| lengths.push(line.len())).await.unwrap();
        assert_eq!(lengths, [64 * 1024, 3]);
        assert!(
            kept.truncated && kept.stdout.len() >= 64 * 1024 && kept.stdout.ends_with(b"end\n")
        );
        let head = way.run(&flood, SOON).await.unwrap();
        assert!(head.truncated && head.stdout.len() == OUTPUT_LIMIT);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_fed_command_that_gives_up_is_heard() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, nap) in [(&ssh, "310.001"), (&local, "310.002")] {
        let data = vec![7; 20_000_000];
        let counted = way.feed(&Command::script("wc -c"), &mut &data[..], SOON).await.unwrap();
        assert_eq!(counted.text().trim(), "20000000");
        let full =
            Command::script("head -c 10 >/dev/null; echo 'No space left on device' >&2; exit 1");
        let full = way.feed(&full, &mut &data[..], SOON).await.unwrap();
        assert_eq!((full.status, full.error_text().trim()), (1, "No space left on device"));
        let idle = Duration::from_millis(500);
        let stuck = way
            .feed(&Command::script("cat >/dev/null; sleep $1").arg(nap), &mut &data[..10], idle)
            .await;
        assert_eq!(stuck.unwrap_err().code, Code::Timeout);
        assert!(until(GONE, || !sleeps(nap)).await, "a stalled command is ended");
    }
    pool.close().await;
}
