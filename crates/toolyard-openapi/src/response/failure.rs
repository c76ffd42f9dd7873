//! Results for failed responses: the status, a summary of the body, and a suggestion.

use bytes::Bytes;
use http::{Response, header};
use toolyard_core::{CallOutput, Json, Object};

use super::{header_text, status_text};
use crate::operation::OpenApiOperation;
use crate::wire::truncate;

/// Maximum part of a body in a result, in bytes. Services that validate arguments write a line for each.
const MAX_BODY_BYTES: usize = 2048;

/// Members that describe a failure, in the order of RFC 9457, followed by common alternatives.
const SUMMARY_MEMBERS: [&str; 6] =
    ["title", "detail", "message", "error_description", "errorMessage", "reason"];

/// Members that add nothing to a summary.
const REDUNDANT_MEMBERS: [&str; 3] = ["type", "status", "error"];

impl OpenApiOperation {
    /// Returns the result of a failed call. `before` is a prefix, such as the number of attempts.
    #[must_use]
    pub fn failure(&self, before: &str, response: &Response<Bytes>) -> CallOutput {
        let status = response.status();
        let mut text = format!("{before}HTTP {}", status_text(status));
        if status.is_redirection() {
            let location = header_text(response.headers(), &header::LOCATION);
            let to = location.map(|to| format!("; Location: {to}")).unwrap_or_default();
            text.push_str(&format!(" (redirects are not followed{to})"));
        }
        let json = Json::parse(response.body().clone()).ok();
        let object = json.as_ref().and_then(|json| json.to_object().ok());
        let summary = object.as_ref().map(summary).unwrap_or_default();
        if !summary.is_empty() {
            text.push_str(&format!(": {summary}"));
        }
        if !object.is_some_and(|object| is_fully_summarized(&object)) {
            let excerpt = body_excerpt(response.body());
            let between = if summary.is_empty() { ": " } else { "\n" };
            text.extend(if excerpt.is_empty() { ["", ""] } else { [between, &*excerpt] });
        }
        if let Some(advice) = self.advice(response, json.as_ref()) {
            text.push_str(&format!("\n{advice}"));
        }
        CallOutput::failure(&text)
    }
}

/// Joins the members that describe a failure, also within a member `error`.
fn summary(object: &Object) -> String {
    let inner = object.get("error").and_then(|error| error.to_object().ok());
    let inner = inner.as_ref().unwrap_or(object);
    let mut messages: Vec<String> = Vec::new();
    for name in SUMMARY_MEMBERS {
        if let Some(text) = inner.get_str(name).filter(|text| !text.trim().is_empty())
            && !messages.iter().any(|before| *before == text)
        {
            messages.push(truncate(text.trim(), MAX_BODY_BYTES).to_owned());
        }
    }
    messages.join(": ")
}

/// True if the summary contains everything.
fn is_fully_summarized(object: &Object) -> bool {
    let is_known = |(name, value): (std::borrow::Cow<'_, str>, &Json)| {
        let is_plain = value.to_str().is_some() || value.is_number();
        is_plain && (SUMMARY_MEMBERS.contains(&&*name) || REDUNDANT_MEMBERS.contains(&&*name))
    };
    object.iter().any(|(name, _)| SUMMARY_MEMBERS.contains(&&*name)) && object.iter().all(is_known)
}

/// Returns the start of a body, with replacement characters for invalid UTF-8.
fn body_excerpt(body: &Bytes) -> String {
    let start = &body[..body.len().min(MAX_BODY_BYTES + 4)];
    truncate(&String::from_utf8_lossy(start), MAX_BODY_BYTES).trim_end().to_owned()
}
