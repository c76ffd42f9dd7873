//! Where a request goes: a URL with arguments in it.

use std::fmt::Write;

use ::http::Uri;
use toolyard_core::{Code, Json, Object, ToolError};

/// A URL, or a template of one.
#[derive(Clone)]
pub struct Target {
    pieces: Vec<Piece>,
}

#[derive(Clone)]
enum Piece {
    Literal(String),
    Argument { name: String, part: Part },
}

/// Which part of a URL an argument stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Path,
    Query,
}

const LEADS_OUT: &str = "it would lead out of its place in the path";

impl Target {
    /// Always the same URL.
    #[must_use]
    pub fn fixed(url: &Uri) -> Self {
        Self { pieces: vec![Piece::Literal(url.to_string())] }
    }

    /// A URL with the names of arguments in braces. A brace without a partner stands for itself.
    #[must_use]
    pub fn template(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut before = String::new();
        // What follows is for the eyes of a browser.
        let mut rest = text.split('#').next().unwrap_or_default();
        while let Some((literal, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else { break };
            before.push_str(literal);
            pieces.push(Piece::Literal(literal.to_owned()));
            pieces.push(Piece::Argument { name: name.to_owned(), part: part_behind(&before) });
            rest = behind;
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        Self { pieces }
    }

    /// Whether arguments decide which host it is.
    #[must_use]
    pub fn host_varies(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Argument { part: Part::Host, .. }))
    }

    /// The URL for these arguments, from which those that it holds are taken out.
    pub(super) fn fill(&self, arguments: &mut Object) -> Result<String, ToolError> {
        let mut url = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => url.push_str(text),
                Piece::Argument { name, part } => {
                    let value = arguments.get(name).filter(|value| !value.is_null());
                    let value = value.ok_or_else(|| invalid(name, "it is missing"))?;
                    url.push_str(&written(name, &plain(value), *part)?);
                }
            }
        }
        for piece in &self.pieces {
            if let Piece::Argument { name, part } = piece {
                // One that is harmless by itself may stand beside a dot.
                if *part == Part::Path && climbs(url.split('?').next().unwrap_or_default()) {
                    return Err(invalid(name, LEADS_OUT));
                }
                arguments.remove(name);
            }
        }
        Ok(url)
    }
}

/// The part that follows such a beginning.
fn part_behind(before: &str) -> Part {
    let behind_scheme = before.split_once("://").map_or("", |(_, rest)| rest);
    match (behind_scheme.contains('?'), behind_scheme.contains('/')) {
        (true, _) => Part::Query,
        (false, true) => Part::Path,
        (false, false) => Part::Host,
    }
}

fn written(name: &str, value: &str, part: Part) -> Result<String, ToolError> {
    let of_a_host = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
    match part {
        Part::Host if value.is_empty() || !value.bytes().all(of_a_host) => {
            Err(invalid(name, "it is not a part of a host's name"))
        }
        Part::Host => Ok(value.to_owned()),
        // The URL of an item without its name is often that of all items.
        Part::Path if value.is_empty() => Err(invalid(name, "it is empty")),
        // Encoding does not help: many a server decodes a path before it resolves it.
        Part::Path if climbs(value) => Err(invalid(name, LEADS_OUT)),
        Part::Path | Part::Query => Ok(encoded(value)),
    }
}

/// Whether there is a segment in a path that servers resolve.
fn climbs(path: &str) -> bool {
    path.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."))
}

/// An argument as a person would write it: a string without quotes, anything else as its JSON.
pub(super) fn plain(value: &Json) -> String {
    value.to_str().map_or_else(|| value.as_text().to_owned(), |text| text.into_owned())
}

/// Everything but unreserved characters in percent-encoding (RFC 3986, section 2.3).
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// An argument that makes no request.
pub(super) fn invalid(name: &str, problem: &str) -> ToolError {
    ToolError::new(Code::InvalidArguments, format!("Invalid arguments: /{name}: {problem}"))
}
