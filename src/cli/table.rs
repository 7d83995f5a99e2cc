//! Tables for a person.

use comfy_table::{Cell, ContentArrangement, Row, Table};
use serde::Serialize;

use super::output::{CliError, Context, Outcome, OutputOptions, paint};
use crate::domain::Time;
use crate::present::{Column, Role};

/// The widest a cell gets even where nothing limits the table: a label of 90,000 characters is no table.
const CELL: usize = 200;

/// From this width on the columns that must stay whole do; on a narrower screen only the first does.
const ROOMY: usize = 80;

/// Prints a table of records: cut to the terminal's width by columns, never wrapped; a whole row is meant in one way.
pub(super) fn print<'r, T: 'r, C: ?Sized>(
    context: &mut Context<'_, C>,
    columns: &[Column<T>],
    records: impl IntoIterator<Item = &'r T>,
    role: impl Fn(&T) -> Role,
) -> Result<(), CliError> {
    let paints = context.paints();
    let records: Vec<&T> = records.into_iter().collect();
    let table = layout(columns, &records, context.now(), context.options, context.io.width);
    let roles = std::iter::once(Role::Title).chain(records.into_iter().map(role));
    for (text, role) in table.lines().zip(roles) {
        context.line(&paint(role, text.trim_end(), paints))?;
    }
    Ok(())
}

/// Answers with records: all of them as JSON, or as a table; what `nothing` says where there are none.
pub(super) fn reply<T: Serialize>(
    context: &mut Context<'_>,
    records: &[T],
    nothing: &str,
    columns: &[Column<T>],
    role: impl Fn(&T) -> Role,
) -> Outcome {
    context.reply(records, |context| {
        if records.is_empty() {
            context.remark(nothing);
            return Ok(());
        }
        print(context, columns, records, role)
    })
}

fn layout<T>(
    columns: &[Column<T>],
    records: &[&T],
    now: Time,
    options: OutputOptions,
    width: Option<usize>,
) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_truncation_indicator(if options.ascii { "~" } else { "…" });
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    let row = |cells: Vec<Cell>| {
        let mut row = Row::from(cells);
        row.max_height(1);
        row
    };
    let last = columns.len().saturating_sub(1);
    table.set_header(row(columns.iter().map(|column| Cell::new(column.title)).collect()));
    for record in records {
        // The last one is a sentence; what it does not say has no sign.
        let cell = |(at, column): (usize, &Column<T>)| match (column.cell)(record, now) {
            text if text.is_empty() && at != last => Cell::new("-"),
            text => Cell::new(options.clean(&text, CELL)),
        };
        table.add_row(row(columns.iter().enumerate().map(cell).collect()));
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if at == last { 0 } else { 2 }));
        let is_whole = columns.get(at).is_some_and(|column| column.is_whole);
        if at == 0 || (is_whole && width.is_none_or(|width| width >= ROOMY)) {
            // An id that is cut is worth nothing, and a cut state is a wrong one.
            column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cells = [&'static str; 3];

    const COLUMNS: &[Column<Cells>] = &[
        Column::new("ID", |cells, _| cells[0].to_owned()),
        Column::new("NAME", |cells, _| cells[1].to_owned()),
        Column::new("HOST", |cells, _| cells[2].to_owned()),
    ];

    fn shown(rows: &[Cells], width: Option<usize>, options: OutputOptions) -> Vec<String> {
        let rows: Vec<&Cells> = rows.iter().collect();
        layout(COLUMNS, &rows, Time::from_unix(0), options, width)
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_table_is_cut_by_columns_and_never_wraps() {
        let rows =
            &[["a1b2c3d4", "日本語テキスト日本語テキスト", "coulombcore"], ["b", "", "local"]];
        for width in [24, 30, 40, 80] {
            let lines = shown(rows, Some(width), OutputOptions::default());
            assert_eq!(lines.len(), 3, "{width}: {lines:?}");
            for line in &lines {
                assert!(crate::domain::text::columns(line) <= width, "{width}: {line:?}");
            }
            assert!(lines[1].starts_with("a1b2c3d4 "), "{width}: {lines:?}");
        }
        insta::assert_snapshot!(shown(rows, Some(30), OutputOptions::default()).join("\n"), @r"
        ID        NAME       HOST
        a1b2c3d4  日本語テ…  coulombc…
        b         -          local
        ");
    }

    #[test]
    fn escapes_never_reach_a_table() {
        let rows = &[["\u{1b}[2Jid", "a\nb\u{202e}", "\u{1b}]0;title\u{7}h"]];
        let ascii = OutputOptions { ascii: true, ..OutputOptions::default() };
        insta::assert_snapshot!(shown(rows, None, ascii).join("\n"), @r"
        ID  NAME  HOST
        id  a b?  h
        ");
    }
}
