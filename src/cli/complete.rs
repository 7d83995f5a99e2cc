//! `__complete WORD...`: what the completion scripts of bash, zsh and fish ask while somebody types. It gets the words
//! behind the program's name, the last one up to the cursor. Where that one is the value of an argument in [`KINDS`], it
//! prints what the words below are, then the words, each with a tab and what it is; else nothing, and the script
//! goes on with what clap wrote. It reads this machine's files, connects to nothing, and is silent about everything
//! that goes wrong.
//!
//! The words go into command lines: what no id, name or host could be is left out, whatever a file says.

mod typed;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;

use clap::{Arg, ArgAction, Parser};
use clap_complete::Shell;

use super::args::{Cli, Command, command};
use super::global::Global;
use super::output::Io;
use crate::client::{Client, Error, ListQuery, SnapshotQuery};
use crate::domain::host::check_host_name;
use crate::domain::snapshot::{SnapshotKind, SnapshotState};
use crate::domain::text::clean_line;

use typed::Kind;
pub(crate) use typed::Typed;

/// The verb: in no help, manual or script, since nobody types it.
pub(super) const VERB: &str = "__complete";

/// Arguments, spelt as in a usage line, and what their values name.
const KINDS: &[(&str, &[Kind])] = &[
    ("ID", &[Kind::Sandboxes]),
    ("SANDBOX", &[Kind::Sandboxes]),
    ("REMOVED", &[Kind::Removed]),
    ("--sandbox ID", &[Kind::Sandboxes]),
    ("S", &[Kind::Snapshots]),
    ("SNAPSHOT", &[Kind::Snapshots]),
    ("A", &[Kind::Snapshots]),
    ("B|SANDBOX", &[Kind::Snapshots, Kind::Sandboxes]),
    ("--all S", &[Kind::Snapshots]),
    ("PATCH", &[Kind::Patches]),
    ("--service S", &[Kind::Services]),
    ("H", &[Kind::Hosts]),
    ("HOST", &[Kind::Hosts]),
    ("--host H", &[Kind::Hosts]),
    ("--to HOST", &[Kind::Hosts]),
    ("P", &[Kind::Profiles]),
    ("--profile P", &[Kind::Profiles]),
    ("E", &[Kind::Extensions]),
    ("OP", &[Kind::Operations]),
];

/// Reads the words; also the global options among them, which say whose records are meant.
pub(super) fn read(words: &[OsString]) -> (Typed, Global) {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((word, before)) = words.split_last() else {
        return (Typed::default(), Global::default());
    };
    let root = command();
    let (mut verb, mut operands) = (&root, Vec::new());
    let (mut waits, mut ended) = (None, false);
    let mut globals = vec!["sandboxer".to_owned()];
    let mut note = |arg: &Arg, value: &str| {
        if arg.is_global_set() {
            globals.push(format!("--{}={value}", arg.get_long().unwrap_or_default()));
        }
    };
    for word in before {
        match waits {
            // Bash takes --host=H for three words.
            Some(_) if word == "=" => {}
            Some(arg) => {
                note(arg, word);
                waits = None;
            }
            None if !ended && word.starts_with('-') && word.len() > 1 => {
                let (name, value) = word
                    .split_once('=')
                    .map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
                ended = name == "--";
                waits = option(verb, &root, name);
                if let (Some(arg), Some(value)) = (waits, value) {
                    note(arg, value);
                    waits = None;
                }
            }
            None => {
                if let Some(below) = verb.find_subcommand(word).filter(|_| operands.is_empty()) {
                    verb = below;
                    continue;
                }
                // What follows the first word of another program's command line is all that program's.
                ended |= operand(verb, operands.len()).is_some_and(Arg::is_trailing_var_arg_set);
                operands.push(word.clone());
            }
        }
    }
    let arg = match word.split_once('=') {
        _ if waits.is_some() => waits,
        Some((name, _)) if !ended && name.starts_with("--") => option(verb, &root, name),
        _ if !ended && word.starts_with('-') => None,
        _ => operand(verb, operands.len()),
    };
    let word = word.rsplit('=').next().unwrap_or_default().to_owned();
    let global = Cli::try_parse_from(globals).map(|cli| cli.global).unwrap_or_default();
    (Typed { kinds: arg.map(kinds).unwrap_or_default(), operands, word }, global)
}

/// The option of this name that takes a value: the verb's, or everybody's.
fn option<'a>(verb: &'a clap::Command, root: &'a clap::Command, name: &str) -> Option<&'a Arg> {
    let long = name.strip_prefix("--")?;
    let mut all = verb.get_arguments().chain(root.get_arguments());
    all.find(|arg| arg.get_long() == Some(long)).filter(|arg| arg.get_action().takes_values())
}

/// The argument that the operand with this index is the value of; the last one may take several.
fn operand(verb: &clap::Command, index: usize) -> Option<&Arg> {
    let several = |arg: &&Arg| matches!(arg.get_action(), ArgAction::Append);
    verb.get_positionals().nth(index).or_else(|| verb.get_positionals().last().filter(several))
}

