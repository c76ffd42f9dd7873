//! Results of tools as artifacts.

use serde_json::Value;
use toolyard_core::CallOutput;

use crate::wire::message::{Part, parts_text};
use crate::wire::task::Artifact;

/// Id of the artifact of a task.
const ARTIFACT: &str = "result";

/// Returns the artifact of a result.
pub(super) fn artifact(output: &CallOutput) -> Artifact {
    Artifact { artifact_id: ARTIFACT.to_owned(), name: String::new(), parts: parts(output) }
}

/// Returns the texts of a result.
pub(super) fn text(output: &CallOutput) -> String {
    parts_text(&parts(output))
}

fn parts(output: &CallOutput) -> Vec<Part> {
    let body = output.body.to_json().to_value();
    let blocks = body["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts: Vec<_> = blocks.iter().map(part).collect();
    if let Some(data) = body.get("structuredContent").filter(|data| !data.is_null()) {
        parts.push(Part::of_data(data.clone()));
    }
    parts
}

/// Returns the part of a content block of MCP.
fn part(block: &Value) -> Part {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let media_type = text(&block["mimeType"]).unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => Part::of_text(text(&block["text"]).unwrap_or_default()),
        Some("image" | "audio") => Part { raw: text(&block["data"]), media_type, ..Part::default() },
        Some("resource_link") => Part {
            url: text(&block["uri"]),
            filename: text(&block["name"]).unwrap_or_default(),
            media_type,
            ..Part::default()
        },
        Some("resource") => {
            let resource = &block["resource"];
            Part {
                text: text(&resource["text"]),
                raw: text(&resource["blob"]),
                filename: text(&resource["uri"]).unwrap_or_default(),
                media_type: text(&resource["mimeType"]).unwrap_or_default(),
                ..Part::default()
            }
        }
        _ => Part::of_data(block.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::Object;

    use super::*;

    #[test]
    fn content_becomes_parts() {
        let body = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
            {"type": "resource", "resource": {"uri": "x://b", "text": "b", "mimeType": "text/csv"}},
            {"type": "new"},
        ], "structuredContent": {"n": 1}});
        let body = Object::parse(body.to_string()).expect("an object");
        let parts = json!(parts(&CallOutput { body, is_error: false }));
        assert_eq!(
            parts,
            json!([
                {"text": "a", "mediaType": "text/plain"},
                {"raw": "AAAA", "mediaType": "image/png"},
                {"url": "file:///a.txt", "filename": "a.txt"},
                {"text": "b", "filename": "x://b", "mediaType": "text/csv"},
                {"data": {"type": "new"}, "mediaType": "application/json"},
                {"data": {"n": 1}, "mediaType": "application/json"},
            ])
        );
    }
}
