//! The shipped files, and operators' files of every kind over them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::entry::Origin;
use super::{Catalogue, ProfileEntry, Validated};
use crate::domain::error::Code;
use crate::domain::extension::Capability;
use crate::domain::profile::Seconds;
use crate::domain::request::{ExtensionView, ProfileView};

const SHIPPED: [&str; 6] = [
    "profile.sandbox-canary",
    "profile.compose-e2e",
    "profile.compose-checkpoint",
    "profile.vm-haskell-build",
    "profile.saas-stub",
    "profile.burst-sandbox",
];

fn compose_only() -> BTreeSet<&'static str> {
    BTreeSet::from(["ext.compose-ssh"])
}

fn profile_text(id: &str, rest: &str) -> String {
    format!("id: {id}\nversion: 1.0.0\nextension: ext.compose-ssh\n{rest}")
}

/// Two directories of an operator.
struct Operator {
    dir: TempDir,
}

impl Operator {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("p")).unwrap();
        fs::create_dir(dir.path().join("e")).unwrap();
        Self { dir }
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn load(&self) -> Catalogue {
        Catalogue::load(
            Some(&self.dir.path().join("p")),
            Some(&self.dir.path().join("e")),
            &compose_only(),
        )
    }

    /// A text with the directory's name cut out.
    fn plain(&self, text: &str) -> String {
        text.replace(&self.dir.path().display().to_string(), "DIR")
    }

    fn problems(&self, entry: &ProfileEntry) -> Vec<String> {
        entry.problems.iter().map(|problem| self.plain(&problem.to_string())).collect()
    }

    fn error(&self, id: &str) -> String {
        let error = self.load().profile(id).unwrap_err();
        assert_eq!(error.code, Code::InvalidProfile);
        self.plain(&error.message)
    }
}

fn entry<'c>(catalogue: &'c Catalogue, id: &str) -> &'c ProfileEntry {
    catalogue.profiles().iter().find(|entry| entry.id == id).unwrap()
}

#[test]
fn every_shipped_file_is_good_and_in_order() {
    let catalogue = Catalogue::load(None, None, &compose_only());
    for entry in catalogue.profiles() {
        assert_eq!(entry.problems, [], "{}", entry.id);
        assert_eq!(
            (entry.source.clone(), entry.path.as_deref(), entry.overrides_builtin),
            (Origin::Builtin, None, false)
        );
        assert_eq!(entry.hash.as_ref().map(String::len), Some(64));
        let definition = entry.definition.as_ref().unwrap();
        assert!(!definition.summary.is_empty());
        assert!(definition.max_ttl.is_some(), "{}: a shipped profile always ends", entry.id);
    }
    assert_eq!(
        catalogue.profiles().iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(),
        SHIPPED
    );
    for entry in catalogue.extensions() {
        assert_eq!(entry.problems, [], "{}", entry.id);
    }
    let ids: Vec<&str> = catalogue.extensions().iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["ext.compose-ssh", "ext.vm-packer", "ext.saas-stub"]);
    assert_eq!(catalogue.workspace_roots(), BTreeSet::from(["/build".to_owned()]));
}

#[test]
fn no_shipped_file_is_forgotten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let count = |dir: &str| {
        let files = fs::read_dir(root.join(dir)).unwrap();
        files
            .filter(|file| {
                file.as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == "yaml")
            })
            .count()
    };
    let catalogue = Catalogue::load(None, None, &compose_only());
    assert_eq!(count("profiles"), catalogue.profiles().len());
    assert_eq!(count("extensions"), catalogue.extensions().len());
}

#[test]
fn the_shipped_profiles_say_what_the_contract_says() {
    let catalogue = Catalogue::load(None, None, &compose_only());
    let e2e = catalogue.usable_profile("profile.compose-e2e").unwrap();
    assert_eq!((e2e.ttl, e2e.max_ttl), (Some(Seconds::hours(4)), Some(Seconds::hours(24))));
    assert_eq!(
        e2e.placement.hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["sandboxer01", "coulombcore"]
    );
    assert_eq!(e2e.inputs.names().collect::<Vec<_>>(), ["repo", "compose_file"]);
    assert!(!e2e.undo);
    let canary = catalogue.usable_profile("sandbox-canary").unwrap();
    assert!(canary.inputs.is_empty() && canary.placement.hosts.is_empty());
    assert_eq!(canary.config["workspace_only"], true);
    for id in ["compose-checkpoint", "vm-haskell-build"] {
        assert!(catalogue.profile(id).unwrap().definition().unwrap().undo, "{id}");
    }
    let burst = catalogue.profile("burst-sandbox").unwrap().definition().unwrap();
    assert!(!burst.routing.candidates.is_empty() && burst.routing.max_cost_usd.is_some());
    assert!(
        catalogue.extension("saas-stub").unwrap().definition().unwrap().has(&Capability::Metered)
    );
}

