//! Random walk: two consoles with owners of their own create, die, lose their records, move clocks, label, reap, undo and adopt on
//! the same hosts, in any order; after each step the rules of reaping are checked against all that is on both hosts.
//! `just chaos-reap N SEED` walks N steps; a seed repeats a walk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{configure, drop_record, run_labelled, wait_past};
use crate::fuzz::seed::{Plan, Rng};
use crate::lab::{Bench, DOCKER, PODMAN, Ran, on_engine, text};

const HOSTS: [&str; 2] = [DOCKER, PODMAN];

/// Points at which a create is killed, from the record alone to a sandbox that stands.
const KILLS: [&str; 4] =
    ["create.requested", "compose.prepared", "create.provisioned", "create.started"];

/// What the hosts have of a sandbox or an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing {
    owner: Option<String>,
    expires_at: Option<String>,
    protected: bool,
}

/// Everything on both hosts that may be removed, by host and name.
type World = BTreeMap<(String, String), Thing>;

struct Walk {
    bench: Bench,
    rng: Rng,
    /// Seconds that consoles' clocks are ahead.
    ahead: u64,
    made: usize,
    log: String,
    /// Content of each sandbox's file, by its id.
    files: BTreeMap<String, String>,
    plans: Vec<(usize, String)>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let bench = Bench::new();
        configure(&bench, "stale: {failed_after: 30m, grace: 1s}");
        bench.profile(
            "walk",
            "undo: true\nttl: 1h\ninputs: {}\nsnapshot: {mode: live}\nconfig: {workspace_only: true}",
        );
        Self {
            bench,
            rng: Rng::of(seed, 0),
            ahead: 36_000,
            made: 0,
            log: String::new(),
            files: BTreeMap::new(),
            plans: Vec::new(),
        }
    }

    fn data(&self, console: usize) -> PathBuf {
        self.bench.path(["one", "two"][console])
    }

    fn run(&self, console: usize, words: &[&str], kill: Option<&str>) -> Ran {
        let kill = kill.map(|point| format!(";{point}=return")).unwrap_or_default();
        let points = format!("clock.ahead=return({}){kill}", self.ahead);
        let data = self.data(console).display().to_string();
        let words = ["--data-dir", &data].into_iter().chain(words.iter().copied());
        self.bench.run_failing(&points, words)
    }

    fn say(&mut self, words: &str) {
        writeln!(self.log, "{words}").unwrap();
    }

    fn owners(&self, console: usize) -> BTreeSet<String> {
        let Ok(bytes) = fs::read(self.data(console).join("owner")) else { return BTreeSet::new() };
        let owner: Value = serde_json::from_slice(&bytes).unwrap();
        owner["owners"].as_array().unwrap().iter().map(text).collect()
    }

    fn records(&self, console: usize, file: &str) -> Vec<Value> {
        let Ok(bytes) = fs::read(self.data(console).join(file)) else { return Vec::new() };
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        document["records"].as_array().unwrap().clone()
    }

    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now() + jiff::SignedDuration::from_secs(self.ahead.cast_signed())
    }

    /// Everything of anybody's in the roots of this walk, and containers of both owners.
    fn world(&self) -> World {
        let mut world = World::new();
        for host in HOSTS {
            let root = self.bench.workspace_root(host);
            for (folder, prefix) in [(root.clone(), "sbx-"), (root.join("snapshots"), "snap-")] {
                let entries = fs::read_dir(folder).into_iter().flatten().flatten();
                for entry in entries {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if name.starts_with(prefix) {
                        world.insert((host.to_owned(), name), thing(&entry.path()));
                    }
                }
            }
            let mine: BTreeSet<String> = (0..2).flat_map(|console| self.owners(console)).collect();
            let listed = on_engine(
                host,
                &["$1 ps -a --format '{{.Names}} {{json .Labels}}' | grep sandboxer.owner || :"],
            );
            for line in listed.lines() {
                let (name, labels) = line.split_once(' ').unwrap();
                if let Some(owner) = mine.iter().find(|owner| labels.contains(owner.as_str())) {
                    let container =
                        Thing { owner: Some(owner.clone()), expires_at: None, protected: false };
                    world.insert((host.to_owned(), format!("container {name}")), container);
                }
            }
        }
        world
    }

    /// One step of one console: what it was, and which names of whom it may have removed.
    fn step(&mut self, number: usize) {
        let console = self.rng.below(2);
        let before = self.world();
        let stored = self.records(console, "sandboxes.json");
        let snapshots = self.records(console, "snapshots.json");
        let ours = self.owners(console);
        let allowed = match self.rng.below(20) {
            0..=4 => self.create(console),
            5 => self.create_killed(console),
            6 => self.delete_by_hand(),
            7 => self.lose_record(console),
            8 => self.label(console),
            9 => self.extend(console),
            10 => self.move_clock(),
            11 => self.destroy(console),
            12 => self.undo(console),
            13 => self.adopt(console),
            14 => self.put_container(console),
            15 => self.plan(console),
            16 => self.apply_old_plan(),
            _ => self.reap(console),
        };
        let after = self.world();
        let now = self.now();
        for (at, thing) in &before {
            if after.contains_key(at) {
                continue;
            }
            let why = allowed.judge(at, thing, &ours, &stored, &snapshots, now);
            assert!(
                why.is_ok(),
                "step {number}: {at:?} {thing:?} is gone: {}\nby {allowed:?}\n{}",
                why.unwrap_err(),
                self.log
            );
        }
        if let Some(reaped) = &allowed.reaped {
            self.check_complete(number, console, reaped, &after);
        }
    }

    fn create(&mut self, console: usize) -> Allowed {
        let host = HOSTS[self.rng.below(2)];
        let id = format!("wk{}-{}", self.made, self.rng.below(1000));
        self.made += 1;
        let ttl = self.rng.pick(&["1s", "20m", "1h"]).to_owned();
        let mut words =
            vec!["create", "--profile", "walk", "--id", &id, "--host", host, "--ttl", &ttl];
        let protected = self.rng.once_in(5);
        if protected {
            words.extend(["--label", "protect=true"]);
        }
        let ran = self.run(console, &words, None);
        self.say(&format!(
            "{console} create {id} on {host} for {ttl}, protected {protected}: {:?}",
            ran.status
        ));
        let made = ran.ok();
        let file = self.bench.directory(host, &id).join("workspace/file");
        fs::write(file, &id).unwrap();
        self.files.insert(id.clone(), id.clone());
        if ttl == "1s" && self.rng.once_in(2) {
            let moment: jiff::Timestamp = text(&made["expires_at"]).parse().unwrap();
            let real = moment - jiff::SignedDuration::from_secs(self.ahead.cast_signed());
            wait_past(&Value::String(real.to_string()));
        }
        Allowed::nothing("create")
    }

    fn create_killed(&mut self, console: usize) -> Allowed {
        let host = HOSTS[self.rng.below(2)];
        let id = format!("wk{}-killed", self.made);
        self.made += 1;
        let point = self.rng.pick(&KILLS).to_owned();
        let ran = self.run(
            console,
            &["create", "--profile", "walk", "--id", &id, "--host", host],
            Some(&point),
        );
        self.say(&format!("{console} create {id} on {host} killed at {point}: {:?}", ran.status));
        assert_eq!(ran.status, None, "{ran:#?}");
        Allowed::nothing("killed create")
    }

    fn delete_by_hand(&mut self) -> Allowed {
        let world = self.world();
        let rooms: Vec<_> = world.keys().filter(|(_, name)| name.starts_with("sbx-")).collect();
        if rooms.is_empty() {
            return Allowed::nothing("nothing to delete");
        }
        let (host, name) = rooms[self.rng.below(rooms.len())].clone();
        self.say(&format!("somebody removes {name} on {host}"));
        fs::remove_dir_all(self.bench.workspace_root(&host).join(&name)).unwrap();
        Allowed::one("delete by hand", &name)
    }

    fn live(&mut self, console: usize) -> Option<String> {
        let records = self.records(console, "sandboxes.json");
        let live: Vec<String> = records
            .iter()
            .filter(|record| record["state"] == "ready" && record["operation"].is_null())
            .map(|record| text(&record["id"]))
            .collect();
        (!live.is_empty()).then(|| live[self.rng.below(live.len())].clone())
    }

    fn lose_record(&mut self, console: usize) -> Allowed {
        if let Some(id) = self.live(console) {
            self.say(&format!("{console} loses its record of {id}"));
            drop_record(&self.data(console), "sandboxes.json", &id);
        }
        Allowed::nothing("lose a record")
    }

    fn label(&mut self, console: usize) -> Allowed {
        if let Some(id) = self.live(console) {
            let change = self.rng.pick(&["protect=true", "protect-"]).to_owned();
            let ran = self.run(console, &["label", &id, &change], None);
            self.say(&format!("{console} label {id} {change}: {:?}", ran.status));
        }
        Allowed::nothing("label")
    }

    fn extend(&mut self, console: usize) -> Allowed {
        if let Some(id) = self.live(console) {
            let ran = self.run(console, &["extend", &id, "--by", "30m"], None);
            self.say(&format!("{console} extend {id}: {:?}", ran.status));
        }
        Allowed::nothing("extend")
    }

    fn move_clock(&mut self) -> Allowed {
        self.ahead = match self.rng.below(3) {
            0 => self.ahead + 1500,
            1 => self.ahead + 4000,
            _ => self.ahead.saturating_sub(2000),
        };
        self.say(&format!("clocks are {} s ahead", self.ahead));
        Allowed::nothing("clock")
    }

    fn destroy(&mut self, console: usize) -> Allowed {
        let Some(id) = self.live(console) else { return Allowed::nothing("nothing to destroy") };
        let ran = self.run(console, &["destroy", &id], None);
        self.say(&format!("{console} destroy {id}: {:?}", ran.status));
        let mut allowed = Allowed::one("destroy", &format!("sbx-{id}"));
        allowed.undo_archives = true;
        allowed
    }

    fn undo(&mut self, console: usize) -> Allowed {
        let ran = self.run(console, &["undo"], None);
        self.say(&format!("{console} undo: {:?} {}", ran.status, ran.stderr.trim()));
        if ran.status == Some(0) {
            let made = ran.json();
            let (id, of) = (text(&made["id"]), text(&made["undo_of"]));
            let file = self.bench.directory(&text(&made["host"]), &id).join("workspace/file");
            let wanted =
                self.files.get(&of).cloned().unwrap_or_else(|| panic!("{of}\n{}", self.log));
            let found = fs::read_to_string(file).unwrap();
            assert_eq!(found, wanted, "{id} is {of} again\n{}", self.log);
            self.files.insert(id, wanted);
        }
        Allowed::undone()
    }

    fn adopt(&mut self, console: usize) -> Allowed {
        let ran = self.run(console, &["adopt"], None);
        self.say(&format!("{console} adopt: {:?} {}", ran.status, ran.stderr.trim()));
        Allowed::nothing("adopt")
    }

    fn put_container(&mut self, console: usize) -> Allowed {
        let Some(owner) = self.owners(console).into_iter().next() else {
            return Allowed::nothing("no owner yet");
        };
        let id = format!("wk{}-c", self.made);
        self.made += 1;
        self.say(&format!("a container of {console}, {id}, on {DOCKER}"));
        run_labelled(DOCKER, &format!("sbx-{id}-x-1"), &id, &owner);
        Allowed::nothing("a container")
    }

    fn plan(&mut self, console: usize) -> Allowed {
        let ran = self.run(console, &["reap-stale", "--dry-run"], None);
        self.say(&format!("{console} plan: {:?}", ran.status));
        self.plans.push((console, text(&ran.json()["id"])));
        Allowed::nothing("plan")
    }

    fn apply_old_plan(&mut self) -> Allowed {
        if self.plans.is_empty() {
            return Allowed::nothing("no plan");
        }
        let at = self.rng.below(self.plans.len());
        let (console, plan) = self.plans[at].clone();
        let ran = self.run(console, &["reap-stale", "--yes", "--plan", &plan], None);
        self.say(&format!("{console} apply {plan}: {:?} {}", ran.status, ran.stderr.trim()));
        self.ended(&ran);
        let mut allowed = Allowed::reap(&ran, false);
        allowed.reaped = None;
        // Whose it is: the plan's console may be the other one.
        allowed.console = Some((self.owners(console), self.records(console, "sandboxes.json")));
        allowed
    }

    fn reap(&mut self, console: usize) -> Allowed {
        let mut words = vec!["reap-stale", "--yes"];
        let named = self.rng.once_in(4);
        if named {
            words.extend(["--class", "orphan_stack", "--class", "orphan_dir"]);
        }
        if self.rng.once_in(6) {
            words.push("--snapshots");
        }
        let ran = self.run(console, &words, None);
        self.say(&format!(
            "{console} {}: {:?} {} {}",
            words.join(" "),
            ran.status,
            ran.stderr.trim(),
            summary(&ran)
        ));
        self.ended(&ran);
        let mut allowed = Allowed::reap(&ran, named);
        if named || ran.status != Some(0) {
            allowed.reaped = None;
        }
        allowed
    }

    /// A reap ends well, or is held back by a clock that jumped, or is over.
    fn ended(&self, ran: &Ran) {
        let held = ran.stderr.contains("clock")
            || ran.stderr.contains("there is no plan")
            || ran.stderr.contains("is of the future")
            || ran.stderr.contains("is over");
        assert!(ran.status == Some(0) || held, "{ran:#?}\n{}", self.log);
    }

    /// After a reap of everything nothing is left of what had to go.
    fn check_complete(
        &self,
        number: usize,
        console: usize,
        reaped: &BTreeMap<String, String>,
        after: &World,
    ) {
        let now = self.now() - jiff::SignedDuration::from_secs(60);
        for record in self.records(console, "sandboxes.json") {
            let expired = record["expires_at"]
                .as_str()
                .is_some_and(|at| at.parse::<jiff::Timestamp>().unwrap() < now);
            let guarded = record["labels"]["protect"] == "true";
            let skipped =
                reaped.get(&text(&record["id"])).is_some_and(|outcome| outcome == "skipped");
            assert!(
                !(record["state"] == "ready" && expired) || guarded || skipped,
                "step {number}: {} had to go\n{}\n{after:#?}",
                record["id"],
                self.log
            );
            assert_eq!(
                record["operation"],
                Value::Null,
                "step {number}: {} is stuck\n{}",
                record["id"],
                self.log
            );
        }
    }
}

