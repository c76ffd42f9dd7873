//! Types of fields in the process document.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats::{self, FormatError},
    object_schema::SchemaDefinitions,
};

/// The type of a field: how a value is read, and its JSON Schema.
pub(crate) trait FieldType {
    type Value;

    /// Reads a value, or reports why it is invalid.
    fn read(&self, cursor: ValueCursor<'_>) -> Option<Self::Value>;

    /// Returns the schema of values. What it refers to is added to the definitions.
    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value;
}

/// A type whose values can be written as in a document, so that the schema can contain a default.
pub(crate) trait WritableField: FieldType {
    /// Returns a value as it is in a document.
    fn write(&self, value: &Self::Value) -> Value;
}

/// `true` or `false`.
pub(crate) struct FlagField;

impl FieldType for FlagField {
    type Value = bool;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<bool> {
        cursor.flag()
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "boolean"})
    }
}

impl WritableField for FlagField {
    fn write(&self, value: &bool) -> Value {
        json!(value)
    }
}

/// A positive number.
pub(crate) struct CountField;

impl FieldType for CountField {
    type Value = usize;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<usize> {
        cursor.count()
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        definitions.value("count", json!({"type": "integer", "minimum": 1, "maximum": 1_000_000_000}))
    }
}

impl WritableField for CountField {
    fn write(&self, value: &usize) -> Value {
        json!(value)
    }
}

/// A positive number within bounds.
pub(crate) struct BoundedCountField {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl FieldType for BoundedCountField {
    type Value = usize;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<usize> {
        cursor.number(self.min, self.max).and_then(|count| usize::try_from(count).ok())
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "integer", "minimum": self.min, "maximum": self.max})
    }
}

impl WritableField for BoundedCountField {
    fn write(&self, value: &usize) -> Value {
        json!(value)
    }
}

/// A number within bounds.
pub(crate) struct NumberField {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl FieldType for NumberField {
    type Value = u32;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<u32> {
        cursor.number(self.min, self.max)
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "integer", "minimum": self.min, "maximum": self.max})
    }
}

impl WritableField for NumberField {
    fn write(&self, value: &u32) -> Value {
        json!(value)
    }
}

/// A fraction from 0 to 1.
pub(crate) struct FractionField;

impl FieldType for FractionField {
    type Value = f64;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<f64> {
        cursor.share()
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "number", "minimum": 0, "maximum": 1})
    }
}

/// A number of bytes, with a minimum.
pub(crate) struct SizeField(pub(crate) usize);

impl FieldType for SizeField {
    type Value = usize;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<usize> {
        cursor.size(self.0)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        let with_unit = json!({
            "type": "string", "pattern": r"\$\{|^[0-9]+(B|KiB|MiB|GiB)?$", "examples": ["64KiB", "4MiB", "1GiB"],
        });
        let with_unit = definitions.value("sizeWithUnit", with_unit);
        let size = json!({"anyOf": [{"type": "integer", "minimum": self.0}, with_unit]});
        if self.0 == 1 { definitions.value("size", size) } else { size }
    }
}

impl WritableField for SizeField {
    fn write(&self, value: &usize) -> Value {
        Value::String(formats::size_text(*value))
    }
}

/// A share of processors, in thousandths of one.
pub(crate) struct CpuField;

impl FieldType for CpuField {
    type Value = u32;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<u32> {
        cursor.cpu()
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        let pattern = r"\$\{|^([0-9]+m|[0-9]+(\.[0-9]{1,3})?)$";
        let forms = [
            json!({"type": "integer", "minimum": 1, "maximum": 1000}),
            json!({"type": "string", "pattern": pattern}),
        ];
        definitions.value("cpu", json!({"anyOf": forms, "examples": ["500m", "2"]}))
    }
}

impl WritableField for CpuField {
    fn write(&self, value: &u32) -> Value {
        Value::String(format!("{value}m"))
    }
}

/// A duration, which may be zero.
pub(crate) struct DurationField;

impl FieldType for DurationField {
    type Value = Duration;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<Duration> {
        cursor.duration()
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        let number = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)";
        let pattern = format!("\\$\\{{|^(0|({number}(h|m|s|ms|us|\u{b5}s|\u{3bc}s|ns))+)$");
        let examples = ["500ms", "30s", "1m30s", "2h"];
        definitions.value("duration", json!({"type": "string", "pattern": pattern, "examples": examples}))
    }
}

impl WritableField for DurationField {
    fn write(&self, value: &Duration) -> Value {
        Value::String(formats::duration_text(*value))
    }
}

