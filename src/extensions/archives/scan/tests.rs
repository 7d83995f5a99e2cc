use super::*;

/// One entry as a tar has it, by hand: nothing here stops at what an honest archive would not say.
struct Entry {
    name: Vec<u8>,
    kind: u8,
    target: Vec<u8>,
    data: Vec<u8>,
}

fn entry(kind: u8, name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Entry {
    Entry { name: name.as_ref().to_vec(), kind, target: target.as_ref().to_vec(), data: Vec::new() }
}

fn file(name: impl AsRef<[u8]>, data: &str) -> Entry {
    Entry { data: data.as_bytes().to_vec(), ..entry(b'0', name, "") }
}

fn folder(name: &str) -> Entry {
    entry(b'5', name, "")
}

fn link(name: &str, target: &str) -> Entry {
    entry(b'2', name, target)
}

fn hard(name: &str, target: &str) -> Entry {
    entry(b'1', name, target)
}

/// The extensions of the entry behind it.
fn pax(records: &[(&str, &str)]) -> Entry {
    let mut data = String::new();
    for (key, value) in records {
        let mut length = key.len() + value.len() + 3;
        while length.to_string().len() + key.len() + value.len() + 3 != length {
            length = length.to_string().len() + key.len() + value.len() + 3;
        }
        let _ = std::fmt::Write::write_fmt(&mut data, format_args!("{length} {key}={value}\n"));
    }
    Entry { data: data.into_bytes(), ..entry(b'x', "PaxHeaders/x", "") }
}

impl Entry {
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

fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Vec::new();
    for entry in entries {
        entry.write(&mut tar);
    }
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

/// In pieces of so many bytes.
fn scan_in(tar: &[u8], promise: Promise, piece: usize) -> Result<Scanned, Refusal> {
    let mut scan = Scan::new(promise);
    tar.chunks(piece).try_for_each(|piece| scan.push(piece))?;
    scan.finish()
}

fn scan(entries: &[Entry]) -> Result<Scanned, String> {
    let tar = tar(entries);
    let has_volume = entries.iter().any(|entry| entry.name.starts_with(b"volumes/data"));
    let volumes = if has_volume { vec!["data".to_owned()] } else { Vec::new() };
    let promise = |tar: &[u8]| Promise { volumes: volumes.clone(), ..promise(tar) };
    let whole = scan_in(&tar, promise(&tar), usize::MAX).map_err(|refusal| refusal.to_string());
    for piece in [1, 511, 513] {
        assert_eq!(
            scan_in(&tar, promise(&tar), piece).map_err(|refusal| refusal.to_string()),
            whole
        );
    }
    whole
}

#[track_caller]
fn refused(entries: &[Entry], why: &str) {
    let told = scan(entries).expect_err("it is refused");
    assert!(told.contains(why), "{told}");
}

/// What stands in front of the entry that is judged.
fn behind_workspace(entries: Vec<Entry>) -> Vec<Entry> {
    std::iter::once(folder("workspace/")).chain(entries).collect()
}

#[test]
fn an_honest_archive_is_taken_and_measured() {
    let long = format!("workspace/{}", "d/".repeat(80));
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
        pax(&[("path", &long), ("mtime", "1.5")]),
        folder(&long[..99]),
        file(b"workspace/bad\xff\nname", ""),
    ];
    let scanned = scan(&entries).unwrap();
    // Two folders and a hard link without data, and a file with a block of it.
    assert_eq!(scanned.volumes_bytes, 5 * 512);
    assert!(scanned.needs_gnu_tar);
    assert_eq!(scanned.files, 13);
    assert!(!scan(&[folder("workspace/"), file("workspace/x", "")]).unwrap().needs_gnu_tar);
}

#[test]
fn names_that_lead_outside_are_refused() {
    for (name, why) in [
        ("/etc/passwd", "absolute"),
        ("workspace/../../etc/passwd", "upwards"),
        ("../workspace/x", "upwards"),
        ("workspace/..", "upwards"),
        ("etc/passwd", "neither in workspace/ nor in volumes/"),
        ("workspacex/a", "neither in workspace/ nor in volumes/"),
        ("manifest.json", "neither in workspace/ nor in volumes/"),
    ] {
        refused(&behind_workspace(vec![file(name, "x")]), why);
        // The name that counts is in an extension, and in the header only for who does not know it; and the other way.
        refused(&behind_workspace(vec![pax(&[("path", name)]), file("workspace/x", "x")]), why);
        refused(&behind_workspace(vec![pax(&[("path", "workspace/x")]), file(name, "x")]), why);
        let longer =
            Entry { data: format!("{name}\0").into_bytes(), ..entry(b'L', "././@LongLink", "") };
        refused(&behind_workspace(vec![longer, file("workspace/x", "x")]), why);
        let sparse = pax(&[("GNU.sparse.major", "1"), ("GNU.sparse.name", name)]);
        refused(&behind_workspace(vec![sparse, file("workspace/GNUSparseFile.1/x", "x")]), why);
    }
    refused(&[folder("workspace/"), file("", "x")], "no name");
    refused(&[link("workspace", "/etc"), file("workspace/passwd", "x")], "no folder");
}

#[test]
fn volumes_are_those_of_the_manifest_and_come_first() {
    refused(&[folder("volumes/"), file("volumes/x", ""), folder("workspace/")], "no volume");
    refused(&[folder("volumes/other/"), folder("workspace/")], "no volume");
    refused(&[link("volumes", "/etc"), folder("workspace/")], "no volume");
    refused(&[link("volumes/data", "/etc"), folder("workspace/")], "no volume");
    refused(&[folder("workspace/"), file("volumes/data/x", "")], "after the workspace");
    refused(&[folder("volumes/"), folder("volumes/data/")], "no workspace");
    let without = tar(&[folder("volumes/"), folder("workspace/")]);
    let promise = Promise { volumes: vec!["data".to_owned()], ..promise(&without) };
    let told = scan_in(&without, promise, usize::MAX).unwrap_err().to_string();
    assert!(told.contains("the volume data is not in it"), "{told}");
}

#[test]
fn what_no_host_can_make_is_refused() {
    let named =
        |name: &str| scan(&behind_workspace(vec![pax(&[("path", name)]), file("workspace/x", "")]));
    let part = |length: usize| "p".repeat(length);
    assert!(named(&format!("workspace/{}/a", part(255))).is_ok());
    let told = named(&format!("workspace/{}/a", part(256))).unwrap_err();
    assert!(told.contains("longer than a name on a host"), "{told}");
    // 10 bytes and 4085.
    let deep = |rest: usize| format!("workspace/{}{}", "d/".repeat(2000), "e".repeat(rest));
    assert!(named(&deep(85)).is_ok());
    let told = named(&deep(86)).unwrap_err();
    assert!(told.contains("longer than a name on a host"), "{told}");
    let points = |target: &str| {
        scan(&behind_workspace(vec![pax(&[("linkpath", target)]), link("workspace/l", "x")]))
    };
    assert!(points(&"../".repeat(1365)).is_ok());
    let told = points(&"../".repeat(1366)).unwrap_err();
    assert!(told.contains("more than a host can keep"), "{told}");
    refused(&behind_workspace(vec![link("workspace/l", "")]), "links to nothing");
    let owned =
        |uid: &str| scan(&behind_workspace(vec![pax(&[("uid", uid)]), file("workspace/x", "")]));
    assert!(owned("4294967294").is_ok());
    for nobody in ["4294967295", "8589934592", "-1", "x"] {
        let told = owned(nobody).unwrap_err();
        assert!(told.contains("an owner that no host can have"), "{nobody}: {told}");
    }
}

#[test]
fn an_owner_that_no_host_can_have_is_refused() {
    let of = |uid: u64| {
        let mut header = file("workspace/x", "").header();
        // GNU's way to say what octal digits cannot.
        header.set_uid(uid);
        header.set_cksum();
        let mut bytes = tar(&[folder("workspace/")]);
        bytes.truncate(BLOCK);
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + 2 * BLOCK, 0);
        scan_in(&bytes, promise(&bytes), usize::MAX).map_err(|refusal| refusal.to_string())
    };
    assert!(of(4_294_967_294).is_ok());
    let told = of(1 << 33).unwrap_err();
    assert!(told.contains("belongs to nobody"), "{told}");
}

