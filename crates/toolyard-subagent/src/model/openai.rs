//! A client of chat completions as OpenAI defined them: streamed, and repeated if the endpoint is overloaded.

mod reply;

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::{HttpClient, RequestError, ResponseBody};
use toolyard_net::header_values::{EVENT_STREAM, content_is};
use toolyard_net::sse::SseDecoder;

use self::reply::{ReplyBuilder, WholeReply};
use super::{ChatMessage, ChatModel, ChatReply, ChatRequest, ChatTool, MAX_REPLY_BYTES, ModelError};

/// Number of attempts of one request.
const ATTEMPTS: u32 = 4;

/// Time before the second attempt; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Maximum time that an endpoint may ask to wait (`Retry-After`).
const MAX_DELAY: Duration = Duration::from_secs(30);

/// A client of one model of an endpoint.
pub struct OpenAiModel {
    /// Client of the endpoint.
    pub client: HttpClient,
    /// URL of the chat completions.
    pub url: Uri,
    /// Id of the model.
    pub model: String,
    /// Header with the key, if there is one.
    pub bearer: Option<HeaderValue>,
    /// Maximum time without any part of a reply.
    pub idle_time: Duration,
}

/// A failed attempt, and the time that the endpoint asks to wait.
struct FailedAttempt {
    error: ModelError,
    delay: Option<Duration>,
}

impl ChatModel for OpenAiModel {
    fn complete<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        let body = Bytes::from(self.body(request).to_string());
        async move {
            let mut delay = FIRST_DELAY;
            for _ in 1..ATTEMPTS {
                match self.attempt(body.clone()).await {
                    Ok(reply) => return Ok(reply),
                    Err(failed) if failed.error.is_temporary => {
                        sleep(failed.delay.unwrap_or(delay)).await;
                        delay *= 2;
                    }
                    Err(failed) => return Err(failed.error),
                }
            }
            self.attempt(body).await.map_err(|failed| failed.error)
        }
        .boxed()
    }
}

impl OpenAiModel {
    fn body(&self, request: ChatRequest<'_>) -> Value {
        let messages: Vec<_> = request.messages.iter().map(message).collect();
        let mut body = json!({
            "model": self.model,
            "messages": messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // Some endpoints refuse an empty list.
        if !request.tools.is_empty() {
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        body
    }

    async fn attempt(&self, body: Bytes) -> Result<ChatReply, FailedAttempt> {
        let request = self.request(body).map_err(|error| ModelError::new("invalid request").caused_by(error));
        let sent = timeout(self.idle_time, self.client.send(request?)).await.map_err(|_| self.too_slow())?;
        let response = sent.map_err(unreachable)?;
        if !response.status().is_success() {
            return Err(refusal(&response));
        }
        match content_is(response.headers(), EVENT_STREAM) {
            true => Ok(self.streamed(response).await?),
            // An endpoint that does not stream.
            false => {
                let whole = body::read(response.into_body(), MAX_REPLY_BYTES);
                let text = timeout(self.idle_time, whole).await.map_err(|_| self.too_slow())?;
                Ok(WholeReply::parse(&text.map_err(broken)?)?)
            }
        }
    }

    /// Reads a streamed reply. It is not repeated if it breaks off: the endpoint has been paid for it.
    async fn streamed(&self, response: Response<ResponseBody>) -> Result<ChatReply, ModelError> {
        let (mut body, mut events) = (response.into_body(), SseDecoder::new(MAX_REPLY_BYTES));
        let mut reply = ReplyBuilder::new(MAX_REPLY_BYTES);
        while let Some(data) = timeout(self.idle_time, body::next_data(&mut body))
            .await
            .map_err(|_| self.too_slow())?
            .map_err(broken)?
        {
            events.push(&data);
            while let Some(event) = events
                .next_event()
                .map_err(|error| ModelError::new("the reply is too long").caused_by(error))?
            {
                if &*event.data == b"[DONE]" {
                    return reply.finish();
                }
                reply.add(&event.data)?;
            }
        }
        reply.finish()
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let request = Request::builder().method(Method::POST).uri(self.url.clone());
        let mut request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "text/event-stream, application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header(header::AUTHORIZATION, bearer);
        }
        request.body(Full::new(body))
    }

    fn too_slow(&self) -> ModelError {
        ModelError::new(format!("the language model sent nothing for {} s", self.idle_time.as_secs()))
    }
}

impl OpenAiModel {
    /// Creates a client of the model of an endpoint whose certificates the system trusts.
    ///
    /// # Errors
    /// If the system's root certificates are needed and cannot be read.
    pub fn client_of(is_tls: bool) -> io::Result<HttpClient> {
        if is_tls { HttpClient::with_system_roots() } else { HttpClient::without_roots() }
    }
}

impl From<ModelError> for FailedAttempt {
    fn from(error: ModelError) -> Self {
        Self { error, delay: None }
    }
}

fn unreachable(error: RequestError) -> ModelError {
    ModelError::new(format!("the language model cannot be reached: {}", error.reason()))
        .temporary()
        .caused_by(error)
}

fn broken(error: BodyReadError) -> ModelError {
    ModelError::new("the reply of the language model broke off").caused_by(error)
}

fn refusal(response: &Response<ResponseBody>) -> FailedAttempt {
    let status = response.status();
    let error = ModelError::new(format!("the language model answered with status {}", status.as_u16()));
    let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let error = if is_temporary { error.temporary() } else { error };
    let seconds =
        response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    FailedAttempt { error, delay: seconds.map(|seconds| Duration::from_secs(seconds).min(MAX_DELAY)) }
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System(text) => json!({"role": "system", "content": text}),
        ChatMessage::User(text) => json!({"role": "user", "content": text}),
        ChatMessage::ToolResult { request, text } => {
            json!({"role": "tool", "tool_call_id": request, "content": text})
        }
        ChatMessage::Model { text, requests } => {
            let mut message = json!({"role": "assistant", "content": text});
            if !requests.is_empty() {
                let calls = requests.iter().map(|request| {
                    let function = json!({"name": request.name, "arguments": request.arguments});
                    json!({"id": request.id, "type": "function", "function": function})
                });
                message["tool_calls"] = calls.collect();
            }
            message
        }
    }
}

fn tool(tool: &ChatTool) -> Value {
    let ChatTool { name, description, parameters } = tool;
    let function = json!({"name": name, "description": description, "parameters": parameters});
    json!({"type": "function", "function": function})
}
