//! A handler of the type `openapi`: each operation of a service is a tool.

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, Method};
use serde_json::Value;

use super::{CredentialSource, HttpRetry, RequestAuth, SecretString};
use crate::formats::EndpointUrl;

/// A service and the location of its description.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiHandler {
    /// `specURL` or `spec`: the description, OpenAPI 2 or 3.
    pub spec: OpenApiSpec,
    /// `baseURL`: the base URL of requests. Default: that of the description.
    pub base_url: Option<EndpointUrl>,
    /// `operationFilter` and `filter`: the operations that become tools.
    pub filter: OperationFilter,
    /// `headers`: headers of every request, including the one for the description.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `auth`, or `openAPIConfig.authType` and the related fields.
    pub auth: Option<RequestAuth>,
    /// `credentials`: the credentials of the service, by the names of its security schemes.
    pub credentials: Vec<(String, SchemeCredential)>,
    /// `serverVariables`: values of the variables in the server URL, instead of their defaults.
    pub server_variables: Vec<(String, SecretString)>,
    /// `refresh`: time between two reads of the description. Default: 5 min; `None`: on request only.
    pub refresh: Option<Duration>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
}

/// The location of a description.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenApiSpec {
    /// `specURL`: a URL.
    Url(EndpointUrl),
    /// `specURL` with `file:`: a file, which exists when the manifest is read.
    File(PathBuf),
    /// `spec`: in the manifest. An object is the description itself; a string is its text, in JSON or YAML.
    Inline(Value),
}

/// The operations that become tools: those that match every non-empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// `operationFilter`: by `operationId` or tool name.
    pub operations: Vec<String>,
    /// `filter.tags`: by one of their tags.
    pub tags: Vec<String>,
    /// `filter.methods`: by method.
    pub methods: Vec<Method>,
    /// `filter.paths`: by path. `*` matches anything but a slash, `**` matches anything.
    pub paths: Vec<String>,
}

/// The credential for a security scheme of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeCredential {
    /// The key, the token, or `user:password`.
    Secret(CredentialSource),
    /// The client that requests tokens.
    OAuth(OAuthClient),
}

/// An OAuth 2 client that acts for itself, not for a user (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// `clientId`: the client id, which is not secret.
    pub id: String,
    /// `clientSecret` or `clientSecretRef`.
    pub secret: CredentialSource,
    /// `tokenURL`: the token endpoint. Default: that of the description.
    pub token_url: Option<EndpointUrl>,
    /// `scopes`: the scopes to request. Default: those that the operations require.
    pub scopes: Vec<String>,
}

// === impl OpenApiSpec ===

impl OpenApiSpec {
    /// The location for display: a URL without its query, the path of a file, or `inline`.
    pub(super) fn display_location(&self) -> String {
        match self {
            Self::Url(endpoint) => endpoint.display_url(),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Inline(_) => "inline".to_owned(),
        }
    }
}
