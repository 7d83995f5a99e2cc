//! A sandbox's whole record, as text to be read.

use super::hosts::Host;
use super::snapshots::Snapshots;
use super::text_block::TextBlock;
use super::{Load, host_details};
use crate::domain::event::Event;
use crate::domain::host_view::HostState;
use crate::domain::name::SandboxId;
use crate::domain::raw_json::RawJson;
use crate::domain::sandbox::SandboxRecord;
use crate::present::{self, Document, Present, Role, event_glyph, event_words, lineage, sandbox};

/// Extent of what is told of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Facts of the record alone: nobody reads events for a row that the cursor only passes.
    Record,
}

/// The overlay.
#[derive(Debug, Clone)]
pub struct Details {
    /// Which sandbox.
    pub id: SandboxId,
    /// The record as it was read last; it stays when the sandbox leaves the list.
    pub record: Box<SandboxRecord>,
    /// Whether its events are there.
    pub load: Load,
    /// Its events, in order.
    pub events: Vec<Event>,
    /// The first line on the screen.
    pub offset: usize,
    extent: Extent,
}

impl Details {
    /// Opens a record.
    pub fn new(record: SandboxRecord) -> Self {
        Self {
            id: record.id.clone(),
            record: Box::new(record),
            load: Load::Loading,
            events: Vec::new(),
            offset: 0,
            extent: Extent::Whole,
        }
    }

    pub fn beside_list(record: SandboxRecord) -> Self {
        Self { extent: Extent::Record, ..Self::new(record) }
    }

    /// The record as lines of a width.
    pub fn block(
        &self,
        width: usize,
        present: Present<'_>,
        host: Option<&Host>,
        snapshots: &Snapshots,
    ) -> TextBlock {
        let mut document = Document::default();
        let (record, now) = (&*self.record, present.now);
        sandbox::overview(&mut document, record, present);
        if host.is_some_and(|host| host.view.state == HostState::Down) {
            let words = "its host does not answer: this is what was, not what is";
            document.pair("seen", Role::Warn, words);
        }
        if let Some(failed) = &record.failure {
            present::failure::section(&mut document, failed, record.message.as_deref().as_slice());
        }
        sandbox::reach(&mut document, record);
        match self.extent {
            Extent::Whole => self.timeline(&mut document, present),
            Extent::Record => {}
        }
        let ancestors = lineage::ancestors(record, |id| snapshots.get(id));
        let taken = snapshots.taken_of(&record.id);
        let taken: Vec<_> = taken.map(|view| (view.record.id.clone(), Some(&**view))).collect();
        lineage::of_sandbox(&mut document, record, &ancestors, &taken, present);
        sandbox::rewrites(&mut document, record);
        sandbox::teardown(&mut document, record);
        document.heading("Record");
        sandbox::identity(&mut document, record, present);
        sandbox::settings(&mut document, record, present);
        document.heading(format!("Host {}", record.host));
        match host {
            Some(host) => {
                host_details::standing(&mut document, host, now);
                present::host::figures(&mut document, &host.view, host.history.last(), now);
            }
            None => document.text(Role::Dim, 2, "not in the configuration: nobody asks it"),
        }
        // Nothing younger is known of it.
        let unasked =
            host.is_none_or(|host| host.history.last().is_none() && host.view.facts.is_none());
        if let Some(then) = record.telemetry.as_ref().and_then(RawJson::read).filter(|_| unasked) {
            present::host::of_canary(&mut document, &then, now);
        }
        if let Some(certificate) = record.certificate.as_ref().and_then(RawJson::read) {
            present::host::certified(&mut document, &certificate, now);
        }
        TextBlock::of(&document, width)
    }

    fn timeline(&self, document: &mut Document, present: Present<'_>) {
        document.heading("Timeline");
        match &self.load {
            Load::Loading => document.text(Role::Dim, 2, "reading the events…"),
            Load::Failed(problem) => {
                let words = format!("the events cannot be read: {}", problem.message);
                document.text(Role::Bad, 2, words);
            }
            Load::Ready if self.events.is_empty() => {
                document.text(Role::Dim, 2, "no events are kept of it");
            }
            Load::Ready => {}
        }
        for event in &self.events {
            let when = (Role::Dim, format!("{}  ", present.short(event.time)));
            let spans = [when, (Role::Plain, event_words(event))];
            document.line(event_glyph(&event.kind), spans);
        }
    }
}
