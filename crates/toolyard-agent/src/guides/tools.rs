//! The tools by which a model finds and reads guides.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{RegisterError, Server, Tool, ToolAnnotations};

use super::book::GuideBook;

/// The name of the tool that lists guides, as agents know it.
pub const LIST: &str = "list_tool_guides";
/// The name of the tool that gives one.
pub const GET: &str = "get_tool_guide";
/// Both.
pub const NAMES: [&str; 2] = [LIST, GET];

const ABOUT_LIST: &str = "\
Lists the guides that there are for tools: what each is called, and what it is about. Call this before you use a kind of tool \
for the first time.";

const ABOUT_GET: &str = "\
Returns a whole guide: how to use some tools, in which order, what they return and what to do when they fail.";

#[derive(Debug, Deserialize, JsonSchema)]
struct GetArgs {
    /// The name of the guide as list_tool_guides shows it, such as "mcp-tool-guide"
    name: String,
}

/// Adds the tools to a server.
///
/// # Errors
/// When there is a tool of one of their names already.
pub fn add(server: Server, book: Arc<GuideBook>) -> Result<Server, RegisterError> {
    let listed = book.clone();
    server
        .register_tool(tool(LIST, "List tool guides", ABOUT_LIST), async move || listed.listed())?
        .register_tool(tool(GET, "Get a tool guide", ABOUT_GET), async move |args: GetArgs| {
            book.told(&args.name)
        })
}

fn tool(name: &str, title: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).title(title).annotations(hints)
}
