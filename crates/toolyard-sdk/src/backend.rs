//! The registered items as a backend of the core: its catalog and its calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{broadcast, watch};
use toolyard_core::registry::HandlerEntry;
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, CallTarget, Caller, Catalog, CompletionReference, ErrorCode,
    Gateway, Json, Object, Outcome, Prompt, PublishedTemplate, Registry, Resource, Tool, ToolError,
    resource_updates,
};

use crate::context::{Context, SharedContext};
use crate::error::RegisterError;
use crate::register::PreparedItem;

/// Runs the calls of one item.
pub(crate) type BoxHandler =
    Arc<dyn Fn(Call, Context) -> BoxFuture<'static, Result<Outcome, ToolError>> + Send + Sync>;

/// All registered items. A transport holds it; its handles and the registry hold weak references.
pub(crate) struct ServerBackend {
    items: Mutex<RegisteredItems>,
    catalog: watch::Sender<Arc<Catalog>>,
    registry: watch::Sender<Arc<Registry>>,
    /// URIs of changed resources.
    updates: broadcast::Sender<Arc<str>>,
    /// `true` once nothing more is served.
    stopping: watch::Sender<bool>,
    opened: OnceLock<OpenState>,
}

/// The state that exists once items can be called.
pub(crate) struct OpenState {
    /// This server's handler in the registry.
    pub(crate) handler: HandlerEntry,
    pub(crate) shared: Arc<SharedContext>,
    /// The gateway for calls from one handler to another. The handlers hold a weak reference.
    pub(crate) _nested: Arc<Gateway>,
}

/// Number of resource changes that wait to be delivered. A subscriber that lags further behind learns that it missed
/// some.
const PENDING_UPDATES: usize = 64;

impl ServerBackend {
    pub(crate) fn new() -> Self {
        Self {
            items: Mutex::default(),
            catalog: watch::Sender::default(),
            registry: watch::Sender::default(),
            updates: broadcast::Sender::new(PENDING_UPDATES),
            stopping: watch::Sender::new(false),
            opened: OnceLock::new(),
        }
    }

    /// Makes the registered items callable and publishes them from now on.
    pub(crate) fn open(&self, opened: OpenState) {
        let items = self.items();
        let _open_already = self.opened.set(opened);
        self.publish(&items);
    }

    /// Changes the items and publishes the result.
    pub(crate) fn change<T, E>(
        &self,
        change: impl FnOnce(&mut RegisteredItems) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut items = self.items();
        let changed = change(&mut items)?;
        self.publish(&items);
        Ok(changed)
    }

    /// Publishes under the lock of the change, so that no older catalog overwrites a newer one.
    fn publish(&self, items: &RegisteredItems) {
        let Some(opened) = self.opened.get() else { return };
        let catalog = Arc::new(items.catalog());
        self.catalog.send_replace(catalog.clone());
        self.registry.send_replace(Arc::new(Registry::of(&opened.handler, &catalog)));
    }

    pub(crate) fn items(&self) -> MutexGuard<'_, RegisteredItems> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.registry.subscribe()
    }

    /// Ends serving.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let handler = self.items().find(&call)?;
        let Some(handler) = handler else { return Ok(no_values()) };
        let Some(opened) = self.opened.get() else { return Err(server_ended()) };
        // Dropped with this future, which tells a handler that cannot be dropped that its call has ended.
        let (context, _running) = Context::new(&call, opened.shared.clone());
        handler(call, context).await
    }

    /// Notifies the subscribers of a resource that it has changed.
    pub(crate) fn updated(&self, uri: &str) {
        // Fails only if there are no subscribers.
        let _no_subscribers = self.updates.send(uri.into());
    }
}

impl Backend for ServerBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        if *self.stopping.borrow() {
            return ready(Err(server_ended())).boxed();
        }
        self.run(call).boxed()
    }

    fn follow(&self, uri: &str, _caller: &Caller) -> BoxStream<'static, Object> {
        let followed: Arc<str> = uri.into();
        resource_updates(self.updates.subscribe(), uri, move |changed| *changed == followed)
    }
}

/// The backend as the registry refers to it: weakly, so that registered items do not keep themselves alive.
pub(crate) struct WeakServerBackend(pub(crate) Weak<ServerBackend>);

impl Backend for WeakServerBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.upgrade().map_or_else(|| watch::channel(Arc::default()).1, |backend| backend.catalog())
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let backend = self.0.upgrade().ok_or_else(server_ended)?;
            // Accepted calls are finished, together with the calls that they make, even when the server stops.
            backend.run(call).await
        })
    }

    fn follow(&self, uri: &str, caller: &Caller) -> BoxStream<'static, Object> {
        self.0.upgrade().map_or_else(|| stream::pending().boxed(), |backend| backend.follow(uri, caller))
    }
}

fn server_ended() -> ToolError {
    ToolError::new(ErrorCode::Unavailable, "The server has ended")
}

/// The result of a completion without values.
fn no_values() -> Outcome {
    let completion = Object::new().with("values", Json::array([])).with("hasMore", Json::boolean(false));
    let body = Object::new().with("completion", completion.to_json());
    Outcome::Done(CallOutput { body, is_error: false })
}

