//! Builds the handler of the built-in tools that the manifest enables.

mod agent_model;
mod groups;
mod search;
mod subagents;
mod web;
mod wisps;

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use tokio::sync::{mpsc, watch};
use toolyard_a2a::client::AgentClient;
use toolyard_a2a::{AgentBackend, Agents, OwnAgent};
use toolyard_agent::guides::{self, GuideBook, GuideDocument, SEARCH_GUIDE};
use toolyard_agent::large::{self, LargeSettings};
use toolyard_agent::management::{self, InvokeToolBackend, ServerManagement, ServerManager};
use toolyard_agent::memory::reader::MemoryReader;
use toolyard_agent::memory::{self, SessionHandleSettings, WorkingMemory};
use toolyard_agent::openrouter::{self, OpenRouterApi};
use toolyard_agent::scripts;
use toolyard_agent::search::{ServiceIndex, ToolEmbeddings, ToolFinder};
use toolyard_agent::skills::{self, SkillStore};
use toolyard_agent::summary::SummarySource;
use toolyard_code::engine::ScriptEngine;
use toolyard_code::shapes::ObservedShapes;
use toolyard_code::tools::{self as code_tools, CodeTools};
use toolyard_core::store::Store;
use toolyard_core::{Backend, BackendWrapper, FailureCause, Gateway, NestedGateway, SecretRedactor};
use toolyard_manifest::{BuiltinSettings, CodeSettings, HandlerConfig, ListenAddress, ProcessSettings};
use toolyard_net::client::HttpClient;
use toolyard_schedule::{self as schedule, ScheduleBackend, Schedules};
use toolyard_sdk::{RegisterError, Server};
use toolyard_subagent::{self as subagent, RunningSubagents, SubagentBackend, Subagents};

use self::search::SearchTools;
use super::{HandlerBuilder, UnsupportedBackend};
use crate::added_servers::{AddedServers, AddedServersDeps, GatewayServers};
use crate::bus;
use crate::fleet::{FleetCommand, HandlerStatus};
use crate::gateway::{AppliedLayerSettings, MemoryLayerSettings};
use crate::hosting::CodeHosting;
use crate::openrouter::OpenRouterClient;
use crate::summaries::ServerSummaries;

pub(crate) use self::groups::group as tool_group;
pub(super) use self::search::disclosure;
pub(super) use self::subagents::model_tools;

/// The parts of the gateway that the built-in tools use.
#[derive(Clone)]
pub struct BuiltinDeps {
    /// The gateway, as a weak reference because it owns these tools.
    pub gateway: Weak<Gateway>,
    /// Calls that these tools make for their callers.
    pub nested: NestedGateway,
    /// The store of working memory, skills and servers.
    pub store: Arc<dyn Store>,
    /// Settings of the layers of working memory.
    pub memory_layers: MemoryLayerSettings,
    /// Status of each handler.
    pub statuses: watch::Receiver<Arc<[HandlerStatus]>>,
    /// Commands to the fleet.
    pub commands: mpsc::WeakSender<FleetCommand>,
    /// Index of all tools.
    pub finder: Arc<ToolFinder>,
    /// Embeddings of all tools, if there is an endpoint.
    pub embeddings: Option<Arc<ToolEmbeddings>>,
    /// Index of what the handlers offer, for search and hints.
    pub services: ServiceIndex,
    /// The servers added at run time.
    pub added: Arc<AddedServers>,
    /// Summaries of servers by a language model.
    pub summaries: Arc<ServerSummaries>,
    /// Scheduled tasks.
    pub schedules: Schedules,
    /// Other agents.
    pub agents: Agents,
    /// Running subagents, which an edit does not end.
    pub subagents: RunningSubagents,
}

