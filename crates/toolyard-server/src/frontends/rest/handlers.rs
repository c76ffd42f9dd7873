//! `/handlers`: handlers, for operators.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, State};
use http::StatusCode;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{
    BackendPhase, Call, CallOutput, ErrorCode, Gateway, Json, Outcome, Registry, Tool, ToolError,
};

use super::body::JsonBody;
use super::extract::{AuditRecorder, UrlPath};
use super::query::NoQuery;
use super::{ProblemDetails, Rest, RestResult, RestState, json as json_text, json_value};
use crate::audit::AuditAction;
use crate::fleet::{AcceptCommand, AcceptError, FleetCommand};
use crate::keys::AuthenticatedCaller;
use crate::status::ToolChangeReport;

/// `GET /handlers`: the handlers of the status.
pub(super) async fn list(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    // It reads files of the system.
    let handlers = spawn_blocking(move || rest.reporter.handlers(&caller)).await;
    handlers.map(|handlers| json_text(StatusCode::OK, handlers)).map_err(|_| ProblemDetails::fault())
}

/// The test to run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct HandlerTestRequest {
    /// The tool, by its upstream's name or the published one. Optional if the handler has only one.
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

/// The outcome of a test, in the format of the specification's reference implementation.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct HandlerTestReport {
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
    validation: TestValidation,
}

/// Validation of the arguments and the result against the tool's schemas.
#[derive(Debug, Serialize)]
struct TestValidation {
    request: SchemaCheck,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<SchemaCheck>,
}

#[derive(Debug, Serialize)]
struct SchemaCheck {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Result<(), ToolError>> for SchemaCheck {
    fn from(validation: Result<(), ToolError>) -> Self {
        Self { valid: validation.is_ok(), error: validation.err().map(|error| error.message().to_owned()) }
    }
}

/// The handler in a path.
pub(super) struct KnownHandler {
    name: String,
    kind: String,
}

impl FromRequestParts<Arc<RestState>> for KnownHandler {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, rest: &Arc<RestState>) -> Result<Self, ProblemDetails> {
        let UrlPath(name) = UrlPath::<String>::from_request_parts(parts, rest).await?;
        let unknown = || match rest.gateway.registry().tool(&name) {
            Ok(tool) => {
                let handler = &tool.handler.name;
                ProblemDetails::not_found(format!("{name:?} is a tool of the handler {handler:?}"))
            }
            Err(_) => unknown_handler(&name),
        };
        let kind = rest.reporter.kind_of(&name).ok_or_else(unknown)?;
        Ok(Self { name, kind })
    }
}

/// `POST /handlers/{name}/test`: runs one of the handler's tools once and validates arguments and result.
pub(super) async fn test(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    handler: KnownHandler,
    parts: Parts,
    JsonBody(trial): JsonBody<HandlerTestRequest>,
) -> RestResult {
    let arguments = trial.arguments.map_or("{}".to_owned(), |arguments| arguments.get().to_owned());
    let arguments = Json::parse(arguments).map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
    let caller = caller.to_operator();
    wait_for_answer(&rest.gateway, &handler.name).await;
    let registry = rest.gateway.settled_for(&caller).await;
    let entry = tool(&registry, &handler.name, trial.tool_name.as_deref())
        .map_err(|unknown| failure_of(&registry, &handler.name).unwrap_or(unknown))?;
    let call = Call { caller, origin: Some(Arc::new(parts)), ..Call::tool(entry.name.clone(), arguments) };
    let report = run_test(&rest.gateway, &entry, call, handler.kind).await;
    let status = if report.success { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    json_value(status, &report)
}

/// Waits until a handler has answered or failed: a launcher may be installing its server.
async fn wait_for_answer(gateway: &Gateway, handler: &str) {
    let has_answered = |registry: &Arc<Registry>| phase(registry, handler) != Some(&BackendPhase::Connecting);
    // The registry does not change any more once the gateway stops.
    let mut registry = gateway.watch();
    let _stopping = registry.wait_for(has_answered).await;
}

/// Returns the problem of a handler that has failed.
fn failure_of(registry: &Registry, handler: &str) -> Option<ProblemDetails> {
    let BackendPhase::Unavailable { reason } = phase(registry, handler)? else { return None };
    Some(ProblemDetails::new(ErrorCode::Unavailable, format!("the handler is unavailable: {reason}")))
}

fn phase<'a>(registry: &'a Registry, handler: &str) -> Option<&'a BackendPhase> {
    registry.phases().iter().find(|(name, _)| **name == *handler).map(|(_, phase)| phase)
}