/// The registered items of all kinds.
#[derive(Default)]
pub(crate) struct RegisteredItems {
    pub(crate) tools: ItemTable<Tool>,
    pub(crate) prompts: ItemTable<Prompt>,
    pub(crate) resources: ItemTable<Resource>,
    pub(crate) templates: ItemTable<PublishedTemplate>,
}

impl RegisteredItems {
    fn catalog(&self) -> Catalog {
        Catalog {
            phase: BackendPhase::Ready,
            tools: self.tools.items(),
            prompts: self.prompts.items(),
            resources: self.resources.items(),
            templates: self.templates.items(),
            ..Catalog::default()
        }
    }

    /// The template that matches a URI.
    fn template_of(&self, uri: &str) -> Option<&ItemEntry<PublishedTemplate>> {
        self.templates.entries.iter().find(|entry| entry.item.uri.matches(uri).is_some())
    }

    /// Finds the handler of a call; `None` for an argument without a completer.
    fn find(&self, call: &Call) -> Result<Option<BoxHandler>, ToolError> {
        match &call.target {
            CallTarget::Tool(name) => {
                let tool = self.tools.get(name).ok_or_else(|| ToolError::unknown_tool(name))?;
                Ok(Some(tool.handler.clone()))
            }
            CallTarget::Prompt(name) => {
                let prompt = self.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
                Ok(Some(prompt.handler.clone()))
            }
            CallTarget::Resource(uri) => {
                let resource = self.resources.get(uri).map(|resource| &resource.handler);
                let handler = resource.or_else(|| self.template_of(uri).map(|template| &template.handler));
                Ok(Some(handler.ok_or_else(|| unknown_resource(uri))?.clone()))
            }
            CallTarget::Completion(CompletionReference::Prompt(name)) => {
                let prompt = self.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
                Ok(prompt.completer(call))
            }
            CallTarget::Completion(CompletionReference::Template(text)) => match self.templates.get(text) {
                Some(template) => Ok(template.completer(call)),
                None if self.resources.get(text).is_some() => Ok(None),
                // It may be a URI that a template matches.
                None => Ok(self.template_of(text).ok_or_else(|| unknown_resource(text))?.completer(call)),
            },
            // The frontend handles the tasks of these tools.
            CallTarget::Task(task) => Err(ToolError::unknown_tool(&task.tool)),
            CallTarget::Function(name) => Err(toolyard_core::function::unknown(name)),
        }
    }
}

fn unknown_prompt(name: &str) -> ToolError {
    ToolError::unknown_prompt(name)
}

fn unknown_resource(uri: &str) -> ToolError {
    ToolError::new(ErrorCode::ResourceNotFound, format!("Resource not found: {uri}"))
}

/// The items of one kind, in order of registration.
pub(crate) struct ItemTable<Item> {
    entries: Vec<ItemEntry<Item>>,
    positions: HashMap<Arc<str>, usize>,
}

/// One registered item.
pub(crate) struct ItemEntry<Item> {
    key: Arc<str>,
    pub(crate) item: Arc<Item>,
    handler: BoxHandler,
    /// Completers by argument name.
    completers: HashMap<String, BoxHandler>,
}

impl<Item> Default for ItemTable<Item> {
    fn default() -> Self {
        Self { entries: Vec::new(), positions: HashMap::new() }
    }
}

impl<Item> ItemTable<Item> {
    pub(crate) fn add(&mut self, kind: &'static str, new: PreparedItem<Item>) -> Result<(), RegisterError> {
        let PreparedItem { key, item, handler } = new;
        if self.positions.contains_key(&key) {
            return Err(RegisterError::Duplicate { kind, name: key.to_string() });
        }
        self.positions.insert(key.clone(), self.entries.len());
        self.entries.push(ItemEntry { key, item, handler, completers: HashMap::new() });
        Ok(())
    }

    /// Removes an item; the result is an error if there is none, for [`ServerBackend::change`].
    pub(crate) fn remove(&mut self, key: &str) -> Result<(), ItemNotFound> {
        let position = self.positions.remove(key).ok_or(ItemNotFound)?;
        self.entries.remove(position);
        for (position, entry) in self.entries.iter().enumerate().skip(position) {
            self.positions.insert(entry.key.clone(), position);
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&ItemEntry<Item>> {
        self.entries.get(*self.positions.get(key)?)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut ItemEntry<Item>> {
        self.entries.get_mut(*self.positions.get(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ItemEntry<Item>> {
        self.entries.iter()
    }

    fn items(&self) -> Vec<Arc<Item>> {
        self.entries.iter().map(|entry| entry.item.clone()).collect()
    }
}

/// No item of that key is registered.
pub(crate) struct ItemNotFound;

impl<Item> ItemEntry<Item> {
    /// Sets the completer of an argument; returns `false` if there is one already.
    pub(crate) fn complete(&mut self, argument: &str, completer: BoxHandler) -> bool {
        let vacant = !self.completers.contains_key(argument);
        if vacant {
            self.completers.insert(argument.to_owned(), completer);
        }
        vacant
    }

    pub(crate) fn completes(&self) -> bool {
        !self.completers.is_empty()
    }

    fn completer(&self, call: &Call) -> Option<BoxHandler> {
        let argument = call.params.get("argument")?.to_object().ok()?;
        self.completers.get(&*argument.get_str("name")?).cloned()
    }
}
