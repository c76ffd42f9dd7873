//! The port of everything that runs calls.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;

use crate::access::CallPrice;
use crate::cache::CacheHint;
use crate::call::{Call, Caller, ClientIdentity};
use crate::cause::FailureCause;
use crate::error::ToolError;
use crate::item::{Prompt, PublishedTemplate, Resource};
use crate::json::Object;
use crate::outcome::Outcome;
use crate::registry::{EntryKind, Registry};
use crate::tool::Tool;

/// A publisher of a catalog that runs calls.
pub trait Backend: Send + Sync {
    /// Returns the current catalog, and every change of it. A catalog is replaced as a whole.
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>>;

    /// Runs a call whose target has the backend's own name. Dropping the future cancels the call.
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>>;

    /// Returns the call that this call of a tool stands for, as `call_tool` stands for the call of the tool in its
    /// arguments. `own` is the backend's own name of the called tool, `registry` is the caller's view.
    /// [`Gateway::invoke`](crate::Gateway::invoke) runs the returned call instead, as if the caller had made it
    /// ([`Call::of`] creates it).
    ///
    /// `None` for an ordinary call, and for one whose arguments do not name a tool: it runs, and can report the fault.
    fn forward(&self, _own: &str, _call: &Call, _registry: &Registry) -> Option<Call> {
        None
    }

    /// Returns the price of this call, if the backend has one. The price in the manifest takes precedence.
    fn price(&self, _call: &Call) -> Option<CallPrice> {
        None
    }

    /// Follows a resource for a caller. The stream yields the parameters of the update notification, `uri` among them, after each
    /// change of the resource or a part of it. If the reader is slow, the latest change is enough. A backend that first
    /// has to subscribe yields one item as soon as it has, for changes until then. Dropping the stream unsubscribes.
    fn follow(&self, _uri: &str, _caller: &Caller) -> BoxStream<'static, Object> {
        stream::pending().boxed()
    }

    /// Reports that the roots of a client have changed, to the server that asked this client for them.
    fn roots_changed(&self, _caller: &Caller) {}

    /// Lists the catalog again, and reconnects now if there is no connection.
    fn refresh(&self) {}

    /// Returns the number of notifications of the server so far that were dropped, because they name no request and
    /// calls of several clients were running, or none.
    fn dropped_notices(&self) -> u64 {
        0
    }

    /// Returns the number of lines and events of the server so far that were skipped, because they are not messages of its
    /// protocol.
    fn skipped_messages(&self) -> u64 {
        0
    }

    /// Returns the last lines that the program of the server has written to its standard error, with any secrets.
    fn error_output(&self) -> String {
        String::new()
    }

    /// Returns the state of the installation of the server's program, while a launcher may be installing it.
    fn installation(&self) -> Option<Installation> {
        None
    }

    /// Returns the last failure of a backend that stays available after failures, and its time.
    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        None
    }

    /// Closes connections in the order that peers expect. No call is running any more. Dropping a backend without this
    /// closes the same connections at once.
    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A backend in front of another one, which changes some of its methods. It is a [`Backend`], and delegates every method
/// that it does not override.
pub trait BackendWrapper: Send + Sync {
    /// Returns the wrapped backend.
    fn inner(&self) -> &dyn Backend;

    /// See [`Backend::catalog`].
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.inner().catalog()
    }

    /// See [`Backend::call`].
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        self.inner().call(call)
    }

    /// See [`Backend::forward`].
    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        self.inner().forward(own, call, registry)
    }

    /// See [`Backend::price`].
    fn price(&self, call: &Call) -> Option<CallPrice> {
        self.inner().price(call)
    }

    /// See [`Backend::follow`].
    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        self.inner().follow(uri, caller)
    }

    /// See [`Backend::roots_changed`].
    fn roots_changed(&self, caller: &Caller) {
        self.inner().roots_changed(caller);
    }

    /// See [`Backend::refresh`].
    fn refresh(&self) {
        self.inner().refresh();
    }

    /// See [`Backend::dropped_notices`].
    fn dropped_notices(&self) -> u64 {
        self.inner().dropped_notices()
    }

    /// See [`Backend::skipped_messages`].
    fn skipped_messages(&self) -> u64 {
        self.inner().skipped_messages()
    }

    /// See [`Backend::error_output`].
    fn error_output(&self) -> String {
        self.inner().error_output()
    }

    /// See [`Backend::installation`].
    fn installation(&self) -> Option<Installation> {
        self.inner().installation()
    }

    /// See [`Backend::last_failure`].
    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.inner().last_failure()
    }

    /// See [`Backend::stop`].
    fn stop(&self) -> BoxFuture<'_, ()> {
        self.inner().stop()
    }
}