impl BuiltinDeps {
    /// Collects the parts of a gateway with these bound addresses, without embeddings.
    #[must_use]
    pub fn new(
        gateway: &Arc<Gateway>,
        store: &Arc<dyn Store>,
        memory_layers: MemoryLayerSettings,
        statuses: &watch::Receiver<Arc<[HandlerStatus]>>,
        commands: &mpsc::Sender<FleetCommand>,
        process: &ProcessSettings,
        listening: &[ListenAddress],
    ) -> Self {
        let (gateway, commands) = (Arc::downgrade(gateway), commands.downgrade());
        let schedules = Schedules::new(store.clone(), store.clone());
        let client = AgentClient::new(HttpClient::with_system_roots);
        let agents = Agents::new(own_agent(process), store.clone(), client);
        bus::agents::connect(&agents, process, store);
        let (store, statuses) = (store.clone(), statuses.clone());
        let server_deps = AddedServersDeps {
            store: store.clone(),
            commands: commands.clone(),
            statuses: statuses.clone(),
            listening: listening.iter().filter_map(ListenAddress::tcp).collect(),
        };
        let allowed = process.builtins.as_ref().and_then(|builtins| builtins.mcp.clone());
        let added = Arc::new(AddedServers::new(server_deps, allowed, &process.timeouts));
        let summaries = Arc::<ServerSummaries>::default();
        let finder = Arc::new(ToolFinder::new(gateway.clone(), HandlerConfig::BUILTINS));
        let services = ServiceIndex::new(summaries.clone(), finder.clone());
        let services = services.with_agents(Arc::new(agents.clone()));
        let nested = NestedGateway::new(gateway.clone(), HandlerConfig::BUILTINS);
        Self {
            gateway,
            nested,
            store,
            memory_layers,
            statuses,
            commands,
            finder,
            embeddings: None,
            services,
            added,
            summaries,
            schedules,
            agents,
            subagents: RunningSubagents::default(),
        }
    }

    fn servers(&self) -> Arc<dyn ServerManager> {
        Arc::new(GatewayServers { gateway: self.gateway.clone(), added: self.added.clone() })
    }

    fn summaries(&self) -> Arc<dyn SummarySource> {
        self.summaries.clone()
    }
}

