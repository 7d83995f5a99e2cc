//! What a console remembers for its next run: pane, sort, filter. Optional; a broken file is as good as none.

use serde::{Deserialize, Serialize};

use super::{Pane, Sort, SortKey};

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Remembered {
    /// The focused pane.
    pub pane: Option<Pane>,
    /// The sort.
    pub sort: Option<Sort>,
    /// The filter's text.
    pub filter: String,
    /// The text of the snapshots' filter.
    pub snapshots_filter: String,
}

/// As it stands in the file.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Stored {
    pane: String,
    sort: String,
    descending: bool,
    filter: String,
    snapshots_filter: String,
}

impl Remembered {
    /// From a file's text; what cannot be read is forgotten.
    pub fn parse(text: &str) -> Self {
        let stored: Stored = serde_json::from_str(text).unwrap_or_default();
        let pane = match stored.pane.as_str() {
            "sandboxes" => Some(Pane::Sandboxes),
            "snapshots" => Some(Pane::Snapshots),
            "activity" => Some(Pane::Activity),
            _ => None,
        };
        let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        let sort = SortKey::ALL.iter().find(|key| key.as_str() == stored.sort);
        Self {
            pane,
            sort: sort.map(|key| Sort { key: *key, descending: stored.descending }),
            filter: clean(&stored.filter),
            snapshots_filter: clean(&stored.snapshots_filter),
        }
    }

    /// As a file's text.
    pub fn to_json(&self) -> String {
        let pane = match self.pane {
            Some(Pane::Sandboxes) => "sandboxes",
            Some(Pane::Snapshots) => "snapshots",
            Some(Pane::Activity) => "activity",
            None => "",
        };
        let stored = Stored {
            pane: pane.to_owned(),
            sort: self.sort.map(|sort| sort.key.as_str().to_owned()).unwrap_or_default(),
            descending: self.sort.is_some_and(|sort| sort.descending),
            filter: self.filter.clone(),
            snapshots_filter: self.snapshots_filter.clone(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_back_equal_and_a_broken_file_is_none() {
        let kept = Remembered {
            pane: Some(Pane::Activity),
            sort: Some(Sort { key: SortKey::Host, descending: true }),
            filter: "host:a e2e".to_owned(),
            snapshots_filter: "env".to_owned(),
        };
        assert_eq!(Remembered::parse(&kept.to_json()), kept);
        for broken in ["", "[]", "{\"pane\": 3}", "\u{0}"] {
            assert_eq!(Remembered::parse(broken), Remembered::default());
        }
    }
}
