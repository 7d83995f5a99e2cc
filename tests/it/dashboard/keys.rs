//! Keys that must not act (on a screen that shows nothing, before a dialog was drawn, joined with an Esc), and keys in text:
//! the palette, paths.

use super::drive::{
    self, confirm, draw, event, form, model_of, now, press, screen, shows, started, type_text,
    world_model,
};
use crate::test_env::fixture;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use sandboxer::client::Request;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{Entry, Leaving, Model, Offer, Overlay, SortKey};
use sandboxer::tui::update::update;
use sandboxer::tui::{Completion, Effect, Msg};

/// Keys in one read: no frame in between.
fn burst(model: &mut Model, keys: &str) -> Vec<Effect> {
    keys.split(' ').flat_map(|word| update(model, Msg::Key(drive::key_event(word)))).collect()
}

fn alt(model: &mut Model, code: KeyCode) -> Vec<Effect> {
    update(model, Msg::Key(KeyEvent::new(code, KeyModifiers::ALT)))
}

fn verbs(effects: &[Effect]) -> Vec<&Effect> {
    let is_verb = |effect: &&Effect| !matches!(effect, Effect::SaveState(_) | Effect::After(..));
    effects.iter().filter(is_verb).collect()
}

// ---- a terminal that is too small ----------------------------------------------------------------------------------

#[test]
fn where_nothing_is_shown_no_key_acts() {
    for size in [(0, 0), (1, 1), (10, 3), (39, 10), (39, 40), (200, 9)] {
        let mut model = world_model();
        draw(&mut model, size);
        update(&mut model, Msg::Drawn);
        let all = "d tab enter B tab enter n enter enter z w s enter r l ! L p J ? : x / a c space * V tab 2 3 5 X e u + F";
        let effects = press(&mut model, all);
        assert_eq!(verbs(&effects), Vec::<&Effect>::new(), "{size:?}");
        assert_eq!(type_text(&mut model, "destroy"), []);
        assert_eq!(update(&mut model, Msg::Paste("x".to_owned())), []);
        let (kind, modifiers) = (MouseEventKind::ScrollDown, KeyModifiers::NONE);
        let wheel = MouseEvent { kind, column: 0, row: 0, modifiers };
        assert_eq!(update(&mut model, Msg::Mouse(wheel)), []);
        assert!(model.overlays.is_empty() && model.filter_field.is_none());
        assert!(model.sandboxes.marks.is_empty());
        assert_eq!(model.jobs.list().count(), 0, "{size:?}");
        assert_eq!(press(&mut model, "ctrl-z"), [Effect::Suspend]);
        assert!(press(&mut model, "ctrl-l").contains(&Effect::Redraw));
        assert_eq!(press(&mut model, "q"), [Effect::Quit], "{size:?}");
    }
}

#[test]
fn a_dialog_or_form_that_no_longer_fits_is_closed_and_what_is_read_stays() {
    for open in ["d", "n", "s", "L", "L a", ":", "/", "B", "2 r", "2 p a"] {
        let mut model = model_of(fixture::lineage_world(now()));
        press(&mut model, open);
        assert_ne!(model.mode(), Mode::Main, "{open}");
        draw(&mut model, (39, 9));
        draw(&mut model, (120, 36));
        assert!(matches!(model.mode(), Mode::Main | Mode::Patches), "{open}: {:?}", model.mode());
        let effects = press(&mut model, "tab enter");
        assert!(!started(&effects).iter().any(|request| matches!(request, Request::Destroy(..))));
    }
    for (read, mode) in
        [("enter", Mode::TextBlock), ("G l", Mode::Logs), ("G l /", Mode::Logs), ("J", Mode::Jobs)]
    {
        let mut model = world_model();
        press(&mut model, read);
        draw(&mut model, (39, 9));
        // Esc closes nothing in the dark.
        press(&mut model, "esc");
        draw(&mut model, (120, 36));
        assert_eq!(model.mode(), mode, "{read}");
    }
}

