//! Routes: why a sandbox is where it is, in its details and before it is made; what it costs, in the list.

use sandboxer::domain::Usd;
use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::extension::Preview;
use sandboxer::domain::name::{ExtensionId, HostName, SandboxId};
use sandboxer::domain::route::{Attempt, CandidateVerdict, Route, RouteCondition, Verdict};
use sandboxer::domain::sandbox::{Failure, State};
use sandboxer::tui::model::{Details, Model, Overlay};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{list, model_of, now, press, screen, shows, type_text};
use crate::test_env::fixture::{decision, metered_world, profiles, world};
use sandboxer::client::Decision;

fn candidates() -> Vec<CandidateVerdict> {
    let full = Verdict {
        host: HostName::new("coulombcore"),
        ok: false,
        reason: "30 of 30 sandboxes".to_owned(),
    };
    vec![
        CandidateVerdict {
            extension: ExtensionId::new("ext.compose-ssh"),
            ok: false,
            condition: Some(RouteCondition::Saturated),
            reason: "none of its hosts has room".to_owned(),
            quote_usd: None,
            verdicts: vec![full],
        },
        CandidateVerdict {
            extension: ExtensionId::new("ext.saas-stub"),
            ok: true,
            condition: None,
            reason: "the first that can take it".to_owned(),
            quote_usd: Some(Usd::from_micros(800_000)),
            verdicts: Vec::new(),
        },
    ]
}

fn detailed() -> Model {
    let mut world = metered_world(now());
    let record = world.records.last_mut().unwrap();
    record.route = Some(Route {
        host: HostName::new("saas-stub"),
        reason: "the first that can take it".to_owned(),
        verdicts: Vec::new(),
        remarks: Vec::new(),
        candidates: candidates(),
    });
    let attempt = |extension: &str, host: &str, ok, reason: &str| Attempt {
        host: HostName::new(host),
        ok,
        reason: reason.to_owned(),
        extension: Some(ExtensionId::new(extension)),
        at: Some(now().minus_seconds(5 * 3600)),
        failure: None,
        cost_usd: None,
    };
    let mut failed = attempt("ext.compose-ssh", "coulombcore", false, "step up failed");
    failed.failure = Some(Failure {
        step: "up".to_owned(),
        exit_status: Some(125),
        output: "Error: \u{1b}[31mno space left on device\n".to_owned(),
    });
    failed.cost_usd = Some(Usd::from_micros(12_000));
    record.attempts = vec![failed, attempt("ext.saas-stub", "saas-stub", true, "it is ready")];
    let record = record.clone();
    let mut model = model_of(world);
    model.overlays.push(Overlay::Details(Details::new(record)));
    model
}

#[test]
fn details_tell_the_route_and_how_each_attempt_ended() {
    let mut model = detailed();
    press(&mut model, "G");
    let shown = screen(&mut model, (120, 60));
    for line in [
        "✗ ext.compose-ssh  saturated: none of its hosts has room",
        "coulombcore: 30 of 30 sandboxes",
        "✓ ext.saas-stub  the first that can take it  $0.80",
        "✗ ext.compose-ssh on coulombcore: step up failed  cost $0.012",
        "step up, exit 125: Error: no space left on device",
        "✓ ext.saas-stub on saas-stub: it is ready",
        "per hour      $0.20",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    insta::assert_snapshot!("details_route", shown);
}

/// The create form with an answer to what it would do.
fn planned(change: impl FnOnce(&mut Decision)) -> Model {
    let mut model = model_of(world(now()));
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    press(&mut model, "enter");
    type_text(&mut model, "x");
    let Some((create, _)) = model.create_form() else { panic!("no form") };
    let generation = create.generation;
    let mut decision = Decision { preview: Preview::default(), ..decision() };
    change(&mut decision);
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision))));
    model
}

