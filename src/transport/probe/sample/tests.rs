use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use super::super::containers::ReportedUse;
use super::super::tests::{bare_path, program, shells};
use super::*;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const C: &str = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc";

const SAID: &str = "Welcome!\ndisk=4096 1000 300 250 400 100 /home/al ice\ndisk=512 7 7 7 7 7 /\nload=0.38 0.73 0.63 1/121 1183\ncpus=0-3,6\n\
mem=MemTotal:       2000 kB\nmem=MemFree:         10 kB\nmem=MemAvailable:   500 kB\nmem=SwapTotal:  100 kB\nmem=SwapFree:  40 kB\n\
uptime=1000.50\nnow=1795780801.500000000\nlooked=1000.60\nuse=0 5000000000 3000 1000\nuse=1 700 50 \nuse=2   \nended=1000.60\n";

fn container(id: &str, sandbox: &str, version: CgroupVersion, at: &str) -> Container {
    let group = ControlGroup {
        version,
        processor: format!("{at}/cpu/"),
        memory: format!("{at}/memory/"),
        ending: ".scope".to_owned(),
    };
    let (id, sandbox) = (id.to_owned(), SandboxId::new(sandbox));
    Container { id, sandbox, group: Some(group), said: None }
}

fn three() -> [Container; 3] {
    let of = |id, sandbox| container(id, sandbox, CgroupVersion::V1, "/x");
    [of(A, "one"), of(B, "two"), of(C, "two")]
}

fn want<'a>(containers: &'a [Container], previous: Option<&'a Counters>) -> SampleRequest<'a> {
    let now = "2026-11-27T12:00:00.250Z".parse().unwrap();
    SampleRequest { disk: true, containers, previous, now }
}

fn told(said: &str, request: &SampleRequest<'_>) -> Result<Sampled, Error> {
    let output = Output { stdout: said.as_bytes().to_vec(), ..Output::default() };
    let (order, _) = groups(request.containers);
    read(&output, request, &order, Duration::from_millis(1250))
}

fn figures(sampled: &Sampled) -> String {
    let uses = sampled.sample.sandboxes.iter().map(|(id, used)| {
        format!("{id} {:?} {} {}", used.cpu_pct, used.memory_bytes, used.containers)
    });
    uses.collect::<Vec<_>>().join("; ")
}

#[test]
fn figures_of_a_usual_host() {
    let containers = three();
    let sampled = told(SAID, &want(&containers, None)).unwrap();
    let sample = &sampled.sample;
    assert_eq!((sample.cpus, sample.load1), (5, 0.38));
    assert_eq!((sample.mem_total_bytes, sample.mem_available_bytes), (2_048_000, 512_000));
    assert_eq!((sample.swap_total_bytes, sample.swap_free_bytes), (102_400, 40_960));
    let disk = DiskUse {
        path: "/home/al ice".to_owned(),
        total_bytes: 4_096_000,
        used_bytes: 2_867_200,
        available_bytes: 1_024_000,
        inodes: Some(400),
        inodes_free: Some(100),
    };
    assert_eq!(sample.disk, Some(disk));
    assert_eq!((sample.uptime_s, sample.clock_offset_s), (Some(1000), Some(0.0)));
    assert_eq!(sample.findings, [""; 0]);
    // The first sample has nothing to compare with; what ended is not there.
    assert_eq!(figures(&sampled), "one None 2000 1; two None 50 1");
}

#[test]
fn use_of_the_processor_is_what_was_spent_since_the_sample_before() {
    let containers = three();
    let before = |uptime_s, times: &[(&str, u64)]| Counters {
        uptime_s,
        processor_ns: times.iter().map(|(id, time)| ((*id).to_owned(), *time)).collect(),
    };
    for (previous, expected) in [
        // Half a second of one processor in two; one that is new.
        (before(998.5, &[(A, 4_000_000_000)]), "one Some(50.0) 2000 1; two None 50 1"),
        (
            before(998.5, &[(A, 5_000_000_000), (B, 700)]),
            "one Some(0.0) 2000 1; two Some(0.0) 50 1",
        ),
        // Started anew: its count began again.
        (before(998.5, &[(A, 6_000_000_000)]), "one None 2000 1; two None 50 1"),
        // The host started anew, or was asked twice at once.
        (before(2000.0, &[(A, 4_000_000_000)]), "one None 2000 1; two None 50 1"),
        (before(1000.5, &[(A, 4_000_000_000)]), "one None 2000 1; two None 50 1"),
    ] {
        let sampled = told(SAID, &want(&containers, Some(&previous))).unwrap();
        assert_eq!(figures(&sampled), expected, "{previous:?}");
    }
    // Microseconds in the second generation; two containers of one sandbox together.
    let containers = [
        container(A, "one", CgroupVersion::V2, "/x"),
        container(B, "one", CgroupVersion::V2, "/x"),
    ];
    let previous = before(998.5, &[(A, 0), (B, 0)]);
    let said =
        SAID.replace("use=0 5000000000", "use=0 500000").replace("use=1 700", "use=1 500000");
    let sampled = told(&said, &want(&containers, Some(&previous))).unwrap();
    assert_eq!(figures(&sampled), "one Some(50.0) 2050 2");
}

