//! The client of OpenRouter's API, and the MCP server of its own that `toolyard openrouter-mcp` runs.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, header};
use http_body_util::Full;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use toolyard_agent::openrouter::{
    self, OpenRouterApi, OpenRouterError, OpenRouterResource, OpenRouterResponse,
};
use toolyard_core::SecretRedactor;
use toolyard_manifest::{CredentialSource, OpenRouterSettings, ProcessSettings};
use toolyard_net::auth::{HttpAuthScheme, UpstreamCredentials};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::{HttpClient, RequestError};
use toolyard_sdk::{RegisterError, Server};

use crate::build::credential_source;

/// Name of the server, by which RockBot recognises it.
const SERVER_NAME: &str = "rockbot-openrouter-mcp";

/// Maximum number of bytes that are read of the body of an error.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// A client of the API. It sends `GET` requests only.
pub(crate) struct OpenRouterClient {
    client: HttpClient,
    base: String,
    credentials: Option<UpstreamCredentials>,
    time: Duration,
    response_bytes: usize,
    permits: Semaphore,
    budget: ByteBudget,
}

/// The MCP server cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenRouterServerError {
    /// The system's root certificates cannot be read.
    #[error("cannot read the certificates of the system's authorities")]
    Tls(#[source] io::Error),
    /// The tools cannot be registered.
    #[error(transparent)]
    Register(#[from] RegisterError),
}

/// Returns an MCP server with the tools of OpenRouter.
///
/// # Errors
/// If the API is called with TLS and the system's root certificates cannot be read.
pub fn mcp_server(settings: &OpenRouterSettings) -> Result<Server, OpenRouterServerError> {
    let client = match settings.base_url.is_tls() {
        true => HttpClient::with_system_roots(),
        false => HttpClient::without_roots(),
    };
    let client = client.map_err(OpenRouterServerError::Tls)?;
    let key = settings.api_key.iter().filter_map(|key| match key {
        CredentialSource::Value(secret) => Some(secret.expose().to_owned()),
        CredentialSource::File(_) | CredentialSource::Key { .. } => None,
    });
    let (secrets, process) = (SecretRedactor::new(key), ProcessSettings::default());
    let api = OpenRouterClient::new(settings, &process, client, &secrets, ByteBudget::default());
    let server = Server::new(SERVER_NAME, env!("CARGO_PKG_VERSION")).title("OpenRouter");
    let api: Arc<dyn OpenRouterApi> = Arc::new(api);
    Ok(openrouter::add(server.omit_schema_dialect().refuse_unknown_arguments(), &api)?)
}

impl OpenRouterClient {
    /// Creates a client. `secrets` learns the key, and hides it in errors.
    pub(crate) fn new(
        settings: &OpenRouterSettings,
        process: &ProcessSettings,
        client: HttpClient,
        secrets: &SecretRedactor,
        budget: ByteBudget,
    ) -> Self {
        let credentials = settings.api_key.as_ref().map(|key| UpstreamCredentials {
            scheme: HttpAuthScheme::Bearer,
            source: credential_source(key, process),
            secrets: secrets.clone(),
        });
        Self {
            client,
            base: settings.base_url.uri().to_string().trim_end_matches('/').to_owned(),
            credentials,
            time: settings.timeout,
            response_bytes: settings.response_bytes,
            permits: Semaphore::new(settings.concurrent),
            budget,
        }
    }

    async fn request(&self, resource: &OpenRouterResource) -> Result<Request<Full<Bytes>>, OpenRouterError> {
        let no_key = |cause: Box<dyn std::error::Error + Send + Sync>| OpenRouterError::NoKey(cause);
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(format!("{}/{}", self.base, resource.path()))
            .header(header::ACCEPT, "application/json");
        if let Some(credentials) = &self.credentials {
            let value = credentials.header().await.map_err(|error| no_key(error.into()))?;
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body(Full::default()).map_err(|error| no_key(error.into()))
    }

    async fn response(&self, resource: &OpenRouterResource) -> Result<OpenRouterResponse, OpenRouterError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let response = self.client.send(self.request(resource).await?).await.map_err(unreachable)?;
        let (head, body) = response.into_parts();
        let body = match head.status.is_success() {
            true => body::read_within(body, self.response_bytes, &self.budget).await.map_err(broken)?,
            false => body::read_start(body, MAX_ERROR_BYTES).await.map_err(broken)?.0,
        };
        Ok(OpenRouterResponse {
            status: head.status.as_u16(),
            body: self.without_secrets(body),
            retry_after: retry_after_seconds(&head.headers),
        })
    }

    /// Returns a body without the key, which a proxy may repeat.
    fn without_secrets(&self, body: Bytes) -> Bytes {
        let Some(credentials) = &self.credentials else { return body };
        let text = String::from_utf8_lossy(&body);
        match credentials.secrets.hide(&text) {
            Cow::Borrowed(_) => body,
            Cow::Owned(hidden) => hidden.into(),
        }
    }
}

impl OpenRouterApi for OpenRouterClient {
    fn get<'a>(
        &'a self,
        resource: &'a OpenRouterResource,
    ) -> BoxFuture<'a, Result<OpenRouterResponse, OpenRouterError>> {
        let response = timeout(self.time, self.response(resource));
        response.map(|ended| ended.unwrap_or(Err(OpenRouterError::Timeout(self.time)))).boxed()
    }
}

fn unreachable(error: RequestError) -> OpenRouterError {
    OpenRouterError::Unreachable { reason: error.reason(), cause: error.into() }
}

fn broken(error: BodyReadError) -> OpenRouterError {
    match error {
        BodyReadError::TooLarge(limit) => OpenRouterError::TooLarge(limit),
        BodyReadError::UsedUp(..) | BodyReadError::Stalled => OpenRouterError::NoMemory,
        BodyReadError::Broken(_) => {
            OpenRouterError::Unreachable { reason: "connection broken", cause: error.into() }
        }
    }
}

/// Returns `Retry-After` in seconds; OpenRouter sends no dates there.
fn retry_after_seconds(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}