#[test]
fn a_size_near_the_end_of_numbers_is_refused() {
    let mut header = file("workspace/x", "").header();
    // GNU's way to say what octal digits cannot.
    header.as_old_mut().size = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    header.set_cksum();
    let mut tar = tar(&[folder("workspace/")]);
    tar.truncate(512);
    tar.extend_from_slice(header.as_bytes());
    tar.resize(tar.len() + 2 * BLOCK, 0);
    let told = scan_in(&tar, promise(&tar), usize::MAX).unwrap_err().to_string();
    assert!(told.contains("larger than the archive"), "{told}");
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
    // By a name that only some see.
    let hidden = behind_workspace(vec![
        link("workspace/l", "/etc"),
        pax(&[("path", "workspace/x")]),
        file("workspace/l/passwd", "x"),
    ]);
    refused(&hidden, "through a link");
    let in_volume = [
        folder("volumes/data/"),
        link("volumes/data/l", "/"),
        file("volumes/data/l/x", ""),
        folder("workspace/"),
    ];
    refused(&in_volume, "through a link");
}

#[test]
fn what_unpacking_would_pass_over_or_stop_at_is_refused() {
    let twice = |entries: Vec<Entry>, why: &str| refused(&behind_workspace(entries), why);
    for name in [
        "./workspace/x",
        "workspace//x",
        "workspace/./x",
        "workspace/x/.",
        "./workspace/../workspace/x",
    ] {
        let why = if name.contains("..") { "upwards" } else { "as no snapshot writes it" };
        twice(vec![file(name, "x")], why);
        twice(vec![pax(&[("path", name)]), file("workspace/x", "x")], why);
        twice(
            vec![file("workspace/x", "x"), hard("workspace/h", name)],
            if why == "upwards" { "outside" } else { why },
        );
    }
    refused(&[folder("./workspace/")], "as no snapshot writes it");
    refused(
        &[folder("volumes/data/"), file("volumes/data//x", ""), folder("workspace/")],
        "as no snapshot writes it",
    );
    // Only the name that counts has to be: one that is cut off may end anywhere.
    assert!(
        scan(&behind_workspace(vec![
            pax(&[("path", "workspace/d/.git")]),
            file("workspace/d/.", "x")
        ]))
        .is_ok()
    );

    twice(vec![file("workspace/a", "x"), folder("workspace/a/")], "a folder and a file");
    twice(vec![folder("workspace/a/"), file("workspace/a", "x")], "a folder and a file");
    twice(vec![file("workspace/a/b", "x"), file("workspace/a", "x")], "a folder and a file");
    twice(vec![file("workspace/a", "x"), file("workspace/a/b", "x")], "no folder there");
    twice(vec![folder("workspace/a/"), link("workspace/a", "b")], "a folder and a file");
    twice(vec![entry(b'6', "workspace/a", ""), file("workspace/a/b", "x")], "no folder there");
    twice(vec![file("workspace/a", "x"), file("workspace/a", "y")], "twice");
    twice(vec![file("workspace/a", "x"), link("workspace/a", "b")], "twice");
    refused(&[file("workspace", "x")], "no folder");
    refused(&[file("workspace", "x"), file("workspace/a", "x")], "no folder");

    twice(
        vec![hard("workspace/h", "workspace/later"), file("workspace/later", "x")],
        "does not come before",
    );
    twice(vec![hard("workspace/h", "workspace/absent")], "does not come before");
    twice(vec![hard("workspace/h", "workspace/h")], "does not come before");
    twice(vec![folder("workspace/d/"), hard("workspace/h", "workspace/d")], "does not come before");

    let fine = behind_workspace(vec![
        folder("workspace/"),
        folder("workspace/a/"),
        folder("workspace/a"),
        file("workspace/A", ""),
        file("workspace/b/c", ""),
        folder("workspace/b/"),
    ]);
    assert_eq!(scan(&fine).unwrap().files, 7);
}

