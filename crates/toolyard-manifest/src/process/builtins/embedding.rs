//! The section `builtins.search.embedding`.

use std::time::Duration;

use crate::{
    field_type::{BoundedCountField, CountField, SizeField, TextField, TimeoutField},
    formats::{self, EndpointUrl},
    handler::SecretString,
    section::section,
};

/// With less there is no room for the tools of one server.
const MIN_BYTES: usize = 64 << 10;

section! {
    /// An endpoint with the embeddings API of OpenAI. `search_tools` then fuses its ranking with that of the words. The
    /// endpoint gets the names, descriptions and parameters of all tools, and the queries.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EmbeddingSettings = "embedding" {
        /// Base URL of an endpoint with the API of OpenAI, without `/embeddings`.
        pub base_url: EndpointUrl = "baseURL",
            TextField::new(EndpointUrl::parse)
                .secret()
                .pattern("^https?://[^@]+$")
                .examples(&["https://api.openai.com/v1"]),
            required;
        /// Id of the model.
        pub model: String = "model", TextField::new(formats::model), required;
        /// Bearer token.
        pub api_key: Option<SecretString> = "apiKey",
            TextField::new(formats::token).secret().examples(&["${OPENAI_API_KEY}"]),
            optional;
        /// Number of dimensions, which is then requested from the model and required of its vectors. Default: that of
        /// the model, 8,192 at most.
        pub dimensions: Option<usize> = "dimensions", BoundedCountField { min: 1, max: 8192 }, optional;
        /// Time limit of a request for texts of tools.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
        /// Time limit of the request for a query, after which the ranking by words is the result. A call spends at most
        /// half of its remaining time on it.
        pub query_timeout: Duration = "queryTimeout", TimeoutField, default Duration::from_millis(500);
        /// Maximum number of concurrent requests for queries; other searches rank by words only.
        pub concurrent: usize = "concurrent", CountField, default 8;
        /// Number of texts in a request.
        pub batch: usize = "batch", BoundedCountField { min: 1, max: 2048 }, default 64;
        /// Maximum size of all vectors in memory, at least 64 KiB. Tools beyond it are ranked by words only.
        pub bytes: usize = "bytes", SizeField(MIN_BYTES), default 128 << 20;
    }
}
