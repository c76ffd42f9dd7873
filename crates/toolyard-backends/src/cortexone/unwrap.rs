//! From a response of the platform to what the function returned. A pure function.
//!
//! The documents of the platform and programs that use it disagree about the form: what was returned is the whole, or
//! in `result`, in `body`, or both, and may be the text of JSON at each of these steps. So they are all looked through.

use bytes::Bytes;
use toolyard_core::{Code, Json, Object, ToolError};

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A message of JSON-RPC: it is an MCP server.
    Message,
    /// An object with `statusCode` and `body`.
    Response,
}

/// How many wrappings there may be.
const DEEPEST: usize = 8;

/// How much of what has no known form is kept for the log, in bytes.
const KEPT: usize = 512;

impl Returns {
    /// What was returned, out of the body of a response.
    ///
    /// # Errors
    /// [`Code::ExecutionFailed`] where it is not what such a function returns.
    pub fn read(self, body: Bytes) -> Result<Json, ToolError> {
        let whole = Json::parse(body).map_err(|error| malformed().caused_by(error))?;
        let mut value = whole;
        for _ in 0..DEEPEST {
            value = match self.open(&value) {
                Step::Found(found) => return Ok(found),
                Step::Inside(inside) => inside,
                Step::Nothing => return Err(malformed().caused_by(beginning(&value))),
                Step::Failed => return Err(failed(&value)),
            };
        }
        Err(malformed().caused_by("it is wrapped too often"))
    }

    fn open(self, value: &Json) -> Step {
        if let Some(text) = value.to_str() {
            return Json::parse(text.into_owned()).map_or(Step::Nothing, Step::Inside);
        }
        let Ok(object) = value.to_object() else { return Step::Nothing };
        if object.get("jsonrpc").is_some() && self == Self::Message {
            return Step::Found(value.clone());
        }
        if let Some(details) = failure(&object) {
            return match self {
                Self::Message => Step::Failed,
                Self::Response => Step::Found(details),
            };
        }
        let is_response = object.get("statusCode").is_some();
        match (self, object.get("result"), object.get("body")) {
            (Self::Response, ..) if is_response => Step::Found(value.clone()),
            (Self::Message, None, Some(body))
                if is_response && !is_success(&object) && !has_message(body) =>
            {
                Step::Failed
            }
            (_, Some(inside), _) | (_, None, Some(inside)) => Step::Inside(inside.clone()),
            (_, None, None) => Step::Nothing,
        }
    }
}

/// What is seen of a value.
enum Step {
    Found(Json),
    Inside(Json),
    Nothing,
    /// The function, or the platform, says that it failed.
    Failed,
}

/// What the platform says of a run that failed, as the response that a function would have given: `success` is false, and
/// the reason is in `result.details`.
fn failure(object: &Object) -> Option<Json> {
    object.get("success").filter(|success| success.to_bool() == Some(false))?;
    let result = object.get("result").and_then(|result| result.to_object().ok()).unwrap_or_default();
    // The function itself has said more.
    if [object, &result].iter().any(|said| said.get("statusCode").is_some()) {
        return None;
    }
    let details = result.get("details").or(object.get("error")).cloned().unwrap_or_else(Json::null);
    let response = Object::new().with("statusCode", Json::unsigned(500)).with("body", details);
    Some(response.to_json())
}

fn is_success(response: &Object) -> bool {
    let status = response.get("statusCode").and_then(|status| status.to_value().as_f64());
    status.is_some_and(|status| (200.0..300.0).contains(&status))
}

/// Whether there is a message, in JSON or as the text of it.
fn has_message(body: &Json) -> bool {
    let parsed = body.to_str().and_then(|text| Json::parse(text.into_owned()).ok());
    let object = parsed.as_ref().unwrap_or(body).to_object();
    object.is_ok_and(|object| object.get("jsonrpc").is_some())
}

fn malformed() -> ToolError {
    ToolError::new(Code::ExecutionFailed, "What the function returned has no known form")
}

