//! Rules of the routing block: what it may say, and what a profile is for a candidate.

use crate::domain::profile::Profile;
use crate::domain::profile::Routing;
use crate::domain::route::RouteCondition;
use crate::yaml::read_profile;

const HEAD: &str = "id: profile.x\nversion: 1.0.0\nextension: ext.compose-ssh\n";

fn profile(rest: &str) -> Profile {
    read_profile("x.yaml", &format!("{HEAD}{rest}")).unwrap()
}

/// Routing blocks that are refused, and with which words.
const REFUSED: &[(&str, &str)] = &[
    (
        "routing: {candidates: [{extension: ext.a}, {extension: ext.b, when: [ful]}], conditions: {full: [saturated]}}\n",
        "x.yaml:4:70: unknown condition 'ful', did you mean 'full'?",
    ),
    (
        "routing: {candidates: [{extension: ext.a}, {extension: ext.b, when: [saturate]}]}\n",
        "x.yaml:4:70: unknown condition 'saturate', did you mean 'saturated'?",
    ),
    (
        "routing: {candidates: [{extension: ext.a}, {extension: ext.b, when: [saturated, saturated]}]}\n",
        "x.yaml:4:81: the condition 'saturated' is named twice",
    ),
    (
        "routing: {candidates: [{extension: ext.a, when: [saturated]}]}\n",
        "x.yaml:4:49: the first candidate has none before it: it is always considered, and 'when' says nothing",
    ),
    (
        "routing: {candidates: [{extension: ext.a}], conditions: {full: 1}}\n",
        "x.yaml:4:64: 'routing.conditions.full' must be a list, not a number",
    ),
    (
        "routing: {candidates: [{extension: ext.a}], conditions: {full: []}}\n",
        "x.yaml:4:64: the group 'full' names no condition",
    ),
    (
        "routing: {candidates: [{extension: ext.a}], conditions: {full: [ful]}}\n",
        "x.yaml:4:65: 'ful' is not one of host-unreachable, saturated, unsupported, over-budget",
    ),
    (
        "routing: {candidates: [{extension: ext.a}], conditions: {saturated: [unsupported]}}\n",
        "x.yaml:4:69: 'saturated' is a condition itself: the group needs another name",
    ),
    (
        "routing: {candidates: []}\n",
        "x.yaml:4:23: a list of candidates names one at least; without the key, the profile's own extension makes every sandbox",
    ),
    (
        "routing: {candidates: [{extension: ext.a}, {extension: ext.b}, {extension: ext.a}]}\n",
        "x.yaml:4:76: it is candidates[0] once more: another extension, or other hosts, would be another candidate",
    ),
    (
        "routing: {candidates: [{extension: ext.a, hosts: [one, ONE]}]}\n",
        "x.yaml:4:56: host 'ONE' is named twice",
    ),
    (
        "routing: {candidates: [{extension: ext.a, config: {root: /a}}, {extension: ext.a, hosts: [b], config: {}}]}\n",
        "x.yaml:4:103: ext.a has another config in routing.candidates[0].extension: candidates of one extension have the same",
    ),
    (
        "routing: {max_cost_usd: -1}\n",
        "x.yaml:4:25: 'routing.max_cost_usd' is out of range for an amount in USD",
    ),
    ("routing: {max_cost_usd: .nan}\n", "x.yaml:4:25: a number must be finite"),
    ("routing: {max_cost_usd: .inf}\n", "x.yaml:4:25: a number must be finite"),
    (
        "routing: {max_cost_usd: 1e30}\n",
        "x.yaml:4:25: 'routing.max_cost_usd' is out of range for an amount in USD",
    ),
    (
        "routing: {max_cost_usd: 0.0000001}\n",
        "x.yaml:4:25: 'routing.max_cost_usd' has more than six decimals",
    ),
    (
        "routing: {max_cost: 1}\n",
        "x.yaml:4:11: unknown key 'max_cost', did you mean 'max_cost_usd'?",
    ),
    (
        "routing: {candidates: [{extension: ext.a, whn: []}]}\n",
        "x.yaml:4:43: unknown key 'whn', did you mean 'when'?",
    ),
    (
        "routing: {candidates: [{when: []}]}\n",
        "x.yaml:4:24: missing key 'extension' in 'routing.candidates[0]'",
    ),
];

#[test]
fn a_routing_block_that_means_nothing_is_refused_with_its_place() {
    for (rest, wanted) in REFUSED {
        let problems = read_profile("x.yaml", &format!("{HEAD}{rest}")).unwrap_err();
        let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), *wanted, "{rest}");
    }
}

const ROUTED: &str = "placement: {hosts: [a]}
config: {root: /own}
routing:
  candidates:
    - {extension: ext.compose-ssh, hosts: [b]}
    - {extension: ext.y, when: [full], config: {speed: 2}}
    - {extension: ext.z}
  conditions: {full: [saturated, host-unreachable]}
  max_cost_usd: 2.5
";

#[test]
fn a_profile_as_a_candidate_uses_it_has_that_ones_extension_hosts_and_config_under_the_profiles_hash()
 {
    let profile = profile(ROUTED);
    let used: Vec<Profile> =
        profile.routing.candidates.iter().map(|one| profile.for_candidate(one)).collect();
    let seen = used.iter().map(|one| {
        let hosts: Vec<&str> = one.placement.hosts.iter().map(AsRef::as_ref).collect();
        (one.extension.as_str(), hosts, one.config.to_string())
    });
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            ("ext.compose-ssh", vec!["b"], r#"{"root":"/own"}"#.to_owned()),
            ("ext.y", vec!["a"], r#"{"speed":2}"#.to_owned()),
            ("ext.z", vec!["a"], "{}".to_owned()),
        ]
    );
    for one in &used {
        assert_eq!((one.hash(), one.as_written()), (profile.hash(), &profile));
        // From the record it is found again, whichever it was used for before.
        assert_eq!(&used[0].clone().for_extension(&one.extension), one);
    }
    assert_eq!(profile.clone().for_extension(&"ext.gone".into()), profile);
}

#[test]
fn conditions_of_a_candidate_are_those_of_its_groups() {
    use RouteCondition::{HostUnreachable, Saturated};
    let routing = profile(ROUTED).routing;
    let conditions = |at: usize| routing.conditions_of(&routing.candidates[at]);
    assert_eq!((conditions(0), conditions(1)), (vec![], vec![Saturated, HostUnreachable]));
    let back: Routing = serde_json::from_value(serde_json::to_value(&routing).unwrap()).unwrap();
    assert_eq!(back, routing);
}
