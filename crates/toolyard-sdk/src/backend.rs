//! What is registered, as a backend of core: its catalog, and its calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use toolyard_core::registry::Handler;
use toolyard_core::{
    Backend, Call, Catalog, Code, Gateway, Json, Object, Outcome, Output, Phase, Prompt, Reference, Registry,
    Resource, Target, Template, Tool, ToolError,
};

use crate::context::{Context, Shared};
use crate::error::RegisterError;
use crate::register::Registered;

/// What runs the calls of one thing.
pub(crate) type BoxHandler =
    Arc<dyn Fn(Call, Context) -> BoxFuture<'static, Result<Outcome, ToolError>> + Send + Sync>;

/// Everything that is registered. What serves holds it; its handles, and the registry, do not.
pub(crate) struct Yard {
    offered: Mutex<Offered>,
    catalog: watch::Sender<Arc<Catalog>>,
    registry: watch::Sender<Arc<Registry>>,
    /// The URIs of resources that have changed.
    updates: broadcast::Sender<Arc<str>>,
    /// Turns true when nothing more is to be served.
    stopping: watch::Sender<bool>,
    opened: OnceLock<Opened>,
}

/// What there is once everything can be called.
pub(crate) struct Opened {
    /// Us, as the registry has us.
    pub(crate) handler: Handler,
    pub(crate) shared: Arc<Shared>,
    /// What handlers call each other through. They do not hold it themselves.
    pub(crate) _nested: Arc<Gateway>,
}

/// Changes of resources that wait to be told. Of more, a follower learns that it missed some.
const UPDATES: usize = 64;

impl Yard {
    pub(crate) fn new() -> Self {
        Self {
            offered: Mutex::default(),
            catalog: watch::Sender::default(),
            registry: watch::Sender::default(),
            updates: broadcast::Sender::new(UPDATES),
            stopping: watch::Sender::new(false),
            opened: OnceLock::new(),
        }
    }

    /// Makes what is registered callable, and publishes it from now on.
    pub(crate) fn open(&self, opened: Opened) {
        let offered = self.offered();
        let _open_already = self.opened.set(opened);
        self.publish(&offered);
    }

    /// Changes what is offered, and publishes it.
    pub(crate) fn change<T, E>(&self, change: impl FnOnce(&mut Offered) -> Result<T, E>) -> Result<T, E> {
        let mut offered = self.offered();
        let changed = change(&mut offered)?;
        self.publish(&offered);
        Ok(changed)
    }

    /// Whoever changes what is offered publishes it before anybody else can, so that no change is undone.
    fn publish(&self, offered: &Offered) {
        let Some(opened) = self.opened.get() else { return };
        let catalog = Arc::new(offered.catalog());
        self.catalog.send_replace(catalog.clone());
        self.registry.send_replace(Arc::new(Registry::of(&opened.handler, &catalog)));
    }

    pub(crate) fn offered(&self) -> MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> watch::Receiver<Arc<Registry>> {
        self.registry.subscribe()
    }

    /// Ends what is served.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    async fn run(&self, call: Call) -> Result<Outcome, ToolError> {
        let handler = self.offered().find(&call)?;
        let Some(handler) = handler else { return Ok(no_values()) };
        let Some(opened) = self.opened.get() else { return Err(ended()) };
        // Dropped with this future, which is how a handler that cannot be dropped learns of it.
        let (context, _running) = Context::new(&call, opened.shared.clone());
        handler(call, context).await
    }

    /// Tells those who follow a resource that it has changed.
    pub(crate) fn updated(&self, uri: &str) {
        // Where nobody follows anything, nobody is told.
        let _nobody = self.updates.send(uri.into());
    }
}

impl Backend for Yard {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        if *self.stopping.borrow() {
            return ready(Err(ended())).boxed();
        }
        self.run(call).boxed()
    }

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        let uri: Arc<str> = uri.into();
        let changes = stream::unfold((self.updates.subscribe(), uri), |(mut updates, uri)| async move {
            loop {
                match updates.recv().await {
                    Ok(changed) if changed == uri => break,
                    Ok(_) => {}
                    // It may have been among those that were missed.
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                }
            }
            Some((Object::new().with("uri", Json::string(&uri)), (updates, uri)))
        });
        changes.boxed()
    }
}

/// The yard, as the registry has it: what is registered does not hold itself.
pub(crate) struct Door(pub(crate) Weak<Yard>);

impl Backend for Door {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.upgrade().map_or_else(|| watch::channel(Arc::default()).1, |yard| yard.catalog())
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        Box::pin(async move {
            let yard = self.0.upgrade().ok_or_else(ended)?;
            // What has come in is finished, with the calls that it makes, also when no more is taken.
            yard.run(call).await
        })
    }

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        self.0.upgrade().map_or_else(|| stream::pending().boxed(), |yard| yard.follow(uri))
    }
}