/// What a step may have removed.
#[derive(Debug, Default)]
struct Allowed {
    what: &'static str,
    names: BTreeSet<String>,
    /// Undo archives of this console may have made room.
    undo_archives: bool,
    /// Items that a reap says it removed or closed; by id.
    reap: bool,
    named: bool,
    reaped: Option<BTreeMap<String, String>>,
    console: Option<(BTreeSet<String>, Vec<Value>)>,
}

impl Allowed {
    fn nothing(what: &'static str) -> Self {
        Self { what, undo_archives: true, ..Self::default() }
    }

    fn one(what: &'static str, name: &str) -> Self {
        Self { what, names: BTreeSet::from([name.to_owned()]), ..Self::default() }
    }

    fn undone() -> Self {
        Self { what: "undo", undo_archives: true, ..Self::default() }
    }

    fn reap(ran: &Ran, named: bool) -> Self {
        let items = if ran.stdout.is_empty() { Value::Array(Vec::new()) } else { ran.json() };
        let ends: BTreeMap<String, String> = items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (text(&item["id"]), text(&item["outcome"])))
            .collect();
        let gone = ends.iter().filter(|(_, outcome)| *outcome == "removed");
        let gone = gone.flat_map(|(id, _)| [format!("sbx-{id}"), id.clone()]).collect();
        Self {
            what: "reap",
            names: gone,
            undo_archives: true,
            reap: true,
            named,
            reaped: Some(ends),
            ..Self::default()
        }
    }

    /// Whether it may be gone: it was this step's to remove, this console's, and its time was over.
    fn judge(
        &self,
        (_, name): &(String, String),
        thing: &Thing,
        ours: &BTreeSet<String>,
        stored: &[Value],
        snapshots: &[Value],
        now: jiff::Timestamp,
    ) -> Result<(), String> {
        if self.what == "delete by hand" {
            return if self.names.contains(name) {
                Ok(())
            } else {
                Err("it was not meant".to_owned())
            };
        }
        let (ours, stored) = match &self.console {
            Some((ours, stored)) => (ours, stored.as_slice()),
            None => (ours, stored),
        };
        let Some(owner) = &thing.owner else { return Err("nobody knows whose it is".to_owned()) };
        if !ours.contains(owner) {
            return Err("it is another console's".to_owned());
        }
        if name.starts_with("snap-") {
            let recorded = snapshots.iter().find(|record| record["id"] == *name);
            let is_undo = recorded.is_some_and(|record| record["kind"] == "undo");
            let may_go = is_undo && self.undo_archives || self.names.contains(name);
            return may_go.then_some(()).ok_or("an archive that nobody asked for".to_owned());
        }
        let bare = name.strip_prefix("container sbx-").map(|rest| rest.trim_end_matches("-x-1"));
        let id = bare.or(name.strip_prefix("sbx-")).unwrap_or(name);
        if !self.names.contains(&format!("sbx-{id}")) {
            return Err("it was not among what this step removes".to_owned());
        }
        if !self.reap {
            return Ok(());
        }
        if thing.protected {
            return Err("it was protected".to_owned());
        }
        let record =
            stored.iter().find(|record| record["id"] == id && record["state"] != "destroyed");
        let over = |at: &Value| {
            at.as_str().is_some_and(|at| at.parse::<jiff::Timestamp>().unwrap() <= now)
        };
        match record {
            Some(record) if record["labels"]["protect"] == "true" => {
                Err("its record is protected".to_owned())
            }
            Some(record) if over(&record["expires_at"]) => Ok(()),
            Some(record) if record["ready_at"].is_null() && !record["operation"].is_null() => {
                Ok(())
            }
            Some(record)
                if record["state"] == "destroying"
                    || record["state"] == "failed"
                    || record["state"] == "lost" =>
            {
                Ok(())
            }
            Some(_) => Err("its time was not over".to_owned()),
            None if self.named => Ok(()),
            None if thing.expires_at.clone().is_some_and(|at| over(&Value::String(at))) => Ok(()),
            None => Err("no record knew it, and its time was not over".to_owned()),
        }
    }
}

