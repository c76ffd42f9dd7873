//! `/functions`: hosted functions, for their callers and authors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};
use toolyard_core::{BackendPhase, Call, CallTarget, ErrorCode, Json, Outcome, Registry, ToolError};
use toolyard_functions::host::{DeletionTarget, PublicationResult};
use toolyard_functions::project::ProjectUpload;
use toolyard_functions::{FunctionError, FunctionHost, LogQuery, VersionBump, VersionSelector};

use super::body::{JsonBody, ObjectRequest};
use super::extract::{AuditRecorder, UrlPath};
use super::query::{NoQuery, Query, QueryParams, QueryValues};
use super::{ProblemDetails, Rest, RestResult, RestState, json as json_text, json_value};
use crate::audit::AuditAction;
use crate::hosting::{ANSWER, ReachedFunction};
use crate::keys::AuthenticatedCaller;

/// The function and the version in a path. The path of the draft has no version part.
#[derive(Deserialize)]
pub(super) struct FunctionPath {
    id: String,
    #[serde(default = "draft")]
    version: String,
}

fn draft() -> String {
    "draft".to_owned()
}

impl FunctionPath {
    fn selector(&self) -> Result<VersionSelector, ProblemDetails> {
        Ok(self.version.parse().map_err(FunctionError::InvalidVersion)?)
    }
}

/// `POST /functions/{id}/{version}/invoke`: invokes a version with the event of the body.
pub(super) async fn invoke(
    State(rest): Rest,
    caller: AuthenticatedCaller,
    UrlPath(path): UrlPath<FunctionPath>,
    request: Request,
) -> RestResult {
    let start = Instant::now();
    let (selector, mut parts, event) = match read_invocation(&rest, &path, request).await {
        Ok(invocation) => invocation,
        Err(problem) => return Err(first_problem(&rest.host, &caller, &path, problem).await),
    };
    let id = path.id;
    let reached = ReachedFunction::default();
    parts.extensions.insert(reached.clone());
    let call = Call {
        target: CallTarget::Function(format!("{id}@{selector}").into()),
        caller: caller.to_caller(),
        origin: Some(Arc::new(parts)),
        ..Call::tool("", event)
    };
    match rest.gateway.invoke(call).await {
        Ok(Outcome::Done(output)) => {
            let answer = output.body.get(ANSWER).cloned().unwrap_or_else(Json::null);
            Ok(json_text(StatusCode::OK, answer.bytes()))
        }
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(ProblemDetails::fault()),
        Err(error) if error.code() == ErrorCode::FunctionNotFound => {
            check_balance(&caller).await?;
            Err(refusal(error))
        }
        Err(error) => {
            if !reached.get() {
                let why = format!("{:#}", error.outline());
                rest.host.log_refusal(&id, selector, start, error.code(), &why);
            }
            answered(&error).ok_or_else(|| refusal(error))
        }
    }
}

/// Reads the version to invoke and its event.
async fn read_invocation(
    rest: &Arc<RestState>,
    path: &FunctionPath,
    request: Request,
) -> Result<(VersionSelector, Parts, Json), ProblemDetails> {
    let selector = path.selector()?;
    NoQuery::parse(request.uri())?;
    let ObjectRequest { parts, object, .. } = ObjectRequest::from_request(request, rest).await?;
    let event = object.get("event").ok_or_else(|| ProblemDetails::bad_request("the body lacks `event`"))?;
    Ok((selector, parts, event.clone()))
}

/// Returns the problem of an invalid request. Problems of the key's balance, the function and the version take
/// precedence, in this order.
async fn first_problem(
    host: &FunctionHost,
    caller: &AuthenticatedCaller,
    path: &FunctionPath,
    fault: ProblemDetails,
) -> ProblemDetails {
    if let Err(problem) = check_balance(caller).await {
        return problem;
    }
    let outcome = match path.selector() {
        Ok(selector) => host.show_version(&path.id, selector).await.map(drop),
        Err(_) => host.show(&path.id).await.map(drop),
    };
    match outcome {
        Err(error @ (FunctionError::UnknownFunction(_) | FunctionError::UnknownVersion { .. })) => {
            error.into()
        }
        Ok(()) | Err(_) => fault,
    }
}

/// Checks that the key can call anything at all before a missing function or version is reported. For an existing
/// function its price is checked.
async fn check_balance(caller: &AuthenticatedCaller) -> Result<(), ProblemDetails> {
    let caller = caller.to_caller();
    let Some(allowance) = caller.grant.as_ref().and_then(|grant| grant.allowance.as_ref()) else {
        return Ok(());
    };
    Ok(allowance.check().await?)
}

