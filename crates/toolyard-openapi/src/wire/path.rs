//! The path of a request: a template with values.
//!
//! Whatever the values are, the path has the segments of its template, and none of them is empty or resolved by servers
//! (`.`, `..`).

use toolyard_core::{Json, Object, ToolError};

use super::escape::{self, PercentEscape};
use super::{OpenedValue, in_media_type, invalid_argument, style};
use crate::operation::{
    OpenApiOperation, OperationParameter, ParameterLocation, ParameterStyle, StyleOptions, ValueEncoding,
};

const PATH_TRAVERSAL: &str = "it would change the path of the request";
const MISSING_ARGUMENT: &str = "it is missing";

/// The style without a declaration in the document.
const PLAIN_STYLE: StyleOptions =
    StyleOptions { style: ParameterStyle::Simple, explode: false, allow_reserved: false };

/// Fills the path and the query of an operation's template. Removes the arguments of path parameters.
pub(crate) fn fill(
    operation: &OpenApiOperation,
    arguments: &mut Object,
) -> Result<(String, Option<String>), ToolError> {
    // A fragment is for browsers, or distinguishes operations with the same path. Some documents have templates of RFC
    // 6570 in their paths: the parameters of `{?a,b}` are query parameters.
    let template = operation.path.split('#').next().unwrap_or_default();
    let template =
        ["{?", "{&"].iter().fold(template, |text, query| text.split(query).next().unwrap_or_default());
    let (path, query) =
        template.split_once('?').map_or((template, None), |(path, query)| (path, Some(query)));
    let values = PathValues { operation, arguments };
    let segments: Vec<_> =
        path.split('/').map(|segment| values.segment(segment)).collect::<Result<_, _>>()?;
    let query = query.map(|query| values.fill_template(query).map(|filled| filled.text)).transpose()?;
    for parameter in
        operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path)
    {
        arguments.remove(&parameter.argument);
    }
    Ok((segments.join("/"), query))
}

struct PathValues<'a> {
    operation: &'a OpenApiOperation,
    arguments: &'a Object,
}

/// A part of a template with its values.
struct FilledTemplate<'a> {
    text: String,
    /// Name of the last argument.
    argument: Option<&'a str>,
}

impl<'a> PathValues<'a> {
    fn segment(&self, template: &'a str) -> Result<String, ToolError> {
        let FilledTemplate { text, argument } = self.fill_template(template)?;
        match argument {
            // The URL of an item without its name is often that of the collection.
            Some(argument) if text.is_empty() => Err(invalid_argument(argument, "it is empty")),
            Some(argument) if is_traversal(&text) => Err(invalid_argument(argument, PATH_TRAVERSAL)),
            _ => Ok(text),
        }
    }

    fn fill_template(&self, template: &'a str) -> Result<FilledTemplate<'a>, ToolError> {
        let mut filled = FilledTemplate { text: String::new(), argument: None };
        let mut rest = template;
        while let Some((literal, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else { break };
            filled.text.push_str(&escape::encode_illegal(literal));
            let (argument, text) = self.value(name.trim_matches(['+', '*']))?;
            filled.text.push_str(&text);
            filled.argument = Some(argument);
            rest = behind;
        }
        filled.text.push_str(&escape::encode_illegal(rest));
        Ok(filled)
    }

    /// Returns the argument for a name, and its text.
    fn value(&self, name: &'a str) -> Result<(&'a str, String), ToolError> {
        let parameter = self.parameter(name);
        let argument = parameter.map_or(name, |parameter| &parameter.argument);
        let value =
            self.arguments.get(argument).ok_or_else(|| invalid_argument(argument, MISSING_ARGUMENT))?;
        let text = match parameter.map(|parameter| &parameter.encoding) {
            Some(ValueEncoding::Content(media_type)) => {
                escape::percent_encoded(&in_media_type(media_type, value))
            }
            Some(ValueEncoding::Styled(styled)) => self.style_options(name, argument, value, *styled)?,
            None => self.style_options(name, argument, value, PLAIN_STYLE)?,
        };
        Ok((argument, text))
    }

    /// Encodes a value in a style. Reserved characters are always encoded: `/`, `?` and `#` are never valid in a path,
    /// and for the others the encoding has the same meaning.
    fn style_options(
        &self,
        name: &str,
        argument: &str,
        value: &Json,
        styled: StyleOptions,
    ) -> Result<String, ToolError> {
        Ok(style::text(name, &OpenedValue::of(argument, value)?, styled, PercentEscape::Reserved))
    }

    fn parameter(&self, name: &str) -> Option<&'a OperationParameter> {
        let mut of_the_path =
            self.operation.parameters.iter().filter(|it| it.location == ParameterLocation::Path);
        of_the_path.find(|parameter| parameter.name.trim_matches(['+', '*']) == name)
    }
}

/// True if it contains a segment that servers resolve. Encoding does not help: many servers decode a path before they
/// resolve it, and some ignore everything after a `;`.
fn is_traversal(segment: &str) -> bool {
    let decoded = escape::percent_decoded(segment);
    let mut segments = decoded.split(|byte| matches!(byte, b'/' | b'\\'));
    segments.any(|segment| {
        let named = segment.split(|byte| *byte == b';').next().unwrap_or_default();
        matches!(named, b"." | b"..")
    })
}
