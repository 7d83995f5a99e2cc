//! Keys and their actions: one table, from which the help, the footer and the documentation are printed.
//!
//! A row is (modes, action, keys, help). A configuration rebinds by the action's name; a clash is an error that
//! names both actions. Nothing destructive may sit on a key that edits text elsewhere (ctrl-d, ctrl-k, ctrl-u,
//! ctrl-w, backspace, delete): a hand that thinks it is in a text field must not destroy anything.

mod key;
mod table;

use std::collections::{BTreeMap, HashMap};

use crate::domain::error::{Code, Error, Kind};
use crate::domain::text::nearest;

pub(crate) use key::Key;
pub use table::{Action, Mode, TABLE};

/// The table with the configuration's changes applied.
#[derive(Debug, Clone)]
pub struct Keymap {
    actions: HashMap<(Mode, Key), Action>,
    keys: HashMap<(Mode, Action), Vec<Key>>,
}

impl Keymap {
    /// Builds the map. `rebound` holds action names and their keys, separated by spaces (`destroy` → `ctrl-x`).
    ///
    /// Errors (`invalid_config`): an unknown action or key, a destructive action on an editing key, and two
    /// actions on one key, naming both.
    pub fn new(rebound: &BTreeMap<String, String>) -> Result<Self, Error> {
        for name in rebound.keys() {
            if !TABLE.iter().any(|row| row.action.name() == name) {
                return Err(unknown_action(name));
            }
        }
        let mut map = Self { actions: HashMap::new(), keys: HashMap::new() };
        for row in TABLE {
            let spelled = rebound.get(row.action.name()).map_or(row.keys, String::as_str);
            let keys = spelled
                .split_whitespace()
                .map(|word| Key::parse(word).ok_or_else(|| unknown_key(row.action, word)))
                .collect::<Result<Vec<_>, _>>()?;
            if let Some(key) =
                keys.iter().find(|key| row.action.is_destructive() && key.edits_text())
            {
                return Err(refuse(
                    row.action,
                    format!("'{}' may not be on {key}: it edits text elsewhere", row.action.name()),
                ));
            }
            for mode in row.modes {
                map.bind(*mode, row.action, &keys)?;
            }
        }
        Ok(map)
    }

    fn bind(&mut self, mode: Mode, action: Action, keys: &[Key]) -> Result<(), Error> {
        for key in keys {
            if let Some(other) = self.actions.insert((mode, *key), action)
                && other != action
            {
                let message =
                    format!("key {key} is on both '{}' and '{}'", other.name(), action.name());
                return Err(refuse(action, message));
            }
        }
        self.keys.insert((mode, action), keys.to_vec());
        Ok(())
    }

    pub fn action(&self, mode: Mode, key: Key) -> Option<Action> {
        self.actions.get(&(mode, key)).copied()
    }

    /// The keys of an action in a mode, as printed; empty when it has none there.
    pub fn spelled(&self, mode: Mode, action: Action) -> String {
        let keys = self.keys.get(&(mode, action)).map(Vec::as_slice).unwrap_or_default();
        keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    /// The first key of an action in a mode, as printed.
    pub fn first(&self, mode: Mode, action: Action) -> Option<String> {
        self.keys.get(&(mode, action)).and_then(|keys| keys.first()).map(ToString::to_string)
    }

    /// The rows of one mode that this version has, with their keys: what the help shows.
    pub fn help(&self, mode: Mode) -> Vec<(String, &'static str)> {
        TABLE
            .iter()
            .filter(|row| row.modes.contains(&mode))
            .map(|row| (self.spelled(mode, row.action), row.help))
            .filter(|(keys, _)| !keys.is_empty())
            .collect()
    }
}

fn refuse(action: Action, message: String) -> Error {
    misbound(action.name(), message).hint("change dashboard.keys in the configuration")
}

/// Setting of an action's keys is wrong.
fn misbound(name: &str, message: String) -> Error {
    let setting = format!("dashboard.keys.{name}");
    Error::new(Code::InvalidConfig, message)
        .detail("field", setting.as_str())
        .of_kind(Kind::Setting(setting))
}

fn unknown_key(action: Action, word: &str) -> Error {
    refuse(action, format!("'{word}' is not a key")).hint(
        "write a character, ctrl-x, alt-x, f5, or one of enter esc tab space up down left right home end pgup pgdn",
    )
}

fn unknown_action(name: &str) -> Error {
    let near = nearest(name, TABLE.iter().map(|row| row.action.name()));
    let error = misbound(name, format!("'{name}' is not an action of the dashboard"));
    match near {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("'?' in the dashboard lists them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rebound(action: &str, keys: &str) -> Result<Keymap, Error> {
        Keymap::new(&BTreeMap::from([(action.to_owned(), keys.to_owned())]))
    }

    #[test]
    fn the_shipped_table_has_no_clash_and_every_action_a_row() {
        let map = Keymap::new(&BTreeMap::new()).unwrap();
        for action in Action::ALL {
            assert!(TABLE.iter().any(|row| row.action == *action), "{action:?} has no row");
        }
        assert_eq!(map.action(Mode::Main, Key::parse("d").unwrap()), Some(Action::Destroy));
        assert_eq!(map.spelled(Mode::Main, Action::Down), "j ↓");
    }

    #[test]
    fn a_clash_names_both_actions() {
        let error = rebound("destroy", "n").unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig);
        assert!(
            error.message.contains("'create'") && error.message.contains("'destroy'"),
            "{}",
            error.message
        );
        assert!(rebound("destroy", "ctrl-x").is_ok());
    }

    #[test]
    fn destructive_actions_stay_off_editing_keys() {
        for key in ["ctrl-d", "ctrl-k", "ctrl-u", "ctrl-w", "backspace", "delete"] {
            assert!(rebound("destroy", key).is_err(), "{key}");
            assert!(rebound("recreate", key).is_err(), "{key}");
        }
        assert!(rebound("help", "ctrl-k").is_ok());
    }

    #[test]
    fn an_unknown_action_or_key_says_what_is_known() {
        assert_eq!(
            rebound("destory", "x").unwrap_err().hint.as_deref(),
            Some("did you mean 'destroy'?")
        );
        assert!(
            rebound("destroy", "hyper-x").unwrap_err().message.contains("'hyper-x' is not a key")
        );
    }
}
