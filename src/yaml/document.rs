//! Document: a file of an operator as a tree, under limits, with its problems placed.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, RenderOptions, SnippetMode};

use super::tree::{self, Limits, Malformed, Place, Tree};
use crate::domain::problem::{FieldProblem, ParseProblem, plain_start, shown};

/// Largest file that is read, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Problems of one file that are told: a file of another kind would have thousands.
const MAX_PROBLEMS: usize = 100;

/// How much of a line is shown beside a problem, in characters.
const SHOWN: usize = 60;

/// A parsed file: its text, and its tree.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    file: String,
    source: String,
    tree: Tree,
}

impl Document {
    /// Parses a file's bytes; `file` is the name that problems show.
    ///
    /// Errors: over [`MAX_FILE_BYTES`], not UTF-8, not YAML, several documents, or aliases that grow without bound.
    pub(crate) fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, ParseProblem> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ParseProblem::whole(file, "the file is over 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(source) => Self::parse(file, source),
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                Err(behind(file, &before, "the file is not UTF-8 text"))
            }
        }
    }

    /// Parses a text; see [`Document::from_bytes`].
    pub(crate) fn parse(file: &str, source: &str) -> Result<Self, ParseProblem> {
        if source.len() as u64 > MAX_FILE_BYTES {
            return Err(ParseProblem::whole(file, "the file is over 1 MiB"));
        }
        // The parser would take a NUL for text; no value of ours may hold one.
        if let Some(at) = source.find('\0') {
            return Err(behind(file, &source[..at], "the file holds a NUL character"));
        }
        let tree = tree::parse(source, &limits()).map_err(|problem| {
            let (message, place) = match problem {
                Malformed::Parser(error) => {
                    let place = error.location();
                    let place = place
                        .map(|at| Place { line: at.line() as u32, column: at.column() as u32 });
                    (sentence(&error), place)
                }
                Malformed::TooMany => (TOO_LARGE.to_owned(), None),
                Malformed::Refused(message, place) => (message, Some(place)),
            };
            let Some(place) = place else { return ParseProblem::whole(file, message) };
            let mut problem = ParseProblem::whole(file, message).at(place.line, place.column);
            problem.snippet = snippet(source, place);
            problem
        })?;
        Ok(Self { file: file.to_owned(), source: source.to_owned(), tree })
    }

    /// The name that problems show.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Value of the file.
    pub(crate) fn value(&self) -> &Value {
        &self.tree.value
    }

    /// Text of a top-level key, if it is one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.tree.value.get(key)?.as_str()
    }

    /// A problem with the value at a path such as `inputs.repo.kind` or `placement.hosts[1]`; where the path does not exist, at
    /// the nearest part of it that does.
    pub(crate) fn problem(&self, path: &str, message: impl Into<String>) -> ParseProblem {
        let place = self.tree.nearest(path).map(|span| span.value);
        self.at(place.unwrap_or_else(|| self.start()), path, message)
    }

    pub(crate) fn key_problem(&self, path: &str, message: impl Into<String>) -> ParseProblem {
        let place = self.tree.nearest(path).map(|span| span.key);
        self.at(place.unwrap_or_else(|| self.start()), path, message)
    }

    /// Adds what a value's own rules found, each at its place. Of a value that has a problem, or of which a part has, nothing
    /// more is said: it was replaced by its default.
    pub(crate) fn with_fields(
        &self,
        mut problems: Vec<ParseProblem>,
        fields: Vec<FieldProblem>,
    ) -> Vec<ParseProblem> {
        for field in fields {
            let mut problem = self.problem(&field.path, field.message);
            problem.suggestion = field.suggestion;
            let known = problems.iter().any(|known| {
                known.line == problem.line && known.column == problem.column
                    || known.path.strip_prefix(problem.path.as_str()).is_some_and(|rest| {
                        !problem.path.is_empty()
                            && (rest.is_empty() || rest.starts_with(['.', '[']))
                    })
            });
            if !known {
                problems.push(problem);
            }
        }
        sorted(problems)
    }

    /// Problems of keys that stand twice.
    pub(super) fn duplicates(&self) -> Vec<ParseProblem> {
        let problem = |twice: &tree::Twice| {
            let message =
                format!("duplicate key {}, first set at line {}", shown(&twice.key), twice.first);
            self.at(twice.place, &twice.path, message)
        };
        self.tree.twice.iter().map(problem).collect()
    }

    /// Where the document begins.
    fn start(&self) -> Place {
        self.tree.start
    }

    fn at(&self, place: Place, path: &str, message: impl Into<String>) -> ParseProblem {
        let mut problem = ParseProblem::whole(&self.file, message).at(place.line, place.column);
        path.clone_into(&mut problem.path);
        problem.snippet = snippet(&self.source, place);
        problem
    }
}

