//! Formats in handlers of the types `function` and `cortexone`.

use toolyard_core::access::ScopePattern;

use super::{EndpointUrl, FormatError};

/// The id of a function, which is part of URLs.
pub(crate) fn function_id(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "the id of a function",
        "at most 128 letters, digits, `-`, `_` and `.`, with a letter or a digit first",
    );
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let valid = text.len() <= 128 && begins && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// A pattern of function ids, with `*` for any characters.
pub(crate) fn function_pattern(text: &str) -> Result<ScopePattern, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "a pattern of ids of functions",
        "letters, digits, `-`, `_` and `.`, in which `*` stands for any characters",
    );
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'*');
    let pattern = text.parse().ok().filter(|_| text.len() <= 128 && text.bytes().all(inner));
    pattern.ok_or(INVALID)
}

/// The version of a function: a full version, a prefix that selects the newest one, or a name.
pub(crate) fn function_version(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "a version of a function",
        "a version such as 1.2.0, v1.2.0 or 1.2, `latest` or `draft`",
    );
    let is_named = ["latest", "draft"].iter().any(|name| text.eq_ignore_ascii_case(name));
    let numbers: Vec<_> = text.strip_prefix(['v', 'V']).unwrap_or(text).split('.').collect();
    let is_number =
        |part: &&str| (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let valid = is_named || (numbers.len() <= 3 && numbers.iter().all(is_number));
    if valid { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// The base URL of the platform.
pub(crate) fn platform_url(text: &str) -> Result<EndpointUrl, FormatError> {
    const INVALID: FormatError =
        FormatError::new("the URL of a platform", "a URL such as https://cortexconnect.rival.io");
    let endpoint =
        EndpointUrl::parse(text).map_err(|invalid| FormatError { hint: invalid.hint, ..INVALID })?;
    let has_query = endpoint.uri().query().is_some();
    if has_query { Err(INVALID.hint("remove the query")) } else { Ok(endpoint) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn function_ids_patterns_and_versions() {
        let long = "a".repeat(129);
        check(
            function_id,
            &["a", "9", "echo-tool_2.x", "0f8fad5b-d9cb-469f-a165-70867728950e", &long[1..]],
            &["", ".", "..", "-a", "_a", "a/b", "a b", "é", "a?", "a%2e", &long],
        );
        check(
            function_pattern,
            &["a", "weather", "geo-*", "*", "*.x"],
            &["", "a/b", "a b", "é", "a?", "*/*", &long],
        );
        check(
            function_version,
            &["1", "v1", "1.2", "V1.2.0", "1.2.30", "latest", "Draft", "LATEST", "123456789"],
            &["", "v", "1.", ".1", "1.2.3.4", "1.2.3-a", "newest", "vlatest", "1/2", "-1", "1234567890"],
        );
        check(
            platform_url,
            &["https://a.example", "http://127.0.0.1:80/b/"],
            &["", "a.example", "ftp://a", "https://a.example?b=c"],
        );
    }
}
