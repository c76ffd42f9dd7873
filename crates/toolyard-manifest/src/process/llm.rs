//! The section `llm`: a language model for the gateway's own use.

use std::time::Duration;

use crate::{
    field_type::{TextField, TimeoutField},
    formats::{self, EndpointUrl},
    handler::SecretString,
    section::section,
};

section! {
    /// `llm` of a `Toolyard` document: an endpoint with the chat completions API of OpenAI. It writes summaries of
    /// servers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LlmSettings = "llm" {
        /// Base URL of an endpoint with the API of OpenAI, without `/chat/completions`.
        pub base_url: EndpointUrl = "baseURL",
            TextField::new(EndpointUrl::parse)
                .secret()
                .pattern("^https?://[^@]+$")
                .examples(&["https://openrouter.ai/api/v1"]),
            required;
        /// Id of the model.
        pub model: String = "model", TextField::new(formats::model), required;
        /// Bearer token.
        pub api_key: Option<SecretString> = "apiKey",
            TextField::new(formats::token).secret().examples(&["${OPENAI_API_KEY}"]),
            optional;
        /// Time limit of a response.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
    }
}
