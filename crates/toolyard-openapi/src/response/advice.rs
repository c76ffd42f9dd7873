//! Suggestions after a failure, in a sentence that a model can act on.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use toolyard_core::Json;

use super::header_text;
use crate::operation::{BodyContent, OpenApiOperation, ParameterLocation};

/// Maximum number of arguments in a suggestion.
const MAX_NAMED_ARGUMENTS: usize = 8;

/// Maximum depth of the search for names in a body.
const MAX_DEPTH: usize = 8;

impl OpenApiOperation {
    /// Returns a suggestion. `body` is that of the response, if it is JSON.
    pub(super) fn advice(&self, response: &Response<Bytes>, body: Option<&Json>) -> Option<String> {
        let sentence = match response.status() {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                return Some(self.advise_arguments(body));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                return Some(advise_retry(response));
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => return Some(self.advise_not_found()),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => return Some(self.advise_media_type()),
            StatusCode::UNAUTHORIZED => {
                "The credentials of this tool's handler are missing, wrong or expired; other arguments will not help."
            }
            StatusCode::FORBIDDEN => {
                "The credentials of this tool's handler do not permit this; other arguments may help if they refer to permitted resources."
            }
            StatusCode::CONFLICT => {
                "The request conflicts with the current state: read it, and try again with matching arguments."
            }
            StatusCode::PRECONDITION_FAILED | StatusCode::PRECONDITION_REQUIRED => {
                "The resource has changed: read it again, and send its current version (such as its ETag)."
            }
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::URI_TOO_LONG => "Send less at once.",
            StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                "Try again later."
            }
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                "The server does not have this operation; other arguments will not help."
            }
            StatusCode::INTERNAL_SERVER_ERROR => {
                "The server failed: other arguments or another attempt may help."
            }
            _ => return None,
        };
        Some(sentence.to_owned())
    }

    fn advise_arguments(&self, body: Option<&Json>) -> String {
        let names = body.map(|body| self.arguments_in(body)).unwrap_or_default();
        match &*names {
            [] => "Check the arguments against the server's message and this tool's input schema.".to_owned(),
            names => format!("Check these arguments: {}.", names.join(", ")),
        }
    }

    fn advise_not_found(&self) -> String {
        let of_the_path =
            self.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path);
        let names: Vec<_> =
            of_the_path.map(|parameter| &*parameter.argument).take(MAX_NAMED_ARGUMENTS).collect();
        match &*names {
            [] => "Not found; the base URL of this tool's handler may be wrong.".to_owned(),
            names => format!("Check {}: no such resource exists.", names.join(", ")),
        }
    }

    fn advise_media_type(&self) -> String {
        match &self.body {
            Some(body) => format!("The server does not accept {} here.", body.media_type),
            None => "The server requires a body that its OpenAPI description does not declare.".to_owned(),
        }
    }

    /// Returns the arguments that a body mentions, in their own order.
    fn arguments_in(&self, body: &Json) -> Vec<&str> {
        let mut words = Vec::new();
        collect_words(body, 0, &mut words);
        let matching = self
            .arguments()
            .filter(|(argument, name)| words.iter().any(|word| word == argument || word == name));
        matching.map(|(argument, _)| argument).take(MAX_NAMED_ARGUMENTS).collect()
    }

    /// Returns each argument with its name in a request.
    fn arguments(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_parameters = self.parameters.iter().map(|parameter| (&*parameter.argument, &*parameter.name));
        let members = match self.body.as_ref().map(|body| &body.content) {
            Some(BodyContent::Members { named, .. }) => &**named,
            Some(BodyContent::Argument(_)) | None => &[],
        };
        of_parameters.chain(members.iter().map(|(argument, member)| (&**argument, &**member)))
    }
}

/// Collects words that may be names: those of strings, and the names of members below the first level. Members of the
/// first level are those of any failure, such as `type` and `title`.
fn collect_words(value: &Json, depth: usize, words: &mut Vec<String>) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(text) = value.to_str() {
        let is_between = |character: char| !(character.is_alphanumeric() || "_-$".contains(character));
        words.extend(text.split(is_between).filter(|word| !word.is_empty()).map(str::to_owned));
    } else if let Ok(items) = value.to_items() {
        items.iter().for_each(|item| collect_words(item, depth + 1, words));
    } else if let Ok(object) = value.to_object() {
        for (name, value) in object.iter() {
            if depth > 0 && !value.to_str().is_some_and(|_| is_common_member(&name)) {
                words.push(name.to_string());
            }
            collect_words(value, depth + 1, words);
        }
    }
}

/// True for common members in lists of errors.
fn is_common_member(name: &str) -> bool {
    [
        "code",
        "description",
        "detail",
        "field",
        "id",
        "message",
        "name",
        "path",
        "reason",
        "status",
        "title",
        "type",
    ]
    .contains(&name)
}

/// Reads the time of the next attempt, in seconds or as a date (RFC 9110, section 10.2.3).
fn advise_retry(response: &Response<Bytes>) -> String {
    match header_text(response.headers(), &header::RETRY_AFTER) {
        Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("Try again in {seconds} s.")
        }
        Some(time) => format!("Try again after {time}."),
        None => "Try again later, and less often.".to_owned(),
    }
}