fn kinds(arg: &Arg) -> &'static [Kind] {
    let spelling = spelling(arg);
    KINDS.iter().find(|(known, _)| *known == spelling).map(|(_, kinds)| *kinds).unwrap_or_default()
}

/// An argument as in a usage line: `--host H`, `ID`.
fn spelling(arg: &Arg) -> String {
    let value = arg
        .get_value_names()
        .and_then(|names| names.first())
        .map(clap::builder::Str::as_str)
        .unwrap_or_default();
    arg.get_long().map_or_else(|| value.to_owned(), |long| format!("--{long} {value}"))
}

/// Answers if that is what the command line asks for; the exit status. `client` is asked for only where there is something
/// to look up; none: nothing is known.
pub(super) async fn complete(
    cli: &Cli,
    client: impl FnOnce() -> Option<Arc<dyn Client>>,
    io: &mut Io,
) -> Option<u8> {
    let Some(Command::Complete(typed)) = &cli.command else { return None };
    if typed.kinds.is_empty() {
        return Some(0);
    }
    let titles: Vec<_> =
        typed.kinds.iter().map(|kind| format!("{kind:?}").to_lowercase()).collect();
    let mut text = format!("{}\n", titles.join(" or "));
    // A server would have to be asked.
    if let Some(client) = client().filter(|_| cli.global.server.is_none()) {
        for kind in typed.kinds {
            for (word, about) in known(*kind, typed, &*client).await.unwrap_or_default() {
                if check_host_name(&word).is_ok() {
                    let _ = writeln!(text, "{word}\t{}", clean_line(&about, 100));
                }
            }
        }
    }
    let _ = io.stdout.write_all(text.as_bytes()).and_then(|()| io.stdout.flush());
    Some(0)
}

/// The words of a kind, and what each is.
async fn known(
    kind: Kind,
    typed: &Typed,
    client: &dyn Client,
) -> Result<Vec<(String, String)>, Error> {
    let mut words = Vec::new();
    let of = typed.operands.first().map(String::as_str).unwrap_or_default();
    match kind {
        Kind::Sandboxes => {
            for record in client.list(ListQuery::default()).await? {
                let about = format!("{} on {}", record.state, record.host.as_str());
                called(&mut words, record.id.as_str(), record.name_in_use(), &about);
            }
        }
        Kind::Removed => {
            for view in client.snapshots(SnapshotQuery { all: true }).await? {
                let record = &view.record;
                if record.kind == SnapshotKind::Undo && record.state == SnapshotState::Ready {
                    let name = record.sandbox_name.as_deref();
                    called(&mut words, record.sandbox_id.as_str(), name, record.id.as_str());
                }
            }
        }
        Kind::Snapshots => {
            for view in client.snapshots(SnapshotQuery { all: true }).await? {
                let about = format!("{}, of {}", view.record.state, view.record.sandbox_id);
                called(&mut words, view.record.id.as_str(), view.record.name_in_use(), &about);
            }
        }
        Kind::Patches => {
            let patches = client.snapshot_view(of).await?.patches.into_iter();
            words.extend(
                patches.map(|patch| (patch.id.to_string(), patch.description.unwrap_or_default())),
            );
        }
        Kind::Services => {
            let services = client.get(of).await?.services.into_iter();
            words.extend(services.map(|service| (service.name, service.state)));
        }
        Kind::Hosts => {
            let hosts = client.hosts().await?.into_iter();
            words.extend(hosts.map(|view| (view.name.to_string(), view.ssh.unwrap_or_default())));
        }
        Kind::Profiles => {
            for view in client.profiles().await? {
                both(&mut words, view.id, "profile.", typed, view.summary);
            }
        }
        Kind::Extensions => {
            for view in client.extensions().await? {
                both(
                    &mut words,
                    view.id,
                    "ext.",
                    typed,
                    view.manifest.map(|manifest| manifest.summary),
                );
            }
        }
        Kind::Operations => {
            let operations = client.operations().await?.into_iter();
            words.extend(
                operations.map(|one| (one.id.to_string(), format!("{}, {}", one.kind, one.state))),
            );
        }
    }
    Ok(words)
}

/// A record is called by its name, where it has one, and by its id.
fn called(words: &mut Vec<(String, String)>, id: &str, name: Option<&str>, about: &str) {
    words.extend(name.map(|name| (name.to_owned(), format!("{id}, {about}"))));
    words.push((
        id.to_owned(),
        name.map_or_else(|| about.to_owned(), |name| format!("{name}, {about}")),
    ));
}

/// A profile or an extension is called by its id without the prefix; with it by those who began so.
fn both(
    words: &mut Vec<(String, String)>,
    id: String,
    prefix: &str,
    typed: &Typed,
    about: Option<String>,
) {
    let about = about.unwrap_or_default();
    words.extend(id.strip_prefix(prefix).map(|short| (short.to_owned(), about.clone())));
    let begun = !typed.word.is_empty()
        && (typed.word.starts_with(prefix) || prefix.starts_with(&typed.word));
    if begun || !id.starts_with(prefix) {
        words.push((id, about));
    }
}

