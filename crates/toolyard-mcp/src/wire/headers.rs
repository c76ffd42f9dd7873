//! Headers that mirror parts of a modern request (2026-07-28, basic/transports/streamable-http, request metadata), so
//! that a load balancer can route without reading bodies.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memmem::Finder;
use serde_json::Value;
use toolyard_core::{Json, Object};

use super::ProtocolRevision;

/// The revision of the request.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the request.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The tool, prompt or resource that the request names.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The session of a legacy client.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The last received event of a stream that the client resumes.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The annotation of an input schema that requests a header.
const ANNOTATION: &str = "x-mcp-header";
const PARAM_PREFIX: &str = "mcp-param-";
const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";
/// The largest integer that every JSON parser keeps exact: 2^53 - 1.
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An argument that is mirrored in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParam {
    /// The header name, `mcp-param-{name}`.
    pub header: HeaderName,
    /// The property names from the arguments to the value.
    path: Vec<String>,
    /// True for integers, which are compared as numbers: `42.0` equals `42`.
    is_integer: bool,
}

/// An annotation that the specification forbids. Its tool is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`x-mcp-header` {problem}")]
pub struct BadAnnotation {
    problem: String,
}

fn invalid<T>(problem: impl Into<String>) -> Result<T, BadAnnotation> {
    Err(BadAnnotation { problem: problem.into() })
}

/// Returns the arguments of a tool that are mirrored in headers.
///
/// # Errors
/// When an annotation violates the specification.
pub fn header_params(input_schema: Option<&Json>) -> Result<Vec<HeaderParam>, BadAnnotation> {
    let Some(schema) = input_schema else { return Ok(Vec::new()) };
    // Few schemas have annotations: skip the others without parsing them.
    static SEARCH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(ANNOTATION));
    if SEARCH.find(schema.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let mut params = Vec::new();
    collect(&schema.to_value(), &mut Vec::new(), true, &mut params)?;
    for (i, param) in params.iter().enumerate() {
        if params[..i].iter().any(|other| other.header == param.header) {
            return invalid(format!("names {} twice", param.header));
        }
    }
    Ok(params)
}

/// Walks a schema. `reachable` is true while only `properties` lead here from the root.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    params: &mut Vec<HeaderParam>,
) -> Result<(), BadAnnotation> {
    match schema {
        Value::Object(members) => {
            if let Some(name) = members.get(ANNOTATION) {
                params.push(header_param(name, members.get("type"), path, reachable)?);
            }
            for (keyword, below) in members {
                match (keyword.as_str(), below) {
                    ("properties", Value::Object(properties)) => {
                        for (property, schema) in properties {
                            path.push(property.clone());
                            collect(schema, path, reachable, params)?;
                            path.pop();
                        }
                    }
                    // These keywords hold data, not schemas.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    _ => collect(below, path, false, params)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, path, false, params)),
        _ => Ok(()),
    }
}

fn header_param(
    name: &Value,
    kind: Option<&Value>,
    path: &[String],
    reachable: bool,
) -> Result<HeaderParam, BadAnnotation> {
    if !reachable || path.is_empty() {
        return invalid("is only allowed below `properties`");
    }
    let kind = kind.and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return invalid(format!("is on `{}`, which is not a string, integer or boolean", path.join(".")));
    }
    let Some(name) = name.as_str().filter(|name| !name.is_empty()) else {
        return invalid("is not a name");
    };
    match HeaderName::try_from(format!("{PARAM_PREFIX}{name}")) {
        Ok(header) => Ok(HeaderParam { header, path: path.to_vec(), is_integer: kind == Some("integer") }),
        Err(_) => invalid(format!("is not a valid header name: {name:?}")),
    }
}

impl HeaderParam {
    /// Returns the text of the header; `None` if the argument is missing or of a type that cannot be mirrored.
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

/// Parses an integer, also one written as `42.0` or `4.2e1`.
#[expect(clippy::cast_possible_truncation, reason = "the number is checked to be whole and within 2^53")]
fn integer(text: &str) -> Option<i64> {
    let number = text.parse::<f64>().ok()?;
    (number.fract() == 0.0 && number.abs() <= SAFE_INTEGER).then_some(number as i64)
}

/// Compares a header that mirrors a protocol term, which is never encoded, with the body.
///
/// # Errors
/// Describes the mismatch.
pub fn check_plain(headers: &HeaderMap, header: &HeaderName, body: &str) -> Result<(), String> {
    match single(headers, header)? {
        None => Err(format!("the {header} header is missing")),
        Some(value) if value == body => Ok(()),
        Some(_) => Err(format!("the {header} header does not match the body")),
    }
}

/// Compares a header that mirrors a value of the body, which may be encoded, with the body.
///
/// # Errors
/// Describes the mismatch.
pub fn check(headers: &HeaderMap, header: &HeaderName, body: Option<&str>) -> Result<(), String> {
    compare(headers, header, body, |text, body| text == body)
}

impl HeaderParam {
    /// Compares the header that mirrors this argument with the arguments.
    ///
    /// # Errors
    /// Describes the mismatch.
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
    match (single(headers, header)?, body) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(format!("the {header} header is missing")),
        (Some(_), None) => Err(format!("the {header} header has no counterpart in the body")),
        (Some(value), Some(body)) => match decode(value) {
            None => Err(format!("the {header} header has invalid characters")),
            Some(text) if same(&text, body) => Ok(()),
            Some(_) => Err(format!("the {header} header does not match the body")),
        },
    }
}

/// Returns a header that may occur once.
fn single<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Result<Option<&'a HeaderValue>, String> {
    let mut values = headers.get_all(header).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(format!("duplicate {header} header")),
    }
}

