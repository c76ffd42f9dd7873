//! The tools.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_agent::memory::MemoryCaller;
use toolyard_core::Caller;
use toolyard_sdk::{Context, RegisterError, Server, Tool, ToolAnnotations, ToolFailure};

use crate::browse::PageBrowser;
use crate::call_limits::WebCallLimits;
use crate::search::{MAX_RESULTS, SearchProvider, listing};

/// Names of the tools, as agents know them.
pub const SEARCH: &str = "web_search";
/// See [`SEARCH`].
pub const BROWSE: &str = "web_browse";
/// Names of all tools.
pub const NAMES: [&str; 2] = [SEARCH, BROWSE];

const ABOUT_SEARCH: &str = "\
Searches the web. Returns a numbered list of titles with URLs and snippets: open the relevant pages with web_browse.";

const ABOUT_BROWSE: &str = "\
Returns the main content of a web page as Markdown. A long page goes to working memory in chunks, and you get their keys.";

/// The parts that the tools use.
pub struct WebTools {
    /// Visits pages.
    pub browser: PageBrowser,
    /// Searches the web. `None`: there is no `web_search`.
    pub search: Option<Arc<dyn SearchProvider>>,
    /// Limits of searches, which pages share.
    pub limits: WebCallLimits,
    /// Number of results if a call does not name one.
    pub max_results: usize,
    /// Tells which callers have the tools of working memory.
    pub reads_memory: Arc<dyn Fn(&Caller) -> bool + Send + Sync>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WebSearchArgs {
    /// Search terms
    query: String,
    /// Number of results, 1 to 20
    #[serde(default)]
    #[schemars(with = "Option<u32>")]
    count: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WebBrowseArgs {
    /// Absolute http or https URL
    url: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, tools: WebTools) -> Result<Server, RegisterError> {
    let WebTools { browser, search, limits, max_results, reads_memory } = tools;
    let server = match search {
        Some(search) => server.register_tool(
            tool(SEARCH, "Search the web", ABOUT_SEARCH),
            async move |context: Context, args: WebSearchArgs| {
                let query = query(&args)?;
                let count = count(args.count, max_results);
                match limits.run(context.caller(), search.search(query, count)).await {
                    Some(hits) => Ok(listing(&hits?)),
                    None => Err(ToolFailure::new(format!(
                        "The search took longer than {} s.",
                        limits.time.as_secs()
                    ))),
                }
            },
        )?,
        None => server,
    };
    server.register_tool(
        tool(BROWSE, "Read a web page", ABOUT_BROWSE),
        async move |context: Context, args: WebBrowseArgs| {
            let caller = reads_memory(context.caller()).then(|| MemoryCaller::of_context(&context));
            Ok::<_, ToolFailure>(browser.browse(&args.url, context.caller(), caller).await?)
        },
    )
}

/// Returns the query of a search, which is not empty.
fn query(args: &WebSearchArgs) -> Result<&str, ToolFailure> {
    match args.query.trim() {
        "" => Err(ToolFailure::new("query: is empty; expected search terms")),
        query => Ok(query),
    }
}

/// Returns the number of results, within its limits.
fn count(requested: Option<f64>, default: usize) -> usize {
    let Some(requested) = requested.filter(|number| !number.is_nan()) else { return default };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 20")]
    let count = requested.clamp(1.0, 20.0) as usize;
    count.min(MAX_RESULTS)
}

fn tool(name: &str, title: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(true);
    Tool::new(name, about).title(title).annotations(hints)
}

#[cfg(test)]
mod tests;