#[test]
fn a_hard_link_stays_in_its_tree() {
    for target in
        ["/etc/passwd", "../x", "workspace/../../x", "volumes/data/x", "etc/x", "workspace", ""]
    {
        let why = if target.is_empty() { "links to nothing" } else { "outside" };
        refused(&behind_workspace(vec![hard("workspace/h", target)]), why);
    }
    let said = behind_workspace(vec![
        pax(&[("linkpath", "/etc/passwd")]),
        hard("workspace/h", "workspace/x"),
    ]);
    refused(&said, "outside");
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
    let entries = behind_workspace(vec![
        pax(&[("path", &long("a"))]),
        link(&long("a")[..100], "x"),
        pax(&[("path", &long("b"))]),
        link(&long("b")[..100], "x"),
    ]);
    assert_eq!(scan(&entries).unwrap().files, 3);
}

#[test]
fn devices_and_what_is_not_known_are_refused() {
    refused(&behind_workspace(vec![entry(b'3', "workspace/null", "")]), "device");
    refused(&behind_workspace(vec![entry(b'4', "workspace/sda", "")]), "device");
    for kind in [b'7', b'g', b'D', b'M', b'V', b'N', b'!'] {
        refused(&behind_workspace(vec![entry(kind, "workspace/x", "")]), "of a kind");
    }
    refused(&behind_workspace(vec![file("workspace/x/", "data")]), "named as a folder");
    let fat = Entry { data: b"x".to_vec(), ..link("workspace/l", "x") };
    refused(&behind_workspace(vec![fat]), "has content");
    refused(
        &behind_workspace(vec![pax(&[("hdrcharset", "BINARY")]), file("workspace/x", "")]),
        "how names are written",
    );
}

