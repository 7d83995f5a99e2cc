//! Findings of the renderer: refusals and rewrites, each at its path.

use std::collections::{BTreeMap, HashSet};

use crate::domain::profile::Allowance;
use crate::domain::sandbox::Rewrite;
use crate::extensions::compose_ssh::mask::Masker;

use super::document::Document;
use super::refusal::{Place, Refusal};

/// Collects, so that all refusals are reported and not the first.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub refusals: Vec<Refusal>,
    pub rewrites: Vec<Rewrite>,
    seen: HashSet<(String, String)>,
    /// Variables that were to be passed through and have no value, each with where it stands first.
    unset: BTreeMap<String, String>,
}

/// So many variables without a value are told by name.
const NAMED: usize = 8;

impl Findings {
    pub(super) fn refuse(
        &mut self,
        path: &str,
        allow: Option<Allowance>,
        message: impl Into<String>,
    ) {
        let message = message.into();
        if self.seen.insert((path.to_owned(), message.clone())) {
            self.refusals.push(Refusal { path: path.to_owned(), message, allow, place: None });
        }
    }

    /// Is something refused at this path, or at one above it?
    pub(super) fn refuses(&self, path: &str) -> bool {
        self.refusals.iter().any(|refusal| {
            path.strip_prefix(refusal.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    }

    pub(super) fn rewrite(&mut self, path: &str, what: impl Into<String>) {
        let what = what.into();
        if self.seen.insert((path.to_owned(), what.clone())) {
            self.rewrites.push(Rewrite { path: path.to_owned(), what });
        }
    }

    /// Notes that a variable without a value is left out at `path`.
    pub(super) fn unset(&mut self, name: &str, path: &str) {
        self.unset.entry(name.to_owned()).or_insert_with(|| path.to_owned());
    }

    /// Says it of all of them in one line: projects pass hundreds through.
    pub(super) fn tell_unset(&mut self) {
        let unset = std::mem::take(&mut self.unset);
        let names: Vec<String> = unset.keys().take(NAMED).map(|name| format!("`{name}`")).collect();
        match (unset.len(), unset.into_values().next()) {
            (1, Some(path)) => {
                self.rewrite(
                    &path,
                    format!("{} has no value, in .env and the profile neither: left out", names[0]),
                );
            }
            (count, Some(_)) => {
                let more = if count > NAMED {
                    format!(" and {} more", count - NAMED)
                } else {
                    String::new()
                };
                let names = names.join(", ");
                self.rewrite(
                    "services",
                    format!(
                        "{names}{more} have no value, in .env and the profile neither: left out"
                    ),
                );
            }
            (_, None) => {}
        }
    }

    /// Takes the values of secrets out of what is said; a message quotes the file with its variables filled in.
    pub(super) fn mask(&mut self, masker: &Masker) {
        let refusals = self.refusals.iter_mut().map(|refusal| &mut refusal.message);
        for words in refusals.chain(self.rewrites.iter_mut().map(|rewrite| &mut rewrite.what)) {
            *words = masker.text(words);
        }
    }

    /// Adds to each refusal the place of its path, or of the nearest entry above it, in the first document that has it.
    pub(super) fn locate(&mut self, documents: &[Document]) {
        for refusal in self.refusals.iter_mut().filter(|refusal| refusal.place.is_none()) {
            let mut path = refusal.path.as_str();
            while refusal.place.is_none() && !path.is_empty() {
                let mut places = documents.iter().filter_map(|document| {
                    let at = document.places.get(path)?.key;
                    let (line, column) = (at.line.into(), at.column.into());
                    Some(Place { file: document.file.clone(), line, column })
                });
                refusal.place = places.next();
                // Lists of several files are joined: whose entry this is, nobody can tell.
                if path.ends_with(']') && places.next().is_some() {
                    refusal.place = None;
                }
                path = &path[..path.rfind(['.', '[']).unwrap_or(0)];
            }
        }
    }
}
