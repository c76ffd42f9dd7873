//! Credentials of a service: the manifest's secrets for the security schemes of its description.

use std::collections::{BTreeMap, HashMap};

use ::http::{HeaderName, HeaderValue, Request, Uri, header};
use bytes::Bytes;
use toolyard_core::{ErrorCode, SecretRedactor, ToolError};
use toolyard_net::auth::{self, SecretSource, UpstreamCredentials};
use toolyard_net::client::HttpClient;
use toolyard_openapi::{ApiKeyLocation, SecurityRequirement, SecurityScheme, percent_encoded};

use super::token::{TokenCache, TokenRequest};
use crate::http::credentials_error;

/// The manifest's credentials, by the name of their security scheme.
#[derive(Default)]
pub struct ServiceCredentials {
    /// Credentials by the name of their scheme.
    pub by_scheme: HashMap<String, OpenApiCredential>,
    /// Redactor that learns every secret read.
    pub secrets: SecretRedactor,
    tokens: TokenCache,
}

/// Credential for a security scheme.
pub enum OpenApiCredential {
    /// An API key, a token, or `user:password`.
    Secret(SecretSource),
    /// An OAuth 2.0 client (client credentials grant: RFC 6749, section 4.4).
    OAuthClient {
        /// Client identifier.
        id: String,
        /// Client secret.
        secret: SecretSource,
        /// Token endpoint, instead of the description's.
        token_url: Option<String>,
        /// Requested scopes, instead of those that the operation requires.
        scopes: Option<Vec<String>>,
    },
}

/// Cache keys of the access tokens that a request carries.
#[derive(Debug, Default)]
pub(super) struct AppliedTokens(Vec<String>);

impl ServiceCredentials {
    /// Creates credentials from those of the manifest.
    #[must_use]
    pub fn new(by_scheme: HashMap<String, OpenApiCredential>, secrets: SecretRedactor) -> Self {
        Self { by_scheme, secrets, tokens: TokenCache::default() }
    }

    /// Applies the first security alternative for which all credentials are configured. Without one, the request is
    /// sent unchanged.
    pub(super) async fn apply(
        &self,
        request: &mut Request<Bytes>,
        alternatives: &[Vec<SecurityRequirement>],
        schemes: &BTreeMap<String, SecurityScheme>,
        client: &HttpClient,
    ) -> Result<AppliedTokens, ToolError> {
        let has_all = |all: &&Vec<SecurityRequirement>| {
            !all.is_empty()
                && all
                    .iter()
                    .all(|one| self.by_scheme.contains_key(&one.scheme) && schemes.contains_key(&one.scheme))
        };
        let mut applied_tokens = AppliedTokens::default();
        for requirement in alternatives.iter().find(has_all).into_iter().flatten() {
            let (Some(scheme), Some(credential)) =
                (schemes.get(&requirement.scheme), self.by_scheme.get(&requirement.scheme))
            else {
                continue;
            };
            self.apply_scheme(request, scheme, credential, requirement, client, &mut applied_tokens).await?;
        }
        Ok(applied_tokens)
    }

    /// Removes a request's tokens from the cache. True if there was one.
    pub(super) fn forget(&self, applied_tokens: &AppliedTokens) -> bool {
        applied_tokens.0.iter().filter(|key| self.tokens.forget(key)).count() > 0
    }