#[test]
fn two_readings_of_a_size_are_refused() {
    // To who knows the extension, the second file is data of the first; to who does not, it is a file.
    let mut inner = Vec::new();
    file("workspace/../../x", "").write(&mut inner);
    let two = behind_workspace(vec![
        pax(&[("size", "0")]),
        Entry { data: inner, ..file("workspace/a", "") },
    ]);
    refused(&two, "do not agree");
    refused(
        &behind_workspace(vec![pax(&[("size", "many")]), file("workspace/a", "")]),
        "a size that is none",
    );
    let same = behind_workspace(vec![pax(&[("size", "1")]), file("workspace/a", "x")]);
    assert!(scan(&same).is_ok());
}

#[test]
fn what_does_not_keep_its_promise_is_refused() {
    let good = tar(&[folder("workspace/"), file("workspace/a", "x")]);
    let told = |tar: &[u8], promise| scan_in(tar, promise, 1024).unwrap_err().to_string();
    let kept = promise(&good);
    let short = Promise { content_bytes: kept.content_bytes - 512, ..kept.clone() };
    assert!(told(&good, short).contains("more in it"));
    assert!(told(&good[..1024], kept.clone()).contains("ends after 1024 of"));
    assert!(told(&good, Promise { sha256: "0".repeat(64), ..kept.clone() }).contains("SHA-256"));
    assert!(told(&good, Promise { files: Some(1), ..kept.clone() }).contains("2 entries"));
    assert!(scan_in(&good, Promise { files: Some(2), ..kept }, 1024).is_ok());
    let mut behind = good.clone();
    behind.extend_from_slice(good.as_slice());
    assert!(told(&behind, promise(&behind)).contains("follows its end"));
    let mut damaged = good.clone();
    damaged[3] ^= 1;
    assert!(told(&damaged, promise(&damaged)).contains("damaged"));
    // Cut within a file's data, and between an extension and its entry.
    let cut = &good[..1024 + 300];
    assert!(told(cut, promise(cut)).contains("ends after"));
    let mut half = Vec::new();
    folder("workspace/").write(&mut half);
    pax(&[("path", "workspace/x")]).write(&mut half);
    assert!(told(&half, promise(&half)).contains("ends after"));
    half.resize(half.len() + 1024, 0);
    assert!(told(&half, promise(&half)).contains("two parts of a header"));
}

#[test]
fn a_bomb_ends_at_its_first_byte_too_many() {
    let mut scan = Scan::new(Promise { content_bytes: 2048, ..Promise::default() });
    let head = folder("workspace/").header();
    scan.push(head.as_bytes()).unwrap();
    let zeros = vec![0; 1 << 20];
    assert!(scan.push(&zeros).unwrap_err().to_string().contains("more in it than the 2048 bytes"));
    assert_eq!(scan.seen, 512);
}

#[test]
fn an_extension_is_bounded_and_sound() {
    let mut large = Vec::new();
    folder("workspace/").write(&mut large);
    let mut header = pax(&[("path", "x")]).header();
    header.set_size(1 << 30);
    header.set_cksum();
    large.extend_from_slice(header.as_bytes());
    assert!(
        scan_in(&large, promise(&large), 512).unwrap_err().to_string().contains("an extension of")
    );
    for data in ["9 path", "99 path=x\n", "x path=y\n", "0 =\n"] {
        let broken = Entry { data: data.as_bytes().to_vec(), ..entry(b'x', "x", "") };
        refused(&behind_workspace(vec![broken, file("workspace/x", "")]), "damaged");
    }
}

#[test]
fn what_tar_itself_writes_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = dir.path().join("workspace");
    std::fs::create_dir_all(workspace.join("d".repeat(120))).unwrap();
    std::fs::write(workspace.join("d".repeat(120)).join("f"), "x").unwrap();
    std::fs::hard_link(workspace.join("d".repeat(120)).join("f"), workspace.join("hard")).unwrap();
    std::os::unix::fs::symlink("/".repeat(130), workspace.join("link")).unwrap();
    let sparse = std::fs::File::create(workspace.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    for format in ["gnu", "pax", "ustar"] {
        let mut program = std::process::Command::new("tar");
        program.arg("-C").arg(dir.path()).arg(format!("--format={format}"));
        if format == "ustar" {
            // It has no room for such names.
            program.args(["--exclude=ddd*", "--exclude=link", "--exclude=hard"]);
        }
        if format == "ustar" {
            program.arg("--exclude=sparse");
        } else {
            program.arg("--sparse");
        }
        let output = program.args(["-cf", "-", "workspace"]).output().unwrap();
        assert!(output.status.success(), "{format}: {output:?}");
        let tar = output.stdout;
        let scanned = scan_in(&tar, promise(&tar), 4096)
            .unwrap_or_else(|refusal| panic!("{format}: {refusal}"));
        assert_eq!(scanned.files, if format == "ustar" { 1 } else { 6 }, "{format}");
        assert_eq!(scanned.volumes_bytes, 0);
    }
}
