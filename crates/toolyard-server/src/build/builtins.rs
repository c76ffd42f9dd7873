//! The handler that is the gateway itself, with the tools that the manifest switches on.

mod search;

use std::sync::{Arc, Weak};

use tokio::sync::{mpsc, watch};
use toolyard_agent::guides::{self, Guide, GuideBook, SEARCH_GUIDE};
use toolyard_agent::large::{self, LargeOptions, LargeSettings, ModelBehavior};
use toolyard_agent::management::{self, Invoking, Management, Servers};
use toolyard_agent::memory::query::QueryLimits;
use toolyard_agent::memory::tools::MemoryTools;
use toolyard_agent::memory::{self, MemoryLimits, WorkingMemory};
use toolyard_agent::scripts;
use toolyard_agent::search::Services;
use toolyard_agent::skills::{self, SkillLimits, Skills};
use toolyard_agent::summary::Summaries;
use toolyard_core::store::Store;
use toolyard_core::{Backend, Gateway};
use toolyard_manifest::{Builtins, Handler, Listen, MemorySettings, Process, SkillSettings};
use toolyard_sdk::{RegisterError, Server};

use self::search::Searching;
use super::{Builder, NotYet};
use crate::added::{AddedServers, Places, Port};
use crate::fleet::{Order, Standing};
use crate::summaries::Written;

pub(super) use self::search::disclosure;

/// What the gateway's own tools reach of the gateway.
#[derive(Clone)]
pub struct Yard {
    /// The door, and behind it what there is. It has these tools itself, so they do not keep it.
    pub gateway: Weak<Gateway>,
    /// Where is kept what they are told.
    pub store: Arc<dyn Store>,
    /// What the layer of large results goes by.
    pub results: watch::Sender<Option<Arc<LargeSettings>>>,
    /// How the handlers are.
    pub standings: watch::Receiver<Arc<[Standing]>>,
    /// What the fleet is told to do.
    pub orders: mpsc::WeakSender<Order>,
    /// Knows what its handlers are for.
    pub services: Services,
    /// The servers that are added while the gateway runs.
    pub added: Arc<AddedServers>,
    /// What servers are for, as a language model has written it.
    pub written: Arc<Written>,
}

impl Yard {
    /// What there is of a gateway that listens there.
    #[must_use]
    pub fn new(
        gateway: &Arc<Gateway>,
        store: &Arc<dyn Store>,
        results: watch::Sender<Option<Arc<LargeSettings>>>,
        standings: &watch::Receiver<Arc<[Standing]>>,
        orders: &mpsc::Sender<Order>,
        process: &Process,
        listening: &[Listen],
    ) -> Self {
        let (gateway, orders) = (Arc::downgrade(gateway), orders.downgrade());
        let (store, standings) = (store.clone(), standings.clone());
        let places = Places {
            store: store.clone(),
            orders: orders.clone(),
            standings: standings.clone(),
            listening: listening.iter().filter_map(Listen::tcp).collect(),
        };
        let allowed = process.builtins.as_ref().and_then(|builtins| builtins.mcp.clone());
        let added = Arc::new(AddedServers::new(places, allowed, process.timeouts.connect));
        let written = Arc::<Written>::default();
        let services = Services::new(written.clone(), Handler::BUILTINS);
        Self { gateway, store, results, standings, orders, services, added, written }
    }

    fn servers(&self) -> Arc<dyn Servers> {
        Arc::new(Port { gateway: self.gateway.clone(), added: self.added.clone() })
    }

    fn summaries(&self) -> Arc<dyn Summaries> {
        self.written.clone()
    }
}

