//! `/tools`: lists in the formats of models' APIs, and calls.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{Call, Caller, Gateway, Json, Object, ToolError};
use toolyard_mcp::server::http::peer_of;

use super::body::ObjectRequest;
use super::extract::UrlPath;
use super::idempotency::{self, IdempotentStart};
use super::query::{Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, json};
use crate::keys::AuthenticatedCaller;

/// Format of tool descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ToolFormat {
    /// The format of MCP, as the upstream describes its tools.
    #[default]
    Mcp,
    /// The format of OpenAI's chat completions.
    OpenAi,
    /// The format of Anthropic's messages.
    Anthropic,
}

impl QueryParams for ToolFormat {
    const NAMES: &'static [&'static str] = &["format"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        let format = values.parsed("format", "`mcp`, `openai` or `anthropic`", |text| match text {
            "mcp" => Some(Self::Mcp),
            "openai" => Some(Self::OpenAi),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        });
        Ok(format?.unwrap_or_default())
    }
}

/// The tools to list, and their format.
pub(super) struct ToolListQuery {
    format: ToolFormat,
    handler: Option<String>,
}

impl QueryParams for ToolListQuery {
    const NAMES: &'static [&'static str] = &["format", "handler"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        Ok(Self { handler: values.text("handler"), format: ToolFormat::parse(values)? })
    }
}

impl ToolFormat {
    /// Converts a tool. Members that only MCP has are left out of the other formats.
    fn write(self, name: &str, definition: &Json) -> Json {
        let Ok(definition) = definition.to_object() else { return definition.clone() };
        let described = |schema: &str| {
            let object = Object::new().with("name", Json::string(name));
            let description = definition.get("description").cloned();
            let object =
                description.into_iter().fold(object, |object, text| object.with("description", text));
            let any = || Object::new().with("type", Json::string("object")).to_json();
            object.with(schema, definition.get("inputSchema").cloned().unwrap_or_else(any)).to_json()
        };
        match self {
            Self::Mcp => definition.to_json(),
            Self::OpenAi => {
                let function = described("parameters");
                Object::new().with("type", Json::string("function")).with("function", function).to_json()
            }
            Self::Anthropic => described("input_schema"),
        }
    }
}

/// `GET /tools`: the tools of the caller.
pub(super) async fn list(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    Query(ToolListQuery { format, handler }): Query<ToolListQuery>,
) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let is_of_handler =
        |entry: &RegistryEntry| handler.as_deref().is_none_or(|handler| *entry.handler.name == *handler);
    let own_tools = registry.definitions(EntryKind::Tools).filter(|(entry, _)| is_of_handler(entry));
    let tools: Vec<_> = own_tools.map(|(entry, definition)| format.write(&entry.name, definition)).collect();
    Ok(json(StatusCode::OK, Object::new().with("tools", Json::array(&tools)).to_json().bytes()))
}

/// `GET /tools/{name}`: one tool, with its whole description if the list has only the beginning.
pub(super) async fn one(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    UrlPath(name): UrlPath<String>,
    Query(format): Query<ToolFormat>,
) -> RestResult {
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let mut tools = registry.definitions(EntryKind::Tools);
    let entry = tools.find(|(entry, _)| *entry.name == *name);
    let unknown = || registry.tool_or_nearest(&name).err().unwrap_or_else(|| ToolError::unknown_tool(&name));
    let (entry, definition) = entry.ok_or_else(|| ProblemDetails::from(unknown()))?;
    let manual = entry.tool.as_ref().and_then(|tool| tool.manual());
    let described = manual.zip(definition.to_object().ok()).map(|(manual, mut definition)| {
        definition.set("description", Json::string(manual));
        definition.to_json()
    });
    let definition = described.as_ref().unwrap_or(definition);
    Ok(json(StatusCode::OK, format.write(&name, definition).bytes()))
}

/// `POST /tools/{name}/call`: calls a tool. With an `Idempotency-Key` it runs once, however often the key is sent.
pub(super) async fn call(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    UrlPath(name): UrlPath<String>,
    ObjectRequest { parts, text, object }: ObjectRequest,
) -> RestResult {
    if let Some((member, _)) = object.iter().find(|(member, _)| *member != "arguments") {
        return Err(ProblemDetails::bad_request(format!(
            "unknown member {member:?}: expected `arguments` only"
        )));
    }
    let key = idempotency::key(&parts.headers)?;
    let arguments = object.get("arguments").cloned().unwrap_or_else(|| Object::new().to_json());
    let tool_call = Call {
        caller: Caller { peer: peer_of(&parts), ..caller.to_caller() },
        origin: Some(Arc::new(parts)),
        ..Call::tool(name.as_str(), arguments)
    };
    let Some(key) = key else { return run(&rest.gateway, tool_call).await };
    let registry = rest.gateway.settled_for(&tool_call.caller).await;
    let time = registry.tool_or_nearest(&name)?.handler.limits.timeout;
    match idempotency::begin(rest.keys.store(), &caller, &key, (&name, &text), time).await? {
        IdempotentStart::Before(response) => Ok(response),
        IdempotentStart::Now(idempotent_call) => {
            let gateway = rest.gateway.clone();
            let work = async move { idempotent_call.finish(run(&gateway, tool_call).await).await };
            rest.run_detached(work).await.ok_or_else(ProblemDetails::stopping)?
        }
    }
}

async fn run(gateway: &Gateway, call: Call) -> RestResult {
    let output = gateway.invoke_to_end(call).await?;
    Ok(json(StatusCode::OK, output.body.to_json().bytes()))
}
