use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::*;
use crate::extensions::archives::import::header_extensions::record;

/// Entry as a tar has it, by hand: nothing here stops at what an honest archive would not say.
#[derive(Clone)]
struct Fixture {
    name: Vec<u8>,
    kind: u8,
    target: Vec<u8>,
    data: Vec<u8>,
}

fn entry(kind: u8, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Fixture {
    let (name, target) = (name.as_ref().to_vec(), target.as_ref().to_vec());
    Fixture { name, kind, target, data: Vec::new() }
}

fn file(name: impl AsRef<[u8]>, data: impl AsRef<[u8]>) -> Fixture {
    Fixture { data: data.as_ref().to_vec(), ..entry(b'0', name, "") }
}

fn folder(name: &str) -> Fixture {
    entry(b'5', name, "")
}

fn link(name: &str, target: &str) -> Fixture {
    entry(b'2', name, target)
}

fn hard(name: &str, target: &str) -> Fixture {
    entry(b'1', name, target)
}

/// A file with holes, whose content is a map and so many bytes.
fn holed(real: &str, map: &str, bytes: usize) -> Vec<Fixture> {
    let mut content = map.as_bytes().to_vec();
    content.resize(content.len().next_multiple_of(BLOCK), 0);
    content.resize(content.len() + bytes, b'x');
    let records = [
        ("GNU.sparse.major", "1"),
        ("GNU.sparse.minor", "0"),
        ("GNU.sparse.name", "workspace/s"),
        ("GNU.sparse.realsize", real),
    ];
    vec![pax(&records), file("workspace/GNUSparseFile.1/s", content)]
}

/// The extension of the entry behind it.
fn pax(records: &[(&str, &str)]) -> Fixture {
    let data: Vec<u8> =
        records.iter().flat_map(|(key, value)| record(key.as_bytes(), value.as_bytes())).collect();
    file("PaxHeaders/x", data).of_kind(b'x')
}

fn long(kind: u8, name: &str) -> Fixture {
    file("././@LongLink", format!("{name}\0")).of_kind(kind)
}

impl Fixture {
    fn of_kind(self, kind: u8) -> Self {
        Self { kind, ..self }
    }

    fn header(&self) -> Header {
        let mut header = Header::new_ustar();
        let bytes = header.as_mut_bytes();
        bytes[..self.name.len()].copy_from_slice(&self.name);
        bytes[157..157 + self.target.len()].copy_from_slice(&self.target);
        bytes[156] = self.kind;
        header.set_size(self.data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        header
    }

    fn write(&self, tar: &mut Vec<u8>) {
        tar.extend_from_slice(self.header().as_bytes());
        tar.extend_from_slice(&self.data);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
}

fn tar(entries: &[Fixture]) -> Vec<u8> {
    let mut tar = Vec::new();
    for entry in entries {
        entry.write(&mut tar);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    tar
}

/// A tar with headers of its own in it.
fn tar_of_blocks(blocks: &[&[u8]]) -> Vec<u8> {
    let mut tar = tar(&[folder("workspace/")]);
    tar.truncate(BLOCK);
    tar.extend(blocks.concat());
    tar.resize(tar.len() + 2 * BLOCK, 0);
    tar
}

fn promise(tar: &[u8]) -> Promise {
    Promise {
        content_bytes: tar.len() as u64,
        files: None,
        sha256: hex(&Sha256::digest(tar)),
        volumes: Vec::new(),
    }
}

/// Tar that is written of it; a source that gives so much at once.
fn rewritten_in(tar: &[u8], promise: &Promise, piece: usize) -> Result<(Written, Vec<u8>), String> {
    struct Pieces<'a>(&'a [u8], usize);
    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.1);
            self.0.read(&mut buffer[..length])
        }
    }
    let mut out = Vec::new();
    let written =
        rewrite(Pieces(tar, piece), &mut out, promise).map_err(|error| error.to_string())?;
    assert_eq!(written.content_bytes, out.len() as u64);
    assert_eq!(written.sha256, hex(&Sha256::digest(&out)));
    Ok((written, out))
}

fn rewritten(entries: &[Fixture]) -> Result<(Written, Vec<u8>), String> {
    let tar = tar(entries);
    let mut promise = promise(&tar);
    if entries.iter().any(|entry| entry.name.starts_with(b"volumes/data")) {
        promise.volumes = vec!["data".to_owned()];
    }
    let whole = rewritten_in(&tar, &promise, usize::MAX);
    assert_eq!(rewritten_in(&tar, &promise, 511), whole);
    whole
}

