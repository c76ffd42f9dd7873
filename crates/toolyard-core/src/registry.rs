//! The registry: a snapshot of everything that can be called, by published name. A call resolves its name once, in one
//! snapshot.

mod assemble;
mod disclosure;
mod links;
mod listing;
mod own;
mod publish_notice;
#[cfg(test)]
mod tests;
mod unlisted;
mod uri;
mod view;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::access::{AccessScope, CallPrice};
use crate::backend::{Backend, BackendPhase};
use crate::cache::CacheHint;
use crate::call::{CallTarget, Caller, ClientIdentity, CompletionReference, TaskReference};
use crate::error::{ErrorCode, ToolError};
use crate::function;
use crate::gate::CallGate;
use crate::json::Json;
use crate::layers::ResultChecks;
use crate::names::{HandlerNamespaces, PrefixPolicy};
use crate::nearest::nearest_tools;
use crate::overrides::{AddedArguments, ChunkingPolicy, Overrides};
use crate::secrets::SecretRedactor;
use crate::tool::Tool;
use crate::uri_template::UriTemplate;

pub use disclosure::{DisclosureMode, DisclosurePolicy};
pub(crate) use links::may_have_links;
pub use listing::EncodedListing;
use own::OwnRegistry;
pub use publish_notice::{NoticeReason, PublishNotice};
use unlisted::UnlistedResources;
pub(crate) use uri::qualify_contents;

/// A handler of the manifest with its backend, name and limits.
#[derive(Clone)]
pub struct HandlerEntry {
    /// Name in the manifest.
    pub name: Arc<str>,
    /// Backend that runs its calls.
    pub backend: Arc<dyn Backend>,
    /// Limits of its calls.
    pub limits: Arc<CallLimits>,
    /// Rule for prefixing the names of its tools and prompts.
    pub prefix: PrefixPolicy,
    /// Overrides of its tools.
    pub overrides: Arc<Overrides>,
    /// `true` if arguments whose names the interfaces of models refuse are published under other names.
    pub renames_arguments: bool,
    /// Checks of the results of its tools.
    pub result_checks: ResultChecks,
    /// Price of calls without a price of their own. `None`: the price that the backend states.
    pub price: Option<CallPrice>,
    /// Display name, if the manifest has one.
    pub display_name: Option<Arc<str>>,
    /// Description, if the manifest has one.
    pub description: Option<Arc<str>>,
    /// Treatment of large results of tools without a policy of their own.
    pub chunking: ChunkingPolicy,
    /// Redacts the handler's secrets.
    pub secrets: SecretRedactor,
    /// Policy for advertising tools, if this handler has search tools.
    pub disclosure: Option<Arc<DisclosurePolicy>>,
    /// `true` for the gateway's own tools, whose names never imitate another handler.
    pub is_builtin: bool,
    /// `true` for tools of workers on a message bus. A worker neither announces nor runs them, so that no call returns to
    /// the bus.
    pub is_on_bus: bool,
    /// `true` for a server that was added at run time. Models know its tools by the server's own names.
    pub is_added: bool,
    /// Own names of tools that need the model of the caller's client. They exist for callers whose clients lend it.
    pub model_tools: &'static [&'static str],
}

impl HandlerEntry {
    /// Creates a handler whose tools are published unchanged.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, backend: Arc<dyn Backend>, limits: CallLimits) -> Self {
        Self {
            name: name.into(),
            backend,
            limits: Arc::new(limits),
            prefix: PrefixPolicy::default(),
            overrides: Arc::default(),
            renames_arguments: false,
            result_checks: ResultChecks::None,
            price: None,
            display_name: None,
            description: None,
            chunking: ChunkingPolicy::default(),
            secrets: SecretRedactor::default(),
            disclosure: None,
            is_builtin: false,
            is_on_bus: false,
            is_added: false,
            model_tools: &[],
        }
    }
}

/// The limits of the calls of one handler.
#[derive(Debug)]
pub struct CallLimits {
    /// Time limit of a call.
    pub timeout: Duration,
    /// Gate for concurrent calls.
    pub gate: CallGate,
}

/// An entry that can be called.
pub struct RegistryEntry {
    /// Published name: a name, a URI, or the text of a template.
    pub name: Arc<str>,
    /// The server's own name. It differs from the published one after a clash, a rename or an override.
    pub own: Arc<str>,
    /// The published tool without its name, if the entry is a tool.
    pub tool: Option<Arc<Tool>>,
    /// Arguments that are added to its calls.
    pub additions: Option<Arc<AddedArguments>>,
    /// Price of a call. `None`: the price that the backend states.
    pub price: Option<CallPrice>,
    /// Treatment of large results.
    pub chunking: ChunkingPolicy,
    /// Handler of the entry.
    pub handler: HandlerEntry,
}

