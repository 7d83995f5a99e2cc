//! Files of the account: a sandbox, a snapshot, an owner's counter; and what of them is believed.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::account::{Account, Content, LONGEST, Room, json};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::OwnerStamp;
use crate::domain::facts::HostIdentity;
use crate::domain::name::{HostName, OwnerId, SandboxId, SnapshotId};
use crate::domain::sandbox_manifest::SandboxManifest;
use crate::domain::snapshot::ArchiveManifest;
use crate::domain::text::hex;

/// Schema of every file.
const SCHEMA: u64 = 1;

/// This extension's id.
pub(crate) const ID: &str = "ext.saas-stub";

/// Name of the place.
pub(super) const PLACE: &str = "saas-stub";

/// Folder that the provider's things are in, by its own account. It is no folder of any machine.
const ROOT: &str = "/saas-stub";

/// Power state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Power {
    /// Made, and never ran.
    Starting,
    /// Runs.
    Running,
    /// Put to sleep.
    Sleeping,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StubSandbox {
    schema: u64,
    /// Whether it runs.
    pub(super) power: Power,
    #[serde(default)]
    pub(super) removal_failed: bool,
    /// Manifest, as hosts have it.
    pub(super) manifest: SandboxManifest,
}

impl StubSandbox {
    /// A new one.
    pub(super) fn new(manifest: SandboxManifest) -> Self {
        Self { schema: SCHEMA, power: Power::Starting, removal_failed: false, manifest }
    }

    /// Writes it. A manifest that is too long has only what tells whose it is, until when, and whether it is protected.
    pub(super) fn write(&self, account: &Account) -> Result<(), Error> {
        let mut text = json(self)?;
        if text.len() > LONGEST {
            let head =
                SandboxManifest { sandbox: None, pinned_profile: None, ..self.manifest.clone() };
            text = json(&Self { manifest: head, ..self.clone() })?;
        }
        account.write(Room::Sandboxes, self.manifest.id.as_str(), &text)
    }
}

/// A snapshot. Metadata alone: what its sandbox was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StubSnapshot {
    schema: u64,
    /// Whether it is whole.
    pub(super) sealed: bool,
    /// Content that was saved.
    pub(super) content: String,
    /// Manifest, as lies beside an archive.
    pub(super) manifest: ArchiveManifest,
}

impl StubSnapshot {
    /// A new one.
    pub(super) fn new(manifest: ArchiveManifest, content: String, sealed: bool) -> Self {
        Self { schema: SCHEMA, sealed, content, manifest }
    }

    /// Writes it.
    ///
    /// Errors: `operation_failed` for one that is longer than any that is read.
    pub(super) fn write(&self, account: &Account) -> Result<(), Error> {
        let text = json(self)?;
        if text.len() > LONGEST {
            let message = format!("snapshot {} is too large for saas-stub", self.manifest.id);
            return Err(Error::new(Code::OperationFailed, message));
        }
        account.write(Room::Snapshots, self.manifest.id.as_str(), &text)
    }
}

/// Counter of an owner.
#[derive(Serialize, Deserialize)]
struct StubOwner {
    schema: u64,
    counter: u64,
    machine_id: String,
}

/// Thing of the account, looked for by its id.
#[derive(Debug)]
pub(super) enum Found<T> {
    /// There is none.
    Absent,
    /// The thing, and a fingerprint of all that was read.
    There(Box<T>, String),
    /// Something is there that nobody can tell what it is, and why.
    Unreadable(String),
}

pub(super) fn sandbox(account: &Account, id: &str) -> Result<Found<StubSandbox>, Error> {
    let is_its = |found: &StubSandbox| {
        let named = found.manifest.sandbox.as_ref().is_none_or(|record| record.id.as_str() == id);
        found.schema == SCHEMA && found.manifest.id.as_str() == id && named
    };
    find(account, Room::Sandboxes, id, is_its)
}

pub(super) fn snapshot(account: &Account, id: &str) -> Result<Found<StubSnapshot>, Error> {
    let is_its = |found: &StubSnapshot| {
        let ArchiveManifest { schema, id: named, owner, snapshot, .. } = &found.manifest;
        let same = named.as_str() == id && snapshot.id == *named && snapshot.owner == *owner;
        found.schema == SCHEMA && *schema == 1 && same
    };
    find(account, Room::Snapshots, id, is_its)
}

