//! Extracts a function's return value from a response of the platform. A pure function.
//!
//! The platform's documentation and its clients disagree about the format: the return value is the whole body, or
//! in `result`, in `body`, or in both, and each level may be a string of JSON. All of these are unwrapped.

use bytes::Bytes;
use toolyard_core::{ErrorCode, Json, Object, ToolError};

/// Format of a function's return value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnFormat {
    /// A JSON-RPC message: the function is an MCP server.
    JsonRpcMessage,
    /// An object with `statusCode` and `body`.
    HttpResponse,
}

/// Maximum number of nested wrappers.
const MAX_WRAPPINGS: usize = 8;

/// Maximum length of an unknown value in the log, in characters.
const MAX_EXCERPT_CHARS: usize = 512;

impl ReturnFormat {
    /// Parses the body of a response and returns the function's return value.
    ///
    /// # Errors
    /// [`ErrorCode::ExecutionFailed`] if the body has no value of this format, or the function failed.
    pub fn parse(self, body: Bytes) -> Result<Json, ToolError> {
        let whole = Json::parse(body).map_err(|error| unknown_format().caused_by(error))?;
        let mut value = whole;
        for _ in 0..MAX_WRAPPINGS {
            value = match self.unwrap_once(&value) {
                UnwrapStep::ReturnValue(value) => return Ok(value),
                UnwrapStep::InnerValue(inside) => inside,
                UnwrapStep::UnknownFormat => return Err(unknown_format().caused_by(excerpt(&value))),
                UnwrapStep::FunctionFailed => return Err(function_failed(&value)),
            };
        }
        Err(unknown_format().caused_by("the return value is nested too deeply"))
    }

    fn unwrap_once(self, value: &Json) -> UnwrapStep {
        if let Some(text) = value.to_str() {
            return Json::parse(text.into_owned()).map_or(UnwrapStep::UnknownFormat, UnwrapStep::InnerValue);
        }
        let Ok(object) = value.to_object() else { return UnwrapStep::UnknownFormat };
        if object.get("jsonrpc").is_some() && self == Self::JsonRpcMessage {
            return UnwrapStep::ReturnValue(value.clone());
        }
        if let Some(details) = failure_response(&object) {
            return match self {
                Self::JsonRpcMessage => UnwrapStep::FunctionFailed,
                Self::HttpResponse => UnwrapStep::ReturnValue(details),
            };
        }
        let is_response = object.get("statusCode").is_some();
        match (self, object.get("result"), object.get("body")) {
            (Self::HttpResponse, ..) if is_response => UnwrapStep::ReturnValue(value.clone()),
            (Self::JsonRpcMessage, None, Some(body))
                if is_response && !is_success(&object) && !has_message(body) =>
            {
                UnwrapStep::FunctionFailed
            }
            (_, Some(inside), _) | (_, None, Some(inside)) => UnwrapStep::InnerValue(inside.clone()),
            (_, None, None) => UnwrapStep::UnknownFormat,
        }
    }
}

/// The result of one unwrapping.
enum UnwrapStep {
    ReturnValue(Json),
    InnerValue(Json),
    UnknownFormat,
    /// The function or the platform reports a failure.
    FunctionFailed,
}

/// Converts a failed run into an HTTP-like response: `success` is false, and `result.details` has the reason.
fn failure_response(object: &Object) -> Option<Json> {
    object.get("success").filter(|success| success.to_bool() == Some(false))?;
    let result = object.get("result").and_then(|result| result.to_object().ok()).unwrap_or_default();
    // The function's own response has more details.
    if [object, &result].iter().any(|object| object.get("statusCode").is_some()) {
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

/// True if the body is a JSON-RPC message, or a string of one.
fn has_message(body: &Json) -> bool {
    let parsed = body.to_str().and_then(|text| Json::parse(text.into_owned()).ok());
    let object = parsed.as_ref().unwrap_or(body).to_object();
    object.is_ok_and(|object| object.get("jsonrpc").is_some())
}

fn unknown_format() -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The function returned a value of unknown format")
}

fn function_failed(value: &Json) -> ToolError {
    ToolError::new(ErrorCode::ExecutionFailed, "The function failed").caused_by(excerpt(value))
}

fn excerpt(value: &Json) -> String {
    value.as_text().chars().take(MAX_EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"body":"not this"}}"#;

    #[track_caller]
    fn check(returns: ReturnFormat, body: &str, expect: Result<&str, &str>) {
        let read = returns.parse(body.to_owned().into());
        let read = read.as_ref().map(Json::as_text).map_err(ToolError::message);
        assert_eq!(read, expect, "{body}");
    }

    fn quoted(text: &str) -> String {
        Json::string(text).as_text().to_owned()
    }

    #[test]
    fn message_is_found_in_every_wrapper() {
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
            // The message is returned whatever the status.
            format!(r#"{{"statusCode":400,"body":{text}}}"#),
        ];
        for body in bodies {
            check(ReturnFormat::JsonRpcMessage, &body, Ok(MESSAGE));
        }
    }

    #[test]
    fn response_is_found_in_every_wrapper() {
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
            check(ReturnFormat::HttpResponse, &body, Ok(response));
        }
        let own = r#"{"statusCode":200,"success":false,"body":{}}"#;
        check(ReturnFormat::HttpResponse, own, Ok(own));
        let failed = r#"{"success":false,"result":{"details":"no such module"}}"#;
        check(ReturnFormat::HttpResponse, failed, Ok(r#"{"statusCode":500,"body":"no such module"}"#));
        check(ReturnFormat::HttpResponse, r#"{"success":false}"#, Ok(r#"{"statusCode":500,"body":null}"#));
    }

    #[test]
    fn failed_functions_are_errors() {
        let bodies = [
            r#"{"statusCode":500,"body":"{\"error\":\"Runtime error: boom\"}"}"#,
            r#"{"statusCode":500,"body":{"error":"Script execution failed","type":"TypeError","details":"x"}}"#,
            r#"{"success":true,"result":{"statusCode":500,"body":"boom"}}"#,
            r#"{"success":false,"result":{"details":"boom"}}"#,
            r#"{"success":false,"error":"boom"}"#,
        ];
        for body in bodies {
            check(ReturnFormat::JsonRpcMessage, body, Err("The function failed"));
        }
    }

    #[test]
    fn unknown_formats_are_refused() {
        let unknown = Err("The function returned a value of unknown format");
        let deep = format!("{}null{}", r#"{"body":"#.repeat(9), "}".repeat(9));
        for body in ["", "{", "null", "7", "[]", "{}", "\"text\"", r#"{"result":null}"#, r#"{"a":{}}"#, &deep]
        {
            check(ReturnFormat::JsonRpcMessage, body, unknown);
            check(ReturnFormat::HttpResponse, body, unknown);
        }
        check(ReturnFormat::JsonRpcMessage, r#"{"statusCode":200,"body":"fine"}"#, unknown);
        check(ReturnFormat::HttpResponse, MESSAGE, unknown);
    }
}
