//! Calls that an old server makes only once its user has been to a URL (2025-11-25, client/elicitation, URL elicitation
//! required). A legacy client is told so as it came; modern ones know no such error, and are asked.

use toolyard_core::{Call, Code, Gateway, Json, Object, ToolError};

use super::rounds::{self, Came, MOST_ROUNDS};
use crate::wire::{error, method};

/// Runs a call of a modern client that can be asked; where its user has to go somewhere first, that is asked, and it is
/// run again.
pub(super) async fn invoke(gateway: &Gateway, call: Call) -> Came {
    for _ in 0..MOST_ROUNDS {
        let came = gateway.invoke(call.clone()).await;
        let Some(needed) = came.as_ref().err().and_then(needed) else { return came };
        let answers = rounds::ask(&*call.client, &needed).await?;
        if !answers.iter().all(|(_, answer)| is_consent(answer)) {
            return Err(ToolError::new(
                Code::ExecutionFailed,
                "The user did not open the URL that this needs",
            ));
        }
    }
    Err(rounds::never_enough())
}

/// What has to be asked before such a call can be made; `None` for any other error.
pub(super) fn needed(error: &ToolError) -> Option<Object> {
    let error = error.peer()?.to_object().ok()?;
    let code: i32 = error.get("code")?.as_text().parse().ok()?;
    if code != error::URL_REQUIRED {
        return None;
    }
    let wanted = error.get("data")?.to_object().ok()?.get("elicitations")?.to_items().ok()?;
    let mut requests = Object::new();
    for (number, params) in wanted.into_iter().enumerate() {
        let is_url = params.to_object().ok()?.get_str("mode").as_deref() == Some("url");
        let request = Object::new().with("method", Json::string(method::ELICIT)).with("params", params);
        requests.set(&number.to_string(), is_url.then(|| request.to_json())?);
    }
    (!requests.is_empty()).then(|| Object::new().with("inputRequests", requests.to_json()))
}

fn is_consent(answer: &Json) -> bool {
    answer.to_object().is_ok_and(|answer| answer.get_str("action").as_deref() == Some("accept"))
}
