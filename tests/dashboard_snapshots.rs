//! Snapshots in the dashboard: the tree of lineage, the verbs on snapshots and what each is asked with, patches, and the
//! screens of all of it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/drive.rs"]
mod drive;
#[path = "support/fake_client.rs"]
mod fake_client;

use drive::{Drive, model_of, now, press, screen, type_text};
use fake_client::{Scenario, lineage_world};
use sandboxer::tui::model::Model;

const SIZES: [(u16, u16); 3] = [(120, 36), (100, 30), (80, 24)];

fn lineage_model() -> Model {
    model_of(lineage_world(now()))
}

/// A snapshot of a screen at every size.
fn at_every_size(name: &str, model: &mut Model) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(model, (width, height)));
    }
}

#[test]
fn the_tree() {
    let mut model = lineage_model();
    press(&mut model, "2");
    at_every_size("tree", &mut model);
}
