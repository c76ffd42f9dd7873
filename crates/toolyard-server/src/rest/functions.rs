//! Hosted functions: invoking them, which is the platform's own interface, and everything that their authors do.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{Call, Code, Json, Object, Outcome, Target, ToolError};
use toolyard_functions::host::Deleted;
use toolyard_functions::project::SentProject;
use toolyard_functions::{Bump, FunctionError, Wanted};

use super::audit::{number, time};
use super::{Named, Problem, Rest, json as plain, query, written};
use crate::audit::Deed;
use crate::hosting::{ANSWER, Reached};
use crate::keys::Visitor;

/// The parts of a path that name a function and a version of it.
pub(super) struct Versioned {
    id: String,
    version: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Versioned {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        if let Ok(Path((id, version))) = Path::<(String, String)>::from_request_parts(parts, state).await {
            return Ok(Self { id, version });
        }
        // The draft has a path of its own, with one part that is not said.
        let Named(id) = Named::from_request_parts(parts, state).await?;
        Ok(Self { id, version: "draft".to_owned() })
    }
}

impl Versioned {
    fn wanted(&self) -> Result<Wanted, Problem> {
        Ok(self.version.parse().map_err(FunctionError::BadVersion)?)
    }
}

/// `POST /functions/{id}/{version}/invoke`: has a version answer the event of the body.
pub(super) async fn invoke(
    State(rest): State<Arc<Rest>>,
    versioned: Versioned,
    request: Request,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let (mut parts, body) = request.into_parts();
    let visitor = Visitor::of(&parts.extensions, |access| access.functions)?;
    let (wanted, id) = (versioned.wanted()?, versioned.id);
    let [] = query(&parts, [])?;
    let text = rest.body(&parts, body).await?;
    let body = Object::parse(text)
        .map_err(|error| Problem::bad_request(format!("The body is no object: {error}")))?;
    let event =
        body.get("event").ok_or_else(|| Problem::bad_request("The body has no `event`".to_owned()))?;
    let reached = Reached::default();
    parts.extensions.insert(reached.clone());
    let call = Call {
        target: Target::Function(format!("{id}@{wanted}").into()),
        caller: visitor.caller(),
        origin: Some(Arc::new(parts)),
        ..Call::tool("", event.clone())
    };
    match rest.gateway.invoke(call).await {
        Ok(Outcome::Done(output)) => {
            let answer = output.body.get(ANSWER).cloned().unwrap_or_else(Json::null);
            Ok(plain(StatusCode::OK, answer.bytes()))
        }
        Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(Problem::fault()),
        Err(error) => {
            if !reached.get() {
                let why = format!("{:#}", error.outline());
                rest.host.note_refused(&id, wanted, begun, error.code().row().wire, &why);
            }
            answered(&error).ok_or_else(|| refusal(error))
        }
    }
}

/// What a function that cannot be loaded is answered with: an answer as others.
fn answered(error: &ToolError) -> Option<Response> {
    let answer = error.peer().filter(|_| error.code() == Code::ExecutionFailed && !error.may_have_run())?;
    Some(plain(StatusCode::OK, answer.bytes()))
}

/// The platform says 408 where others say 504.
fn refusal(error: ToolError) -> Problem {
    match error.code() {
        Code::Timeout => Problem::timed_out(error.message()),
        _ => error.into(),
    }
}

/// `GET /functions`: all of them.
pub(super) async fn list(State(rest): State<Arc<Rest>>, request: Request) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.functions || access.admin)?;
    let [] = query(&parts, [])?;
    let functions = rest.host.list().await?;
    Ok(written(StatusCode::OK, &json!({"functions": functions})))
}

/// `GET /functions/{id}`: one of them, and its versions.
pub(super) async fn one(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.functions || access.admin)?;
    let [] = query(&parts, [])?;
    Ok(written(StatusCode::OK, &rest.host.show(&id).await?))
}

/// `GET /functions/{id}/{version}`: all of a version but the values of its environment.
pub(super) async fn version(
    State(rest): State<Arc<Rest>>,
    versioned: Versioned,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.functions || access.admin)?;
    let [] = query(&parts, [])?;
    let details = rest.host.show_version(&versioned.id, versioned.wanted()?).await?;
    Ok(written(StatusCode::OK, &details))
}

