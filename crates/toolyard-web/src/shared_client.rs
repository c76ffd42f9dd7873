//! The client of all requests, which is made when it is first needed: the system's certificates take time and memory.

use std::io;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use toolyard_net::client::HttpClient;

/// Makes a client. It may read files.
pub type ClientLoader = fn() -> io::Result<HttpClient>;

/// A client that is made when it is first needed. Clones share it.
#[derive(Debug, Clone)]
pub struct SharedClient {
    load: ClientLoader,
    clients: Arc<OnceCell<EgressClients>>,
}

/// The clients by what they may connect to.
#[derive(Debug)]
pub(crate) struct EgressClients {
    /// Public addresses only.
    pub(crate) public: HttpClient,
    /// Any address, by the proxies of the environment: for hosts that the operator names.
    pub(crate) any: HttpClient,
}

/// The client cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the gateway cannot make requests: {0}")]
pub struct NoClient(#[source] io::Error);

impl SharedClient {
    /// Returns a client that `load` makes.
    #[must_use]
    pub fn new(load: ClientLoader) -> Self {
        Self { load, clients: Arc::default() }
    }

    /// Returns the clients.
    pub(crate) async fn get(&self) -> Result<&EgressClients, NoClient> {
        let load = self.load;
        let make = async || {
            let client = spawn_blocking(load).await.unwrap_or_else(|error| Err(io::Error::other(error)));
            client.map(|any| EgressClients { public: any.public_only(), any }).map_err(NoClient)
        };
        self.clients.get_or_try_init(make).await
    }
}