#[test]
fn an_engine_s_own_figures_count_for_a_while() {
    let at = |seconds: u64| "2026-11-27T12:00:00Z".parse::<Time>().unwrap().minus_seconds(seconds);
    for (age, expected) in [(30, "one Some(12.5) 700 1"), (91, "")] {
        let said = ReportedUse { at: at(age), cpu_pct: Some(12.5), memory_bytes: 700 };
        let (id, sandbox) = (A.to_owned(), SandboxId::new("one"));
        let containers = [Container { id, sandbox, group: None, said: Some(said) }];
        let sampled = told(SAID, &want(&containers, None)).unwrap();
        assert_eq!(figures(&sampled), expected);
    }
}

#[test]
fn figures_of_odd_hosts() {
    for (change, to, check) in [
        (
            "mem=MemAvailable:   500 kB\n",
            "mem=Buffers: 5 kB\nmem=Cached: 5 kB\n",
            "available 20480",
        ),
        ("disk=4096 1000 300 250 400 100 ", "disk=4096 1000 300 250 0 0 ", "inodes None"),
        ("disk=4096 1000 300 250 400 100 ", "disk=4096 1000 300 250 ? ? ", "inodes None"),
        (
            "disk=4096 1000 300 250 400 100 /home/al ice\ndisk=512 7 7 7 7 7 /\n",
            "disk.late=yes\n",
            "[\"the workspace root's file system did not answer in 2 s\"]",
        ),
        (
            "disk=4096 1000 300 250 400 100 /home/al ice\ndisk=512 7 7 7 7 7 /\n",
            "",
            "[\"the size of the workspace root's file system cannot be read\"]",
        ),
        (
            "use=0 5000000000 3000 1000\nuse=1 700 50 \nuse=2   \n",
            "use.failed=yes\n",
            "[\"what containers use cannot be read: awk is missing or failed\"]",
        ),
        ("cpus=0-3,6", "cpus=9-2,x,", "cpus 0"),
        ("load=0.38", "load=-1e999", "load 0"),
        // A second's wait for the disk, after the look at the clock.
        ("ended=1000.60", "ended=1001.60", "offset Some(1.0)"),
        ("now=1795780801.500000000", "now=1795781401.500", "offset Some(600.0)"),
        ("now=1795780801.500000000", "now=%s", "offset None"),
        (
            "use=0 5000000000 3000 1000",
            "use=0 5000000000 18446744073709551616 1",
            "uses two None 50 1",
        ),
        ("use=0 5000000000 3000 1000", "use=9 1 1 1\nuse=\nuse=x", "uses two None 50 1"),
    ] {
        let said = SAID.replace(change, to);
        assert_ne!(said, SAID, "{change}");
        let containers = three();
        let sampled = told(&said, &want(&containers, None)).unwrap();
        let sample = &sampled.sample;
        let told = [
            format!("available {}", sample.mem_available_bytes),
            format!("inodes {:?}", sample.disk.as_ref().and_then(|disk| disk.inodes)),
            format!("cpus {}", sample.cpus),
            format!("load {}", sample.load1),
            format!("offset {:?}", sample.clock_offset_s),
            format!("uses {}", figures(&sampled)),
            format!("{:?}", sample.findings),
        ];
        assert!(told.iter().any(|line| line == check), "{check}: {told:?}");
    }
}

