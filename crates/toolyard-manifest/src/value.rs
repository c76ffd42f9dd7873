//! Arbitrary JSON in a manifest, such as a schema or a part of a body.

use serde_json::{Map, Value};

use crate::{
    cursor::ValueCursor,
    tree::{NodeContent, ObjectMember},
};

/// The treatment of strings in a value.
#[derive(Clone, Copy)]
pub(crate) enum StringMode {
    /// Literal: `${` is part of many regular expressions.
    Literal,
    /// With references expanded.
    Expanded,
}

impl StringMode {
    /// Marks a value with references as secret for display: it is sent to servers, as a pinned argument is.
    fn mark_configured(self, cursor: &ValueCursor<'_>) {
        if matches!(self, Self::Expanded) {
            cursor.mark_secret();
        }
    }
}

/// Reads an object.
pub(crate) fn object<'a>(cursor: ValueCursor<'a>, strings: StringMode) -> Option<Map<String, Value>> {
    strings.mark_configured(&cursor);
    let NodeContent::Object(members) = cursor.content() else {
        cursor.report_wrong_type("an object", None);
        return None;
    };
    let named = |member: &'a ObjectMember| Some((member.name.clone(), any(cursor.member(member), strings)?));
    // Read all members before the first invalid one fails the object, so that every problem is reported.
    let read: Vec<_> = members.iter().map(named).collect();
    read.into_iter().collect()
}

/// Reads any value.
pub(crate) fn any(cursor: ValueCursor<'_>, strings: StringMode) -> Option<Value> {
    strings.mark_configured(&cursor);
    Some(match cursor.content() {
        NodeContent::Null => Value::Null,
        NodeContent::Bool(flag) => Value::Bool(*flag),
        NodeContent::Integer(number) => Value::from(*number),
        NodeContent::Float(number) => return float(&cursor, *number),
        NodeContent::Text(text) => match strings {
            StringMode::Literal => Value::String(text.clone()),
            StringMode::Expanded => Value::String(cursor.text()?),
        },
        NodeContent::List(_) => {
            // Invalid items are missing in the list, but each has a problem in the report.
            Value::Array(cursor.list(|item| any(item, strings))?)
        }
        NodeContent::Object(_) => Value::Object(object(cursor, strings)?),
    })
}

fn float(cursor: &ValueCursor<'_>, number: f64) -> Option<Value> {
    let value = serde_json::Number::from_f64(number).map(Value::Number);
    if value.is_none() {
        cursor.report(cursor.problem("JSON has no such number").expected("a finite decimal number"));
    }
    value
}
