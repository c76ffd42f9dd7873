//! The texts of types in schemas.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;
use toolyard_core::text::truncate_at_sentence;

use super::Direction;
use crate::descriptor::types::{
    Cardinality, EnumType, FieldKind, MessageField, MessageType, Oneof, TypeId, TypePool, WellKnown,
};

/// Maximum length of the description of a field or type, in characters.
const MAX_FIELD_CHARS: usize = 512;

/// Maximum length of the descriptions of the values of an enum together, in bytes.
const MAX_VALUES_BYTES: usize = 1024;

/// Maximum length of the description of one value of an enum, in characters.
const MAX_VALUE_CHARS: usize = 120;

/// Maximum number of fields of a oneof whose pairs are excluded one by one.
const MAX_PAIRED: usize = 4;

/// Size up to which an enum stands at each of its references.
pub(super) const SMALL_ENUM_BYTES: usize = 96;

/// The size of a reference without the name of its type.
const REFERENCE_BYTES: usize = r##"{"$ref":"#/$defs/",}"##.len();

/// The number of descriptions in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Full,
    Terse,
}

/// The keywords of a type, without the braces around them.
#[derive(Debug, Default)]
pub(super) struct Fragment {
    pub(super) pieces: Vec<Piece>,
    /// Description of the type, which that of a field replaces.
    pub(super) description: String,
    /// Descriptions of the values of an enum, which follow either.
    pub(super) values: String,
    /// The keyword that makes members exclude each other. The root of a schema has none: interfaces of models refuse it
    /// there, and arguments are checked when they are encoded.
    pub(super) exclusion: String,
    /// Upper limit of its size, with references in place of other types.
    pub(super) bytes: usize,
}

/// A part of a text.
#[derive(Debug)]
pub(super) enum Piece {
    Text(String),
    /// The schema of another type, with further keywords.
    Type {
        id: TypeId,
        description: String,
        keywords: String,
    },
}

/// Writes the text of each type once.
pub(super) struct FragmentWriter<'p> {
    pool: &'p TypePool,
    direction: Direction,
    detail: Detail,
    max_bytes: usize,
    fragments: HashMap<TypeId, Option<Rc<Fragment>>>,
}

impl<'p> FragmentWriter<'p> {
    pub(super) fn new(pool: &'p TypePool, direction: Direction, detail: Detail, max_bytes: usize) -> Self {
        Self { pool, direction, detail, max_bytes, fragments: HashMap::new() }
    }

    /// Returns the text of a type; `None` if it is too large.
    pub(super) fn fragment(&mut self, id: TypeId) -> Option<Rc<Fragment>> {
        if let Some(fragment) = self.fragments.get(&id) {
            return fragment.clone();
        }
        let fragment = match id {
            TypeId::Message(message) => self.message(self.pool.message(message)),
            TypeId::Enum(enumeration) => Some(self.enumeration(self.pool.enumeration(enumeration))),
        };
        let fragment = fragment.filter(|fragment| fragment.bytes <= self.max_bytes).map(Rc::new);
        self.fragments.insert(id, fragment.clone());
        fragment
    }

    fn comment(&self, comment: &str, max_chars: usize) -> String {
        match self.detail {
            Detail::Full => truncate_at_sentence(comment, max_chars).into_owned(),
            Detail::Terse => String::new(),
        }
    }

