//! What was seen, as Markdown.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::client::Kind;
use super::feature::Feature;

/// What is in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    Seen,
    /// There is nothing to see, by this section.
    Nothing(&'static str),
    /// What was seen instead.
    Failed(String),
}

/// One server, seen by all clients.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<(Kind, Vec<Cell>)>,
}

impl Table {
    /// What failed: a line for each reason, with the clients that have met it.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (client, cells) in &self.rows {
            for (head, cell) in self.heads.iter().zip(cells) {
                if let Cell::Failed(why) = cell {
                    failures.entry((head, why)).or_default().push(client.to_string());
                }
            }
        }
        let line = |((head, why), clients): (_, Vec<_>)| {
            format!("{}: {head}: {why} ({})", self.title, clients.join(", "))
        };
        failures.into_iter().map(line).collect()
    }
}

/// The names of all features.
pub(super) fn features() -> Vec<String> {
    Feature::ALL.iter().map(Feature::to_string).collect()
}

/// All tables, and below them what their notes say.
pub(super) fn document(tables: &[Table]) -> String {
    let mut notes = Vec::new();
    let mut text = String::new();
    for table in tables {
        // Writing to a string does not fail.
        let _infallible = write_table(&mut text, table, &mut notes);
    }
    if !notes.is_empty() {
        text += "\n## Notes\n\n";
    }
    for (number, note) in notes.iter().enumerate() {
        let _infallible = writeln!(text, "{}. {note}", number + 1);
    }
    text
}

fn write_table(text: &mut String, table: &Table, notes: &mut Vec<&'static str>) -> fmt::Result {
    writeln!(text, "\n## {}\n", table.title)?;
    writeln!(text, "| client | {} |", table.heads.join(" | "))?;
    writeln!(text, "|{}", " --- |".repeat(table.heads.len() + 1))?;
    for (client, cells) in &table.rows {
        let cells: Vec<_> = cells.iter().map(|cell| shown(cell, notes)).collect();
        writeln!(text, "| {client} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn shown(cell: &Cell, notes: &mut Vec<&'static str>) -> String {
    match cell {
        Cell::Seen => "ok".to_owned(),
        Cell::Nothing(because) => {
            let place = notes.iter().position(|note| note == because).unwrap_or_else(|| {
                notes.push(because);
                notes.len() - 1
            });
            format!("n/a ({})", place + 1)
        }
        Cell::Failed(_) => "FAILED".to_owned(),
    }
}