impl RegistryEntry {
    /// Returns the name of a tool beside the name of its server: for a server that was added at run time the server's
    /// own one, and otherwise the published one.
    #[must_use]
    pub const fn service_name(&self) -> &Arc<str> {
        if self.handler.is_added { &self.own } else { &self.name }
    }
}

/// All entries at one moment, in the order of the manifest.
#[derive(Default)]
pub struct Registry {
    tools: KindIndex,
    prompts: KindIndex,
    resources: KindIndex,
    templates: KindIndex,
    /// Templates with their own texts, in order.
    patterns: Vec<(UriTemplate, Arc<RegistryEntry>)>,
    unlisted: UnlistedResources,
    /// Handlers that URIs name.
    namespaces: Arc<HandlerNamespaces>,
    /// Scope of this view, if it is one.
    scope: Option<AccessScope>,
    /// Tools that need the model of the caller's client, by own names, with their handlers.
    model_tools: Vec<(Arc<str>, &'static [&'static str])>,
    phases: Vec<(Arc<str>, BackendPhase)>,
    /// Versions of the hosted functions whose lists these are, by handler. Views have none.
    versions: Vec<(Arc<str>, Arc<str>)>,
    /// Handlers whose lists are not known yet, also those outside of the scope.
    starting: Vec<Arc<str>>,
    /// Cache hints of the handlers.
    hints: Vec<(Arc<str>, [Option<CacheHint>; 4])>,
    notices: Vec<PublishNotice>,
    settled: bool,
    /// Handler that decides about advertising, with its policy.
    discloses: Option<(Arc<str>, Arc<DisclosurePolicy>)>,
    /// Tools with the output schemas that models see, if they differ, created on first use.
    tools_for_models: OnceLock<Option<EncodedListing>>,
    /// Advertised tools if they are fewer, created on first use.
    advertised: OnceLock<Option<EncodedListing>>,
    /// Advertised tools for clients that expect objects as results, if they differ, created on first use.
    advertised_objects: OnceLock<Option<EncodedListing>>,
    /// Registries of single clients that differ, by client.
    own: HashMap<ClientIdentity, OwnRegistry>,
    /// `true` if this is what a single client sees.
    is_of_one_client: bool,
    /// Names of the tools that only this client has.
    own_tools: HashSet<Arc<str>>,
    /// Views for scopes, created on first use.
    views: Mutex<HashMap<AccessScope, Arc<Registry>>>,
}

/// All entries of one kind.
#[derive(Default)]
struct KindIndex {
    listing: EncodedListing,
    by_name: HashMap<Arc<str>, Arc<RegistryEntry>>,
    hint: Option<CacheHint>,
}

/// Maximum number of cached views. Operators define the scopes.
const MOST_VIEWS: usize = 256;

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl EntryKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];
}