/// Words of a program on a tar that it gets.
fn said(program: &[&str], tar: &[u8]) -> Option<String> {
    let mut run = Command::new(program[0]);
    run.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = run.spawn().ok()?;
    child.stdin.take()?.write_all(tar).ok()?;
    let output = child.wait_with_output().ok()?;
    assert!(output.status.success(), "{program:?}: {output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn listed_by_gnu(tar: &[u8]) -> String {
    said(&["tar", "--quoting-style=literal", "-tf", "-"], tar).expect("tar")
}

/// Listing by GNU tar and busybox, which must agree where both are.
fn listed(tar: &[u8]) -> String {
    let gnu = listed_by_gnu(tar);
    if let Some(busybox) = said(&["busybox", "tar", "-tf", "-"], tar) {
        assert_eq!(busybox, gnu);
    }
    gnu
}

/// Names of what GNU tar makes of it, whatever it says meanwhile.
fn made(tar: &[u8]) -> BTreeSet<String> {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"tar -C "$1" -xf - 2>/dev/null; cd "$1" && find * -type d -printf '%p/\n' -o -printf '%p\n'"#;
    let folder = dir.path().to_str().unwrap();
    let names = said(&["sh", "-c", script, "sh", folder], tar).unwrap();
    names.lines().map(str::to_owned).collect()
}

#[track_caller]
fn refused(entries: &[Fixture], why: &str) {
    let told = rewritten(entries).expect_err("it is refused");
    assert!(told.contains(why), "{told}");
}

/// Taken, and one reading of it is left.
#[track_caller]
fn harmless(entries: Vec<Fixture>, names: &str) {
    let (_, tar) = rewritten(&behind_workspace(entries)).unwrap();
    assert_eq!(listed(&tar), format!("workspace/\n{names}"));
}

/// Entries behind a workspace's folder, which every archive has.
fn behind_workspace(entries: Vec<Fixture>) -> Vec<Fixture> {
    std::iter::once(folder("workspace/")).chain(entries).collect()
}

#[test]
fn an_honest_archive_is_taken_and_measured() {
    let deep = format!("workspace/{}", "d/".repeat(80));
    let entries = [
        folder("volumes/"),
        folder("volumes/data/"),
        file("volumes/data/a", "12345"),
        hard("volumes/data/b", "volumes/data/a"),
        folder("workspace/"),
        file("workspace/a b", "x"),
        link("workspace/venv", "/usr/bin/python3"),
        link("workspace/up", "../../.."),
        link("workspace/self", "self"),
        hard("workspace/c", "workspace/a b"),
        entry(b'6', "workspace/fifo", ""),
        pax(&[("path", &deep), ("mtime", "1.5")]),
        folder(&deep[..99]),
        file(b"workspace/bad\xff\nname", ""),
    ];
    let (written, tar) = rewritten(&entries).unwrap();
    // Two folders and a hard link without data, and a file with a block of it.
    assert_eq!(written.volumes_bytes, 5 * 512);
    assert_eq!(written.files, 13);
    assert!(!written.needs_gnu_tar, "long names are as every tar has them");
    assert_eq!(listed(&tar).lines().filter(|line| *line == deep).count(), 1);
    let attributed =
        behind_workspace(vec![pax(&[("SCHILY.xattr.user.a", "1\n2")]), file("workspace/x", "")]);
    assert!(rewritten(&attributed).unwrap().0.needs_gnu_tar);
}

#[test]
fn names_that_lead_outside_are_refused() {
    for (name, why) in [
        ("/etc/passwd", "absolute"),
        ("workspace/../../etc/passwd", "upwards"),
        ("./workspace/../workspace/x", "upwards"),
        ("../workspace/x", "upwards"),
        ("workspace/..", "upwards"),
        ("etc/passwd", "neither in workspace/ nor in volumes/"),
        ("workspacex/a", "neither in workspace/ nor in volumes/"),
        ("manifest.json", "neither in workspace/ nor in volumes/"),
    ] {
        let plain = file("workspace/x", "x");
        refused(&behind_workspace(vec![file(name, "x")]), why);
        refused(&behind_workspace(vec![pax(&[("path", name)]), plain.clone()]), why);
        refused(&behind_workspace(vec![long(b'L', name), plain]), why);
        let sparse = pax(&[("GNU.sparse.name", name)]);
        refused(&behind_workspace(vec![sparse, file("workspace/GNUSparseFile.1/x", "x")]), why);
        // For who does not know the extension only: nobody reads it so any more.
        harmless(vec![pax(&[("path", "workspace/x")]), file(name, "x")], "workspace/x\n");
    }
    refused(&[folder("workspace/"), file("", "x")], "no name");
    refused(&[link("workspace", "/etc"), file("workspace/passwd", "x")], "no folder");
    let zero = behind_workspace(vec![long(b'L', "workspace/x\0y"), file("workspace/x", "")]);
    refused(&zero, "zero byte");
}

#[test]
fn volumes_are_those_of_the_manifest_and_come_first() {
    refused(&[folder("volumes/"), file("volumes/x", ""), folder("workspace/")], "no volume");
    refused(&[folder("volumes/"), folder("workspace/")], "no volume");
    refused(&[folder("volumes/other/"), folder("workspace/")], "no volume");
    refused(&[link("volumes", "/etc"), folder("workspace/")], "no volume");
    refused(&[link("volumes/data", "/etc"), folder("workspace/")], "no volume");
    refused(&[folder("workspace/"), file("volumes/data/x", "")], "after the workspace");
    refused(&[folder("volumes/"), folder("volumes/data/")], "no workspace");
    let without = tar(&[folder("volumes/"), folder("workspace/")]);
    let promise = Promise { volumes: vec!["data".to_owned()], ..promise(&without) };
    let told = rewritten_in(&without, &promise, usize::MAX).unwrap_err();
    assert!(told.contains("the volume data is not in it"), "{told}");
}

#[test]
fn what_no_host_can_make_is_refused() {
    let behind = |extension, entry| rewritten(&behind_workspace(vec![extension, entry]));
    let named = |name: &str| behind(pax(&[("path", name)]), file("workspace/x", ""));
    let too_long = "longer than a name on a host";
    let part = |length: usize| format!("workspace/{}/a", "p".repeat(length));
    assert!(named(&part(255)).is_ok());
    assert!(named(&part(256)).unwrap_err().contains(too_long));
    // 10 bytes and 4085.
    let deep = |rest: usize| format!("workspace/{}{}", "d/".repeat(2000), "e".repeat(rest));
    assert!(named(&deep(85)).is_ok());
    assert!(named(&deep(86)).unwrap_err().contains(too_long));
    let points = |target: &str| behind(pax(&[("linkpath", target)]), link("workspace/l", "x"));
    assert!(points(&"../".repeat(1365)).is_ok());
    assert!(points(&"../".repeat(1366)).unwrap_err().contains("more than a host can keep"));
    refused(&behind_workspace(vec![link("workspace/l", "")]), "links to nothing");
    let owned = |uid: &str| behind(pax(&[("uid", uid)]), file("workspace/x", ""));
    assert!(owned("4294967294").is_ok());
    for (nobody, why) in [
        ("4294967295", "an owner that no host can have"),
        ("8589934592", "an owner that no host can have"),
        ("-1", "a uid that is none"),
        ("x", "a uid that is none"),
    ] {
        assert!(owned(nobody).unwrap_err().contains(why), "{nobody}");
    }
    let in_header = |uid: u64| {
        let mut header = file("workspace/x", "").header();
        // GNU's way to say what octal digits cannot.
        header.set_uid(uid);
        header.set_cksum();
        let tar = tar_of_blocks(&[header.as_bytes()]);
        rewritten_in(&tar, &promise(&tar), usize::MAX)
    };
    assert!(in_header(4_294_967_294).is_ok());
    assert!(in_header(1 << 33).unwrap_err().contains("an owner that no host can have"));
}

#[test]
fn a_size_near_the_end_of_numbers_is_refused() {
    for size in [[0xff; 8], [0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]] {
        let mut header = file("workspace/x", "").header();
        // GNU's way to say what octal digits cannot.
        header.as_old_mut().size = [[0x80, 0, 0, 0].as_slice(), &size].concat().try_into().unwrap();
        header.set_cksum();
        let tar = tar_of_blocks(&[header.as_bytes()]);
        let told = rewritten_in(&tar, &promise(&tar), usize::MAX).unwrap_err();
        assert!(told.contains("larger than the archive") || told == "size overflow", "{told}");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let through = |name: &str| behind_workspace(vec![link("workspace/l", "/etc"), file(name, "x")]);
    refused(&through("workspace/l/passwd"), "through a link");
    refused(&through("workspace//./l/passwd"), "through a link");
    refused(&through("workspace/l"), "comes again");
    let again = behind_workspace(vec![link("workspace/l", "/etc"), folder("workspace/l/")]);
    refused(&again, "comes again");
    // By another name of the link.
    let by_another = behind_workspace(vec![
        link("workspace/l", "/etc"),
        hard("workspace/h", "workspace/l"),
        file("workspace/h/x", ""),
    ]);
    refused(&by_another, "through a link");
    let in_volume = [
        folder("volumes/data/"),
        link("volumes/data/l", "/"),
        file("volumes/data/l/x", ""),
        folder("workspace/"),
    ];
    refused(&in_volume, "through a link");
    // By a name that only some would have seen.
    harmless(
        vec![
            link("workspace/l", "/etc"),
            pax(&[("path", "workspace/x")]),
            file("workspace/l/passwd", "x"),
        ],
        "workspace/l\nworkspace/x\n",
    );
}

#[test]
fn a_name_is_written_in_one_way() {
    for name in ["./workspace/x", "workspace//x", "workspace/./x", "workspace/x/."] {
        harmless(vec![file(name, "x")], "workspace/x\n");
        harmless(vec![pax(&[("path", name)]), file("workspace/y", "x")], "workspace/x\n");
        harmless(
            vec![file("workspace/x", "x"), hard("workspace/h", name)],
            "workspace/x\nworkspace/h\n",
        );
    }
    harmless(vec![folder("./workspace/")], "workspace/\n");
    let (_, tar) =
        rewritten(&[folder("volumes/data"), file("volumes/data//x", ""), folder("workspace")])
            .unwrap();
    assert_eq!(listed(&tar), "volumes/data/\nvolumes/data/x\nworkspace/\n");
    // One that is cut off may end anywhere.
    harmless(
        vec![pax(&[("path", "workspace/d/.git")]), file("workspace/d/.", "x")],
        "workspace/d/.git\n",
    );
}

#[test]
fn what_unpacking_would_pass_over_or_stop_at_is_refused() {
    let twice = |entries: Vec<Fixture>, why: &str| refused(&behind_workspace(entries), why);
    twice(vec![file("workspace/a", "x"), folder("workspace/a/")], "a folder and a file");
    twice(vec![folder("workspace/a/"), file("workspace/a", "x")], "a folder and a file");
    twice(vec![file("workspace/a/b", "x"), file("workspace/a", "x")], "a folder and a file");
    twice(vec![file("workspace/a", "x"), file("workspace/a/b", "x")], "no folder there");
    twice(vec![folder("workspace/a/"), link("workspace/a", "b")], "a folder and a file");
    twice(vec![entry(b'6', "workspace/a", ""), file("workspace/a/b", "x")], "no folder there");
    twice(vec![file("workspace/a", "x"), file("workspace/a", "y")], "twice");
    twice(vec![file("workspace/a", "x"), file("workspace//a", "y")], "twice");
    twice(vec![file("workspace/a", "x"), link("workspace/a", "b")], "twice");
    refused(&[file("workspace", "x")], "no folder");
    refused(&[file("workspace", "x"), file("workspace/a", "x")], "no folder");

    let late = "does not come before";
    twice(vec![hard("workspace/h", "workspace/later"), file("workspace/later", "x")], late);
    twice(vec![hard("workspace/h", "workspace/absent")], late);
    twice(vec![hard("workspace/h", "workspace/h")], late);
    twice(vec![folder("workspace/d/"), hard("workspace/h", "workspace/d")], late);

    let fine = behind_workspace(vec![
        folder("workspace/"),
        folder("workspace/a/"),
        folder("workspace/a"),
        file("workspace/A", ""),
        file("workspace/b/c", ""),
        folder("workspace/b/"),
    ]);
    assert_eq!(rewritten(&fine).unwrap().0.files, 7);
}

#[test]
fn a_hard_link_stays_in_its_tree() {
    for target in
        ["/etc/passwd", "../x", "workspace/../../x", "volumes/data/x", "etc/x", "workspace", ""]
    {
        let why = if target.is_empty() { "links to nothing" } else { "outside" };
        refused(&behind_workspace(vec![hard("workspace/h", target)]), why);
    }
    for extension in [pax(&[("linkpath", "/etc/passwd")]), long(b'K', "/etc/passwd")] {
        let said = vec![file("workspace/x", ""), extension, hard("workspace/h", "workspace/x")];
        refused(&behind_workspace(said), "outside");
    }
    let through = behind_workspace(vec![
        link("workspace/l", "/etc"),
        hard("workspace/h", "workspace/l/passwd"),
    ]);
    refused(&through, "through a link");
    let between =
        [folder("volumes/data/"), hard("volumes/data/h", "workspace/x"), folder("workspace/")];
    refused(&between, "outside");
}

#[test]
fn long_links_that_share_their_beginning_are_two() {
    let long = |end: &str| format!("workspace/{}/{end}", "d".repeat(120));
    let entries = vec![
        pax(&[("path", &long("a"))]),
        link(&long("a")[..100], "x"),
        pax(&[("path", &long("b"))]),
        link(&long("b")[..100], "x"),
    ];
    harmless(entries, &format!("{}\n{}\n", long("a"), long("b")));
}

#[test]
fn devices_and_what_is_not_known_are_refused() {
    refused(&behind_workspace(vec![entry(b'3', "workspace/null", "")]), "device");
    refused(&behind_workspace(vec![entry(b'4', "workspace/sda", "")]), "device");
    for kind in [b'7', b'g', b'D', b'M', b'V', b'N', b'!'] {
        refused(&behind_workspace(vec![entry(kind, "workspace/x", "")]), "of a kind");
    }
    refused(&behind_workspace(vec![file("workspace/x/", "data")]), "named as a folder");
    let fat = Fixture { data: b"x".to_vec(), ..link("workspace/l", "x") };
    refused(&behind_workspace(vec![fat]), "has content");
    let charset = pax(&[("hdrcharset", "BINARY")]);
    refused(&behind_workspace(vec![charset, file("workspace/x", "")]), "how names are written");
}

#[test]
fn two_readings_of_a_size_are_refused() {
    // To who knows the extension, the second file is data of the first; to who does not, it is a file.
    let mut inner = Vec::new();
    file("workspace/../../x", "").write(&mut inner);
    let two = vec![pax(&[("size", "0")]), file("workspace/a", inner)];
    refused(&behind_workspace(two), "do not agree");
    let none = vec![pax(&[("size", "many")]), file("workspace/a", "")];
    refused(&behind_workspace(none), "a size that is none");
    harmless(vec![pax(&[("size", "1")]), file("workspace/a", "x")], "workspace/a\n");
}

/// The header says it then in GNU's way, which tar reads; the content is followed no further here than it is given.
#[test]
fn a_size_that_no_header_has_room_for_is_taken_from_its_extension() {
    let mut tar = Vec::new();
    folder("workspace/").write(&mut tar);
    pax(&[("size", "9000000000"), ("mtime", "1.5")]).write(&mut tar);
    file("workspace/x", "").write(&mut tar);
    tar.resize(tar.len() + (1 << 20), b'x');
    let promise = Promise { content_bytes: 9_000_010_000, ..promise(&tar) };
    let mut out = Vec::new();
    let told = rewrite(tar.as_slice(), &mut out, &promise).unwrap_err().to_string();
    assert!(told.contains("it ends within workspace/x"), "{told}");
    let list = "tar --utc --full-time -tvf - 2>/dev/null || :";
    let listed = said(&["sh", "-c", list], &out).unwrap();
    assert!(listed.contains(" 9000000000 1970-01-01 00:00:01.5 workspace/x\n"), "{listed}");
}

#[test]
fn what_does_not_keep_its_promise_is_refused() {
    let good = tar(&[folder("workspace/"), file("workspace/a", "x")]);
    let told = |tar: &[u8], promise: Promise| rewritten_in(tar, &promise, 1024).unwrap_err();
    let kept = promise(&good);
    let short = Promise { content_bytes: kept.content_bytes - 512, ..kept.clone() };
    assert!(told(&good, short).contains("more in it"));
    assert!(told(&good[..512], kept.clone()).contains("ends after 512 of"));
    assert!(told(&good, Promise { sha256: "0".repeat(64), ..kept.clone() }).contains("SHA-256"));
    assert!(told(&good, Promise { files: Some(1), ..kept.clone() }).contains("2 entries"));
    assert!(rewritten_in(&good, &Promise { files: Some(2), ..kept }, 1024).is_ok());
    let mut behind = good.clone();
    behind.extend_from_slice(good.as_slice());
    assert!(told(&behind, promise(&behind)).contains("follows its end"));
    let mut damaged = good.clone();
    damaged[3] ^= 1;
    assert!(told(&damaged, promise(&damaged)).contains("checksum mismatch"));
    // Cut within a header, a file's data, an extension, and between an extension and its entry.
    let cut = |at: usize| told(&good[..at], promise(&good[..at]));
    assert!(cut(700).contains("entire block"), "{}", cut(700));
    let mut fat = Vec::new();
    folder("workspace/").write(&mut fat);
    file("workspace/a", vec![b'x'; 1024]).write(&mut fat);
    assert!(told(&fat[..1500], promise(&fat)).contains("it ends within workspace/a"));
    let mut half = Vec::new();
    folder("workspace/").write(&mut half);
    pax(&[("path", "workspace/x")]).write(&mut half);
    assert!(told(&half[..1030], promise(&half)).contains("within an extension"));
    assert!(told(&half, promise(&half)).contains("two parts of a header"));
    half.resize(half.len() + 1024, 0);
    assert!(told(&half, promise(&half)).contains("two parts of a header"));
}

#[test]
fn a_bomb_ends_at_its_first_byte_too_many() {
    let head = folder("workspace/").header();
    let bomb = head.as_bytes().as_slice().chain(io::repeat(0));
    let promise = Promise { content_bytes: 2048, ..Promise::default() };
    let told = rewrite(bomb, io::sink(), &promise).unwrap_err().to_string();
    assert!(told.contains("more in it than the 2048 bytes"), "{told}");
}

#[test]
fn an_extension_is_bounded_and_sound() {
    let mut header = pax(&[("path", "x")]).header();
    header.set_size(1 << 30);
    header.set_cksum();
    let large = tar_of_blocks(&[header.as_bytes()]);
    assert!(rewritten_in(&large, &promise(&large), 512).unwrap_err().contains("an extension of"));
    for data in ["9 path", "99 path=x\n", "x path=y\n", "0 =\n"] {
        let broken = file("x", data).of_kind(b'x');
        refused(&behind_workspace(vec![broken, file("workspace/x", "")]), "damaged");
    }
    let two = vec![pax(&[("mtime", "1")]), pax(&[("mtime", "1")]), file("workspace/x", "")];
    refused(&behind_workspace(two), "two extensions");
    // What the library would have taken for a record of its own.
    let inside = pax(&[("SCHILY.xattr.user.a", "1\n20 path=workspace/../z\n")]);
    let (_, tar) = rewritten(&behind_workspace(vec![inside, file("workspace/x", "")])).unwrap();
    assert!(tar.windows(17).any(|window| window == b"path=workspace/.."), "it is data, and kept");
}

#[test]
fn a_sparse_file_is_one_as_ours_are() {
    for older in [
        vec![("GNU.sparse.map", "0,1")],
        vec![("GNU.sparse.numblocks", "1")],
        vec![("GNU.sparse.major", "2")],
        vec![("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0")],
        vec![("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.map", "0,1")],
    ] {
        let entries = behind_workspace(vec![pax(&older), file("workspace/x", "x")]);
        refused(&entries, "sparse in a way that no snapshot is");
    }
    refused(&behind_workspace(vec![entry(b'S', "workspace/x", "")]), "of a kind");
}

#[test]
fn a_map_of_holes_says_what_is_stored() {
    for (real, map, bytes) in [
        ("512", "1\n0\n512\n", 512),
        ("100000", "3\n0\n1024\n4096\n512\n100000\n0\n", 1536),
        ("100000", "2\n0\n512\n99000\n1000\n", 1512),
        ("100000", "3\n0\n512\n99000\n1000\n100000\n0\n", 1512),
        ("100000", "1\n100000\n0\n", 0),
        ("1152921504606846976", "1\n1152921504606846976\n0\n", 0),
        ("0", "0\n", 0),
        // One that ends with its block, and one that takes two.
        ("512", &format!("1\n{}\n512\n", "0".repeat(19)), 512),
        ("300000", &many(100), 51200),
    ] {
        let entries = behind_workspace(holed(real, map, bytes));
        let (written, tar) = rewritten(&entries).unwrap_or_else(|why| panic!("{map}: {why}"));
        assert!(written.needs_gnu_tar);
        let names: BTreeSet<String> = listed_by_gnu(&tar).lines().map(str::to_owned).collect();
        assert_eq!(names, ["workspace/", "workspace/s"].map(str::to_owned).into());
        // No file system of ours has room for the largest.
        if real.len() < 10 {
            assert_eq!(made(&tar), names, "{map}");
        }
    }
    for (real, map, bytes, why) in [
        ("512", "1\n0\n512\n", 0, "does not say what is stored"),
        ("512", "1\n0\n512\n", 1024, "does not say what is stored"),
        ("512", "1\n0\n511\n", 512, "does not say what is stored"),
        ("512", "0\n", 512, "does not say what is stored"),
        // tar pads each to a block: three of these are three blocks, and three bytes.
        ("512", "3\n0\n1\n2\n1\n4\n1\n", 3, "behind one that is no whole blocks"),
        ("512", "2\n0\n0\n0\n512\n", 512, "behind one that is no whole blocks"),
        ("512", "2\n512\n0\n512\n0\n", 0, "behind one that is no whole blocks"),
        ("2048", "2\n512\n512\n0\n512\n", 1024, "overlap"),
        ("2048", "2\n0\n1024\n512\n512\n", 1536, "overlap"),
        ("511", "1\n0\n512\n", 512, "behind its end"),
        ("512", "1\n9223372036854775807\n512\n", 512, "behind its end"),
        ("512", "1\n0\n9223372036854775808\n", 512, "a number that is none"),
        ("512", "1\n0\n99999999999999999999\n", 512, "a number that is none"),
        ("512", "4000000000\n0\n512\n", 512, "more regions than it has room for"),
        ("512", "256\n", 512, "a number that is none"),
        ("512", "what\n", 512, "a number that is none"),
        ("512", "1\n+0\n512\n", 512, "a number that is none"),
        ("512", "1\n-1\n512\n", 512, "a number that is none"),
        ("512", "1\n 0\n512\n", 512, "a number that is none"),
        ("512", "\n\n\n", 512, "a number that is none"),
        ("512", "1\n0\n512\nx", 512, "is followed by something"),
        ("512", "", 0, "does not end in it"),
        ("1152921504606846977", "1\n0\n512\n", 512, "in a way that no snapshot is"),
        ("9000000000000000000", "1\n0\n512\n", 512, "in a way that no snapshot is"),
        (&"9".repeat(40), "1\n0\n512\n", 512, "in a way that no snapshot is"),
        ("-1", "1\n0\n512\n", 512, "in a way that no snapshot is"),
        ("", "1\n0\n512\n", 512, "in a way that no snapshot is"),
    ] {
        let told = rewritten(&behind_workspace(holed(real, map, bytes))).unwrap_err();
        assert!(told.contains(why), "{real} {map:?}: {told}");
    }
    for other in [folder("workspace/d/"), link("workspace/l", "x"), entry(b'6', "workspace/f", "")]
    {
        let entries = vec![holed("512", "1\n0\n512\n", 512).remove(0), other];
        refused(&behind_workspace(entries), "has holes and is no file");
    }
}

/// A map of so many regions.
fn many(count: usize) -> String {
    let regions: Vec<String> = (0..count).map(|at| format!("{}\n512\n", at * 1024)).collect();
    let regions = regions.concat();
    format!("{count}\n{regions}")
}

/// A map that says too much makes tar take the next header for data, and that one's content for members.
#[test]
fn no_map_hides_members_in_a_file() {
    let mut hidden = Vec::new();
    file("workspace/hidden", "x").write(&mut hidden);
    entry(b'6', "workspace/fifo", "").write(&mut hidden);
    let bytes_of_one = "2\n0\n1\n2\n1\n";
    for (map, bytes, why) in [
        ("1\n0\n512\n", 0, "does not say what is stored"),
        (bytes_of_one, 2, "behind one that is no whole blocks"),
    ] {
        let mut entries = behind_workspace(holed("512", map, bytes));
        entries.push(file("workspace/B", &hidden));
        assert!(made(&tar(&entries)).contains("workspace/hidden"), "{map}: it is one");
        refused(&entries, why);
    }
}

#[test]
fn a_time_is_one_that_a_host_can_keep() {
    let keeps = |records: &[(&str, &str)], field: Option<[u8; 12]>| {
        let mut header = file("workspace/x", "").header();
        if let Some(field) = field {
            header.as_old_mut().mtime = field;
            header.set_cksum();
        }
        let mut extension = Vec::new();
        if !records.is_empty() {
            pax(records).write(&mut extension);
        }
        let tar = tar_of_blocks(&[&extension, header.as_bytes()]);
        let (_, anew) = rewritten_in(&tar, &promise(&tar), usize::MAX)?;
        assert_eq!(rewritten_in(&anew, &promise(&anew), 511).unwrap().1, anew);
        let text = said(&["tar", "--utc", "--full-time", "-tvf", "-"], &anew).unwrap();
        let words: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        Ok::<_, String>(words[3..words.len() - 1].join(" "))
    };
    let record = |value: &str| keeps(&[("mtime", value)], None);
    let field = |field: &[u8; 12]| keeps(&[], Some(*field));
    assert_eq!(record("1.5").unwrap(), "1970-01-01 00:00:01.5");
    assert_eq!(record("1.1234567891").unwrap(), "1970-01-01 00:00:01.123456789");
    assert_eq!(record("-14182940").unwrap(), "1969-07-20 20:17:40");
    assert_eq!(record("99999999999").unwrap(), "5138-11-16 09:46:39");
    assert!(record(&i64::MAX.to_string()).is_ok());
    assert_eq!(field(b"00000000021\0").unwrap(), "1970-01-01 00:00:17");
    assert_eq!(field(b"         21 ").unwrap(), "1970-01-01 00:00:17");
    assert_eq!(field(&[0; 12]).unwrap(), "1970-01-01 00:00:00");
    assert_eq!(field(&[0xff; 12]).unwrap(), "1969-12-31 23:59:59");
    assert_eq!(field(b"\x80\0\0\0\0\0\0\x17\x48\x76\xe7\xff").unwrap(), "5138-11-16 09:46:39");
    // What the header says is not asked where a record says it.
    assert_eq!(keeps(&[("mtime", "17")], Some(*b"many seconds")).unwrap(), "1970-01-01 00:00:17");
    let why = "a time that no host can keep";
    for value in [
        &"9".repeat(400),
        "9223372036854775808",
        "-9223372036854775808",
        "",
        "-",
        "1e3",
        "+1",
        "1.-5",
        "1.5.5",
        "x",
    ] {
        assert!(record(value).unwrap_err().contains(why), "{value}");
    }
    for bytes in [
        b"+0000000017\0",
        b"-0000000017\0",
        b"00000000018\0",
        b"0000 000017\0",
        b"\xc2\xa00000017\0\0\0",
        b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\0\0\x01\0\0\0\0\0\0\0\0",
        b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0",
    ] {
        assert!(field(bytes).unwrap_err().contains(why), "{bytes:?}");
    }
}

#[test]
fn a_zero_byte_is_in_values_of_attributes_alone() {
    let with = |key, value| behind_workspace(vec![pax(&[(key, value)]), file("workspace/x", "")]);
    for (key, value) in [
        ("SCHILY.xattr.user.a\0b", "1"),
        ("SCHILY.acl.access", "a\0b"),
        ("RHT.security.selinux", "a\0b"),
        ("uname", "a\0b"),
        ("path", "workspace/a\0b"),
    ] {
        refused(&with(key, value), "a zero byte in it");
    }
    let (_, tar) = rewritten(&with("SCHILY.xattr.user.a", "1\x002")).unwrap();
    assert!(tar.windows(4).any(|window| window == b"1\x002\n"));
}

/// Each beginning of a name is a place: these have 200,000, and each of their bytes is looked at once for it.
#[test]
fn names_of_many_parts_are_judged_in_one_pass() {
    let deep = format!("workspace/{}", "a/".repeat(2036));
    let mut judge = Judge::new(&[]);
    for number in 0..50 {
        let name = format!("{deep}{number:04}");
        assert!(judge.admit(name.as_bytes(), EntryType::Regular, b"").is_ok());
        let link = format!("{deep}l{number:04}");
        assert!(judge.admit(link.as_bytes(), EntryType::Link, name.as_bytes()).is_ok());
    }
}

/// A tree with all that tar can keep, unpacked by it from what was written anew.
#[test]
fn what_tar_itself_writes_comes_out_as_it_was() {
    let run = |program: &mut Command| {
        let output = program.output().unwrap();
        assert!(output.status.success(), "{program:?}: {output:?}");
        output.stdout
    };
    let dir = tempfile::tempdir().unwrap();
    let script = r#"
        mkdir -p "workspace/$1" && echo x >"workspace/$1/f" && ln "workspace/$1/f" workspace/hard
        ln -s "$2" workspace/link && printf 'a\nb' >"workspace/line
break" && mkfifo workspace/fifo && chmod 4750 "workspace/$1/f" && touch -d 1969-07-20T20:17:40.5Z workspace/hard
        truncate -s 8M workspace/holes && printf y | dd of=workspace/holes bs=1 seek=700000 conv=notrunc 2>/dev/null
        for at in 1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31; do
            printf z | dd of=workspace/many bs=65536 seek=$at conv=notrunc 2>/dev/null
        done
        setfattr -n user.a -v "1
2" workspace/line* 2>/dev/null || :"#;
    let mut fill = Command::new("sh");
    fill.current_dir(dir.path()).args(["-c", script, "sh", &"d".repeat(120), &"/".repeat(130)]);
    run(&mut fill);
    for (format, options) in [
        ("gnu", &[] as &[&str]),
        ("pax", &["--sparse", "--xattrs", "--pax-option=delete=atime,delete=ctime"]),
        ("pax", &[]),
        ("ustar", &["--exclude=ddd*", "--exclude=link", "--exclude=hard"]),
    ] {
        let mut make = Command::new("tar");
        make.current_dir(dir.path()).arg(format!("--format={format}")).args(options);
        let tar = run(make.args(["-cf", "-", "workspace"]));
        let mut comparison = Command::new("tar");
        comparison.current_dir(dir.path()).args(["--xattrs", "--compare", "-f", "anew.tar"]);
        let (written, anew) = rewritten_in(&tar, &promise(&tar), 4096)
            .unwrap_or_else(|refusal| panic!("{format}: {refusal}"));
        std::fs::write(dir.path().join("anew.tar"), &anew).unwrap();
        run(&mut comparison);
        assert_eq!(written.files, if format == "ustar" { 5 } else { 9 }, "{format}");
        assert_eq!(written.needs_gnu_tar, options.contains(&"--sparse"), "{format}");
        assert_eq!(written.volumes_bytes, 0);
        let again = rewritten_in(&anew, &promise(&anew), usize::MAX).unwrap();
        assert!(again.1 == anew, "{format}: what is written is read the same");
    }
}
