//! State of a console for its next run: pane, sort and how far its operator has seen events, never a filter or marks.
//! Whoever starts one sees everything.
//! Optional; a broken file is as good as none, and what an earlier version wrote beside these is passed over.

use serde::{Deserialize, Serialize};

use super::{LastLook, Model, Pane, Sort, SortKey};
use crate::domain::Time;

/// State that is remembered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SavedState {
    /// The focused pane.
    pub pane: Option<Pane>,
    pub sort: Option<Sort>,
    /// The last event that was seen, and when.
    pub last_look: Option<LastLook>,
}

/// Fields of the file.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Stored {
    pane: String,
    sort: String,
    descending: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_at: Option<Time>,
}

impl SavedState {
    /// From a file's text; what cannot be read is forgotten.
    pub fn parse(text: &str) -> Self {
        let stored: Stored = serde_json::from_str(text).unwrap_or_default();
        let pane = match stored.pane.as_str() {
            "sandboxes" => Some(Pane::Sandboxes),
            "snapshots" => Some(Pane::Snapshots),
            "hosts" => Some(Pane::Hosts),
            "credits" => Some(Pane::Credits),
            "activity" => Some(Pane::Activity),
            _ => None,
        };
        let key = SortKey::from_word(&stored.sort);
        Self {
            pane,
            sort: key.map(|key| Sort { key, descending: stored.descending }),
            last_look: stored.seen_seq.zip(stored.seen_at).map(|(seq, at)| LastLook { seq, at }),
        }
    }

    /// Text of the file.
    pub fn to_json(&self) -> String {
        let pane = match self.pane {
            Some(Pane::Sandboxes) => "sandboxes",
            Some(Pane::Snapshots) => "snapshots",
            Some(Pane::Hosts) => "hosts",
            Some(Pane::Credits) => "credits",
            Some(Pane::Activity) => "activity",
            None => "",
        };
        let stored = Stored {
            pane: pane.to_owned(),
            sort: self.sort.map(|sort| sort.key.as_str().to_owned()).unwrap_or_default(),
            descending: self.sort.is_some_and(|sort| sort.descending),
            seen_seq: self.last_look.map(|look| look.seq),
            seen_at: self.last_look.map(|look| look.at),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }
}

impl Model {
    /// State for the next run.
    pub fn saved_state(&self) -> SavedState {
        SavedState {
            pane: Some(self.focus),
            sort: Some(self.sandboxes.sort()),
            last_look: self.last_look(),
        }
    }

    /// The last event that was on this screen; where none was, that of the run before.
    fn last_look(&self) -> Option<LastLook> {
        let seen = (self.activity.last_seq() > 0)
            .then(|| LastLook { seq: self.activity.last_seq(), at: self.now });
        seen.or(self.looked_before.map(|before| LastLook { at: self.now, ..before }))
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
            last_look: None,
        };
        assert_eq!(SavedState::parse(&kept.to_json()), kept);
        let looked = SavedState {
            last_look: Some(LastLook { seq: 7, at: Time::from_unix(1_795_788_202) }),
            ..kept.clone()
        };
        assert_eq!(SavedState::parse(&looked.to_json()), looked);
        let earlier = r#"{"pane":"activity","sort":"host","descending":true,"filter":"shop","snapshots_filter":"env"}"#;
        assert_eq!(SavedState::parse(earlier), kept);
        let left = SavedState::parse(r#"{"sort":"left"}"#).sort.unwrap();
        assert_eq!(left.key, SortKey::Left, "an earlier version's word");
        for broken in ["", "[]", "{\"pane\": 3}", "{\"seen_seq\": -1}", "\u{0}"] {
            assert_eq!(SavedState::parse(broken), SavedState::default());
        }
    }
}