impl Builder {
    pub(super) fn builtins(&self, builtins: &Builtins) -> Arc<dyn Backend> {
        let searching = self.yard.as_ref().filter(|_| builtins.search.is_some()).map(Searching::new);
        match self.server(builtins, searching.as_ref()) {
            Ok(server) => {
                let backend = server.into_backend();
                let backend =
                    searching.into_iter().fold(backend, |backend, searching| searching.around(backend));
                self.forwarding(builtins, backend)
            }
            // Two of our own tools would have the same name.
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the built-in tools cannot be served"
                );
                Arc::new(NotYet::new("builtins", None))
            }
        }
    }

    /// The same where calls of some of the tools stand for those of others.
    fn forwarding(&self, builtins: &Builtins, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        match (&self.yard, &builtins.mcp) {
            (Some(yard), Some(_)) => Arc::new(Invoking::new(backend, yard.servers())),
            _ => backend,
        }
    }

    fn server(&self, builtins: &Builtins, searching: Option<&Searching>) -> Result<Server, RegisterError> {
        let mut server = Server::new("toolyard", env!("CARGO_PKG_VERSION"));
        if let (Some(scripts), Some(hosting)) = (&builtins.scripts, &self.hosting) {
            server = scripts::add(server, hosting.runner(scripts))?;
        }
        if let Some(yard) = &self.yard {
            let memory = builtins.memory.as_ref().map(|settings| memory_tools(settings, yard));
            yard.results.send_replace(large_settings(builtins, memory.as_ref()).map(Arc::new));
            if let Some(memory) = memory {
                server = memory::tools::add(server, memory)?;
            }
            if let Some(settings) = &builtins.skills {
                server = skills::add(server, Skills::new(yard.store.clone(), skill_limits(settings)))?;
            }
            if builtins.mcp.is_some() {
                let (servers, summaries) = (yard.servers(), yard.summaries());
                server = management::add(server, Management { servers, summaries })?;
            }
        }
        if let Some(searching) = searching {
            server = searching.add(server)?;
        }
        if builtins.guides {
            server = guides::add(server, Arc::new(guide_book(builtins)))?;
        }
        Ok(server)
    }
}

/// What models can read: what the operator has written, and of each kind of tools that is there how it is used well.
fn guide_book(builtins: &Builtins) -> GuideBook {
    let written = builtins.registry_guides.iter().map(|guide| Guide {
        name: guide.name.clone().into(),
        summary: guide.summary.clone().into(),
        document: guide.document.clone().into(),
    });
    let ours = [
        (builtins.scripts.is_some(), scripts::GUIDE),
        (builtins.memory.is_some(), memory::GUIDE),
        (builtins.memory.is_some() && builtins.results.is_some(), large::GUIDE),
        (builtins.skills.is_some(), skills::GUIDE),
        (builtins.search.is_some(), SEARCH_GUIDE),
        (builtins.mcp.is_some(), guides::MCP_GUIDE),
    ];
    let mut book = GuideBook::new();
    for guide in written.chain(ours.into_iter().filter_map(|(is_on, guide)| is_on.then_some(guide))) {
        let name = guide.name.clone();
        // The operator's own guide stands for ours of its name: it comes first.
        if let Err(error) = book.add(Arc::new(guide)) {
            let error = &error as &dyn std::error::Error;
            tracing::info!(guide = &*name, error, "a guide is left out");
        }
    }
    book
}

fn memory_tools(settings: &MemorySettings, yard: &Yard) -> MemoryTools {
    let limits = MemoryLimits {
        entries: settings.entries,
        bytes: settings.bytes,
        value_bytes: settings.value_bytes,
        total_bytes: settings.total_bytes,
        ttl: settings.ttl,
        longest_ttl: settings.longest_ttl,
    };
    let query = &settings.query;
    let queries = QueryLimits {
        input_bytes: query.input_bytes,
        result_chars: query.result_chars,
        input_values: query.input_values,
        values: query.values,
        time: query.time,
        at_once: query.concurrent,
    };
    MemoryTools { queries, ..MemoryTools::new(WorkingMemory::new(yard.store.clone(), limits)) }
}

/// What is large, where large results have a place. `None`: they pass.
fn large_settings(builtins: &Builtins, memory: Option<&MemoryTools>) -> Option<LargeSettings> {
    let (settings, memory) = (builtins.results.as_ref()?, memory?.memory.clone());
    let model = |(id, threshold): &(String, usize)| {
        (id.clone(), ModelBehavior { tool_result_chunking_threshold: Some(*threshold) })
    };
    let options = LargeOptions {
        threshold: settings.threshold,
        least_chunk: settings.least_chunk,
        most_chunks: settings.most_chunks,
        ttl: settings.ttl,
        store_time: settings.store_time,
        models: settings.models.iter().map(model).collect(),
    };
    Some(LargeSettings { memory, handler: Handler::BUILTINS.into(), options })
}

const fn skill_limits(settings: &SkillSettings) -> SkillLimits {
    SkillLimits { skills: settings.skills, bytes: settings.bytes, content_bytes: settings.content_bytes }
}
