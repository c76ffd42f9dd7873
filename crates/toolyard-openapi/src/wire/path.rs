//! The path of a request: a template with values in it.
//!
//! A value stays in its place: whatever it is, the path has the segments of its template, and none of them is empty or one
//! that servers resolve (`.`, `..`).

use toolyard_core::{Json, Object, ToolError};

use super::escape::{self, Escape};
use super::{Opened, in_media_type, invalid, style};
use crate::operation::{Form, Location, Operation, Parameter, Style, Styled};

const LEADS_OUT: &str = "it would lead out of its place in the path";
const MISSING: &str = "it is missing";

/// How a value is written where a document does not say it.
const PLAIN: Styled = Styled { style: Style::Simple, explode: false, allow_reserved: false };

/// The path and the query of an operation's template, with arguments in them. The arguments of parameters of the path are
/// taken out.
pub(crate) fn fill(
    operation: &Operation,
    arguments: &mut Object,
) -> Result<(String, Option<String>), ToolError> {
    // What follows a `#` is for the eyes of a browser, or tells operations of one path apart. Some documents have RFC 6570
    // in their paths: the parameters of `{?a,b}` are parameters of the query.
    let template = operation.path.split('#').next().unwrap_or_default();
    let template =
        ["{?", "{&"].iter().fold(template, |text, query| text.split(query).next().unwrap_or_default());
    let (path, query) =
        template.split_once('?').map_or((template, None), |(path, query)| (path, Some(query)));
    let values = Values { operation, arguments };
    let segments: Vec<_> =
        path.split('/').map(|segment| values.segment(segment)).collect::<Result<_, _>>()?;
    let query = query.map(|query| values.filled(query).map(|filled| filled.text)).transpose()?;
    for parameter in operation.parameters.iter().filter(|parameter| parameter.location == Location::Path) {
        arguments.remove(&parameter.argument);
    }
    Ok((segments.join("/"), query))
}

struct Values<'a> {
    operation: &'a Operation,
    arguments: &'a Object,
}

/// A part of a template with values in it.
struct Filled<'a> {
    text: String,
    /// The argument that came last.
    argument: Option<&'a str>,
}

impl<'a> Values<'a> {
    fn segment(&self, template: &'a str) -> Result<String, ToolError> {
        let Filled { text, argument } = self.filled(template)?;
        match argument {
            // The URL of an item without its name is often that of all items.
            Some(argument) if text.is_empty() => Err(invalid(argument, "it is empty")),
            Some(argument) if climbs(&text) => Err(invalid(argument, LEADS_OUT)),
            _ => Ok(text),
        }
    }

    fn filled(&self, template: &'a str) -> Result<Filled<'a>, ToolError> {
        let mut filled = Filled { text: String::new(), argument: None };
        let mut rest = template;
        while let Some((literal, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else { break };
            filled.text.push_str(&escape::legal(literal));
            let (argument, text) = self.value(name.trim_matches(['+', '*']))?;
            filled.text.push_str(&text);
            filled.argument = Some(argument);
            rest = behind;
        }
        filled.text.push_str(&escape::legal(rest));
        Ok(filled)
    }

    /// The argument that stands for a name, and its text.
    fn value(&self, name: &'a str) -> Result<(&'a str, String), ToolError> {
        let parameter = self.parameter(name);
        let argument = parameter.map_or(name, |parameter| &parameter.argument);
        let value = self.arguments.get(argument).ok_or_else(|| invalid(argument, MISSING))?;
        let text = match parameter.map(|parameter| &parameter.form) {
            Some(Form::Content(media_type)) => escape::encoded(&in_media_type(media_type, value)),
            Some(Form::Styled(styled)) => self.styled(name, argument, value, *styled)?,
            None => self.styled(name, argument, value, PLAIN)?,
        };
        Ok((argument, text))
    }

    /// Reserved characters are encoded even where they may stand: `/`, `?` and `#` never can in a path, and the others mean
    /// the same.
    fn styled(&self, name: &str, argument: &str, value: &Json, styled: Styled) -> Result<String, ToolError> {
        Ok(style::text(name, &Opened::of(argument, value)?, styled, Escape::Reserved))
    }

    fn parameter(&self, name: &str) -> Option<&'a Parameter> {
        let mut of_the_path = self.operation.parameters.iter().filter(|it| it.location == Location::Path);
        of_the_path.find(|parameter| parameter.name.trim_matches(['+', '*']) == name)
    }
}

/// Whether there is a segment in it that servers resolve. Encoding does not help: many a server decodes a path before it
/// resolves it, and many a one leaves out what follows a `;`.
fn climbs(segment: &str) -> bool {
    let decoded = escape::decoded(segment);
    let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    segments.any(|segment| {
        let named = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(named, b"." | b"..")
    })
}
