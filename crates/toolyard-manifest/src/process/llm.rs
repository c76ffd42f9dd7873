//! A language model that the gateway itself may ask.

use std::time::Duration;

use crate::{
    cursor::Cursor,
    forms::{self, Endpoint},
    handler::Secret,
};

/// `llm` of a `Toolyard` document: an endpoint that speaks as OpenAI's chat completions do. Summaries of servers are written by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llm {
    /// `baseURL`: where it is, without `/chat/completions`.
    pub base_url: Endpoint,
    /// `model`: what is asked for by its name.
    pub model: String,
    /// `apiKey`: what it is shown as a bearer token. None: nothing.
    pub api_key: Option<Secret>,
    /// `timeout`: how long it may take to answer. 30 s.
    pub timeout: Duration,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the object `llm`.
pub(super) fn llm(cursor: Cursor<'_>) -> Option<Llm> {
    let mut fields = cursor.fields()?;
    let base_url = fields.required("baseURL", |cursor| cursor.parse_secret(Endpoint::parse));
    let model = fields.required("model", |cursor| cursor.parse(forms::model));
    let api_key = fields.optional("apiKey", |cursor| cursor.parse_secret(forms::token));
    let timeout = fields.with_default("timeout", Cursor::timeout, DEFAULT_TIMEOUT);
    fields.finish();
    Some(Llm { base_url: base_url?, model: model?, api_key, timeout })
}