fn thing(folder: &std::path::Path) -> Thing {
    let manifest = fs::read(folder.join("manifest.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
    let protect = manifest["sandbox"]["labels"].get("protect");
    Thing {
        owner: manifest["owner"].as_str().map(str::to_owned),
        expires_at: manifest["expires_at"].as_str().map(str::to_owned),
        protected: protect.is_some_and(|value| value == "true"),
    }
}

fn summary(ran: &Ran) -> String {
    let Ok(items) = serde_json::from_str::<Value>(&ran.stdout) else { return String::new() };
    let words = |item: &Value| {
        format!("{} {} {}", text(&item["id"]), text(&item["class"]), text(&item["outcome"]))
    };
    items
        .as_array()
        .map(|items| items.iter().map(words).collect::<Vec<_>>().join("; "))
        .unwrap_or_default()
}

impl Drop for Walk {
    fn drop(&mut self) {
        for console in 0..2 {
            let owners = self.owners(console);
            for owner in owners {
                let _ = std::panic::catch_unwind(|| {
                    on_engine(
                        DOCKER,
                        &[
                            "ids=$($1 ps -aq --filter label=sandboxer.owner=$2); [ -z \"$ids\" ] || $1 rm -f $ids >/dev/null",
                            &owner,
                        ],
                    )
                });
            }
        }
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_random_walk_of_two_consoles_keeps_every_rule() {
    let plan = Plan::read(50);
    let mut walk = Walk::new(plan.seed);
    for number in 0..usize::try_from(plan.count).unwrap() {
        walk.step(number);
    }
    println!("{}", walk.log);
}
