//! The picture of semantics 7 in a dashboard, and ways about it.

use sandboxer::tui::model::Model;
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{model_of, now, patch_status, press};
use crate::test_env::fixture::lineage_world;

pub(crate) fn lineage_model() -> Model {
    model_of(lineage_world(now()))
}

/// Puts the cursor of the snapshots' pane on a row.
pub(crate) fn go_to(model: &mut Model, name: &str) {
    press(model, "2 g");
    for _ in 0..model.snapshots.rows().len() {
        let row = model.snapshots.selected().unwrap();
        let title =
            row.sandbox().map_or(row.view.record.title(), |based| based.name.as_deref().unwrap());
        if title == name {
            return;
        }
        press(model, "j");
    }
    panic!("{name} is not in the tree");
}

/// Opens the patches of `my-env`, read.
pub(crate) fn open_patches(model: &mut Model) {
    go_to(model, "my-env");
    assert_eq!(press(model, "p"), [Effect::PatchStatus("snap-0000000a".into())]);
    let status = patch_status(&lineage_world(now()), "snap-0000000a");
    update(model, Msg::PatchStatus("snap-0000000a".into(), Ok(status)));
}
