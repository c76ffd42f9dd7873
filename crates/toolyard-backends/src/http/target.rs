//! The URL of a request, with arguments in it.

use std::fmt::Write;

use ::http::Uri;
use toolyard_core::{ErrorCode, Json, Object, ToolError};

/// A URL, or a template of one.
#[derive(Clone)]
pub struct RequestTarget {
    pieces: Vec<TemplatePiece>,
}

#[derive(Clone)]
enum TemplatePiece {
    Literal(String),
    Argument { name: String, component: UrlComponent },
}

/// The component of a URL that an argument is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlComponent {
    Host,
    Path,
    Query,
}

const PATH_TRAVERSAL: &str = "it would change the path of the request";

impl RequestTarget {
    /// Creates a target that is always the same URL.
    #[must_use]
    pub fn fixed(url: &Uri) -> Self {
        Self { pieces: vec![TemplatePiece::Literal(url.to_string())] }
    }

    /// Parses a URL with names of arguments in braces. An unpaired brace is literal.
    #[must_use]
    pub fn template(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut before = String::new();
        // Fragments are not sent.
        let mut rest = text.split('#').next().unwrap_or_default();
        while let Some((literal, tail)) = rest.split_once('{') {
            let Some((name, tail)) = tail.split_once('}') else { break };
            before.push_str(literal);
            pieces.push(TemplatePiece::Literal(literal.to_owned()));
            pieces
                .push(TemplatePiece::Argument { name: name.to_owned(), component: component_after(&before) });
            rest = tail;
        }
        pieces.push(TemplatePiece::Literal(rest.to_owned()));
        Self { pieces }
    }

    /// Returns a URL on the host of all requests; `None` if arguments decide the host.
    pub(crate) fn origin(&self) -> Option<Uri> {
        let TemplatePiece::Literal(first) = self.pieces.first()? else { return None };
        let authority = first.find("://").map(|colon| colon + "://".len())?;
        let end = first[authority..].find(['/', '?', '#']).map(|end| authority + end);
        let end = end.or((self.pieces.len() == 1).then_some(first.len()));
        first[..end?].parse().ok().filter(|_| !self.has_variable_host())
    }

    /// True if arguments decide the host.
    #[must_use]
    pub fn has_variable_host(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, TemplatePiece::Argument { component: UrlComponent::Host, .. }))
    }

    /// Returns the URL for these arguments, and removes the arguments that it uses.
    pub(super) fn expand(&self, arguments: &mut Object) -> Result<String, ToolError> {
        let mut url = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Literal(text) => url.push_str(text),
                TemplatePiece::Argument { name, component: part } => {
                    let value = arguments.get(name).filter(|value| !value.is_null());
                    let value = value.ok_or_else(|| invalid_argument(name, "it is missing"))?;
                    url.push_str(&encode_argument(name, &plain_text(value), *part)?);
                }
            }
        }
        for piece in &self.pieces {
            if let TemplatePiece::Argument { name, component: part } = piece {
                // A value without dots may follow a literal dot.
                if *part == UrlComponent::Path && has_dot_segment(url.split('?').next().unwrap_or_default()) {
                    return Err(invalid_argument(name, PATH_TRAVERSAL));
                }
                arguments.remove(name);
            }
        }
        Ok(url)
    }
}

/// Returns the component that follows this beginning of a URL.
fn component_after(before: &str) -> UrlComponent {
    let after_scheme = before.split_once("://").map_or("", |(_, rest)| rest);
    match (after_scheme.contains('?'), after_scheme.contains('/')) {
        (true, _) => UrlComponent::Query,
        (false, true) => UrlComponent::Path,
        (false, false) => UrlComponent::Host,
    }
}

fn encode_argument(name: &str, value: &str, part: UrlComponent) -> Result<String, ToolError> {
    let is_host_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
    match part {
        UrlComponent::Host if value.is_empty() || !value.bytes().all(is_host_byte) => {
            Err(invalid_argument(name, "it is not valid in a host name"))
        }
        UrlComponent::Host => Ok(value.to_owned()),
        // Without its last segment, the URL of an item is often that of the collection.
        UrlComponent::Path if value.is_empty() => Err(invalid_argument(name, "it is empty")),
        // Encoding does not help: many servers decode a path before they resolve it.
        UrlComponent::Path if has_dot_segment(value) => Err(invalid_argument(name, PATH_TRAVERSAL)),
        UrlComponent::Path | UrlComponent::Query => Ok(percent_encode(value)),
    }
}

/// True if the path has a dot segment. Many servers ignore the part of a segment after `;`.
fn has_dot_segment(path: &str) -> bool {
    let mut segments = path.split(['/', '\\']).filter_map(|segment| segment.split(';').next());
    segments.any(|segment| matches!(segment, "." | ".."))
}

/// Returns a string without its quotes, and any other value as JSON.
pub(super) fn plain_text(value: &Json) -> String {
    value.to_str().map_or_else(|| value.as_text().to_owned(), |text| text.into_owned())
}

/// Percent-encodes all but unreserved characters (RFC 3986, section 2.3).
pub(super) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Creates the error for an invalid argument.
pub(super) fn invalid_argument(name: &str, problem: &str) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, format!("Invalid arguments: /{name}: {problem}"))
}
