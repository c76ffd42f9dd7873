//! What is told of a response that is a failure: its status, what its body says of it, and what could be tried.

use bytes::Bytes;
use http::{Response, header};
use toolyard_core::{Json, Object, Output};

use super::{described, text_of};
use crate::operation::Operation;
use crate::wire::cut;

/// How many bytes of a body are shown. Those who check arguments have a line for each.
const SHOWN: usize = 2048;

/// Members that say what is wrong, in the order of RFC 9457, and as others call them.
const SUMMARY: [&str; 6] = ["title", "detail", "message", "error_description", "errorMessage", "reason"];

/// Members which say that there is nothing else to read.
const NOTHING_MORE: [&str; 3] = ["type", "status", "error"];

impl Operation {
    /// The result of a call that failed. `before` comes first, such as how often it was tried.
    #[must_use]
    pub fn failure(&self, before: &str, response: &Response<Bytes>) -> Output {
        let status = response.status();
        let mut text = format!("{before}HTTP {}", described(status));
        if status.is_redirection() {
            let location = text_of(response.headers(), &header::LOCATION);
            let to = location.map(|to| format!("; Location: {to}")).unwrap_or_default();
            text.push_str(&format!(" (redirects are not followed{to})"));
        }
        let json = Json::parse(response.body().clone()).ok();
        let object = json.as_ref().and_then(|json| json.to_object().ok());
        let summary = object.as_ref().map(summary).unwrap_or_default();
        if !summary.is_empty() {
            text.push_str(&format!(": {summary}"));
        }
        if !object.is_some_and(|object| is_told(&object)) {
            let shown = beginning(response.body());
            let between = if summary.is_empty() { ": " } else { "\n" };
            text.extend(if shown.is_empty() { ["", ""] } else { [between, &*shown] });
        }
        if let Some(advice) = self.advice(response, json.as_ref()) {
            text.push_str(&format!("\n{advice}"));
        }
        Output::failure(&text)
    }
}

/// What the members that are made for it say, also where they are in a member `error`.
fn summary(object: &Object) -> String {
    let inner = object.get("error").and_then(|error| error.to_object().ok());
    let inner = inner.as_ref().unwrap_or(object);
    let mut said: Vec<String> = Vec::new();
    for name in SUMMARY {
        if let Some(text) = inner.get_str(name).filter(|text| !text.trim().is_empty())
            && !said.iter().any(|before| *before == text)
        {
            said.push(cut(text.trim(), SHOWN).to_owned());
        }
    }
    said.join(": ")
}

/// Whether the summary leaves nothing out.
fn is_told(object: &Object) -> bool {
    let is_known = |(name, value): (std::borrow::Cow<'_, str>, &Json)| {
        let is_plain = value.to_str().is_some() || value.is_number();
        is_plain && (SUMMARY.contains(&&*name) || NOTHING_MORE.contains(&&*name))
    };
    object.iter().any(|(name, _)| SUMMARY.contains(&&*name)) && object.iter().all(is_known)
}

/// The beginning of a body; what is no text is shown as well as it goes.
fn beginning(body: &Bytes) -> String {
    let start = &body[..body.len().min(SHOWN + 4)];
    cut(&String::from_utf8_lossy(start), SHOWN).trim_end().to_owned()
}