/// Returns the response of a function that cannot be loaded, which has the format of every function response.
fn answered(error: &ToolError) -> Option<Response> {
    let answer =
        error.peer().filter(|_| error.code() == ErrorCode::ExecutionFailed && !error.may_have_run())?;
    Some(json_text(StatusCode::OK, answer.bytes()))
}

/// Converts an error. A timeout is 408 as on the CortexOne platform, and not 504.
fn refusal(error: ToolError) -> ProblemDetails {
    match error.code() {
        ErrorCode::Timeout => ProblemDetails::timed_out(error.message()),
        _ => error.into(),
    }
}

/// `GET /functions`: all functions of the caller.
pub(super) async fn list(State(rest): Rest, caller: AuthenticatedCaller, _: NoQuery) -> RestResult {
    let mut functions = rest.host.list().await?;
    functions.retain(|function| caller.can_see_function(&function.id));
    json_value(StatusCode::OK, &json!({"functions": functions}))
}

/// `GET /functions/{id}`: a function and its versions.
pub(super) async fn get_function(State(rest): Rest, UrlPath(id): UrlPath<String>, _: NoQuery) -> RestResult {
    json_value(StatusCode::OK, &rest.host.show(&id).await?)
}

/// `GET /functions/{id}/{version}`: a version without the values of its environment.
pub(super) async fn version(
    State(rest): Rest,
    UrlPath(path): UrlPath<FunctionPath>,
    _: NoQuery,
) -> RestResult {
    json_value(StatusCode::OK, &rest.host.show_version(&path.id, path.selector()?).await?)
}

/// The file of a version.
pub(super) struct FileQuery(String);

impl QueryParams for FileQuery {
    const NAMES: &'static [&'static str] = &["path"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        let missing =
            || ProblemDetails::bad_request("missing `path`: expected the path of a file such as main.py");
        values.text("path").map(Self).ok_or_else(missing)
    }
}

/// `GET /functions/{id}/{version}/file`: a file of a version with its text.
pub(super) async fn file(
    State(rest): Rest,
    UrlPath(path): UrlPath<FunctionPath>,
    Query(FileQuery(file)): Query<FileQuery>,
) -> RestResult {
    json_value(StatusCode::OK, &rest.host.show_file(&path.id, path.selector()?, &file).await?)
}

/// `PUT /functions/{id}/draft`: saves the draft.
pub(super) async fn save(
    State(rest): Rest,
    UrlPath(id): UrlPath<String>,
    _: NoQuery,
    audit: AuditRecorder,
    JsonBody(upload): JsonBody<ProjectUpload, { ProjectUpload::MAX_UPLOAD_BYTES }>,
) -> RestResult {
    let project = upload.into_project().map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
    let summary = rest.host.save_draft(&id, &project).await?;
    audit.record(AuditAction::FunctionSaved, &id);
    json_value(StatusCode::OK, &summary)
}

/// The part of the version number to increase, and the draft to publish.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PublishRequest {
    bump: VersionBump,
    #[serde(default)]
    digest: Option<String>,
}

/// A published version and the handlers that serve it.
#[derive(Debug, Serialize)]
struct ServedPublication {
    #[serde(flatten)]
    publication: PublicationResult,
    handlers: Vec<String>,
}

impl ServedPublication {
    fn new(rest: &RestState, publication: PublicationResult) -> Self {
        let id = &publication.id;
        let published = rest.host.version_key(id, VersionSelector::Exact(publication.version));
        let of_function = rest.reporter.handlers_of_function(id).into_iter();
        let serving = of_function
            .filter(|(_, wanted)| rest.host.version_key(id, wanted.parse().unwrap_or_default()) == published);
        Self { handlers: serving.map(|(name, _)| name).collect(), publication }
    }
}

/// `POST /functions/{id}/publish`: tests the draft and publishes it.
pub(super) async fn publish(
    State(rest): Rest,
    UrlPath(id): UrlPath<String>,
    _: NoQuery,
    audit: AuditRecorder,
    JsonBody(PublishRequest { bump, digest }): JsonBody<PublishRequest>,
) -> RestResult {
    let (host, function_id) = (rest.host.clone(), id.clone());
    // The client may disconnect during the tests.
    let work = async move { host.publish(&function_id, bump, digest.as_deref()).await };
    match rest.run_detached(work).await.ok_or_else(ProblemDetails::stopping)? {
        Ok(publication) => {
            let mut status = StatusCode::OK;
            if !publication.unchanged {
                audit.record(AuditAction::FunctionPublished, &format!("{id}@{}", publication.version));
                wait_until_served(&rest, &id).await;
                status = StatusCode::CREATED;
            }
            json_value(status, &ServedPublication::new(&rest, publication))
        }
        Err(FunctionError::TestsFailed { failed, reports, .. }) => {
            let response = json!({"id": id, "failed": failed, "tests": reports});
            json_value(StatusCode::UNPROCESSABLE_ENTITY, &response)
        }
        Err(error) => Err(error.into()),
    }
}

