//! Rules of manifests, and of a profile's `config`.

use crate::domain::extension::Capability;
use crate::domain::manifest::{ExtensionManifest, Rates};
use crate::domain::usd::Usd;
use crate::yaml::{Document, read_manifest};

const HEAD: &str = "id: ext.x\nversion: 1.0.0\nkind: builtin\n";

fn refusal(source: &str) -> String {
    let problems = read_manifest("ext.yaml", source).unwrap_err();
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_have_their_place() {
    for (rest, wanted) in [
        (
            "capabilites: []\n",
            "ext.yaml:4:1: unknown key 'capabilites', did you mean 'capabilities'?",
        ),
        (
            "capabilities: [snapshot]\n",
            "ext.yaml:4:16: 'snapshot' is not one of snapshots, patches, sleep, exec, logs, adopt, metered, did you mean 'snapshots'?",
        ),
        ("capabilities: [patches]\n", "ext.yaml:4:15: the capability 'patches' needs 'snapshots'"),
        ("command: [x]\n", "ext.yaml:4:10: 'command' is for extensions of kind process"),
        ("env: [HOME]\n", "ext.yaml:4:6: 'env' is for extensions of kind process"),
        ("rates: {per_second_usd: 1}\n", "ext.yaml:4:8: 'rates' needs the capability 'metered'"),
        (
            "rates: {per_secnd_usd: 1}\n",
            "ext.yaml:4:9: unknown key 'per_secnd_usd', did you mean 'per_second_usd'?",
        ),
        (
            "capabilities: [metered]\nrates: {per_second_usd: -0.1}\n",
            "ext.yaml:5:25: 'rates.per_second_usd' is out of range for an amount in USD",
        ),
        (
            "capabilities: [metered]\nrates: {per_gb_usd: .inf}\n",
            "ext.yaml:5:21: a number must be finite",
        ),
        (
            "capabilities: [metered]\nrates: {minimum_usd: 0.00000001}\n",
            "ext.yaml:5:22: 'rates.minimum_usd' has more than six decimals",
        ),
        (
            "capabilities: [metered]\nrates: {minimum_usd: 1000000.000001}\n",
            "ext.yaml:5:22: 'rates.minimum_usd' is no rate: it is from $0.00 to $1000000.00",
        ),
        ("config_schema: 5\n", "ext.yaml:4:16: 'config_schema' must be a mapping, not a number"),
    ] {
        assert_eq!(refusal(&format!("{HEAD}{rest}")), wanted, "{rest}");
    }
    let typed = refusal(&format!("{HEAD}config_schema:\n  type: objekt\n"));
    assert!(typed.starts_with("ext.yaml:5:9: not a JSON Schema: \"objekt\""), "{typed}");
    let process = "id: ext.x\nversion: 1.0.0\nkind: process\n";
    assert_eq!(refusal(process), "ext.yaml:1:1: an extension of kind process needs 'command'");
    assert_eq!(
        refusal(&format!("{process}command: [a]\nenv: [A=B]\n")),
        "ext.yaml:5:7: 'A=B' is not the name of a variable"
    );
    assert_eq!(
        refusal("id: x\nversion: 1.0.0\nkind: builtn\n"),
        "ext.yaml:1:5: 'x' is not 'ext.' and a name of a-z, 0-9 and '-'\n\
         ext.yaml:3:7: 'builtn' is not one of builtin, process, did you mean 'builtin'?"
    );
}

#[test]
fn a_schema_reaches_for_nothing_outside() {
    for target in ["http://127.0.0.1:1/s.json", "file:///etc/passwd"] {
        let text =
            refusal(&format!("{HEAD}config_schema: {{properties: {{a: {{$ref: '{target}'}}}}}}\n"));
        assert!(text.contains("not a JSON Schema"), "{text}");
    }
}

#[test]
fn config_is_checked_with_paths_and_nearest_names() {
    let schema = "config_schema:
  type: object
  additionalProperties: false
  required: [root]
  properties:
    root: {type: string}
    list: {type: array, items: {type: object, properties: {k: {type: integer}}}}
    inner: {type: object, additionalProperties: false, properties: {speed: {type: integer}}}
";
    let manifest = read_manifest("ext.yaml", &format!("{HEAD}{schema}")).unwrap();
    assert!(manifest.check_config("config", &serde_json::json!({"root": "/build"})).is_empty());
    let config = serde_json::json!({"rot": 1, "list": [{}, {"k": "x"}], "inner": {"sped": 1}});
    let mut found: Vec<String> = manifest
        .check_config("config", &config)
        .iter()
        .map(|p| format!("{}: {} {:?}", p.path, p.message, p.suggestion))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "config.inner.sped: ext.x has no setting 'sped' Some(\"speed\")",
            "config.list[1].k: 'config.list[1].k' must be a whole number, not a text None",
            "config.rot: ext.x has no setting 'rot' Some(\"root\")",
            "config: ext.x needs the setting 'root' None",
        ]
    );
}