/// clap's script, and what asks first; the other shells have clap's alone.
pub(super) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "sandboxer", &mut script);
    match shell {
        Shell::Bash => script.extend_from_slice(include_bytes!("complete/ask.bash")),
        // Before the last lines, which already complete something when the file is loaded.
        Shell::Zsh => {
            let text = String::from_utf8_lossy(&script).into_owned();
            let (functions, start) = text.split_at(text.rfind("\nif [ ").unwrap_or(text.len()));
            script = [functions, include_str!("complete/ask.zsh"), start].concat().into_bytes();
        }
        Shell::Fish => {
            script.extend_from_slice(include_bytes!("complete/ask.fish"));
            for option in
                KINDS.iter().filter_map(|(known, _)| known.strip_prefix("--")?.split(' ').next())
            {
                let line = format!(
                    "complete -c sandboxer -n __sandboxer_knows -l {option} -r -f -a '(__sandboxer_words)'\n"
                );
                script.extend_from_slice(line.as_bytes());
            }
        }
        _ => {}
    }
    script
}

#[cfg(test)]
mod tests {
    use clap::ValueHint;

    use super::*;

    /// Arguments whose values name nothing that is kept.
    const OTHERS: &[&str] = &[
        "--server URL",
        "--actor ACTOR",
        "--theme T",
        "--input K=V",
        "--label K=V",
        "--ttl D|none",
        "--id ID",
        "--name N",
        "--idempotency-key K",
        "--plan FILE|ID",
        "--owner ID",
        "--timeout D",
        "K=V|K-",
        "CMD",
        "--tail N",
        "--keep N",
        "--older-than D",
        "--description D",
        "--run-in W",
        "--canary N",
        "--since SEQ|TIME",
        "--by D",
        "--to TIME",
        "USD",
        "--note N",
    ];

    #[test]
    fn every_argument_has_a_kind_or_names_nothing() {
        fn each(command: &clap::Command, seen: &mut Vec<String>) {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                // What is one of a few words, or a path, clap's scripts complete.
                if arg.get_possible_values().is_empty() && arg.get_value_hint() == ValueHint::Other
                {
                    seen.push(spelling(arg));
                }
            }
            command.get_subcommands().for_each(|sub| each(sub, seen));
        }
        let mut seen = Vec::new();
        each(&command(), &mut seen);
        let known: Vec<&str> =
            KINDS.iter().map(|(spelling, _)| *spelling).chain(OTHERS.iter().copied()).collect();
        for spelling in &seen {
            let rows = known.iter().filter(|known| *known == spelling).count();
            assert_eq!(
                rows, 1,
                "{spelling}: what does it name? Add it to KINDS, or to OTHERS here"
            );
        }
        for spelling in known {
            assert!(
                seen.iter().any(|seen| seen == spelling),
                "{spelling}: no argument is spelt so any more"
            );
        }
    }

    #[test]
    fn the_argument_under_the_cursor_is_found() {
        let kinds = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            read(&words).0.kinds
        };
        for (line, found) in [
            ("destroy ", &[Kind::Sandboxes][..]),
            ("destroy a b ", &[Kind::Sandboxes]),
            ("destroy --yes -- -", &[Kind::Sandboxes]),
            ("--json --data-dir /x get a", &[Kind::Sandboxes]),
            ("get a ", &[]),
            ("create --host ", &[Kind::Hosts]),
            ("create --host=lo", &[Kind::Hosts]),
            ("create --host = lo", &[Kind::Hosts]),
            ("create --host local --profile ", &[Kind::Profiles]),
            ("create --id ", &[]),
            ("create ", &[]),
            ("hosts check a ", &[Kind::Hosts]),
            ("inspect host a ", &[Kind::Hosts]),
            ("snapshots copy s --to ", &[Kind::Hosts]),
            ("snapshots diff s ", &[Kind::Snapshots, Kind::Sandboxes]),
            ("snapshots import ", &[]),
            ("patches remove s ", &[Kind::Patches]),
            ("patches apply --all ", &[Kind::Snapshots]),
            ("snapshots list --all ", &[]),
            ("profiles show ", &[Kind::Profiles]),
            ("extensions show ", &[Kind::Extensions]),
            ("operations get ", &[Kind::Operations]),
            ("events --sandbox ", &[Kind::Sandboxes]),
            ("label a ", &[]),
            ("exec a --service ", &[Kind::Services]),
            ("exec a ls --service ", &[]),
            ("destroy --", &[]),
            ("destroy --nothing=", &[]),
            ("nothing ", &[]),
            ("", &[]),
        ] {
            assert_eq!(kinds(line), found, "{line}");
        }
        assert!(read(&[]).0.kinds.is_empty());
    }

    #[test]
    fn the_options_that_say_whose_records_are_kept() {
        let words = [
            "--data-dir",
            "/data",
            "--quiet",
            "list",
            "--config=/file",
            "--server",
            "unix:/x",
            "--host",
            "",
        ];
        let (_, global) = read(&words.map(OsString::from));
        assert_eq!(global.data_dir, Some("/data".into()));
        assert_eq!(global.config, Some("/file".into()));
        assert_eq!(global.server.as_deref(), Some("unix:/x"));
    }
}