#[test]
fn what_is_no_whole_sample_is_an_error() {
    let half = SAID.replace("ended=1000.60\n", "");
    let garbage = "\u{1b}[2J\0\u{fffd}=\n=\n ended=1\nended=\nended=x\n";
    for said in ["", half.as_str(), garbage] {
        assert_eq!(told(said, &want(&[], None)).unwrap_err().code, Code::OperationFailed);
    }
    let whole = || Output { stdout: SAID.as_bytes().to_vec(), ..Output::default() };
    let long = Output { truncated: true, ..whole() };
    let failed = Output { status: 2, stderr: b"sh: syntax error".to_vec(), ..whole() };
    let long = read(&long, &want(&[], None), &[], Duration::ZERO).unwrap_err();
    assert_eq!(long.causes, ["it said more than a sample has"]);
    let failed = read(&failed, &want(&[], None), &[], Duration::ZERO).unwrap_err();
    assert_eq!(failed.details["output"], "sh: syntax error");
}

#[test]
fn containers_whose_groups_are_alike_are_named_together() {
    let containers = [
        container(B, "one", CgroupVersion::V2, "/y"),
        container(C, "one", CgroupVersion::V1, "/x"),
        container(A, "two", CgroupVersion::V1, "/x"),
        Container { group: None, ..container(A, "three", CgroupVersion::V1, "/x") },
    ];
    let (order, words) = groups(&containers);
    let order: Vec<&str> = order.iter().map(|container| container.id.as_str()).collect();
    assert_eq!(order, [C, A, B]);
    let expected = [
        "1",
        "/x/cpu/",
        "/x/memory/",
        ".scope",
        "2",
        C,
        A,
        "2",
        "/y/cpu/",
        "/y/memory/",
        ".scope",
        "1",
        B,
    ];
    assert_eq!(words, expected);
}

/// A control group as the kernel shows one.
fn control_group(at: &Path, id: &str, version: CgroupVersion) {
    for kind in ["cpu", "memory"] {
        fs::create_dir_all(at.join(kind).join(format!("{id}.scope"))).unwrap();
    }
    let file = |kind: &str, name: &str, text: &str| {
        fs::write(at.join(kind).join(format!("{id}.scope")).join(name), text).unwrap();
    };
    match version {
        CgroupVersion::V1 => {
            file("cpu", "cpuacct.usage", "5000000000\n");
            file("memory", "memory.usage_in_bytes", "3000\n");
            file("memory", "memory.stat", "cache 7\ninactive_file 9\ntotal_inactive_file 1000\n");
        }
        CgroupVersion::V2 => {
            file("cpu", "cpu.stat", "usage_usec 5000000\nuser_usec 1\n");
            file("memory", "memory.current", "3000\n");
            file("memory", "memory.stat", "anon 7\nfile 9\ninactive_file 1000\nactive_file 3\n");
        }
    }
}

fn run_script(shell: &[&str], path: &str, root: &str, containers: &[Container]) -> Output {
    let (_, words) = groups(containers);
    let output = Process::new(shell[0])
        .args(&shell[1..])
        .args(["-c", SAMPLE_SH, "sh", root])
        .args(words)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let status = output.status.code().unwrap_or(-1);
    Output { status, stdout: output.stdout, stderr: output.stderr, truncated: false }
}

#[test]
fn the_script_reads_both_generations_in_every_shell() {
    for shell in shells() {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path().join("a b");
        control_group(&at, A, CgroupVersion::V1);
        control_group(&at, B, CgroupVersion::V2);
        let place = at.display().to_string();
        let containers = [
            container(A, "one", CgroupVersion::V1, &place),
            container(B, "two", CgroupVersion::V2, &place),
            container(C, "two", CgroupVersion::V2, &place),
        ];
        let bin = temp.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let path = bare_path(&bin, &[]);
        let root = format!("{place}/no/such/");
        let output = run_script(&shell, &path, &root, &containers);
        assert_eq!(output.error_text(), "", "{shell:?}");
        let request = want(&containers, None);
        let (order, _) = groups(&containers);
        let sampled = read(&output, &request, &order, Duration::ZERO).unwrap();
        assert_eq!(sampled.sample.findings, [""; 0], "{shell:?}");
        assert_eq!(figures(&sampled), "one None 2000 1; two None 2000 1", "{shell:?}");
        let times: Vec<u64> = sampled.counters.processor_ns.values().copied().collect();
        assert_eq!(times, [5_000_000_000, 5_000_000_000]);
        let sample = sampled.sample;
        // The deepest folder that is there; nothing was made.
        assert_eq!(sample.disk.unwrap().path, place);
        assert!(!at.join("no").exists());
        assert!(sample.cpus > 0 && sample.mem_total_bytes > 0 && sample.uptime_s.unwrap() > 0);
        assert!(sample.clock_offset_s.is_some());
    }
}

