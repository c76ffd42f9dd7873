//! A language model behind an endpoint that speaks as OpenAI's chat completions do.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::uri::InvalidUri;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use toolyard_manifest::{Llm, Secret};
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client, RequestError};

/// So much of a response is read, in bytes. A sentence is far shorter, but some models say what they thought, too.
const LONGEST: usize = 1 << 20;

/// A language model that can be asked.
pub struct Chat {
    client: Client,
    url: Uri,
    /// What it is called.
    pub model: String,
    bearer: Option<HeaderValue>,
    time: Duration,
}

/// Why a model does not answer. It does not repeat what the endpoint says, which may be anything.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// It cannot be reached.
    #[error("the language model cannot be reached")]
    Request(#[from] RequestError),
    /// It takes too long.
    #[error("the language model did not answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    /// It answers with a failure.
    #[error("the language model answered with status {0}")]
    Status(StatusCode),
    /// Its answer broke off, or is too long.
    #[error("the answer of the language model cannot be read")]
    Body(#[from] ReadError),
    /// Its answer is none of a chat.
    #[error("the answer of the language model is no chat completion")]
    Answer(#[from] serde_json::Error),
    /// Its answer has no text.
    #[error("the answer of the language model has no text")]
    Empty,
    /// It cannot be asked.
    #[error("the language model cannot be asked")]
    Unaskable(#[from] http::Error),
}

/// A response, as far as it is looked at.
#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
}

impl Chat {
    /// The model of a manifest.
    ///
    /// # Errors
    /// When the system's root certificates are needed and cannot be read, or its URL cannot be made longer.
    pub fn new(llm: &Llm) -> io::Result<Self> {
        let is_tls = llm.base_url.is_tls();
        let client = if is_tls { Client::with_system_roots()? } else { Client::without_roots()? };
        let url = url(llm.base_url.uri()).map_err(io::Error::other)?;
        let bearer = llm.api_key.as_ref().map(bearer).transpose().map_err(io::Error::other)?;
        Ok(Self { client, url, model: llm.model.clone(), bearer, time: llm.timeout })
    }

    /// Asks for one text.
    ///
    /// # Errors
    /// When there is none.
    pub async fn ask(&self, task: &str, question: &str) -> Result<String, ChatError> {
        timeout(self.time, self.answer(task, question)).await.map_err(|_| ChatError::TooSlow(self.time))?
    }

    async fn answer(&self, task: &str, question: &str) -> Result<String, ChatError> {
        let response = self.client.send(self.request(task, question)?).await?;
        if !response.status().is_success() {
            return Err(ChatError::Status(response.status()));
        }
        let text = body::read(response.into_body(), LONGEST).await?;
        let completion: Completion = serde_json::from_slice(&text)?;
        let answer = completion.choices.into_iter().next().and_then(|choice| choice.message.content);
        answer.ok_or(ChatError::Empty)
    }

    /// No more than every endpoint knows: some refuse bounds and temperatures that others want.
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

/// Where completions are: behind the base, whose query stays.
fn url(base: &Uri) -> Result<Uri, InvalidUri> {
    let text = base.to_string();
    let (path, query) = text.split_once('?').map_or((&*text, None), |(path, query)| (path, Some(query)));
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{}/chat/completions{query}", path.trim_end_matches('/')).parse()
}

fn bearer(key: &Secret) -> Result<HeaderValue, header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_completions_are() {
        let check = |base: &str, expected: &str| {
            assert_eq!(url(&base.parse().expect("a URL")).expect("a URL").to_string(), expected);
        };
        check("http://a", "http://a/chat/completions");
        check("https://api.example.com/v1", "https://api.example.com/v1/chat/completions");
        check("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions");
        check("https://a/x?api-version=1", "https://a/x/chat/completions?api-version=1");
    }
}