#[test]
fn what_this_build_cannot_make_is_listed_and_refused() {
    let catalogue = Catalogue::load(None, None, &compose_only());
    let available: Vec<bool> = catalogue.profiles().iter().map(|entry| entry.available).collect();
    // Of the candidates of the last one, this build can make one.
    assert_eq!(available, [true, true, true, false, false, true]);
    let error = catalogue.usable_profile("vm-haskell-build").unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::Unsupported, "ext.vm-packer is not part of this build")
    );
    assert!(catalogue.profile("vm-haskell-build").is_ok());
    let all = BTreeSet::from(["ext.compose-ssh", "ext.vm-packer", "ext.saas-stub"]);
    assert!(Catalogue::load(None, None, &all).profiles().iter().all(|entry| entry.available));
}

#[test]
fn an_unknown_id_names_the_nearest() {
    let catalogue = Catalogue::load(None, None, &compose_only());
    for (asked, message, hint) in [
        ("compose-e2", "there is no profile 'compose-e2'", "did you mean profile.compose-e2e?"),
        (
            "profile.sandbox-canry",
            "there is no profile 'profile.sandbox-canry'",
            "did you mean profile.sandbox-canary?",
        ),
        ("nothing-like-it", "there is no profile 'nothing-like-it'", "sandboxer profiles list"),
        ("", "there is no profile ''", "sandboxer profiles list"),
        ("a\0b\u{1b}", "there is no profile 'a\u{fffd}b\u{fffd}'", "sandboxer profiles list"),
    ] {
        let error = catalogue.profile(asked).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str(), error.hint.as_deref()),
            (Code::NotFound, message, Some(hint))
        );
    }
    assert!(catalogue.profile(&"x".repeat(10_000)).unwrap_err().message.len() < 300);
    assert_eq!(
        catalogue.extension("compose_ssh").unwrap_err().hint.as_deref(),
        Some("did you mean ext.compose-ssh?")
    );
}

#[test]
fn missing_directories_are_empty() {
    let nowhere = Path::new("/nonexistent/sandboxer");
    let catalogue = Catalogue::load(Some(nowhere), Some(nowhere), &compose_only());
    assert_eq!(catalogue.profiles().len(), SHIPPED.len());
}

#[test]
fn an_operators_file_takes_the_place_of_the_builtin_one() {
    let operator = Operator::new();
    operator.write("p/mine.yaml", profile_text("profile.compose-e2e", "summary: ours\n"));
    operator.write("p/zz.yaml", profile_text("profile.aaa", ""));
    operator.write("p/notes.txt", "not a profile");
    operator.write("p/.hidden.yaml", "not a profile");
    let catalogue = operator.load();
    let ids: Vec<&str> = catalogue.profiles().iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, [&SHIPPED[..], &["profile.aaa"]].concat());
    let e2e = entry(&catalogue, "profile.compose-e2e");
    assert_eq!((e2e.source.clone(), e2e.overrides_builtin), (Origin::Operator, true));
    assert_eq!(operator.plain(e2e.path.as_deref().unwrap()), "DIR/p/mine.yaml");
    assert_eq!(catalogue.usable_profile("compose-e2e").unwrap().summary, "ours");
    assert!(!entry(&catalogue, "profile.aaa").overrides_builtin);
}

#[test]
fn a_broken_file_breaks_its_own_profile_only() {
    let operator = Operator::new();
    operator.write("p/a.yaml", profile_text("profile.compose-e2e", "compose: {prots: keep}\n"));
    operator.write("p/b.yaml", "id: profile.torn   # half written\nversion: [1\n");
    let catalogue = operator.load();
    assert!(catalogue.usable_profile("sandbox-canary").is_ok());
    // Never the built-in profile in place of what the operator wrote.
    assert_eq!(
        operator.error("compose-e2e"),
        "DIR/p/a.yaml:4:11: unknown key 'prots', did you mean 'ports'?"
    );
    assert_eq!(
        operator.error("profile.torn"),
        "DIR/p/b.yaml:2:10: not valid YAML: unclosed bracket '['"
    );
    let e2e = entry(&catalogue, "profile.compose-e2e");
    assert_eq!(
        (e2e.available, e2e.overrides_builtin, e2e.definition.is_none()),
        (false, true, true)
    );
    let error = catalogue.profile("compose-e2e").unwrap_err();
    assert_eq!(operator.plain(&error.hint.unwrap()), "sandboxer profiles validate DIR/p/a.yaml");
    assert_eq!(error.details["problems"][0]["line"], 4);
}