// Every method is listed: a missing one would silently fall back to the default for all wrappers.
#[deny(clippy::missing_trait_methods)]
impl<W: BackendWrapper> Backend for W {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        BackendWrapper::catalog(self)
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        BackendWrapper::call(self, call)
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        BackendWrapper::forward(self, own, call, registry)
    }

    fn price(&self, call: &Call) -> Option<CallPrice> {
        BackendWrapper::price(self, call)
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        BackendWrapper::follow(self, uri, caller)
    }

    fn roots_changed(&self, caller: &Caller) {
        BackendWrapper::roots_changed(self, caller);
    }

    fn refresh(&self) {
        BackendWrapper::refresh(self);
    }

    fn dropped_notices(&self) -> u64 {
        BackendWrapper::dropped_notices(self)
    }

    fn skipped_messages(&self) -> u64 {
        BackendWrapper::skipped_messages(self)
    }

    fn error_output(&self) -> String {
        BackendWrapper::error_output(self)
    }

    fn installation(&self) -> Option<Installation> {
        BackendWrapper::installation(self)
    }

    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        BackendWrapper::last_failure(self)
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        BackendWrapper::stop(self)
    }
}

/// The installation of a server's program by a launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Name of the launcher, such as `npx`.
    pub launcher: Arc<str>,
    /// `true` while it waits for other installations of the same kind.
    pub is_waiting: bool,
    /// The last line that the launcher has written, with any secrets.
    pub line: Option<String>,
}

/// The current offer of a backend.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// State of the backend.
    pub phase: BackendPhase,
    /// Protocol for display, such as `MCP 2025-11-25`, if it is known by now.
    pub protocol: Option<Arc<str>>,
    /// Version of the hosted function whose lists these are.
    pub version: Option<Arc<str>>,
    /// URL of the service for display, if the backend learned it from its server.
    pub service_url: Option<Arc<str>>,
    /// Tools in the order of the backend; the last known ones while it is unavailable.
    pub tools: Vec<Arc<Tool>>,
    /// Prompts.
    pub prompts: Vec<Arc<Prompt>>,
    /// Resources.
    pub resources: Vec<Arc<Resource>>,
    /// Templates of resources.
    pub templates: Vec<Arc<PublishedTemplate>>,
    /// `true` if it may have resources that neither a list nor a template contains.
    pub unlisted: bool,
    /// Time for which each list may be cached, if the server states it, in the order of [`EntryKind::ALL`].
    pub hints: [Option<CacheHint>; 4],
    /// Items of each list that were left out, in the order of [`EntryKind::ALL`].
    pub left_out: [Vec<LeftOutItem>; 4],
    /// Lists of single clients that differ.
    pub own: Vec<OwnCatalog>,
}

/// An item of a list that cannot be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutItem {
    /// The server's own name.
    pub name: Arc<str>,
    /// Reason, for operators.
    pub reason: Arc<str>,
}

/// The lists of a backend for a single client, where they differ from its [`Catalog`].
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCatalog {
    /// The client.
    pub client: ClientIdentity,
    /// Its tools. `None`: those of the catalog.
    pub tools: Option<Vec<Arc<Tool>>>,
    /// Its prompts, likewise.
    pub prompts: Option<Vec<Arc<Prompt>>>,
    /// Its resources, likewise.
    pub resources: Option<Vec<Arc<Resource>>>,
    /// Its templates of resources, likewise.
    pub templates: Option<Vec<Arc<PublishedTemplate>>>,
}

impl OwnCatalog {
    /// Returns `true` if the client has a list of its own of this kind.
    #[must_use]
    pub const fn differs_in(&self, kind: EntryKind) -> bool {
        match kind {
            EntryKind::Tools => self.tools.is_some(),
            EntryKind::Prompts => self.prompts.is_some(),
            EntryKind::Resources => self.resources.is_some(),
            EntryKind::Templates => self.templates.is_some(),
        }
    }
}

/// The state of a backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BackendPhase {
    /// No response yet.
    #[default]
    Connecting,
    /// Connected.
    Ready,
    /// Not connected; reconnection is attempted.
    Unavailable {
        /// Reason, for operators.
        reason: FailureCause,
    },
}
