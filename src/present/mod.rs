//! Presentation: a record becomes rows and words, once for every face. A face gives them colours, widths and a place; here is what
//! they say: states, ages, sizes, money, plurals, tables, trees, sentences of events.
//!
//! A [`Document`] is what is told of a record, in the order in which it is read; a [`Column`] is what stands in a table's cells.
//! Nothing here knows a terminal.

pub mod catalogue;
mod count;
pub mod credit;
mod document;
pub mod error;
mod event;
pub mod failure;
pub mod host;
pub mod lineage;
mod moment;
pub mod operation;
pub mod patch;
mod role;
pub mod route;
pub mod sandbox;
mod sign;
mod since;
pub mod snapshot;
pub mod stale;
mod table;
mod tree;
pub mod upkeep;

pub use crate::domain::figures::{age, age_of, bytes, left, rate, took, usd};
pub use count::{counts, many, summed};
pub use document::{Document, Piece};
pub use event::{event_glyph, event_sentence, event_words, particulars as event_particulars, verb};
pub use moment::{Present, clock, date, day_and_time};
pub use role::{Role, Spans};
pub use sign::{
    ascii, ascii_symbol, patch_glyph, patch_role, patch_words, snapshot_glyph, snapshot_role,
    state_glyph, state_role,
};
pub use since::{LastLook, SinceLastLook};
pub use table::Column;
pub use tree::{Node, NodeId, below, rows as tree_rows};
