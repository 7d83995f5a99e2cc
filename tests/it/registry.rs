//! Capability documents (`docs/registry`) and `.repo-classification.yaml`: what they say is so. `just registry-check` runs this.

use std::path::{Path, PathBuf};

use sandboxer::cli;
use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn documents() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("docs/registry/capabilities")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Everything that is wrong with a document of this name.
fn problems(path: &Path, text: &str) -> Vec<String> {
    let Some((front, body)) =
        text.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n"))
    else {
        return vec!["there is no front matter between two lines `---`".into()];
    };
    let front: Value = match serde_saphyr::from_str(front) {
        Ok(front) => front,
        Err(error) => return vec![error.to_string()],
    };
    let schema: Value =
        serde_json::from_str(&read("docs/registry/capability.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut found: Vec<String> = validator
        .iter_errors(&front)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    let id = front["id"].as_str().unwrap_or_default();
    let name = path.file_name().unwrap().to_string_lossy();
    if id != format!("capability.{}", name.trim_end_matches(".md")) {
        found.push(format!("id: {id} is not what the file is called, {name}"));
    }
    if id.split('.').nth(1) != front["domain"].as_str() {
        found.push(format!("domain: it is not the second word of {id}"));
    }
    for profile in texts(&front, "profiles") {
        let file = format!("profiles/{}.yaml", profile.trim_start_matches("profile."));
        if !root().join(&file).is_file() {
            found.push(format!("profiles: there is no {file}"));
        }
    }
    for document in texts(&front, "documents") {
        if !root().join(document).is_file() {
            found.push(format!("documents: there is no {document}"));
        }
    }
    for interface in front["interfaces"].as_array().into_iter().flatten() {
        let text = |key: &str| interface[key].as_str().unwrap_or_default();
        if !root().join(text("schema")).is_file() {
            found.push(format!("interfaces: there is no {}", text("schema")));
        }
        let mut words = text("name").split(' ');
        let verb = (words.next() == Some("sandboxer")).then(|| words.next()).flatten();
        let is_command = verb.is_some_and(|verb| cli::command().find_subcommand(verb).is_some());
        if text("kind") == "cli" && !is_command {
            found.push(format!("interfaces: there is no command `{}`", text("name")));
        }
    }
    if body.trim().is_empty() {
        found.push("there is nothing below the front matter".into());
    }
    // Links of the text, by their targets.
    for target in body.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        let is_elsewhere = target.is_empty() || target.contains("://");
        if !is_elsewhere && !path.parent().unwrap().join(target).is_file() {
            found.push(format!("a link leads to {target}, which is not there"));
        }
    }
    found
}

#[test]
fn every_capability_document_is_right() {
    let documents = documents();
    assert!(!documents.is_empty());
    for path in documents {
        let found = problems(&path, &std::fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{}:\n{}", path.display(), found.join("\n"));
    }
}

#[test]
fn a_broken_document_is_told_from_a_right_one() {
    let path = root().join("docs/registry/capabilities/execution.sandbox-provision.md");
    let whole = std::fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("---\nid:", "id:"),
        ("id: capability.execution.sandbox-provision", "id: capability.execution.other"),
        ("id: capability.execution.sandbox-provision\n", ""),
        ("status: draft", "status: drafted"),
        ("status: draft", "status: [draft"),
        ("version: 0.1.0", "version: 1"),
        ("domain: execution", "domain: storage"),
        ("provider: sandboxer", "provider: sandboxer\nowner: x"),
        ("name: sandboxer create\n", "name: sandboxer creat\n"),
        ("docs/schemas/bulk.json", "docs/schemas/bulks.json"),
        ("- profile.burst-sandbox", "- profile.burst"),
        ("- docs/SCOPE.md", "- docs/scope.md"),
        ("kind: events", "kind: queue"),
        ("(../../SCOPE.md)", "(../SCOPE.md)"),
    ] {
        assert!(whole.contains(from), "{from:?} is not there any more");
        assert!(!problems(&path, &whole.replace(from, to)).is_empty(), "{from:?} → {to:?}");
    }
    let front = &whole[..whole.find("\n---\n").unwrap() + 5];
    assert!(!problems(&path, front).is_empty(), "without a text");
    assert!(!problems(&path, "").is_empty());
}

#[test]
fn the_classification_names_this_repository_and_its_capabilities() {
    let found: Value = serde_saphyr::from_str(&read(".repo-classification.yaml")).unwrap();
    assert_eq!(found["schema"], 1);
    assert_eq!(found["name"].as_str(), Some(env!("CARGO_PKG_NAME")));
    assert_eq!(found["license"].as_str(), Some(env!("CARGO_PKG_LICENSE")));
    for key in ["kind", "language", "domain", "summary", "lifecycle"] {
        assert!(found[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
    }
    assert_eq!(found["production"], false);
    let mut named: Vec<PathBuf> =
        texts(&found, "capabilities").into_iter().map(|path| root().join(path)).collect();
    let mut there = documents();
    named.sort();
    there.sort();
    assert_eq!(named, there);
}
