//! OAuth 2.0 access tokens of the client credentials grant (RFC 6749, section 4.4), cached until they expire.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use toolyard_core::{ErrorCode, SecretRedactor, ToolError};
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};
use toolyard_net::body;
use toolyard_net::client::HttpClient;
use toolyard_openapi::percent_encoded;

/// Lifetime of a token without `expires_in`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// Time before its expiry at which a token is replaced, for requests in flight.
const EXPIRY_MARGIN: Duration = Duration::from_secs(20);

/// Timeout of a token request.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum size of a token response, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Maximum number of cached tokens: one for each set of scopes.
const MAX_CACHED_TOKENS: usize = 256;

/// Parameters of a token request.
#[derive(Clone)]
pub(super) struct TokenRequest {
    pub(super) token_url: String,
    pub(super) client_id: String,
    pub(super) client_secret: String,
    /// Space-separated scopes.
    pub(super) scopes: String,
}

/// Valid tokens and pending token requests.
#[derive(Default)]
pub(super) struct TokenCache(Mutex<HashMap<String, PendingToken>>);

type PendingToken = Shared<BoxFuture<'static, Result<AccessToken, TokenError>>>;

#[derive(Clone)]
struct AccessToken {
    text: String,
    expires_at: Instant,
}

/// The reason why no token was issued. It omits the response, which may repeat the client secret.
#[derive(Debug, Clone, thiserror::Error)]
enum TokenError {
    #[error("the token endpoint cannot be reached")]
    Unreachable,
    #[error("the token endpoint answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("the token endpoint returned no access token")]
    NoToken,
}

impl TokenRequest {
    /// Key of the token in the cache.
    pub(super) fn cache_key(&self) -> String {
        format!("{} {} {}", self.token_url, self.client_id, self.scopes)
    }
}

impl TokenCache {
    /// Returns a valid token. Concurrent calls share one token request.
    pub(super) async fn get(
        &self,
        request: &TokenRequest,
        client: &HttpClient,
        secrets: &SecretRedactor,
    ) -> Result<String, ToolError> {
        let key = request.cache_key();
        // A cached token may have expired; a new one has not.
        for _ in 0..2 {
            let pending = self.pending(&key, request, client, secrets);
            match pending.await {
                Ok(token) if token.expires_at > Instant::now() => return Ok(token.text),
                Ok(_) => {
                    self.forget(&key);
                }
                Err(error) => {
                    self.forget(&key);
                    let token_url = request.token_url.split('?').next().unwrap_or_default();
                    tracing::warn!(token_url, "no access token: {error}");
                    return Err(no_token().caused_by(error));
                }
            }
        }
        Err(no_token())
    }

    /// Removes a token from the cache. True if there was one.
    pub(super) fn forget(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).is_some()
    }

    fn pending(
        &self,
        key: &str,
        request: &TokenRequest,
        client: &HttpClient,
        secrets: &SecretRedactor,
    ) -> PendingToken {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MAX_CACHED_TOKENS {
            tokens.clear();
        }
        let request_token = || {
            let (token_request, client, secrets) = (request.clone(), client.clone(), secrets.clone());
            async move { request_token(&token_request, &client, &secrets).await }.boxed().shared()
        };
        tokens.entry(key.to_owned()).or_insert_with(request_token).clone()
    }
}

fn no_token() -> ToolError {
    ToolError::new(
        ErrorCode::Unavailable,
        "The credentials of this tool are not accepted: no access token was issued",
    )
    .unsent()
}

/// Requests a token with HTTP Basic authentication, and again with the form parameters if the server refuses that (RFC
/// 6749, section 2.3.1).
async fn request_token(
    token_request: &TokenRequest,
    client: &HttpClient,
    secrets: &SecretRedactor,
) -> Result<AccessToken, TokenError> {
    let mut form = "grant_type=client_credentials".to_owned();
    if !token_request.scopes.is_empty() {
        form.extend(["&scope=", &percent_encoded(&token_request.scopes)]);
    }
    let id_and_secret = format!(
        "{}:{}",
        percent_encoded(&token_request.client_id),
        percent_encoded(&token_request.client_secret)
    );
    let basic = UpstreamCredentials {
        scheme: HttpAuthScheme::Basic,
        source: SecretSource::Value(id_and_secret),
        secrets: secrets.clone(),
    };
    let basic = basic.header().await.map_err(|_| TokenError::NoToken)?;
    let answer = match post_form(token_request, &form, Some(basic), client).await {
        Err(TokenError::Status(StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED)) => {
            let secret = percent_encoded(&token_request.client_secret);
            let form = format!(
                "{form}&client_id={}&client_secret={secret}",
                percent_encoded(&token_request.client_id)
            );
            post_form(token_request, &form, None, client).await?
        }
        answer => answer?,
    };
    let text = answer["access_token"].as_str().ok_or(TokenError::NoToken)?.to_owned();
    secrets.learn(&text);
    let seconds = answer["expires_in"].as_u64().or_else(|| answer["expires_in"].as_str()?.parse().ok());
    let lifetime = seconds.map_or(DEFAULT_LIFETIME, Duration::from_secs);
    // Even the shortest token is valid for the call that requested it.
    let lifetime = lifetime
        .saturating_sub(EXPIRY_MARGIN)
        .max(Duration::from_secs(1))
        .min(Duration::from_secs(7 * 24 * 3600));
    Ok(AccessToken { text, expires_at: Instant::now() + lifetime })
}

async fn post_form(
    token_request: &TokenRequest,
    form: &str,
    basic: Option<HeaderValue>,
    client: &HttpClient,
) -> Result<Value, TokenError> {
    let mut request = Request::new(Full::new(Bytes::from(form.to_owned())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = token_request.token_url.parse().map_err(|_| TokenError::Unreachable)?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.extend(basic.map(|basic| (header::AUTHORIZATION, basic)));
    let exchange = async {
        let response = client.send(request).await.map_err(|_| TokenError::Unreachable)?;
        if !response.status().is_success() {
            return Err(TokenError::Status(response.status()));
        }
        body::read(response.into_body(), MAX_RESPONSE_BYTES).await.map_err(|_| TokenError::NoToken)
    };
    let body = timeout(TOKEN_TIMEOUT, exchange).await.map_err(|_| TokenError::Unreachable)??;
    serde_json::from_slice(&body).map_err(|_| TokenError::NoToken)
}
