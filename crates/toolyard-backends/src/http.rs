//! A tool whose calls are plain HTTP requests.
//!
//! A call becomes a request ([`request`]: a pure function), which is sent ([`delivery`](crate::delivery)); what comes
//! back becomes a result ([`response`]: another one).

pub mod mapping;
pub mod request;
pub mod response;
pub mod target;

use std::sync::Arc;

use ::http::header;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use toolyard_core::{Backend, Breaker, Call, Catalog, Code, Outcome, Phase, Tool, ToolError};
use toolyard_net::auth::{Auth, Unreadable};
use toolyard_net::client::Client;
use toolyard_net::trace;

use self::request::Plan;
use self::response::Reading;
use crate::delivery::Delivery;

/// What a tool is, and how its calls are run.
pub struct Options {
    /// The tool.
    pub tool: Tool,
    /// What its requests look like.
    pub plan: Plan,
    /// Who they are made for.
    pub auth: Option<Auth>,
    /// How they are sent.
    pub delivery: Delivery,
    /// What its responses mean.
    pub reading: Reading,
}

/// A backend of one tool, which is there from the beginning.
pub struct HttpBackend {
    catalog: watch::Sender<Arc<Catalog>>,
    plan: Plan,
    auth: Option<Auth>,
    delivery: Delivery,
    reading: Reading,
    client: Client,
    breaker: Breaker,
}

impl HttpBackend {
    /// A backend that sends its requests by way of `client`; to public addresses only where arguments decide
    /// which host they go to.
    #[must_use]
    pub fn new(options: Options, client: &Client) -> Self {
        let Options { tool, plan, auth, delivery, reading } = options;
        let client = if plan.target.host_varies() { client.public_only() } else { client.clone() };
        let tools = vec![Arc::new(tool)];
        let catalog = Catalog { phase: Phase::Ready, tools, ..Catalog::default() };
        Self {
            catalog: watch::Sender::new(Arc::new(catalog)),
            plan,
            auth,
            delivery,
            reading,
            client,
            breaker: Breaker::default(),
        }
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let mut request = self.plan.request(call.arguments())?;
        if let Some(auth) = &self.auth {
            request.headers_mut().insert(header::AUTHORIZATION, auth.header().await.map_err(no_credentials)?);
        }
        request.headers_mut().extend(trace::headers(|name| call.meta.get_str(name)));
        let (before, received) =
            self.delivery.run(&request, call.deadline, &self.client, &self.breaker).await?;
        if received.status.is_success() {
            let content_type = received.headers.get(header::CONTENT_TYPE);
            return self.reading.output(received.status, content_type, received.body).map(Outcome::Done);
        }
        let failure = self.reading.failure(&before, received.status, &received.body, received.whole);
        Ok(Outcome::Done(failure))
    }
}

impl Backend for HttpBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(self.run(call))
    }
}

pub(crate) fn no_credentials(error: Unreadable) -> ToolError {
    ToolError::new(Code::Unavailable, "The credentials of this tool cannot be read").unsent().caused_by(error)
}

#[cfg(test)]
mod tests;
