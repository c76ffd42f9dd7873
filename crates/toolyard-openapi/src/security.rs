//! Security schemes and requirements of a service.

/// A security scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// An API key.
    ApiKey {
        /// Location in a request.
        location: ApiKeyLocation,
        /// Name of the header, parameter or cookie.
        name: String,
    },
    /// `Authorization: Basic`.
    Basic,
    /// `Authorization: Bearer`.
    Bearer,
    /// OAuth 2 with the client credentials flow, or OpenID Connect.
    OAuth2 {
        /// Token endpoint, if the description has one.
        token_url: Option<String>,
    },
    /// Another scheme, such as client certificates.
    Other,
}

/// The location of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyLocation {
    /// In a header.
    Header,
    /// In the query.
    Query,
    /// In the header `Cookie`.
    Cookie,
}

/// A scheme that an operation requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityRequirement {
    /// Name of the scheme.
    pub scheme: String,
    /// Required scopes of a token.
    pub scopes: Vec<String>,
}