#[test]
fn config_is_told_in_the_sentences_of_every_file() {
    for (schema, value, message, near) in [
        ("{type: string}", "5", "'config.a' must be a text, not a number; put it in quotes", None),
        ("{type: boolean}", "yes", "'config.a' must be true or false, not 'yes'", Some("true")),
        (
            "{type: [integer, 'null']}",
            "[]",
            "'config.a' must be nothing or a whole number, not a list",
            None,
        ),
        ("{enum: [fast, slow]}", "fats", "'fats' is not one of fast, slow", Some("fast")),
        ("{minimum: 1}", "0", "'config.a' must be 1 or more", None),
        ("{exclusiveMinimum: 0}", "0", "'config.a' must be more than 0", None),
        ("{maximum: 9}", "10", "'config.a' must be 9 or less", None),
        ("{exclusiveMaximum: 9}", "9", "'config.a' must be less than 9", None),
        ("{multipleOf: 5}", "9", "'config.a' must be a multiple of 5", None),
        ("{minLength: 1}", "''", "'config.a' must have 1 character or more", None),
        ("{maxLength: 2}", "abc", "'config.a' must have 2 characters or less", None),
        ("{minItems: 2}", "[1]", "'config.a' must have 2 items or more", None),
        ("{maxItems: 1}", "[1, 2]", "'config.a' must have 1 item or less", None),
        ("{uniqueItems: true}", "[1, 1]", "'config.a' must have no item twice", None),
        ("{const: 4}", "5", "'config.a' must be 4", None),
        ("{pattern: '^/'}", "srv", "'config.a' must match '^/'", None),
    ] {
        let schema = format!("{HEAD}config_schema: {{properties: {{a: {schema}}}}}\n");
        let manifest = read_manifest("ext.yaml", &schema).unwrap();
        let config = Document::parse("x.yaml", &format!("a: {value}\n")).unwrap().value().clone();
        let found = manifest.check_config("config", &config);
        let [problem] = &found[..] else { panic!("{schema}: {found:?}") };
        assert_eq!((problem.message.as_str(), problem.suggestion.as_deref()), (message, near));
    }
}

#[test]
fn rates_are_exact_and_json_reads_back() {
    let source = "id: ext.x\nversion: 1.2.3\nkind: process\ncommand: [python3, x.py]\ncapabilities: [metered]\n\
                  rates: {per_second_usd: 0.0001, minimum_usd: 1}\n";
    let manifest = read_manifest("ext.yaml", source).unwrap();
    assert_eq!(manifest.rates.per_second_usd, Some(Usd::from_micros(100)));
    assert_eq!(manifest.rates.minimum_usd, Some(Usd::from_micros(1_000_000)));
    assert!(manifest.has(&Capability::Metered) && !manifest.has(&Capability::Exec));
    let json = serde_json::to_string(&manifest).unwrap();
    assert_eq!(serde_json::from_str::<ExtensionManifest>(&json).unwrap(), manifest);
}

#[test]
fn a_rate_below_nothing_is_refused_wherever_it_comes_from() {
    let source = format!("{HEAD}capabilities: [metered]\n");
    let manifest = read_manifest("ext.yaml", &source).unwrap();
    let rates = Rates { per_gb_usd: Some(Usd::from_micros(-1)), ..Rates::default() };
    let problems = ExtensionManifest { rates, ..manifest }.validate();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "rates.per_gb_usd");
}
