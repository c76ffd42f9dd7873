//! The headers that mirror parts of a modern request (2026-07-28, basic/transports/streamable-http,
//! request metadata), so that a balancer can route without reading bodies.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use serde_json::Value;
use toolyard_core::{Json, Object};

use super::Revision;

/// The revision of the request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt or resource that the request names.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The session of a legacy client.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The latest event of a stream that its client comes back to.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The annotation in an input schema that asks for a header.
const ANNOTATION: &str = "x-mcp-header";
const PARAM_PREFIX: &str = "mcp-param-";
const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";
/// The largest integer that every JSON reader keeps exact: 2^53 - 1.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An argument that is to be mirrored in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// `mcp-param-{name}`.
    pub header: HeaderName,
    /// The names that lead from the arguments to the value.
    path: Vec<String>,
    /// Integers are compared as numbers: `42.0` is `42`.
    is_integer: bool,
}

/// An annotation that the specification forbids. The tool that carries it is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`x-mcp-header` {problem}")]
pub struct BadAnnotation {
    problem: String,
}

fn bad<T>(problem: impl Into<String>) -> Result<T, BadAnnotation> {
    Err(BadAnnotation { problem: problem.into() })
}

/// The arguments that a tool wants mirrored.
///
/// # Errors
/// When an annotation breaks one of the rules of the specification.
pub fn header_params(input_schema: Option<&Json>) -> Result<Vec<HeaderParam>, BadAnnotation> {
    let Some(schema) = input_schema else { return Ok(Vec::new()) };
    // Few schemas have one: they are told apart without opening the schema.
    if memmem::find(schema.as_bytes(), ANNOTATION.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    collect(&schema.to_value(), &mut Vec::new(), true, &mut found)?;
    for (i, param) in found.iter().enumerate() {
        if found[..i].iter().any(|other| other.header == param.header) {
            return bad(format!("names {} twice", param.header));
        }
    }
    Ok(found)
}

/// Walks a schema. `reachable` says whether only `properties` lead here from the root.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<HeaderParam>,
) -> Result<(), BadAnnotation> {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get(ANNOTATION) {
                found.push(annotated(name, members.get("type"), path, reachable)?);
            }
            for (keyword, below) in members {
                match (keyword.as_str(), below) {
                    ("properties", Value::Object(properties)) => {
                        for (property, schema) in properties {
                            path.push(property.clone());
                            collect(schema, path, reachable, found)?;
                            path.pop();
                        }
                    }
                    // Data, not schemas.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    _ => collect(below, path, false, found)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, path, false, found)),
        _ => Ok(()),
    }
}

fn annotated(
    name: &Value,
    kind: Option<&Value>,
    path: &[String],
    reachable: bool,
) -> Result<HeaderParam, BadAnnotation> {
    if !reachable || path.is_empty() {
        return bad("stands where `properties` alone do not lead");
    }
    let kind = kind.and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return bad(format!("is on `{}`, which is no string, integer or boolean", path.join(".")));
    }
    let Some(name) = name.as_str().filter(|name| !name.is_empty()) else {
        return bad("is no name");
    };
    match HeaderName::try_from(format!("{PARAM_PREFIX}{name}")) {
        Ok(header) => Ok(HeaderParam { header, path: path.to_vec(), is_integer: kind == Some("integer") }),
        Err(_) => bad(format!("is no header name: {name:?}")),
    }
}

impl HeaderParam {
    /// The text that the header mirrors; `None` where the argument is left out, or of a type that
    /// cannot be mirrored.
    #[must_use]
    pub fn value(&self, arguments: &Object) -> Option<String> {
        let (last, parents) = self.path.split_last()?;
        let mut object = Cow::Borrowed(arguments);
        for name in parents {
            object = Cow::Owned(object.get(name)?.to_object().ok()?);
        }
        let value = object.get(last)?;
        match value.to_str() {
            Some(text) => Some(text.into_owned()),
            None if value.is_null() || value.is_object() || value.as_text().starts_with('[') => None,
            None => {
                Some(integer(value.as_text()).map_or_else(|| value.as_text().to_owned(), |n| n.to_string()))
            }
        }
    }
}

