//! Tools: lists, in the forms that models' APIs take, and calls.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use toolyard_core::registry::{Entry, Kind};
use toolyard_core::{Call, Code, Json, Object, Outcome, ToolError};

use super::idempotency::{self, Begun};
use super::{Named, Problem, Rest, json, query};
use crate::keys::Visitor;

/// In which form tools are described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// As MCP has them, which is how their owners describe them.
    Mcp,
    /// As OpenAI's chat completions take them.
    OpenAi,
    /// As Anthropic's messages take them.
    Anthropic,
}

impl Format {
    fn parse(text: Option<&str>) -> Result<Self, Problem> {
        Ok(match text {
            None | Some("mcp") => Self::Mcp,
            Some("openai") => Self::OpenAi,
            Some("anthropic") => Self::Anthropic,
            Some(_) => {
                return Err(Problem::bad_request("`format` is `mcp`, `openai` or `anthropic`".to_owned()));
            }
        })
    }

    /// A tool in this form. What only MCP knows of it is left out of the others.
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

/// `GET /tools`: what there is for who asks.
pub(super) async fn list(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest)?;
    let [format, handler] = query(&parts, ["format", "handler"])?;
    let format = Format::parse(format.as_deref())?;
    let registry = rest.gateway.settled_for(&visitor.caller()).await;
    let is_asked_for =
        |entry: &Entry| handler.as_deref().is_none_or(|handler| *entry.handler.name == *handler);
    let listed = registry.listed(Kind::Tools).filter(|(entry, _)| is_asked_for(entry));
    let tools: Vec<_> = listed.map(|(entry, definition)| format.write(&entry.name, definition)).collect();
    Ok(json(StatusCode::OK, Object::new().with("tools", Json::array(&tools)).to_json().bytes()))
}

/// `GET /tools/{name}`: one of them.
pub(super) async fn one(
    State(rest): State<Arc<Rest>>,
    Named(name): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest)?;
    let [format] = query(&parts, ["format"])?;
    let format = Format::parse(format.as_deref())?;
    let registry = rest.gateway.settled_for(&visitor.caller()).await;
    let mut listed = registry.listed(Kind::Tools);
    let found = listed.find(|(entry, _)| *entry.name == *name);
    let (_, definition) = found.ok_or_else(|| Problem::from(ToolError::unknown_tool(&name)))?;
    Ok(json(StatusCode::OK, format.write(&name, definition).bytes()))
}

/// `POST /tools/{name}/call`: runs a tool. With an `Idempotency-Key` once, however often that is sent.
pub(super) async fn call(
    State(rest): State<Arc<Rest>>,
    Named(name): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest)?;
    let text = rest.body(&parts, body).await?;
    let body = Object::parse(text.clone())
        .map_err(|error| Problem::bad_request(format!("The body is no object: {error}")))?;
    if let Some((member, _)) = body.iter().find(|(member, _)| *member != "arguments") {
        return Err(Problem::bad_request(format!("There is no member {member:?} here, only `arguments`")));
    }
    let Some(key) = idempotency::key(&parts.headers)? else {
        return run(&rest, &visitor, &name, &body, parts).await;
    };
    let registry = rest.gateway.settled_for(&visitor.caller()).await;
    let time = registry.tool(&name)?.handler.limits.timeout;
    match idempotency::begin(rest.ring.store(), &visitor, &key, (&name, &text), time).await? {
        Begun::Before(response) => Ok(response),
        Begun::Now(once) => {
            let running = rest.clone();
            let work = async move { once.finish(run(&running, &visitor, &name, &body, parts).await).await };
            rest.to_its_end(work).await.ok_or_else(Problem::stopping)?
        }
    }
}

async fn run(
    rest: &Rest,
    visitor: &Visitor,
    name: &str,
    body: &Object,
    parts: Parts,
) -> Result<Response, Problem> {
    let arguments = body.get("arguments").cloned();
    let call = Call {
        caller: visitor.caller(),
        origin: Some(Arc::new(parts)),
        ..Call::tool(name, arguments.unwrap_or_else(|| Object::new().to_json()))
    };
    match rest.gateway.invoke(call).await {
        Ok(Outcome::Done(output)) => Ok(json(StatusCode::OK, output.body.to_json().bytes())),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            let asks = "The tool asks its caller something, which only MCP can do";
            Err(ToolError::new(Code::MissingCapability, asks).into())
        }
        Err(error) => Err(error.into()),
    }
}