/// Problems in the order of the file, each place and sentence once.
pub(super) fn sorted(mut problems: Vec<ParseProblem>) -> Vec<ParseProblem> {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.truncate(MAX_PROBLEMS);
    problems.dedup_by(|a, b| (a.line, a.column, &a.message) == (b.line, b.column, &b.message));
    problems
}

/// A problem right behind this beginning of a file.
fn behind(file: &str, before: &str, message: &str) -> ParseProblem {
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
    ParseProblem::whole(file, message).at(line, column)
}

/// Limits far above any file that an operator writes and far below what hurts.
fn limits() -> Limits {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 60_000, max_nodes: 20_000, max_depth: 32, flow_nesting_limit: 32, max_aliases: 1_000,
            max_anchors: 1_000, max_recorded_anchor_events: 60_000, max_total_scalar_bytes: 4 * 1024 * 1024,
            // One more than is allowed, so that the error says so and not that a budget is spent.
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000, max_replay_stack_depth: 16 },
        // Passed on, so that both places can be named.
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    Limits { options, text: 4 * 1024 * 1024, entries: 40_000, key: |_| None }
}

const TOO_LARGE: &str = "the file is too large or too deep once its aliases ('*name') are expanded";

/// The library's error as one sentence of ours, where ours is clearer.
fn sentence(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::MultipleDocuments { .. } => {
            return "the file holds several documents ('---'), one is expected".to_owned();
        }
        serde_saphyr::Error::RecursiveReferencesRequireWeakTypes { .. } => {
            return "an alias ('*name') refers to itself".to_owned();
        }
        serde_saphyr::Error::NonFiniteFloat { .. } => return "a number must be finite".to_owned(),
        _ => {}
    }
    let mut options = RenderOptions::default();
    options.snippets = SnippetMode::Off;
    let text = error.render_with_options(options);
    let text = text.lines().next().unwrap_or_default();
    let lower = text.to_lowercase();
    if lower.contains("budget") || lower.contains("limit") || lower.contains("alias replay") {
        return TOO_LARGE.to_owned();
    }
    // The place is told apart; the library repeats it at either end.
    let text = text.split_once(" at line ").map_or(text, |(text, _)| text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = match text.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((_, rest)) => rest,
        None => text,
    };
    format!("not valid YAML: {}", plain_start(text, 160))
}

/// The line of a place and a caret below it.
fn snippet(source: &str, place: Place) -> Option<Box<str>> {
    let text = source.lines().nth(place.line.checked_sub(1)? as usize)?;
    let at = place.column.saturating_sub(1) as usize;
    // A long line is shown from a little before the place.
    let from = if at > SHOWN { at - SHOWN / 2 } else { 0 };
    let visible: String =
        text.chars().skip(from).map(|c| if c == '\t' { ' ' } else { c }).collect();
    let visible = plain_start(&visible, SHOWN * 2);
    let lead = if from > 0 { "…" } else { "" };
    let number = place.line.to_string();
    let caret = " ".repeat(at - from + lead.chars().count());
    Some(
        format!("  {number} | {lead}{visible}\n  {:1$} | {caret}^", "", number.len())
            .into_boxed_str(),
    )
}
