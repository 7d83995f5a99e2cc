//! Files that an operator writes: a text becomes one tree with places, is held against the JSON Schema of its type, and is read
//! by serde.
//!
//! Operators edit these files by hand, so the message is the product: each problem has its file, line, column and the nearest
//! name, and all of them are told at once. The YAML library is lenient (`'1'` as a number, `yes` as true); this layer is not.
//! [`tree`] is also what compose files are read with, under limits of their own.

mod check;
mod document;
mod files;
mod form;
mod manifest;
mod profile;
mod schema;
pub(crate) mod tree;

pub(crate) use check::Checked;
pub(crate) use document::Document;
pub(crate) use files::{read_bytes, read_document};
pub(crate) use manifest::manifest;
pub(crate) use profile::profile;
pub(crate) use schema::Schema;

/// Profile of a text.
#[cfg(test)]
pub(crate) fn read_profile(
    file: &str,
    source: &str,
) -> Result<crate::domain::profile::Profile, Vec<crate::domain::problem::ParseProblem>> {
    profile(&Document::parse(file, source).map_err(|problem| vec![problem])?)
}

/// Manifest of a text.
#[cfg(test)]
pub(crate) fn read_manifest(
    file: &str,
    source: &str,
) -> Result<crate::domain::manifest::ExtensionManifest, Vec<crate::domain::problem::ParseProblem>> {
    manifest(&Document::parse(file, source).map_err(|problem| vec![problem])?)
}

#[cfg(test)]
mod tests;
