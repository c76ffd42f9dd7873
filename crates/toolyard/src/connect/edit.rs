//! Adds a server to JSON with comments and preserves every other byte.

mod scan;

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use self::scan::{EditError, JsonObject, ScannedMember, scan};

/// Returns the text with this server in this section, unchanged if the server is already there.
///
/// # Errors
/// Fails if the text cannot be edited unambiguously.
pub(super) fn with_server(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, EditError> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let whole = serde_json::json!({section: {name: entry}});
        return Ok(format!("{text}{}\n", pretty(&whole, "  ", "", "\n")));
    }
    let root = scan(text)?;
    let style = JsonStyle::of(text, &root);
    let Some(servers) = root.member(section)? else {
        let servers = serde_json::json!({name: entry});
        return Ok(style.insert(text, &root, section, &servers));
    };
    let servers = servers.object.as_ref().ok_or(EditError::NotAnObject)?;
    match servers.member(name)? {
        None => Ok(style.insert(text, servers, name, entry)),
        Some(old) if old.value(text).as_ref() == Some(entry) => Ok(text.to_owned()),
        Some(old) => Ok(style.replace(text, &old.span, entry)),
    }
}

/// Returns the text without this server: its lines, the comma and the comment behind it.
///
/// # Errors
/// Fails if the text cannot be edited unambiguously.
pub(super) fn without_server(text: &str, section: &str, name: &str) -> Result<String, EditError> {
    let root = scan(text)?;
    let Some(servers) = root.member(section)?.and_then(|section| section.object.as_ref()) else {
        return Ok(text.to_owned());
    };
    let Some(index) = servers.members.iter().position(|member| member.name == name) else {
        return Ok(text.to_owned());
    };
    let member = &servers.members[index];
    let mut end = member.comma.map_or(member.span.end, |comma| comma + 1);
    let line_rest = text[end..].split(['\r', '\n']).next().unwrap_or_default();
    if line_rest.trim_start().starts_with("//") {
        end += line_rest.len();
    }
    let before = text[..member.start].trim_end_matches([' ', '\t']);
    let before = before.strip_suffix('\n').map_or(before, |line| line.trim_end_matches('\r'));
    let start = before.len();
    // The member before the last one loses its comma.
    let comma = index.checked_sub(1).filter(|_| member.comma.is_none());
    let comma = comma.and_then(|previous| servers.members[previous].comma);
    Ok(match comma {
        Some(comma) => format!("{}{}{}", &text[..comma], &text[comma + 1..start], &text[end..]),
        None => format!("{}{}", &text[..start], &text[end..]),
    })
}

/// Returns the names and values of a section's servers, without those whose values contain comments.
pub(super) fn servers(text: &str, section: &str) -> Vec<(String, Value)> {
    let members = |root: JsonObject| {
        let servers = root.member(section).ok()??.object.as_ref()?;
        let server = |member: &ScannedMember| Some((member.name.clone(), member.value(text)?));
        Some(servers.members.iter().filter_map(server).collect())
    };
    scan(text).ok().and_then(members).unwrap_or_default()
}

/// True if the section has an entry with this name.
pub(super) fn has_server(text: &str, section: &str, name: &str) -> bool {
    let has = |root: &JsonObject| root.member(section).ok()??.object.as_ref()?.member(name).ok()?.map(drop);
    scan(text).is_ok_and(|root| has(&root).is_some())
}

/// Formatting of a text.
struct JsonStyle {
    /// Indentation of one level.
    unit: String,
    line_end: &'static str,
}

impl JsonStyle {
    fn of(text: &str, root: &JsonObject) -> Self {
        let first = root.members.first().map(|member| indentation(text, member.span.start));
        let unit = first.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned();
        Self { unit, line_end: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    /// Inserts a member after all others, on its own lines.
    fn insert(&self, text: &str, object: &JsonObject, name: &str, value: &Value) -> String {
        let outer = indentation(text, object.end);
        let last = object.members.last().map(|last| &last.span);
        let on_lines = |last: &&Range<usize>| text[last.start..object.end].contains('\n');
        let indent = match last.filter(on_lines) {
            Some(last) => indentation(text, last.start).to_owned(),
            None => format!("{outer}{}", self.unit),
        };
        let value = pretty(value, &self.unit, &indent, self.line_end);
        // Comments after the last member stay with that member.
        let end = text[..object.end].trim_end().len();
        let behind = match &text[end..object.end] {
            blanks if blanks.contains('\n') => blanks.to_owned(),
            _ => format!("{}{outer}", self.line_end),
        };
        let comma = last.map(|last| last.end).filter(|_| !object.ends_with_comma);
        let (before, between) = text[..end].split_at(comma.unwrap_or(end));
        let comma = if comma.is_some() { "," } else { "" };
        let member = format!("{}{indent}{}: {value}{behind}", self.line_end, Value::from(name));
        format!("{before}{comma}{between}{member}{}", &text[object.end..])
    }

    fn replace(&self, text: &str, old: &Range<usize>, value: &Value) -> String {
        let value = pretty(value, &self.unit, indentation(text, old.start), self.line_end);
        format!("{}{value}{}", &text[..old.start], &text[old.end..])
    }
}

/// Returns the leading blanks of the line that contains a byte offset.
fn indentation(text: &str, place: usize) -> &str {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    let rest = &text[line..place];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// Formats a value over several lines, without the indentation of the first.
fn pretty(value: &Value, unit: &str, indent: &str, line_end: &str) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(unit.as_bytes()));
    let serialized = value.serialize(&mut serializer);
    debug_assert!(serialized.is_ok(), "serializing a value to memory cannot fail");
    String::from_utf8_lossy(&text).replace('\n', &format!("{line_end}{indent}"))
}

#[cfg(test)]
mod tests;
