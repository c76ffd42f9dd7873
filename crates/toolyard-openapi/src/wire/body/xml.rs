//! XML, as shaped by a document (OpenAPI 3.1.1, section 4.8.26).
//!
//! Members are written in the order of the document, because XML schemas define an order; unknown members follow.
//! `null` is omitted.

use bytes::Bytes;
use toolyard_core::{Json, ToolError};

use super::BodyValue;
use crate::operation::XmlShape;
use crate::wire::out::BoundedText;
use crate::wire::{OpenedValue, invalid_argument, plain, truncate};

/// Encodes a document. A string that starts like XML is the document itself.
pub(super) fn write(body: &BodyValue, shape: &XmlShape) -> Result<Bytes, ToolError> {
    if let Some(text) = body.value.to_str().filter(|text| text.trim_start().starts_with('<')) {
        return Ok(Bytes::from(text.into_owned()));
    }
    let mut writer = XmlWriter { out: BoundedText::body(body.value.as_bytes().len()) };
    writer.out.push("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    let name = shape.name.as_deref().unwrap_or("root");
    let unknown = XmlShape::default();
    let place = XmlPlace { at: &body.argument, name, shape, unknown: &unknown };
    match OpenedValue::of(&body.argument, &body.value)? {
        // A document has a single root.
        OpenedValue::Items(items) => writer.wrapped(&place, &items)?,
        value => writer.element(&place, &value)?,
    }
    Ok(writer.out.finish()?.into())
}

/// The position of a value in the output.
#[derive(Clone, Copy)]
struct XmlPlace<'a> {
    /// Location of the value among the arguments.
    at: &'a str,
    /// Default name, if the shape has none.
    name: &'a str,
    shape: &'a XmlShape,
    /// The shape of undescribed values.
    unknown: &'a XmlShape,
}

impl XmlPlace<'_> {
    /// The name with its prefix.
    fn qualified(&self) -> Result<String, ToolError> {
        let name = self.shape.name.as_deref().unwrap_or(self.name);
        let qualified = match self.shape.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            Some(prefix) => format!("{prefix}:{name}"),
            None => name.to_owned(),
        };
        if is_name(&qualified) {
            Ok(qualified)
        } else {
            let excerpt = truncate(&qualified, 64);
            Err(invalid_argument(self.at, format_args!("{excerpt:?} is not a valid XML name")))
        }
    }

    /// The declaration of the namespace.
    fn namespace(&self) -> Result<String, ToolError> {
        let Some(namespace) = &self.shape.namespace else { return Ok(String::new()) };
        let prefix = self.shape.prefix.as_deref().filter(|prefix| !prefix.is_empty());
        let name = prefix.map_or_else(|| "xmlns".to_owned(), |prefix| format!("xmlns:{prefix}"));
        Ok(format!(" {name}=\"{}\"", escaped(self.at, namespace)?))
    }
}

struct XmlWriter {
    out: BoundedText,
}

impl XmlWriter {
    /// Writes a member of an object: an element, or several for an array.
    fn member(&mut self, place: &XmlPlace<'_>, value: &Json) -> Result<(), ToolError> {
        self.out.check()?;
        match OpenedValue::of(place.at, value)? {
            OpenedValue::Undefined => Ok(()),
            OpenedValue::Items(items) if place.shape.wrapped => self.wrapped(place, &items),
            OpenedValue::Items(items) => self.items(place, &items),
            value => self.element(place, &value),
        }
    }

    fn wrapped(&mut self, place: &XmlPlace<'_>, items: &[Json]) -> Result<(), ToolError> {
        let name = place.qualified()?;
        self.open(&name, &place.namespace()?);
        // Items without a name have that of their wrapper.
        let name_of_items = place.shape.name.as_deref().unwrap_or(place.name);
        self.items(&XmlPlace { name: name_of_items, ..*place }, items)?;
        self.close(&name);
        Ok(())
    }

