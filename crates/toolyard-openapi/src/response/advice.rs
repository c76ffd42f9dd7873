//! What could be tried after a failure, in a sentence that a model can act on.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use toolyard_core::Json;

use super::text_of;
use crate::operation::{Content, Location, Operation};

/// How many arguments are named.
const MOST_NAMED: usize = 8;

/// How far into a body names are looked for.
const DEEPEST: usize = 8;

impl Operation {
    /// What could be tried. `body` is that of the response, where it is JSON.
    pub(super) fn advice(&self, response: &Response<Bytes>, body: Option<&Json>) -> Option<String> {
        let sentence = match response.status() {
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => return Some(self.named(body)),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => return Some(later(response)),
            StatusCode::NOT_FOUND | StatusCode::GONE => return Some(self.absent()),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => return Some(self.unsupported()),
            StatusCode::UNAUTHORIZED => {
                "The credentials of this tool's handler are missing, wrong or expired; other arguments will not help."
            }
            StatusCode::FORBIDDEN => {
                "The credentials of this tool's handler do not allow this; other arguments may, if they name what is allowed."
            }
            StatusCode::CONFLICT => {
                "It does not fit what is there by now: read that, and try again with what fits it."
            }
            StatusCode::PRECONDITION_FAILED | StatusCode::PRECONDITION_REQUIRED => {
                "What is there has changed: read it again, and send its present version (such as its ETag)."
            }
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::URI_TOO_LONG => "Send less at once.",
            StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
                "Try again later."
            }
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                "The server does not have this operation; other arguments will not help."
            }
            StatusCode::INTERNAL_SERVER_ERROR => {
                "The fault is the server's: other arguments, or another try, may help."
            }
            _ => return None,
        };
        Some(sentence.to_owned())
    }

    fn named(&self, body: Option<&Json>) -> String {
        let names = body.map(|body| self.arguments_in(body)).unwrap_or_default();
        match &*names {
            [] => "Check the arguments against what the server says and this tool's input schema.".to_owned(),
            names => format!("Check these arguments: {}.", names.join(", ")),
        }
    }

    fn absent(&self) -> String {
        let of_the_path = self.parameters.iter().filter(|parameter| parameter.location == Location::Path);
        let names: Vec<_> = of_the_path.map(|parameter| &*parameter.argument).take(MOST_NAMED).collect();
        match &*names {
            [] => "Nothing is there; the base URL of this tool's handler may be wrong.".to_owned(),
            names => format!("Check {}: nothing of that kind is there.", names.join(", ")),
        }
    }

    fn unsupported(&self) -> String {
        match &self.body {
            Some(body) => format!("The server does not take {} here.", body.media_type),
            None => "The server wants a body, which its document does not tell of.".to_owned(),
        }
    }

    /// The arguments that a body names, in their own order.
    fn arguments_in(&self, body: &Json) -> Vec<&str> {
        let mut words = Vec::new();
        collect(body, 0, &mut words);
        let known = self
            .arguments()
            .filter(|(argument, name)| words.iter().any(|word| word == argument || word == name));
        known.map(|(argument, _)| argument).take(MOST_NAMED).collect()
    }

    /// Each argument, and what it is called in a request.
    fn arguments(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_parameters = self.parameters.iter().map(|parameter| (&*parameter.argument, &*parameter.name));
        let members = match self.body.as_ref().map(|body| &body.content) {
            Some(Content::Members { named, .. }) => &**named,
            Some(Content::Argument(_)) | None => &[],
        };
        of_parameters.chain(members.iter().map(|(argument, member)| (&**argument, &**member)))
    }
}

/// The words that may be names: those of texts, and the names of members below the first level. On the first one stand
/// the names of what any failure has, such as `type` and `title`.
fn collect(value: &Json, depth: usize, words: &mut Vec<String>) {
    if depth > DEEPEST {
        return;
    }
    if let Some(text) = value.to_str() {
        let is_between = |character: char| !(character.is_alphanumeric() || "_-$".contains(character));
        words.extend(text.split(is_between).filter(|word| !word.is_empty()).map(str::to_owned));
    } else if let Ok(items) = value.to_items() {
        items.iter().for_each(|item| collect(item, depth + 1, words));
    } else if let Ok(object) = value.to_object() {
        for (name, value) in object.iter() {
            if depth > 0 && !value.to_str().is_some_and(|_| is_usual(&name)) {
                words.push(name.to_string());
            }
            collect(value, depth + 1, words);
        }
    }
}

/// What the entry of a list of faults has for itself.
fn is_usual(name: &str) -> bool {
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

/// When a server wants to be asked again, in seconds or at a time (RFC 9110, section 10.2.3).
fn later(response: &Response<Bytes>) -> String {
    match text_of(response.headers(), &header::RETRY_AFTER) {
        Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("Try again in {seconds} s.")
        }
        Some(time) => format!("Try again after {time}."),
        None => "Try again later, and less often.".to_owned(),
    }
}
