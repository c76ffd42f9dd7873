//! Port for the network access of JavaScript and Lua handlers. Their workers have no network; they ask the host.

use std::fmt;

use futures_util::future::BoxFuture;

use super::wire::FetchResult;
pub use super::wire::{FetchRequest, FetchResponse};

/// Sends HTTP requests for handlers.
pub trait HttpFetcher: Send + Sync {
    /// Sends a request. Dropping the future cancels it. An implementation limits the size of responses.
    ///
    /// # Errors
    /// If there is no response. The handler receives the text.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, String>>;
}

impl fmt::Debug for dyn HttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// Maximum length of a response body, in bytes.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Sends a request for a worker, unless its version may not access the network.
pub(super) async fn fetch_for_worker(port: Option<&dyn HttpFetcher>, request: FetchRequest) -> FetchResult {
    let Some(port) = port else {
        return FetchResult::Refused("fetch is not available here".to_owned());
    };
    match port.fetch(request).await {
        Ok(response) if response.body.len() > MAX_BODY_BYTES => {
            FetchResult::Refused(format!("the response exceeds {MAX_BODY_BYTES} bytes"))
        }
        Ok(response) => FetchResult::Response(response),
        Err(message) => FetchResult::Refused(message),
    }
}
