//! Input that nobody means well: refused with its field, or carried over byte by byte; never executed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Bench, DOCKER, PODMAN, WEB_STACK, Way, http_get, port_of, text, tree, url_of};
use crate::support::json_assertions::JsonAssertions as _;

/// Values that would make the file `mark` wherever a shell reads them, and others that break quoting or screens.
fn hostile(mark: &Path) -> Vec<String> {
    let mark = mark.display();
    vec![
        format!("$(touch {mark})"),
        format!("`touch {mark}`"),
        format!("'; touch {mark}; '"),
        format!("\"; touch {mark}; \""),
        format!("x\ntouch {mark}\n"),
        format!("-oProxyCommand=touch {mark}"),
        "two words".to_owned(),
        "\u{1b}[2J\u{1b}]0;gone\u{7}".to_owned(),
        "\u{202e}txt.exe".to_owned(),
        format!("$(touch${{IFS}}{mark})"),
        format!(";touch${{IFS}}{mark};"),
        "x".repeat(10_000),
    ]
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn hostile_values_are_refused_with_their_field_and_nothing_runs() {
    let bench = Bench::new();
    let mark = bench.path("pwned");
    let repo = bench.web_stack("x");
    let before = tree(&bench.path(""));
    let values = hostile(&mark);
    std::thread::scope(|scope| {
        for value in &values {
            scope.spawn(|| refused(&bench, &repo, value));
        }
    });
    for value in ["a\nb", "\u{1b}[2J", &"v".repeat(10_000)] {
        let error = bench.run(["create", &format!("--label=k={value}")]).error("invalid_input");
        assert_eq!(error["details"]["field"], "label", "{error:#}");
        let error =
            bench.run(["create", &format!("--idempotency-key={value}")]).error("invalid_input");
        assert_eq!(error["details"]["field"], "idempotency_key", "{error:#}");
    }
    for repo in ["/", "/tmp/..", "~", bench.home().to_str().unwrap(), "", "no-such", "/etc/passwd"]
    {
        let error = bench.try_stack("local", Path::new(repo), &[]).error("invalid_input");
        assert_eq!(error["details"]["field"], "repo", "{repo}: {error:#}");
    }
    assert!(!mark.exists(), "something was executed");
    let after = tree(&bench.path(""));
    let more: Vec<_> =
        after.difference(&before).filter(|line| !line.contains("/home/.local/state")).collect();
    assert!(more.is_empty(), "nothing is written: {more:#?}");
}

/// Every place that takes a value refuses this one.
fn refused(bench: &Bench, repo: &Path, value: &str) {
    let stack = |more: &[&str]| bench.try_stack("local", repo, more);
    for (flag, field) in [("id", "id"), ("name", "name"), ("host", "host"), ("ttl", "ttl")] {
        let given = format!("--{flag}={value}");
        // A name of one odd word is ssh's to judge, and it finds no such host.
        if flag == "host" && !value.contains([' ', '\n', '\u{1b}']) && value.len() < 255 {
            bench.refused(["create", &given], "host_unreachable");
            continue;
        }
        let error = bench.run(["create", &given]).error("invalid_input");
        assert_eq!(error["details"]["field"], field, "{given}: {error:#}");
    }
    let profile = bench.refused(["create", &format!("--profile={value}")], "not_found");
    assert!(text(&profile["message"]).len() < 11_000, "{profile:#}");
    for key in [format!("{value}=v"), format!("=({value}")] {
        let code = if key.starts_with('=') { "usage" } else { "invalid_input" };
        bench.run(["create", "--label", &format!("--{key}")]).error("usage");
        let error = bench.run(["create", &format!("--label={key}")]).error(code);
        assert!(code == "usage" || error["details"]["field"] == "label", "{key}: {error:#}");
    }
    let error = stack(&[&format!("--input={value}=v")]).error("invalid_input");
    assert_eq!(error["details"]["field"], value.split('=').next().unwrap(), "{error:#}");
    let error = bench.try_stack("local", Path::new(value), &[]).error("invalid_input");
    assert_eq!(error["details"]["field"], "repo", "{error:#}");
    let error = stack(&[&format!("--input=compose_file={value}")]).error("invalid_input");
    assert_eq!(error["details"]["field"], "compose_file", "{error:#}");
    for args in
        [["get", "--", value], ["destroy", "--yes", &format!("./{value}")], ["wait", "--", value]]
    {
        bench.run(args).error("not_found");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_hostile_tree_arrives_as_it_is_and_nothing_of_it_runs() {
    let bench = Bench::new();
    let marks =
        [bench.path("pwned"), Path::new("/tmp").join(format!("pwned-{}", std::process::id()))];
    let mark = format!("pwned-{}", std::process::id());
    let name = format!("we ird'\"$(touch {mark})`touch {mark}`\n-x;touch {mark}; #{{}}");
    let repo =
        bench.repository(&name, &[("docker-compose.yml", WEB_STACK), ("www/index.html", "tame")]);
    let names: Vec<Vec<u8>> = vec![
        b"-rf".to_vec(),
        b"--help".to_vec(),
        b"a b\tc".to_vec(),
        b"new\nline".to_vec(),
        b"quote'\"s".to_vec(),
        b"not-utf8-\xff\xfe".to_vec(),
        b"back\\slash".to_vec(),
        b"* ?[a]".to_vec(),
        b"\x1b[2J".to_vec(),
        format!("$(touch {mark})").into_bytes(),
        format!("`touch {mark}`").into_bytes(),
        format!("; touch {mark}; #").into_bytes(),
        vec![b'l'; 255],
    ];
    let odd = repo.join(OsStr::from_bytes(b"-dir \xe9\n"));
    fs::create_dir(&odd).unwrap();
    for name in &names {
        for folder in [&repo, &odd] {
            fs::write(folder.join(OsStr::from_bytes(name)), name).unwrap();
        }
    }
    symlink("$(touch pwned)", repo.join("link to nothing")).unwrap();
    symlink("/etc/passwd", repo.join("link out")).unwrap();

    let wanted = contents(&repo);
    for host in [DOCKER, PODMAN] {
        // The host's own folder may be as odd. (A colon separates a mount's parts, a dollar is compose's.)
        let root = bench.workspace_root(host).join("odd root'\"`touch pwned`;{}");
        fs::create_dir_all(&root).unwrap();
        let before = bench.snapshot(host);
        let odd_host = format!("odd-{host}");
        bench.add_host(&odd_host, &Way::to(host, port_of(host)), &root);
        let made =
            bench.create_stack(&odd_host, &repo, &["--label", "note=$(touch /tmp/x) 'a' \"b\" \\"]);
        let workspace = Path::new(&text(&made["workdir"])).join("workspace");
        assert_eq!(contents(&workspace), wanted, "{host}");
        made.has(json!({"labels": {"note": "$(touch /tmp/x) 'a' \"b\" \\"}, "inputs.repo": repo}));
        assert!(http_get(&url_of(&made)).contains("tame"));
        bench.ok(["destroy", &text(&made["id"])]);
        bench.assert_unchanged(host, &before);
        fs::remove_file(root.join(".sandboxer-root")).unwrap();
        fs::remove_dir(&root).unwrap();
        let home = crate::lab::lab().join("hosts").join(host).join("home");
        assert!(!home.join(&mark).exists(), "{host}: something was executed");
    }
    assert!(marks.iter().all(|mark| !mark.exists()), "something was executed here");
}

/// Every path below a folder, exact, with what is in it.
fn contents(folder: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let content = if kind.is_dir() {
                folders.push(path.clone());
                b"directory".to_vec()
            } else if kind.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            found.insert(
                path.strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec(),
                content,
            );
        }
    }
    found
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_compose_file_that_is_none_is_refused_before_anything_happens() {
    let bench = Bench::new();
    let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
    for n in 1..12 {
        let previous = n - 1;
        bomb.push(format!("a{n}: &a{n} [{}]", vec![format!("*a{previous}"); 10].join(", ")));
    }
    let bomb = bomb.join("\n");
    let big = format!("services: {{a: {{image: x}}}}\n# {}\n", "x".repeat(64 << 20));
    let files = [
        ("empty.yml", ""),
        ("tab.yml", "services:\n\ta: {image: x}\n"),
        ("list.yml", "- services\n"),
        ("binary.yml", "\u{1}\u{2}\u{0}"),
        ("bomb.yml", &bomb),
        ("deep.yml", &"[".repeat(100_000)),
        ("twice.yml", "services: {a: {image: x}}\nservices: {b: {image: y}}\n"),
        ("none.yml", "services: {}\n"),
        ("big.yml", &big),
        ("folder.yml/x", ""),
    ];
    let repo = bench.repository("files", &files);
    fs::write(bench.path("outside.yml"), "services: {a: {image: x}}\n").unwrap();
    fs::write(repo.join("latin.yml"), b"services: {a: {image: \"\xff\"}}\n").unwrap();
    symlink(bench.path("outside.yml"), repo.join("link.yml")).unwrap();
    symlink("loop.yml", repo.join("loop.yml")).unwrap();
    make_fifo(&repo.join("fifo.yml"));
    let names = files.iter().map(|(name, _)| *name).filter(|name| *name != "folder.yml/x");
    let more =
        "gone.yml folder.yml latin.yml link.yml loop.yml fifo.yml ../../outside.yml /etc/passwd ..";
    for name in names.chain([""]).chain(more.split(' ')) {
        let ran = bench.try_stack("local", &repo, &[&format!("--input=compose_file={name}")]);
        let error = ran.error("invalid_input");
        let field = if name == "none.yml" { "services" } else { "compose_file" };
        assert_eq!(error["details"]["field"], field, "{name}: {error:#}");
        assert!(text(&error["message"]).contains(name), "{name}: {error:#}");
        assert!(ran.took < Duration::from_secs(20), "{name} took {:?}", ran.took);
        assert!(ran.stderr.len() < 20_000, "{name}: {} bytes of error", ran.stderr.len());
    }
    assert_eq!(bench.stored().len(), 0);
    assert!(!bench.home().join("sandboxes").exists());
}

fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// One of everything in the refusal list of semantics 8.
const EVERYTHING: &str = r#"include: ["../other.yml"]
services:
  a:
    image: x
    privileged: true
    cap_add: [NET_ADMIN]
    security_opt: ["seccomp:unconfined"]
    devices: ["/dev/kvm:/dev/kvm"]
    network_mode: host
    pid: host
    ipc: host
    uts: host
    userns_mode: host
    cgroup: host
    volumes_from: ["container:other"]
    volumes: ["/var/run/docker.sock:/s", "/etc:/e", "../up:/u", "./out:/l"]
    env_file: ["../x.env", "link.env"]
  b: {build: ../elsewhere}
  c: {extends: {file: ../other.yml, service: s}}
  d: {image: x, networks: [n], volumes: ["v:/v", "bound:/b"], secrets: [s], configs: [c]}
  e: {image: x, pid: "${PID}", volumes: ["${PLACE}:/p"], privileged: "${YES}"}
  f: {build: ./out}
networks: {n: {external: true}}
volumes:
  v: {external: true}
  bound: {driver_opts: {type: none, o: bind, device: "${PLACE}"}}
secrets: {s: {file: /etc/shadow}}
configs: {c: {file: ../x}}
"#;

/// Where each of them is.
const EVERY_PATH: &str = "include
    services.a.privileged services.a.cap_add services.a.security_opt services.a.devices services.a.network_mode
    services.a.pid services.a.ipc services.a.uts services.a.userns_mode services.a.cgroup services.a.volumes_from
    services.a.volumes[0] services.a.volumes[1] services.a.volumes[2] services.a.volumes[3] services.a.env_file
    services.b.build services.c.extends services.e.pid services.e.volumes[0] services.e.privileged services.f.build
    networks.n.external volumes.v.external volumes.bound.driver_opts secrets.s.file configs.c.file";

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn everything_that_leaves_the_sandbox_is_refused_at_once() {
    let bench = Bench::new();
    let repo = bench.repository(
        "all",
        &[("docker-compose.yml", EVERYTHING), (".env", "PID=host\nPLACE=/etc\nYES=true\n")],
    );
    fs::write(bench.path("repos/x.env"), "A=1\n").unwrap();
    fs::write(bench.path("repos/other.yml"), "services: {s: {image: x}}\n").unwrap();
    symlink("/etc", repo.join("out")).unwrap();
    symlink("/etc/environment", repo.join("link.env")).unwrap();
    let ran = bench.try_stack(DOCKER, &repo, &["--dry-run"]);
    let plan = ran.json();
    assert_eq!(plan["ok"], json!(false));
    let refusals = plan["preview"]["refusals"].as_array().unwrap();
    let paths: Vec<String> = refusals.iter().map(|refusal| text(&refusal["path"])).collect();
    let message_of = |path: &str| {
        refusals.iter().find(|r| text(&r["path"]).starts_with(path)).map(|r| text(&r["message"]))
    };
    for path in EVERY_PATH.split_whitespace() {
        assert!(
            message_of(path).is_some_and(|message| !message.is_empty()),
            "{path} is refused: {paths:#?}"
        );
    }
    let files: Vec<_> =
        paths.iter().filter(|path| path.starts_with("services.a.env_file")).collect();
    assert_eq!(files.len(), 2, "outside, and through a link: {paths:#?}");
    assert!(
        refusals.iter().all(|refusal| refusal.get("allow").is_some()),
        "each says what would permit it"
    );
    let dry = ran.error_with_hint("invalid_input");

    let error = bench.try_stack(DOCKER, &repo, &[]).error_with_hint("invalid_input");
    assert_eq!(error["details"]["refusals"].as_array().unwrap().len(), refusals.len(), "{error:#}");
    assert_eq!(error["details"]["field"], dry["details"]["field"]);
    assert_eq!(bench.stored().len(), 0);
}