fn unknown_handler(name: &str) -> ProblemDetails {
    ProblemDetails::not_found(format!("unknown handler {name:?}"))
}

/// Maximum number of tools that an error names.
const MAX_TOOLS_NAMED: usize = 10;

/// Returns the named tool of a handler, or its only one.
fn tool(
    registry: &Registry,
    handler: &str,
    name: Option<&str>,
) -> Result<Arc<RegistryEntry>, ProblemDetails> {
    let mut candidates =
        registry.callable_entries(EntryKind::Tools).filter(|entry| *entry.handler.name == *handler);
    let Some(name) = name else {
        return match (candidates.next(), candidates.next()) {
            (Some(only), None) => Ok(only.clone()),
            (None, _) => Err(ProblemDetails::not_found("the handler has no known tool yet")),
            (Some(first), Some(second)) => {
                let all = [first, second].into_iter().chain(candidates);
                let names: Vec<_> = all.take(MAX_TOOLS_NAMED).map(|entry| &*entry.name).collect();
                let names = names.join(", ");
                Err(ProblemDetails::bad_request(format!("the handler has several tools, name one: {names}")))
            }
        };
    };
    let mut matching: Vec<_> =
        candidates.filter(|entry| *entry.name == *name || *entry.own == *name).collect();
    // The published name takes precedence over the upstream's.
    matching.sort_by_key(|entry| *entry.name != *name);
    matching.first().map(|entry| (*entry).clone()).ok_or_else(|| ToolError::unknown_tool(name).into())
}

/// Runs the test. The gateway refuses invalid arguments before it sends anything, and audits the call as usual.
async fn run_test(
    gateway: &Gateway,
    entry: &RegistryEntry,
    call: Call,
    handler_type: String,
) -> HandlerTestReport {
    let arguments = call.arguments().cloned();
    let validation = run_blocking(entry, move |tool| tool.check_arguments(arguments.as_ref())).await;
    let mut report = HandlerTestReport {
        success: false,
        tool_name: entry.name.clone(),
        result: None,
        error: None,
        code: None,
        duration_ms: 0.0,
        handler_type,
        warning: None,
        validation: TestValidation { request: validation.unwrap_or(Ok(())).into(), response: None },
    };
    let start = Instant::now();
    let outcome = gateway.invoke(call).await;
    report.duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    match outcome {
        Ok(Outcome::Done(output)) => report.fill_result(entry, output).await,
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => {
            report.success = true;
            report.warning = Some("the tool requests input or runs as a task: only its start was tested");
        }
        Err(error) => {
            report.error = Some(error.message().to_owned());
            report.code = Some(error.code().row().wire);
        }
    }
    report
}

/// Runs a check of a tool that may take a second. `None`: the tool has no definition.
async fn run_blocking<T: Send + 'static>(
    entry: &RegistryEntry,
    check: impl FnOnce(&Tool) -> T + Send + 'static,
) -> Option<T> {
    let tool = entry.tool.clone()?;
    spawn_blocking(move || check(&tool)).await.ok()
}

impl HandlerTestReport {
    async fn fill_result(&mut self, entry: &RegistryEntry, output: CallOutput) {
        let validation = match output.is_error {
            true => None,
            false => {
                let body = output.body.clone();
                run_blocking(entry, move |tool| tool.check_result(&body))
                    .await
                    .flatten()
                    .map(SchemaCheck::from)
            }
        };
        self.success = !output.is_error && validation.as_ref().is_none_or(|validation| validation.valid);
        if output.is_error {
            self.error = Some("the tool reported an error".to_owned());
        } else if validation.is_none() {
            self.warning = Some("the tool has no output schema: the result was not validated");
        }
        self.validation.response = validation;
        self.result = RawValue::from_string(output.body.to_json().as_text().to_owned()).ok();
    }
}

