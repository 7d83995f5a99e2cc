//! Stale things on real hosts: made for real, listed right, reaped right, and nothing else touched.

mod classes;
mod days;
mod walk;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Bench, Ran, on_engine, text, wait_until};

/// Adds a section to the bench's configuration.
fn configure(bench: &Bench, section: &str) {
    let file = bench.path("config.yaml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{before}{section}\n")).unwrap();
}

/// Takes a record out of a file of the data directory, as if it had never been written.
fn drop_record(data: &Path, file: &str, id: &str) {
    let path = data.join(file);
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let records = document["records"].as_array_mut().unwrap();
    let before = records.len();
    records.retain(|record| record["id"] != id);
    assert_eq!(records.len(), before - 1, "{id} is in {file}");
    document["revision"] = json!(document["revision"].as_u64().unwrap() + 1);
    fs::write(&path, document.to_string()).unwrap();
}

/// A bench's items by id, those of others left out: tests share the engines.
fn items(list: &Value, bench: &Bench, ids: &[&str]) -> BTreeMap<String, Value> {
    let root = bench.path("").file_name().map(|name| name.to_string_lossy().into_owned()).unwrap();
    let id_of = |item: &Value| {
        let id = item.get("id").or(item.get("sandbox_id")).filter(|id| !id.is_null());
        text(id.unwrap_or(&item["snapshot_id"]))
    };
    let list = list.as_array().unwrap().iter();
    list.map(|item| (id_of(item), item.clone()))
        .filter(|(id, item)| ids.contains(&id.as_str()) || item.to_string().contains(&root))
        .collect()
}

/// `class action` of each, by id.
fn judged(items: &BTreeMap<String, Value>) -> BTreeMap<&str, String> {
    let words = |item: &Value| format!("{} {}", text(&item["class"]), text(&item["action"]));
    items.iter().map(|(id, item)| (id.as_str(), words(item))).collect()
}

/// `class outcome` of each, by id.
fn ended(items: &BTreeMap<String, Value>) -> BTreeMap<&str, String> {
    let words = |item: &Value| format!("{} {}", text(&item["class"]), text(&item["outcome"]));
    items.iter().map(|(id, item)| (id.as_str(), words(item))).collect()
}

fn expected<'a>(list: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    list.iter().map(|(id, words)| (*id, (*words).to_owned())).collect()
}

/// Runs the command on another data directory of the bench: another console.
fn run_on(bench: &Bench, data: &Path, words: &[&str]) -> Ran {
    let mut args = vec!["--data-dir".to_owned(), data.display().to_string()];
    args.extend(words.iter().map(|word| (*word).to_owned()));
    bench.run(args)
}

/// Waits until a moment is over.
fn wait_past(moment: &Value) {
    let moment: jiff::Timestamp = text(moment).parse().unwrap();
    wait_until("it is over", || jiff::Timestamp::now() > moment);
}

/// An owner id of a data directory.
fn owner(data: &Path) -> String {
    let owner: Value = serde_json::from_slice(&fs::read(data.join("owner")).unwrap()).unwrap();
    text(&owner["owners"][0])
}

/// Starts a container by hand that bears our labels.
fn run_labelled(host: &str, name: &str, id: &str, owner: &str) {
    let labels = [
        format!("sandboxer.id={id}"),
        format!("sandboxer.owner={owner}"),
        format!("com.docker.compose.project=sbx-{id}"),
    ];
    on_engine(
        host,
        &[
            "set -e; engine=$1; name=$2; shift 2; for l; do set -- \"$@\" --label \"$l\"; shift; done; $engine run -d --name \"$name\" \"$@\" localhost/sbx-lab:1 sleep 1000",
            name,
            &labels[0],
            &labels[1],
            &labels[2],
        ],
    );
}