#[test]
fn quit_in_the_dark_waits_for_what_runs() {
    let mut model = world_model();
    press(&mut model, "d tab enter");
    let job = model.jobs.running().next().unwrap().id;
    draw(&mut model, (39, 9));
    assert_eq!(press(&mut model, "q q"), []);
    assert_eq!(model.leaving, Some(Leaving::Waiting));
    shows(&mut model, (39, 9), &["needs 40x10", "leaving after 1 job"]);
    assert!(update(&mut model, Msg::Skipped(job, "it changed".to_owned())).contains(&Effect::Quit));
}

// ---- before it was drawn -------------------------------------------------------------------------------------------

#[test]
fn what_is_typed_before_a_dialog_is_drawn_reaches_no_button() {
    let mut model = world_model();
    assert_eq!(burst(&mut model, "d tab enter"), []);
    assert_eq!(confirm(&model).focus, 0);
    // Now it is seen.
    update(&mut model, Msg::Drawn);
    assert_eq!(burst(&mut model, "tab enter").len(), 1);

    // Leaving is harmless.
    burst(&mut model, "d esc");
    assert_eq!(model.mode(), Mode::Main);
}

#[test]
fn what_is_typed_before_a_dialog_is_drawn_is_no_agreement() {
    let mut model = world_model();
    press(&mut model, "*");
    burst(&mut model, "d");
    type_text(&mut model, "7");
    assert_eq!(confirm(&model).typed.value(), "");
}

#[test]
fn a_form_takes_text_before_it_is_drawn_and_its_enter_only_after() {
    let mut model = world_model();
    burst(&mut model, "s");
    type_text(&mut model, "monday");
    assert_eq!(burst(&mut model, "enter"), []);
    assert_eq!(model.mode(), Mode::Form);
    update(&mut model, Msg::Drawn);
    let effects = burst(&mut model, "enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::Snapshot(request))] if request.name.as_deref() == Some("monday"))
    );

    let mut model = world_model();
    assert_eq!(burst(&mut model, "L y enter"), []);
    assert_eq!(model.mode(), Mode::Form);
}

// ---- Esc and the next key in one read ------------------------------------------------------------------------------

#[test]
fn an_alt_key_that_is_not_bound_is_esc_and_the_key() {
    // The filter is left, and the key acts in the panes.
    let mut model = world_model();
    press(&mut model, "/");
    type_text(&mut model, "shop");
    alt(&mut model, KeyCode::Char('/'));
    assert_eq!(model.mode(), Mode::Filter);
    assert!(model.sandboxes.filter().is_empty(), "left by the Esc, opened by the key");
    type_text(&mut model, "warp");
    assert_eq!(model.sandboxes.filter().text(), "warp");

    // A dialog is left; the key acts on what lies below.
    let mut model = world_model();
    press(&mut model, "d");
    alt(&mut model, KeyCode::Char('?'));
    assert!(matches!(model.overlays.as_slice(), [Overlay::Help(_)]), "{:?}", model.overlays);
    alt(&mut model, KeyCode::Char('d'));
    assert_eq!(model.mode(), Mode::Confirm);
    // And a second dialog was not on the screen yet.
    assert_eq!(alt(&mut model, KeyCode::Char('d')), []);
    assert_eq!(burst(&mut model, "tab enter"), []);

    // A form's field, a log's, the palette.
    for (open, mode) in
        [("s", Mode::Main), ("L tab", Mode::Main), ("G l /", Mode::Logs), (":", Mode::Main)]
    {
        let mut model = world_model();
        press(&mut model, open);
        type_text(&mut model, "x");
        alt(&mut model, KeyCode::Char('j'));
        assert_eq!(model.mode(), mode, "{open}");
    }
}

