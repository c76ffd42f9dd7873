//! The call of a tool.

use std::sync::Weak;

use serde_json::Value;
use toolyard_core::{Call, Caller, Gateway, Json, Outcome};
use toolyard_manifest::ScheduledCall;

use super::TaskFiring;
use super::template::filled_object;

/// Calls the tool with the rights of `caller`, and returns the texts of the result. The gateway counts the call.
///
/// # Errors
/// The error of the gateway or of the tool.
pub(super) async fn call(
    tool: &ScheduledCall,
    gateway: &Weak<Gateway>,
    caller: Caller,
    firing: &TaskFiring,
    time: &str,
) -> Result<String, String> {
    let gateway = gateway.upgrade().ok_or("the gateway is stopping")?;
    let arguments = Json::from_value(&Value::Object(filled_object(&tool.arguments, firing, time)));
    let call = Call { caller, ..Call::tool(tool.name.as_str(), arguments) };
    match gateway.invoke(call).await {
        Ok(Outcome::Done(output)) => {
            let text = result_text(&output.body.to_json().to_value());
            if output.is_error { Err(text) } else { Ok(text) }
        }
        Ok(Outcome::NeedsInput(_)) => Err("the tool asks for input, which no client can give".to_owned()),
        Ok(Outcome::Task(_)) => Ok("the tool has started a task".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the texts of a result, or all of it if there are none.
fn result_text(body: &Value) -> String {
    let blocks = body["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if texts.is_empty() { body.to_string() } else { texts.join("\n") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_of_a_result() {
        let check = |body: Value, expected: &str| assert_eq!(result_text(&body), expected);
        check(
            json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}),
            "a\nb",
        );
        check(
            json!({"content": [], "structuredContent": {"n": 1}}),
            r#"{"content":[],"structuredContent":{"n":1}}"#,
        );
    }
}