/// An integer, also where it is written `42.0` or `4.2e1`.
#[expect(clippy::cast_possible_truncation, reason = "the number is checked to be whole and within 2^53")]
fn integer(text: &str) -> Option<i64> {
    let number = text.parse::<f64>().ok()?;
    (number.fract() == 0.0 && number.abs() <= SAFE_INTEGER).then_some(number as i64)
}

/// Checks a header that mirrors a word of the protocol, which is never encoded.
///
/// # Errors
/// Says in what they differ.
pub fn check_word(headers: &HeaderMap, header: &HeaderName, body: &str) -> Result<(), String> {
    match only(headers, header)? {
        None => Err(format!("the {header} header is missing")),
        Some(value) if value == body => Ok(()),
        Some(_) => Err(format!("the {header} header does not match the body")),
    }
}

/// Checks a header that mirrors a value of the body, which may be encoded.
///
/// # Errors
/// Says in what they differ.
pub fn check(headers: &HeaderMap, header: &HeaderName, body: Option<&str>) -> Result<(), String> {
    compare(headers, header, body, |text, body| text == body)
}

impl HeaderParam {
    /// Checks the header that mirrors this argument.
    ///
    /// # Errors
    /// Says in what they differ.
    pub fn check(&self, headers: &HeaderMap, arguments: &Object) -> Result<(), String> {
        let same_number = |text: &str, body: &str| integer(text).is_some_and(|n| Some(n) == integer(body));
        compare(headers, &self.header, self.value(arguments).as_deref(), |text, body| {
            text == body || (self.is_integer && same_number(text, body))
        })
    }
}

fn compare(
    headers: &HeaderMap,
    header: &HeaderName,
    body: Option<&str>,
    same: impl FnOnce(&str, &str) -> bool,
) -> Result<(), String> {
    match (only(headers, header)?, body) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(format!("the {header} header is missing")),
        (Some(_), None) => Err(format!("the {header} header mirrors nothing in the body")),
        (Some(value), Some(body)) => match decode(value) {
            None => Err(format!("the {header} header has invalid characters")),
            Some(text) if same(&text, body) => Ok(()),
            Some(_) => Err(format!("the {header} header does not match the body")),
        },
    }
}

/// A header that may be there once.
fn only<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Result<Option<&'a HeaderValue>, String> {
    let mut values = headers.get_all(header).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(format!("the {header} header is there twice")),
    }
}

/// What every modern request carries.
#[must_use]
pub fn of_method(revision: Revision, method: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    headers.insert(METHOD, HeaderValue::from_static(method));
    headers
}

/// A value as a header carries it.
#[must_use]
pub fn encode(text: &str) -> HeaderValue {
    let printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte) || byte == b'\t');
    let padded = text.trim_matches([' ', '\t']) != text;
    if printable
        && !padded
        && !text.is_empty()
        && !is_encoded(text)
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    let encoded = format!("{ENCODED_PREFIX}{}{ENCODED_SUFFIX}", BASE64.encode(text));
    HeaderValue::try_from(encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The value that a header carries; `None` where it is neither printable nor well encoded.
#[must_use]
pub fn decode(value: &HeaderValue) -> Option<Cow<'_, str>> {
    let text = value.to_str().ok()?.trim_matches([' ', '\t']);
    if !is_encoded(text) {
        return Some(Cow::Borrowed(text));
    }
    let encoded = &text[ENCODED_PREFIX.len()..text.len() - ENCODED_SUFFIX.len()];
    String::from_utf8(BASE64.decode(encoded).ok()?).ok().map(Cow::Owned)
}

