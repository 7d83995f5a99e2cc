//! Keeps what a newer version wrote into a record, when this version changes the record.

use serde_json::Value;

/// `new`, with the parts of `raw` (the old record as it was in the file) that are not in `known` (the old record as
/// this version understood it).
///
/// List items count as the same when this version sees no change in them: a changed one cannot be told from another,
/// and is taken as it is.
pub(super) fn merge_unknown(raw: &Value, known: &Value, new: Value) -> Value {
    if *known == new {
        return raw.clone();
    }
    match (raw, known, new) {
        (Value::Object(raw), Value::Object(known), Value::Object(mut new)) => {
            // Fields of one operation must not move into the next one.
            if known.get("id") != new.get("id") {
                return Value::Object(new);
            }
            for (key, old) in raw {
                match known.get(key) {
                    None => {
                        new.entry(key).or_insert_with(|| old.clone());
                    }
                    Some(understood) => {
                        if let Some(slot) = new.get_mut(key) {
                            *slot = merge_unknown(old, understood, slot.take());
                        }
                    }
                }
            }
            Value::Object(new)
        }
        (Value::Array(raw), Value::Array(known), Value::Array(new)) if raw.len() == known.len() => {
            Value::Array(
                new.into_iter()
                    .map(|item| {
                        known.iter().position(|old| *old == item).map_or(item, |at| raw[at].clone())
                    })
                    .collect(),
            )
        }
        (_, _, new) => new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_parts_stay_and_known_ones_change() {
        let raw = json!({"id": "a", "n": 1, "later": 7, "op": {"id": "x", "k": 1, "later": 8},
            "list": [{"v": 1, "later": 9}, {"v": 2, "later": 10}], "labels": {"a": "1", "b": "2"}});
        let known = json!({"id": "a", "n": 1, "op": {"id": "x", "k": 1}, "list": [{"v": 1}, {"v": 2}],
            "labels": {"a": "1", "b": "2"}, "absent": null});
        let new = json!({"id": "a", "n": 2, "op": {"id": "x", "k": 2}, "list": [{"v": 2}, {"v": 3}],
            "labels": {"a": "1"}, "absent": null});
        assert_eq!(
            merge_unknown(&raw, &known, new),
            json!({"id": "a", "n": 2, "op": {"id": "x", "k": 2, "later": 8}, "list": [{"v": 2, "later": 10}, {"v": 3}],
                "labels": {"a": "1"}, "absent": null, "later": 7})
        );
    }

    #[test]
    fn what_belonged_to_another_thing_is_not_taken_over() {
        let (raw, known) = (json!({"op": {"id": "x", "later": 8}}), json!({"op": {"id": "x"}}));
        for new in [json!({"op": {"id": "y"}}), json!({"op": null})] {
            assert_eq!(merge_unknown(&raw, &known, new.clone()), new);
        }
    }
}
