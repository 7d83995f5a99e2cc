//! Run: cases, what a reader found in each, and the smallest file of each fault.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::grammar::{self, Case};
use super::hostile;
use super::judge::{Finding, Promise};
use super::seed::Rng;
use super::shrink;
use super::world::{Host, World, rendered};

/// The case of a number.
pub(crate) fn case(seed: u64, number: u64, spoiled: bool) -> Case {
    let mut rng = Rng::of(seed, number);
    let mut case = grammar::honest(&mut rng);
    if spoiled {
        hostile::spoil(&mut case, &mut rng);
    }
    case
}

/// A reader of a rendered file: what the engine would be told breaks. `None`: the tool stops at it.
pub(crate) type Reader<'r> = dyn FnMut(&str) -> Option<Vec<Finding>> + 'r;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    judged: usize,
    refused: usize,
    /// Rendered, and not taken by the tool.
    stopped: usize,
    /// The first case of each kind of fault, made small.
    reports: BTreeMap<(String, Promise, String), String>,
    counts: BTreeMap<(String, Promise, String), usize>,
}

impl Tally {
    /// Renders a case for a host and has it read back.
    pub(crate) fn judge(
        &mut self,
        world: &World,
        (seed, number): (u64, u64),
        host: Host,
        reader: &mut Reader<'_>,
    ) {
        let case = case(seed, number, true);
        let Ok(first) = rendered(&case.files(), world, host) else {
            self.refused += 1;
            return;
        };
        let Some(findings) = reader(&first.yaml) else {
            self.stopped += 1;
            return;
        };
        self.judged += 1;
        for finding in findings {
            let (promise, why) = finding.kind();
            let key = (format!("{:?}", host.dialect), promise, why.clone());
            *self.counts.entry(key.clone()).or_default() += 1;
            if self.reports.contains_key(&key) {
                continue;
            }
            let mut again = |case: &Case| {
                let rendered = rendered(&case.files(), world, host).ok()?;
                reader(&rendered.yaml)?
                    .into_iter()
                    .find(|found| found.kind() == (promise, why.clone()))
            };
            let (small, found) = shrink::smallest(case.clone(), finding, &mut again);
            let mut report = format!("{host:?} seed {seed} case {number}\n  {found}\n");
            for (path, content) in small.files() {
                let _ = writeln!(report, "  --- {path}\n{}", world.fill(&content));
            }
            self.reports.insert(key, report);
        }
    }

    /// Says what was found. A run that rendered nothing has shown nothing.
    pub(crate) fn end(self) {
        println!(
            "{} refused, {} rendered and read back, {} more stopped the tool",
            self.refused, self.judged, self.stopped
        );
        assert!(self.judged > 0, "nothing was rendered");
        for (key, report) in &self.reports {
            println!("\n== {} times {key:?}\n{report}", self.counts[key]);
        }
        assert!(self.reports.is_empty(), "{} kinds of broken promises", self.reports.len());
    }
}
