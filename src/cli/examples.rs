//! Examples: one table, from which the help texts and the manual pages are printed. Each is a line as it is typed.

/// The examples of a command: its verbs behind the program's name, and the lines.
type Row = (&'static str, &'static [&'static str]);

/// Every command, and `""` for the program itself.
const TABLE: &[Row] = &[
    (
        "",
        &[
            "sandboxer create --profile compose-e2e --input repo=. --ttl 2h",
            "sandboxer list --state ready",
            "sandboxer exec my-env -- make test",
            "sandboxer destroy my-env",
            "sandboxer events --follow --json",
        ],
    ),
    ("dashboard", &["sandboxer", "sandboxer dashboard --read-only"]),
    (
        "create",
        &[
            "sandboxer create --profile sandbox-canary --host local",
            "sandboxer create --profile compose-e2e --input repo=~/src/shop --name shop --ttl 2h",
            "sandboxer create --profile compose-e2e --input repo=. --dry-run",
            "sandboxer create --profile compose-e2e --input repo=. --idempotency-key ci-4711 --json",
        ],
    ),
    (
        "list",
        &[
            "sandboxer list",
            "sandboxer list --state failed --state lost --host coulombcore",
            "sandboxer list --label team=web --json",
        ],
    ),
    ("get", &["sandboxer get my-env", "sandboxer get my-env --json | jq -r .reachability.ssh"]),
    (
        "destroy",
        &[
            "sandboxer destroy my-env",
            "sandboxer destroy my-env a1b2c3d4 --json",
            "sandboxer destroy a1b2 --yes",
        ],
    ),
    ("recreate", &["sandboxer recreate my-env", "sandboxer recreate my-env --yes"]),
    ("sleep", &["sandboxer sleep my-env"]),
    ("wake", &["sandboxer wake my-env"]),
    ("wait", &["sandboxer wait my-env --timeout 10m", "sandboxer wait my-env --for destroyed"]),
    (
        "extend",
        &["sandboxer extend my-env --by 2h", "sandboxer extend my-env --to 2026-01-31T14:00:00Z"],
    ),
    ("label", &["sandboxer label my-env team=web protect=true", "sandboxer label my-env protect-"]),
    (
        "exec",
        &[
            "sandboxer exec my-env -- ls -la",
            "sandboxer exec my-env --service db -- pg_dump shop > shop.sql",
            "sandboxer exec my-env --service db -i -- psql shop < shop.sql",
        ],
    ),
    ("shell", &["sandboxer shell my-env", "sandboxer shell my-env --service db"]),
    ("logs", &["sandboxer logs my-env --tail 100", "sandboxer logs my-env --service web --follow"]),
    (
        "snapshot",
        &[
            "sandboxer snapshot my-env --name before-upgrade",
            "sandboxer snapshot my-env --mode stop",
        ],
    ),
    ("undo", &["sandboxer undo", "sandboxer undo my-env --json"]),
    (
        "restore",
        &[
            "sandboxer restore before-upgrade --name try",
            "sandboxer restore before-upgrade --host sandboxer01 --strict",
        ],
    ),
    ("snapshots", &["sandboxer snapshots list", "sandboxer snapshots diff before-upgrade"]),
    ("snapshots list", &["sandboxer snapshots list", "sandboxer snapshots list --all --json"]),
    ("snapshots get", &["sandboxer snapshots get before-upgrade"]),
    ("snapshots verify", &["sandboxer snapshots verify before-upgrade"]),
    (
        "snapshots delete",
        &[
            "sandboxer snapshots delete before-upgrade",
            "sandboxer snapshots delete before-upgrade --force --yes",
        ],
    ),
    ("snapshots copy", &["sandboxer snapshots copy before-upgrade --to sandboxer01"]),
    (
        "snapshots export",
        &[
            "sandboxer snapshots export base base.sbx",
            "sandboxer snapshots export base - | ssh other sandboxer snapshots import - --host local",
        ],
    ),
    ("snapshots import", &["sandboxer snapshots import base.sbx --host sandboxer01 --name base"]),
    (
        "snapshots diff",
        &[
            "sandboxer snapshots diff before-upgrade",
            "sandboxer snapshots diff before-upgrade after-upgrade --json",
        ],
    ),
    (
        "snapshots prune",
        &[
            "sandboxer snapshots prune --keep 5 --dry-run",
            "sandboxer snapshots prune --keep 1 --older-than 30d --yes",
        ],
    ),
    ("patches", &["sandboxer patches list before-upgrade", "sandboxer patches apply my-env"]),
    ("patches list", &["sandboxer patches list before-upgrade"]),
    (
        "patches add",
        &[
            "sandboxer patches add my-env --script-file fix.sh --description 'newer certificates'",
            "echo 'apt-get -y install jq' | sandboxer patches add my-env --script-file - --run-in web",
        ],
    ),
    (
        "patches remove",
        &[
            "sandboxer patches remove before-upgrade 3",
            "sandboxer patches remove before-upgrade pat-1a2b3c4d --yes",
        ],
    ),
    ("patches status", &["sandboxer patches status before-upgrade"]),
    (
        "patches apply",
        &[
            "sandboxer patches apply my-box",
            "sandboxer patches apply my-box --retry",
            "sandboxer patches apply --all my-env --canary 1",
        ],
    ),
    ("profiles", &["sandboxer profiles list"]),
    ("profiles list", &["sandboxer profiles list"]),
    ("profiles show", &["sandboxer profiles show compose-e2e"]),
    ("profiles validate", &["sandboxer profiles validate my-profile.yaml"]),
    ("extensions", &["sandboxer extensions list"]),
    ("extensions list", &["sandboxer extensions list"]),
    ("extensions show", &["sandboxer extensions show compose-ssh"]),
    ("inspect", &["sandboxer inspect host coulombcore"]),
    (
        "inspect host",
        &[
            "sandboxer inspect host",
            "sandboxer inspect host coulombcore --json | jq '.[].facts.inventory.networks'",
        ],
    ),
    ("hosts", &["sandboxer hosts list", "sandboxer hosts check"]),
    ("hosts list", &["sandboxer hosts list --json"]),
    ("hosts check", &["sandboxer hosts check", "sandboxer hosts check coulombcore --deep"]),
    ("operations", &["sandboxer operations list"]),
    ("operations list", &["sandboxer operations list"]),
    ("operations get", &["sandboxer operations get op-1a2b3c4d"]),
    ("operations cancel", &["sandboxer operations cancel op-1a2b3c4d"]),
    (
        "events",
        &[
            "sandboxer events --since 1h --sandbox my-env",
            "sandboxer events --follow --kind sandbox.failed --json",
        ],
    ),
    ("events flush", &["sandboxer events flush"]),
    (
        "adopt",
        &[
            "sandboxer adopt --dry-run",
            "sandboxer adopt --host coulombcore",
            "sandboxer adopt --owner 5f0c0e8a7d3b4c6f9a1e2d3c4b5a6978",
        ],
    ),
    ("import", &["sandboxer import --dry-run", "sandboxer import"]),
    ("credits", &["sandboxer credits", "sandboxer credits grant 25"]),
    ("credits balance", &["sandboxer credits balance --json"]),
    (
        "credits grant",
        &[
            "sandboxer credits grant 25 --note 'invoice 4711'",
            "sandboxer credits grant 0.50 --json",
        ],
    ),
    (
        "credits history",
        &[
            "sandboxer credits history",
            "sandboxer credits history --json | jq '.[] | select(.kind == \"charge\")'",
        ],
    ),
    ("recover", &["sandboxer recover"]),
    (
        "inspect stale",
        &["sandboxer inspect stale", "sandboxer inspect stale --host coulombcore --json"],
    ),
    (
        "reap-stale",
        &[
            "sandboxer reap-stale --dry-run",
            "sandboxer reap-stale --class expired --class failed",
            "sandboxer reap-stale --host coulombcore --class orphan_stack --snapshots",
            "sandboxer reap-stale --yes --quiet --actor atm:cron",
        ],
    ),
    ("sweep", &["sandboxer sweep", "sandboxer sweep --quiet --actor atm:cron"]),
    ("doctor", &["sandboxer doctor", "sandboxer doctor --json"]),
    (
        "completions",
        &[
            "sandboxer completions bash > ~/.local/share/bash-completion/completions/sandboxer",
            "sandboxer completions zsh > ~/.zfunc/_sandboxer",
            "sandboxer completions fish > ~/.config/fish/completions/sandboxer.fish",
        ],
    ),
    ("man", &["sandboxer man | man -l -", "sandboxer man --dir ~/.local/share/man/man1"]),
];

/// The examples of a command, by its verbs (`snapshots list`); none of one that has no row.
pub fn of(verbs: &str) -> &'static [&'static str] {
    TABLE.iter().find(|(known, _)| *known == verbs).map_or(&[], |(_, lines)| lines)
}

/// Adds its examples to the end of the help of a command, and of those below it; `verbs`: those that lead to it.
pub(super) fn add(command: clap::Command, verbs: &str) -> clap::Command {
    let command = command.mut_subcommands(|sub| {
        let verbs = format!("{verbs} {}", sub.get_name()).trim_start().to_owned();
        add(sub, &verbs)
    });
    let lines = of(verbs);
    if lines.is_empty() {
        return command;
    }
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let title = if lines.len() == 1 { "Example" } else { "Examples" };
    command.after_help(format!("{before}{title}:\n  {}", lines.join("\n  ")))
}
