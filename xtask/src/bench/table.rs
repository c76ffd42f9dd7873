//! Tables of plain text.

/// A cell: words stand on the left of their column, numbers on the right.
pub(super) enum Cell {
    Text(String),
    Number(String),
}

/// A cell of words.
pub(super) fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

/// A cell with a number of so many decimals.
pub(super) fn number(value: f64, decimals: usize) -> Cell {
    Cell::Number(format!("{value:.decimals$}"))
}

/// A title, the names of the columns, and the rows.
pub(super) fn table(title: &str, heads: &[&str], rows: Vec<Vec<Cell>>) -> String {
    let heads: Vec<Cell> =
        heads.iter().enumerate().map(|(column, head)| head_over(&rows, column, head)).collect();
    let lines: Vec<Vec<Cell>> = std::iter::once(heads).chain(rows).collect();
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(|column| width(&lines, column)).collect();
    let lines: Vec<String> = lines.iter().map(|line| format!("  {}\n", aligned(line, &widths))).collect();
    format!("{title}\n{}", lines.concat())
}

/// A column's name stands on the side on which its cells stand.
fn head_over(rows: &[Vec<Cell>], column: usize, head: &str) -> Cell {
    let first = rows.first().and_then(|row| row.get(column));
    match first {
        Some(Cell::Number(_)) => Cell::Number(head.to_owned()),
        Some(Cell::Text(_)) | None => Cell::Text(head.to_owned()),
    }
}

fn width(lines: &[Vec<Cell>], column: usize) -> usize {
    lines
        .iter()
        .filter_map(|line| line.get(column))
        .map(|cell| cell.content().len())
        .max()
        .unwrap_or_default()
}

fn aligned(line: &[Cell], widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).map(|(cell, &width)| match cell {
        Cell::Text(text) => format!("{text:<width$}"),
        Cell::Number(number) => format!("{number:>width$}"),
    });
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

impl Cell {
    fn content(&self) -> &str {
        match self {
            Cell::Text(content) | Cell::Number(content) => content,
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