#[test]
fn a_disk_that_hangs_holds_no_sample_and_its_program_is_ended() {
    // A busybox has its own stat in its shell.
    for shell in shells().into_iter().filter(|shell| !shell[0].contains("busybox")) {
        let temp = tempfile::tempdir().unwrap();
        let path = bare_path(temp.path(), &["stat"]);
        let nap = format!("306.{}", temp.path().display().to_string().len());
        program(temp.path(), "stat", &format!("exec sleep {nap}"));
        let output = run_script(&shell, &path, "/tmp", &[]);
        let sampled = read(&output, &want(&[], None), &[], Duration::ZERO).unwrap();
        assert!(sampled.disk_is_late, "{shell:?}");
        assert_eq!(sampled.sample.disk, None);
        assert!(sampled.sample.mem_total_bytes > 0);
        // Killed, and its parent is gone: nobody has it any more.
        let left = Process::new("pgrep").args(["-fx", &format!("sleep {nap}")]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&left.stdout), "", "{shell:?}");
    }
}

#[test]
fn a_host_without_awk_or_stat_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let path = bare_path(temp.path(), &["awk", "stat"]);
    let containers = three();
    let output = run_script(&["/bin/sh"], &path, "/tmp", &containers);
    let (order, _) = groups(&containers);
    let sampled = read(&output, &want(&containers, None), &order, Duration::ZERO).unwrap();
    assert_eq!(
        sampled.sample.findings,
        [
            "the size of the workspace root's file system cannot be read",
            "what containers use cannot be read: awk is missing or failed",
        ]
    );
    assert!(sampled.sample.sandboxes.is_empty());
}

/// A program's output on this machine.
fn of_host(line: &str) -> String {
    let output = Process::new("sh").args(["-c", line]).env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

type Figure = fn(&HostSample) -> f64;

/// Each figure against the tool that operators read it with.
#[test]
fn figures_are_those_of_the_host_s_own_tools() {
    let path = std::env::var("PATH").unwrap();
    let output = run_script(&["/bin/sh"], &path, "/tmp", &[]);
    let sample = read(&output, &want(&[], None), &[], Duration::ZERO).unwrap().sample;
    let number = |line: &str| of_host(line).parse::<f64>().unwrap();
    let figures: [(&str, Figure, f64); 10] = [
        ("getconf _NPROCESSORS_ONLN", |sample| f64::from(sample.cpus), 0.0),
        ("cut -d' ' -f1 /proc/loadavg", |sample| sample.load1, 2.0),
        ("free -b | awk '/^Mem:/ {print $2}'", |sample| sample.mem_total_bytes as f64, 0.0),
        ("free -b | awk '/^Mem:/ {print $7}'", |sample| sample.mem_available_bytes as f64, 2e9),
        ("free -b | awk '/^Swap:/ {print $2}'", |sample| sample.swap_total_bytes as f64, 0.0),
        ("free -b | awk '/^Swap:/ {print $4}'", |sample| sample.swap_free_bytes as f64, 1e9),
        (
            "df -B1 --output=size /tmp | tail -n 1",
            |sample| sample.disk.as_ref().unwrap().total_bytes as f64,
            0.0,
        ),
        (
            "df -B1 --output=avail /tmp | tail -n 1",
            |sample| sample.disk.as_ref().unwrap().available_bytes as f64,
            2e9,
        ),
        (
            "df --output=itotal /tmp | tail -n 1",
            |sample| sample.disk.as_ref().unwrap().inodes.unwrap_or(0) as f64,
            0.0,
        ),
        ("cut -d. -f1 /proc/uptime", |sample| sample.uptime_s.unwrap() as f64, 60.0),
    ];
    for (tool, figure, tolerance) in figures {
        if of_host(tool).is_empty() {
            continue;
        }
        let (ours, theirs) = (figure(&sample), number(tool));
        assert!((ours - theirs).abs() <= tolerance, "{tool}: {theirs}, the probe: {ours}");
    }
}
