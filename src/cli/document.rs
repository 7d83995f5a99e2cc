//! A document of a record, printed: names and values in two columns, below headings.

use std::io::Write as _;

use serde::Serialize;

use super::output::{CliError, Context, Outcome, OutputOptions, paint};
use crate::domain::text::columns;
use crate::present::{Document, Piece, Present, Role};

/// The widest a value gets, in columns.
const VALUE: usize = 1000;
/// The widest a name gets, in columns.
const KEY: usize = 24;

pub(super) fn print<C: ?Sized>(
    context: &mut Context<'_, C>,
    document: &Document,
) -> Result<(), CliError> {
    for line in lines(document, context.options, context.paints()) {
        context.line(&line)?;
    }
    Ok(())
}

/// Answers with a value: the whole of it as JSON, or a document of what is told of it.
pub(super) fn reply(
    context: &mut Context<'_>,
    value: &impl Serialize,
    tell: impl FnOnce(&mut Document, Present<'_>),
) -> Outcome {
    context.reply(value, |context| {
        let mut document = Document::default();
        tell(&mut document, context.present());
        print(context, &document)
    })
}

/// Shows a document that is part of an error: on stderr, with `--quiet` too.
pub(super) fn evidence(context: &mut Context<'_>, document: &Document) {
    for line in lines(document, context.options, false) {
        let _ = writeln!(context.io.stderr, "{line}");
    }
}

/// The lines of a document. Cleaned.
fn lines(document: &Document, options: OutputOptions, paints: bool) -> Vec<String> {
    let keys = document.pieces().iter().filter_map(|piece| match piece {
        Piece::Pair { key, .. } => Some(columns(&options.clean(key, KEY))),
        Piece::Gap | Piece::Heading(_) | Piece::Text { .. } | Piece::Line { .. } => None,
    });
    let wide = keys.max().unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    for piece in document.pieces() {
        match piece {
            Piece::Gap => gap(&mut lines),
            Piece::Heading(text) => {
                gap(&mut lines);
                lines.push(paint(Role::Title, &options.clean(text, VALUE), paints));
            }
            Piece::Pair { key, role, value, .. } => {
                let key = options.clean(key, KEY);
                let pad = " ".repeat(wide - columns(&key));
                let value = paint(*role, &options.clean(value, VALUE), paints);
                let key = paint(Role::Dim, &format!("{key}{pad}"), paints);
                lines.push(format!("{key}  {value}").trim_end().to_owned());
            }
            Piece::Text { role, indent, text } => {
                let margin = " ".repeat(*indent);
                let text = text.lines().map(|line| options.clean(line, VALUE));
                lines.extend(text.map(|line| format!("{margin}{}", paint(*role, &line, paints))));
            }
            Piece::Line { branch, spans, .. } => {
                let span = |(role, text): &(Role, String)| {
                    paint(*role, &options.clean(text, VALUE), paints)
                };
                let text: String = spans.iter().map(span).collect();
                let branch = options.clean(branch, VALUE);
                lines.push(format!("  {branch}{text}").trim_end().to_owned());
            }
        }
    }
    lines
}

/// An empty line between what is there and what comes.
fn gap(lines: &mut Vec<String>) {
    if lines.last().is_some_and(|line| !line.is_empty()) {
        lines.push(String::new());
    }
}
