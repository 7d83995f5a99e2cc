use super::super::lines::entries;
use super::*;

/// `id owner|- directory|- containers networks volumes pods`.
fn told(text: &str) -> Vec<String> {
    let found = parse(&entries(text));
    assert!(found.failed.is_empty(), "{:?}", found.failed);
    found
        .inventory
        .sandboxes
        .iter()
        .map(|item| {
            let pods = found.pods.get(&item.sandbox_id).cloned().unwrap_or_default();
            format!(
                "{} {} {} {:?} {:?} {:?} {:?}",
                item.sandbox_id.escape_debug(),
                item.owner.as_deref().unwrap_or("-"),
                item.directory.as_deref().unwrap_or("-").escape_debug(),
                item.containers,
                item.networks,
                item.volumes,
                pods
            )
        })
        .collect()
}

#[test]
fn directories_and_their_manifests() {
    let manifest = |text: &str| format!("inventory=/r\ndir=sbx-aa\nmanifest=\n {text}\n\n");
    for (said, expected) in [
        (manifest(r#"{"id":"aa","owner":"own-1"}"#), "aa own-1 /r/sbx-aa [] [] [] []"),
        (manifest("{\"id\":\"aa\",\n \n \"owner\":\"own-1\"}"), "aa own-1 /r/sbx-aa [] [] [] []"),
        // Not this directory's, not JSON, cut off, of another shape: nobody's.
        (manifest(r#"{"id":"bb","owner":"own-1"}"#), "aa - /r/sbx-aa [] [] [] []"),
        (manifest(r#"{"id":"aa","owner":""}"#), "aa - /r/sbx-aa [] [] [] []"),
        (manifest("{\"id\":\"aa\","), "aa - /r/sbx-aa [] [] [] []"),
        (manifest("[]"), "aa - /r/sbx-aa [] [] [] []"),
        (manifest("\u{0}\u{0}\u{fffd}"), "aa - /r/sbx-aa [] [] [] []"),
        ("inventory=/r\ndir=sbx-aa\n".to_owned(), "aa - /r/sbx-aa [] [] [] []"),
        ("inventory=/\ndir=sbx-aa\n".to_owned(), "aa - /sbx-aa [] [] [] []"),
        // A name with line breaks and escape sequences stays one name.
        (
            "inventory=/r\ndir=\n sbx-x\n now=1\n\u{1b}[2Jnoise\n\n".to_owned(),
            "x\\nnow=1 - /r/sbx-x\\nnow=1 [] [] [] []",
        ),
    ] {
        assert_eq!(told(&said), [expected], "{said:?}");
    }
    assert_eq!(told("inventory=/r\ndir=sbx-\ndir=other\nmanifest=\n {}\n"), [""; 0]);
    assert_eq!(
        told(
            "inventory=/r\ndir=sbx-aa\nmanifest=\n {\"id\":\"aa\",\"owner\":\"o\"}\ninventory=/b\ndir=sbx-aa\nmanifest=\n {\"id\":\"aa\",\"owner\":\"o\"}\n"
        ),
        ["aa - /r/sbx-aa [] [] [] []"]
    );
}

#[test]
fn what_engines_have() {
    for (said, expected) in [
        (
            "list=container docker\n [\"sbx-aa-web-1\",\"aa\",\"own-1\",\"sbx-aa\"]\n [\"other\",\"\",\"\",\"\"]\n\nlist=network docker\n [\"sbx-aa_default\",\"\",\"\",\"sbx-aa\"]\n",
            vec![r#"aa own-1 - ["sbx-aa-web-1"] ["sbx-aa_default"] [] []"#],
        ),
        (
            "list=container podman\n [\"sbx-aa_web_1\",{\"sandboxer.id\":\"aa\",\"sandboxer.owner\":\"own-1\"}]\n [\"x\",null]\n\nlist=pod podman\n [\"pod_sbx-aa\",{}]\n [\"mypod\",null]\n",
            vec![r#"aa own-1 - ["sbx-aa_web_1"] [] [] ["pod_sbx-aa"]"#],
        ),
        (
            "list=network podman\n [\n   {\n     \"name\": \"sbx-aa_default\",\n     \"labels\": {\"sandboxer.id\": \"aa\"}\n   },\n   {\"Name\": \"podman\"}\n ]\n\n",
            vec![r#"aa - - [] ["sbx-aa_default"] [] []"#],
        ),
        // No label: the project, or a name that only a project gives. `sbx-a-b` could be of `a` or of `a-b`.
        (
            "list=volume podman\n [\"v\",{\"io.podman.compose.project\":\"sbx-a-b\"}]\n",
            vec![r#"a-b - - [] [] ["v"] []"#],
        ),
        (
            "list=volume docker\n [\"sbx-a-b_data\",\"\",\"\",\"\"]\n [\"sbx-a-b\",\"\",\"\",\"\"]\n [\"sbx-A_x\",\"\",\"\",\"\"]\n",
            vec![r#"a-b - - [] [] ["sbx-a-b_data"] []"#],
        ),
        // Two owners are none.
        (
            "list=container docker\n [\"a\",\"aa\",\"own-1\",\"\"]\n [\"b\",\"aa\",\"own-2\",\"\"]\n",
            vec![r#"aa - - ["a", "b"] [] [] []"#],
        ),
        // Docker as a second way to podman: the same names once.
        (
            "list=container docker\n [\"a\",\"aa\",\"o\",\"\"]\nlist=container podman\n [\"a\",{\"sandboxer.id\":\"aa\"}]\n",
            vec![r#"aa o - ["a"] [] [] []"#],
        ),
        // A label's text is free.
        (
            "list=container docker\n [\"a\",\"x\\n\\u001b[2J\",\"o\",\"\"]\n",
            vec![r#"x\n\u{1b}[2J o - ["a"] [] [] []"#],
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
