//! One server in a text of JSON with comments, and everything else as it was, byte by byte.

mod scan;

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use self::scan::{Object, Unclear, scan};

/// The text with this server in this section. Where it says the same already, the very text.
///
/// # Errors
/// When the text is not clear enough to be changed by a program.
pub(super) fn with_server(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, Unclear> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let whole = serde_json::json!({section: {name: entry}});
        return Ok(format!("{text}{}\n", pretty(&whole, "  ", "", "\n")));
    }
    let root = scan(text)?;
    let style = Style::of(text, &root);
    let Some(servers) = root.member(section)? else {
        let servers = serde_json::json!({name: entry});
        return Ok(style.insert(text, &root, section, &servers));
    };
    let servers = servers.object.as_ref().ok_or(Unclear::NoObject)?;
    match servers.member(name)? {
        None => Ok(style.insert(text, servers, name, entry)),
        Some(old) if old.value(text).as_ref() == Some(entry) => Ok(text.to_owned()),
        Some(old) => Ok(style.replace(text, &old.place, entry)),
    }
}

/// Whether a text has an entry of this name already.
pub(super) fn has_server(text: &str, section: &str, name: &str) -> bool {
    let has = |root: &Object| root.member(section).ok()??.object.as_ref()?.member(name).ok()?.map(drop);
    scan(text).is_ok_and(|root| has(&root).is_some())
}

/// How a text is written.
struct Style {
    /// What each level is indented by.
    unit: String,
    line_end: &'static str,
}

impl Style {
    fn of(text: &str, root: &Object) -> Self {
        let first = root.members.first().map(|member| indentation(text, member.place.start));
        let unit = first.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned();
        Self { unit, line_end: if text.contains("\r\n") { "\r\n" } else { "\n" } }
    }

    /// A member behind all others, on lines of its own.
    fn insert(&self, text: &str, object: &Object, name: &str, value: &Value) -> String {
        let outer = indentation(text, object.end);
        let last = object.members.last().map(|last| &last.place);
        let on_lines = |last: &&Range<usize>| text[last.start..object.end].contains('\n');
        let indent = match last.filter(on_lines) {
            Some(last) => indentation(text, last.start).to_owned(),
            None => format!("{outer}{}", self.unit),
        };
        let value = pretty(value, &self.unit, &indent, self.line_end);
        // Comments behind the last member stay with it.
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

/// The blanks with which the line of a place begins.
fn indentation(text: &str, place: usize) -> &str {
    let line = text[..place].rfind('\n').map_or(0, |end| end + 1);
    let rest = &text[line..place];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// A value on lines of its own, the first of which has begun.
fn pretty(value: &Value, unit: &str, indent: &str, line_end: &str) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(unit.as_bytes()));
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "a value is written to memory");
    String::from_utf8_lossy(&text).replace('\n', &format!("{line_end}{indent}"))
}

#[cfg(test)]
mod tests;