impl HandlerBuilder {
    pub(super) fn builtins(&self, builtins: &BuiltinSettings, secrets: &SecretRedactor) -> Arc<dyn Backend> {
        let search_tools = self.builtin_deps.as_ref().zip(builtins.search.as_ref());
        let search_tools = search_tools.map(|(deps, settings)| SearchTools::new(deps, settings));
        let memory = builtins.memory.zip(self.builtin_deps.as_ref());
        let memory = memory.map(|(limits, deps)| WorkingMemory::new(deps.store.clone(), limits));
        let subagents = self.subagents(builtins, memory.as_ref());
        match self.server(builtins, memory.clone(), search_tools.as_ref(), subagents.as_ref(), secrets) {
            Ok(server) => {
                let backend = SubagentBackend::wrap(server.into_backend(), subagents);
                let backend = search_tools
                    .into_iter()
                    .fold(backend, |backend, search_tools| search_tools.wrap(backend));
                let backend = self.with_layers(builtins, memory.clone(), backend);
                let backend = self.with_schedules(builtins, self.with_invocation(builtins, backend));
                self.with_agents(builtins, memory, backend)
            }
            // Two built-in tools have the same name.
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot serve the built-in tools");
                Arc::new(UnsupportedBackend::because(error.to_string(), None))
            }
        }
    }

    /// Wraps the backend if calls of some tools stand for calls of others.
    fn with_invocation(&self, builtins: &BuiltinSettings, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        match (&self.builtin_deps, &builtins.mcp) {
            (Some(deps), Some(_)) => Arc::new(InvokeToolBackend::new(backend, deps.servers())),
            _ => backend,
        }
    }

    /// Sets the settings of the layers of working memory for as long as the backend exists.
    fn with_layers(
        &self,
        builtins: &BuiltinSettings,
        memory: Option<WorkingMemory>,
        backend: Arc<dyn Backend>,
    ) -> Arc<dyn Backend> {
        let Some(deps) = &self.builtin_deps else { return backend };
        let results = large_settings(builtins, memory.as_ref());
        let handles =
            memory.map(|memory| SessionHandleSettings { memory, handler: HandlerConfig::BUILTINS.into() });
        let web = builtins.web.as_ref();
        Arc::new(BuiltinBackend {
            inner: backend,
            failure: web.and_then(|web| web::rendering_failure(web, self.hosting.as_ref())),
            _layers: deps.memory_layers.apply(results, handles),
        })
    }

    /// Enables scheduled tasks for as long as the backend exists.
    fn with_schedules(&self, builtins: &BuiltinSettings, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        match (&self.builtin_deps, &builtins.schedules) {
            (Some(deps), Some(settings)) => {
                Arc::new(ScheduleBackend::new(backend, deps.schedules.clone(), settings.clone()))
            }
            _ => backend,
        }
    }

    /// Enables other agents for as long as the backend exists.
    fn with_agents(
        &self,
        builtins: &BuiltinSettings,
        memory: Option<WorkingMemory>,
        backend: Arc<dyn Backend>,
    ) -> Arc<dyn Backend> {
        match (&self.builtin_deps, &builtins.agents) {
            (Some(deps), Some(settings)) => {
                Arc::new(AgentBackend::new(backend, deps.agents.clone(), memory, settings.clone()))
            }
            _ => backend,
        }
    }

    fn server(
        &self,
        builtins: &BuiltinSettings,
        memory: Option<WorkingMemory>,
        search_tools: Option<&SearchTools>,
        subagents: Option<&Subagents>,
        secrets: &SecretRedactor,
    ) -> Result<Server, RegisterError> {
        let server = Server::new("toolyard", env!("CARGO_PKG_VERSION"));
        let mut server = server.omit_schema_dialect().refuse_unknown_arguments();
        if let (Some(scripts), Some(hosting)) = (&builtins.scripts, &self.hosting) {
            let reader = memory.clone().map(MemoryReader::new);
            server = scripts::add(server, hosting.runner(scripts), reader)?;
        }
        if let Some(deps) = &self.builtin_deps {
            if let Some(settings) = &builtins.web {
                let (memory, hosting) = (memory.clone(), self.hosting.as_ref());
                let tools = web::tools(deps, settings, hosting, memory, self.budget.clone());
                server = toolyard_web::tools::add(server, tools)?;
            }
            let wisp_memory = memory.clone();
            if builtins.agents.is_some() {
                server = toolyard_a2a::tools::add(server, &deps.agents, memory.clone())?;
            }
            if let Some(memory) = memory {
                server = memory::tools::add(server, memory)?;
            }
            if let Some(limits) = builtins.skills {
                server = skills::add(server, SkillStore::new(deps.store.clone(), limits))?;
            }
            if builtins.schedules.is_some() {
                server = schedule::add(server, &deps.schedules)?;
            }
            if let Some(subagents) = subagents {
                server = subagent::add(server, subagents)?;
            }
            if let Some(tools) = wisps::tools(deps, builtins, wisp_memory) {
                server = toolyard_wisp::add(server, tools)?;
            }
            if let Some(settings) = &builtins.mcp {
                let (servers, summaries) = (deps.servers(), deps.summaries());
                let bridge = settings.bridge.then(|| bus::bridged_servers(&self.process.bus, &deps.store));
                server = management::add(server, ServerManagement { servers, summaries, bridge })?;
            }
        }
        if let Some(search_tools) = search_tools {
            server = search_tools.add(server)?;
        }
        let code = builtins.code.as_ref().zip(self.builtin_deps.as_ref()).zip(self.hosting.as_ref());
        if let Some(((settings, deps), hosting)) = code {
            server = code_tools::add(server, code_tools(deps, settings, hosting))?;
        }
        if let Some(settings) = &builtins.open_router {
            let (client, budget) = (self.client.clone(), self.budget.clone());
            let api = OpenRouterClient::new(settings, &self.process, client, secrets, budget);
            server = openrouter::add(server, &(Arc::new(api) as Arc<dyn OpenRouterApi>))?;
        }
        if builtins.guides {
            server = guides::add(server, Arc::new(guide_book(builtins)))?;
        }
        Ok(server)
    }
}

