//! Choosing by typing: the profile and the host of a create, the filter, the palette.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{Create, Fields, Form, FormKind, Model, Overlay, Picker, Role};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{self, press, screen, shows, type_text, world_model};
use crate::test_env::fixture::profiles;

// ---- forms ---------------------------------------------------------------------------------------------------------

fn picker(model: &Model) -> &Picker {
    match model.overlays.last() {
        Some(Overlay::Picker(picker)) => picker,
        other => panic!("{other:?}"),
    }
}

fn form(model: &Model) -> (&Create, &Fields) {
    match drive::form(model) {
        Form { kind: FormKind::Create(create), fields, .. } => (create, fields),
        other => panic!("{other:?}"),
    }
}

fn host(model: &Model) -> Option<String> {
    let (create, fields) = form(model);
    create.request(fields).host
}

#[test]
fn a_profile_is_found_by_typing_and_one_that_cannot_be_used_is_last_and_not_chosen() {
    let mut model = world_model();
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    let names = |model: &Model| -> Vec<String> {
        let picker = picker(model);
        let name = |at: usize| picker.profiles[at].id.trim_start_matches("profile.").to_owned();
        picker.shown().into_iter().map(name).collect()
    };
    assert_eq!(names(&model)[3..], ["saas-stub", "mine"]);
    type_text(&mut model, "chk");
    assert_eq!(names(&model), ["compose-checkpoint"]);
    assert_eq!(picker(&model).profile().unwrap().id, "profile.compose-checkpoint");
    for _ in 0..3 {
        press(&mut model, "backspace");
    }
    // By its summary where no name has it; what `q` and `j` type is text.
    type_text(&mut model, "metered");
    assert_eq!(names(&model), ["saas-stub"]);
    press(&mut model, "enter");
    assert_eq!(model.mode(), Mode::Picker, "it cannot be chosen");
    assert_eq!(model.toast.as_ref().map(|toast| toast.role), Some(Role::Warn));
    type_text(&mut model, "qj");
    assert!(screen(&mut model, (80, 24)).contains("no profile matches"));
    press(&mut model, "enter");
    assert_eq!(model.mode(), Mode::Picker);
    press(&mut model, "esc");
    assert!(model.overlays.is_empty());
}

#[test]
fn the_host_is_a_choice_with_what_placement_says_of_each() {
    let mut model = world_model();
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    type_text(&mut model, "canary");
    press(&mut model, "enter");
    let verdict = |host: &str, ok: bool, reason: &str| serde_json::json!({"host": host, "ok": ok, "reason": reason});
    let decision = serde_json::json!({
        "profile": "profile.sandbox-canary", "version": "1.0.0", "extension": "ext.compose-ssh", "inputs": {},
        "route": {"host": "coulombcore", "reason": "first", "verdicts": []},
        "verdicts": [verdict("coulombcore", true, "12 of 30 are there"), verdict("vm-haskell", false, "it is down")],
        "quote_usd": null, "ttl_s": 600, "ok": true,
        "preview": {"bytes": 0, "files": 0, "rewrites": [], "refusals": [], "services": []}
    });
    let generation = form(&model).0.generation;
    let decision = serde_json::from_value(decision).unwrap();
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision))));
    shows(
        &mut model,
        (80, 24),
        &["‹ placement decides ›", "✓ coulombcore  sandboxer01  local  ✗ vm-haskell"],
    );
    press(&mut model, "v");
    shows(&mut model, (80, 24), &["‹ vm-haskell ›", "✗ it is down"]);
    assert_eq!(host(&model).as_deref(), Some("vm-haskell"));
    press(&mut model, "right");
    assert_eq!(host(&model), None, "round: placement decides again");
    press(&mut model, "right");
    assert_eq!(host(&model).as_deref(), Some("coulombcore"));
}

