//! The tools `list_tool_guides` and `get_tool_guide`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{RegisterError, Server, Tool, ToolAnnotations};

use super::book::GuideBook;

/// Name of the tool that lists guides, as agents know it.
pub const LIST: &str = "list_tool_guides";
/// Name of the tool that returns a guide.
pub const GET: &str = "get_tool_guide";
/// Names of both tools.
pub const NAMES: [&str; 2] = [LIST, GET];

const ABOUT_LIST: &str = "\
Lists guides to the tools. Call this before you use a kind of tool for the first time.";

const ABOUT_GET: &str = "\
Returns a guide: how to use some tools, in which order, and what to do when they fail.";

#[derive(Debug, Deserialize, JsonSchema)]
struct GetGuideArgs {
    /// As list_tool_guides shows it
    name: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// Returns an error if the server already has a tool of one of these names.
pub fn add(server: Server, book: Arc<GuideBook>) -> Result<Server, RegisterError> {
    let list_book = book.clone();
    server
        .register_tool(tool(LIST, ABOUT_LIST), async move || list_book.listing())?
        .register_tool(tool(GET, ABOUT_GET), async move |args: GetGuideArgs| {
            book.document_or_names(&args.name)
        })
}

fn tool(name: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).annotations(hints)
}
