//! The ledger: nothing twice, nothing lost, nothing passed over, whoever dies when; and never below zero.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use proptest::prelude::*;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::credit::{EntryKind, LedgerEntry};
use sandboxer::domain::event::{EventKind, PendingEvent, derived_event_id};
use sandboxer::domain::settlement::{
    After, CreditEvent, held_by, note_hold, note_next_hold, release_next, settle,
};
use sandboxer::domain::{Code, EventId, SandboxId, SandboxRecord, Usd};
use sandboxer::store::CreditStore;
use sandboxer::store::credits::CreditFile;

use super::{id, moment, record, stores};

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

pub(super) fn entry(key: &str, kind: EntryKind, sandbox: Option<&str>, micros: i64) -> LedgerEntry {
    LedgerEntry {
        id: EventId::new(key),
        time: moment(0),
        kind,
        sandbox_id: sandbox.map(id),
        usd: usd(micros),
        actor: Actor::parse("adm:ops").unwrap(),
        note: (sandbox.is_none()).then(|| "invoice 7".to_owned()),
    }
}

fn grant(key: &str, micros: i64) -> LedgerEntry {
    entry(key, EntryKind::Grant, None, micros)
}

fn hold(key: &str, micros: i64) -> LedgerEntry {
    entry(key, EntryKind::Hold, Some("a"), micros)
}

fn ledger(dir: &Path) -> std::sync::Arc<CreditFile> {
    stores(dir).credits
}

#[tokio::test]
async fn an_entry_is_written_once_and_all_of_a_batch_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (ledger(dir.path()), ledger(dir.path()));
    assert_eq!(one.history().await.unwrap(), []);
    assert!(!dir.path().join("credits.jsonl").exists(), "looking makes nothing");
    one.append(vec![grant("g", 100), grant("g", 100)]).await.unwrap();
    other.append(vec![grant("g", 100), hold("h", 60)]).await.unwrap();
    assert_eq!(one.append(vec![hold("h", 60)]).await.unwrap(), []);
    let refused = one.append(vec![hold("i", 40), hold("j", 1)]).await.unwrap_err();
    assert_eq!(refused.code, Code::InsufficientCredits);
    let sums = one.sums().await.unwrap();
    assert_eq!((sums.balance(), sums.held_for(&id("a"))), (usd(40), usd(60)));
    let appended = one
        .append(vec![
            entry("c", EntryKind::Charge, Some("a"), 70),
            entry("r", EntryKind::Release, Some("a"), 0),
            entry("s", EntryKind::Shortfall, Some("a"), 10),
        ])
        .await
        .unwrap();
    let kinds: Vec<_> = appended.iter().map(|one| (one.kind.as_str(), one.usd.micros())).collect();
    assert_eq!(kinds, [("charge", 60), ("shortfall", 10)]);
    let history = other.history().await.unwrap();
    let balances: Vec<_> = history.iter().map(|one| one.balance_usd.micros()).collect();
    assert_eq!(balances, [100, 40, 40, 40]);
    assert_eq!(history[0].entry.note.as_deref(), Some("invoice 7"));
    let text = fs::read_to_string(dir.path().join("credits.jsonl")).unwrap();
    assert!(text.lines().all(|line| line.contains("\"micro_usd\":")), "{text}");
}

#[tokio::test]
async fn the_balance_exactly_can_be_held_and_a_grant_beyond_all_that_counts_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = ledger(dir.path());
    store.append(vec![grant("g", 1), hold("h", 1)]).await.unwrap();
    assert_eq!(store.append(vec![hold("i", 1)]).await.unwrap_err().code, Code::InsufficientCredits);
    let refused = store.append(vec![grant("x", Usd::MAX.micros())]).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidInput);
    assert_eq!(store.sums().await.unwrap().granted(), usd(1));
}

