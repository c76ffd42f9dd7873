//! Finding tools, and what of them is listed, as the manifest has it.

use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_agent::memory::tools;
use toolyard_agent::search::{self, Calling, Finder, Search};
use toolyard_core::Backend;
use toolyard_core::registry::{Disclosure, Show};
use toolyard_manifest::{self as manifest, Handler, HandlerKind, SearchSettings};
use toolyard_sdk::{RegisterError, Server};

use super::Yard;

/// What makes the tools of search.
pub(super) struct Searching {
    search: Search,
}

impl Searching {
    pub(super) fn new(yard: &Yard) -> Self {
        let finder = Arc::new(Finder::new(yard.gateway.clone(), Handler::BUILTINS));
        Self { search: Search { finder, services: yard.services.clone() } }
    }

    pub(super) fn add(&self, server: Server) -> Result<Server, RegisterError> {
        search::add(server, self.search.clone())
    }

    /// The backend of these tools, among others. As long as it is there, the index follows what there is.
    pub(super) fn around(self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let mut following = JoinSet::new();
        following.spawn(async move { self.search.finder.follow().await });
        Arc::new(Calling::new(backend, following))
    }
}

/// What is listed of all tools, where these can be found, and what is promised of their results, where these are put aside.
pub(in crate::build) fn disclosure(kind: &HandlerKind) -> Option<Arc<Disclosure>> {
    let HandlerKind::Builtins(builtins) = kind else { return None };
    let default = SearchSettings { disclosure: manifest::Disclosure::All, ..SearchSettings::default() };
    let settings = builtins.search.as_ref().unwrap_or(&default);
    let show = match settings.disclosure {
        manifest::Disclosure::All => Show::All,
        manifest::Disclosure::Search => Show::Search,
        manifest::Disclosure::Auto => Show::Auto,
    };
    let finders: &[&str] = if builtins.search.is_some() { &[search::SEARCH, search::CALL] } else { &[] };
    let is_chunked = builtins.memory.is_some() && builtins.results.is_some();
    Some(Arc::new(Disclosure {
        show,
        budget: settings.budget,
        pinned: settings.pinned.clone(),
        finders: finders.iter().copied().map(Arc::from).collect(),
        reader: is_chunked.then(|| tools::GET.into()),
    }))
}