#[test]
fn alt_and_a_key_that_is_bound_or_edits_stays_one_key() {
    let keys = std::collections::BTreeMap::from([("filter".to_owned(), "/ alt-f".to_owned())]);
    let mut model = world_model();
    model.keymap = sandboxer::tui::keymap::Keymap::new(&keys).unwrap();
    press(&mut model, "space");
    alt(&mut model, KeyCode::Char('f'));
    let (mode, marks) = (model.mode(), model.sandboxes.marks.ids().len());
    assert_eq!((mode, marks), (Mode::Filter, 1), "no Esc cleared the marks");
    type_text(&mut model, "one two");
    alt(&mut model, KeyCode::Backspace);
    assert_eq!((model.mode(), model.sandboxes.filter().text()), (Mode::Filter, "one "));
    // Where a terminal names the modifier, it is no Esc.
    update(&mut model, Msg::Key(KeyEvent::new(KeyCode::Left, KeyModifiers::META)));
    assert_eq!(model.mode(), Mode::Filter);
}

// ---- the palette ---------------------------------------------------------------------------------------------------

fn offered(model: &Model, typed: &str) -> Vec<String> {
    model.palette(typed).iter().map(Offer::name).collect()
}

#[test]
fn the_palette_ranks_by_name_and_offers_what_destroys_by_its_name_alone() {
    let model = model_of(fixture::lineage_world(now()));
    for (typed, first) in [
        ("snapshot", "snapshot"),
        ("new", "create (new)"),
        ("delete", "destroy (delete)"),
        ("rebuild", "recreate (rebuild)"),
        ("des", "destroy (delete)"),
        ("jobs", "jobs"),
        ("range", "mark range"),
        ("SORT DIR", "sort direction"),
        ("sort ttl", "sort ttl"),
        ("host coul", "host coulombcore"),
        ("state slee", "state sleeping"),
        ("restore my-env", "restore my-env"),
    ] {
        assert_eq!(offered(&model, typed).first().map(String::as_str), Some(first), "{typed}");
    }
    let destructive = |typed: &str| {
        let found = model.palette(typed).into_iter();
        let found = found.filter(|offer| offer.action().is_destructive());
        found.map(|offer| offer.name()).collect::<Vec<_>>()
    };
    for typed in ["snapshot", "new", "undo", "stroy", "job", "estr", "ance", "leep", "eep"] {
        assert_eq!(destructive(typed), Vec::<String>::new(), "{typed}");
    }
    assert_eq!(destructive("s"), ["reap (stale)", "sleep"], "by its beginning");
    for movement in ["down", "page up", "next pane", "bottom"] {
        assert!(!offered(&model, movement).contains(&movement.to_owned()), "{movement}");
    }
    assert_eq!(offered(&model, "zzz"), Vec::<String>::new());
}

#[test]
fn a_palettes_argument_filters_sorts_restores_and_jumps() {
    let mut model = model_of(fixture::lineage_world(now()));
    let choose = |model: &mut Model, typed: &str| {
        press(model, ":");
        type_text(model, typed);
        press(model, "enter")
    };
    choose(&mut model, "host coulombcore");
    assert!(
        matches!(model.overlays.pop(), Some(Overlay::Host(host)) if host.name.same("coulombcore"))
    );
    choose(&mut model, "state ready");
    assert_eq!(model.sandboxes.filter().text(), "state:ready");
    choose(&mut model, "sort ttl");
    assert_eq!(model.sandboxes.sort().key, SortKey::Left);
    // A sandbox that the filter hides.
    let hidden = model.sandboxes.all().find(|entry| entry.state != "ready").unwrap().record.clone();
    choose(&mut model, hidden.title());
    assert_eq!(model.sandboxes.selected().unwrap().record.id, hidden.id);
    let effects = choose(&mut model, "restore my-env");
    assert!(matches!(effects.as_slice(), [Effect::Compare(..)]), "{effects:?}");
    assert!(screen(&mut model, (120, 36)).contains("Restore snap-0000000a my-env"));
}

