//! Tables for a person.

use comfy_table::{Cell, ContentArrangement, Row, Table};

use super::output::{CliError, Context, OutputOptions, Tone};

/// The widest a cell gets even where nothing limits the table: a label of 90,000 characters is no table.
const CELL: usize = 200;

/// From this width on the columns that must stay whole do; on a narrower screen only the first does.
const ROOMY: usize = 80;

/// One row: its cells, which may hold text of others, and how it stands out.
pub(super) struct Line {
    pub tone: Tone,
    pub cells: Vec<String>,
}

/// Prints a table: cut to the terminal's width by columns, never wrapped; a whole row has one tone. A head that
/// ends in `!` is of a column that must stay whole, as the first always does.
pub(super) fn print<C: ?Sized>(
    context: &mut Context<'_, C>,
    head: &[&str],
    lines: &[Line],
) -> Result<(), CliError> {
    let color = context.paints();
    let table = layout(head, lines, context.options, context.io.width);
    let tones = std::iter::once(Tone::Strong).chain(lines.iter().map(|line| line.tone));
    for (text, tone) in table.lines().zip(tones) {
        context.line(&tone.paint(text.trim_end(), color))?;
    }
    Ok(())
}

fn layout(head: &[&str], lines: &[Line], options: OutputOptions, width: Option<usize>) -> Table {
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
    table.set_header(row(head.iter().map(|name| Cell::new(name.trim_end_matches('!'))).collect()));
    for line in lines {
        table.add_row(row(line
            .cells
            .iter()
            .map(|cell| Cell::new(options.clean(cell, CELL)))
            .collect()));
    }
    let last = head.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        let whole = head.get(index).is_some_and(|name| name.ends_with('!'));
        if index == 0 || (whole && width.is_none_or(|width| width >= ROOMY)) {
            // An id that is cut is worth nothing, and a cut state is a wrong one.
            column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(cells: &[&[&str]], width: Option<usize>, options: OutputOptions) -> Vec<String> {
        let lines: Vec<Line> = cells
            .iter()
            .map(|cells| Line {
                tone: Tone::Plain,
                cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
            })
            .collect();
        layout(&["ID", "NAME", "HOST"], &lines, options, width)
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_table_is_cut_by_columns_and_never_wraps() {
        let rows: &[&[&str]] =
            &[&["a1b2c3d4", "日本語テキスト日本語テキスト", "coulombcore"], &["b", "x", "local"]];
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
        b         x          local
        ");
    }

    #[test]
    fn escapes_never_reach_a_table() {
        let rows: &[&[&str]] = &[&["\u{1b}[2Jid", "a\nb\u{202e}", "\u{1b}]0;title\u{7}h"]];
        let ascii = OutputOptions { ascii: true, ..OutputOptions::default() };
        insta::assert_snapshot!(shown(rows, None, ascii).join("\n"), @r"
        ID  NAME  HOST
        id  a b?  h
        ");
    }
}