fn find<T: DeserializeOwned>(
    account: &Account,
    room: Room,
    id: &str,
    is_its: impl Fn(&T) -> bool,
) -> Result<Found<T>, Error> {
    Ok(match account.read(room, id)? {
        Content::Absent => Found::Absent,
        Content::Odd(why) => Found::Unreadable(why),
        Content::Text(text) => match serde_json::from_str::<T>(&text) {
            Ok(found) if is_its(&found) => Found::There(Box::new(found), fingerprint(&text)),
            Ok(_) => Found::Unreadable("it names another one".to_owned()),
            Err(_) => Found::Unreadable("it cannot be understood".to_owned()),
        },
    })
}

/// SHA-256 of a text, in hex.
pub(super) fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Counter of an owner; none where there is none. One that cannot be read is an error: a copy of our records must not be taken for
/// the newest.
pub(super) fn counter(account: &Account, owner: &OwnerId) -> Result<Option<u64>, Error> {
    let unreadable = |why: &str| {
        let message = format!("what saas-stub counts of owner {owner} cannot be read: {why}");
        Error::new(Code::OperationFailed, message)
            .hint("remove that file of its account; then what is known here counts")
    };
    match account.read(Room::Owners, owner.as_str())? {
        Content::Absent => Ok(None),
        Content::Odd(why) => Err(unreadable(&why)),
        Content::Text(text) => match serde_json::from_str::<StubOwner>(&text) {
            Ok(found) if found.schema == SCHEMA => Ok(Some(found.counter)),
            _ => Err(unreadable("it cannot be understood")),
        },
    }
}

/// Makes the account count at least as much as a stamp; what it counted before.
pub(super) fn raise(account: &Account, stamp: &OwnerStamp) -> Result<Option<u64>, Error> {
    let had = counter(account, &stamp.owner)?;
    if had.is_none_or(|had| had < stamp.counter) {
        let machine_id = stamp.machine_id.clone();
        let owner = StubOwner { schema: SCHEMA, counter: stamp.counter, machine_id };
        account.write(Room::Owners, stamp.owner.as_str(), &json(&owner)?)?;
    }
    Ok(had)
}

/// Directory of a sandbox by the provider's account.
pub(super) fn workdir(id: &str) -> String {
    format!("{ROOT}/sbx-{id}")
}

/// Id of a sandbox by its directory.
pub(super) fn id_of(workdir: &str) -> Option<SandboxId> {
    let id = workdir.strip_prefix(ROOT)?.strip_prefix("/sbx-")?;
    SandboxId::parse(id).ok()
}

/// Folder of a snapshot by the provider's account.
pub(super) fn archive_path(id: &SnapshotId) -> String {
    format!("{ROOT}/snapshots/{id}")
}

pub(super) fn root() -> &'static str {
    ROOT
}

/// Identity of the account, as a host has one.
pub(super) fn identity(account: &Account) -> HostIdentity {
    HostIdentity::of_machine(account.id.as_str())
}

/// Account in which something was made, proved to be that; none where there is none and nothing was made yet.
///
/// Errors: `host_changed`.
pub(super) fn proved<'a>(
    account: Option<&'a Account>,
    made_in: Option<&HostIdentity>,
) -> Result<Option<&'a Account>, Error> {
    let made_in = made_in.map(|identity| identity.machine_id.as_str());
    let made_in = made_in.filter(|id| !id.is_empty());
    match made_in {
        Some(made_in) if account.is_none_or(|account| account.id != made_in) => {
            Err(another(account, made_in))
        }
        _ => Ok(account),
    }
}

/// Refuses to make something in an account, or to make one, where something is recorded in others: that one may be away.
///
/// Errors: `host_changed`.
pub(super) fn check_recorded(account: Option<&Account>, recorded: &[String]) -> Result<(), Error> {
    let is_known = account.is_some_and(|account| recorded.contains(&account.id));
    if recorded.is_empty() || is_known {
        Ok(())
    } else {
        Err(another(account, &recorded.join(", ")))
    }
}

