//! What opens a service.

/// A way to say who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// A text in a place of its own.
    ApiKey {
        /// Where it goes.
        place: KeyPlace,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// `Authorization: Basic`.
    Basic,
    /// `Authorization: Bearer`.
    Bearer,
    /// OAuth 2, as far as a program can use it alone (client credentials); OpenID Connect.
    OAuth2 {
        /// Where tokens are given out, if the description says so.
        token_url: Option<String>,
    },
    /// Something else, such as a certificate.
    Other,
}

/// Where a key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// Into a header.
    Header,
    /// Into the query.
    Query,
    /// Into the header `Cookie`.
    Cookie,
}

/// A scheme that an operation wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the scheme.
    pub scheme: String,
    /// The scopes that a token has to have.
    pub scopes: Vec<String>,
}