/// At every length that a kill can leave a file at, what was acknowledged before counts, and the next writer goes on.
#[tokio::test]
async fn a_last_line_that_was_cut_anywhere_is_mended_and_nothing_before_it_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("credits.jsonl");
    ledger(dir.path()).append(vec![grant("g", 100), hold("h", 30)]).await.unwrap();
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for len in first..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let reader = ledger(dir.path());
        assert_eq!(reader.sums().await.unwrap().balance(), usd(100), "{len}");
        let complete = len == whole.len() - 1;
        reader.append(vec![grant("k", 5)]).await.unwrap();
        let balance = if complete { 75 } else { 105 };
        assert_eq!(reader.sums().await.unwrap().balance(), usd(balance), "{len}");
        // The record that caused it appends it again.
        reader.append(vec![hold("h", 30)]).await.unwrap();
        let sums = ledger(dir.path()).sums().await.unwrap();
        assert_eq!((sums.balance(), sums.held()), (usd(75), usd(30)), "{len}");
    }
    // A power cut leaves what was never written as zeros.
    fs::write(&path, [&whole[..first], &[0; 40]].concat()).unwrap();
    ledger(dir.path()).append(vec![hold("z", 1)]).await.unwrap();
    assert_eq!(ledger(dir.path()).sums().await.unwrap().balance(), usd(99));
}