/// A duration that is never zero.
pub(crate) struct TimeoutField;

impl FieldType for TimeoutField {
    type Value = Duration;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<Duration> {
        cursor.timeout()
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        DurationField.schema(definitions)
    }
}

impl WritableField for TimeoutField {
    fn write(&self, value: &Duration) -> Value {
        DurationField.write(value)
    }
}

/// One of a fixed set of keywords.
pub(crate) struct KeywordField<T: 'static>(pub(crate) &'static KeywordChoice<T>);

impl<T: Copy> FieldType for KeywordField<T> {
    type Value = T;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<T> {
        cursor.choice(self.0)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        let words: Vec<_> = self.0.words.iter().map(|(word, _)| *word).collect();
        json!({"anyOf": [{"enum": words}, definitions.expandable()]})
    }
}

impl<T: Copy + PartialEq> WritableField for KeywordField<T> {
    fn write(&self, value: &T) -> Value {
        json!(self.0.words.iter().find(|(_, meaning)| meaning == value).map(|(word, _)| *word))
    }
}

/// A file, relative to the folder of the document.
pub(crate) struct FileField;

impl FieldType for FileField {
    type Value = PathBuf;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<PathBuf> {
        let path = cursor.clone().parse(formats::file)?;
        Some(cursor.resolve_path(&path))
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "string", "minLength": 1})
    }
}

/// Any string.
pub(crate) struct AnyTextField;

impl FieldType for AnyTextField {
    type Value = String;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<String> {
        cursor.text()
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "string"})
    }
}

/// A non-empty string in a format.
pub(crate) struct TextField<T: 'static> {
    parse: fn(&str) -> Result<T, FormatError>,
    is_secret: bool,
    pattern: Option<&'static str>,
    examples: &'static [&'static str],
}

impl<T> TextField<T> {
    pub(crate) const fn new(parse: fn(&str) -> Result<T, FormatError>) -> Self {
        Self { parse, is_secret: false, pattern: None, examples: &[] }
    }

    /// Problems do not quote the value, which may be secret.
    pub(crate) const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    /// Adds a regular expression to the schema, for values without references.
    pub(crate) const fn pattern(self, pattern: &'static str) -> Self {
        Self { pattern: Some(pattern), ..self }
    }

    /// Adds examples to the schema.
    pub(crate) const fn examples(self, examples: &'static [&'static str]) -> Self {
        Self { examples, ..self }
    }
}

impl<T> FieldType for TextField<T> {
    type Value = T;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<T> {
        if self.is_secret { cursor.parse_secret(self.parse) } else { cursor.parse(self.parse) }
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        let mut schema = json!({"type": "string"});
        match self.pattern {
            Some(pattern) => schema["pattern"] = json!(format!(r"\$\{{|{pattern}")),
            None => schema["minLength"] = json!(1),
        }
        if !self.examples.is_empty() {
            schema["examples"] = json!(self.examples);
        }
        schema
    }
}

impl<T: AsRef<OsStr>> WritableField for TextField<T> {
    fn write(&self, value: &T) -> Value {
        Value::String(value.as_ref().to_string_lossy().into_owned())
    }
}

/// A list, which may be empty.
pub(crate) struct ListField<F>(pub(crate) F);

impl<F: FieldType> FieldType for ListField<F> {
    type Value = Vec<F::Value>;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<Self::Value> {
        cursor.list(|item| self.0.read(item))
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        json!({"type": "array", "items": self.0.schema(definitions)})
    }
}

impl<F: WritableField> WritableField for ListField<F> {
    fn write(&self, value: &Self::Value) -> Value {
        value.iter().map(|item| self.0.write(item)).collect()
    }
}

/// A list with at least one item.
pub(crate) struct NonEmptyListField<F>(pub(crate) F);

impl<F: FieldType> FieldType for NonEmptyListField<F> {
    type Value = Vec<F::Value>;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<Self::Value> {
        cursor.non_empty_list(|item| self.0.read(item))
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        json!({"type": "array", "minItems": 1, "items": self.0.schema(definitions)})
    }
}

/// A value with a reader of its own, next to which its schema is.
pub(crate) struct CustomField<T> {
    pub(crate) read: fn(ValueCursor<'_>) -> Option<T>,
    pub(crate) schema: fn(&mut SchemaDefinitions) -> Value,
}

impl<T> FieldType for CustomField<T> {
    type Value = T;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<T> {
        (self.read)(cursor)
    }

    fn schema(&self, definitions: &mut SchemaDefinitions) -> Value {
        (self.schema)(definitions)
    }
}
