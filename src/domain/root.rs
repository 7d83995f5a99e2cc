//! Workspace roots: which of them a host is known to have. A root bears a mark, an id of its own in a file of it, so that
//! another one in its place, such as the empty folder below a disk that is not mounted, is not taken for it (contract 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::host_report::HostReport;
use crate::domain::name::HostName;
use crate::domain::raw_json::RawJson;

/// Characters of a mark: hex digits in lower case.
const LENGTH: usize = 32;

/// Mark of a workspace root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RootMark(String);

impl RootMark {
    /// From 128 random bits.
    pub fn from_random(bits: [u32; 4]) -> Self {
        let [a, b, c, d] = bits;
        Self(format!("{a:08x}{b:08x}{c:08x}{d:08x}"))
    }

    /// A host's word for it; `None` for what is no mark.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == LENGTH && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A workspace root that bears a mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkedRoot {
    /// Mark.
    pub mark: RootMark,
    /// The machine that it is on; empty where that has no id.
    pub machine_id: String,
    /// Where it is there, absolute and without links.
    pub path: String,
}

/// Place in which records have something, though no mark of its root is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmarkedRoot {
    /// The machine; empty where that has no id.
    pub machine_id: String,
    /// The root, as it is recorded.
    pub path: String,
}

/// Roots of a host, as they are known before it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownRoots {
    /// Roots whose marks are known.
    pub marked: Vec<MarkedRoot>,
    /// Roots that only records know. Told where a new sandbox or archive is to come.
    pub unmarked: Vec<UnmarkedRoot>,
    /// The mark for one that bears none; without it none gets one.
    pub spare: Option<RootMark>,
}

/// Host as its last report has it known (`hosts.json`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostRecord {
    /// Name, in lower case.
    pub id: String,
    /// Grows by one with each write.
    pub revision: u64,
    /// Workspace roots.
    #[serde(default)]
    pub roots: Vec<MarkedRoot>,
    /// The mark for the next root that bears none. Written down before a host hears of it: a root that bears it is ours.
    #[serde(default)]
    pub spare_mark: Option<RootMark>,
    /// Last report. One that cannot be understood is none, and costs the roots nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<RawJson<HostReport>>,
}

impl HostRecord {
    /// The key under which a host is kept: names are compared without case.
    pub fn key(host: &HostName) -> String {
        host.as_str().to_ascii_lowercase()
    }

    pub(crate) fn unknown(host: &HostName) -> Self {
        Self { id: Self::key(host), revision: 0, roots: Vec::new(), spare_mark: None, report: None }
    }

    pub fn last_report(&self) -> Option<HostReport> {
        self.report.as_ref().and_then(RawJson::read)
    }

    /// Takes in what it said since.
    pub fn renew_report(&mut self, newer: HostReport) {
        let mut report = self.last_report().unwrap_or_default();
        report.renew(newer);
        // Plain data with strings for keys: it is always JSON.
        self.report = RawJson::new(&report).ok();
    }

    /// Takes a root's mark in, in place of what was known of that place.
    pub fn learn(&mut self, root: MarkedRoot) {
        if self.spare_mark.as_ref() == Some(&root.mark) {
            self.spare_mark = None;
        }
        self.roots
            .retain(|known| (&known.machine_id, &known.path) != (&root.machine_id, &root.path));
        self.roots.push(root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_32_hex_digits() {
        let mark = RootMark::from_random([1, 2, 0xffff_ffff, 0]);
        assert_eq!(mark.as_str(), "0000000100000002ffffffff00000000");
        assert_eq!(RootMark::parse(mark.as_str()), Some(mark));
        for text in [
            "",
            "00",
            "0000000100000002FFFFFFFF00000000",
            "0000000100000002ffffffff0000000g",
            "../etc",
        ] {
            assert_eq!(RootMark::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_place_has_one_mark_and_a_spare_is_given_once() {
        let host = HostName::new("Box");
        let mut record = HostRecord::unknown(&host);
        assert_eq!(record.id, "box");
        let root = |mark: u32, machine: &str, path: &str| MarkedRoot {
            mark: RootMark::from_random([mark, 0, 0, 0]),
            machine_id: machine.into(),
            path: path.into(),
        };
        record.spare_mark = Some(root(1, "", "").mark);
        record.learn(root(1, "m", "/a"));
        assert_eq!((record.spare_mark.clone(), record.roots.len()), (None, 1));
        record.learn(root(2, "m", "/a"));
        record.learn(root(3, "n", "/a"));
        assert_eq!(record.roots, [root(2, "m", "/a"), root(3, "n", "/a")]);
    }
}
