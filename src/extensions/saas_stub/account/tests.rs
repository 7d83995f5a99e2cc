//! The account on a real file system.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn made() -> (tempfile::TempDir, Account) {
    let home = tempfile::tempdir().unwrap();
    let account = Account::make(&home.path().join("state/stub"), GivenUp::default()).unwrap();
    (home, account)
}

#[test]
fn a_folder_is_closed_to_others_and_keeps_its_account() {
    let (home, account) = made();
    let path = home.path().join("state/stub");
    account.write(Room::Sandboxes, "sbx-1", "{}").unwrap();
    let mode =
        |name: &str| std::fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
    for (name, wanted) in [
        ("", 0o700),
        ("account.json", 0o600),
        ("lock", 0o600),
        ("sandboxes", 0o700),
        ("sandboxes/sbx-1.json", 0o600),
    ] {
        assert_eq!(mode(name), wanted, "{name:?}");
    }
    let id = account.id.clone();
    drop(account);
    let again = Account::open(&path, GivenUp::default()).unwrap().unwrap();
    assert_eq!(again.id, id);
    assert_eq!(again.names(Room::Sandboxes).unwrap(), ["sbx-1.json"]);
    assert!(again.remove(Room::Sandboxes, "sbx-1").unwrap());
    assert!(!again.remove(Room::Sandboxes, "sbx-1").unwrap());
}

#[test]
fn nothing_is_followed_and_nothing_waited_for() {
    let (home, account) = made();
    let room = home.path().join("state/stub/sandboxes");
    let secret = home.path().join("secret");
    std::fs::write(&secret, "{}").unwrap();
    std::os::unix::fs::symlink(&secret, room.join("sbx-link.json")).unwrap();
    std::fs::create_dir(room.join("sbx-dir.json")).unwrap();
    std::fs::write(room.join("sbx-long.json"), "x".repeat(LONGEST + 1)).unwrap();
    std::fs::write(room.join("sbx-bytes.json"), [0xff]).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        room.join("sbx-pipe.json"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    for name in ["sbx-link", "sbx-dir", "sbx-long", "sbx-bytes", "sbx-pipe"] {
        let content = account.read(Room::Sandboxes, name).unwrap();
        assert!(matches!(content, Content::Odd(_)), "{name}: {content:?}");
    }
    assert_eq!(account.read(Room::Sandboxes, "sbx-none").unwrap(), Content::Absent);
    assert!(account.read(Room::Sandboxes, "../account").is_err());
    assert!(account.write(Room::Sandboxes, "../../x", "").is_err());
}

#[test]
fn a_link_in_the_folders_place_is_no_folder() {
    let (home, account) = made();
    drop(account);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(home.path().join("state/stub"), &link).unwrap();
    assert!(Account::open(&link, GivenUp::default()).is_err());
    assert!(Account::make(&link, GivenUp::default()).is_err());
    assert!(Account::open(&home.path().join("none"), GivenUp::default()).unwrap().is_none());
}

#[test]
fn things_without_an_account_are_nobodys_to_judge() {
    let (home, account) = made();
    let path = home.path().join("state/stub");
    let open = || Account::open(&path, GivenUp::default());
    account.write(Room::Sandboxes, "sbx-1", "{}").unwrap();
    drop(account);
    for garbage in ["", "{}", r#"{"schema":1,"account":"../x"}"#] {
        std::fs::write(path.join(ACCOUNT), garbage).unwrap();
        assert!(open().is_err(), "{garbage:?}");
    }
    std::fs::remove_file(path.join(ACCOUNT)).unwrap();
    assert!(open().is_err());
    assert!(Account::make(&path, GivenUp::default()).is_err());
    std::fs::remove_file(path.join("sandboxes/sbx-1.json")).unwrap();
    assert!(open().unwrap().is_none());
}

#[test]
fn what_nobody_waits_for_any_more_changes_nothing() {
    let (_home, account) = made();
    account.given_up.give_up();
    assert_eq!(account.write(Room::Sandboxes, "sbx-1", "{}").unwrap_err().code, Code::Cancelled);
    assert!(account.names(Room::Sandboxes).unwrap().is_empty());
}
