//! Hosted functions that are invoked by themselves: they are found here, and called like everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::request::Parts;
use tokio::sync::watch;
use toolyard_core::access::Price;
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::names::Prefix;
use toolyard_core::overrides::Chunking;
use toolyard_core::registry::{Entry, Handler, Limits};
use toolyard_core::{
    Backend, Call, Catalog, Code, Functions, Json, Object, Outcome, Output, Target, ToolError, function,
};
use toolyard_functions::invoke::is_notification;
use toolyard_functions::{Edition, FunctionError, Host, Wanted};

/// The handler's name that calls of functions have in the log, in metrics and in the audit trail.
const HANDLER: &str = "functions";

/// The member of an outcome's body that holds the answer: of a function of MCP it may be a list.
pub const ANSWER: &str = "answer";

/// No version may take longer: [`toolyard_functions::project`] has the bound.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The functions of a host, as the gateway finds them.
pub struct Doors {
    host: Host,
    name: Arc<str>,
    limits: Arc<Limits>,
    catalog: watch::Sender<Arc<Catalog>>,
}

impl Doors {
    /// The functions of this host; at most so many calls of all of them run at a time.
    #[must_use]
    pub fn new(host: Host, size: GateSize) -> Self {
        let limits = Arc::new(Limits { timeout: LONGEST, gate: Gate::new(size) });
        Self { host, name: HANDLER.into(), limits, catalog: watch::Sender::default() }
    }

    /// A version, as what can be called. How many of its calls run at a time, and how long one takes, it sees to itself.
    fn entry(&self, edition: Arc<Edition>) -> Entry {
        let name: Arc<str> = format!("{}@{}", edition.id, edition.version).into();
        let secrets = edition.secrets.clone();
        let catalog = self.catalog.subscribe();
        let handler = Handler {
            name: self.name.clone(),
            backend: Arc::new(Invoked { host: self.host.clone(), edition, catalog }),
            limits: self.limits.clone(),
            prefix: Prefix::default(),
            overrides: Arc::default(),
            price: None,
            display_name: None,
            description: None,
            chunking: Chunking::default(),
            secrets,
            disclosure: None,
        };
        let (own, chunking) = (name.clone(), Chunking::default());
        Entry { own, name, tool: None, additions: None, price: None, chunking, handler }
    }
}

impl Functions for Doors {
    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Entry>, ToolError>> {
        Box::pin(async move {
            let (id, version) = name.split_once('@').unwrap_or((name, "latest"));
            let wanted: Wanted = version.parse().map_err(|_| function::unknown(name))?;
            match self.host.resolve(id, wanted).await {
                Ok(edition) => Ok(Arc::new(self.entry(edition))),
                Err(FunctionError::UnknownFunction(_) | FunctionError::UnknownVersion { .. }) => {
                    Err(function::unknown(name))
                }
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Whether a call has come to its function, which has it noted then. It goes with the call, in the extensions of the request that
/// is its origin.
#[derive(Debug, Clone, Default)]
pub struct Reached(Arc<AtomicBool>);

impl Reached {
    /// Whether it has.
    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn note(call: &Call) {
        let parts = call.origin.as_ref().and_then(|origin| origin.downcast_ref::<Parts>());
        if let Some(Self(reached)) = parts.and_then(|parts| parts.extensions.get()) {
            reached.store(true, Ordering::Relaxed);
        }
    }
}

/// The answer in the place of a function that could not be loaded: an error, so that nobody pays for it.
fn unloaded(answer: Json) -> ToolError {
    ToolError::new(Code::ExecutionFailed, "The function cannot be loaded").from_peer(answer).unsent()
}

/// One version, which a call has found.
struct Invoked {
    host: Host,
    edition: Arc<Edition>,
    catalog: watch::Receiver<Arc<Catalog>>,
}

impl Backend for Invoked {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.clone()
    }

    /// A notification is not given to the function.
    fn price(&self, call: &Call) -> Option<Price> {
        let event = call.arguments();
        let is_free = event.is_some_and(|event| is_notification(self.edition.kind, event));
        Some(if is_free { Price::default() } else { self.edition.price })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let Target::Function(_) = call.target else { return Err(function::unknown(call.target.name())) };
            let event = call.arguments().cloned().unwrap_or_else(Json::null);
            Reached::note(&call);
            let invoked = self.host.invoke(&self.edition, &event, None, call.deadline).await?;
            if invoked.failure.is_some_and(|failure| !failure.may_have_run()) {
                return Err(unloaded(invoked.reply.to_json()));
            }
            let is_error = invoked.reply.is_failure();
            Ok(Outcome::Done(Output { body: Object::new().with(ANSWER, invoked.reply.to_json()), is_error }))
        })
    }
}
