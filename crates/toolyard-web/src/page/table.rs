//! Tables in the form that Markdown has: rows of equally many cells.

use dom_query::NodeRef;

/// Maximum number of columns of a table in Markdown.
const MAX_COLUMNS: usize = 200;

/// Maximum number of empty cells that are added to the tables of a page.
const MAX_ADDED_CELLS: usize = 20_000;

/// Shapes each table: its rows get equally many cells, an empty one for each place that a cell spans beside its first.
/// A table with tables or code in its cells, which Markdown cannot have, becomes a block for each cell.
pub(super) fn shape_tables(content: &NodeRef<'_>) {
    let mut room = MAX_ADDED_CELLS;
    let tables: Vec<_> = content.descendants_it().filter(|node| node.has_name("table")).collect();
    for table in tables {
        let has_blocks = table.descendants_it().any(|node| node.has_name("table") || node.has_name("pre"));
        if has_blocks || pad_rows(&table, &mut room).is_none() {
            unfold(&table);
        }
    }
}

/// Adds the missing cells. `None`: there are too many columns, or no room for the cells.
fn pad_rows(table: &NodeRef<'_>, room: &mut usize) -> Option<()> {
    let rows: Vec<(NodeRef<'_>, Vec<NodeRef<'_>>)> = table
        .find(&["tr"])
        .into_iter()
        .map(|row| (row, row.children_it(false).filter(is_cell).collect()))
        .collect();
    let cells: Vec<&[NodeRef<'_>]> = rows.iter().map(|(_, cells)| &**cells).collect();
    let TableColumns { of_cells, width } = TableColumns::of(&cells)?;
    let added = cells.iter().filter(|cells| !cells.is_empty()).map(|cells| width - cells.len()).sum();
    *room = room.checked_sub(added)?;
    for ((row, cells), columns) in rows.iter().zip(of_cells) {
        if cells.is_empty() {
            row.remove_from_parent();
            continue;
        }
        // A row of headings stays one.
        let name = if cells.iter().all(|cell| cell.has_name("th")) { "th" } else { "td" };
        let mut next = 0;
        for (cell, column) in cells.iter().zip(columns) {
            (next..column).for_each(|_| cell.insert_before(&row.tree.new_element(name)));
            next = column + 1;
        }
        (next..width).for_each(|_| row.append_child(&row.tree.new_element(name)));
    }
    Some(())
}

/// The columns of a table.
#[derive(Debug, PartialEq, Eq)]
struct TableColumns {
    /// The first column of each cell, by row.
    of_cells: Vec<Vec<usize>>,
    /// Number of columns.
    width: usize,
}

impl TableColumns {
    /// Finds the columns of cells as browsers do (HTML, section 4.9.12.1). `None`: there are too many.
    fn of(rows: &[&[NodeRef<'_>]]) -> Option<Self> {
        // The number of rows, from the current one on, that a cell covers in each column.
        let mut covered: Vec<usize> = Vec::new();
        let mut of_cells = Vec::with_capacity(rows.len());
        for row in rows {
            let mut columns = Vec::with_capacity(row.len());
            let mut next = 0;
            for cell in *row {
                while covered.get(next).is_some_and(|rows| *rows > 0) {
                    next += 1;
                }
                columns.push(next);
                let end = next + span(cell, "colspan", MAX_COLUMNS + 1);
                if end > MAX_COLUMNS {
                    return None;
                }
                covered.resize(covered.len().max(end), 0);
                covered[next..end].fill(span(cell, "rowspan", rows.len()));
                next = end;
            }
            covered.iter_mut().for_each(|rows| *rows = rows.saturating_sub(1));
            of_cells.push(columns);
        }
        Some(Self { of_cells, width: covered.len() })
    }
}

/// Returns the number of columns or rows of a cell: 1 if it is invalid, and `max` for 0, which stands for the rest.
fn span(cell: &NodeRef<'_>, attribute: &str, max: usize) -> usize {
    match cell.attr(attribute).and_then(|value| value.trim().parse().ok()).unwrap_or(1) {
        0 if attribute == "rowspan" => max,
        span => usize::clamp(span, 1, max.max(1)),
    }
}

fn is_cell(node: &NodeRef<'_>) -> bool {
    node.has_name("td") || node.has_name("th")
}

/// Makes blocks of a table and its cells, but not of what is in the cells.
fn unfold(table: &NodeRef<'_>) {
    const PARTS: [&str; 7] = ["thead", "tbody", "tfoot", "caption", "tr", "td", "th"];
    let mut parts: Vec<_> = table.children_it(false).collect();
    table.rename("div");
    while let Some(part) = parts.pop() {
        if PARTS.iter().any(|name| part.has_name(name)) {
            parts.extend(part.children_it(false));
            part.rename("div");
        }
    }
}
