//! `/functions`: hosted functions, for their callers and authors.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{Call, CallTarget, ErrorCode, Json, Object, Outcome, ToolError};
use toolyard_functions::host::DeletionTarget;
use toolyard_functions::project::ProjectUpload;
use toolyard_functions::{FunctionError, VersionBump, VersionSelector};

use super::audit::{number, time};
use super::{NamedPath, ProblemDetails, RestState, json as plain, json_value, query};
use crate::audit::AuditAction;
use crate::hosting::{ANSWER, ReachedFunction};
use crate::keys::{AuthenticatedCaller, KeyAccess};

/// The function and the version in a path.
pub(super) struct FunctionVersionPath {
    id: String,
    version: String,
}

impl<S: Send + Sync> FromRequestParts<S> for FunctionVersionPath {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        if let Ok(Path((id, version))) = Path::<(String, String)>::from_request_parts(parts, state).await {
            return Ok(Self { id, version });
        }
        // The path of the draft has no version part.
        let NamedPath(id) = NamedPath::from_request_parts(parts, state).await?;
        Ok(Self { id, version: "draft".to_owned() })
    }
}

impl FunctionVersionPath {
    fn selector(&self) -> Result<VersionSelector, ProblemDetails> {
        Ok(self.version.parse().map_err(FunctionError::InvalidVersion)?)
    }
}

/// `POST /functions/{id}/{version}/invoke`: invokes a version with the event of the body.
pub(super) async fn invoke(
    State(rest): State<Arc<RestState>>,
    versioned: FunctionVersionPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let start = Instant::now();
    let (mut parts, body) = request.into_parts();
    let caller =
        AuthenticatedCaller::authorize(&parts.extensions, |access| access.functions || access.admin)?;
    let (selector, event) = match read_invocation(&rest, &versioned, &parts, body).await {
        Ok(invocation) => invocation,
        Err(problem) => return Err(first_problem(&rest, &caller, &versioned, problem).await),
    };
    let id = versioned.id;
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
            Ok(plain(StatusCode::OK, answer.bytes()))
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
    rest: &RestState,
    versioned: &FunctionVersionPath,
    parts: &Parts,
    body: Body,
) -> Result<(VersionSelector, Json), ProblemDetails> {
    let selector = versioned.selector()?;
    let [] = query(parts, [])?;
    let text = rest.body(parts, body).await?;
    let body = Object::parse(text)
        .map_err(|error| ProblemDetails::bad_request(format!("the body is not a JSON object: {error}")))?;
    let event =
        body.get("event").ok_or_else(|| ProblemDetails::bad_request("the body lacks `event`".to_owned()))?;
    Ok((selector, event.clone()))
}

/// Returns the problem of an invalid request. Problems of the key's balance, the function and the version take
/// precedence, in this order.
async fn first_problem(
    rest: &RestState,
    caller: &AuthenticatedCaller,
    versioned: &FunctionVersionPath,
    fault: ProblemDetails,
) -> ProblemDetails {
    if let Err(problem) = check_balance(caller).await {
        return problem;
    }
    let outcome = match versioned.selector() {
        Ok(selector) => rest.host.show_version(&versioned.id, selector).await.map(drop),
        Err(_) => rest.host.show(&versioned.id).await.map(drop),
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
    Some(plain(StatusCode::OK, answer.bytes()))
}

/// Converts an error. A timeout is 408 as on the CortexOne platform, and not 504.
fn refusal(error: ToolError) -> ProblemDetails {
    match error.code() {
        ErrorCode::Timeout => ProblemDetails::timed_out(error.message()),
        _ => error.into(),
    }
}

/// `GET /functions`: all functions of the caller.
pub(super) async fn list(
    State(rest): State<Arc<RestState>>,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    let may_look = |access: &KeyAccess| access.functions || access.admin || access.publish;
    let caller = AuthenticatedCaller::authorize(&parts.extensions, may_look)?;
    let [] = query(&parts, [])?;
    let mut functions = rest.host.list().await?;
    functions.retain(|function| caller.can_see_function(&function.id));
    Ok(json_value(StatusCode::OK, &json!({"functions": functions})))
}

/// `GET /functions/{id}`: a function and its versions.
pub(super) async fn get_function(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_reader(&parts.extensions, &id)?;
    let [] = query(&parts, [])?;
    Ok(json_value(StatusCode::OK, &rest.host.show(&id).await?))
}

/// `GET /functions/{id}/{version}`: a version without the values of its environment.
pub(super) async fn version(
    State(rest): State<Arc<RestState>>,
    versioned: FunctionVersionPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_reader(&parts.extensions, &versioned.id)?;
    let [] = query(&parts, [])?;
    let details = rest.host.show_version(&versioned.id, versioned.selector()?).await?;
    Ok(json_value(StatusCode::OK, &details))
}

/// `PUT /functions/{id}/draft`: saves the draft.
pub(super) async fn save(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &id)?;
    let [] = query(&parts, [])?;
    let sent: ProjectUpload = rest.read_up_to(&parts, body, ProjectUpload::MAX_UPLOAD_BYTES).await?;
    let project = sent.into_project().map_err(|error| ProblemDetails::bad_request(error.to_string()))?;
    let summary = rest.host.save_draft(&id, &project).await?;
    rest.record_action(&parts, AuditAction::FunctionSaved, &id);
    Ok(json_value(StatusCode::OK, &summary))
}