    async fn apply_scheme(
        &self,
        request: &mut Request<Bytes>,
        scheme: &SecurityScheme,
        credential: &OpenApiCredential,
        requirement: &SecurityRequirement,
        client: &HttpClient,
        applied_tokens: &mut AppliedTokens,
    ) -> Result<(), ToolError> {
        match (scheme, credential) {
            (SecurityScheme::ApiKey { location, name }, OpenApiCredential::Secret(source)) => {
                let key = source.read(&self.secrets).await.map_err(credentials_error)?;
                apply_api_key(request, *location, name, &key)
            }
            (SecurityScheme::Basic, OpenApiCredential::Secret(source)) => {
                self.authorize(request, auth::HttpAuthScheme::Basic, source).await
            }
            (SecurityScheme::Other, OpenApiCredential::Secret(_)) => {
                let problem =
                    "The credentials of this tool cannot be used: its security scheme is not supported";
                Err(ToolError::new(ErrorCode::Unavailable, problem).unsent())
            }
            (_, OpenApiCredential::Secret(source)) => {
                self.authorize(request, auth::HttpAuthScheme::Bearer, source).await
            }
            (scheme, OpenApiCredential::OAuthClient { id, secret, token_url, scopes }) => {
                let described_url = match scheme {
                    SecurityScheme::OAuth2 { token_url } => token_url.as_deref(),
                    _ => None,
                };
                let no_token_url = "The credentials of this tool cannot be used: the token endpoint is \
                                unknown (set `tokenURL`)";
                let token_url = token_url.as_deref().or(described_url);
                let token_url =
                    token_url.ok_or_else(|| ToolError::new(ErrorCode::Unavailable, no_token_url).unsent())?;
                let scopes = scopes.as_ref().unwrap_or(&requirement.scopes);
                let secret = secret.read(&self.secrets).await.map_err(credentials_error)?;
                let token_request = TokenRequest {
                    token_url: token_url.to_owned(),
                    client_id: id.clone(),
                    client_secret: secret,
                    scopes: scopes.join(" "),
                };
                let token = self.tokens.get(&token_request, client, &self.secrets).await?;
                applied_tokens.0.push(token_request.cache_key());
                self.authorize(request, auth::HttpAuthScheme::Bearer, &SecretSource::Value(token)).await
            }
        }
    }

    async fn authorize(
        &self,
        request: &mut Request<Bytes>,
        scheme: auth::HttpAuthScheme,
        source: &SecretSource,
    ) -> Result<(), ToolError> {
        let source = SecretSource::Value(source.read(&self.secrets).await.map_err(credentials_error)?);
        let auth = UpstreamCredentials { scheme, source, secrets: self.secrets.clone() };
        request.headers_mut().insert(header::AUTHORIZATION, auth.header().await.map_err(credentials_error)?);
        Ok(())
    }
}

fn apply_api_key(
    request: &mut Request<Bytes>,
    location: ApiKeyLocation,
    name: &str,
    key: &str,
) -> Result<(), ToolError> {
    let unusable_key = || {
        ToolError::new(
            ErrorCode::Unavailable,
            "The credentials of this tool are not valid in their header, cookie or query parameter",
        )
        .unsent()
    };
    let sensitive = |text: String| -> Result<HeaderValue, ToolError> {
        let mut value = HeaderValue::try_from(text).map_err(|_| unusable_key())?;
        value.set_sensitive(true);
        Ok(value)
    };
    match location {
        ApiKeyLocation::Header => {
            let name = HeaderName::try_from(name).map_err(|_| unusable_key())?;
            request.headers_mut().insert(name, sensitive(key.to_owned())?);
        }
        ApiKeyLocation::Cookie => {
            let existing = request.headers().get(header::COOKIE).and_then(|value| value.to_str().ok());
            let prefix = existing.map(|before| format!("{before}; ")).unwrap_or_default();
            let cookie = sensitive(format!("{prefix}{name}={key}"))?;
            request.headers_mut().insert(header::COOKIE, cookie);
        }
        ApiKeyLocation::Query => {
            let separator =
                if request.uri().query().is_some_and(|query| !query.is_empty()) { "&" } else { "?" };
            let url = request.uri().to_string();
            let url = format!(
                "{}{separator}{}={}",
                url.trim_end_matches('?'),
                percent_encoded(name),
                percent_encoded(key)
            );
            *request.uri_mut() = url.parse::<Uri>().map_err(|_| unusable_key())?;
        }
    }
    Ok(())
}
