//! Builds the tools for the web.

use std::sync::Arc;
use std::time::SystemTime;

use toolyard_agent::memory::{WorkingMemory, tools};
use toolyard_core::registry::{EntryKind, Registry};
use toolyard_core::{Caller, CauseCode, FailureCause};
use toolyard_manifest::{EndpointUrl, HandlerConfig, PageRendering, SearchService, WebSettings};
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::HttpClient;
use toolyard_web::browse::{BrowserParts, PageBrowser};
use toolyard_web::call_limits::WebCallLimits;
use toolyard_web::fetch::PageFetcher;
use toolyard_web::github::{self, GithubApi};
use toolyard_web::render::PageRenderer;
use toolyard_web::search::{BraveSearch, SearchProvider, SearxngSearch, brave};
use toolyard_web::shared_client::SharedClient;
use toolyard_web::tools::WebTools;

use super::BuiltinDeps;
use crate::hosting::CodeHosting;

/// Returns the tools with these settings. `hosting` has the sandbox of the browser.
pub(super) fn tools(
    deps: &BuiltinDeps,
    settings: &WebSettings,
    hosting: Option<&CodeHosting>,
    memory: Option<WorkingMemory>,
    budget: ByteBudget,
) -> WebTools {
    let client = SharedClient::new(HttpClient::with_system_roots);
    let github = endpoint(settings.github_api.as_ref(), github::ENDPOINT);
    let gateway = deps.gateway.clone();
    let limits = WebCallLimits::new(settings);
    let fetcher = PageFetcher::new(Arc::new(settings.clone()), client.clone(), budget);
    WebTools {
        search: search(settings, &client),
        max_results: settings.max_search_results,
        browser: PageBrowser::new(BrowserParts {
            github: GithubApi::new(client, &github, settings.github_token.as_ref()),
            renderer: hosting.and_then(|hosting| renderer(settings, hosting, &fetcher)),
            fetcher,
            memory,
            limits: limits.clone(),
        }),
        limits,
        reads_memory: Arc::new(move |caller| {
            gateway.upgrade().is_some_and(|gateway| reads_memory(&gateway.registry(), caller))
        }),
    }
}

/// Returns the reason why pages are not rendered although the settings say so.
pub(super) fn rendering_failure(
    settings: &WebSettings,
    hosting: Option<&CodeHosting>,
) -> Option<(FailureCause, SystemTime)> {
    let hosting = hosting.filter(|_| settings.render == PageRendering::Chromium)?;
    let error = hosting.chromium(&settings.chromium).err()?;
    Some((FailureCause::new(CauseCode::Other, error.to_string()), SystemTime::now()))
}

/// Returns the renderer of pages; `None` if it is not configured, or if it cannot work here, which is logged.
fn renderer(settings: &WebSettings, hosting: &CodeHosting, fetcher: &PageFetcher) -> Option<PageRenderer> {
    if settings.render != PageRendering::Chromium {
        return None;
    }
    match hosting.chromium(&settings.chromium) {
        Ok(launcher) => Some(PageRenderer::new(fetcher.clone(), Arc::new(launcher))),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "pages are not rendered");
            None
        }
    }
}

/// Returns the search service; `None` if it needs a key and there is none.
fn search(settings: &WebSettings, client: &SharedClient) -> Option<Arc<dyn SearchProvider>> {
    let client = client.clone();
    match settings.provider {
        SearchService::Brave => {
            let endpoint = endpoint(settings.endpoint.as_ref(), brave::ENDPOINT);
            let brave = BraveSearch::new(client, endpoint, settings.search_key()?)?;
            Some(Arc::new(brave))
        }
        SearchService::Searxng => {
            let base = settings.endpoint.as_ref()?.uri().to_string();
            Some(Arc::new(SearxngSearch::new(client, &base)))
        }
    }
}

fn endpoint(configured: Option<&EndpointUrl>, default: &str) -> String {
    configured.map_or_else(|| default.to_owned(), |url| url.uri().to_string())
}

/// Returns `true` if a caller sees the tool that reads working memory.
fn reads_memory(registry: &Arc<Registry>, caller: &Caller) -> bool {
    let view = Registry::view_for(registry.clone(), caller);
    let is_reader = |handler: &str, own: &str| handler == HandlerConfig::BUILTINS && own == tools::GET;
    view.entries(EntryKind::Tools).iter().any(|entry| is_reader(&entry.handler.name, &entry.own))
}
