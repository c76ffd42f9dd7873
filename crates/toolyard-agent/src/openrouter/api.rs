//! The port to the API, which the composition root implements.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::resource::OpenRouterResource;

/// Reads resources of OpenRouter. It has no operation that writes.
pub trait OpenRouterApi: Send + Sync {
    /// Requests a resource with `GET`. An error status is a response.
    fn get<'a>(
        &'a self,
        resource: &'a OpenRouterResource,
    ) -> BoxFuture<'a, Result<OpenRouterResponse, OpenRouterError>>;
}

/// A response of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRouterResponse {
    /// Status code of HTTP.
    pub status: u16,
    /// The body without secrets; of an error, its beginning.
    pub body: Bytes,
    /// `Retry-After` in seconds, if the response has it in this form.
    pub retry_after: Option<u64>,
}

/// A request without a response. A model reads the texts, which contain neither the key nor an address.
#[derive(Debug, thiserror::Error)]
pub enum OpenRouterError {
    /// The key cannot be read, such as from its file.
    #[error("The API key of OpenRouter cannot be read. Ask the operator to check it.")]
    NoKey(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is no connection, or it broke.
    #[error("OpenRouter cannot be reached ({reason}). Call again later.")]
    Unreachable {
        /// Reason without an address.
        reason: &'static str,
        /// The cause, for the log.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There was no complete response in time.
    #[error("OpenRouter has not answered within {} s. Call again later.", .0.as_secs_f64())]
    Timeout(Duration),
    /// The response exceeds the limit.
    #[error("The response of OpenRouter exceeds the limit of {0} bytes. Ask the operator to raise it.")]
    TooLarge(usize),
    /// There is no memory left for the response.
    #[error("There is no memory left for the response of OpenRouter. Call again later.")]
    NoMemory,
}
