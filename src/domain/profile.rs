//! Profile: what a sandbox is made from, with its version.
//!
//! In YAML durations are texts (`ttl: 4h`); in JSON they are integer seconds under names that end in `_s`. Serde reads both; an
//! operator's file is held against the schema of what is read before, with places, in the room `yaml`.

mod candidates;
mod check;
mod check_fields;
mod check_routing;
mod definition;
mod given_inputs;
mod inputs;
mod privilege_diff;
mod quantity;
mod routing;

pub(crate) use candidates::ExtensionUse;
pub(crate) use check_fields::is_catalogue_id;
#[cfg(test)]
pub(crate) use definition::write_canonical;
pub(crate) use definition::{Allowance, PortPolicy, Strategy};
pub use definition::{
    Compose, PatchLimits, Placement, Profile, SnapshotMode, SnapshotPolicy, Sync,
};
pub(crate) use inputs::MAX_INPUT_BYTES;
pub use inputs::{InputKind, InputSpec, Inputs};
pub(crate) use quantity::QuantityError;
pub use quantity::{Bytes, Seconds};
pub use routing::Routing;
