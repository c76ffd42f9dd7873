//! Calls that need a URL elicitation first, which legacy servers report as an error (2025-11-25, client/elicitation,
//! URL elicitation required). Legacy clients get the error; modern clients do not know it, and get the elicitation.

use toolyard_core::{Call, ErrorCode, Gateway, Json, Object, ToolError};

use super::multi_round_trip::{self, InvokeResult, MAX_ROUNDS};
use crate::wire::{error, method};

/// Runs a call of a modern client, and repeats it after each required URL elicitation.
pub(super) async fn invoke_with_urls(gateway: &Gateway, call: Call) -> InvokeResult {
    for _ in 0..MAX_ROUNDS {
        let result = gateway.invoke(call.clone()).await;
        let Some(needed) = result.as_ref().err().and_then(required_urls) else { return result };
        let answers = multi_round_trip::ask_all(&*call.client, &needed).await?;
        if !answers.iter().all(|(_, answer)| is_consent(answer)) {
            return Err(ToolError::new(ErrorCode::ExecutionFailed, "The user did not open the required URL"));
        }
    }
    Err(multi_round_trip::too_many_rounds())
}

/// Returns the elicitations that an error requires; `None` for any other error.
pub(super) fn required_urls(error: &ToolError) -> Option<Object> {
    let error = error.peer()?.to_object().ok()?;
    let code: i32 = error.get("code")?.as_text().parse().ok()?;
    if code != error::URL_REQUIRED {
        return None;
    }
    let elicitations = error.get("data")?.to_object().ok()?.get("elicitations")?.to_items().ok()?;
    let mut requests = Object::new();
    for (number, params) in elicitations.into_iter().enumerate() {
        let is_url = params.to_object().ok()?.get_str("mode").as_deref() == Some("url");
        let request = Object::new().with("method", Json::string(method::ELICIT)).with("params", params);
        requests.set(&number.to_string(), is_url.then(|| request.to_json())?);
    }
    (!requests.is_empty()).then(|| Object::new().with("inputRequests", requests.to_json()))
}

fn is_consent(answer: &Json) -> bool {
    answer.to_object().is_ok_and(|answer| answer.get_str("action").as_deref() == Some("accept"))
}
