//! A handler of the type `openapi`: each operation of a described service is a tool.

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, Method};
use serde_json::Value;

use super::{Auth, Credential, HttpRetry, Secret};
use crate::forms::Endpoint;

/// A service, and where its description is.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenApiHandler {
    /// `specURL` or `spec`: the description, OpenAPI 2 or 3.
    pub spec: OpenApiSpec,
    /// `baseURL`: where requests go, if not where the description says.
    pub base_url: Option<Endpoint>,
    /// `operationFilter` and `filter`: which operations become tools.
    pub filter: OperationFilter,
    /// `headers`: what every request carries, the one for the description too.
    pub headers: Vec<(HeaderName, Secret)>,
    /// `auth`, or `openAPIConfig.authType` and what belongs to it.
    pub auth: Option<Auth>,
    /// `credentials`: what opens the service, by the names that the description has for the ways to say who asks.
    pub credentials: Vec<(String, SchemeCredential)>,
    /// `serverVariables`: values of the variables in the URL of the server, in the place of their defaults.
    pub server_variables: Vec<(String, Secret)>,
    /// `refresh`: how often the description is read again. 5 min; `None`: on request only.
    pub refresh: Option<Duration>,
    /// `retryPolicy`, or what `retries` stands for.
    pub retry: HttpRetry,
}

/// Where a description is.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenApiSpec {
    /// `specURL`: at a URL.
    Url(Endpoint),
    /// `specURL` that begins with `file:`: in a file, which is there when the manifest is read.
    File(PathBuf),
    /// `spec`: in the manifest. An object is the description itself; a string is the text of one, in JSON or YAML.
    Inline(Value),
}

/// Which operations become tools: those that every list lets through that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// `operationFilter`: by `operationId`, or by the name of the tool.
    pub operations: Vec<String>,
    /// `filter.tags`: by one of their tags.
    pub tags: Vec<String>,
    /// `filter.methods`: by method.
    pub methods: Vec<Method>,
    /// `filter.paths`: by path. `*` stands for anything but a slash, `**` for anything.
    pub paths: Vec<String>,
}

/// What a security scheme of a description wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeCredential {
    /// The key, the token, or `user:password`.
    Secret(Credential),
    /// What tokens are asked for with.
    OAuth(OAuthClient),
}

/// A program that OAuth 2 knows by itself, not for a user (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// `clientId`: its name, which is no secret.
    pub id: String,
    /// `clientSecret` or `clientSecretRef`.
    pub secret: Credential,
    /// `tokenURL`: where tokens are given out, if not where the description says.
    pub token_url: Option<Endpoint>,
    /// `scopes`: what tokens are asked for; what the operations want unless set.
    pub scopes: Vec<String>,
}

// === impl OpenApiSpec ===

impl OpenApiSpec {
    /// Where it is, for people: a URL without its query, the path of a file, or nothing but that it is in the manifest.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Url(endpoint) => endpoint.shown(),
            Self::File(path) => format!("file:{}", path.display()),
            Self::Inline(_) => "inline".to_owned(),
        }
    }
}