fn mouse(model: &mut Model, kind: MouseEventKind, row: u16) -> Vec<Effect> {
    let event = MouseEvent { kind, column: 30, row, modifiers: KeyModifiers::NONE };
    update(model, Msg::Mouse(event))
}

#[test]
fn a_click_focuses_a_field_and_on_a_choice_goes_to_the_next_one() {
    let mut model = world_model();
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    mouse(&mut model, MouseEventKind::ScrollDown, 5);
    type_text(&mut model, "canary");
    press(&mut model, "enter");
    let row = |model: &mut Model, word: &str| {
        let shown = screen(model, (80, 24));
        let at = shown.lines().position(|line| line.contains(word));
        u16::try_from(at.unwrap_or_else(|| panic!("{word}: {shown}"))).unwrap()
    };
    let at = row(&mut model, "large transfer");
    let click = MouseEventKind::Down(MouseButton::Left);
    assert_eq!(mouse(&mut model, click, at), []);
    assert_eq!(form(&model).1.focus, 4);
    let planned = mouse(&mut model, click, at);
    assert!(matches!(&planned[..], [Effect::After(..)]), "a plan is asked for: {planned:?}");
    let (create, fields) = form(&model);
    assert!(create.request(fields).yes);
    let at = row(&mut model, "  name");
    mouse(&mut model, click, at);
    type_text(&mut model, "shop");
    assert_eq!(form(&model).0.request(form(&model).1).name.as_deref(), Some("shop"));
    // What was typed is there when another profile is chosen.
    press(&mut model, "esc enter");
    assert_eq!(form(&model).0.request(form(&model).1).name.as_deref(), Some("shop"));
}

// ---- filter and palette --------------------------------------------------------------------------------------------

#[test]
fn the_filter_line_tells_a_field_that_is_not_known() {
    let mut model = world_model();
    let all = model.sandboxes.shown().len();
    press(&mut model, "/");
    type_text(&mut model, "hots:coul");
    shows(&mut model, (80, 24), &["there is no field hots: did you mean host:?"]);
    assert_eq!(model.sandboxes.shown().len(), all, "what is not understood filters nothing");
    press(&mut model, "esc /");
    type_text(&mut model, "-host:coul by:kim");
    let left = model.sandboxes.shown().len();
    assert!(left > 0 && left < all);
    let mut shown = model.sandboxes.shown().iter();
    assert!(shown.all(|entry| entry.record.host.as_str() != "coulombcore"));
}

#[test]
fn the_palette_lists_arguments_and_tells_one_that_is_not_known() {
    let mut model = world_model();
    let names = |model: &Model, typed: &str| -> Vec<String> {
        model.palette(typed).iter().map(sandboxer::tui::model::Offer::name).collect()
    };
    assert_eq!(
        names(&model, "host "),
        ["pane hosts", "host vm-haskell", "host coulombcore", "host sandboxer01", "host local"]
    );
    assert_eq!(names(&model, "label te")[0], "label team=core");
    assert_eq!(names(&model, "profile check"), ["profile compose-checkpoint"]);
    assert!(names(&model, "state").contains(&"state degraded".to_owned()));
    for (typed, told) in [
        ("host kulombcore", "there is no host kulombcore: did you mean coulombcore?"),
        ("state fialed", "there is no state fialed: did you mean failed?"),
        ("sort nmae", "there is no column nmae: did you mean name?"),
        ("restore nothing", "there is no snapshot nothing"),
    ] {
        assert_eq!(model.palette_problem(typed).as_deref(), Some(told), "{typed}");
    }
    assert_eq!(model.palette_problem("host coul"), None);
    press(&mut model, ":");
    type_text(&mut model, "host kulombcore");
    shows(&mut model, (80, 24), &["did you mean coulombcore?"]);
    press(&mut model, "enter");
    assert!(model.overlays.is_empty());
    press(&mut model, ":");
    type_text(&mut model, "label team=core");
    press(&mut model, "enter");
    assert_eq!(model.sandboxes.filter().text(), "label:team=core");
}
