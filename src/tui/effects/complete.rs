//! Paths that begin with what was typed.

use std::path::{Path, PathBuf};

use crate::domain::text::{clean_line, expand_home};
use crate::tui::message::Completion;

/// Entries of a folder that are looked at.
const LOOKED_AT: usize = 10_000;
/// Choices that are told.
const TOLD: usize = 40;

/// Completes a path as typed, `~` and all; with `folders`, to folders only.
pub(super) fn complete(typed: &str, home: Option<&Path>, folders: bool) -> Completion {
    if typed == "~" && home.is_some() {
        return Completion::To("~/".to_owned());
    }
    let (head, begun) = typed.rfind('/').map_or(("", typed), |at| typed.split_at(at + 1));
    if begun.is_empty() {
        return Completion::Nothing;
    }
    let folder = if head.is_empty() { PathBuf::from(".") } else { expand_home(head, home) };
    let mut names = names(&folder, begun, folders);
    let Some(common) = names.iter().map(|(name, _)| name.as_str()).reduce(agreed) else {
        return Completion::Nothing;
    };
    let slash = if names.len() == 1 && names[0].1 { "/" } else { "" };
    let completed = format!("{head}{common}{slash}");
    if completed != typed {
        return Completion::To(completed);
    }
    if names.iter().any(|(name, _)| name == begun) {
        return Completion::Nothing;
    }
    names.sort();
    names.truncate(TOLD);
    Completion::Choices(
        names.into_iter().map(|(name, folder)| if folder { name + "/" } else { name }).collect(),
    )
}

/// The names in a folder that begin so, and whether each is a folder. A name that no field can hold is none.
fn names(folder: &Path, begun: &str, folders: bool) -> Vec<(String, bool)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let wanted = name.starts_with(begun) && clean_line(&name, usize::MAX) == name;
        // A link to a folder is one.
        let is_folder = wanted && std::fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        (wanted && (is_folder || !folders)).then_some((name, is_folder))
    };
    entries.filter_map(Result::ok).take(LOOKED_AT).filter_map(named).collect()
}

/// How two texts begin alike.
fn agreed<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.char_indices().zip(b.chars()).take_while(|((_, a), b)| a == b);
    &a[..same.last().map_or(0, |((at, c), _)| at + c.len_utf8())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_far_as_all_choices_agree() {
        let home = tempfile::tempdir().unwrap();
        for folder in ["shop-api/src", "shop-web", "größe", ".cache"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join("shop-notes.txt"), "").unwrap();
        std::fs::write(home.path().join("shop-\u{1b}[31m"), "").unwrap();
        std::os::unix::fs::symlink(home.path().join("shop-web"), home.path().join("link")).unwrap();
        let to = |text: &str| Completion::To(text.to_owned());
        let choices = |names: &[&str]| {
            Completion::Choices(names.iter().map(|name| (*name).to_owned()).collect())
        };
        for (typed, folders, expected) in [
            ("~", false, to("~/")),
            ("~/s", true, to("~/shop-")),
            ("~/shop-", true, choices(&["shop-api/", "shop-web/"])),
            ("~/shop-", false, choices(&["shop-api/", "shop-notes.txt", "shop-web/"])),
            ("~/shop-a", true, to("~/shop-api/")),
            ("~/shop-api", true, to("~/shop-api/")),
            ("~/shop-api/", true, Completion::Nothing),
            ("~/shop-api/s", true, to("~/shop-api/src/")),
            ("~/shop-n", true, Completion::Nothing),
            ("~/shop-n", false, to("~/shop-notes.txt")),
            ("~/shop-notes.txt", false, Completion::Nothing),
            ("~/gr", true, to("~/größe/")),
            ("~/l", true, to("~/link/")),
            ("~/.c", true, to("~/.cache/")),
            ("/nowhere/at", true, Completion::Nothing),
            ("", true, Completion::Nothing),
        ] {
            assert_eq!(complete(typed, Some(home.path()), folders), expected, "{typed} {folders}");
        }
    }
}
