//! Presentation: a record becomes rows and words, once for every face. A face gives them colours, widths and a place; here is what
//! they say: states, ages, sizes, money, plurals, tables, trees, sentences of events.
//!
//! A [`Document`] is what is told of a record, in the order in which it is read; a [`Column`] is what stands in a table's cells.
//! Nothing here knows a terminal.

pub(crate) mod catalogue;
mod count;
pub(crate) mod credit;
pub(crate) mod diff;
mod document;
pub(crate) mod error;
mod event;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod lineage;
mod moment;
pub(crate) mod operation;
pub(crate) mod patch;
pub(crate) mod question;
mod role;
pub(crate) mod route;
pub(crate) mod sandbox;
mod sign;
mod since;
pub(crate) mod snapshot;
pub(crate) mod stale;
mod table;
mod tree;
pub(crate) mod upkeep;

pub(crate) use crate::domain::figures::{age, age_of, bytes, rate, took, usd};
pub(crate) use count::{many, summed};
pub(crate) use document::{Document, Piece};
pub(crate) use event::{
    event_glyph, event_sentence, event_words, particulars as event_particulars, verb,
};
pub(crate) use moment::{Present, clock, date, day_and_time};
pub use role::Role;
pub(crate) use role::Spans;
pub use sign::state_glyph;
pub(crate) use sign::{
    ascii, ascii_symbol, patch_glyph, patch_role, snapshot_glyph, snapshot_role, state_role,
};
pub use since::LastLook;
pub(crate) use since::SinceLastLook;
pub(crate) use table::Column;
pub use tree::NodeId;
pub(crate) use tree::{Node, below, rows as tree_rows};