    /// Writes the items of an array. The name of the array only applies to its wrapper.
    fn items(&mut self, place: &XmlPlace<'_>, items: &[Json]) -> Result<(), ToolError> {
        let shape = place.shape.items.as_deref().unwrap_or(place.unknown);
        items.iter().try_for_each(|item| self.member(&XmlPlace { shape, ..*place }, item))
    }

    fn element(&mut self, place: &XmlPlace<'_>, value: &OpenedValue) -> Result<(), ToolError> {
        let name = place.qualified()?;
        let namespace = place.namespace()?;
        match value {
            OpenedValue::Members(members) => {
                let (attributes, elements) = split(place, members);
                let mut head = namespace;
                for (place, value) in attributes {
                    head.push_str(&attribute(&place, value)?);
                }
                self.open(&name, &head);
                elements.iter().try_for_each(|(place, value)| self.member(place, value))?;
            }
            OpenedValue::Text(text) => {
                self.open(&name, &namespace);
                self.out.push(escaped(place.at, text)?);
            }
            OpenedValue::Undefined | OpenedValue::Items(_) => self.open(&name, &namespace),
        }
        self.close(&name);
        Ok(())
    }

    fn open(&mut self, name: &str, attributes: &str) {
        for piece in ["<", name, attributes, ">"] {
            self.out.push(piece);
        }
    }

    fn close(&mut self, name: &str) {
        for piece in ["</", name, ">"] {
            self.out.push(piece);
        }
    }
}

type PlacedMember<'a> = (XmlPlace<'a>, &'a Json);

/// Splits members into attributes and elements, in the order of the document.
fn split<'a>(
    place: &XmlPlace<'a>,
    members: &'a [(String, Json)],
) -> (Vec<PlacedMember<'a>>, Vec<PlacedMember<'a>>) {
    let rank = |name: &str| place.shape.members.iter().position(|(known, _)| known == name);
    let mut ranked: Vec<_> = members.iter().map(|(name, value)| (rank(name), name, value)).collect();
    ranked.sort_by_key(|(rank, ..)| rank.unwrap_or(usize::MAX));
    let member = |(rank, name, value): (Option<usize>, &'a String, &'a Json)| {
        let shape = rank.map_or(place.unknown, |rank| &place.shape.members[rank].1);
        (XmlPlace { at: if place.at.is_empty() { name } else { place.at }, name, shape, ..*place }, value)
    };
    ranked.into_iter().map(member).partition(|(place, _)| place.shape.attribute)
}

/// Formats an attribute. An array is a list (XML Schema, part 2, section 2.5.1.2).
fn attribute(place: &XmlPlace<'_>, value: &Json) -> Result<String, ToolError> {
    let text = match OpenedValue::of(place.at, value)? {
        OpenedValue::Undefined => return Ok(String::new()),
        OpenedValue::Text(text) => text,
        OpenedValue::Items(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        OpenedValue::Members(_) => value.as_text().to_owned(),
    };
    let namespace = if place.shape.prefix.is_some() { place.namespace()? } else { String::new() };
    Ok(format!("{namespace} {}=\"{}\"", place.qualified()?, escaped(place.at, &text)?))
}

/// Escapes text for elements and attributes. Line breaks are escaped so that parsers preserve them.
fn escaped(at: &str, text: &str) -> Result<String, ToolError> {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(character))),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => {
                return Err(invalid_argument(at, format_args!("{character:?} is not permitted in XML")));
            }
            _ => out.push(character),
        }
    }
    Ok(out)
}

/// True for a name of XML 1.0 (fifth edition, section 2.3).
fn is_name(text: &str) -> bool {
    text.starts_with(begins_name) && text.chars().all(is_in_name)
}

const fn begins_name(character: char) -> bool {
    matches!(character,
        ':' | '_' | 'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

const fn is_in_name(character: char) -> bool {
    begins_name(character)
        || matches!(character,
            '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}
