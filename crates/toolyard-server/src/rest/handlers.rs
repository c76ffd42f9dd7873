//! Handlers, for operators.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use toolyard_core::registry::{Entry, Kind};
use toolyard_core::{Call, Code, Json, Outcome, Output, Registry, ToolError};

use super::{Named, Problem, Rest, json, query, written};
use crate::audit::Deed;
use crate::fleet::Order;
use crate::keys::Visitor;

/// `GET /handlers`: how they are, as in the status.
pub(super) async fn list(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.rest || access.admin)?;
    let [] = query(&parts, [])?;
    // It reads files of the system.
    let handlers = spawn_blocking(move || rest.observatory.handlers(&visitor)).await;
    handlers.map(|handlers| json(StatusCode::OK, handlers)).map_err(|_| Problem::fault())
}

/// What is to be tried.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Trial {
    /// The tool, by its owner's name or the published one. May be left out where there is only one.
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// What came of it, as the contract's own software says it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    success: bool,
    tool_name: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    duration_ms: f64,
    handler_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    validation: Validation,
}

/// Whether what was sent, and what came, is what the tool's schemas say.
#[derive(Debug, Serialize)]
struct Validation {
    request: Valid,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Valid>,
}

#[derive(Debug, Serialize)]
struct Valid {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Result<(), ToolError>> for Valid {
    fn from(checked: Result<(), ToolError>) -> Self {
        Self { valid: checked.is_ok(), error: checked.err().map(|error| error.message().to_owned()) }
    }
}

/// `POST /handlers/{name}/test`: runs one of its tools once, and holds what is sent and what comes to its schemas.
pub(super) async fn test(
    State(rest): State<Arc<Rest>>,
    Named(name): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.admin)?;
    let handler_type = rest.observatory.kind_of(&name).ok_or_else(|| unknown(&name))?;
    let trial: Trial = rest.read(&parts, body).await?;
    let arguments = trial.arguments.map_or("{}".to_owned(), |arguments| arguments.get().to_owned());
    let arguments = Json::parse(arguments).map_err(|error| Problem::bad_request(error.to_string()))?;
    let registry = rest.gateway.settled_for(&visitor.caller()).await;
    let entry = tool(&registry, &name, trial.tool_name.as_deref())?;
    let call = Call {
        caller: visitor.caller(),
        origin: Some(Arc::new(parts)),
        ..Call::tool(entry.name.clone(), arguments)
    };
    let report = attempt(&rest, &entry, call, handler_type).await;
    let status = if report.success { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(written(status, &report))
}

fn unknown(name: &str) -> Problem {
    Problem::not_found(format!("There is no handler {name:?}"))
}

/// The tool of a handler that is meant.
fn tool(registry: &Registry, handler: &str, name: Option<&str>) -> Result<Arc<Entry>, Problem> {
    let mut own = registry.known(Kind::Tools).filter(|entry| *entry.handler.name == *handler);
    let Some(name) = name else {
        return match (own.next(), own.next()) {
            (Some(only), None) => Ok(only.clone()),
            (None, _) => Err(Problem::not_found("The handler has no tool that is known by now")),
            _ => Err(Problem::bad_request("The handler has several tools: `toolName` says which".to_owned())),
        };
    };
    let mut named: Vec<_> = own.filter(|entry| *entry.name == *name || *entry.own == *name).collect();
    // Where one tool is published as another one is called by their owner, what is published counts.
    named.sort_by_key(|entry| *entry.name != *name);
    named.first().map(|entry| (*entry).clone()).ok_or_else(|| ToolError::unknown_tool(name).into())
}

/// What does not fit is refused by the gateway before anything is sent, and stands in the audit trail like every call.
async fn attempt(rest: &Rest, entry: &Entry, call: Call, handler_type: String) -> Report {
    let checked = entry.tool.as_ref().map_or(Ok(()), |tool| tool.check_arguments(call.arguments()));
    let mut report = Report {
        success: false,
        tool_name: entry.name.clone(),
        result: None,
        error: None,
        code: None,
        duration_ms: 0.0,
        handler_type,
        warning: None,
        validation: Validation { request: checked.into(), response: None },
    };
    let start = Instant::now();
    let came = rest.gateway.invoke(call).await;
    report.duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    match came {
        Ok(Outcome::Done(output)) => report.done(entry, &output),
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            report.success = true;
            report.warning =
                Some("the tool asks its caller something, or runs as a task: only its beginning was tried");
        }
        Err(error) => {
            report.error = Some(error.message().to_owned());
            report.code = Some(error.code().row().wire);
        }
    }
    report
}

impl Report {
    fn done(&mut self, entry: &Entry, output: &Output) {
        let checked =
            entry.tool.as_ref().filter(|_| !output.is_error).map(|tool| tool.check_result(&output.body));
        let checked = checked.flatten().map(Valid::from);
        self.success = !output.is_error && checked.as_ref().is_none_or(|checked| checked.valid);
        if output.is_error {
            self.error = Some("the tool says that it failed".to_owned());
        } else if checked.is_none() {
            self.warning = Some("the tool has no output schema: what came is not checked");
        }
        self.validation.response = checked;
        self.result = RawValue::from_string(output.body.to_json().as_text().to_owned()).ok();
    }
}

/// `POST /handlers/{name}/refresh`: asks the server for its list again.
pub(super) async fn refresh(
    State(rest): State<Arc<Rest>>,
    Named(name): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let (done, is_known) = oneshot::channel();
    let orders = rest.orders.upgrade().ok_or_else(stopping)?;
    orders.send(Order::Refresh(name.clone(), done)).await.map_err(|_| stopping())?;
    match is_known.await.map_err(|_| stopping())? {
        true => {
            rest.note(&parts, Deed::HandlerRefreshed, &name);
            Ok(written(StatusCode::ACCEPTED, &serde_json::json!({"handler": name, "refreshing": true})))
        }
        false => Err(unknown(&name)),
    }
}

fn stopping() -> Problem {
    Problem::new(Code::Unavailable, "The gateway is stopping")
}
