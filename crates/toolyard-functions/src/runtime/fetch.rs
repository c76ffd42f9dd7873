//! The port by which handlers in JavaScript and Lua reach the network. Their worker has none: it asks the host.

use std::fmt;

use futures_util::future::BoxFuture;

use super::wire::Fetched;
pub use super::wire::{FetchRequest, FetchResponse};

/// Makes requests for handlers.
pub trait Fetch: Send + Sync {
    /// Makes one. Dropping the future withdraws it. An implementation bounds how much it reads.
    ///
    /// # Errors
    /// When there is no response. The handler is told the text.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, String>>;
}

impl fmt::Debug for dyn Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetch")
    }
}

/// How long a body may be that a handler gets, in bytes.
const LONGEST_BODY: usize = 8 << 20;

/// Has a request made for a worker. Who asks without being allowed to does not run what we gave it.
pub(super) async fn on_behalf(port: Option<&dyn Fetch>, request: FetchRequest) -> Fetched {
    let Some(port) = port else {
        return Fetched::Refused("fetch is not available here".to_owned());
    };
    match port.fetch(request).await {
        Ok(response) if response.body.len() > LONGEST_BODY => {
            Fetched::Refused(format!("the response is longer than {LONGEST_BODY} bytes"))
        }
        Ok(response) => Fetched::Response(response),
        Err(message) => Fetched::Refused(message),
    }
}