    fn enumeration(&self, enumeration: &EnumType) -> Fragment {
        let names = enumeration.values.iter().map(|value| &*value.name);
        let names = serde_json::to_string(&names.collect::<Vec<_>>()).unwrap_or_default();
        let text = match self.direction {
            // An enum without values is not valid as a list.
            _ if enumeration.values.is_empty() => r#""type":["string","integer"]"#.to_owned(),
            Direction::Input => format!(r#""type":"string","enum":{names}"#),
            Direction::Output => {
                format!(r#""anyOf":[{{"type":"string","enum":{names}}},{{"type":"integer"}}]"#)
            }
        };
        let description = self.comment(&enumeration.comment, MAX_FIELD_CHARS);
        let values = match (self.detail, self.direction) {
            (Detail::Full, Direction::Input) => described_values(enumeration),
            _ => String::new(),
        };
        let bytes = text.len() + quoted(&description).len() + quoted(&values).len() + 32;
        Fragment { pieces: vec![Piece::Text(text)], description, values, bytes, ..Fragment::default() }
    }

    /// Returns the text of a message; `None` once it is too large.
    fn message(&self, message: &MessageType) -> Option<Fragment> {
        let mut fragment =
            Fragment { description: self.comment(&message.comment, MAX_FIELD_CHARS), ..Fragment::default() };
        fragment.bytes = quoted(&fragment.description).len() + 32;
        fragment.push(r#""type":"object","properties":{"#);
        let mut is_first = true;
        for field in message.fields.iter().filter(|field| self.is_visible(field)) {
            let comma = if std::mem::take(&mut is_first) { "" } else { "," };
            fragment.push(&format!("{comma}{}:", quoted(&field.json_name)));
            self.field(message, field, &mut fragment);
            if fragment.bytes > self.max_bytes {
                return None;
            }
        }
        fragment.push("}");
        if self.direction == Direction::Input {
            self.constraints(message, &mut fragment);
        }
        Some(fragment)
    }

    const fn is_visible(&self, field: &MessageField) -> bool {
        !(matches!(self.direction, Direction::Input) && field.is_output_only)
    }

    /// Writes which fields are required, and which exclude each other.
    fn constraints(&self, message: &MessageType, fragment: &mut Fragment) {
        let required = message.fields.iter().filter(|field| field.is_required || field.must_be_sent);
        let required: Vec<&str> =
            required.filter(|field| self.is_visible(field)).map(|field| &*field.json_name).collect();
        if !required.is_empty() {
            let names = serde_json::to_string(&required).unwrap_or_default();
            fragment.push(&format!(r#","required":{names}"#));
        }
        fragment.push(r#","additionalProperties":false"#);
        let mut excluded = Vec::new();
        for oneof in &message.oneofs {
            let fields = oneof.fields.iter().map(|field| &message.fields[*field as usize]);
            let names: Vec<String> =
                fields.filter(|field| self.is_visible(field)).map(|field| quoted(&field.json_name)).collect();
            exclude(&names, &mut excluded);
        }
        fragment.exclusion = match excluded.as_slice() {
            [] => String::new(),
            [one] => format!(r#","not":{one}"#),
            several => format!(r#","not":{{"anyOf":[{}]}}"#, several.join(",")),
        };
        fragment.bytes += fragment.exclusion.len();
    }

    fn field(&self, message: &MessageType, field: &MessageField, fragment: &mut Fragment) {
        let mut description = self.comment(&field.comment, MAX_FIELD_CHARS);
        // At the root of a schema nothing else says it.
        if let Some(note) = self.oneof_note(message, field) {
            if !description.is_empty() {
                description.push(' ');
            }
            description.push_str(&note);
        }
        let mut keywords = String::new();
        if self.direction == Direction::Input
            && let Some(default) = self.default(field)
        {
            keywords.push_str(&format!(r#","default":{default}"#));
        }
        if field.is_deprecated {
            keywords.push_str(r#","deprecated":true"#);
        }
        match field.cardinality {
            Cardinality::Single => self.value(field.kind, description, keywords, fragment),
            Cardinality::Repeated => {
                let description = described(&description);
                fragment.push(&format!(r#"{{"type":"array"{description}{keywords},"items":"#));
                self.value(field.kind, String::new(), String::new(), fragment);
                fragment.push("}");
            }
            Cardinality::Map(key) => {
                let (description, names) = (described(&description), key_names(key));
                fragment.push(&format!(
                    r#"{{"type":"object"{description}{keywords}{names},"additionalProperties":"#
                ));
                self.value(field.kind, String::new(), String::new(), fragment);
                fragment.push("}");
            }
        }
    }

    /// Returns the note about a oneof at its first field.
    fn oneof_note(&self, message: &MessageType, field: &MessageField) -> Option<String> {
        if self.direction == Direction::Output {
            return None;
        }
        let Oneof { fields, .. } = message.oneofs.get(field.oneof? as usize)?;
        let mut visible = fields.iter().map(|other| &message.fields[*other as usize]);
        let first = visible.find(|other| self.is_visible(other))?;
        let others: Vec<_> = visible.filter(|other| self.is_visible(other)).collect();
        if !std::ptr::eq(first, field) || others.is_empty() {
            return None;
        }
        let names: Vec<_> = [first]
            .into_iter()
            .chain(others)
            .take(16)
            .map(|field| format!("`{}`", field.json_name))
            .collect();
        let more = if fields.len() > names.len() { ", \u{2026}" } else { "" };
        Some(format!("At most one of {}{more}.", names.join(", ")))
    }

    fn value(&self, kind: FieldKind, description: String, keywords: String, fragment: &mut Fragment) {
        let Some(id) = kind.type_id() else {
            let text = scalar(kind, self.direction);
            return fragment.push(&format!("{{{text}{}{keywords}}}", described(&description)));
        };
        match id {
            TypeId::Message(message) if self.pool.message(message).known.is_some() => {
                let known = self.pool.message(message).known.unwrap_or(WellKnown::Empty);
                let hint = if description.is_empty() && self.detail == Detail::Full {
                    known_hint(known).to_owned()
                } else {
                    description
                };
                let members = format!("{}{keywords}", described(&hint));
                fragment.push(&self::known(known, self.direction, &members));
            }
            TypeId::Enum(enumeration) if self.pool.enumeration(enumeration).is_null => {
                fragment.push(&format!(r#"{{"type":"null"{}{keywords}}}"#, described(&description)));
            }
            id => {
                let reference = match id {
                    TypeId::Message(message) => self.pool.message(message).full_name.len(),
                    TypeId::Enum(enumeration) => {
                        self.pool.enumeration(enumeration).full_name.len() + SMALL_ENUM_BYTES
                    }
                };
                let extra = quoted(&description).len() + keywords.len() + 32;
                fragment.bytes += REFERENCE_BYTES + reference + extra;
                fragment.pieces.push(Piece::Type { id, description, keywords });
            }
        }
    }

    /// Returns the default value of a field as JSON.
    fn default(&self, field: &MessageField) -> Option<Value> {
        let text = field.default.as_deref()?;
        match field.kind {
            FieldKind::Bool => text.parse::<bool>().ok().map(Value::from),
            FieldKind::Double | FieldKind::Float => match text {
                "inf" => Some("Infinity".into()),
                "-inf" => Some("-Infinity".into()),
                "nan" => Some("NaN".into()),
                text => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
            },
            FieldKind::Text => Some(truncate_at_sentence(text, MAX_FIELD_CHARS).into())
                .filter(|_| text.len() <= MAX_FIELD_CHARS),
            FieldKind::Enum(enumeration) => {
                self.pool.enumeration(enumeration).number(text).map(|_| text.into())
            }
            FieldKind::Bytes | FieldKind::Message(_) | FieldKind::Group(_) => None,
            _ => text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<u64>().map(Value::from)).ok(),
        }
    }
}

impl Fragment {
    fn push(&mut self, text: &str) {
        self.bytes += text.len();
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

/// Returns a JSON string.
pub(in crate::descriptor) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns the keyword of a description with a comma in front; nothing without one.
pub(super) fn described(description: &str) -> String {
    match description {
        "" => String::new(),
        text => format!(r#","description":{}"#, quoted(text)),
    }
}

/// Returns the descriptions of the values, each on a line.
fn described_values(enumeration: &EnumType) -> String {
    let mut out = String::new();
    for value in &enumeration.values {
        let deprecated = if value.is_deprecated { " (deprecated)" } else { "" };
        if value.comment.is_empty() && deprecated.is_empty() {
            continue;
        }
        let comment = truncate_at_sentence(&value.comment, MAX_VALUE_CHARS).replace('\n', " ");
        let colon = if comment.is_empty() { "" } else { ": " };
        let line = format!("\n- `{}`{deprecated}{colon}{comment}", value.name);
        if out.len() + line.len() > MAX_VALUES_BYTES {
            out.push_str("\n\u{2026}");
            return out;
        }
        out.push_str(&line);
    }
    out
}

/// Adds schemas of objects with several of these members.
fn exclude(names: &[String], excluded: &mut Vec<String>) {
    if names.len() > MAX_PAIRED {
        // Each pair would be too many: not (exactly one of them, or none).
        let each: Vec<_> = names.iter().map(|name| format!(r#"{{"required":[{name}]}}"#)).collect();
        let each = each.join(",");
        return excluded.push(format!(r#"{{"not":{{"oneOf":[{each},{{"not":{{"anyOf":[{each}]}}}}]}}}}"#));
    }
    for (index, one) in names.iter().enumerate() {
        for other in &names[index + 1..] {
            excluded.push(format!(r#"{{"required":[{one},{other}]}}"#));
        }
    }
}

/// Returns the keyword for the names of a map.
const fn key_names(key: FieldKind) -> &'static str {
    match key {
        FieldKind::Text => "",
        FieldKind::Bool => r#","propertyNames":{"enum":["true","false"]}"#,
        FieldKind::Uint32 | FieldKind::Uint64 | FieldKind::Fixed32 | FieldKind::Fixed64 => {
            r#","propertyNames":{"pattern":"^[0-9]+$"}"#
        }
        _ => r#","propertyNames":{"pattern":"^-?[0-9]+$"}"#,
    }
}

const fn scalar(kind: FieldKind, direction: Direction) -> &'static str {
    let is_input = matches!(direction, Direction::Input);
    match kind {
        FieldKind::Double => r#""type":["number","string"],"format":"double""#,
        FieldKind::Float => r#""type":["number","string"],"format":"float""#,
        FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => r#""type":"integer","format":"int32""#,
        FieldKind::Uint32 | FieldKind::Fixed32 => r#""type":"integer","format":"uint32","minimum":0"#,
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 if is_input => {
            r#""type":["integer","string"],"format":"int64""#
        }
        FieldKind::Uint64 | FieldKind::Fixed64 if is_input => {
            r#""type":["integer","string"],"format":"uint64","minimum":0"#
        }
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => r#""type":"string","format":"int64""#,
        FieldKind::Uint64 | FieldKind::Fixed64 => r#""type":"string","format":"uint64""#,
        FieldKind::Bool => r#""type":"boolean""#,
        FieldKind::Bytes => r#""type":"string","contentEncoding":"base64""#,
        _ => r#""type":"string""#,
    }
}

/// Returns the schema of a well-known type, with further keywords.
pub(super) fn known(known: WellKnown, direction: Direction, keywords: &str) -> String {
    let is_input = direction == Direction::Input;
    let text = match known {
        WellKnown::Any if is_input => {
            r#""type":"object","properties":{"@type":{"type":"string","description":"Type of the value, such as `type.googleapis.com/google.protobuf.Duration`"}},"required":["@type"]"#
        }
        WellKnown::Any | WellKnown::Struct => r#""type":"object""#,
        WellKnown::Timestamp => r#""type":"string","format":"date-time""#,
        WellKnown::Duration => r#""type":"string","pattern":"^-?[0-9]+(\\.[0-9]{1,9})?s$""#,
        WellKnown::FieldMask => r#""type":"string""#,
        WellKnown::Value => return format!("{{{}}}", keywords.trim_start_matches(',')),
        WellKnown::ListValue => r#""type":"array","items":{}"#,
        WellKnown::Wrapper(kind) => scalar(kind, direction),
        WellKnown::Empty if is_input => r#""type":"object","properties":{},"additionalProperties":false"#,
        WellKnown::Empty => r#""type":"object","properties":{}"#,
    };
    format!("{{{text}{keywords}}}")
}

/// Returns a description for a well-known type whose field has none.
const fn known_hint(known: WellKnown) -> &'static str {
    match known {
        WellKnown::Duration => "Duration in seconds, such as `1.5s`",
        WellKnown::FieldMask => "Paths of fields, separated by commas, such as `displayName,address.city`",
        _ => "",
    }
}
