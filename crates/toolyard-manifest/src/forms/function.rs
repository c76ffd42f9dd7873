//! What handlers of the types `function` and `cortexone` say of a function.

use super::{Endpoint, Invalid};

/// What a function is called, which is a part of URLs.
pub(crate) fn function_id(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new(
        "the id of a function",
        "at most 128 letters, digits, `-`, `_` and `.`, with a letter or a digit first",
    );
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let valid = text.len() <= 128 && begins && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(INVALID) }
}

/// Which version of it: a whole one, the newest of several, or the draft.
pub(crate) fn function_version(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new(
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

/// Where the platform is: paths are put behind it.
pub(crate) fn platform_url(text: &str) -> Result<Endpoint, Invalid> {
    const INVALID: Invalid =
        Invalid::new("the place of a platform", "a URL such as https://cortexconnect.rival.io");
    let endpoint = Endpoint::parse(text).map_err(|invalid| Invalid { hint: invalid.hint, ..INVALID })?;
    let has_query = endpoint.uri().query().is_some();
    if has_query { Err(INVALID.hint("it has no query")) } else { Ok(endpoint) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn what_names_a_function_and_its_version() {
        let long = "a".repeat(129);
        check(
            function_id,
            &["a", "9", "echo-tool_2.x", "0f8fad5b-d9cb-469f-a165-70867728950e", &long[1..]],
            &["", ".", "..", "-a", "_a", "a/b", "a b", "é", "a?", "a%2e", &long],
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
