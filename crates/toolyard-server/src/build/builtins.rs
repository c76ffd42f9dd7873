//! Builds the handler of the built-in tools that the manifest enables.

mod search;

use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, watch};
use toolyard_agent::guides::{self, GuideBook, GuideDocument, SEARCH_GUIDE};
use toolyard_agent::large::{self, LargeSettings};
use toolyard_agent::management::{self, InvokeToolBackend, ServerManagement, ServerManager};
use toolyard_agent::memory::reader::MemoryReader;
use toolyard_agent::memory::{self, SessionHandleSettings, WorkingMemory};
use toolyard_agent::scripts;
use toolyard_agent::search::{ServiceIndex, ToolEmbeddings, ToolFinder};
use toolyard_agent::skills::{self, SkillStore};
use toolyard_agent::summary::SummarySource;
use toolyard_core::store::Store;
use toolyard_core::{Backend, Gateway};
use toolyard_manifest::{BuiltinSettings, HandlerConfig, ListenAddress, ProcessSettings};
use toolyard_sdk::{RegisterError, Server};

use self::search::SearchTools;
use super::{HandlerBuilder, UnsupportedBackend};
use crate::added_servers::{AddedServers, AddedServersDeps, GatewayServers};
use crate::fleet::{FleetCommand, HandlerStatus};
use crate::gateway::MemoryLayerSettings;
use crate::summaries::ServerSummaries;

pub(super) use self::search::disclosure;

/// The parts of the gateway that the built-in tools use.
#[derive(Clone)]
pub struct BuiltinDeps {
    /// The gateway, as a weak reference because it owns these tools.
    pub gateway: Weak<Gateway>,
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
        Self {
            gateway,
            store,
            memory_layers,
            statuses,
            commands,
            finder,
            embeddings: None,
            services,
            added,
            summaries,
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
    pub(super) fn builtins(&self, builtins: &BuiltinSettings) -> Arc<dyn Backend> {
        let search_tools = self.builtin_deps.as_ref().zip(builtins.search.as_ref());
        let search_tools = search_tools.map(|(deps, settings)| SearchTools::new(deps, settings));
        match self.server(builtins, search_tools.as_ref()) {
            Ok(server) => {
                let backend = server.into_backend();
                let backend = search_tools
                    .into_iter()
                    .fold(backend, |backend, search_tools| search_tools.wrap(backend));
                self.with_invocation(builtins, backend)
            }
            // Two built-in tools have the same name.
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot serve the built-in tools");
                Arc::new(UnsupportedBackend::new("builtins", None))
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

    fn server(
        &self,
        builtins: &BuiltinSettings,
        search_tools: Option<&SearchTools>,
    ) -> Result<Server, RegisterError> {
        let mut server = Server::new("toolyard", env!("CARGO_PKG_VERSION")).omit_schema_dialect();
        let memory = builtins.memory.zip(self.builtin_deps.as_ref());
        let memory = memory.map(|(limits, deps)| WorkingMemory::new(deps.store.clone(), limits));
        if let (Some(scripts), Some(hosting)) = (&builtins.scripts, &self.hosting) {
            let reader = memory.clone().map(MemoryReader::new);
            server = scripts::add(server, hosting.runner(scripts), reader)?;
        }
        if let Some(deps) = &self.builtin_deps {
            let layers = &deps.memory_layers;
            layers.results.send_replace(large_settings(builtins, memory.as_ref()).map(Arc::new));
            layers.handles.send_replace(memory.clone().map(handle_settings));
            if let Some(memory) = memory {
                server = memory::tools::add(server, memory)?;
            }
            if let Some(limits) = builtins.skills {
                server = skills::add(server, SkillStore::new(deps.store.clone(), limits))?;
            }
            if builtins.mcp.is_some() {
                let (servers, summaries) = (deps.servers(), deps.summaries());
                server = management::add(server, ServerManagement { servers, summaries })?;
            }
        }
        if let Some(search_tools) = search_tools {
            server = search_tools.add(server)?;
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

fn handle_settings(memory: WorkingMemory) -> Arc<SessionHandleSettings> {
    Arc::new(SessionHandleSettings { memory, handler: HandlerConfig::BUILTINS.into() })
}

/// Returns the settings for large results. `None`: large results pass unchanged.
fn large_settings(builtins: &BuiltinSettings, memory: Option<&WorkingMemory>) -> Option<LargeSettings> {
    let options = builtins.results.clone()?;
    Some(LargeSettings { memory: memory.cloned(), handler: HandlerConfig::BUILTINS.into(), options })
}
