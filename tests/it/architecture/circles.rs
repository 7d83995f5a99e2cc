//! Circles of files: inside a room, who uses whom is a tree of floors too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::rust_source::{House, SourceFile, Token, paths};
use super::within;

/// Imports that close a circle and stay for now: who (a module and what is below it), whom, and why. New circles need a new
/// row; a row that closes no circle any more is to be taken out.
const CLOSING: &[(&str, &str, &str)] = &[];

/// Which module uses which others of its room.
pub type Uses = BTreeMap<String, BTreeSet<String>>;

/// Who uses whom in the rooms of `src`, tests left out. What a module hands on (`pub use child::Name`) is used where it
/// is; handing on is no use, unless the module says the name itself, too.
pub fn uses(house: &House) -> Uses {
    let handed_on = handed_on(house);
    let mut uses = Uses::new();
    for file in house.files.iter().filter(|file| !file.is_test) {
        let found = uses.entry(file.module.clone()).or_default();
        let all = file.outside_tests();
        let own = without_handing_on(&all);
        let says = |path: &[String]| own.iter().any(|token| path.last() == Some(&token.text));
        let handed: Vec<_> = handing_on(&all)
            .into_iter()
            .flat_map(|clause| paths(clause, &file.module, &house.modules))
            .filter(|(_, path)| says(path))
            .collect();
        for (_, path) in paths(&own, &file.module, &house.modules).into_iter().chain(handed) {
            if let Some(target) = reached(house, &handed_on, path)
                && target != file.module
                && room(&target) == room(&file.module)
            {
                found.insert(target);
            }
        }
    }
    uses
}

/// A module's room: the folder right below `src`.
pub fn room(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// The circles: sets of modules of which each uses each, by whatever way; each set sorted.
pub fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|module| (module.as_str(), everything_below(uses, module))).collect();
    let mut found = BTreeSet::new();
    for (module, below) in &reach {
        let circle: Vec<String> = below
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(module)))
            .map(|other| (*other).to_owned())
            .collect();
        if !circle.is_empty() {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

/// Whether a row of [`CLOSING`] allows an import.
fn allowed((who, whom, _): &(&str, &str, &str), user: &str, module: &str) -> bool {
    within(user, who) && module == *whom
}

/// The imports without those that one of `rows` allows.
fn without(uses: &Uses, rows: &[&(&str, &str, &str)]) -> Uses {
    let kept = |user: &str, used: &String| !rows.iter().any(|row| allowed(row, user, used));
    uses.iter()
        .map(|(user, used)| {
            (user.clone(), used.iter().filter(|used| kept(user, used)).cloned().collect())
        })
        .collect()
}

fn everything_below<'a>(uses: &'a Uses, module: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<&str> = uses.get(module).into_iter().flatten().map(String::as_str).collect();
    while let Some(module) = next.pop() {
        if seen.insert(module) {
            next.extend(uses.get(module).into_iter().flatten().map(String::as_str));
        }
    }
    seen
}

/// Module and name → the path that the name really has.
type HandedOn = BTreeMap<(String, String), Vec<String>>;

fn handed_on(house: &House) -> HandedOn {
    let mut found = HandedOn::new();
    for file in &house.files {
        for clause in handing_on(&file.outside_tests()) {
            for (_, path) in paths(clause, &file.module, &house.modules) {
                if let Some(name) = path.last() {
                    found.insert((file.module.clone(), name.clone()), path);
                }
            }
        }
    }
    found
}

/// The module that has what a path names, past those that only hand it on.
fn reached(house: &House, handed_on: &HandedOn, mut path: Vec<String>) -> Option<String> {
    for _ in 0..8 {
        let module = house.reached(&path)?;
        let depth = module.split("::").count();
        let Some(name) = path.get(depth) else { return Some(module) };
        match handed_on.get(&(module.clone(), name.clone())) {
            Some(real) if *real != path => path = [real.as_slice(), &path[depth + 1..]].concat(),
            _ => return Some(module),
        }
    }
    house.reached(&path)
}

/// Every `pub use …;`, from its `use` on.
fn handing_on(tokens: &[Token]) -> Vec<&[Token]> {
    spans(tokens).into_iter().map(|(from, to)| &tokens[from..to]).collect()
}

fn without_handing_on(tokens: &[Token]) -> Vec<Token> {
    let spans = spans(tokens);
    let kept = tokens.iter().enumerate();
    kept.filter(|(at, _)| !spans.iter().any(|(from, to)| (from..to).contains(&at)))
        .map(|(_, token)| token.clone())
        .collect()
}

fn spans(tokens: &[Token]) -> Vec<(usize, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|at| text(*at) == "pub") {
        let mut from = at + 1;
        if text(from) == "(" {
            while !matches!(text(from), ")" | "") {
                from += 1;
            }
            from += 1;
        }
        if text(from) == "use" {
            let to = (from..tokens.len()).find(|at| text(*at) == ";").unwrap_or(tokens.len());
            found.push((from, to));
        }
    }
    found
}

#[test]
fn no_circle_of_files_stands_inside_a_room() {
    let uses = uses(&House::read());
    let rows: Vec<_> = CLOSING.iter().collect();
    let mut wrong = String::new();
    for circle in circles(&without(&uses, &rows)) {
        let _ = writeln!(wrong, "a circle of files:");
        for module in &circle {
            let theirs = uses[module].iter().filter(|other| circle.contains(other));
            let theirs: Vec<&str> = theirs.map(String::as_str).collect();
            let _ = writeln!(wrong, "  {module} uses {}", theirs.join(", "));
        }
    }
    for row in CLOSING {
        let others: Vec<_> = CLOSING.iter().filter(|other| *other != row).collect();
        let of_room = uses.iter().filter(|(user, _)| room(user) == room(row.0));
        let of_room = of_room.map(|(user, used)| (user.clone(), used.clone())).collect();
        if circles(&without(&of_room, &others)).is_empty() {
            let _ = writeln!(wrong, "{} → {} closes no circle any more: take it out", row.0, row.1);
        }
    }
    assert!(
        wrong.is_empty(),
        "who uses whom goes one way (rule 4 of docs/architecture.md):\n{wrong}"
    );
}

#[test]
fn a_circle_is_found_through_what_a_module_hands_on() {
    let file =
        |module: &str, source: &str| SourceFile::new(String::new(), module.to_owned(), source);
    let files = vec![
        file(
            "room",
            "mod low; pub(crate) mod high; pub use low::Thing; pub(in crate::room) fn f() {}",
        ),
        file("room::low", "pub struct Thing; #[cfg(test)] use super::high::f;"),
        file(
            "room::high",
            "use super::Thing; fn f() { crate::room::low::g() } fn g() { crate::other::h() }",
        ),
        file("room::left", "use super::right::{self, X};"),
        file("room::right", "fn f() { super::left::deep::g() }"),
        file("other", "use crate::room::high;"),
        file("up", "pub use down::Part; struct Whole(Part);"),
        file("up::down", "use super::Whole; pub struct Part;"),
    ];
    let modules = files.iter().map(|file| file.module.clone()).collect();
    let uses = uses(&House { files, modules });
    let of = |module: &str| uses[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert!(of("room").is_empty() && of("room::low").is_empty() && of("other").is_empty());
    assert_eq!(of("room::high"), ["room::low"]);
    assert_eq!(circles(&uses), [["room::left", "room::right"], ["up", "up::down"]]);
    let rows = [("room::right", "room::left", ""), ("up::down", "up", "")];
    assert!(circles(&without(&uses, &rows.each_ref())).is_empty());
}
