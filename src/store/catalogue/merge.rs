//! The operator's files over the built-in ones.

use std::collections::BTreeMap;

use super::files::{CatalogueFile, Found};
use crate::domain::problem::FieldProblem;

/// Puts each operator's file in the place of the built-in one with its id, and the others behind, by id. Two of the
/// operator's with one id are both broken, each naming the other.
pub(super) fn merge<T: CatalogueFile>(
    builtin: Vec<Found<T>>,
    operator: Vec<Found<T>>,
) -> Vec<Found<T>> {
    let mut by_id: BTreeMap<String, Vec<Found<T>>> = BTreeMap::new();
    for found in operator {
        by_id.entry(found.id.clone()).or_default().push(found);
    }
    for (id, group) in &mut by_id {
        if group.len() > 1 {
            mark_duplicates(id, group);
        }
    }
    let mut merged = Vec::new();
    for own in builtin {
        match by_id.remove(&own.id) {
            Some(mut group) => {
                for found in &mut group {
                    found.overrides_builtin = true;
                }
                merged.extend(group);
            }
            None => merged.push(own),
        }
    }
    merged.extend(by_id.into_values().flatten());
    merged
}

fn mark_duplicates<T: CatalogueFile>(id: &str, group: &mut [Found<T>]) {
    let files: Vec<String> = group
        .iter()
        .map(|found| found.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default())
        .collect();
    for (at, found) in group.iter_mut().enumerate() {
        let others: Vec<&str> = files
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, file)| file.as_str())
            .collect();
        found.add(vec![FieldProblem::new(
            "id",
            format!("duplicate id '{id}': also in {}", others.join(", ")),
        )]);
    }
}
