//! Parses JSON into trees that borrow their strings.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{SpecNode, SpecSyntaxError};

pub(super) fn parse(text: &str) -> Result<SpecNode<'_>, SpecSyntaxError> {
    serde_json::from_str(text).map_err(|error| SpecSyntaxError {
        problem: message_without_position(&error),
        line: error.line(),
        column: error.column(),
    })
}

/// The message of the parser without the position, which is a separate field.
fn message_without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

impl<'t> Deserialize<'t> for SpecNode<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'t> Visitor<'t> for NodeVisitor {
    type Value = SpecNode<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<SpecNode<'t>, E> {
        Ok(Number::from_f64(number).map_or(SpecNode::Null, SpecNode::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<SpecNode<'t>, E> {
        Ok(SpecNode::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<SpecNode<'t>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        list.shrink_to_fit();
        Ok(SpecNode::List(list))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut entries: A) -> Result<SpecNode<'t>, A::Error> {
        let mut members = Vec::new();
        while let Some((BorrowedName(name), value)) = entries.next_entry()? {
            members.push((name, value));
        }
        members.shrink_to_fit();
        Ok(SpecNode::Object(members))
    }
}

/// The name of a member. `Cow` itself always deserializes to an owned string.
struct BorrowedName<'t>(Cow<'t, str>);

impl<'t> Deserialize<'t> for BorrowedName<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'t> Visitor<'t> for NameVisitor {
            type Value = BorrowedName<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'t str) -> Result<BorrowedName<'t>, E> {
                Ok(BorrowedName(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<BorrowedName<'t>, E> {
                Ok(BorrowedName(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}