#[test]
fn the_create_form_shows_each_candidate_the_price_and_what_is_missing() {
    let mut model = planned(|decision| {
        decision.candidates = candidates();
        decision.verdicts.clear();
        decision.extension = "ext.saas-stub".to_owned();
        decision.quote_usd = Some(Usd::from_micros(800_000));
        if let Some(route) = &mut decision.route {
            route.host = HostName::new("saas-stub");
        }
    });
    insta::assert_snapshot!("create_route", screen(&mut model, (120, 36)));
    shows(&mut model, (80, 24), &["coulombcore: 30 of 30", "ext.saas-stub"]);
    let mut model = planned(|decision| {
        decision.candidates = candidates();
        decision.candidates[1].ok = false;
        decision.candidates[1].condition = Some(RouteCondition::OverBudget);
        decision.candidates[1].reason = "it costs $0.80, there are $0.50".to_owned();
        decision.verdicts.clear();
        decision.quote_usd = Some(Usd::from_micros(800_000));
        decision.missing_usd = Some(Usd::from_micros(300_000));
        (decision.ok, decision.route) = (false, None);
    });
    shows(
        &mut model,
        (120, 36),
        &[
            "✗ no candidate can take it",
            "✗ $0.30 missing: grant that much first",
            "✗ ext.saas-stub  over-budget: it costs $0.80, there are $0.50",
        ],
    );
}

#[test]
fn of_many_candidates_each_can_be_read_on_a_small_screen() {
    let mut model = planned(|decision| {
        decision.candidates = (0..6).flat_map(|_| candidates()).collect();
        decision.verdicts.clear();
    });
    shows(&mut model, (60, 15), &["more lines, PgDn PgUp"]);
    let last = |model: &mut Model| screen(model, (60, 15)).contains(" 0 more lines");
    for _ in 0..20 {
        press(&mut model, "pgdn");
    }
    assert!(last(&mut model));
    press(&mut model, "pgup");
    assert!(!last(&mut model), "back at once, wherever the end was");
}

#[test]
fn a_ledger_that_became_unreadable_is_said_where_credits_are() {
    let mut model = planned(|_| {});
    let error = Error::new(Code::StoreCorrupt, "entry 3 of the ledger is not JSON");
    update(&mut model, Msg::Credits(Err(error)));
    press(&mut model, "ctrl-p");
    let Some((create, _)) = model.create_form() else { panic!("no form") };
    let generation = create.generation;
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision()))));
    shows(
        &mut model,
        (120, 36),
        &["⚠ entry 3 of the ledger is not JSON", "what is said of credits is as they were before"],
    );
}

#[test]
fn columns_of_money_are_shown_where_something_costs() {
    let mut free = model_of(world(now()));
    assert!(!screen(&mut free, (160, 36)).contains("COST"));
    let mut model = model_of(metered_world(now()));
    press(&mut model, "+");
    let shown = screen(&mut model, (170, 36));
    let row = shown.lines().find(|line| line.contains("burst-1")).unwrap();
    assert!(shown.contains(" COST ") && shown.contains(" $/H "), "{shown}");
    assert!(row.contains(" $0.51 ") && row.contains(" $0.20 "), "{row}");
    press(&mut model, ":");
    type_text(&mut model, "sort cost");
    press(&mut model, "enter");
    let first = model.sandboxes.shown().first().unwrap().record.id.clone();
    assert_eq!(first.as_str(), "e1e2e3e4");
    // It goes, and its columns with it.
    let left = world(now()).records;
    let effects = list(&mut model, left);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Discard(_))));
    assert!(!screen(&mut model, (170, 36)).contains("COST"));
}

#[test]
fn a_row_that_is_over_offers_no_key_that_needs_a_sandbox() {
    let mut model = model_of(world(now()));
    let mut gone = world(now()).records.remove(0);
    (gone.id, gone.state) = (SandboxId::new("0ddba111"), State::Destroyed);
    press(&mut model, "/");
    type_text(&mut model, "state:destroyed");
    press(&mut model, "enter");
    let entry = std::sync::Arc::new(sandboxer::tui::model::Entry::new(gone));
    update(&mut model, Msg::ListedDestroyed(Ok(vec![entry])));
    let shown = screen(&mut model, (120, 36));
    let footer = shown.lines().last().unwrap();
    assert!(footer.contains("u undo") && footer.contains("enter details"), "{shown}");
    for word in ["destroy", "rebuild", "shell", "logs", "snapshot", "extend", "sleep"] {
        assert!(!footer.contains(word), "{word}: {footer}");
    }
    let strip = shown.lines().find(|line| line.contains("u undo") && line.contains('│')).unwrap();
    assert!(!strip.contains("destroy") && !strip.contains("shell"), "{strip}");
}
