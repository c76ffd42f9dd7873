//! The same call twice is one: `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header).
//!
//! A key belongs to who sends it. What came of its call is kept for a day, with the request that it was for; somebody who
//! sends the key with another request is told so. A call that did certainly not reach its tool is not kept, and may be tried
//! again; one that may have is never made again, whatever came of it. It goes on to its end when its client hangs up: who
//! sends the key again wants to know what came of it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolyard_core::store::{Condition, Put, Space, Store, StoreError, Trouble};

use super::{Problem, json, problem};
use crate::keys::Visitor;
use crate::keys::key::hex;

/// Where it stands what came of calls, by who sent them and their keys.
const DONE: Space = Space("idempotency");

/// How long it is kept what came of a call.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// How much longer than its time a call may take before its gateway counts as gone.
const SLACK: Duration = Duration::from_secs(60);

/// Results that are larger are not kept, in bytes: whoever sends the key again is told that the call was run.
const LARGEST: usize = 1 << 20;

/// The longest key, in bytes.
const LONGEST: usize = 255;

/// What is kept of a call.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Of the tool's name and the request's body.
    fingerprint: String,
    /// `None` while it runs.
    response: Option<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    status: u16,
    /// `None` where it was too large.
    body: Option<String>,
}

/// What a key has come to.
pub(super) enum Begun {
    /// It was sent before: that came of its call.
    Before(Response),
    /// It is new: its call is to be run.
    Now(Once),
}

/// A call that is run once.
pub(super) struct Once {
    store: Arc<dyn Store>,
    name: String,
    fingerprint: String,
    version: u64,
}

/// The key of a request.
///
/// # Errors
/// When it is not one: quotes around it are optional, as clients are of two minds.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(header) = headers.get("idempotency-key") else { return Ok(None) };
    let key = header.to_str().unwrap_or_default().trim_matches('"');
    match (1..=LONGEST).contains(&key.len()) {
        true => Ok(Some(key.to_owned())),
        false => Err(Problem::bad_request(format!(
            "`Idempotency-Key` has between 1 and {LONGEST} printable characters"
        ))),
    }
}

/// Begins a call of a tool, which may take so much time, or finds what came of it.
pub(super) async fn begin(
    store: &Arc<dyn Store>,
    visitor: &Visitor,
    key: &str,
    (tool, body): (&str, &Bytes),
    time: Duration,
) -> Result<Begun, Problem> {
    let owner = visitor.principal();
    let name = hex(&Sha256::digest(format!("{}\0{key}", owner.as_deref().unwrap_or_default())));
    let fingerprint = hex(&Sha256::new().chain_update(tool).chain_update([0]).chain_update(body).finalize());
    let record = Record { fingerprint: fingerprint.clone(), response: None };
    let put = Put { condition: Condition::Absent, ..kept(&record, time + SLACK)? };
    if let Some(version) = store.put(DONE, &name, put).await? {
        return Ok(Begun::Now(Once { store: store.clone(), name, fingerprint, version }));
    }
    let Some(value) = store.get(DONE, &name).await? else { return Err(runs()) };
    let unreadable = |error| StoreError::new(Trouble::Unreadable, error);
    let before: Record = serde_json::from_slice(&value.bytes).map_err(unreadable)?;
    if before.fingerprint != fingerprint {
        let detail = "This `Idempotency-Key` was sent before, with another request";
        return Err(Problem::unprocessable("idempotency_key_reused", detail));
    }
    match before.response {
        None => Err(runs()),
        Some(Kept { body: None, .. }) => {
            let detail = "The call was run, and its result was too large to be kept";
            Err(Problem::conflict("idempotent_result_gone", false, detail))
        }
        Some(Kept { status, body: Some(body) }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let is_result = status.is_success();
            Ok(Begun::Before(if is_result { json(status, body) } else { problem::response(status, body) }))
        }
    }
}

fn runs() -> Problem {
    Problem::conflict("idempotent_call_runs", true, "The call of this `Idempotency-Key` has not ended")
}

fn kept(record: &Record, time: Duration) -> Result<Put, Problem> {
    let bytes = serde_json::to_vec(record).map_err(|_| Problem::fault())?;
    Ok(Put { expires: Some(SystemTime::now() + time), ..Put::always(bytes) })
}

impl Once {
    /// Keeps what came of the call.
    pub(super) async fn finish(self, came: Result<Response, Problem>) -> Result<Response, Problem> {
        let response = match came {
            Ok(response) => response,
            Err(problem) if problem.may_have_run => problem.into(),
            // It may be sent again with the same key.
            Err(problem) => {
                if let Err(error) = self.store.delete(DONE, &self.name).await {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a call that was not run stays noted"
                    );
                }
                return Err(problem);
            }
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|_| Problem::fault())?.to_bytes();
        let text = (body.len() <= LARGEST).then(|| String::from_utf8(body.to_vec()).ok()).flatten();
        let response = Some(Kept { status: parts.status.as_u16(), body: text });
        let record = Record { fingerprint: self.fingerprint, response };
        let put = Put { condition: Condition::Version(self.version), ..kept(&record, KEPT)? };
        if let Err(error) = self.store.put(DONE, &self.name, put).await {
            // The call was run: to say now that it failed would have it run again.
            tracing::error!(error = &error as &dyn std::error::Error, "what came of a call is not kept");
        }
        Ok(Response::from_parts(parts, body.into()))
    }
}