fn ended() -> ToolError {
    ToolError::new(Code::Unavailable, "The server has ended")
}

/// What completes to nothing.
fn no_values() -> Outcome {
    let completion = Object::new().with("values", Json::array([])).with("hasMore", Json::boolean(false));
    let body = Object::new().with("completion", completion.to_json());
    Outcome::Done(Output { body, is_error: false })
}

/// Everything of all kinds.
#[derive(Default)]
pub(crate) struct Offered {
    pub(crate) tools: Part<Tool>,
    pub(crate) prompts: Part<Prompt>,
    pub(crate) resources: Part<Resource>,
    pub(crate) templates: Part<Template>,
}

impl Offered {
    fn catalog(&self) -> Catalog {
        Catalog {
            phase: Phase::Ready,
            tools: self.tools.items(),
            prompts: self.prompts.items(),
            resources: self.resources.items(),
            templates: self.templates.items(),
            ..Catalog::default()
        }
    }

    /// The template that stands for a URI.
    fn template_of(&self, uri: &str) -> Option<&Entry<Template>> {
        self.templates.entries.iter().find(|entry| entry.item.uri.matches(uri).is_some())
    }

    /// What runs a call; `None` for an argument that nobody completes.
    fn find(&self, call: &Call) -> Result<Option<BoxHandler>, ToolError> {
        match &call.target {
            Target::Tool(name) => {
                let tool = self.tools.get(name).ok_or_else(|| ToolError::unknown_tool(name))?;
                Ok(Some(tool.handler.clone()))
            }
            Target::Prompt(name) => {
                let prompt = self.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
                Ok(Some(prompt.handler.clone()))
            }
            Target::Resource(uri) => {
                let resource = self.resources.get(uri).map(|resource| &resource.handler);
                let handler = resource.or_else(|| self.template_of(uri).map(|template| &template.handler));
                Ok(Some(handler.ok_or_else(|| unknown_resource(uri))?.clone()))
            }
            Target::Completion(Reference::Prompt(name)) => {
                let prompt = self.prompts.get(name).ok_or_else(|| unknown_prompt(name))?;
                Ok(prompt.completer(call))
            }
            Target::Completion(Reference::Template(text)) => match self.templates.get(text) {
                Some(template) => Ok(template.completer(call)),
                None if self.resources.get(text).is_some() => Ok(None),
                // It may be one of the URIs that a template stands for.
                None => Ok(self.template_of(text).ok_or_else(|| unknown_resource(text))?.completer(call)),
            },
            // Tasks of these tools are the frontend's.
            Target::Task(task) => Err(ToolError::unknown_tool(&task.tool)),
            Target::Function(name) => Err(toolyard_core::function::unknown(name)),
        }
    }
}

fn unknown_prompt(name: &str) -> ToolError {
    ToolError::new(Code::PromptNotFound, format!("Unknown prompt: {name}"))
}

fn unknown_resource(uri: &str) -> ToolError {
    ToolError::new(Code::ResourceNotFound, format!("Resource not found: {uri}"))
}

/// Everything of one kind, in the order in which it was registered.
pub(crate) struct Part<Item> {
    entries: Vec<Entry<Item>>,
    places: HashMap<Arc<str>, usize>,
}

/// One registered thing.
pub(crate) struct Entry<Item> {
    key: Arc<str>,
    pub(crate) item: Arc<Item>,
    handler: BoxHandler,
    /// What completes its arguments, by their names.
    completers: HashMap<String, BoxHandler>,
}

impl<Item> Default for Part<Item> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::new() }
    }
}

impl<Item> Part<Item> {
    pub(crate) fn add(&mut self, kind: &'static str, new: Registered<Item>) -> Result<(), RegisterError> {
        let Registered { key, item, handler } = new;
        if self.places.contains_key(&key) {
            return Err(RegisterError::Duplicate { kind, name: key.to_string() });
        }
        self.places.insert(key.clone(), self.entries.len());
        self.entries.push(Entry { key, item, handler, completers: HashMap::new() });
        Ok(())
    }

    /// Takes one out; `Err` where there is none, for [`Yard::change`].
    pub(crate) fn remove(&mut self, key: &str) -> Result<(), NotThere> {
        let place = self.places.remove(key).ok_or(NotThere)?;
        self.entries.remove(place);
        for (place, entry) in self.entries.iter().enumerate().skip(place) {
            self.places.insert(entry.key.clone(), place);
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry<Item>> {
        self.entries.get(*self.places.get(key)?)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry<Item>> {
        self.entries.get_mut(*self.places.get(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<Item>> {
        self.entries.iter()
    }

    fn items(&self) -> Vec<Arc<Item>> {
        self.entries.iter().map(|entry| entry.item.clone()).collect()
    }
}

/// There was nothing to take out.
pub(crate) struct NotThere;

impl<Item> Entry<Item> {
    /// Sets what completes an argument; `false` where something does already.
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
