//! A client of an OpenAI-compatible chat completions endpoint.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use toolyard_manifest::LlmSettings;
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::{HttpClient, RequestError};

use crate::openai_api;

/// Maximum bytes of a response. A summary is far shorter, but some models include their reasoning.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// A client of a language model.
pub struct ChatClient {
    client: HttpClient,
    url: Uri,
    /// Id of the model.
    pub model: String,
    bearer: Option<HeaderValue>,
    time: Duration,
}

/// An error of the language model. It does not repeat the endpoint's response, which may contain anything.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The endpoint cannot be reached.
    #[error("cannot reach the language model")]
    Request(#[from] RequestError),
    /// The request timed out.
    #[error("the language model did not answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// The endpoint returned an error status.
    #[error("the language model answered with status {0}")]
    Status(StatusCode),
    /// the body ended early or is too long.
    #[error("cannot read the response of the language model")]
    Body(#[from] BodyReadError),
    /// The body is not a chat completion.
    #[error("the response of the language model is not a chat completion")]
    Answer(#[from] serde_json::Error),
    /// The completion has no text.
    #[error("the response of the language model has no text")]
    Empty,
    /// The request cannot be built.
    #[error("cannot build the request to the language model")]
    Unaskable(#[from] http::Error),
}

/// The members of a response that are used.
#[derive(Deserialize)]
struct ChatCompletion {
    #[serde(default)]
    choices: Vec<ChatChoice>,
}

#[derive(Deserialize)]
struct ChatChoice {
    message: ChatMessage,
}

#[derive(Deserialize)]
struct ChatMessage {
    #[serde(default)]
    content: Option<String>,
}

impl ChatClient {
    /// Creates a client of the configured model.
    ///
    /// # Errors
    /// If the system's root certificates are needed and cannot be read, or the URL becomes invalid with its path.
    pub fn new(llm: &LlmSettings) -> io::Result<Self> {
        let client = openai_api::client(&llm.base_url)?;
        let url = openai_api::url(llm.base_url.uri(), "chat/completions").map_err(io::Error::other)?;
        let bearer = llm.api_key.as_ref().map(openai_api::bearer).transpose().map_err(io::Error::other)?;
        Ok(Self { client, url, model: llm.model.clone(), bearer, time: llm.timeout })
    }

    /// Requests one completion.
    ///
    /// # Errors
    /// If there is no completion with text.
    pub async fn ask(&self, task: &str, question: &str) -> Result<String, ChatError> {
        timeout(self.time, self.answer(task, question)).await.map_err(|_| ChatError::TooSlow(self.time))?
    }

    async fn answer(&self, task: &str, question: &str) -> Result<String, ChatError> {
        let response = self.client.send(self.request(task, question)?).await?;
        if !response.status().is_success() {
            return Err(ChatError::Status(response.status()));
        }
        let text = body::read(response.into_body(), MAX_RESPONSE_BYTES).await?;
        let completion: ChatCompletion = serde_json::from_slice(&text)?;
        let answer = completion.choices.into_iter().next().and_then(|choice| choice.message.content);
        answer.ok_or(ChatError::Empty)
    }

    /// Uses only members that every endpoint supports. Some refuse limits and temperatures.
    fn request(&self, task: &str, question: &str) -> Result<Request<Full<Bytes>>, http::Error> {
        let body = json!({
            "model": self.model,
            "messages": [{"role": "system", "content": task}, {"role": "user", "content": question}],
        });
        let request = Request::builder().method(Method::POST).uri(self.url.clone());
        let mut request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        request.body(Full::new(body.to_string().into()))
    }
}
