//! Counts and plurals.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::domain::text::plural;

/// `1 patch`, `3 patches`.
pub(crate) fn many(count: usize, one: &str, more: &str) -> String {
    plural(count as u64, one, more)
}

/// `2 destroyed, 1 skipped`: what there is of each kind, in their order; nothing of what there is none.
pub(crate) fn counts<T: Display>(each: impl IntoIterator<Item = (usize, T)>) -> String {
    let some = each.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// `12 on coulombcore, 3 on local`: each word with how often it comes, the most frequent first.
pub(crate) fn summed(words: impl Iterator<Item = String>) -> String {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        *found.entry(word).or_default() += 1;
    }
    let mut found: Vec<(usize, String)> =
        found.into_iter().map(|(word, count)| (count, word)).collect();
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counts(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_counted_and_the_most_frequent_is_told_first() {
        assert_eq!(
            counts([(2, "destroyed"), (0, "failed"), (1, "skipped")]),
            "2 destroyed, 1 skipped"
        );
        let words = ["on b", "on a", "on b", "on c"].map(str::to_owned);
        assert_eq!(summed(words.into_iter()), "2 on b, 1 on a, 1 on c");
        assert_eq!(summed(std::iter::empty()), "");
    }
}
