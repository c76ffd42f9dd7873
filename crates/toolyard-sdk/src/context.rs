//! What a handler knows of the call that it runs, and what it can do meanwhile.

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
use toolyard_core::{Call, Caller, Gateway, Json, LogLevel, Notice, Object};
use toolyard_mcp::seal::Sealer;
use toolyard_mcp::wire::meta;

pub use nested::{CallError, CallResult};

/// What all calls of one server share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Seals the state of calls that go round by round.
    pub(crate) sealer: Sealer,
    /// What [`Context::call_tool`] goes through. It must not hold places for running calls, or calls that
    /// call others could wait for each other until all their time is up.
    pub(crate) gateway: OnceLock<Weak<Gateway>>,
}

impl Shared {
    /// Nothing is called through it before `gateway` is set.
    #[must_use]
    pub(crate) const fn new(sealer: Sealer) -> Self {
        Self { sealer, gateway: OnceLock::new() }
    }
}

/// The call that a handler runs: who calls, and the way back to the client while it runs.
///
/// A handler that wants it takes it as its first parameter. It is cheap to clone, and works in functions that
/// are not async, but for what has to be awaited.
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
pub struct Context(Arc<Inner>);

struct Inner {
    call: Call,
    shared: Arc<Shared>,
    /// Closed when the call has ended.
    running: watch::Receiver<()>,
    /// The highest progress that was told.
    progress: Mutex<f64>,
}

/// Held by what runs a call. When it is dropped, the call has ended: [`Context::is_cancelled`] says so.
#[derive(Debug)]
pub(crate) struct CancelGuard {
    _running: watch::Sender<()>,
}

impl Context {
    /// The context of a call, and what to hold while it runs.
    #[must_use]
    pub(crate) fn new(call: &Call, shared: Arc<Shared>) -> (Self, CancelGuard) {
        let (sender, running) = watch::channel(());
        let progress = Mutex::new(f64::NEG_INFINITY);
        let inner = Inner { call: call.clone(), shared, running, progress };
        (Self(Arc::new(inner)), CancelGuard { _running: sender })
    }

    pub(crate) fn call(&self) -> &Call {
        &self.0.call
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Tells the client how far the work is: `done` of `total`, in any unit. It is only sent where the client
    /// asked for it, and only when `done` is more than it was, because progress may not go back (MCP,
    /// basic/patterns/progress). It never waits: what a slow client does not take is dropped.
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
        self.0.call.client.notify(Notice::Progress(params));
    }

    /// Sends the client a line of log. It is only sent where the client wants logs of this level. The data can
    /// be a text or anything that serializes; never put secrets or personal data in it. The line names what
    /// was called as its logger. It never waits: a client that does not keep up misses the lines that are more than
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
            Err(error) => return tracing::debug!(%error, "a line of log cannot be written as JSON"),
        };
        let params = Object::new()
            .with("level", Json::string(level.as_str()))
            .with("logger", Json::string(call.target.name()))
            .with("data", data);
        call.client.notify(Notice::Log(params));
    }

    /// [`Context::log`] for those who look for a fault.
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

    /// [`Context::log`] for what normally happens.
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

    /// [`Context::log`] for when something may go wrong.
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

    /// [`Context::log`] for when something went wrong.
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

    /// Whether nobody waits for the result any more: the client withdrew the call, went away, or its time is
    /// up. A handler that is async is dropped then, and need not look; one that is not async, or has started
    /// tasks of its own, should end. It also says so when the call has ended well.
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

    /// Waits until [`Context::is_cancelled`]: for tasks that should not outlive the call.
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
        // Nothing is ever sent: this ends when the guard is dropped.
        while self.0.running.clone().changed().await.is_ok() {}
    }

    /// The session of a client that keeps one, which those of revision 2026-07-28 do not.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// # fn work(ctx: &Context) {
    /// let basket = ctx.session().unwrap_or("nobody's");
    /// # }
    /// ```
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.0.call.caller.session.as_deref()
    }

    /// Whom the client acts for, where something in front of the server has made sure of that. It is the one to decide
    /// by what somebody may do. Tasks, calls that wait for an answer, and the state of rounds are bound to it: nobody
    /// else can go on with them.
    ///
    /// It comes from a layer of the application that [`Server::into_router`](crate::Server::into_router) is a part of,
    /// as a [`Principal`](crate::Principal) in the request's extensions:
    ///
    /// ```
    /// use toolyard_sdk::axum::extract::Request;
    /// use toolyard_sdk::axum::middleware::{Next, from_fn};
    /// use toolyard_sdk::axum::response::Response;
    /// use toolyard_sdk::{Context, Principal, Server};
    ///
    /// # fn user_of(_request: &Request) -> Option<&'static str> { Some("alice") }
    /// async fn authenticate(mut request: Request, next: Next) -> Response {
    ///     // From a token or a cookie that was checked; a request without one would be refused here.
    ///     if let Some(user) = user_of(&request) {
    ///         request.extensions_mut().insert(Principal(user.into()));
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

    /// Who calls, as the gateway knows it: with what the caller may use. For tools of the gateway itself.
    #[doc(hidden)]
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.0.call.caller
    }

    /// The head of the HTTP request that the call came by: its URI, headers, and extensions, with all that the layers of
    /// an application have put there. `None` on any other transport. Where routes are nested, the URI is without their
    /// prefix, and `axum` keeps the whole one in its extension `OriginalUri`. Headers carry secrets: do not log them.
    ///
    /// ```
    /// # use toolyard_sdk::Context;
    /// #[derive(Clone)]
    /// struct Tenant(String);
    ///
    /// fn work(ctx: Context) -> String {
    ///     let tenant = ctx.http().and_then(|request| request.extensions.get::<Tenant>());
    ///     tenant.map_or("nobody".to_owned(), |tenant| tenant.0.clone())
    /// }
    /// ```
    #[must_use]
    pub fn http(&self) -> Option<&Parts> {
        self.0.call.origin.as_ref()?.downcast_ref()
    }

    /// What was called: the name of the tool or prompt, or the URI of the resource.
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

    /// What the client can be asked, as it declares it; `None` where it can be asked nothing.
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

    /// Name and version of the client's software, where it says so in its request (revision 2026-07-28). It
    /// can be anything: never decide by it what somebody may do.
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

/// Shows what was called, and nothing that anybody said.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("target", &self.0.call.target).finish_non_exhaustive()
    }
}

/// A number as JSON, a whole one without a point; `None` for what is none.
pub(crate) fn number(value: f64) -> Option<Json> {
    /// Up to here a float holds every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Json::parse(format!("{value:.0}")).ok();
    }
    serde_json::Number::from_f64(value).map(|number| Json::from_value(&Value::Number(number)))
}
