//! Layout of types.

use serde_json::Value;

/// The type of which nothing is known.
pub const UNKNOWN: &str = "unknown";

/// Maximum length of an object in one line, in characters.
const LINE_CHARS: usize = 90;

/// Maximum length of a text as a type, in characters.
const MAX_LITERAL_CHARS: usize = 100;

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member {
    /// Name of the member.
    pub name: String,
    /// True if it may be missing.
    pub is_optional: bool,
    /// Its type.
    pub type_text: String,
    /// Text in front of it.
    pub comment: Option<String>,
}

/// Returns an object with these members: in one line if it is short and has no comments.
#[must_use]
pub fn object(members: &[Member]) -> String {
    let fields: Vec<_> = members.iter().map(field).collect();
    let line = format!("{{ {} }}", fields.join("; "));
    let is_short = line.chars().count() <= LINE_CHARS && !line.contains('\n');
    if is_short && members.iter().all(|member| member.comment.is_none()) {
        return line;
    }
    let mut text = String::from("{\n");
    for (member, field) in members.iter().zip(fields) {
        if let Some(comment) = &member.comment {
            text.push_str(&format!("  /** {comment} */\n"));
        }
        text.push_str("  ");
        text.push_str(&field.replace('\n', "\n  "));
        text.push_str(";\n");
    }
    text.push('}');
    text
}

fn field(member: &Member) -> String {
    let mark = if member.is_optional { "?" } else { "" };
    format!("{}{mark}: {}", property_name(&member.name), member.type_text)
}

/// Returns the alternatives without repetitions.
#[must_use]
pub fn union(alternatives: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for alternative in alternatives {
        if !distinct.contains(&alternative) {
            distinct.push(alternative);
        }
    }
    if distinct.is_empty() || distinct.iter().any(|one| one == UNKNOWN) {
        return UNKNOWN.to_owned();
    }
    distinct.join(" | ")
}

/// Returns an array of items of a type.
#[must_use]
pub fn list(item: &str) -> String {
    if has_alternatives(item) { format!("({item})[]") } else { format!("{item}[]") }
}

/// Returns true if a type consists of alternatives, or of types that hold together.
fn has_alternatives(text: &str) -> bool {
    let mut depth = 0_usize;
    text.chars().any(|char| {
        match char {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(char, '|' | '&')
    })
}

/// Returns an object whose members have any names, and values of this type.
#[must_use]
pub fn record(value: &str) -> String {
    format!("{{ [key: string]: {value} }}")
}

/// Returns the type of one value.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > MAX_LITERAL_CHARS => "string".to_owned(),
        Value::Array(_) => list(UNKNOWN),
        Value::Object(_) => record(UNKNOWN),
        other => other.to_string(),
    }
}

/// Returns the name of a member, in quotes unless it is an identifier.
#[must_use]
pub fn property_name(name: &str) -> String {
    let is_identifier = name
        .starts_with(|char: char| char.is_ascii_alphabetic() || char == '_' || char == '$')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$');
    if is_identifier { name.to_owned() } else { Value::from(name).to_string() }
}
