//! Formats in handlers of the type `openapi`.

use super::{EndpointUrl, FormatError};
use crate::handler::SecretString;

/// The URL of an OpenAPI description.
pub(crate) fn description_url(text: &str) -> Result<EndpointUrl, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "the URL of a description",
        "a URL such as https://api.example.com/openapi.json, or `file:` and a path",
    );
    EndpointUrl::parse(text).map_err(|invalid| FormatError { hint: invalid.hint, ..INVALID })
}

/// A glob for paths: `*` matches anything but a slash, `**` matches anything.
pub(crate) fn path_glob(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a pattern for paths", "a pattern such as /pets/* or /pets/**");
    let valid = text.starts_with(['/', '*']);
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("a path begins with `/`")) }
}

/// A key, a token, or a user name and a password. The description defines the kind and the header.
pub(crate) fn scheme_secret(text: &str) -> Result<SecretString, FormatError> {
    const INVALID: FormatError = FormatError::new("a credential", "one line with at least one character");
    let valid = !text.is_empty() && !text.chars().any(char::is_control);
    if valid { Ok(SecretString::new(text)) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// A client id (RFC 6749, appendix A.1).
pub(crate) fn client_id(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("the name of a client", "one line of visible ASCII characters");
    let valid = !text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// The scope of a token (RFC 6749, section 3.3).
pub(crate) fn scope(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a scope", "visible ASCII characters without blanks, such as read:pets");
    let inner = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let valid = !text.is_empty() && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("each scope is an item of the list")) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn urls_globs_and_credentials_of_a_description() {
        check(
            description_url,
            &["https://a/openapi.json", "http://a"],
            &["", "openapi.json", "ftp://a", "/a"],
        );
        check(path_glob, &["/", "/pets/**", "*", "**/toys", "/pets/{id}"], &["", "pets", "?"]);
        check(scheme_secret, &["a", "user:é b"], &["", "a\n", "\t"]);
        check(client_id, &["a", "a b"], &["", "é", "a\n"]);
        check(scope, &["read:pets", "https://a.example/all", "!"], &["", "a b", "a\"", "é", "\\"]);
    }
}
