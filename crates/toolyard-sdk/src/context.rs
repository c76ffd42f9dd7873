//! The call that a handler runs, and the connection to its client.

mod ask;
mod nested;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use http::request::Parts;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::seal::StateSealer;
use toolyard_core::{Call, Caller, Client, ClientNotification, Gateway, Json, LogLevel, Object};
use toolyard_mcp::wire::meta;

pub use nested::{NestedCallError, NestedCallResult};

/// The state shared by all calls of one server.
#[derive(Debug)]
pub(crate) struct SharedContext {
    /// Seals the state of multi-round-trip calls.
    pub(crate) sealer: StateSealer,
    /// The gateway of [`Context::call_tool`]. It must not have a concurrency limit: calls that call others could wait
    /// for each other until their deadlines.
    pub(crate) gateway: OnceLock<Weak<Gateway>>,
}

impl SharedContext {
    /// Returns a context without a gateway, which has to be set before tools call each other.
    #[must_use]
    pub(crate) const fn new(sealer: StateSealer) -> Self {
        Self { sealer, gateway: OnceLock::new() }
    }
}

/// The call that a handler runs: its caller, and the connection to its client while it runs.
///
/// A handler that needs the context takes it as its first parameter. It is cheap to clone and works in functions that
/// are not async, except for its async methods.
///
/// ```
/// use toolyard_sdk::{Context, Server};
///
/// async fn index(ctx: Context) -> String {
///     for file in 1..=3 {
///         ctx.progress(f64::from(file), Some(3.0), "reading");
///     }
///     ctx.info("all files are read");
///     "3 files".to_owned()
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("Files", "1.0.0").tool("index", "Reads all files.", index)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context(Arc<ContextInner>);

struct ContextInner {
    call: Call,
    shared: Arc<SharedContext>,
    /// Closed once the call has ended.
    running: watch::Receiver<()>,
    /// The highest progress that was reported.
    progress: Mutex<f64>,
}

/// Held by the code that runs a call. Dropping it ends the call: see [`Context::is_cancelled`].
#[derive(Debug)]
pub(crate) struct CancelGuard {
    _running: watch::Sender<()>,
}

impl Context {
    /// Returns the context of a call and the guard to hold while the call runs.
    #[must_use]
    pub(crate) fn new(call: &Call, shared: Arc<SharedContext>) -> (Self, CancelGuard) {
        let (sender, running) = watch::channel(());
        let progress = Mutex::new(f64::NEG_INFINITY);
        let inner = ContextInner { call: call.clone(), shared, running, progress };
        (Self(Arc::new(inner)), CancelGuard { _running: sender })
    }