/// The part of the version number to increase, and the draft to publish.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublishRequest {
    bump: VersionBump,
    #[serde(default)]
    digest: Option<String>,
}

/// `POST /functions/{id}/publish`: tests the draft and publishes it.
pub(super) async fn publish(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, body) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &id)?;
    let [] = query(&parts, [])?;
    let PublishRequest { bump, digest } = rest.read(&parts, body).await?;
    let host = rest.host.clone();
    let function_id = id.clone();
    // The client may disconnect during the tests.
    let work = async move { host.publish(&function_id, bump, digest.as_deref()).await };
    let publication = rest.run_detached(work).await.ok_or_else(ProblemDetails::stopping)?;
    match publication {
        Ok(publication) => {
            rest.record_action(
                &parts,
                AuditAction::FunctionPublished,
                &format!("{id}@{}", publication.version),
            );
            let response = json!({"id": id, "version": publication.version, "tests": publication.tests});
            Ok(json_value(StatusCode::CREATED, &response))
        }
        Err(FunctionError::TestsFailed { failed, reports, .. }) => {
            let response = json!({"id": id, "failed": failed, "tests": reports});
            Ok(json_value(StatusCode::UNPROCESSABLE_ENTITY, &response))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /functions/{id}/{version}/test`: runs the test cases of a version.
pub(super) async fn test(
    State(rest): State<Arc<RestState>>,
    versioned: FunctionVersionPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &versioned.id)?;
    let [] = query(&parts, [])?;
    let edition = rest.host.resolve(&versioned.id, versioned.selector()?).await?;
    let tests = rest.host.test_reports(&edition).await;
    let failed = tests.iter().filter(|test| !test.passed).count();
    let status = if failed == 0 { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(json_value(status, &json!({"id": versioned.id, "failed": failed, "tests": tests})))
}

/// `DELETE /functions/{id}`: deletes a function with all its versions.
pub(super) async fn delete(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &id)?;
    let [] = query(&parts, [])?;
    rest.host.delete(&id, DeletionTarget::Function).await?;
    rest.record_action(&parts, AuditAction::FunctionDeleted, &id);
    Ok(json_value(StatusCode::OK, &json!({"id": id})))
}

/// `DELETE /functions/{id}/{version}`: deletes one version, named in full, or the draft.
pub(super) async fn delete_version(
    State(rest): State<Arc<RestState>>,
    versioned: FunctionVersionPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &versioned.id)?;
    let [] = query(&parts, [])?;
    let what = match versioned.selector()? {
        VersionSelector::Exact(version) => DeletionTarget::Version(version),
        VersionSelector::Draft => DeletionTarget::Draft,
        _ => {
            return Err(ProblemDetails::bad_request(
                "cannot delete several versions: name one version, such as 1.2.0, or `draft`".to_owned(),
            ));
        }
    };
    rest.host.delete(&versioned.id, what).await?;
    let FunctionVersionPath { id, version } = versioned;
    rest.record_action(&parts, AuditAction::FunctionDeleted, &format!("{id}@{version}"));
    Ok(json_value(StatusCode::OK, &json!({"id": id, "version": version})))
}

/// `GET /functions/{id}/logs`: the calls of a function, newest first.
pub(super) async fn logs(
    State(rest): State<Arc<RestState>>,
    NamedPath(id): NamedPath,
    request: Request,
) -> Result<Response, ProblemDetails> {
    const MOST: u64 = 1000;
    let (parts, _) = request.into_parts();
    AuthenticatedCaller::authorize_publisher(&parts.extensions, &id)?;
    let names = ["version", "outcome", "request", "since", "until", "before", "limit"];
    let [version, outcome, request_id, since, until, before, limit] = query(&parts, names)?;
    let log_query = toolyard_functions::LogQuery {
        version,
        outcome,
        request_id,
        since: since.map(|text| time("since", &text)).transpose()?,
        until: until.map(|text| time("until", &text)).transpose()?,
        before: before.map(|text| number("before", &text, i64::MAX.unsigned_abs())).transpose()?,
        limit: limit.map(|text| number("limit", &text, MOST)).transpose()?.map(|limit| limit as usize),
    };
    Ok(json_value(StatusCode::OK, &rest.host.logs(&id, log_query).await?))
}