/// `PUT /functions/{id}/draft`: keeps what is not published yet.
pub(super) async fn save(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let sent: SentProject = rest.read_up_to(&parts, body, SentProject::MOST_BYTES).await?;
    let project = sent.into_project().map_err(|error| Problem::bad_request(error.to_string()))?;
    let summary = rest.host.save_draft(&id, &project).await?;
    rest.note(&parts, Deed::FunctionSaved, &id);
    Ok(written(StatusCode::OK, &summary))
}

/// Which number is to be next, and of which draft.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wish {
    bump: Bump,
    #[serde(default)]
    digest: Option<String>,
}

/// `POST /functions/{id}/publish`: tests the draft, and publishes it.
pub(super) async fn publish(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let Wish { bump, digest } = rest.read(&parts, body).await?;
    let host = rest.host.clone();
    let wanted = id.clone();
    // Whoever asks for it may not wait for the tests.
    let work = async move { host.publish(&wanted, bump, digest.as_deref()).await };
    let publication = rest.to_its_end(work).await.ok_or_else(Problem::stopping)?;
    match publication {
        Ok(publication) => {
            rest.note(&parts, Deed::FunctionPublished, &format!("{id}@{}", publication.version));
            let said = json!({"id": id, "version": publication.version, "tests": publication.tests});
            Ok(written(StatusCode::CREATED, &said))
        }
        Err(FunctionError::TestsFailed { failed, reports, .. }) => {
            let said = json!({"id": id, "failed": failed, "tests": reports});
            Ok(written(StatusCode::UNPROCESSABLE_ENTITY, &said))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /functions/{id}/{version}/test`: runs the test cases of a version.
pub(super) async fn test(
    State(rest): State<Arc<Rest>>,
    versioned: Versioned,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let edition = rest.host.resolve(&versioned.id, versioned.wanted()?).await?;
    let tests = rest.host.test(&edition).await;
    let failed = tests.iter().filter(|test| !test.passed).count();
    let status = if failed == 0 { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    Ok(written(status, &json!({"id": versioned.id, "failed": failed, "tests": tests})))
}

/// `DELETE /functions/{id}`: with all its versions.
pub(super) async fn delete(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    rest.host.delete(&id, Deleted::Function).await?;
    rest.note(&parts, Deed::FunctionDeleted, &id);
    Ok(written(StatusCode::OK, &json!({"id": id})))
}

/// `DELETE /functions/{id}/{version}`: one version, or the draft. Which one is to be said whole.
pub(super) async fn delete_version(
    State(rest): State<Arc<Rest>>,
    versioned: Versioned,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let [] = query(&parts, [])?;
    let what = match versioned.wanted()? {
        Wanted::Exact(version) => Deleted::Version(version),
        Wanted::Draft => Deleted::Draft,
        _ => {
            return Err(Problem::bad_request("One version is deleted, such as 1.2.0, or `draft`".to_owned()));
        }
    };
    rest.host.delete(&versioned.id, what).await?;
    let Versioned { id, version } = versioned;
    rest.note(&parts, Deed::FunctionDeleted, &format!("{id}@{version}"));
    Ok(written(StatusCode::OK, &json!({"id": id, "version": version})))
}

/// `GET /functions/{id}/logs`: its calls, newest first.
pub(super) async fn logs(
    State(rest): State<Arc<Rest>>,
    Named(id): Named,
    request: Request,
) -> Result<Response, Problem> {
    const MOST: u64 = 1000;
    let (parts, _) = request.into_parts();
    Visitor::of(&parts.extensions, |access| access.admin)?;
    let names = ["version", "outcome", "request", "since", "until", "before", "limit"];
    let [version, outcome, request_id, since, until, before, limit] = query(&parts, names)?;
    let wanted = toolyard_functions::LogQuery {
        version,
        outcome,
        request_id,
        since: since.map(|text| time("since", &text)).transpose()?,
        until: until.map(|text| time("until", &text)).transpose()?,
        before: before.map(|text| number("before", &text, i64::MAX.unsigned_abs())).transpose()?,
        limit: limit.map(|text| number("limit", &text, MOST)).transpose()?.map(|limit| limit as usize),
    };
    Ok(written(StatusCode::OK, &rest.host.logs(&id, wanted).await?))
}