fn failed(value: &Json) -> ToolError {
    ToolError::new(Code::ExecutionFailed, "The function broke down").caused_by(beginning(value))
}

fn beginning(value: &Json) -> String {
    value.as_text().chars().take(KEPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"body":"not this"}}"#;

    #[track_caller]
    fn check(returns: Returns, body: &str, expect: Result<&str, &str>) {
        let read = returns.read(body.to_owned().into());
        let read = read.as_ref().map(Json::as_text).map_err(ToolError::message);
        assert_eq!(read, expect, "{body}");
    }

    fn quoted(text: &str) -> String {
        Json::string(text).as_text().to_owned()
    }

    #[test]
    fn a_message_in_every_wrapping() {
        let text = quoted(MESSAGE);
        let twice = quoted(&text);
        let bodies = [
            MESSAGE.to_owned(),
            text.clone(),
            twice.clone(),
            format!(r#"{{"result":{MESSAGE}}}"#),
            format!(r#"{{"result":{text}}}"#),
            format!(r#"{{"body":{MESSAGE}}}"#),
            format!(r#"{{"statusCode":200,"body":{text}}}"#),
            format!(r#"{{"statusCode":200,"body":{twice}}}"#),
            format!(r#"{{"success":true,"result":{{"statusCode":200,"body":{text}}}}}"#),
            format!(r#"{{"success":true,"result":{{"statusCode":200,"body":{MESSAGE}}}}}"#),
            format!(r#"{{"success":true,"result":{}}}"#, quoted(&format!(r#"{{"body":{text}}}"#))),
            // Whatever the status is: the message says what there is to say.
            format!(r#"{{"statusCode":400,"body":{text}}}"#),
        ];
        for body in bodies {
            check(Returns::Message, &body, Ok(MESSAGE));
        }
    }

    #[test]
    fn a_response_in_every_wrapping() {
        let response = r#"{"statusCode":200,"body":"{\"jsonrpc\":1}"}"#;
        let bodies = [
            response.to_owned(),
            quoted(response),
            format!(r#"{{"result":{response}}}"#),
            format!(r#"{{"success":true,"result":{response}}}"#),
            format!(r#"{{"success":false,"result":{response}}}"#),
            format!(r#"{{"success":true,"result":{}}}"#, quoted(response)),
        ];
        for body in bodies {
            check(Returns::Response, &body, Ok(response));
        }
        let own = r#"{"statusCode":200,"success":false,"body":{}}"#;
        check(Returns::Response, own, Ok(own));
        let failed = r#"{"success":false,"result":{"details":"no such module"}}"#;
        check(Returns::Response, failed, Ok(r#"{"statusCode":500,"body":"no such module"}"#));
        check(Returns::Response, r#"{"success":false}"#, Ok(r#"{"statusCode":500,"body":null}"#));
    }

    #[test]
    fn functions_that_broke_down() {
        let bodies = [
            r#"{"statusCode":500,"body":"{\"error\":\"Runtime error: boom\"}"}"#,
            r#"{"statusCode":500,"body":{"error":"Script execution failed","type":"TypeError","details":"x"}}"#,
            r#"{"success":true,"result":{"statusCode":500,"body":"boom"}}"#,
            r#"{"success":false,"result":{"details":"boom"}}"#,
            r#"{"success":false,"error":"boom"}"#,
        ];
        for body in bodies {
            check(Returns::Message, body, Err("The function broke down"));
        }
    }

    #[test]
    fn what_has_no_known_form() {
        let unknown = Err("What the function returned has no known form");
        let deep = format!("{}null{}", r#"{"body":"#.repeat(9), "}".repeat(9));
        for body in ["", "{", "null", "7", "[]", "{}", "\"text\"", r#"{"result":null}"#, r#"{"a":{}}"#, &deep]
        {
            check(Returns::Message, body, unknown);
            check(Returns::Response, body, unknown);
        }
        check(Returns::Message, r#"{"statusCode":200,"body":"fine"}"#, unknown);
        check(Returns::Response, MESSAGE, unknown);
    }
}
