//! The results as Markdown.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::client::ClientKind;
use super::feature::McpFeature;
use super::scope::HandlerSetting;

/// The content of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MatrixCell {
    Passed,
    /// Passed with a setting that the default configuration does not have, for this reason.
    PassedWith(HandlerSetting, &'static str),
    /// Excluded by this section of the specification.
    NotApplicable(&'static str),
    /// The failure.
    Failed(String),
}

/// One server with all clients.
pub(super) struct MatrixTable {
    pub(super) title: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(ClientKind, Vec<MatrixCell>)>,
}

impl MatrixTable {
    /// The failures: a line per reason, with its clients.
    pub(super) fn failures(&self) -> Vec<String> {
        let mut failures: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (client, cells) in &self.rows {
            for (head, cell) in self.columns.iter().zip(cells) {
                if let MatrixCell::Failed(why) = cell {
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
pub(super) fn feature_names() -> Vec<String> {
    McpFeature::ALL.iter().map(McpFeature::to_string).collect()
}

/// All tables, followed by their notes.
pub(super) fn document(tables: &[MatrixTable]) -> String {
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

fn write_table(text: &mut String, table: &MatrixTable, notes: &mut Vec<&'static str>) -> fmt::Result {
    writeln!(text, "\n## {}\n", table.title)?;
    writeln!(text, "| client | {} |", table.columns.join(" | "))?;
    writeln!(text, "|{}", " --- |".repeat(table.columns.len() + 1))?;
    for (client, cells) in &table.rows {
        let cells: Vec<_> = cells.iter().map(|cell| cell_text(cell, notes)).collect();
        writeln!(text, "| {client} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell_text(cell: &MatrixCell, notes: &mut Vec<&'static str>) -> String {
    match cell {
        MatrixCell::Passed => "ok".to_owned(),
        MatrixCell::PassedWith(setting, reason) => format!("ok ({setting}; {})", note_number(reason, notes)),
        MatrixCell::NotApplicable(reason) => format!("n/a ({})", note_number(reason, notes)),
        MatrixCell::Failed(_) => "FAILED".to_owned(),
    }
}

fn note_number(reason: &'static str, notes: &mut Vec<&'static str>) -> usize {
    let index = notes.iter().position(|note| *note == reason).unwrap_or_else(|| {
        notes.push(reason);
        notes.len() - 1
    });
    index + 1
}
