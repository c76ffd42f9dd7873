//! XML, as far as a document shapes it (OpenAPI 3.1.1, section 4.8.26).
//!
//! Members come in the order of the document, because schemas of XML have one; those that it does not know follow. What
//! is `null` is left out.

use bytes::Bytes;
use toolyard_core::{Json, ToolError};

use super::Given;
use crate::operation::XmlShape;
use crate::wire::out::Out;
use crate::wire::{Opened, cut, invalid, plain};

/// The document. A text that begins as XML does is the document itself.
pub(super) fn write(given: &Given, shape: &XmlShape) -> Result<Bytes, ToolError> {
    if let Some(text) = given.value.to_str().filter(|text| text.trim_start().starts_with('<')) {
        return Ok(Bytes::from(text.into_owned()));
    }
    let mut writer = Writer { out: Out::body(given.value.as_bytes().len()) };
    writer.out.push("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    let name = shape.name.as_deref().unwrap_or("root");
    let unknown = XmlShape::default();
    let place = Place { at: &given.argument, name, shape, unknown: &unknown };
    match Opened::of(&given.argument, &given.value)? {
        // A document has one root, whether it says so or not.
        Opened::Items(items) => writer.wrapped(&place, &items)?,
        value => writer.element(&place, &value)?,
    }
    Ok(writer.out.finish()?.into())
}

/// Where something is written.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Where its value is among the arguments.
    at: &'a str,
    /// What it is called, where its shape does not say it.
    name: &'a str,
    shape: &'a XmlShape,
    /// The shape of what the document does not know.
    unknown: &'a XmlShape,
}

impl Place<'_> {
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
            let shown = cut(&qualified, 64);
            Err(invalid(self.at, format_args!("{shown:?} is no name in XML")))
        }
    }

    /// The declaration of its namespace.
    fn namespace(&self) -> Result<String, ToolError> {
        let Some(namespace) = &self.shape.namespace else { return Ok(String::new()) };
        let prefix = self.shape.prefix.as_deref().filter(|prefix| !prefix.is_empty());
        let name = prefix.map_or_else(|| "xmlns".to_owned(), |prefix| format!("xmlns:{prefix}"));
        Ok(format!(" {name}=\"{}\"", escaped(self.at, namespace)?))
    }
}

struct Writer {
    out: Out,
}

impl Writer {
    /// A member of an object: an element, or several in the case of an array.
    fn member(&mut self, place: &Place<'_>, value: &Json) -> Result<(), ToolError> {
        self.out.check()?;
        match Opened::of(place.at, value)? {
            Opened::Undefined => Ok(()),
            Opened::Items(items) if place.shape.wrapped => self.wrapped(place, &items),
            Opened::Items(items) => self.items(place, &items),
            value => self.element(place, &value),
        }
    }

    fn wrapped(&mut self, place: &Place<'_>, items: &[Json]) -> Result<(), ToolError> {
        let name = place.qualified()?;
        self.open(&name, &place.namespace()?);
        // Items without a name of their own have that of what they stand in.
        let name_of_items = place.shape.name.as_deref().unwrap_or(place.name);
        self.items(&Place { name: name_of_items, ..*place }, items)?;
        self.close(&name);
        Ok(())
    }

    /// The name of an array counts for what wraps its items only.
    fn items(&mut self, place: &Place<'_>, items: &[Json]) -> Result<(), ToolError> {
        let shape = place.shape.items.as_deref().unwrap_or(place.unknown);
        items.iter().try_for_each(|item| self.member(&Place { shape, ..*place }, item))
    }

    fn element(&mut self, place: &Place<'_>, value: &Opened) -> Result<(), ToolError> {
        let name = place.qualified()?;
        let namespace = place.namespace()?;
        match value {
            Opened::Members(members) => {
                let (attributes, elements) = split(place, members);
                let mut head = namespace;
                for (place, value) in attributes {
                    head.push_str(&attribute(&place, value)?);
                }
                self.open(&name, &head);
                elements.iter().try_for_each(|(place, value)| self.member(place, value))?;
            }
            Opened::Text(text) => {
                self.open(&name, &namespace);
                self.out.push(escaped(place.at, text)?);
            }
            Opened::Undefined | Opened::Items(_) => self.open(&name, &namespace),
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

type Member<'a> = (Place<'a>, &'a Json);

/// The attributes and the elements among members, in the order of the document.
fn split<'a>(place: &Place<'a>, members: &'a [(String, Json)]) -> (Vec<Member<'a>>, Vec<Member<'a>>) {
    let rank = |name: &str| place.shape.members.iter().position(|(known, _)| known == name);
    let mut ranked: Vec<_> = members.iter().map(|(name, value)| (rank(name), name, value)).collect();
    ranked.sort_by_key(|(rank, ..)| rank.unwrap_or(usize::MAX));
    let member = |(rank, name, value): (Option<usize>, &'a String, &'a Json)| {
        let shape = rank.map_or(place.unknown, |rank| &place.shape.members[rank].1);
        (Place { at: if place.at.is_empty() { name } else { place.at }, name, shape, ..*place }, value)
    };
    ranked.into_iter().map(member).partition(|(place, _)| place.shape.attribute)
}

/// An attribute. One that is an array is a list (XML Schema, part 2, section 2.5.1.2).
fn attribute(place: &Place<'_>, value: &Json) -> Result<String, ToolError> {
    let text = match Opened::of(place.at, value)? {
        Opened::Undefined => return Ok(String::new()),
        Opened::Text(text) => text,
        Opened::Items(items) => items.iter().map(plain).collect::<Vec<_>>().join(" "),
        Opened::Members(_) => value.as_text().to_owned(),
    };
    let namespace = if place.shape.prefix.is_some() { place.namespace()? } else { String::new() };
    Ok(format!("{namespace} {}=\"{}\"", place.qualified()?, escaped(place.at, &text)?))
}

/// Text for elements and attributes. Line breaks are written so that a reader leaves them as they are.
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
                return Err(invalid(at, format_args!("{character:?} cannot stand in XML")));
            }
            _ => out.push(character),
        }
    }
    Ok(out)
}

/// Names of XML 1.0 (fifth edition, section 2.3).
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
