//! The shipped files, compiled in.

use super::files::{CatalogueFile, Found};
use crate::domain::manifest::ExtensionManifest;
use crate::domain::profile::Profile;
use crate::yaml::Document;

macro_rules! shipped {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$((
            concat!($folder, "/", $name, ".yaml"),
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $folder, "/", $name, ".yaml")),
        )),+]
    };
}

/// In the order in which they are listed.
const PROFILES: &[(&str, &str)] = shipped!(
    "profiles": "sandbox-canary", "compose-e2e", "compose-checkpoint", "vm-haskell-build", "saas-stub", "burst-sandbox"
);

const MANIFESTS: &[(&str, &str)] =
    shipped!("extensions": "ext.compose-ssh", "ext.vm-packer", "ext.saas-stub");

pub(super) fn profiles() -> Vec<Found<Profile>> {
    read(PROFILES)
}

pub(super) fn manifests() -> Vec<Found<ExtensionManifest>> {
    read(MANIFESTS)
}

fn read<T: CatalogueFile>(files: &[(&str, &str)]) -> Vec<Found<T>> {
    files
        .iter()
        .map(|(file, source)| Found::new(file, Document::parse(file, source), None))
        .collect()
}
