use super::*;
use crate::domain::error::Code;
use crate::domain::tests::patch;

fn patches(sequences: &[u64]) -> Vec<Patch> {
    sequences.iter().map(|sequence| patch(*sequence, "snap-a")).collect()
}

#[test]
fn a_patch_is_found_by_its_id_or_its_number() {
    let there = patches(&[1, 2, 4]);
    let sequence = |reference: &str| find(&there, reference).map(|patch| patch.sequence);
    for (reference, found) in [
        ("pat-00000002", Some(2)),
        ("4", Some(4)),
        ("#4", Some(4)),
        ("3", None),
        ("", None),
        ("#", None),
        ("-1", None),
        ("pat-0000", None),
        ("18446744073709551616", None),
    ] {
        assert_eq!(sequence(reference), found, "{reference:?}");
    }
}

#[test]
fn what_is_no_patch_is_refused_with_the_field() {
    let field = |script: &str, run_in: &str, description: Option<&str>| match check(
        script,
        run_in,
        description,
    ) {
        Ok(()) => String::new(),
        Err(error) => {
            assert_eq!(error.code, Code::InvalidInput);
            error.details["field"].as_str().unwrap().to_owned()
        }
    };
    let long = "x".repeat(MAX_SCRIPT_BYTES);
    for (script, run_in, description, refused) in [
        ("true", "workspace", None, ""),
        (&long, "web.1_a-b", Some("what it is for; umlauts too: äöü"), ""),
        ("", "workspace", None, "script"),
        (" \n\t", "workspace", None, "script"),
        ("a\0b", "workspace", None, "script"),
        (include_str!("../../../tests/cases/crlf-patch/patch.sh"), "workspace", None, "script"),
        ("#!/bin/sh\necho hi\r\n", "web", None, "script"),
        ("printf 'a\rb\\r\\n'\n", "workspace", None, ""),
        (&format!("{long}x"), "workspace", None, "script"),
        ("true", "", None, "run_in"),
        ("true", "-web", None, "run_in"),
        ("true", "a b", None, "run_in"),
        ("true", "a/b", None, "run_in"),
        ("true", &"w".repeat(64), None, "run_in"),
        ("true", "web", Some("two\nlines"), "description"),
        ("true", "web", Some(&long), "description"),
    ] {
        let shown = (script.len(), run_in, description.map(str::len));
        assert_eq!(field(script, run_in, description), refused, "{shown:?}");
    }
    let windows = check("#!/bin/sh\necho hi\r\necho ho\r\n", "workspace", None).unwrap_err();
    assert!(
        windows.message.starts_with("line 2 of the script ends in CR and LF"),
        "{}",
        windows.message
    );
}
