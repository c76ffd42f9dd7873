//! From a response to a result.
//!
//! JSON is text as it came, and structure; a picture or a sound is content of its own kind; any other bytes are an
//! embedded resource. What failed says so, and what could be tried (`advice`).

mod advice;
mod content;
mod failure;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, Uri, header};
use toolyard_core::{Json, Object, Output};

use self::content::Content;
use crate::operation::Operation;

/// What a tool promises of the structure of its results, by the output schema that it publishes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Promise {
    /// Nothing: an object is structure as well as text. Anything else is not, for clients of MCP's revisions before
    /// 2026-07-28 know objects only.
    #[default]
    Nothing,
    /// An object. Clients refuse a result without structure then, so that what a server sends instead, be it JSON, text
    /// or only a status, stands in the member `result` of one.
    Object,
    /// Something that is in the member `result` of an object, whatever it is: how a schema is published that is not one
    /// of an object.
    Result,
}

impl Operation {
    /// The result of a call to which this is the response, and that was sent to `uri`. Every status outside of 2xx is a
    /// failure of the tool: redirects are not followed.
    #[must_use]
    pub fn result(&self, response: &Response<Bytes>, uri: &Uri, promise: Promise) -> Output {
        if !response.status().is_success() {
            return self.failure("", response);
        }
        match Content::of(response) {
            Content::Json(json) => structured(&json, response.body(), promise),
            Content::Text(text) if text.is_empty() => told(&said(response), promise),
            Content::Text(text) => told(&text, promise),
            Content::Media { kind, mime_type } => {
                let block = block(kind).with("data", content::base64(response.body()));
                shown(block.with("mimeType", Json::string(&mime_type)), response, promise)
            }
            Content::Bytes { mime_type } => {
                let resource = Object::new()
                    .with("uri", Json::string(&without_secrets(uri)))
                    .with("mimeType", Json::string(&mime_type))
                    .with("blob", content::base64(response.body()));
                shown(block("resource").with("resource", resource.to_json()), response, promise)
            }
        }
    }
}

/// Text as it came, line breaks included; a string is its own meaning.
fn structured(json: &Json, body: &[u8], promise: Promise) -> Output {
    let text = match json.to_str() {
        Some(text) => text,
        None => String::from_utf8_lossy(body),
    };
    let mut output = Output::text(&text);
    match promise {
        Promise::Nothing | Promise::Object if json.is_object() => {
            output.body.set("structuredContent", json.clone());
        }
        Promise::Nothing => {}
        Promise::Object | Promise::Result => set_result(&mut output, json.clone()),
    }
    output
}

fn told(text: &str, promise: Promise) -> Output {
    let mut output = Output::text(text);
    if promise != Promise::Nothing {
        set_result(&mut output, Json::string(text));
    }
    output
}

/// A result of one block that is not text.
fn shown(block: Object, response: &Response<Bytes>, promise: Promise) -> Output {
    let content = Json::array([&block.to_json()]);
    let mut output = Output { body: Object::new().with("content", content), is_error: false };
    if promise != Promise::Nothing {
        set_result(&mut output, Json::string(&said(response)));
    }
    output
}

fn set_result(output: &mut Output, result: Json) {
    output.body.set("structuredContent", Object::new().with("result", result).to_json());
}

fn block(kind: &str) -> Object {
    Object::new().with("type", Json::string(kind))
}

/// What there is to say of a response without a body: its status, and where what it made is.
fn said(response: &Response<Bytes>) -> String {
    let status = described(response.status());
    match text_of(response.headers(), &header::LOCATION) {
        Some(location) => format!("{status}; Location: {location}"),
        None => status,
    }
}

/// A status in digits and words.
fn described(status: StatusCode) -> String {
    format!("{} {}", status.as_str(), status.canonical_reason().unwrap_or_default()).trim_end().to_owned()
}

fn text_of<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

/// A URL without what may hold credentials.
fn without_secrets(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{}", uri.path())
}

#[cfg(test)]
mod tests;
