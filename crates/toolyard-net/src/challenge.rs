//! The challenge of a server that wants credentials: `WWW-Authenticate` (RFC 9110, section 11.6.1).

use http::{HeaderMap, header};

use crate::header_values::list_items;

/// Maximum number of schemes of a challenge.
const MAX_SCHEMES: usize = 4;

/// Maximum length of the name of a scheme.
const MAX_SCHEME_LENGTH: usize = 32;

/// The authentication schemes that a server accepts. Parameters of the challenge are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthChallenge {
    schemes: Vec<String>,
    was_sent: bool,
}

impl AuthChallenge {
    /// Reads the challenge of a response. `was_sent` is true if the request had an `Authorization` header.
    #[must_use]
    pub fn of(response: &HeaderMap, was_sent: bool) -> Self {
        let values = response.get_all(header::WWW_AUTHENTICATE).iter();
        let parts = values.filter_map(|value| value.to_str().ok()).flat_map(list_items);
        let mut schemes: Vec<String> = Vec::new();
        for scheme in parts.filter_map(scheme) {
            if schemes.len() < MAX_SCHEMES && !schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme))
            {
                schemes.push(scheme.to_owned());
            }
        }
        Self { schemes, was_sent }
    }

    /// Describes what is missing in the request.
    #[must_use]
    pub fn problem(&self) -> String {
        let schemes = self.schemes.join(" or ");
        match (self.was_sent, self.schemes.is_empty()) {
            (false, true) => "HTTP status 401: the request has no `Authorization` header".to_owned(),
            (false, false) => {
                format!("HTTP status 401: the header `Authorization: {schemes} ...` is missing")
            }
            (true, true) => "HTTP status 401: the server refused the `Authorization` header".to_owned(),
            (true, false) => format!(
                "HTTP status 401: the server refused the `Authorization` header; it accepts the scheme {schemes}"
            ),
        }
    }
}

/// Returns the scheme at the start of a part; `None` for a parameter, such as `realm="x"`.
fn scheme(part: &str) -> Option<&str> {
    let word = part.trim().split(' ').next().unwrap_or_default();
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!word.is_empty() && word.len() <= MAX_SCHEME_LENGTH && word.chars().all(is_token)).then_some(word)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn missing_and_refused_headers() {
        let check = |challenges: &[&'static str], was_sent: bool, expected: &str| {
            let headers =
                challenges.iter().map(|text| (header::WWW_AUTHENTICATE, HeaderValue::from_static(text)));
            let challenge = AuthChallenge::of(&headers.collect(), was_sent);
            assert_eq!(challenge.problem(), format!("HTTP status 401: {expected}"), "{challenges:?}");
        };
        check(&[], false, "the request has no `Authorization` header");
        check(&[], true, "the server refused the `Authorization` header");
        check(&["Bearer"], false, "the header `Authorization: Bearer ...` is missing");
        check(
            &["Bearer realm=\"a\", error=\"invalid_token\", resource_metadata=\"https://a/b\""],
            true,
            "the server refused the `Authorization` header; it accepts the scheme Bearer",
        );
        check(
            &["Basic realm=\"x, Negotiate\", Digest qop=\"auth\"", "basic"],
            false,
            "the header `Authorization: Basic or Digest ...` is missing",
        );
        check(&["\"hunter2\" =, "], false, "the request has no `Authorization` header");
    }
}
