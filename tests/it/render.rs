//! Compose files of a grammar, hostile ones among them, and what the engine would be told: `tests/run --test it render::`.
//! The tools themselves run in `lab`.

use crate::fuzz::course::{self, Tally};
use crate::fuzz::judge::{self, Judge};
use crate::fuzz::seed::Plan;
use crate::fuzz::world::{HOSTS, World, rendered, rendered_again};
use serde_json::Value;

/// Rendered files pass a second time: a restored sandbox is judged by its rendered file before it is removed.
#[test]
fn what_was_rendered_is_taken_once_more() {
    let world = World::at("/srv/fuzz");
    let plan = Plan::read(100);
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    for number in plan.cases() {
        for spoiled in [false, true] {
            let case = course::case(plan.seed, number, spoiled);
            for host in HOSTS {
                let Ok(first) = rendered(&case.files(), &world, host) else { continue };
                match rendered_again(&first.yaml, &world, host) {
                    Ok(second) => assert_eq!(
                        (first.services, first.fixed_addresses),
                        (second.services, second.fixed_addresses),
                        "seed {} case {number}",
                        plan.seed
                    ),
                    Err(error) => {
                        *refused.entry(format!("{:?} {error}", host.dialect)).or_default() += 1;
                    }
                }
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Reading as Docker's tools would do it, without a tool between.
fn direct(world: &World, text: &str, engine: &str) -> Vec<judge::Finding> {
    let json = text.split_once('\n').map_or(text, |(_, json)| json);
    let document: Value = serde_json::from_str(&json.replace("$$", "$")).unwrap();
    let mut judge = Judge::new(world, engine);
    judge.document(&document, false);
    judge.close()
}

#[test]
fn what_hostile_files_become_holds_nothing_that_leads_out() {
    let world = World::at("/srv/fuzz");
    let mut tally = Tally::default();
    let plan = Plan::read(1_500);
    for number in plan.cases() {
        for host in HOSTS {
            tally.judge(&world, (plan.seed, number), host, &mut |text| {
                Some(direct(&world, text, host.engine))
            });
        }
    }
    tally.end();
}

#[test]
fn honest_files_are_rendered() {
    let world = World::at("/srv/fuzz");
    let mut kept = std::collections::BTreeMap::new();
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    let plan = Plan::read(400);
    for number in plan.cases() {
        let case = course::case(plan.seed, number, false);
        for host in HOSTS {
            match rendered(&case.files(), &world, host) {
                Ok(_) => *kept.entry(format!("{host:?}")).or_insert(0_u64) += 1,
                Err(error) => {
                    *refused.entry(format!("{:?} {error}", host.dialect)).or_default() += 1;
                }
            }
        }
    }
    println!("{kept:#?}");
    let mut often: Vec<_> = refused.iter().collect();
    often.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (error, count) in often.iter().take(30) {
        println!("{count} {error}");
    }
    for host in HOSTS {
        let kept = kept.get(&format!("{host:?}")).copied().unwrap_or(0);
        assert!(
            kept * 10 >= plan.count * 5,
            "{host:?} renders {kept} of {} honest files",
            plan.count
        );
    }
}
