//! From a response to a result. A pure function.

use ::http::{HeaderValue, StatusCode};
use bytes::Bytes;
use jmespath::Expression;
use toolyard_core::secrets::REDACTED;
use toolyard_core::{Code, Json, Object, Output, ToolError};

use super::mapping;

/// What the responses of a tool mean.
#[derive(Clone, Default)]
pub struct Reading {
    /// Members of a response that nobody is to see.
    pub redact: Vec<String>,
    /// What makes the result of what is in a response.
    pub mapping: Option<Expression<'static>>,
    /// Whether the tool promises a result with a structure: it publishes a schema of it.
    pub structured: bool,
}

/// How many bytes of the body of a failure are shown.
const SHOWN: usize = 512;

impl Reading {
    /// The result of a response of success: JSON is redacted and mapped, and is text as well as structure; what
    /// is not JSON is text.
    ///
    /// # Errors
    /// [`Code::ExecutionFailed`] where the body is no text, or a mapping does not fit it.
    pub fn output(
        &self,
        status: StatusCode,
        content_type: Option<&HeaderValue>,
        body: Bytes,
    ) -> Result<Output, ToolError> {
        if let Ok(json) = Json::parse(body.clone()) {
            return self.json(&json, &body);
        }
        let text = match text(&body, content_type)? {
            // A model is better told something than nothing.
            text if text.is_empty() => described(status),
            text => text,
        };
        if self.mapping.is_none() && !self.structured {
            return Ok(Output::text(&text));
        }
        let json = Object::new().with("result", Json::string(&text)).to_json();
        let body = json.bytes();
        self.json(&json, &body)
    }

    fn json(&self, json: &Json, body: &[u8]) -> Result<Output, ToolError> {
        let mut changed = self.redacted(json)?;
        if let Some(expression) = &self.mapping {
            changed = Some(mapping::apply(expression, changed.as_ref().unwrap_or(json))?);
        }
        let json = changed.as_ref().unwrap_or(json);
        let text = match json.to_str() {
            Some(text) => text,
            // As it came, line breaks included.
            None if changed.is_none() => String::from_utf8_lossy(body),
            None => json.as_text().into(),
        };
        let mut output = Output::text(&text);
        // Clients of revisions before 2026-07-28 know objects only.
        if json.is_object() {
            output.body.set("structuredContent", json.clone());
        }
        Ok(output)
    }

    /// The value without what nobody is to see; `None` where nothing of that is in it.
    fn redacted(&self, json: &Json) -> Result<Option<Json>, ToolError> {
        if self.redact.is_empty() || !json.is_object() {
            return Ok(None);
        }
        let unclear = "The response names a member twice, and cannot be redacted";
        let mut object = json.to_object().map_err(|_| ToolError::new(Code::ExecutionFailed, unclear))?;
        let hidden: Vec<_> = self.redact.iter().filter(|name| object.get(name).is_some()).collect();
        for name in &hidden {
            object.set(name, Json::string(REDACTED));
        }
        Ok((!hidden.is_empty()).then(|| object.to_json()))
    }

    /// The result of any other response: its status, and the beginning of its body. `before` comes first.
    #[must_use]
    pub fn failure(&self, before: &str, status: StatusCode, body: &Bytes, whole: bool) -> Output {
        let mut text = format!("{before}HTTP {}", described(status));
        if status.is_redirection() {
            text.push_str(" (redirects are not followed)");
        }
        let shown = self.shown(body, whole);
        if !shown.is_empty() {
            text.push_str(": ");
            text.push_str(&shown);
        }
        Output::failure(&text)
    }

    /// The beginning of a failure's body. Where something is to be hidden, only what can be looked through.
    fn shown(&self, body: &Bytes, whole: bool) -> String {
        let mut body = body.clone();
        if !self.redact.is_empty() {
            let json = Json::parse(body.clone()).ok().filter(|_| whole);
            let redacted = json.as_ref().map(|json| self.redacted(json));
            match redacted {
                Some(Ok(Some(redacted))) => body = redacted.bytes(),
                Some(Ok(None)) => {}
                Some(Err(_)) | None => return String::new(),
            }
        }
        let start = &body[..body.len().min(SHOWN)];
        // A character that the bound cuts in two is left out; what is no text at all is shown as well as it goes.
        let cut = std::str::from_utf8(start).err().filter(|error| error.error_len().is_none());
        let end = cut.filter(|_| start.len() < body.len()).map_or(start.len(), |error| error.valid_up_to());
        String::from_utf8_lossy(&start[..end]).into_owned()
    }
}

fn described(status: StatusCode) -> String {
    format!("{} {}", status.as_str(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

/// The text of a body. What calls itself text is read as well as it goes; anything else has to be UTF-8.
fn text(body: &Bytes, content_type: Option<&HeaderValue>) -> Result<String, ToolError> {
    if let Ok(text) = std::str::from_utf8(body) {
        return Ok(text.to_owned());
    }
    let content_type = content_type.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if content_type.to_ascii_lowercase().starts_with("text/") {
        return Ok(String::from_utf8_lossy(body).into_owned());
    }
    Err(ToolError::new(Code::ExecutionFailed, "The response is neither JSON nor text"))
}
