//! Results of tools as JSON.

use toolyard_core::{CallOutput, Json, Object};

use crate::omnia::ToolResponse;

/// Returns the response with the output of a tool.
///
/// The result is the structured content; else the text, as it is if it is JSON, or as `{"result": text}`; else the content
/// as MCP has it, as `{"content": [...]}`, if it has images and the like. A failure has its text as the message.
pub(super) fn response_of(output: &CallOutput) -> ToolResponse {
    let structured = output.body.get("structuredContent").filter(|content| !content.is_null());
    let content = output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
    let text = text_of(&content);
    if output.is_error {
        let message = text.filter(|text| !text.trim().is_empty());
        return ToolResponse {
            result_json: structured.map(|content| content.as_text().to_owned()).unwrap_or_default(),
            is_error: true,
            error_message: message.unwrap_or_else(|| "the tool failed without a message".to_owned()),
        };
    }
    let result_json = match (structured, text) {
        (Some(structured), _) => structured.as_text().to_owned(),
        (None, _) if content.is_empty() => "null".to_owned(),
        (None, Some(text)) => json_of(text),
        (None, None) => object("content", Json::array(&content)),
    };
    ToolResponse { result_json, is_error: false, error_message: String::new() }
}

/// Returns the texts of a content, one a line; `None` if it has anything else.
fn text_of(content: &[Json]) -> Option<String> {
    let texts: Vec<_> = content.iter().map(text_of_block).collect::<Option<_>>()?;
    Some(texts.join("\n"))
}

fn text_of_block(block: &Json) -> Option<String> {
    let block = block.to_object().ok()?;
    let is_text = block.get_str("type").as_deref() == Some("text");
    block.get_str("text").filter(|_| is_text).map(|text| text.into_owned())
}

/// Returns a text as JSON.
fn json_of(text: String) -> String {
    match Json::parse(text.clone()) {
        Ok(_) => text,
        Err(_) => object("result", Json::string(&text)),
    }
}

fn object(member: &str, value: Json) -> String {
    Object::new().with(member, value).to_json().as_text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: &str) -> ToolResponse {
        let body = Object::parse(body.to_owned()).unwrap();
        let is_error = body.get("isError").and_then(Json::to_bool) == Some(true);
        response_of(&CallOutput { body, is_error })
    }

    #[test]
    fn results_become_json() {
        let check = |body: &str, expected: &str| {
            let response = response(body);
            assert_eq!((&*response.result_json, response.is_error), (expected, false), "{body}");
        };
        let text = |text: &str| {
            let block = Object::new().with("type", Json::string("text")).with("text", Json::string(text));
            format!(r#"{{"content":[{}]}}"#, block.to_json().as_text())
        };
        check(&text("sunny"), r#"{"result":"sunny"}"#);
        check(&text(""), r#"{"result":""}"#);
        check(&text(r#"{"a": 1.10}"#), r#"{"a": 1.10}"#);
        check(&text("42"), "42");
        check(&text("null"), "null");
        check(&text("a \"b\"\n"), r#"{"result":"a \"b\"\n"}"#);
        check(r#"{"content":[{"type":"text","text":"1"}],"structuredContent":{"n":1.0}}"#, r#"{"n":1.0}"#);
        check(r#"{"content":[],"structuredContent":[1]}"#, "[1]");
        check(r#"{"content":[{"type":"text","text":"1"}],"structuredContent":null}"#, "1");
        check(r#"{"content":[]}"#, "null");
        check("{}", "null");
        check(r#"{"content":1}"#, "null");
        let two = r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        check(two, r#"{"result":"a\nb"}"#);
        let image = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}]}"#;
        check(image, image);
    }

    #[test]
    fn failures_have_a_message() {
        let check = |body: &str, result: &str, message: &str| {
            let response = response(body);
            let expected = (result, true, message);
            assert_eq!(
                (&*response.result_json, response.is_error, &*response.error_message),
                expected,
                "{body}"
            );
        };
        check(r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#, "", "no");
        check(
            r#"{"isError":true,"content":[{"type":"text","text":"no"}],"structuredContent":{"code":1}}"#,
            r#"{"code":1}"#,
            "no",
        );
        for body in [
            r#"{"isError":true,"content":[]}"#,
            r#"{"isError":true,"content":[{"type":"text","text":" "}]}"#,
            r#"{"isError":true,"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
        ] {
            check(body, "", "the tool failed without a message");
        }
    }
}