fn is_encoded(text: &str) -> bool {
    text.len() >= ENCODED_PREFIX.len() + ENCODED_SUFFIX.len()
        && text.starts_with(ENCODED_PREFIX)
        && text.ends_with(ENCODED_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_through_a_header() {
        // The examples of the specification, then what it does not show.
        let cases = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", "=?base64??="),
            ("a b\tc", "a b\tc"),
        ];
        for (text, header) in cases {
            assert_eq!(encode(text), header);
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        for broken in ["=?base64?!!?=", "=?base64?gA==?="] {
            assert_eq!(decode(&HeaderValue::from_static(broken)), None, "{broken}");
        }
    }

    #[track_caller]
    fn check_schema(schema: &str, arguments: &str, expect: &str) {
        let schema = Json::parse(schema.to_owned()).unwrap();
        let arguments = Object::parse(arguments.to_owned()).unwrap();
        let shown = match header_params(Some(&schema)) {
            Err(error) => error.to_string(),
            Ok(params) => {
                let show = |param: &HeaderParam| format!("{}: {:?}", param.header, param.value(&arguments));
                params.iter().map(show).collect::<Vec<_>>().join(", ")
            }
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn arguments_are_found_where_properties_lead() {
        let schema = r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"},
            "o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let both = r#"mcp-param-region: Some("eu"), mcp-param-n: Some("42")"#;
        check_schema(schema, r#"{"r":"eu","o":{"n":42.0}}"#, both);
        check_schema(schema, r#"{"r":null,"o":3}"#, "mcp-param-region: None, mcp-param-n: None");
        check_schema(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#, "{}", "");
        check_schema(r#"{"default":{"x-mcp-header":"A"}}"#, "{}", "");
    }

    #[test]
    fn what_the_specification_forbids_is_refused() {
        let property = |schema: &str| format!(r#"{{"properties":{{"a":{schema}}}}}"#);
        let elsewhere = "`x-mcp-header` stands where `properties` alone do not lead";
        check_schema(r#"{"items":{"type":"string","x-mcp-header":"A"}}"#, "{}", elsewhere);
        check_schema(&property(r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#), "{}", elsewhere);
        check_schema(r#"{"type":"string","x-mcp-header":"A"}"#, "{}", elsewhere);
        let number = "`x-mcp-header` is on `a`, which is no string, integer or boolean";
        check_schema(&property(r#"{"type":"number","x-mcp-header":"A"}"#), "{}", number);
        let name = r#"`x-mcp-header` is no header name: "a b""#;
        check_schema(&property(r#"{"type":"string","x-mcp-header":"a b"}"#), "{}", name);
        check_schema(&property(r#"{"type":"string","x-mcp-header":""}"#), "{}", "`x-mcp-header` is no name");
        let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#;
        check_schema(twice, "{}", "`x-mcp-header` names mcp-param-a twice");
    }

    #[test]
    fn a_header_is_compared_with_the_body() {
        let schema = r#"{"properties":{"n":{"type":"integer","x-mcp-header":"N"},"s":{"type":"string","x-mcp-header":"S"}}}"#;
        let params = header_params(Some(&Json::parse(schema).unwrap())).unwrap();
        let check = |param: usize, headers: &[&'static str], arguments: &str| {
            let mut map = HeaderMap::new();
            for header in headers {
                map.append(&params[param].header, HeaderValue::from_static(header));
            }
            params[param].check(&map, &Object::parse(arguments.to_owned()).unwrap()).is_ok()
        };
        for header in ["42", "42.0", "=?base64?NDI=?="] {
            assert!(check(0, &[header], r#"{"n":42}"#), "{header}");
        }
        for header in ["43", "-1e19", "", "=?base64?!?="] {
            assert!(!check(0, &[header], r#"{"n":42}"#), "{header}");
        }
        assert!(check(1, &["1e3"], r#"{"s":"1e3"}"#) && !check(1, &["1000"], r#"{"s":"1e3"}"#));
        assert!(check(1, &[], "{}") && !check(1, &[], r#"{"s":"x"}"#) && !check(1, &["x"], "{}"));
        assert!(!check(1, &["x", "x"], r#"{"s":"x"}"#));
    }
}