#[tokio::test]
async fn a_line_that_cannot_be_read_is_an_error_that_names_it_and_nothing_counts_past_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("credits.jsonl");
    ledger(dir.path()).append(vec![grant("g", 100), hold("h", 30)]).await.unwrap();
    let good = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let doubled = lines[0].replace("\"g\"", "\"g2\"").replace("100", "9000000000000001");
    let newer = lines[0].replace("\"grant\"", "\"gift\"").replace("\"g\"", "\"g2\"");
    let negative = lines[0].replace("100", "-5").replace("\"g\"", "\"g2\"");
    for (middle, code) in [
        ("garbage", Code::StoreCorrupt),
        ("", Code::StoreCorrupt),
        ("{}", Code::StoreCorrupt),
        ("\u{0}\u{0}", Code::StoreCorrupt),
        (lines[0], Code::StoreCorrupt),
        (&doubled, Code::StoreCorrupt),
        (&negative, Code::StoreCorrupt),
        (&newer, Code::StoreForeign),
    ] {
        fs::write(&path, format!("{}\n{middle}\n{}\n", lines[0], lines[1])).unwrap();
        let before = fs::read(&path).unwrap();
        let store = ledger(dir.path());
        for error in [
            store.sums().await.unwrap_err(),
            store.history().await.unwrap_err(),
            store.append(vec![grant("k", 1)]).await.unwrap_err(),
        ] {
            assert_eq!(error.code.clone(), code.clone(), "{middle:?}");
            assert_eq!(error.details["line"], 2, "{middle:?}");
            assert!(error.hint.is_some() && error.message.contains("credits.jsonl"), "{error:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), before, "it is left as it is");
        // Once it is mended, the same process goes on.
        fs::write(&path, &good).unwrap();
        assert_eq!(store.sums().await.unwrap().balance(), usd(70));
    }
}

#[tokio::test]
async fn a_file_that_somebody_put_back_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("credits.jsonl");
    let store = ledger(dir.path());
    store.append(vec![grant("g", 100)]).await.unwrap();
    let old = fs::read(&path).unwrap();
    store.append(vec![grant("k", 100)]).await.unwrap();
    fs::write(&path, &old).unwrap();
    assert_eq!(store.sums().await.unwrap().balance(), usd(100));
    fs::remove_file(&path).unwrap();
    assert_eq!(store.sums().await.unwrap().balance(), Usd::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_race_for_the_last_credits_hold_no_more_than_there_are() {
    let dir = tempfile::tempdir().unwrap();
    ledger(dir.path()).append(vec![grant("g", 50)]).await.unwrap();
    let children: Vec<_> = (0..4)
        .map(|_| super::processes::child("credits", dir.path(), 30, None).spawn().unwrap())
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = ledger(dir.path());
    let sums = store.sums().await.unwrap();
    assert_eq!((sums.balance(), sums.held()), (Usd::ZERO, usd(50)));
    assert_eq!(store.history().await.unwrap().len(), 51);
}

/// One thing that happens; `dies` is the write behind which the process is killed, none where there are fewer.
#[derive(Debug, Clone)]
struct Step {
    what: What,
    dies: Option<u8>,
    torn: bool,
}

#[derive(Debug, Clone)]
enum What {
    Grant(i64),
    /// A new sandbox, or a renewal of one that is there.
    Hold(u8, i64),
    /// A recreate holds for its next run.
    HoldNext(u8, i64),
    /// And begins it, for what the last one cost.
    Next(u8, i64),
    /// Or does not.
    LetGo(u8),
    Forget(u8, i64),
    End(u8, i64),
    Recover,
}

fn step() -> impl Strategy<Value = Step> {
    let (sandbox, amount) = (0..3_u8, 0..60_i64);
    let what = prop_oneof![
        2 => (1..100_i64).prop_map(What::Grant),
        4 => (sandbox.clone(), amount.clone()).prop_map(|(id, usd)| What::Hold(id, usd)),
        1 => (sandbox.clone(), amount.clone()).prop_map(|(id, usd)| What::HoldNext(id, usd)),
        1 => (sandbox.clone(), amount.clone()).prop_map(|(id, usd)| What::Next(id, usd)),
        1 => sandbox.clone().prop_map(What::LetGo),
        1 => (sandbox.clone(), amount.clone()).prop_map(|(id, usd)| What::Forget(id, usd)),
        3 => (sandbox, amount).prop_map(|(id, usd)| What::End(id, usd)),
        1 => Just(What::Recover),
    ];
    (what, proptest::option::of(0..3_u8), any::<bool>()).prop_map(|(what, dies, torn)| Step {
        what,
        dies,
        torn,
    })
}

/// Records and ledger as they are on disk, with a process that may die between any two writes.
struct Disk {
    dir: tempfile::TempDir,
    store: std::sync::Arc<CreditFile>,
    records: BTreeMap<SandboxId, SandboxRecord>,
    left: Option<u8>,
    keys: u64,
}

/// The process died.
struct Died;

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = ledger(dir.path());
        Self { dir, store, records: BTreeMap::new(), left: None, keys: 0 }
    }

    /// Counts a write: whether the process dies behind it.
    fn written(&mut self) -> Result<(), Died> {
        match &mut self.left {
            Some(0) => Err(Died),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("key-{}", self.keys)
    }

    fn sandbox(number: u8) -> String {
        format!("s{number}")
    }

    /// Holds in the ledger; false: there is not so much.
    async fn hold(&mut self, name: &str, micros: i64) -> Result<bool, Died> {
        let key = self.key();
        match self.store.append(vec![entry(&key, EntryKind::Hold, Some(name), micros)]).await {
            Ok(_) => self.written().map(|()| true),
            Err(error) => {
                assert_eq!(error.code, Code::InsufficientCredits);
                let sums = self.store.sums().await.unwrap();
                assert!(sums.balance() < usd(micros), "it was refused although there was enough");
                Ok(false)
            }
        }
    }

    /// Writes a record with the events that its change causes, then the ledger's entries of those.
    async fn write(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut SandboxRecord) -> Vec<CreditEvent>,
    ) -> Result<(), Died> {
        let key = id(name);
        let at = self.records.entry(key.clone()).or_insert_with(|| record(name, 0));
        let caused = change(at);
        at.revision += 1;
        let revision = at.revision;
        at.pending.extend(caused.into_iter().map(|(kind, data)| PendingEvent {
            id: derived_event_id(name, revision, &kind),
            time: moment(0),
            kind,
            sandbox_id: Some(key.clone()),
            actor: Actor::observer(),
            data,
        }));
        self.written()?;
        self.flush(&key).await?;
        self.records.get_mut(&key).unwrap().pending.clear();
        self.written()
    }

    async fn flush(&mut self, key: &SandboxId) -> Result<(), Died> {
        let pending = &self.records[key].pending;
        let entries = pending.iter().filter_map(LedgerEntry::of_event).collect();
        self.store.append(entries).await.unwrap();
        self.written()
    }

    async fn run(&mut self, what: What) -> Result<(), Died> {
        let is_there = |disk: &Self, name: &str| {
            disk.records.get(&id(name)).is_some_and(|record| record.meter.is_some())
        };
        match what {
            What::Grant(micros) => {
                let key = self.key();
                self.store.append(vec![grant(&key, micros)]).await.unwrap();
                self.written()
            }
            What::Hold(number, micros) => {
                let name = Self::sandbox(number);
                if self.hold(&name, micros).await? {
                    self.write(&name, |record| note_hold(record, usd(micros))).await?;
                }
                Ok(())
            }
            What::HoldNext(number, micros) => {
                let name = Self::sandbox(number);
                if is_there(self, &name) && self.hold(&name, micros).await? {
                    self.write(&name, |record| note_next_hold(record, usd(micros))).await?;
                }
                Ok(())
            }
            What::LetGo(number) => self.write(&Self::sandbox(number), release_next).await,
            What::Next(number, cost) => {
                let change = |record: &mut SandboxRecord| settle(record, usd(cost), After::Next);
                self.write(&Self::sandbox(number), change).await
            }
            What::Forget(number, cost) => {
                let change =
                    |record: &mut SandboxRecord| settle(record, usd(cost), After::Forgotten);
                self.write(&Self::sandbox(number), change).await
            }
            What::End(number, cost) => {
                let change = |record: &mut SandboxRecord| settle(record, usd(cost), After::Over);
                self.write(&Self::sandbox(number), change).await
            }
            What::Recover => self.recover().await,
        }
    }

    async fn recover(&mut self) -> Result<(), Died> {
        for key in self.records.keys().cloned().collect::<Vec<_>>() {
            self.flush(&key).await?;
        }
        let known = self.records.iter().map(|(id, record)| (id, held_by(record))).collect();
        for (sandbox, beyond) in self.store.sums().await.unwrap().unclaimed(&known) {
            let key = self.key();
            let release = entry(&key, EntryKind::Release, Some(sandbox.as_str()), beyond.micros());
            self.store.append(vec![release]).await.unwrap();
            self.written()?;
        }
        Ok(())
    }

    /// The balance by another sum than the store's.
    async fn check(&self) {
        let (mut granted, mut charged, mut held) = (0, 0, BTreeMap::<SandboxId, i64>::new());
        for one in self.store.history().await.unwrap() {
            let micros = one.entry.usd.micros();
            let mut of =
                |by: i64| *held.entry(one.entry.sandbox_id.clone().unwrap()).or_default() += by;
            match one.entry.kind {
                EntryKind::Grant => granted += micros,
                EntryKind::Hold => of(micros),
                EntryKind::Charge => {
                    of(-micros);
                    charged += micros;
                }
                EntryKind::Release => of(-micros),
                _ => {}
            }
            let all: i64 = held.values().sum();
            assert_eq!(one.balance_usd.micros(), granted - charged - all);
            assert!(one.balance_usd >= Usd::ZERO && held.values().all(|usd| *usd >= 0));
        }
        let sums = self.store.sums().await.unwrap();
        assert_eq!(sums.balance().micros(), granted - charged - held.values().sum::<i64>());
        assert_eq!(sums.held().micros(), held.values().sum::<i64>());
    }

    /// What a process leaves that dies while it writes a line; another one reads that then.
    fn die(&mut self, torn: bool) {
        if torn {
            let path = self.dir.path().join("credits.jsonl");
            let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(b"{\"id\":\"torn\",\"time\":\"2026-").unwrap();
        }
        self.store = ledger(self.dir.path());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]
    /// Balance = grants − charges − held and never below zero, whatever happens in whatever order and dies where; and every hold
    /// ends as a charge or a release.
    #[test]
    fn whatever_dies_where_the_balance_is_right_and_every_hold_ends(steps in proptest::collection::vec(step(), 1..24)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut disk = Disk::new();
            for Step { what, dies, torn } in steps {
                disk.left = dies;
                if disk.run(what).await.is_err() {
                    disk.die(torn);
                }
                disk.check().await;
            }
            disk.left = None;
            assert!(disk.recover().await.is_ok());
            let known: Usd = disk.records.values().fold(Usd::ZERO, |sum, one| sum + held_by(one));
            assert_eq!(disk.store.sums().await.unwrap().held(), known, "records and ledger agree");
            for number in 0..3 {
                assert!(disk.run(What::End(number, 17)).await.is_ok());
            }
            disk.check().await;
            assert_eq!(disk.store.sums().await.unwrap().held(), Usd::ZERO);
            for record in disk.records.values() {
                assert_eq!((held_by(record), &record.meter), (Usd::ZERO, &None));
            }
            let of = |kind: EventKind| disk.records.values().flat_map(|one| &one.pending).filter(|event| event.kind == kind).count();
            assert_eq!(of(EventKind::CreditsCharged), 0);
        });
    }
}
