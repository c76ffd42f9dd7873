//! Any JSON that an author writes: a schema, a part of a body.

use serde_json::{Map, Value};

use crate::{
    cursor::Cursor,
    tree::{Content, Member},
};

/// How the strings in a value are read.
#[derive(Clone, Copy)]
pub(crate) enum Strings {
    /// As they are written: `${` is a part of many a regular expression.
    Literal,
    /// With references to the environment replaced.
    Expanded,
}

/// An object.
pub(crate) fn object<'a>(cursor: Cursor<'a>, strings: Strings) -> Option<Map<String, Value>> {
    let Content::Object(members) = cursor.content() else {
        cursor.wrong_kind("an object", None);
        return None;
    };
    let named = |member: &'a Member| Some((member.name.clone(), any(cursor.member(member), strings)?));
    // All of them are read before one that is wrong makes it all wrong, so that every problem is reported.
    let read: Vec<_> = members.iter().map(named).collect();
    read.into_iter().collect()
}

/// Any value.
pub(crate) fn any(cursor: Cursor<'_>, strings: Strings) -> Option<Value> {
    Some(match cursor.content() {
        Content::Null => Value::Null,
        Content::Bool(flag) => Value::Bool(*flag),
        Content::Integer(number) => Value::from(*number),
        Content::Float(number) => return float(&cursor, *number),
        Content::Text(text) => match strings {
            Strings::Literal => Value::String(text.clone()),
            Strings::Expanded => Value::String(cursor.text()?),
        },
        Content::List(_) => {
            // What is wrong in it is reported; the problem makes up for what is missing in the list.
            Value::Array(cursor.list(|item| any(item, strings))?)
        }
        Content::Object(_) => Value::Object(object(cursor, strings)?),
    })
}

fn float(cursor: &Cursor<'_>, number: f64) -> Option<Value> {
    let value = serde_json::Number::from_f64(number).map(Value::Number);
    if value.is_none() {
        cursor.report(cursor.problem("JSON has no such number").expected("a finite decimal number"));
    }
    value
}