#[test]
fn two_files_with_one_id_are_both_refused() {
    let operator = Operator::new();
    operator.write("p/one.yaml", profile_text("profile.twice", ""));
    operator.write("p/two.yaml", profile_text("profile.twice", ""));
    let catalogue = operator.load();
    let found: Vec<Vec<String>> = catalogue
        .profiles()
        .iter()
        .filter(|e| e.id == "profile.twice")
        .map(|e| operator.problems(e))
        .collect();
    assert_eq!(
        found,
        [
            ["DIR/p/one.yaml:1:5: duplicate id 'profile.twice': also in DIR/p/two.yaml"],
            ["DIR/p/two.yaml:1:5: duplicate id 'profile.twice': also in DIR/p/one.yaml"],
        ]
    );
    assert!(operator.error("twice").starts_with("DIR/p/one.yaml:1:5: duplicate id"));
    // The hint of that leads to a check of the file, which finds it too, however the file is called.
    let beside = operator.dir.path().join("e/../p/two.yaml");
    let problems = operator.load().validate_file(&beside).unwrap_err();
    assert!(problems[0].to_string().contains("duplicate id 'profile.twice'"), "{problems:?}");
}

#[test]
fn a_profile_is_checked_against_its_extension() {
    let operator = Operator::new();
    operator.write("p/a.yaml", "id: profile.a\nversion: 1.0.0\nextension: ext.compose-sh\n");
    operator.write("p/b.yaml", profile_text("profile.b", "config:\n  workspace_onl: true\n"));
    operator.write("p/c.yaml", profile_text("profile.c", "config: {workspace_only: 'yes'}\n"));
    operator.write(
        "p/d.yaml",
        profile_text("profile.d", "routing: {candidates: [{extension: ext.nowhere-at-all}]}\n"),
    );
    operator.write("p/e.yaml", "id: profile.e\nversion: 1.0.0\nextension: ext.torn\n");
    operator.write("e/torn.yaml", "id: ext.torn\nversion: 1\nkind: builtin\n");
    operator.write(
        "p/f.yaml",
        "id: profile.f\nversion: 1.0.0\nextension: ext.own\nconfig: {speed: 3}\n",
    );
    operator.write("e/own.yaml", "id: ext.own\nversion: 1.0.0\nkind: process\ncommand: [./own]\n");
    let catalogue = operator.load();
    for (id, wanted) in [
        (
            "profile.a",
            "DIR/p/a.yaml:3:12: there is no extension 'ext.compose-sh', did you mean 'ext.compose-ssh'?",
        ),
        (
            "profile.b",
            "DIR/p/b.yaml:5:18: ext.compose-ssh has no setting 'workspace_onl', did you mean 'workspace_only'?",
        ),
        (
            "profile.c",
            "DIR/p/c.yaml:4:26: 'config.workspace_only' must be true or false, not 'yes', did you mean 'true'?",
        ),
        ("profile.d", "DIR/p/d.yaml:4:36: there is no extension 'ext.nowhere-at-all'"),
        (
            "profile.e",
            "DIR/p/e.yaml:3:12: the manifest of 'ext.torn' is broken: DIR/e/torn.yaml:2:10: 'version' must be a version \
             of three numbers, as in 1.0.0, not a number",
        ),
    ] {
        assert_eq!(operator.problems(entry(&catalogue, id)), [wanted]);
    }
    let own = entry(&catalogue, "profile.f");
    assert_eq!(own.problems, []);
    assert_eq!(
        own.unavailable.as_deref(),
        Some("ext.own is a process extension, which this build cannot run yet")
    );
}