    /// Returns the call as the gateway runs it, for tools of the gateway itself.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.0.call
    }

    pub(crate) fn shared(&self) -> &Arc<SharedContext> {
        &self.0.shared
    }

    /// Returns the time at which the call ends, if it has a time limit. The time in which the client is asked does not
    /// count, and moves it.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.0.call.deadline
    }

    /// Reports progress to the client: `done` of `total`, in any unit. It is sent only if the client requested it and
    /// `done` has increased, because progress must not go back (MCP, basic/patterns/progress). It never blocks: updates
    /// that a slow client does not read are dropped.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn copy(ctx: &Context) {
    ///     ctx.progress(1.0, Some(10.0), "the first of ten");
    ///     ctx.progress(2.0, None, None);
    /// }
    /// ```
    pub fn progress<'a>(&self, done: f64, total: Option<f64>, message: impl Into<Option<&'a str>>) {
        let Some(progress) = number(done).filter(|_| self.0.call.client.listens()) else { return };
        {
            let mut highest = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
            if done <= *highest {
                return;
            }
            *highest = done;
        }
        let mut params = Object::new().with("progress", progress);
        if let Some(total) = total.and_then(number) {
            params.set("total", total);
        }
        if let Some(message) = message.into() {
            params.set("message", Json::string(message));
        }
        self.0.call.client.notify(ClientNotification::Progress(params.into()));
    }

    /// Sends a log message to the client. It is sent only if the client wants logs of this level. The data can be a
    /// string or any serializable value; never put secrets or personal data in it. The name of the tool, prompt or
    /// resource is the logger of the message. It never blocks: a slow client misses the messages beyond
    /// [`ServerOptions::queued_notices`](crate::ServerOptions::queued_notices).
    ///
    /// ```
    /// # use toolyard_sdk::{Context, LogLevel};
    /// fn connect(ctx: &Context) {
    ///     ctx.log(LogLevel::Notice, serde_json::json!({ "host": "localhost", "port": 5432 }));
    /// }
    /// ```
    pub fn log(&self, level: LogLevel, data: impl Serialize) {
        let call = &self.0.call;
        if call.client.log_level().is_none_or(|least| level < least) {
            return;
        }
        let data = match serde_json::to_value(data) {
            Ok(data) => Json::from_value(&data),
            Err(error) => return tracing::debug!(%error, "cannot serialize a log message as JSON"),
        };
        let params = Object::new()
            .with("level", Json::string(level.as_str()))
            .with("logger", Json::string(call.target.name()))
            .with("data", data);
        call.client.notify(ClientNotification::Log(params.into()));
    }

    /// Sends a log message of level `debug`, for troubleshooting.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// ctx.debug("the cache is empty");
    /// # }
    /// ```
    pub fn debug(&self, data: impl Serialize) {
        self.log(LogLevel::Debug, data);
    }

    /// Sends a log message of level `info`, for normal events.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// ctx.info("three files were read");
    /// # }
    /// ```
    pub fn info(&self, data: impl Serialize) {
        self.log(LogLevel::Info, data);
    }

    /// Sends a log message of level `warning`, for conditions that may cause a failure.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// ctx.warning("the disk is almost full");
    /// # }
    /// ```
    pub fn warning(&self, data: impl Serialize) {
        self.log(LogLevel::Warning, data);
    }

    /// Sends a log message of level `error`, for failures.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// ctx.error("a file cannot be read");
    /// # }
    /// ```
    pub fn error(&self, data: impl Serialize) {
        self.log(LogLevel::Error, data);
    }

    /// True once the result is no longer needed: the client cancelled the call or disconnected, or the deadline has
    /// passed. An async handler is dropped then and need not check; a handler that is not async, or that has started
    /// tasks of its own, should stop. Also true once the call has completed.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn count(ctx: Context) -> String {
    ///     let primes = (2_u64..1_000_000).take_while(|_| !ctx.is_cancelled());
    ///     format!("{} were looked at", primes.count())
    /// }
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.running.has_changed().is_err()
    }

    /// Waits until [`Context::is_cancelled`] is true, for tasks that should not outlive the call.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # async fn refresh() {}
    /// fn in_the_background(ctx: Context) {
    ///     tokio::spawn(async move {
    ///         tokio::select! {
    ///             () = ctx.cancelled() => (),
    ///             () = refresh() => (),
    ///         }
    ///     });
    /// }
    /// ```
    pub async fn cancelled(&self) {
        // Nothing is ever sent: the loop ends once the guard is dropped.
        while self.0.running.clone().changed().await.is_ok() {}
    }

    /// The session id of the client; `None` for clients without sessions, such as those of revision 2026-07-28.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let basket = ctx.session().unwrap_or("default");
    /// # }
    /// ```
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.0.call.caller.session.as_deref()
    }

    /// The principal that the client acts for, if something in front of the server has authenticated it. Base
    /// authorization decisions on it. Tasks, suspended calls and the state of multi-round-trip calls are bound to it:
    /// no other principal can continue them.
    ///
    /// A middleware layer of the application around [`Server::into_router`](crate::Server::into_router) provides it as
    /// an [`HttpPrincipal`](crate::HttpPrincipal) in the request's extensions:
    ///
    /// ```
    /// use toolyard_sdk::axum::extract::Request;
    /// use toolyard_sdk::axum::middleware::{Next, from_fn};
    /// use toolyard_sdk::axum::response::Response;
    /// use toolyard_sdk::{Context, HttpPrincipal, Server};
    ///
    /// # fn user_of(_request: &Request) -> Option<&'static str> { Some("alice") }
    /// async fn authenticate(mut request: Request, next: Next) -> Response {
    ///     // From a token or a cookie that was checked; a request without one would be refused here.
    ///     if let Some(user) = user_of(&request) {
    ///         request.extensions_mut().insert(HttpPrincipal(user.into()));
    ///     }
    ///     next.run(request).await
    /// }
    ///
    /// # fn main() -> toolyard_sdk::Result<()> {
    /// let greet = |ctx: Context| format!("Hello, {}.", ctx.principal().unwrap_or("stranger"));
    /// let server = Server::new("greetings", "1.0.0").tool("greet", "Says hello.", greet)?;
    /// let app = server.into_router().layer(from_fn(authenticate));
    /// # drop(app);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn principal(&self) -> Option<&str> {
        self.0.call.caller.principal.as_deref()
    }

    /// The caller as the gateway knows it, including its permissions. For tools of the gateway itself.
    #[doc(hidden)]
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.0.call.caller
    }

    /// The client of the call, which receives notices of it. For tools that pass calls on.
    #[doc(hidden)]
    #[must_use]
    pub fn client(&self) -> Arc<dyn Client> {
        self.0.call.client.clone()
    }

    /// The head of the HTTP request of the call: URI, headers and extensions, including those that the application's
    /// layers have added. `None` on any other transport. In nested routes the URI lacks their prefix; `axum` keeps the
    /// whole URI in the extension `OriginalUri`. Headers contain secrets: do not log them.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// fn work(ctx: Context) -> String {
    ///     let tenant = ctx.http().and_then(|request| request.extensions.get::<Tenant>());
    ///     tenant.map_or("none".to_owned(), |tenant| tenant.0.clone())
    /// }
    /// ```
    #[must_use]
    pub fn http(&self) -> Option<&Parts> {
        self.0.call.origin.as_ref()?.downcast_ref()
    }

    /// The name of the tool or prompt, or the URI of the resource.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// fn any_file(ctx: Context) -> String {
    ///     format!("the content of {}", ctx.request_name())
    /// }
    /// ```
    #[must_use]
    pub fn request_name(&self) -> &str {
        self.0.call.target.name()
    }

    /// The capabilities that the client declares; `None` if it declares none.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let experimental = ctx.client_capabilities().is_some_and(|client| !client["experimental"].is_null());
    /// # }
    /// ```
    #[must_use]
    pub fn client_capabilities(&self) -> Option<Value> {
        self.0.call.client.capabilities().map(Json::to_value)
    }

    /// Name and version of the client's software, if its request contains them (revision 2026-07-28). They are not
    /// verified: never base authorization decisions on them.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let name = ctx.client_info().and_then(|info| Some(info["name"].as_str()?.to_owned()));
    /// # }
    /// ```
    #[must_use]
    pub fn client_info(&self) -> Option<Value> {
        self.meta(meta::CLIENT_INFO)
    }

    /// A member of the request's `_meta`.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let trace = ctx.meta("traceparent");
    /// # }
    /// ```
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<Value> {
        self.0.call.meta.get(name).map(Json::to_value)
    }
}

/// Shows the target only, and no content.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("target", &self.0.call.target).finish_non_exhaustive()
    }
}

/// A number as JSON, an integer without a decimal point; `None` for NaN and infinities.
pub(crate) fn number(value: f64) -> Option<Json> {
    /// Floats up to this bound represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Json::parse(format!("{value:.0}")).ok();
    }
    serde_json::Number::from_f64(value).map(|number| Json::from_value(&Value::Number(number)))
}