/// Headers of a request beside those of every request, to be inserted in this order. It is copied into a map once, so that
/// it is none itself.
pub type RequestHeaders = Vec<(HeaderName, HeaderValue)>;

/// Returns the headers of every modern request.
#[must_use]
pub fn method_headers(revision: ProtocolRevision, method: &'static str) -> RequestHeaders {
    // Room for the name, too.
    let mut headers = Vec::with_capacity(3);
    headers.push((PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str())));
    headers.push((METHOD, HeaderValue::from_static(method)));
    headers
}

/// Encodes a value for a header.
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

/// Decodes the value of a header; `None` if it is neither printable nor validly encoded.
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
    fn values_survive_a_header_round_trip() {
        // The examples of the specification, then further ones.
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
        let result = match header_params(Some(&schema)) {
            Err(error) => error.to_string(),
            Ok(params) => {
                let line = |param: &HeaderParam| format!("{}: {:?}", param.header, param.value(&arguments));
                params.iter().map(line).collect::<Vec<_>>().join(", ")
            }
        };
        assert_eq!(result, expect);
    }

    #[test]
    fn annotations_below_properties_are_collected() {
        let schema = r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"},
            "o":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let both = r#"mcp-param-region: Some("eu"), mcp-param-n: Some("42")"#;
        check_schema(schema, r#"{"r":"eu","o":{"n":42.0}}"#, both);
        check_schema(schema, r#"{"r":null,"o":3}"#, "mcp-param-region: None, mcp-param-n: None");
        check_schema(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#, "{}", "");
        check_schema(r#"{"default":{"x-mcp-header":"A"}}"#, "{}", "");
    }

    #[test]
    fn forbidden_annotations_are_refused() {
        let property = |schema: &str| format!(r#"{{"properties":{{"a":{schema}}}}}"#);
        let elsewhere = "`x-mcp-header` is only allowed below `properties`";
        check_schema(r#"{"items":{"type":"string","x-mcp-header":"A"}}"#, "{}", elsewhere);
        check_schema(&property(r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#), "{}", elsewhere);
        check_schema(r#"{"type":"string","x-mcp-header":"A"}"#, "{}", elsewhere);
        let number = "`x-mcp-header` is on `a`, which is not a string, integer or boolean";
        check_schema(&property(r#"{"type":"number","x-mcp-header":"A"}"#), "{}", number);
        let name = r#"`x-mcp-header` is not a valid header name: "a b""#;
        check_schema(&property(r#"{"type":"string","x-mcp-header":"a b"}"#), "{}", name);
        check_schema(
            &property(r#"{"type":"string","x-mcp-header":""}"#),
            "{}",
            "`x-mcp-header` is not a name",
        );
        let twice = r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#;
        check_schema(twice, "{}", "`x-mcp-header` names mcp-param-a twice");
    }

    #[test]
    fn header_is_compared_with_the_body() {
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
