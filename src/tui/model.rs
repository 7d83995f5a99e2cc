//! Everything a screen can show, as plain data. Knows no terminal and no colours.

mod activity;
mod area;
mod availability;
mod columns;
mod confirm;
mod counts;
mod credits;
mod details;
mod event_filter;
mod event_log;
mod event_rows;
mod fetch;
mod filter;
mod focus_strip;
mod form;
mod frame;
mod hints;
mod host_details;
mod host_rows;
mod hosts;
mod hub;
mod job;
mod job_words;
mod jobs;
mod layout;
mod ledger;
mod logs;
mod look;
mod marks;
mod palette;
mod pane;
mod patches;
mod picker;
mod reading;
mod reap;
mod reap_change;
mod reap_choices;
mod reap_rows;
mod reap_words;
mod rows;
mod sandboxes;
mod saved_state;
mod search;
mod search_pattern;
mod shell;
mod silence;
mod snapshot_details;
mod snapshots;
mod spark;
mod stale;
mod state;
mod sweep;
mod targets;
mod text_block;
mod undo;
mod what;
mod window;

pub use activity::{Activity, ActivityLine, ActivityRow};
pub use area::Area;
pub use columns::{Column, Placed};
pub use confirm::{Confirm, Purpose, Verb};
pub use counts::Counts;
pub use credits::{CreditsLayout, CreditsPane, EntryRow, WIDE};
pub use details::Details;
pub use event_filter::EventFilter;
pub use event_log::EventLog;
pub use event_rows::{EventRow, EventRows};
pub use fetch::{Fetch, Load};
pub use filter::Filter;
pub use focus_strip::Strip;
pub use form::{
    AddPatch, Asked, Comparison, Create, EditLabels, Extend, Field, FieldKey, FieldKind, Fields,
    Form, FormKind, FormLayout, FormState, Grant, LogOptions, NewJob, Notes, Plan, Restore,
    RollOut, SaveLog, Script, TakeSnapshot,
};
pub use hints::Hint;
pub use host_details::HostDetails;
pub use host_rows::HostRows;
pub use hosts::{Host, HostChange, Hosts, ROWS_EACH, Sampling, Standing, standing_glyph};
pub use hub::Hub;
pub use job::{ExternalProcess, Job, JobId, JobResult, JobState, ToldIn};
pub use jobs::{Jobs, Moved};
pub use layout::{Arrangement, SMALLEST, Screen};
pub use ledger::Ledger;
pub use logs::{
    KEPT_BYTES, KEPT_LINES, LogRow, LogSearch, LogState, LogTail, LogText, Logs, Place,
};
pub use look::{Look, ThemeName};
pub use marks::Marks;
pub use palette::Offer;
pub use pane::Pane;
pub use patches::{PatchRow, Patches};
pub use picker::{Picker, is_usable};
pub use reading::TextOverlay;
pub use reap::{Judged, Reap, ReapRow};
pub use reap_words::ReapLayout;
pub use rows::{Conditions, Entry, Order, SilentHosts, Sort, SortKey, Trouble};
pub use sandboxes::Sandboxes;
pub use saved_state::SavedState;
pub use search::{Search, Searches};
pub use search_pattern::SearchPattern;
pub use shell::ShellChoice;
pub use snapshot_details::SnapshotDetails;
pub use snapshots::{Snapshots, caveat, is_undo};
pub use stale::Stale;
pub use state::{Leaving, Model, Overlay, Toast};
pub use sweep::{Sweep, Sweeps};
pub use targets::{PatchTarget, PlanTarget, SnapshotTarget, Target};
pub use text_block::{Match, TextBlock, line_text, wrap};
pub use undo::UndoTarget;
pub use window::Window;

pub use crate::domain::figures::{age, age_of, bytes, left, rate, took, usd};
pub use crate::present::credit::hourly;
pub use crate::present::lineage::{is_blocked, standings};
pub use crate::present::route::decision_lines;
pub use crate::present::sandbox::short_profile;
pub use crate::present::stale::{is_counted, reap_outcomes};
pub use crate::present::{
    LastLook, Node, NodeId, Present, Role, SinceLastLook, Spans, clock, date, day_and_time,
    event_sentence, many, patch_glyph, patch_role, patch_words, snapshot_glyph, state_glyph,
    state_role, summed,
};
