//! Configuration files in TOML, as Codex has them.

use ::toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use crate::{
    problem::{ManifestProblem, SourceLocation, SourcePosition},
    report::ProblemReport,
    source::ManifestSource,
    tree::{NodeContent, ObjectMember, TreeNode},
};

/// True if the file is TOML by its name.
pub(super) fn is_toml(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

/// Parses a file into a tree; reports invalid syntax. The parser limits the nesting.
pub(super) fn parse(source: &ManifestSource, report: &ProblemReport<'_>) -> Option<TreeNode> {
    let lines = LineIndex::of(&source.text);
    match DeTable::parse(&source.text) {
        Ok(table) => {
            let position = lines.position(table.span().start);
            Some(TreeNode { content: object(table.get_ref(), &lines), position })
        }
        Err(error) => {
            let position = lines.position(error.span().map_or(0, |span| span.start));
            let place = SourceLocation::at(source.name.clone(), position);
            // The message of the parser names the syntax, and the text of the file is in its snippet only.
            report.add(ManifestProblem::new(place, format!("invalid TOML: {}", error.message())));
            None
        }
    }
}

fn object(table: &DeTable<'_>, lines: &LineIndex<'_>) -> NodeContent {
    let mut members: Vec<_> = table.iter().collect();
    members.sort_by_key(|(name, _)| name.span().start);
    let member = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| ObjectMember {
        name: name.get_ref().to_string(),
        position: lines.position(name.span().start),
        value: node(value, lines),
    };
    NodeContent::Object(members.into_iter().map(member).collect())
}

fn node(value: &Spanned<DeValue<'_>>, lines: &LineIndex<'_>) -> TreeNode {
    let content = match value.get_ref() {
        DeValue::String(text) => NodeContent::Text(text.to_string()),
        DeValue::Boolean(flag) => NodeContent::Bool(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(NodeContent::Float(f64::NAN), NodeContent::Integer),
        DeValue::Float(number) => NodeContent::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Datetime(time) => NodeContent::Text(time.to_string()),
        DeValue::Array(items) => NodeContent::List(items.iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(table) => object(table, lines),
    };
    TreeNode { content, position: lines.position(value.span().start) }
}

/// The starts of the lines of a text.
struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    fn of(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Self { text, starts }
    }

    fn position(&self, offset: usize) -> SourcePosition {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let before = self.text.get(self.starts[line - 1]..offset).unwrap_or_default();
        SourcePosition { line, column: before.chars().count() + 1 }
    }
}
