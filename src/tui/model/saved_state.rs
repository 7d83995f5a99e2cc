//! What a console remembers for its next run: pane and sort, never a filter or marks. Whoever starts one sees everything.
//! Optional; a broken file is as good as none, and what an earlier version wrote beside these is passed over.

use serde::{Deserialize, Serialize};

use super::{Pane, Sort, SortKey};

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedState {
    /// The focused pane.
    pub pane: Option<Pane>,
    /// The sort.
    pub sort: Option<Sort>,
}

/// As it stands in the file.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Stored {
    pane: String,
    sort: String,
    descending: bool,
}

impl SavedState {
    /// From a file's text; what cannot be read is forgotten.
    pub fn parse(text: &str) -> Self {
        let stored: Stored = serde_json::from_str(text).unwrap_or_default();
        let pane = match stored.pane.as_str() {
            "sandboxes" => Some(Pane::Sandboxes),
            "snapshots" => Some(Pane::Snapshots),
            "hosts" => Some(Pane::Hosts),
            "activity" => Some(Pane::Activity),
            _ => None,
        };
        let key = SortKey::from_word(&stored.sort);
        Self { pane, sort: key.map(|key| Sort { key, descending: stored.descending }) }
    }

    /// As a file's text.
    pub fn to_json(&self) -> String {
        let pane = match self.pane {
            Some(Pane::Sandboxes) => "sandboxes",
            Some(Pane::Snapshots) => "snapshots",
            Some(Pane::Hosts) => "hosts",
            Some(Pane::Activity) => "activity",
            None => "",
        };
        let stored = Stored {
            pane: pane.to_owned(),
            sort: self.sort.map(|sort| sort.key.as_str().to_owned()).unwrap_or_default(),
            descending: self.sort.is_some_and(|sort| sort.descending),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_back_equal_and_a_broken_file_is_none() {
        let kept = SavedState {
            pane: Some(Pane::Activity),
            sort: Some(Sort { key: SortKey::Host, descending: true }),
        };
        assert_eq!(SavedState::parse(&kept.to_json()), kept);
        let earlier = r#"{"pane":"activity","sort":"host","descending":true,"filter":"shop","snapshots_filter":"env"}"#;
        assert_eq!(SavedState::parse(earlier), kept);
        let left = SavedState::parse(r#"{"sort":"left"}"#).sort.unwrap();
        assert_eq!(left.key, SortKey::Left, "an earlier version's word");
        for broken in ["", "[]", "{\"pane\": 3}", "\u{0}"] {
            assert_eq!(SavedState::parse(broken), SavedState::default());
        }
    }
}
