//! Converts a response to a result. A pure function.

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use toolyard_core::output_schema::{OutputForm, STRUCTURED};
use toolyard_core::secrets::REDACTED;
use toolyard_core::{CallOutput, ErrorCode, Json, Object, ToolError};

use super::mapping::JmesPathMapping;

/// Conversion of a tool's responses to results.
#[derive(Clone, Default)]
pub struct ResponseConversion {
    /// Members of a response that are redacted.
    pub redact: Vec<String>,
    /// Mapping that converts a response to the result.
    pub mapping: Option<JmesPathMapping>,
    /// Form of the structured content that the tool declares.
    pub form: OutputForm,
}

/// Maximum length of an error body in a result, in bytes.
const MAX_EXCERPT_BYTES: usize = 512;

impl ResponseConversion {
    /// True if a body of `bytes` bytes can be converted on a connection's thread.
    #[must_use]
    pub fn is_brief(&self, bytes: usize) -> bool {
        self.mapping.as_ref().is_none_or(|mapping| mapping.is_brief(bytes))
    }

    /// True if structured content may differ from the body.
    pub(super) const fn changes_structure(&self) -> bool {
        self.mapping.is_some() || !self.redact.is_empty()
    }

    /// Converts a successful response: JSON is redacted, mapped, and returned as text and structured content; other
    /// bodies are text. Without an output schema only objects are structured content, because clients of revisions before
    /// 2026-07-28 expect objects.
    ///
    /// # Errors
    /// [`ErrorCode::ExecutionFailed`] if the body is not text, or a mapping does not fit it.
    pub fn output(
        &self,
        status: StatusCode,
        content_type: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<CallOutput, ToolError> {
        if let Ok(json) = Json::parse(body.clone()) {
            return self.json_output(&json, &body);
        }
        let text = match decode_text(&body, content_type)? {
            // A model needs some text to see that the call succeeded.
            text if text.is_empty() => status_line(status),
            text => text,
        };
        let text = Json::string(&text);
        let json = match (self.form, &self.mapping) {
            (OutputForm::Undeclared, None) => {
                return Ok(CallOutput::text(&text.to_str().unwrap_or_default()));
            }
            (OutputForm::Other, None) => text,
            _ => Object::new().with("result", text).to_json(),
        };
        let body = json.bytes();
        self.json_output(&json, &body)
    }

    fn json_output(&self, json: &Json, body: &[u8]) -> Result<CallOutput, ToolError> {
        let mut changed = self.redacted(json)?;
        if let Some(mapping) = &self.mapping {
            changed = Some(mapping.apply(changed.as_ref().unwrap_or(json))?);
        }
        let json = changed.as_ref().unwrap_or(json);
        let text = match json.to_str() {
            Some(text) => text,
            // The original text, line breaks included.
            None if changed.is_none() => String::from_utf8_lossy(body),
            None => json.as_text().into(),
        };
        let mut output = CallOutput::text(&text);
        if json.is_object() || self.form != OutputForm::Undeclared {
            output.body.set(STRUCTURED, json.clone());
        }
        Ok(output)
    }

    /// Redacts a value. Returns `None` if it has no member to redact.
    fn redacted(&self, json: &Json) -> Result<Option<Json>, ToolError> {
        if self.redact.is_empty() || !json.is_object() {
            return Ok(None);
        }
        let unclear = "The response has a duplicate member and cannot be redacted";
        let mut object = json.to_object().map_err(|_| ToolError::new(ErrorCode::ExecutionFailed, unclear))?;
        let redacted_names: Vec<_> = self.redact.iter().filter(|name| object.get(name).is_some()).collect();
        for name in &redacted_names {
            object.set(name, Json::string(REDACTED));
        }
        Ok((!redacted_names.is_empty()).then(|| object.to_json()))
    }

    /// Converts an error response to its status and an excerpt of its body, after `prefix`.
    #[must_use]
    pub fn failure(&self, prefix: &str, status: StatusCode, body: &Bytes, is_complete: bool) -> CallOutput {
        let mut text = format!("{prefix}HTTP {}", status_line(status));
        if status.is_redirection() {
            text.push_str(" (redirects are not followed)");
        }
        let excerpt = self.body_excerpt(body, is_complete);
        if !excerpt.is_empty() {
            text.push_str(": ");
            text.push_str(&excerpt);
        }
        CallOutput::failure(&text)
    }

    /// Returns the beginning of an error body. With members to redact, only a complete JSON body is shown.
    fn body_excerpt(&self, body: &Bytes, is_complete: bool) -> String {
        let mut body = body.clone();
        if !self.redact.is_empty() {
            let json = Json::parse(body.clone()).ok().filter(|_| is_complete);
            let redacted = json.as_ref().map(|json| self.redacted(json));
            match redacted {
                Some(Ok(Some(redacted))) => body = redacted.bytes(),
                Some(Ok(None)) => {}
                Some(Err(_)) | None => return String::new(),
            }
        }
        let start = &body[..body.len().min(MAX_EXCERPT_BYTES)];
        // A character cut in two by the limit is dropped; other invalid bytes are replaced.
        let cut = std::str::from_utf8(start).err().filter(|error| error.error_len().is_none());
        let end = cut.filter(|_| start.len() < body.len()).map_or(start.len(), |error| error.valid_up_to());
        String::from_utf8_lossy(&start[..end]).into_owned()
    }
}

fn status_line(status: StatusCode) -> String {
    format!("{} {}", status.as_str(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

/// Decodes a body. Content of a `text/*` type is decoded lossily; anything else must be UTF-8.
fn decode_text(body: &Bytes, content_type: Option<&HeaderValue>) -> Result<String, ToolError> {
    if let Ok(text) = std::str::from_utf8(body) {
        return Ok(text.to_owned());
    }
    let content_type = content_type.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if content_type.to_ascii_lowercase().starts_with("text/") {
        return Ok(String::from_utf8_lossy(body).into_owned());
    }
    Err(ToolError::new(ErrorCode::ExecutionFailed, "The response is neither JSON nor text"))
}
