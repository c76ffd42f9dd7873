//! The reader of `llm`: a language model for the gateway's own use.

use std::time::Duration;

use crate::{
    cursor::ValueCursor,
    formats::{self, EndpointUrl},
    handler::SecretString,
};

/// `llm` of a `Toolyard` document: an endpoint with the chat completions API of OpenAI. It writes summaries of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LlmSettings {
    /// `baseURL`: the base URL, without `/chat/completions`.
    pub base_url: EndpointUrl,
    /// `model`: the id of the model.
    pub model: String,
    /// `apiKey`: the bearer token. `None`: no authentication.
    pub api_key: Option<SecretString>,
    /// `timeout`: time limit of a response. Default: 30 s.
    pub timeout: Duration,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the object `llm`.
pub(super) fn llm(cursor: ValueCursor<'_>) -> Option<LlmSettings> {
    let mut fields = cursor.fields()?;
    let base_url = fields.required("baseURL", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let model = fields.required("model", |cursor| cursor.parse(formats::model));
    let api_key = fields.optional("apiKey", |cursor| cursor.parse_secret(formats::token));
    let timeout = fields.with_default("timeout", ValueCursor::timeout, DEFAULT_TIMEOUT);
    fields.finish();
    Some(LlmSettings { base_url: base_url?, model: model?, api_key, timeout })
}
