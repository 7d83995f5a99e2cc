//! What tests do with a bench again and again.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use serde_json::{Value, json};

use crate::lab::{Bench, text};
use crate::support::json_assertions::JsonAssertions as _;

impl Bench {
    /// Runs a command that is killed at this point.
    #[track_caller]
    pub(crate) fn killed<S: AsRef<OsStr>>(&self, point: &str, args: impl IntoIterator<Item = S>) {
        let ran = self.run_failing(&format!("{point}=return"), args);
        assert_eq!(ran.status, None, "{point}: killed by a signal: {ran:#?}");
    }

    /// Recovers, checks that nothing is stuck any more, and answers the states by id.
    pub(crate) fn recovered(&self) -> BTreeMap<String, String> {
        for item in self.ok(["recover"]).as_array().unwrap() {
            assert_eq!(item["ok"], true, "{item:#}");
        }
        assert_eq!(self.ok(["recover"]), json!([]), "a second one has nothing to do");
        let running = |operation: &&Value| operation["state"] == "running";
        let operations = self.ok(["operations", "list"]);
        assert_eq!(operations.as_array().unwrap().iter().find(running), None);
        let records = self.stored();
        for record in &records {
            record.has(json!({"operation": null, "pending": []}));
        }
        records.iter().map(|record| (text(&record["id"]), text(&record["state"]))).collect()
    }

    /// Destroys and deletes all that there is.
    #[track_caller]
    pub(crate) fn clear(&self) {
        let all = self.stored();
        let left = all.iter().filter(|record| record["state"] != "destroyed");
        self.of_each(&["destroy"], left);
        self.delete_snapshots();
    }

    /// Deletes every snapshot.
    #[track_caller]
    pub(crate) fn delete_snapshots(&self) {
        let all = self.ok(["snapshots", "list", "--all"]);
        self.of_each(&["snapshots", "delete", "--force", "--yes"], all.as_array().unwrap());
    }

    /// One command for all of these, if there are any.
    #[track_caller]
    fn of_each<'a>(&self, words: &[&str], records: impl IntoIterator<Item = &'a Value>) {
        let words = words.iter().map(|word| (*word).to_owned());
        let ids: Vec<String> = records.into_iter().map(|record| text(&record["id"])).collect();
        if !ids.is_empty() {
            self.ok(words.chain(ids));
        }
    }
}