// ---- paths ---------------------------------------------------------------------------------------------------------

#[test]
fn tab_completes_a_path_and_goes_on_where_there_is_nothing_to_complete() {
    let mut model = model_of(fixture::lineage_world(now()));
    model.home = Some("/home/kim".into());
    press(&mut model, "2 g p a");
    let focus = |model: &Model| {
        let fields = &form(model).fields;
        (fields.focus, fields.list[0].input.value().to_owned())
    };
    type_text(&mut model, "~/fi");
    let asked = press(&mut model, "tab");
    assert_eq!(asked, [Effect::Complete("~/fi".to_owned(), model.home.clone(), false)]);
    assert_eq!(focus(&model), (0, "~/fi".to_owned()));
    // An answer that comes too late.
    update(&mut model, Msg::Completed("~/f".to_owned(), Completion::To("~/foo".to_owned())));
    assert_eq!(focus(&model), (0, "~/fi".to_owned()));
    update(&mut model, Msg::Completed("~/fi".to_owned(), Completion::To("~/fix.sh".to_owned())));
    assert_eq!(focus(&model), (0, "~/fix.sh".to_owned()));
    press(&mut model, "tab");
    let choices = Completion::Choices(vec!["fix.sh".to_owned()]);
    update(&mut model, Msg::Completed("~/fix.sh".to_owned(), choices));
    assert_eq!(focus(&model).0, 0);
    update(&mut model, Msg::Completed("~/fix.sh".to_owned(), Completion::Nothing));
    assert_eq!(focus(&model).0, 1);
    // Keys before the answer go where the answer says; leaving does not wait.
    press(&mut model, "up tab");
    assert_eq!(type_text(&mut model, "why"), []);
    assert_eq!(focus(&model).0, 0);
    update(&mut model, Msg::Completed("~/fix.sh".to_owned(), Completion::Nothing));
    assert_eq!(focus(&model), (1, "~/fix.sh".to_owned()));
    assert_eq!(form(&model).fields.list[1].input.value(), "why");
    // Any other field, and down, go on at once.
    assert_eq!(press(&mut model, "tab"), []);
    assert_eq!(focus(&model).0, 2);
    let effects = press(&mut model, "enter");
    let home = Some(std::path::PathBuf::from("/home/kim/fix.sh"));
    assert!(matches!(&effects[..], [Effect::AddPatch(_, _, file)] if *file == home), "{effects:?}");
}

// ---- one that is over ----------------------------------------------------------------------------------------------

#[test]
fn enter_on_a_line_of_activity_shows_one_that_is_destroyed() {
    let mut model = world_model();
    let mut gone = model.sandboxes.shown()[0].record.as_ref().clone();
    gone.revision += 1;
    gone.state = sandboxer::domain::State::Destroyed;
    let id = gone.id.clone();
    update(&mut model, Msg::Got(id.clone(), Ok(Box::new(Entry::new(gone.clone())))));
    assert!(model.sandboxes.get(&id).is_none());
    let event = event(1, "sandbox.destroyed", Some(id.as_str()));
    update(&mut model, Msg::Events(None, Ok(vec![event])));
    assert_eq!(model.activity.rows().len(), 1, "its operation may be told of yet");
    update(&mut model, Msg::Tick(now().plus_seconds(3)));
    press(&mut model, "5 g");
    assert_eq!(press(&mut model, "enter"), [Effect::Get(id.clone())]);
    let effects = update(&mut model, Msg::Got(id.clone(), Ok(Box::new(Entry::new(gone)))));
    assert_eq!(effects, [Effect::Events(Some(id), None)]);
    shows(&mut model, (120, 36), &["destroyed"]);
    assert_eq!(press(&mut model, "d"), []);
    assert_eq!(model.mode(), Mode::TextBlock, "there is nothing to destroy");
}