/// `POST /handlers/{name}/refresh`: requests the upstream's lists again.
pub(super) async fn refresh(
    State(rest): Rest,
    UrlPath(name): UrlPath<String>,
    audit: AuditRecorder,
) -> RestResult {
    let (done, is_found) = oneshot::channel();
    if !run_command(&rest, FleetCommand::Refresh(name.clone(), done), is_found).await? {
        return Err(unknown_handler(&name));
    }
    audit.record(AuditAction::HandlerRefreshed, &name);
    json_value(StatusCode::ACCEPTED, &json!({"handler": name, "refreshing": true}))
}

/// `POST /handlers/{name}/restart`: starts the handler anew. The running one serves until the new one has answered or
/// failed.
pub(super) async fn restart(
    State(rest): Rest,
    UrlPath(name): UrlPath<String>,
    audit: AuditRecorder,
) -> RestResult {
    let (done, is_found) = oneshot::channel();
    if !run_command(&rest, FleetCommand::Restart(name.clone(), done), is_found).await? {
        return Err(unknown_handler(&name));
    }
    audit.record(AuditAction::HandlerRestarted, &name);
    json_value(StatusCode::ACCEPTED, &json!({"handler": name, "restarting": true}))
}

/// `POST /handlers/{name}/disable`: stops the handler until its restart.
pub(super) async fn disable(
    State(rest): Rest,
    UrlPath(name): UrlPath<String>,
    audit: AuditRecorder,
) -> RestResult {
    let (done, is_found) = oneshot::channel();
    if !run_command(&rest, FleetCommand::Disable(name.clone(), done), is_found).await? {
        return Err(unknown_handler(&name));
    }
    audit.record(AuditAction::HandlerDisabled, &name);
    json_value(StatusCode::ACCEPTED, &json!({"handler": name, "disabling": true}))
}

/// Sends a command to the fleet and waits for its result.
async fn run_command<T>(
    rest: &RestState,
    command: FleetCommand,
    result: oneshot::Receiver<T>,
) -> Result<T, ProblemDetails> {
    let commands = rest.commands.upgrade().ok_or_else(ProblemDetails::stopping)?;
    commands.send(command).await.map_err(|_| ProblemDetails::stopping())?;
    result.await.map_err(|_| ProblemDetails::stopping())
}

/// The changes to accept.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceptRequest {
    /// The tool, by its upstream's name. Default: all changed tools.
    #[serde(default)]
    tool: Option<String>,
    /// The required digest of the definition. Default: the offered one.
    #[serde(default)]
    digest: Option<String>,
}

/// `POST /handlers/{name}/accept`: accepts the offered definitions of changed tools.
pub(super) async fn accept(
    State(rest): Rest,
    UrlPath(name): UrlPath<String>,
    audit: AuditRecorder,
    JsonBody(AcceptRequest { tool, digest }): JsonBody<AcceptRequest>,
) -> RestResult {
    let (done, accepted) = oneshot::channel();
    let command = FleetCommand::Accept(AcceptCommand { handler: name.clone(), tool, digest, done });
    let accepted = run_command(&rest, command, accepted).await?.map_err(|error| match error {
        AcceptError::Another(_) => ProblemDetails::conflict("changed_again", false, &error.to_string()),
        AcceptError::NoHandler(_) | AcceptError::NoChange(_) => ProblemDetails::not_found(error.to_string()),
    })?;
    accepted.iter().for_each(|change| audit.record_acceptance(&name, change));
    let accepted: Vec<_> = accepted.iter().map(ToolChangeReport::from).collect();
    json_value(StatusCode::OK, &json!({"handler": name, "accepted": accepted}))
}
