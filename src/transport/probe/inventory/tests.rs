use super::super::lines::entries;
use super::*;

/// `id owner|- directory|- containers networks volumes`.
fn told(text: &str) -> Vec<String> {
    let found = parse(&entries(text));
    assert!(found.failed.is_empty(), "{:?}", found.failed);
    found
        .inventory
        .sandboxes
        .iter()
        .map(|item| {
            format!(
                "{} {} {} {:?} {:?} {:?}",
                item.sandbox_id.escape_debug(),
                item.owner.as_deref().unwrap_or("-"),
                item.directory.as_deref().unwrap_or("-").escape_debug(),
                item.containers,
                item.networks,
                item.volumes
            )
        })
        .collect()
}

/// A manifest as it is written, with further lines.
fn plain(id: &str, owner: &str, more: &str) -> String {
    format!(
        "{{\n  \"id\": \"{id}\",\n  \"owner\": \"{owner}\",\n{more}  \"project\": \"sbx-{id}\"\n}}"
    )
}

#[test]
fn directories_and_their_manifests() {
    let manifest = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let lines = lines.join("\n ./sbx-aa/manifest.json:");
        format!(
            "inventory=/r\ndir=sbx-aa\nmanifest=sbx-aa\nmanifests=\n ./sbx-aa/manifest.json:{lines}\n\n"
        )
    };
    for (said, expected) in [
        (manifest(&plain("aa", "own-1", "")), "aa own-1 /r/sbx-aa [] [] []"),
        (
            manifest(&plain("aa", "own-1", "  \"expires_at\": null,\n")),
            "aa own-1 /r/sbx-aa [] [] []",
        ),
        // Not as every other verb reads it, by lines: nobody's, until it says one thing to all of them.
        (manifest(r#"{"id":"aa","owner":"own-1"}"#), "aa - /r/sbx-aa [] [] []"),
        (manifest(&plain("aa", "own-1", "  \"owner\": \"own-2\",\n")), "aa - /r/sbx-aa [] [] []"),
        (manifest(&plain("aa", "own-1", "  \"schema\": 2,\n")), "aa - /r/sbx-aa [] [] []"),
        (manifest(&plain("aa", "own-1", "  \"expires_at\": 7,\n")), "aa - /r/sbx-aa [] [] []"),
        (
            manifest(&plain("aa", "own-1", "  \"sandbox\": {\"id\": \"bb\"},\n")),
            "aa - /r/sbx-aa [] [] []",
        ),
        // Not this directory's, not JSON, cut off, of another shape: nobody's.
        (manifest(r#"{"id":"bb","owner":"own-1"}"#), "aa - /r/sbx-aa [] [] []"),
        (manifest(r#"{"id":"aa","owner":""}"#), "aa - /r/sbx-aa [] [] []"),
        (manifest("{\"id\":\"aa\","), "aa - /r/sbx-aa [] [] []"),
        (manifest("[]"), "aa - /r/sbx-aa [] [] []"),
        (manifest("\u{0}\u{0}\u{fffd}"), "aa - /r/sbx-aa [] [] []"),
        ("inventory=/r\ndir=sbx-aa\n".to_owned(), "aa - /r/sbx-aa [] [] []"),
        // Too large to be read, or gone since: nobody's, whatever the labels say.
        (
            "inventory=/r\ndir=sbx-aa\nmanifest=sbx-aa\nmanifests=\n\nlist=network docker\n {\"name\":\"n\",\"sandbox\":\"aa\",\"owner\":\"own-1\"}\n".to_owned(),
            "aa - /r/sbx-aa [] [\"n\"] []",
        ),
        ("inventory=/\ndir=sbx-aa\n".to_owned(), "aa - /sbx-aa [] [] []"),
        // A name with line breaks and escape sequences stays one name.
        (
            "inventory=/r\ndir=\n sbx-x\n now=1\n\u{1b}[2Jnoise\n\n".to_owned(),
            "x\\nnow=1 - /r/sbx-x\\nnow=1 [] [] []",
        ),
    ] {
        assert_eq!(told(&said), [expected], "{said:?}");
    }
    assert_eq!(
        told("inventory=/r\ndir=sbx-\ndir=other\nmanifests=\n ./other/manifest.json:{}\n"),
        [""; 0]
    );
    assert_eq!(
        told(
            "inventory=/r\ndir=sbx-aa\nmanifests=\n ./sbx-aa/manifest.json:{\"id\":\"aa\",\"owner\":\"o\"}\ninventory=/b\ndir=sbx-aa\nmanifests=\n ./sbx-aa/manifest.json:{\"id\":\"aa\",\"owner\":\"o\"}\n"
        ),
        ["aa - /r/sbx-aa [] [] []"]
    );
}

#[test]
fn what_engines_have() {
    for (said, expected) in [
        (
            "list=container docker\n {\"name\":\"sbx-aa-web-1\",\"sandbox\":\"aa\",\"owner\":\"own-1\",\"project\":\"sbx-aa\"}\n {\"name\":\"other\",\"sandbox\":\"\",\"owner\":\"\",\"project\":\"\"}\n\nlist=network docker\n {\"name\":\"sbx-aa_default\",\"labels\":{\"com.docker.compose.project\":\"sbx-aa\"}}\n",
            vec![r#"aa own-1 - ["sbx-aa-web-1"] ["sbx-aa_default"] []"#],
        ),
        (
            "list=container podman\n {\"name\":\"sbx-aa_web_1\",\"labels\":{\"sandboxer.id\":\"aa\",\"sandboxer.owner\":\"own-1\"}}\n {\"name\":\"x\",\"labels\":null}\n\nlist=pod podman\n {\"name\":\"pod_sbx-aa\",\"labels\":{}}\n {\"name\":\"mypod\",\"labels\":null}\n",
            vec![r#"aa own-1 - ["sbx-aa_web_1"] [] []"#],
        ),
        (
            "list=network podman\n [\n   {\n     \"name\": \"sbx-aa_default\",\n     \"labels\": {\"sandboxer.id\": \"aa\"}\n   },\n   {\"Name\": \"podman\"}\n ]\n\n",
            vec![r#"aa - - [] ["sbx-aa_default"] []"#],
        ),
        ("list=pod podman\n {\"name\":\"pod_sbx-aa\",\"labels\":{}}\n", vec!["aa - - [] [] []"]),
        // No label: the project, or a name that only a project gives. `sbx-a-b` could be of `a` or of `a-b`.
        (
            "list=volume podman\n {\"name\":\"v\",\"labels\":{\"io.podman.compose.project\":\"sbx-a-b\"}}\n",
            vec![r#"a-b - - [] [] ["v"]"#],
        ),
        (
            "list=volume docker\n {\"name\":\"sbx-a-b_data\",\"sandbox\":\"\",\"owner\":\"\",\"project\":\"\"}\n {\"name\":\"sbx-a-b\",\"sandbox\":\"\",\"owner\":\"\",\"project\":\"\"}\n {\"name\":\"sbx-A_x\",\"sandbox\":\"\",\"owner\":\"\",\"project\":\"\"}\n",
            vec![r#"a-b - - [] [] ["sbx-a-b_data"]"#],
        ),
        // Two owners are none.
        (
            "list=container docker\n {\"name\":\"a\",\"sandbox\":\"aa\",\"owner\":\"own-1\",\"project\":\"\"}\n {\"name\":\"b\",\"sandbox\":\"aa\",\"owner\":\"own-2\",\"project\":\"\"}\n",
            vec![r#"aa - - ["a", "b"] [] []"#],
        ),
        // Docker as a second way to podman: the same names once.
        (
            "list=container docker\n {\"name\":\"a\",\"sandbox\":\"aa\",\"owner\":\"o\",\"project\":\"\"}\nlist=container podman\n {\"name\":\"a\",\"labels\":{\"sandboxer.id\":\"aa\"}}\n",
            vec![r#"aa o - ["a"] [] []"#],
        ),
        // A label's text is free.
        (
            "list=container docker\n {\"name\":\"a\",\"sandbox\":\"x\\n\\u001b[2J\",\"owner\":\"o\",\"project\":\"\"}\n",
            vec![r#"x\n\u{1b}[2J o - ["a"] [] []"#],
        ),
        (
            "list=container docker\n time=\"..\" level=warning\n []\n {}\n [1,2]\n\nlist=network podman\n []\n",
            vec![],
        ),
    ] {
        assert_eq!(told(said), expected, "{said:?}");
    }
}

#[test]
fn a_list_that_failed_is_told() {
    let found = parse(&entries(
        "list=container docker\n \n\nfailed=docker ps: status 1\n Cannot connect\n\nfailed=/r cannot be read\n",
    ));
    assert_eq!(found.failed, ["docker ps: status 1 Cannot connect", "/r cannot be read"]);
}

#[test]
fn a_manifest_without_its_record_says_that_it_is_protected() {
    for (said, protected) in [
        (r#""protect":true"#, true),
        (r#""protect":false"#, false),
        // Whatever stands there than that it is not.
        (r#""protect":"true""#, true),
        (r#""sandbox":{"labels":{"protect":true}}"#, true),
        (r#""sandbox":{"labels":{"protect":"true"}}"#, true),
        (r#""sandbox":{"labels":{}}"#, false),
    ] {
        let text = format!(
            "inventory=/r\ndir=sbx-aa\nmanifest=sbx-aa\nmanifests=\n ./sbx-aa/manifest.json:{}\n\n",
            plain("aa", "o", &format!("  {said},\n")).replace('\n', "\n ./sbx-aa/manifest.json:")
        );
        assert_eq!(parse(&entries(&text)).inventory.sandboxes[0].protected, protected, "{said}");
    }
}
