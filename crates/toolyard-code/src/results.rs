//! Results and errors of calls as scripts see them.

use serde_json::json;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{CallOutput, Json, RegistryEntry, ToolError};

/// Code of the exception for a tool that ran and failed.
pub const TOOL_ERROR: &str = "tool_error";

/// Code of the exception for a limit of the script.
pub const LIMIT_REACHED: &str = "limit_reached";

/// The member by which FastMCP's servers tell that the result is the member `result`.
const FASTMCP_WRAPS: &str = "x-fastmcp-wrap-result";

/// The member that has a wrapped result.
const RESULT: &str = "result";

/// Maximum length of the message of an exception, in characters.
const MAX_MESSAGE_CHARS: usize = 4_000;

/// Maximum number of digits that a number of JavaScript keeps in any case.
const EXACT_DIGITS: usize = 15;

/// Returns the value of a result: the structured content, otherwise the JSON in its only text, otherwise the text, and
/// otherwise the content blocks.
#[must_use]
pub fn value(output: &CallOutput, entry: Option<&RegistryEntry>) -> Json {
    if let Some(structured) = output.body.get(STRUCTURED) {
        let is_wrapped = entry.is_some_and(is_wrapped);
        let result = structured.to_object().ok().filter(|_| is_wrapped);
        return result.and_then(|object| object.get(RESULT).cloned()).unwrap_or_else(|| structured.clone());
    }
    let Some(content) = output.body.get("content") else { return Json::null() };
    match content.to_items().unwrap_or_default().as_slice() {
        [] => Json::null(),
        [block] => match text(block) {
            Some(text) => parsed(&text).unwrap_or_else(|| Json::string(&text)),
            None => content.clone(),
        },
        _ => content.clone(),
    }
}

/// Returns true if the structured results of a tool are in the member `result`, as FastMCP's servers declare it.
#[must_use]
pub fn is_wrapped(entry: &RegistryEntry) -> bool {
    let schema =
        entry.tool.as_ref().and_then(|tool| tool.output_schema()).and_then(|schema| schema.to_object().ok());
    schema.is_some_and(|schema| schema.get(FASTMCP_WRAPS).and_then(Json::to_bool) == Some(true))
}

fn text(block: &Json) -> Option<String> {
    let block = block.to_object().ok()?;
    (block.get_str("type").as_deref() == Some("text"))
        .then(|| block.get_str("text").map(String::from))
        .flatten()
}

/// Returns the JSON that a text is. Numbers that a script could change, such as long ids, stay texts.
fn parsed(text: &str) -> Option<Json> {
    let json = Json::parse(text.to_owned()).ok()?;
    let is_exact = |number: &str| number.len() <= EXACT_DIGITS && !number.contains(['e', 'E']);
    (!json.is_number() || is_exact(json.as_text())).then_some(json)
}

/// Returns the exception for a call that did not end with a result.
#[must_use]
pub fn call_error(tool: &str, error: &ToolError) -> Json {
    let row = error.code().row();
    let (message, reason) = (error.message(), error.reason());
    let message = match message.contains(reason) {
        true => format!("{tool}: {message} ({})", row.wire),
        false => format!("{tool}: {message}: {reason} ({})", row.wire),
    };
    let mut exception = exception(tool, row.wire, reason, &message);
    exception["retryable"] = row.retryable.into();
    if let Some(wait) = error.wait() {
        exception["retry_after_ms"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
    }
    Json::from_value(&exception)
}

/// Returns the exception for a tool that ran and failed.
#[must_use]
pub fn tool_failure(tool: &str, output: &CallOutput) -> Json {
    let blocks = output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
    let texts: Vec<_> = blocks.iter().filter_map(text).collect();
    let reason = match texts.join("\n") {
        empty if empty.is_empty() => "the tool reports a failure without a text".to_owned(),
        text => text,
    };
    Json::from_value(&exception(tool, TOOL_ERROR, &reason, &format!("{tool}: {reason}")))
}

/// Returns the exception for a call that the script may not make.
#[must_use]
pub fn refusal(tool: &str, code: &str, reason: &str) -> Json {
    Json::from_value(&exception(tool, code, reason, &format!("{tool}: {reason} ({code})")))
}

fn exception(tool: &str, code: &str, reason: &str, message: &str) -> serde_json::Value {
    json!({
        "tool": tool,
        "code": code,
        "reason": shortened(reason),
        "message": shortened(message),
        "retryable": false,
    })
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(MAX_MESSAGE_CHARS).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolyard_core::{ErrorCode, Object};

    use super::*;

    #[test]
    fn results_are_unwrapped() {
        let check = |body: &str, expected: &str| {
            let output =
                CallOutput { body: Object::parse(body.to_owned()).expect("an object"), is_error: false };
            assert_eq!(value(&output, None).as_text(), expected, "{body}");
        };
        let text = |text: &str| {
            format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, Json::string(text).as_text())
        };
        check(r#"{"structuredContent":{"a":1},"content":[{"type":"text","text":"x"}]}"#, r#"{"a":1}"#);
        check(r#"{"structuredContent":{"result":1}}"#, r#"{"result":1}"#);
        check(&text("{\"a\": [1, 2]}"), "{\"a\": [1, 2]}");
        check(&text("[]"), "[]");
        check(&text("12.5"), "12.5");
        check(&text("true"), "true");
        check(&text("12345678901234567890"), "\"12345678901234567890\"");
        check(&text("1e999"), "\"1e999\"");
        check(&text("2 apples"), "\"2 apples\"");
        check(&text(""), "\"\"");
        let two = r#"[{"type":"text","text":"1"},{"type":"text","text":"2"}]"#;
        check(&format!(r#"{{"content":{two}}}"#), two);
        let image = r#"[{"type":"image","data":"AA==","mimeType":"image/png"}]"#;
        check(&format!(r#"{{"content":{image}}}"#), image);
        check(r#"{"content":[]}"#, "null");
        check("{}", "null");
    }

    #[test]
    fn errors_become_exceptions() {
        let unavailable = ToolError::new(ErrorCode::Unavailable, "The server is not connected")
            .because("connection refused")
            .retry_after(Duration::from_millis(1500));
        let denied = ToolError::new(ErrorCode::Denied, "not allowed");
        let seen = [
            call_error("search", &unavailable),
            call_error("search", &denied),
            tool_failure("search", &CallOutput::failure("no such query")),
            refusal("search", LIMIT_REACHED, "the script has made 2 calls, its limit"),
        ];
        let seen: Vec<_> = seen.iter().map(Json::as_text).collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        {"tool":"search","code":"unavailable","reason":"connection refused","message":"search: The server is not connected: connection refused (unavailable)","retryable":true,"retry_after_ms":1500}
        {"tool":"search","code":"denied","reason":"not allowed","message":"search: not allowed (denied)","retryable":false}
        {"tool":"search","code":"tool_error","reason":"no such query","message":"search: no such query","retryable":false}
        {"tool":"search","code":"limit_reached","reason":"the script has made 2 calls, its limit","message":"search: the script has made 2 calls, its limit (limit_reached)","retryable":false}
        "#);
        let long = tool_failure("search", &CallOutput::failure(&"é".repeat(100_000))).to_value();
        assert_eq!(long["message"].as_str().map(|text| text.chars().count()), Some(MAX_MESSAGE_CHARS));
    }
}