fn another(account: Option<&Account>, made_in: &str) -> Error {
    let now = account.map_or("there is no account".to_owned(), |account| {
        format!("this is account {}", account.id)
    });
    let message = format!("{PLACE}: {now}, and what is recorded was made in {made_in}");
    Error::new(Code::HostChanged, message).hint(
        "nothing was touched; SANDBOXER_STUB_DIR names the folder of another account; `sandboxer destroy --forget` gives up \
         what is in one that will not be back",
    )
}

/// Refuses another place than the provider's.
///
/// Errors: `invalid_input`.
pub(super) fn check_place(host: &HostName) -> Result<(), Error> {
    if host.same(PLACE) {
        return Ok(());
    }
    let message = format!("{ID} makes sandboxes at {PLACE} alone, and not on {host}");
    Err(Error::invalid_input("host", message).hint("leave --host out"))
}

/// Error of something that cannot be read.
pub(super) fn unreadable(what: &str, why: &str) -> Error {
    let message = format!("{what} at {PLACE} cannot be read: {why}");
    Error::new(Code::OperationFailed, message)
        .hint("nothing was touched; look at its file in the account's folder")
}

/// Error of a data directory that knows less than the account counts.
pub(super) fn behind(counts: u64) -> Error {
    let message = format!(
        "{PLACE} counts {counts} changes by this installation, more than are known here: this data directory is an old copy"
    );
    Error::new(Code::Conflict, message)
        .detail("kind", "behind")
        .detail("counter", counts)
        .of_kind(Kind::Behind(counts))
        .untouched()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extensions::saas_stub::account::GivenUp;

    fn account() -> (tempfile::TempDir, Account) {
        let home = tempfile::tempdir().unwrap();
        let account = Account::make(&home.path().join("stub"), GivenUp::default()).unwrap();
        (home, account)
    }

    #[test]
    fn an_account_that_is_away_or_another_proves_nothing_of_what_was_made_in_it() {
        let (_home, account) = account();
        let made_in = |id: &str| Some(HostIdentity::of_machine(id));
        let here = made_in(&account.id);
        let (there, away) = (Some(&account), None);
        for (now, identity, good) in [
            (there, here.clone(), true),
            (there, made_in("other"), false),
            (away, here, false),
            // Nothing was ever made, for all that is known.
            (there, None, true),
            (away, None, true),
            (away, made_in(""), true),
        ] {
            let proved = proved(now, identity.as_ref());
            assert_eq!(proved.is_ok(), good, "{identity:?}");
            let code = proved.err().map(|error| error.code);
            assert!(code.is_none_or(|code| code == Code::HostChanged));
        }
    }

    #[test]
    fn nothing_is_made_in_another_account_than_those_of_records() {
        let (_home, account) = account();
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        for (now, recorded, good) in [
            (None, ids(&[]), true),
            (Some(&account), ids(&[]), true),
            (Some(&account), ids(&["gone", &account.id]), true),
            (Some(&account), ids(&["gone"]), false),
            (None, ids(&["gone"]), false),
        ] {
            assert_eq!(check_recorded(now, &recorded).is_ok(), good, "{recorded:?}");
        }
    }

    #[test]
    fn a_counter_only_grows_and_one_that_cannot_be_read_is_an_error() {
        let (home, account) = account();
        let stamp = |counter| OwnerStamp { owner: "us".into(), machine_id: "m".into(), counter };
        for (given, had) in [(3, None), (2, Some(3)), (3, Some(3)), (9, Some(3)), (1, Some(9))] {
            assert_eq!(raise(&account, &stamp(given)).unwrap(), had, "{given}");
        }
        let file = home.path().join("stub/owners/us.json");
        for garbage in ["", "7", r#"{"schema":1,"counter":-1,"machine_id":""}"#] {
            std::fs::write(&file, garbage).unwrap();
            assert!(counter(&account, &"us".into()).is_err(), "{garbage:?}");
            assert!(raise(&account, &stamp(10)).is_err(), "{garbage:?}");
        }
        assert!(counter(&account, &"../us".into()).is_err());
    }

    #[test]
    fn a_directory_is_a_sandboxs_by_its_whole_name() {
        assert_eq!(id_of(&workdir("a1b2c3d4")), Some("a1b2c3d4".into()));
        for other in ["", "/saas-stub/sbx-", "/saas-stub/sbx-../x", "/srv/sbx-a1b2c3d4", "sbx-a"] {
            assert_eq!(id_of(other), None, "{other}");
        }
    }
}