impl Registry {
    /// Returns the caller's view: what its own connections offer instead, without the entries outside of its scope, and
    /// without the tools that need a model which its client does not lend.
    #[must_use]
    pub fn view_for(registry: Arc<Self>, caller: &Caller) -> Arc<Self> {
        let registry = registry.own_registry(caller).unwrap_or(registry);
        let Some(scope) = registry.scope_of(caller).filter(|scope| !scope.is_everything()) else {
            return registry;
        };
        let mut views = registry.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&*scope) {
            return view.clone();
        }
        if views.len() >= MOST_VIEWS {
            views.clear();
        }
        let view = Arc::new(registry.view(&scope));
        views.insert(scope.into_owned(), view.clone());
        view
    }

    /// Returns what exists for a caller; `None` for everything.
    fn scope_of<'a>(&self, caller: &'a Caller) -> Option<Cow<'a, AccessScope>> {
        let granted = caller.grant.as_ref().map(|grant| Cow::Borrowed(&grant.scope));
        if caller.lends_model || self.model_tools.is_empty() {
            return granted;
        }
        let granted = granted.map_or_else(AccessScope::all, Cow::into_owned);
        let needing = self.model_tools.iter();
        Some(Cow::Owned(needing.fold(granted, |scope, (handler, tools)| scope.without(handler, tools))))
    }

    /// Resolves the target of a call. Functions are looked up elsewhere: see [`FunctionLookup`](crate::FunctionLookup).
    ///
    /// # Errors
    /// [`ErrorCode::ToolNotFound`], [`ErrorCode::PromptNotFound`] or [`ErrorCode::ResourceNotFound`], or
    /// [`ErrorCode::Unavailable`] while a handler that may have the prompt or resource is starting.
    pub fn resolve(&self, target: &CallTarget) -> Result<&Arc<RegistryEntry>, ToolError> {
        match target {
            CallTarget::Tool(name) => self.tool(name),
            CallTarget::Task(TaskReference { tool, handler, .. }) => {
                let entry = self.tool(tool)?;
                let is_owner = entry.handler.name == *handler;
                is_owner.then_some(entry).ok_or_else(|| ToolError::unknown_tool(tool))
            }
            CallTarget::Prompt(name) | CallTarget::Completion(CompletionReference::Prompt(name)) => {
                let unknown = || match self.may_be_starting(name) {
                    true => ToolError::unknown_prompt(name).until_started(),
                    false => ToolError::unknown_prompt(name),
                };
                self.prompts.by_name.get(name).ok_or_else(unknown)
            }
            CallTarget::Resource(uri) => self.resource(uri).ok_or_else(|| self.unknown_resource(uri)),
            CallTarget::Function(name) => Err(function::unknown(name)),
            CallTarget::Completion(CompletionReference::Template(text)) => {
                // Clients may ask about a plain URI, too.
                let template = self.templates.by_name.get(text).or_else(|| self.resource(text));
                template.ok_or_else(|| self.unknown_resource(text))
            }
        }
    }

    /// Returns the tool of a published name.
    ///
    /// # Errors
    /// [`ErrorCode::ToolNotFound`].
    pub fn tool(&self, name: &str) -> Result<&Arc<RegistryEntry>, ToolError> {
        self.tools.by_name.get(name).ok_or_else(|| ToolError::unknown_tool(name))
    }

    /// Returns the listed tool of this name among those of servers that were added at run time, which models know by the
    /// server's own names; `None` if several servers have one.
    #[must_use]
    pub fn tool_of_added_server(&self, own: &str) -> Option<&Arc<RegistryEntry>> {
        let is_it = |entry: &&Arc<RegistryEntry>| entry.handler.is_added && *entry.own == *own;
        let mut entries = self.entries(EntryKind::Tools).iter().filter(is_it);
        entries.next().filter(|_| entries.next().is_none())
    }

    /// Returns the tool of a published name, as [`tool`](Self::tool) does, for a caller that reads the error.
    ///
    /// # Errors
    /// [`ErrorCode::ToolNotFound`], with the names of similar tools in this view, or [`ErrorCode::Unavailable`] while a
    /// handler that may have the tool is starting.
    pub fn tool_or_nearest(&self, name: &str) -> Result<&Arc<RegistryEntry>, ToolError> {
        let unknown = || match self.may_be_starting(name) {
            true => ToolError::unknown_tool(name).until_started(),
            false => ToolError::unknown_tool_but(name, &nearest_tools(self, name)),
        };
        self.tools.by_name.get(name).ok_or_else(unknown)
    }

    /// Returns `true` if a handler whose lists are not known yet may have a tool or prompt of this name for the caller.
    fn may_be_starting(&self, name: &str) -> bool {
        let may_have =
            |handler: &Arc<str>| self.scope.as_ref().is_none_or(|scope| scope.allows_name(handler, name));
        self.starting.iter().any(may_have)
    }

    /// Returns the entry of a URI: the listed resource, otherwise the first matching template, otherwise the only
    /// handler that may have it unlisted. A URI that names a handler is one of that handler.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Arc<RegistryEntry>> {
        let owner = self.namespaces.owner_of_uri(uri);
        let is_owner = |entry: &RegistryEntry| owner.is_none_or(|owner| *owner == entry.handler.name);
        let fits = |(pattern, entry): &&(UriTemplate, Arc<RegistryEntry>)| {
            is_owner(entry) && entry.own_uri(uri).is_some_and(|own| pattern.matches(&own).is_some())
        };
        let templated = || self.patterns.iter().find(fits).map(|(_, entry)| entry);
        let entry = self.resources.by_name.get(uri).or_else(templated).or_else(|| self.unlisted.find(uri))?;
        let is_in_scope = |scope: &AccessScope| scope.contains_uri(&entry.handler.name, uri);
        (is_owner(entry) && self.scope.as_ref().is_none_or(is_in_scope)).then_some(entry)
    }

    fn unknown_resource(&self, uri: &str) -> ToolError {
        let unknown = ToolError::new(ErrorCode::ResourceNotFound, format!("Resource not found: {uri}"));
        let owner = self.namespaces.owner_of_uri(uri);
        let is_in_scope = |scope: &AccessScope, handler: &str| {
            scope.allows_name(handler, uri) && scope.contains_uri(handler, uri)
        };
        let may_have = |handler: &Arc<str>| {
            owner.is_none_or(|owner| *owner == *handler)
                && self.scope.as_ref().is_none_or(|scope| is_in_scope(scope, handler))
        };
        if self.starting.iter().any(may_have) { unknown.until_started() } else { unknown }
    }

    /// Returns the listed entries of one kind, in the order of the manifest and of their servers.
    #[must_use]
    pub fn entries(&self, kind: EntryKind) -> &[Arc<RegistryEntry>] {
        self.part(kind).listing.entries()
    }

    /// Returns the full listing of one kind.
    #[must_use]
    pub const fn full_listing(&self, kind: EntryKind) -> &EncodedListing {
        &self.part(kind).listing
    }

    /// Returns the listed entries of one kind with their published definitions.
    pub fn definitions(&self, kind: EntryKind) -> impl Iterator<Item = (&Arc<RegistryEntry>, &Json)> {
        self.part(kind).listing.iter()
    }

    /// Returns every entry of one kind that a call finds, in no order, including those of unavailable handlers.
    pub fn callable_entries(&self, kind: EntryKind) -> impl Iterator<Item = &Arc<RegistryEntry>> {
        self.part(kind).by_name.values()
    }

    /// Returns all backends, each once.
    pub fn backends(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        let entries = EntryKind::ALL.into_iter().flat_map(|kind| self.callable_entries(kind));
        let by_name: HashMap<_, _> =
            entries.map(|entry| (&entry.handler.name, &entry.handler.backend)).collect();
        by_name.into_values()
    }

    /// Returns the published definitions of one kind as an array. It is encoded once, so that a list of thousands costs
    /// readers only the sending.
    #[must_use]
    pub const fn list(&self, kind: EntryKind) -> &Json {
        self.part(kind).listing.json()
    }

    /// Returns the cache hint of a list, combined from its handlers; `None` if none has one.
    #[must_use]
    pub const fn hint(&self, kind: EntryKind) -> Option<CacheHint> {
        self.part(kind).hint
    }

    /// Combines the cache hints of the handlers. A handler with an empty list counts too: that it has nothing may be
    /// cached no longer than other lists.
    fn bring_hints_together(&mut self) {
        for kind in EntryKind::ALL {
            let hints = self.hints.iter().filter_map(|(_, hints)| hints[kind as usize]);
            self.part_mut(kind).hint = hints.reduce(CacheHint::and);
        }
    }

    /// Records the origins of all resources.
    fn learn_origins(&mut self) {
        self.unlisted.learn(self.resources.by_name.values().chain(self.templates.by_name.values()));
    }

    const fn part_mut(&mut self, kind: EntryKind) -> &mut KindIndex {
        match kind {
            EntryKind::Tools => &mut self.tools,
            EntryKind::Prompts => &mut self.prompts,
            EntryKind::Resources => &mut self.resources,
            EntryKind::Templates => &mut self.templates,
        }
    }

    const fn part(&self, kind: EntryKind) -> &KindIndex {
        match kind {
            EntryKind::Tools => &self.tools,
            EntryKind::Prompts => &self.prompts,
            EntryKind::Resources => &self.resources,
            EntryKind::Templates => &self.templates,
        }
    }

    /// Returns `true` once the handlers have had their time to answer. A registry before its first assembly is empty
    /// and says nothing.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.settled
    }

    /// Returns the state of each handler, in the order of the manifest.
    #[must_use]
    pub fn phases(&self) -> &[(Arc<str>, BackendPhase)] {
        &self.phases
    }

    /// Returns the version of the hosted function whose lists a handler has.
    #[must_use]
    pub fn function_version(&self, handler: &str) -> Option<&Arc<str>> {
        self.versions.iter().find(|(name, _)| **name == *handler).map(|(_, version)| version)
    }

    /// Returns notices about entries that are not published as offered, or not as the manifest asks.
    #[must_use]
    pub fn notices(&self) -> &[PublishNotice] {
        &self.notices
    }
}