/// Maximum time that a publication waits for the function's handlers.
const SERVED_WITHIN: Duration = Duration::from_secs(5);

/// Waits until the handlers of a function have the tools of its new version, so that its author can call them next.
async fn wait_until_served(rest: &RestState, id: &str) {
    let of_function = rest.reporter.handlers_of_function(id).into_iter();
    let selected = |wanted: &str| rest.host.version_key(id, wanted.parse().unwrap_or_default());
    let handlers: HashMap<_, _> = of_function.map(|(name, wanted)| (name, selected(&wanted))).collect();
    let is_served = |registry: &Arc<Registry>| {
        registry.phases().iter().all(|(name, phase)| {
            let Some(selected) = handlers.get(&**name) else { return true };
            // Functions whose tool the manifest describes are not listed.
            let listed = registry.function_version(name);
            *phase == BackendPhase::Ready && (listed.is_none() || listed == selected.as_ref())
        })
    };
    let mut registry = rest.gateway.watch();
    // A handler that fails for another reason is reported by the status.
    let _late = timeout(SERVED_WITHIN, registry.wait_for(is_served)).await;
}

/// `POST /functions/{id}/{version}/test`: runs the test cases of a version.
pub(super) async fn test(State(rest): Rest, UrlPath(path): UrlPath<FunctionPath>, _: NoQuery) -> RestResult {
    let edition = rest.host.resolve(&path.id, path.selector()?).await?;
    let tests = rest.host.test_reports(&edition).await;
    let failed = tests.iter().filter(|test| !test.passed).count();
    let status = if failed == 0 { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    json_value(status, &json!({"id": path.id, "failed": failed, "tests": tests}))
}

/// `DELETE /functions/{id}`: deletes a function with all its versions.
pub(super) async fn delete(
    State(rest): Rest,
    UrlPath(id): UrlPath<String>,
    _: NoQuery,
    audit: AuditRecorder,
) -> RestResult {
    rest.host.delete(&id, DeletionTarget::Function).await?;
    audit.record(AuditAction::FunctionDeleted, &id);
    json_value(StatusCode::OK, &json!({"id": id}))
}

/// `DELETE /functions/{id}/{version}`: deletes one version, named in full, or the draft.
pub(super) async fn delete_version(
    State(rest): Rest,
    UrlPath(path): UrlPath<FunctionPath>,
    _: NoQuery,
    audit: AuditRecorder,
) -> RestResult {
    let target = match path.selector()? {
        VersionSelector::Exact(version) => DeletionTarget::Version(version),
        VersionSelector::Draft => DeletionTarget::Draft,
        _ => {
            return Err(ProblemDetails::bad_request(
                "cannot delete several versions: name one version, such as 1.2.0, or `draft`",
            ));
        }
    };
    let FunctionPath { id, version } = path;
    rest.host.delete(&id, target).await?;
    audit.record(AuditAction::FunctionDeleted, &format!("{id}@{version}"));
    json_value(StatusCode::OK, &json!({"id": id, "version": version}))
}

impl QueryParams for LogQuery {
    const NAMES: &'static [&'static str] =
        &["version", "outcome", "request", "since", "until", "before", "limit"];

    fn parse(mut values: QueryValues) -> Result<Self, ProblemDetails> {
        const MAX_ENTRIES: u64 = 1000;
        Ok(Self {
            version: values.text("version"),
            outcome: values.text("outcome"),
            request_id: values.text("request"),
            since: values.time("since")?,
            until: values.time("until")?,
            before: values.number("before", i64::MAX.unsigned_abs())?,
            limit: values.number("limit", MAX_ENTRIES)?.map(|limit| limit as usize),
        })
    }
}

/// `GET /functions/{id}/logs`: the calls of a function, newest first.
pub(super) async fn logs(
    State(rest): Rest,
    UrlPath(id): UrlPath<String>,
    Query(filter): Query<LogQuery>,
) -> RestResult {
    json_value(StatusCode::OK, &rest.host.logs(&id, filter).await?)
}
