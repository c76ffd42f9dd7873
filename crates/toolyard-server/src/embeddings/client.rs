//! A client of an OpenAI-compatible embeddings endpoint.

use std::io;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde_json::json;
use toolyard_agent::search::{TextEmbedder, TextEmbedderError};
use toolyard_manifest::EmbeddingSettings;
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::{HttpClient, RequestError};
use toolyard_rank::{EmbeddingError, EmbeddingVector, parse_embeddings, response_limit};

use crate::openai_api;

/// A client of a model that computes embeddings.
pub(super) struct EmbeddingClient {
    client: HttpClient,
    url: Uri,
    model: String,
    bearer: Option<HeaderValue>,
    dimensions: Option<usize>,
}

/// An error of the endpoint. It does not repeat its response, which may contain anything.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbeddingRequestError {
    /// The endpoint cannot be reached.
    #[error("cannot reach the embedding endpoint: {}", .0.reason())]
    Request(#[from] RequestError),
    /// The endpoint returned an error status.
    #[error("the embedding endpoint answered with status {0}")]
    Status(StatusCode),
    /// The body ended early or is too long.
    #[error("cannot read the response of the embedding endpoint")]
    Body(#[from] BodyReadError),
    /// The body is not what was asked for.
    #[error("the response of the embedding endpoint is unusable: {0}")]
    Response(#[from] EmbeddingError),
    /// The request cannot be built.
    #[error("cannot build the request to the embedding endpoint")]
    Unaskable(#[from] http::Error),
}

impl EmbeddingClient {
    /// Creates a client of the configured model.
    ///
    /// # Errors
    /// If the system's root certificates are needed and cannot be read, or the URL becomes invalid with its path.
    pub(super) fn new(settings: &EmbeddingSettings) -> io::Result<Self> {
        let client = openai_api::client(&settings.base_url)?;
        let url = openai_api::url(settings.base_url.uri(), "embeddings").map_err(io::Error::other)?;
        let bearer =
            settings.api_key.as_ref().map(openai_api::bearer).transpose().map_err(io::Error::other)?;
        Ok(Self { client, url, model: settings.model.clone(), bearer, dimensions: settings.dimensions })
    }

    async fn vectors(&self, texts: &[&str]) -> Result<Vec<EmbeddingVector>, EmbeddingRequestError> {
        let response = self.client.send(self.request(texts)?).await?;
        if !response.status().is_success() {
            return Err(EmbeddingRequestError::Status(response.status()));
        }
        let limit = response_limit(texts.len(), self.dimensions);
        let body = body::read(response.into_body(), limit).await?;
        Ok(parse_embeddings(&body, texts.len(), self.dimensions)?)
    }

    /// Uses only members that every endpoint supports, unless a number of dimensions is configured.
    fn request(&self, texts: &[&str]) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut body = json!({"model": self.model, "input": texts});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        request.body(Full::new(body.to_string().into()))
    }
}

impl TextEmbedder for EmbeddingClient {
    fn embed<'a>(
        &'a self,
        texts: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<EmbeddingVector>, TextEmbedderError>> {
        Box::pin(async move {
            self.vectors(texts).await.map_err(|error| match &error {
                // Statuses for a text that is too long for the model. For other reasons, all texts are refused.
                EmbeddingRequestError::Status(
                    StatusCode::BAD_REQUEST
                    | StatusCode::PAYLOAD_TOO_LARGE
                    | StatusCode::UNPROCESSABLE_ENTITY,
                ) => TextEmbedderError::Refused(error.into()),
                _ => TextEmbedderError::Failed(error.into()),
            })
        })
    }
}
