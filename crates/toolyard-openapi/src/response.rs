//! Converts a response to a result.
//!
//! JSON becomes text without changes and structured content; images and audio become content of their own type; other
//! bytes become an embedded resource. Failures include their status and a suggestion (`advice`).

mod advice;
mod content;
mod failure;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, Uri, header};
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{CallOutput, Json, Object};

use self::content::ResponseContent;
use crate::operation::OpenApiOperation;

/// The structure of results that a tool promises with its output schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ResultPromise {
    /// No promise: an object is structured content as well as text. Other values are only text, because clients of MCP
    /// revisions before 2026-07-28 only accept objects.
    #[default]
    Nothing,
    /// An object, all of whose members may be missing. Clients then refuse a result without structured content, so that
    /// other JSON and text become the member `result` of an object. A response without either is an empty object.
    Object,
    /// A scalar, in the member `result` of an object; `null` for a response without JSON or text.
    Scalar,
    /// Any other value, in the member `result` of an object; `null` for a response without JSON.
    Result,
}

impl OpenApiOperation {
    /// Converts the response of a call that was sent to `uri`. Every status outside of 2xx is a failure of the tool:
    /// redirects are not followed.
    #[must_use]
    pub fn result(&self, response: &Response<Bytes>, uri: &Uri, promise: ResultPromise) -> CallOutput {
        if !response.status().is_success() {
            return self.failure("", response);
        }
        match ResponseContent::of(response) {
            ResponseContent::Json(json) => structured(&json, response.body(), promise),
            ResponseContent::Text(text) if text.is_empty() => {
                without_value(CallOutput::text(&status_and_location(response)), promise)
            }
            ResponseContent::Text(text) => text_output(&text, promise),
            ResponseContent::Media { kind, mime_type } => {
                let block = block(kind).with("data", content::base64(response.body()));
                block_output(&block.with("mimeType", Json::string(&mime_type)), promise)
            }
            ResponseContent::Bytes { mime_type } => {
                let resource = Object::new()
                    .with("uri", Json::string(&without_secrets(uri)))
                    .with("mimeType", Json::string(&mime_type))
                    .with("blob", content::base64(response.body()));
                block_output(&block("resource").with("resource", resource.to_json()), promise)
            }
        }
    }
}

/// Returns JSON as text without changes; a string becomes its value.
fn structured(json: &Json, body: &[u8], promise: ResultPromise) -> CallOutput {
    let text = match json.to_str() {
        Some(text) => text,
        None => String::from_utf8_lossy(body),
    };
    let mut output = CallOutput::text(&text);
    match promise {
        ResultPromise::Nothing | ResultPromise::Object if json.is_object() => {
            output.body.set(STRUCTURED, json.clone());
        }
        ResultPromise::Nothing => {}
        ResultPromise::Object | ResultPromise::Scalar | ResultPromise::Result => {
            set_result(&mut output, json.clone());
        }
    }
    output
}

fn text_output(text: &str, promise: ResultPromise) -> CallOutput {
    let mut output = CallOutput::text(text);
    match promise {
        ResultPromise::Object | ResultPromise::Scalar => set_result(&mut output, Json::string(text)),
        ResultPromise::Nothing | ResultPromise::Result => output = without_value(output, promise),
    }
    output
}

/// Returns a result with one block that is not text.
fn block_output(block: &Object, promise: ResultPromise) -> CallOutput {
    let content = Json::array([&block.to_json()]);
    without_value(CallOutput { body: Object::new().with("content", content), is_error: false }, promise)
}

/// Adds the structured content that fits the output schema and says nothing: the response has no value for it.
fn without_value(mut output: CallOutput, promise: ResultPromise) -> CallOutput {
    match promise {
        ResultPromise::Nothing => {}
        ResultPromise::Object => output.body.set(STRUCTURED, Object::new().to_json()),
        ResultPromise::Scalar | ResultPromise::Result => set_result(&mut output, Json::null()),
    }
    output
}

fn set_result(output: &mut CallOutput, result: Json) {
    output.body.set(STRUCTURED, Object::new().with("result", result).to_json());
}

fn block(kind: &str) -> Object {
    Object::new().with("type", Json::string(kind))
}

/// Describes a response without a body: its status and `Location`.
fn status_and_location(response: &Response<Bytes>) -> String {
    let status = status_text(response.status());
    match header_text(response.headers(), &header::LOCATION) {
        Some(location) => format!("{status}; Location: {location}"),
        None => status,
    }
}

/// Formats a status code with its reason phrase.
fn status_text(status: StatusCode) -> String {
    format!("{} {}", status.as_str(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

/// Returns a URL without the parts that may contain credentials.
fn without_secrets(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{}", uri.path())
}

#[cfg(test)]
mod tests;
