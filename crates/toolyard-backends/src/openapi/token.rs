//! Tokens of OAuth 2, given out to a client for itself (RFC 6749, section 4.4), and kept for as long as they are good.

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
use toolyard_core::{Code, Secrets, ToolError};
use toolyard_net::auth::{Auth, Scheme, Source};
use toolyard_net::body;
use toolyard_net::client::Client;
use toolyard_openapi::percent_encoded;

/// How long a token is used whose server does not say for how long it is good.
const LIFE: Duration = Duration::from_secs(300);

/// How much earlier than it has to be a token is replaced: requests take a while.
const MARGIN: Duration = Duration::from_secs(20);

/// The longest that a token is waited for.
const PATIENCE: Duration = Duration::from_secs(15);

/// The largest answer of a server that gives out tokens, in bytes.
const LARGEST: usize = 64 * 1024;

/// How many tokens are kept: one for each set of scopes.
const MOST: usize = 256;

/// What a token is asked for with.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) token_url: String,
    pub(super) id: String,
    pub(super) secret: String,
    /// With blanks between them.
    pub(super) scopes: String,
}

/// The tokens that are good now, and those that are being asked for.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, Asked>>);

type Asked = Shared<BoxFuture<'static, Result<Token, Refused>>>;

#[derive(Clone)]
struct Token {
    text: String,
    until: Instant,
}

/// Why there is no token. It says nothing that the server said, which may repeat what it was sent.
#[derive(Debug, Clone, thiserror::Error)]
enum Refused {
    #[error("the server that gives out tokens cannot be reached")]
    Unreachable,
    #[error("the server that gives out tokens answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("the server that gives out tokens gave none")]
    NoToken,
}

impl Grant {
    /// What is the same for the same token.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.token_url, self.id, self.scopes)
    }
}

impl Tokens {
    /// A token that is good, asked for once however many calls want it.
    pub(super) async fn get(
        &self,
        grant: &Grant,
        client: &Client,
        secrets: &Secrets,
    ) -> Result<String, ToolError> {
        let key = grant.key();
        // One that is kept may be over; one that was just asked for is not.
        for _ in 0..2 {
            let asked = self.asked(&key, grant, client, secrets);
            match asked.await {
                Ok(token) if token.until > Instant::now() => return Ok(token.text),
                Ok(_) => {
                    self.forget(&key);
                }
                Err(refused) => {
                    self.forget(&key);
                    let at = grant.token_url.split('?').next().unwrap_or_default();
                    tracing::warn!(at, "no token: {refused}");
                    return Err(no_token().caused_by(refused));
                }
            }
        }
        Err(no_token())
    }

    /// Forgets a token. Says whether there was one.
    pub(super) fn forget(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).is_some()
    }

    fn asked(&self, key: &str, grant: &Grant, client: &Client, secrets: &Secrets) -> Asked {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= MOST {
            tokens.clear();
        }
        let ask = || {
            let (grant, client, secrets) = (grant.clone(), client.clone(), secrets.clone());
            async move { ask(&grant, &client, &secrets).await }.boxed().shared()
        };
        tokens.entry(key.to_owned()).or_insert_with(ask).clone()
    }
}

fn no_token() -> ToolError {
    ToolError::new(Code::Unavailable, "The credentials of this tool are not accepted: there is no token")
        .unsent()
}

/// Asks for a token, as all servers have to understand it; of those that do not, in the other way (section 2.3.1).
async fn ask(grant: &Grant, client: &Client, secrets: &Secrets) -> Result<Token, Refused> {
    let mut form = "grant_type=client_credentials".to_owned();
    if !grant.scopes.is_empty() {
        form.extend(["&scope=", &percent_encoded(&grant.scopes)]);
    }
    let id_and_secret = format!("{}:{}", percent_encoded(&grant.id), percent_encoded(&grant.secret));
    let basic =
        Auth { scheme: Scheme::Basic, source: Source::Value(id_and_secret), secrets: secrets.clone() };
    let basic = basic.header().await.map_err(|_| Refused::NoToken)?;
    let answer = match send(grant, &form, Some(basic), client).await {
        Err(Refused::Status(StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED)) => {
            let secret = percent_encoded(&grant.secret);
            let form = format!("{form}&client_id={}&client_secret={secret}", percent_encoded(&grant.id));
            send(grant, &form, None, client).await?
        }
        answer => answer?,
    };
    let text = answer["access_token"].as_str().ok_or(Refused::NoToken)?.to_owned();
    secrets.learn(&text);
    let seconds = answer["expires_in"].as_u64().or_else(|| answer["expires_in"].as_str()?.parse().ok());
    let life = seconds.map_or(LIFE, Duration::from_secs);
    // Even the shortest is good for the call that it was asked for.
    let life =
        life.saturating_sub(MARGIN).max(Duration::from_secs(1)).min(Duration::from_secs(7 * 24 * 3600));
    Ok(Token { text, until: Instant::now() + life })
}

async fn send(
    grant: &Grant,
    form: &str,
    basic: Option<HeaderValue>,
    client: &Client,
) -> Result<Value, Refused> {
    let mut request = Request::new(Full::new(Bytes::from(form.to_owned())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = grant.token_url.parse().map_err(|_| Refused::Unreachable)?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.extend(basic.map(|basic| (header::AUTHORIZATION, basic)));
    let exchange = async {
        let response = client.send(request).await.map_err(|_| Refused::Unreachable)?;
        if !response.status().is_success() {
            return Err(Refused::Status(response.status()));
        }
        body::read(response.into_body(), LARGEST).await.map_err(|_| Refused::NoToken)
    };
    let body = timeout(PATIENCE, exchange).await.map_err(|_| Refused::Unreachable)??;
    serde_json::from_slice(&body).map_err(|_| Refused::NoToken)
}
