//! The tools of search.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::Registry;
use toolyard_sdk::{
    Context, Prompt, RegisterError, Reply, Server, Tool, ToolAnnotations, ToolCall, ToolFailure,
};

use super::calling::Wanted;
use super::finder::Finder;
use super::found::Answer;
use super::hints::PROMPT;
use super::nearest::nearest;
use super::services::{self, Services};

/// The names of the tools, as agents know them.
pub const SEARCH: &str = "search_tools";
/// See [`SEARCH`].
pub const CALL: &str = "call_tool";
/// See [`SEARCH`].
pub const SERVICES: &str = "search_known_services";
/// All of them.
pub const NAMES: [&str; 3] = [SEARCH, CALL, SERVICES];

const ABOUT_SEARCH: &str = "\
Finds tools that are not on your list, the best first, with what they take. Say what is to be done and with what, in a few \
keywords or one sentence; the name of a tool finds it. Call what is found with call_tool.";

const ABOUT_CALL: &str = "Calls a tool that search_tools has found.";

const ABOUT_SERVICES: &str = "\
Finds which services (MCP servers, or other agents) a task belongs to. Returns at most 5, the best first, each with a summary \
and its first tools.";

const ABOUT_PROMPT: &str =
    "Names the services that a message seems to be about, for a host that tells its model so.";

const NO_HINT: &str = "No service stands out for this request.";

/// How many tools are given where a call does not say, and at most.
const LIMIT: usize = 10;
const MOST: usize = 50;

/// How long a name may be that is repeated, in characters.
const LONGEST_NAME: usize = 128;

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchArgs {
    /// What the tool is to do, such as "create calendar event"
    query: String,
    /// How many tools to return; 10 if left out, 50 at most
    #[serde(default)]
    limit: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ServicesArgs {
    /// Keywords describing the task, such as "reschedule meeting"
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct HintArgs {
    /// What the user says
    message: String,
}

/// What the tools need.
#[derive(Clone)]
pub struct Search {
    /// Finds tools.
    pub finder: Arc<Finder>,
    /// Finds services.
    pub services: Services,
}

/// Adds the tools, and the prompt, to a server. Its backend is to stand in a [`Calling`](super::Calling).
///
/// # Errors
/// When there is a tool or a prompt of one of their names already.
pub fn add(server: Server, search: Search) -> Result<Server, RegisterError> {
    let [finding, calling, asking, hinting] = [(); 4].map(|()| search.clone());
    server
        .register_tool(
            read_only(SEARCH, "Search tools", ABOUT_SEARCH),
            async move |context: Context, args: SearchArgs| finding.tools(&context, args).await,
        )?
        .register_tool(call_tool(), async move |context: Context, call: ToolCall| {
            Err::<Reply, _>(calling.refusal(&context, &call).await)
        })?
        .register_tool(
            read_only(SERVICES, "Search services", ABOUT_SERVICES),
            async move |context: Context, args: ServicesArgs| asking.services(&context, &args.query),
        )?
        .register_prompt(
            Prompt::new(PROMPT, ABOUT_PROMPT).title("Service hints"),
            async move |context: Context, args: HintArgs| hinting.hint(&context, &args.message),
        )
}

impl Search {
    /// What there is for the caller.
    fn view(&self, context: &Context) -> Arc<Registry> {
        self.finder.view(context.caller())
    }

    async fn tools(&self, context: &Context, args: SearchArgs) -> Result<Reply, ToolFailure> {
        let (query, view) = (said(&args.query)?, self.view(context));
        let limit = args.limit.map_or(LIMIT, |limit| limit.clamp(1.0, MOST as f64) as usize);
        let mut found = self.finder.search(&view, query, limit).await;
        // Who knows a name wants that tool, whatever else has its words.
        if let Some(named) = view.tool(query).ok().filter(|entry| self.finder.finds(entry)) {
            found.retain(|entry| entry.name != named.name);
            found.insert(0, named.clone());
            found.truncate(limit);
        }
        Reply::new().structured(&Answer::of(&found))
    }

    fn services(&self, context: &Context, query: &str) -> Result<String, ToolFailure> {
        let found = self.services.search(&self.view(context), said(query)?);
        Ok(services::told(&found)?)
    }

    fn hint(&self, context: &Context, message: &str) -> String {
        let hint = self.services.hint(&self.view(context), message);
        hint.map_or_else(|| NO_HINT.to_owned(), |hint| hint.text)
    }

    /// Why a call is not made.
    async fn refusal(&self, context: &Context, call: &ToolCall) -> ToolFailure {
        let name = match Wanted::read(Some(&call.arguments.to_json())) {
            Ok(wanted) => wanted.name,
            Err(unclear) => return unclear.into(),
        };
        if name == CALL {
            return ToolFailure::new(format!(
                "name: is {CALL} itself. Give the name of the tool that you want."
            ));
        }
        let view = self.view(context);
        if view.tool(&name).is_ok() {
            return ToolFailure::new(format!(
                "`{name}` cannot be called through two tools. Call it directly."
            ));
        }
        let near = nearest(&self.finder, &view, &name).await;
        ToolFailure::new(unknown(&name, &near))
    }
}

fn unknown(name: &str, near: &[Arc<str>]) -> String {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    let quoted: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
    let meant = match quoted.as_slice() {
        [] => String::new(),
        [one] => format!(" Did you mean {one}?"),
        [others @ .., last] => format!(" Did you mean {} or {last}?", others.join(", ")),
    };
    format!("There is no tool `{shown}`.{meant} Take a name exactly as {SEARCH} shows it.")
}

/// A query that says something.
fn said(query: &str) -> Result<&str, ToolFailure> {
    let query = query.trim();
    match query.is_empty() {
        true => Err(ToolFailure::new("query: is empty, where a few keywords are expected")),
        false => Ok(query),
    }
}

fn read_only(name: &str, title: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).title(title).annotations(hints)
}

/// What is wrong with a call is said by the tool itself, so that it can name tools that may be meant.
fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Its name, exactly as it was found"},
            "arguments": {"type": "object", "description": "What it takes, as its inputSchema says"},
        },
        "required": ["name"],
    });
    Tool::new(CALL, ABOUT_CALL)
        .title("Call a tool")
        .input_schema(schema)
        .accepted_schema(json!({"type": "object"}))
}
