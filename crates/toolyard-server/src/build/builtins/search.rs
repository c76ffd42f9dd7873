//! Builds the search tools, and the disclosure of tools.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_agent::management;
use toolyard_agent::memory::tools;
use toolyard_agent::search::{self, CallToolBackend, ToolSearch};
use toolyard_code::tools as code;
use toolyard_core::Backend;
use toolyard_core::registry::{DisclosureMode, DisclosurePolicy};
use toolyard_manifest::{self as manifest, HandlerKind, SearchSettings};
use toolyard_sdk::{RegisterError, Server};

use super::BuiltinDeps;

/// The search tools and their index.
pub(super) struct SearchTools {
    search: ToolSearch,
}

impl SearchTools {
    pub(super) fn new(deps: &BuiltinDeps, settings: &SearchSettings) -> Self {
        let (finder, embeddings) = (deps.finder.clone(), deps.embeddings.clone());
        Self {
            search: ToolSearch {
                finder,
                embeddings,
                services: deps.services.clone(),
                ranker: settings.ranker,
            },
        }
    }

    pub(super) fn add(&self, server: Server) -> Result<Server, RegisterError> {
        search::add(server, self.search.clone())
    }

    /// Wraps the backend of these tools. The index follows the registry for as long as the backend exists.
    pub(super) fn wrap(self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let mut followers = JoinSet::new();
        let ToolSearch { finder, embeddings, .. } = self.search;
        if let Some(embeddings) = embeddings {
            let finder = finder.clone();
            followers.spawn(async move { embeddings.follow(&finder).await });
        }
        followers.spawn(async move { finder.follow().await });
        Arc::new(CallToolBackend::new(backend, followers))
    }
}

/// Returns the disclosure settings: which tools are listed, and whether large results are chunked.
pub(in crate::build) fn disclosure(kind: &HandlerKind) -> Option<Arc<DisclosurePolicy>> {
    let HandlerKind::Builtins(builtins) = kind else { return None };
    let default = SearchSettings { disclosure: manifest::ToolDisclosure::All, ..SearchSettings::default() };
    let settings = builtins.search.as_ref().unwrap_or(&default);
    let show = match settings.disclosure {
        manifest::ToolDisclosure::All => DisclosureMode::All,
        manifest::ToolDisclosure::Search => DisclosureMode::Search,
        manifest::ToolDisclosure::Auto => DisclosureMode::Auto,
        manifest::ToolDisclosure::Code => DisclosureMode::Code,
    };
    let finders: &[&str] = if builtins.search.is_some() { &[search::SEARCH, search::CALL] } else { &[] };
    let runs_scripts = builtins.search.is_some() && builtins.code.is_some();
    let script_tools: &[&str] = if runs_scripts { &[search::SEARCH, code::DESCRIBE, code::RUN] } else { &[] };
    // Nothing may be added, so that a model need not know how.
    let adds_servers = builtins.mcp.as_ref().is_none_or(|mcp| mcp.allow.is_some());
    let unlisted: &[&str] = if adds_servers { &[] } else { &[management::REGISTER, management::UNREGISTER] };
    let is_chunked = builtins.memory.is_some() && builtins.results.is_some();
    Some(Arc::new(DisclosurePolicy {
        show,
        budget: settings.budget,
        pinned: settings.pinned.clone(),
        finders: finders.iter().copied().map(Arc::from).collect(),
        script_tools: script_tools.iter().copied().map(Arc::from).collect(),
        reader: is_chunked.then(|| tools::GET.into()),
        output_schemas: builtins.results.as_ref().map(|results| results.output_schemas),
        unlisted: unlisted.iter().copied().map(Arc::from).collect(),
    }))
}
