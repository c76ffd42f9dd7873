//! What handlers of the type `openapi` say of a description and of what opens its service.

use super::{Endpoint, Invalid};
use crate::handler::Secret;

/// Where a description is.
pub(crate) fn description_url(text: &str) -> Result<Endpoint, Invalid> {
    const INVALID: Invalid = Invalid::new(
        "the place of a description",
        "a URL such as https://api.example.com/openapi.json, or `file:` and a path",
    );
    Endpoint::parse(text).map_err(|invalid| Invalid { hint: invalid.hint, ..INVALID })
}

/// Paths of a description: `*` stands for anything but a slash, `**` for anything.
pub(crate) fn path_glob(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new("a pattern for paths", "a pattern such as /pets/* or /pets/**");
    let valid = text.starts_with(['/', '*']);
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("a path begins with `/`")) }
}

/// A key, a token, or a name and a password: which of them it is, and where it goes, the description says.
pub(crate) fn scheme_secret(text: &str) -> Result<Secret, Invalid> {
    const INVALID: Invalid = Invalid::new("a credential", "one line with at least one character");
    let valid = !text.is_empty() && !text.chars().any(char::is_control);
    if valid { Ok(Secret::new(text)) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// The name of a client (RFC 6749, appendix A.1).
pub(crate) fn client_id(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid = Invalid::new("the name of a client", "one line of visible ASCII characters");
    let valid = !text.is_empty() && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("is the variable empty?")) }
}

/// What a token is good for (RFC 6749, section 3.3).
pub(crate) fn scope(text: &str) -> Result<String, Invalid> {
    const INVALID: Invalid =
        Invalid::new("a scope", "visible ASCII characters without blanks, such as read:pets");
    let inner = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let valid = !text.is_empty() && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(INVALID.hint("each scope is an item of the list")) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn what_a_description_is_asked_for_and_opened_with() {
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
