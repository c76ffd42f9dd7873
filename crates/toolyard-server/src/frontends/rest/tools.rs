//! `/tools`: lists in the formats of models' APIs, and calls.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{Call, ErrorCode, Json, Object, Outcome, ToolError};

use super::idempotency::{self, IdempotentStart};
use super::{NamedPath, ProblemDetails, RestState, json, query};
use crate::keys::AuthenticatedCaller;

/// Format of tool descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolFormat {
    /// The format of MCP, as the upstream describes its tools.
    Mcp,
    /// The format of OpenAI's chat completions.
    OpenAi,
    /// The format of Anthropic's messages.
    Anthropic,
}

impl ToolFormat {
    fn parse(text: Option<&str>) -> Result<Self, ProblemDetails> {
        Ok(match text {
            None | Some("mcp") => Self::Mcp,
            Some("openai") => Self::OpenAi,
            Some("anthropic") => Self::Anthropic,
            Some(_) => {
                return Err(ProblemDetails::bad_request(
                    "invalid `format`: expected `mcp`, `openai` or `anthropic`".to_owned(),
                ));
            }
        })
    }

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
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.rest)?;
    let [format, handler] = query(&parts, ["format", "handler"])?;
    let format = ToolFormat::parse(format.as_deref())?;
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let is_of_handler =
        |entry: &RegistryEntry| handler.as_deref().is_none_or(|handler| *entry.handler.name == *handler);
    let own_tools = registry.listed(EntryKind::Tools).filter(|(entry, _)| is_of_handler(entry));
    let tools: Vec<_> = own_tools.map(|(entry, definition)| format.write(&entry.name, definition)).collect();
    Ok(json(StatusCode::OK, Object::new().with("tools", Json::array(&tools)).to_json().bytes()))
}

/// `GET /tools/{name}`: one tool.
pub(super) async fn one(
    State(rest): State<Arc<RestState>>,
    NamedPath(name): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.rest)?;
    let [format] = query(&parts, ["format"])?;
    let format = ToolFormat::parse(format.as_deref())?;
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let mut tools = registry.listed(EntryKind::Tools);
    let entry = tools.find(|(entry, _)| *entry.name == *name);
    let (_, definition) = entry.ok_or_else(|| ProblemDetails::from(ToolError::unknown_tool(&name)))?;
    Ok(json(StatusCode::OK, format.write(&name, definition).bytes()))
}

/// `POST /tools/{name}/call`: calls a tool. With an `Idempotency-Key` it runs once, however often the key is sent.
pub(super) async fn call(
    State(rest): State<Arc<RestState>>,
    NamedPath(name): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    let caller = AuthenticatedCaller::authorize(&parts.extensions, |access| access.rest)?;
    let text = rest.body(&parts, body).await?;
    let body = Object::parse(text.clone())
        .map_err(|error| ProblemDetails::bad_request(format!("the body is not a JSON object: {error}")))?;
    if let Some((member, _)) = body.iter().find(|(member, _)| *member != "arguments") {
        return Err(ProblemDetails::bad_request(format!(
            "unknown member {member:?}: expected `arguments` only"
        )));
    }
    let Some(key) = idempotency::key(&parts.headers)? else {
        return run(&rest, &caller, &name, &body, parts).await;
    };
    let registry = rest.gateway.settled_for(&caller.to_caller()).await;
    let time = registry.tool(&name)?.handler.limits.timeout;
    match idempotency::begin(rest.keys.store(), &caller, &key, (&name, &text), time).await? {
        IdempotentStart::Before(response) => Ok(response),
        IdempotentStart::Now(idempotent_call) => {
            let running = rest.clone();
            let work = async move {
                idempotent_call.finish(run(&running, &caller, &name, &body, parts).await).await
            };
            rest.run_detached(work).await.ok_or_else(ProblemDetails::stopping)?
        }
    }
}

async fn run(
    rest: &RestState,
    caller: &AuthenticatedCaller,
    name: &str,
    body: &Object,
    parts: Parts,
) -> Result<Response, ProblemDetails> {
    let arguments = body.get("arguments").cloned();
    let call = Call {
        caller: caller.to_caller(),
        origin: Some(Arc::new(parts)),
        ..Call::tool(name, arguments.unwrap_or_else(|| Object::new().to_json()))
    };
    match rest.gateway.invoke(call).await {
        Ok(Outcome::Done(output)) => Ok(json(StatusCode::OK, output.body.to_json().bytes())),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            let detail = "the tool requests input from its caller, which only MCP supports";
            Err(ToolError::new(ErrorCode::MissingCapability, detail).into())
        }
        Err(error) => Err(error.into()),
    }
}
