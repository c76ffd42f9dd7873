//! The tools for searching.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::Registry;
use toolyard_core::nearest::{did_you_mean, nearest_tools};
use toolyard_manifest::ServiceRanker;
use toolyard_sdk::{
    Context, Prompt, RegisterError, Server, Tool, ToolAnnotations, ToolCall, ToolFailure, ToolReply,
};

use super::call_tool::CallToolArgs;
use super::embeddings::ToolEmbeddings;
use super::hints::PROMPT;
use super::search_reply::ToolSearchReply;
use super::services::{self, ServiceIndex};
use super::tool_finder::ToolFinder;

/// Names of the tools, as agents know them.
pub const SEARCH: &str = "search_tools";
/// See [`SEARCH`].
pub const CALL: &str = "call_tool";
/// See [`SEARCH`].
pub const SERVICES: &str = "search_known_services";
/// Names of all tools.
pub const NAMES: [&str; 3] = [SEARCH, CALL, SERVICES];

const ABOUT_SEARCH: &str = "\
Finds tools that are not on your list, the best first, with their parameters. Say what is to be done and with what, in a \
few keywords; a tool's name finds it. Call what is found with call_tool.";

const ABOUT_CALL: &str = "Calls a tool that search_tools has found.";

const ABOUT_SERVICES: &str = "\
Finds the services (MCP servers, or other agents) that a task belongs to: at most 5, the best first, each with a summary \
and the tools that fit. To find tools, use search_tools.";

const ABOUT_PROMPT: &str =
    "Names the services that a message seems to be about, for a host that tells its model so.";

const NO_HINT: &str = "No service stands out for this request.";

/// Default and maximum number of tools in a result.
const LIMIT: usize = 10;
const MAX_RESULTS: usize = 50;

/// Maximum length in characters of a name that an error message repeats.
const MAX_NAME_LENGTH: usize = 128;

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchToolsArgs {
    /// Such as "create calendar event"
    query: String,
    /// 10 by default, 50 at most
    #[serde(default)]
    limit: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchServicesArgs {
    /// Keywords of the task, such as "reschedule meeting"
    query: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ServiceHintArgs {
    /// The user's message
    message: String,
}

/// Dependencies of the tools.
#[derive(Clone)]
pub struct ToolSearch {
    /// Finder of tools.
    pub finder: Arc<ToolFinder>,
    /// Embeddings of tools, if there is an endpoint.
    pub embeddings: Option<Arc<ToolEmbeddings>>,
    /// Index of services.
    pub services: ServiceIndex,
    /// Ranker of services.
    pub ranker: ServiceRanker,
}

/// Adds the tools and the prompt to a server. [`CallToolBackend`](super::CallToolBackend) must wrap its backend.
///
/// # Errors
/// Returns an error if the server already has a tool or a prompt of one of these names.
pub fn add(server: Server, search: ToolSearch) -> Result<Server, RegisterError> {
    let [finding, calling, asking, hinting] = [(); 4].map(|()| search.clone());
    server
        .register_tool(
            read_only(SEARCH, ABOUT_SEARCH),
            async move |context: Context, args: SearchToolsArgs| finding.tools(&context, args).await,
        )?
        .register_tool(call_tool(), async move |context: Context, call: ToolCall| {
            Err::<ToolReply, _>(calling.refusal(&context, &call))
        })?
        .register_tool(
            read_only(SERVICES, ABOUT_SERVICES),
            async move |context: Context, args: SearchServicesArgs| {
                asking.services(&context, &args.query).await
            },
        )?
        .register_prompt(
            Prompt::new(PROMPT, ABOUT_PROMPT).title("Service hints"),
            async move |context: Context, args: ServiceHintArgs| hinting.hint(&context, &args.message).await,
        )
}

impl ToolSearch {
    /// Returns the registry as the caller sees it.
    fn view(&self, context: &Context) -> Arc<Registry> {
        self.finder.view(context.caller())
    }

    async fn tools(&self, context: &Context, args: SearchToolsArgs) -> Result<ToolReply, ToolFailure> {
        let (query, view) = (required_query(&args.query)?, self.view(context));
        let limit = args.limit.map_or(LIMIT, |limit| limit.clamp(1.0, MAX_RESULTS as f64) as usize);
        let mut entries = match &self.embeddings {
            None => self.finder.search(&view, query, limit).await,
            Some(embeddings) => {
                embeddings.search(&self.finder, &view, query, limit, context.deadline()).await
            }
        };
        // An embedding model may know the words, whatever their language.
        let mut is_doubtful = self.embeddings.is_none() && self.finder.may_be_foreign(query).await;
        // A query that is exactly the name of a tool returns that tool first.
        let named = view.tool(query).ok().filter(|entry| self.finder.finds(entry));
        let is_named = named.is_some();
        if let Some(named) = named {
            entries.retain(|entry| entry.name != named.name);
            entries.insert(0, named.clone());
            entries.truncate(limit);
            is_doubtful = false;
        }
        ToolReply::new().structured(&ToolSearchReply::of(&entries, limit, is_doubtful, is_named))
    }

    async fn services(&self, context: &Context, query: &str) -> Result<String, ToolFailure> {
        let (query, view) = (required_query(query)?, self.view(context));
        let services = self.services.search(&view, query, self.ranker).await;
        Ok(services::results_json(&services)?)
    }

    async fn hint(&self, context: &Context, message: &str) -> String {
        let hint = self.services.hint(&self.view(context), message).await;
        hint.map_or_else(|| NO_HINT.to_owned(), |hint| hint.text)
    }

    /// Returns the reason why a call cannot be made.
    fn refusal(&self, context: &Context, call: &ToolCall) -> ToolFailure {
        let name = match CallToolArgs::read(Some(&call.arguments.to_json())) {
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
        ToolFailure::new(unknown(&name, &nearest_tools(&view, &name)))
    }
}

fn unknown(name: &str, near: &[Arc<str>]) -> String {
    let excerpt: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME_LENGTH).collect();
    let suggestion = did_you_mean(near);
    format!("There is no tool `{excerpt}`.{suggestion} Take a name exactly as {SEARCH} shows it.")
}

/// Returns the trimmed query, or an error if it is blank.
fn required_query(query: &str) -> Result<&str, ToolFailure> {
    let query = query.trim();
    match query.is_empty() {
        true => Err(ToolFailure::new("query: is empty, where a few keywords are expected")),
        false => Ok(query),
    }
}

fn read_only(name: &str, about: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, about).annotations(hints)
}

/// Builds a tool that accepts any object: it reports invalid arguments itself and suggests similar tools.
fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Exactly as it was found"},
            "arguments": {"type": "object", "description": "As its inputSchema says"},
        },
        "required": ["name"],
    });
    Tool::new(CALL, ABOUT_CALL).input_schema(schema).accepted_schema(json!({"type": "object"}))
}
