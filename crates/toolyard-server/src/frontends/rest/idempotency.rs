//! Idempotent calls: `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
//!
//! A key belongs to its caller. The result of its call is stored for a day together with a fingerprint of the request;
//! the same key with another request is refused. A call that certainly did not reach its tool is not stored and may be
//! retried; one that may have reached it is never repeated, whatever its result. The call continues when its client
//! disconnects, because a client that repeats the key wants the result.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolyard_core::store::{KeySpace, PutRequest, Store, StoreError, StoreErrorKind, WriteCondition};

use super::{ProblemDetails, json, problem};
use crate::keys::AuthenticatedCaller;
use crate::keys::key::hex;

/// Space of the results, by caller and key.
const SPACE: KeySpace = KeySpace("idempotency");

/// Retention of a result.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Time after a call's timeout at which its gateway counts as gone.
const GRACE_PERIOD: Duration = Duration::from_secs(60);

/// Maximum bytes of a stored result. A client that repeats the key of a larger one learns only that the call has run.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Maximum bytes of a key.
const MAX_KEY_BYTES: usize = 255;

/// The stored state of a call.
#[derive(Debug, Serialize, Deserialize)]
struct IdempotencyRecord {
    /// Digest of the tool's name and the request's body.
    fingerprint: String,
    /// `None` while the call runs.
    response: Option<StoredResponse>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredResponse {
    status: u16,
    /// `None` if the body was too large to store.
    body: Option<String>,
}

/// The state of a key.
pub(super) enum IdempotentStart {
    /// The key is known: the stored response.
    Before(Response),
    /// The key is new: the call to run.
    Now(IdempotentCall),
}

/// A call to run once.
pub(super) struct IdempotentCall {
    store: Arc<dyn Store>,
    name: String,
    fingerprint: String,
    version: u64,
}

/// Returns the key of a request.
///
/// # Errors
/// If the key is invalid. Quotes around it are optional, because clients differ.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, ProblemDetails> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    let key = header.to_str().unwrap_or_default().trim_matches('"');
    match (1..=MAX_KEY_BYTES).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(ProblemDetails::bad_request(format!(
            "`Idempotency-Key` needs between 1 and {MAX_KEY_BYTES} printable characters"
        ))),
    }
}

/// Starts a call of a tool with the timeout `time`, or returns the stored response.
pub(super) async fn begin(
    store: &Arc<dyn Store>,
    caller: &AuthenticatedCaller,
    key: &str,
    (tool, body): (&str, &Bytes),
    time: Duration,
) -> Result<IdempotentStart, ProblemDetails> {
    let owner = caller.principal();
    let name = hex(&Sha256::digest(format!("{}\0{key}", owner.as_deref().unwrap_or_default())));
    let fingerprint = hex(&Sha256::new().chain_update(tool).chain_update([0]).chain_update(body).finalize());
    let record = IdempotencyRecord { fingerprint: fingerprint.clone(), response: None };
    let put = PutRequest { condition: WriteCondition::Absent, ..put_record(&record, time + GRACE_PERIOD)? };
    if let Some(version) = store.put(SPACE, &name, put).await? {
        return Ok(IdempotentStart::Now(IdempotentCall { store: store.clone(), name, fingerprint, version }));
    }
    let Some(value) = store.get(SPACE, &name).await? else { return Err(still_running()) };
    let unreadable = |error| StoreError::new(StoreErrorKind::Unreadable, error);
    let stored: IdempotencyRecord = serde_json::from_slice(&value.bytes).map_err(unreadable)?;
    if stored.fingerprint != fingerprint {
        let detail = "this `Idempotency-Key` was used with another request";
        return Err(ProblemDetails::unprocessable("idempotency_key_reused", detail));
    }
    match stored.response {
        None => Err(still_running()),
        Some(StoredResponse { body: None, .. }) => {
            let detail = "the call has run, but its result was too large to store";
            Err(ProblemDetails::conflict("idempotent_result_gone", false, detail))
        }
        Some(StoredResponse { status, body: Some(body) }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let is_result = status.is_success();
            Ok(IdempotentStart::Before(if is_result {
                json(status, body)
            } else {
                problem::response(status, body)
            }))
        }
    }
}

fn still_running() -> ProblemDetails {
    ProblemDetails::conflict(
        "idempotent_call_runs",
        true,
        "the call with this `Idempotency-Key` is still running",
    )
}

fn put_record(record: &IdempotencyRecord, time: Duration) -> Result<PutRequest, ProblemDetails> {
    let bytes = serde_json::to_vec(record).map_err(|_| ProblemDetails::fault())?;
    Ok(PutRequest { expires: Some(SystemTime::now() + time), ..PutRequest::always(bytes) })
}

impl IdempotentCall {
    /// Stores the result of the call.
    pub(super) async fn finish(
        self,
        result: Result<Response, ProblemDetails>,
    ) -> Result<Response, ProblemDetails> {
        let response = match result {
            Ok(response) => response,
            Err(problem) if problem.may_have_run => problem.into(),
            // The key may be used again.
            Err(problem) => {
                if let Err(error) = self.store.delete(SPACE, &self.name).await {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "cannot delete the record of a call that was not run"
                    );
                }
                return Err(problem.with_overload_as_503());
            }
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| ProblemDetails::fault())?.to_bytes();
        let text =
            (body.len() <= MAX_RESPONSE_BYTES).then(|| String::from_utf8(body.to_vec()).ok()).flatten();
        let response = Some(StoredResponse { status: parts.status.as_u16(), body: text });
        let record = IdempotencyRecord { fingerprint: self.fingerprint, response };
        let put = PutRequest {
            condition: WriteCondition::Version(self.version),
            ..put_record(&record, RETENTION)?
        };
        if let Err(error) = self.store.put(SPACE, &self.name, put).await {
            // The call has run: an error response would make the client repeat it.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot store the result of an idempotent call"
            );
        }
        Ok(Response::from_parts(parts, body.into()))
    }
}
