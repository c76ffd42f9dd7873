//! Plain text tables.

/// A cell: texts are aligned left, numbers right.
pub(super) enum TableCell {
    Text(String),
    Number(String),
}

/// A cell with a text.
pub(super) fn text(text: &str) -> TableCell {
    TableCell::Text(text.to_owned())
}

/// A cell with a number of `decimals` decimals.
pub(super) fn number(value: f64, decimals: usize) -> TableCell {
    TableCell::Number(format!("{value:.decimals$}"))
}

/// A title, the names of the columns, and the rows.
pub(super) fn table(title: &str, heads: &[&str], rows: Vec<Vec<TableCell>>) -> String {
    let heads: Vec<TableCell> =
        heads.iter().enumerate().map(|(column, head)| column_head(&rows, column, head)).collect();
    let lines: Vec<Vec<TableCell>> = std::iter::once(heads).chain(rows).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(|column| width(&lines, column)).collect();
    let lines: Vec<String> = lines.iter().map(|line| format!("  {}\n", align_row(line, &widths))).collect();
    format!("{title}\n{}", lines.concat())
}

/// The name of a column is aligned as its cells are.
fn column_head(rows: &[Vec<TableCell>], column: usize, head: &str) -> TableCell {
    let first = rows.first().and_then(|row| row.get(column));
    match first {
        Some(TableCell::Number(_)) => TableCell::Number(head.to_owned()),
        Some(TableCell::Text(_)) | None => TableCell::Text(head.to_owned()),
    }
}

fn width(lines: &[Vec<TableCell>], column: usize) -> usize {
    lines
        .iter()
        .filter_map(|line| line.get(column))
        .map(|cell| cell.content().len())
        .max()
        .unwrap_or_default()
}

fn align_row(line: &[TableCell], widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).map(|(cell, &width)| match cell {
        TableCell::Text(text) => format!("{text:<width$}"),
        TableCell::Number(number) => format!("{number:>width$}"),
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

impl TableCell {
    fn content(&self) -> &str {
        match self {
            TableCell::Text(content) | TableCell::Number(content) => content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec![text("direct"), number(9.26, 1)], vec![text("nginx"), number(1234.0, 1)]];
        let expected = "title\n  target      us\n  direct     9.3\n  nginx   1234.0\n";
        assert_eq!(table("title", &["target", "us"], rows), expected);
    }
}