/// Returns the guides that models can read: those of the manifest, and one for each enabled group of tools.
fn guide_book(builtins: &BuiltinSettings) -> GuideBook {
    let operator_guides = builtins.registry_guides.iter().map(|guide| GuideDocument {
        name: guide.name.clone().into(),
        summary: guide.summary.clone().into(),
        document: guide.document.clone().into(),
    });
    let built_in = [
        (builtins.scripts.is_some(), scripts::GUIDE),
        (builtins.memory.is_some(), memory::GUIDE),
        (builtins.memory.is_some() && builtins.results.is_some(), large::GUIDE),
        (builtins.skills.is_some(), skills::GUIDE),
        (builtins.search.is_some(), SEARCH_GUIDE),
        (builtins.mcp.is_some(), guides::MCP_GUIDE),
        (builtins.web.is_some(), toolyard_web::GUIDE),
        (builtins.schedules.is_some(), guide(schedule::GUIDE)),
        (builtins.subagents.is_some(), guide(subagent::GUIDE)),
        (builtins.wisps.is_some(), toolyard_wisp::GUIDE),
        (builtins.code.is_some(), toolyard_code::GUIDE),
        (builtins.agents.is_some(), toolyard_a2a::GUIDE),
        (builtins.open_router.is_some(), openrouter::GUIDE),
    ];
    let mut book = GuideBook::new();
    for guide in
        operator_guides.chain(built_in.into_iter().filter_map(|(is_on, guide)| is_on.then_some(guide)))
    {
        let name = guide.name.clone();
        // A guide of the manifest replaces the built-in guide of the same name, because it comes first.
        if let Err(error) = book.add(Arc::new(guide)) {
            let error = &error as &dyn std::error::Error;
            tracing::info!(guide = &*name, error, "skipped a guide");
        }
    }
    book
}

/// Returns the gateway as an agent, which has no name unless it is one.
fn own_agent(process: &ProcessSettings) -> OwnAgent {
    let own = process.a2a.as_ref().map(|settings| OwnAgent {
        name: settings.name.clone(),
        url: settings.url.as_ref().map(|url| url.uri().to_string()),
    });
    own.unwrap_or_default()
}

/// Returns the tools for scripts over tools.
fn code_tools(deps: &BuiltinDeps, settings: &CodeSettings, hosting: &CodeHosting) -> CodeTools {
    CodeTools {
        nested: deps.nested.clone(),
        engine: ScriptEngine::new(hosting.sandbox.clone(), settings),
        settings: settings.clone(),
        shapes: Arc::new(ObservedShapes::new(settings.observed)),
    }
}

const fn guide([name, summary, document]: [&'static str; 3]) -> GuideDocument {
    GuideDocument::new(name, summary, document)
}

/// The backend of the built-in tools, with the settings of the layers that belong to them.
struct BuiltinBackend {
    inner: Arc<dyn Backend>,
    /// The reason why something that is configured cannot work on this machine.
    failure: Option<(FailureCause, SystemTime)>,
    _layers: AppliedLayerSettings,
}

impl BackendWrapper for BuiltinBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn last_failure(&self) -> Option<(FailureCause, SystemTime)> {
        self.failure.clone()
    }
}

/// Returns the settings for large results. `None`: large results pass unchanged.
fn large_settings(builtins: &BuiltinSettings, memory: Option<&WorkingMemory>) -> Option<LargeSettings> {
    let options = builtins.results.clone()?;
    Some(LargeSettings { memory: memory.cloned(), handler: HandlerConfig::BUILTINS.into(), options })
}