#[test]
fn hostile_directories_hang_and_break_nothing() {
    let operator = Operator::new();
    fs::create_dir(operator.dir.path().join("p/dir.yaml")).unwrap();
    std::os::unix::fs::symlink("/nonexistent/target", operator.dir.path().join("p/dangling.yaml"))
        .unwrap();
    std::os::unix::fs::symlink("loop.yaml", operator.dir.path().join("p/loop.yaml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", operator.dir.path().join("p/zero.yaml")).unwrap();
    operator.write("p/latin.yaml", b"id: profile.latin\nsummary: caf\xe9\n");
    operator.write("p/nul.yaml", b"id: profile.nul\nsummary: \0\n");
    operator.write("p/big.yaml", vec![b'#'; 2 << 20]);
    operator.write("p/empty.yaml", "");
    operator.write("p/other.yml", profile_text("profile.other", ""));
    operator.write("p/long.yaml", format!("id: profile.{}\n", "x".repeat(10_000)));
    let catalogue = operator.load();
    for (id, wanted) in [
        ("dir.yaml", "DIR/p/dir.yaml: this is a directory, not a file"),
        (
            "dangling.yaml",
            "DIR/p/dangling.yaml: the file cannot be read: No such file or directory (os error 2)",
        ),
        ("zero.yaml", "DIR/p/zero.yaml: this is not a regular file"),
        ("profile.latin", "DIR/p/latin.yaml:2:13: the file is not UTF-8 text"),
        ("profile.nul", "DIR/p/nul.yaml:2:10: the file holds a NUL character"),
        ("big.yaml", "DIR/p/big.yaml: the file is over 1 MiB"),
        ("empty.yaml", "DIR/p/empty.yaml:1:1: the file is empty"),
        ("other.yml", "DIR/p/other.yml: files end in .yaml; this one is not read"),
    ] {
        assert_eq!(operator.problems(entry(&catalogue, id))[0], wanted);
    }
    assert!(operator.problems(entry(&catalogue, "loop.yaml"))[0].contains("cannot be read"));
    assert_eq!(entry(&catalogue, "long.yaml").definition, None);
    assert!(catalogue.usable_profile("compose-e2e").is_ok());
    // A file without a readable id is meant by its name.
    assert_eq!(operator.error("empty"), "DIR/p/empty.yaml:1:1: the file is empty");
    let file = operator.write("file", "");
    let catalogue = Catalogue::load(Some(&file), None, &compose_only());
    assert_eq!(catalogue.profiles().len(), SHIPPED.len() + 1);
    assert!(
        operator
            .plain(&catalogue.profiles()[6].problems[0].to_string())
            .starts_with("DIR/file: the directory cannot be read")
    );
}

#[test]
fn a_file_is_validated_as_what_its_id_says() {
    let operator = Operator::new();
    let catalogue = operator.load();
    let check = |path: &Path| match catalogue.validate_file(path) {
        Ok(Validated::Profile(entry)) => format!("profile {}", entry.id),
        Ok(Validated::Manifest(entry)) => format!("manifest {}", entry.id),
        Err(problems) => problems
            .iter()
            .map(|problem| operator.plain(&problem.to_string()))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    assert_eq!(check(&operator.write("a", profile_text("profile.a", ""))), "profile profile.a");
    assert_eq!(
        check(&operator.write("b", "id: ext.b\nversion: 1.0.0\nkind: builtin\n")),
        "manifest ext.b"
    );
    assert_eq!(
        check(&operator.write("c", "id: ext.c\nversion: 1.0.0\n")),
        "DIR/c:1:1: missing key 'kind'"
    );
    assert_eq!(
        check(&operator.write("d", "id: prifile.d\nversion: 1.0.0\nextension: ext.vm-packer\n")),
        "DIR/d:1:5: 'prifile.d' is not 'profile.' and a name of a-z, 0-9 and '-'"
    );
    assert_eq!(
        check(&operator.dir.path().join("missing")),
        "DIR/missing: the file cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn a_view_says_what_the_entry_says() {
    let operator = Operator::new();
    operator.write("p/a.yaml", "id: profile.a\n");
    let catalogue = operator.load();
    let views: Vec<ProfileView> = catalogue.profiles().iter().map(ProfileView::from).collect();
    assert_eq!(
        (views[1].id.as_str(), views[1].version.as_deref(), views[1].source.as_str()),
        ("profile.compose-e2e", Some("1.0.0"), "builtin")
    );
    assert_eq!(
        (views[1].extension.as_deref(), views[1].error.as_deref(), views[1].available),
        (Some("ext.compose-ssh"), None, true)
    );
    let broken = &views[6];
    assert_eq!(
        operator.plain(broken.error.as_deref().unwrap()),
        "DIR/p/a.yaml:1:1: missing key 'version' (and 1 more)"
    );
    assert_eq!(
        (broken.available, broken.version.as_ref(), broken.source.as_str()),
        (false, None, "operator")
    );
    assert_eq!(operator.plain(broken.path.as_deref().unwrap()), "DIR/p/a.yaml");
    let json = serde_json::to_string(&views).unwrap();
    assert_eq!(serde_json::from_str::<Vec<ProfileView>>(&json).unwrap(), views);
    let view = ExtensionView::from(catalogue.extension("compose-ssh").unwrap());
    assert_eq!(
        (view.id.as_str(), view.version.as_deref(), view.manifest.is_some()),
        ("ext.compose-ssh", Some("1.0.0"), true)
    );
}
