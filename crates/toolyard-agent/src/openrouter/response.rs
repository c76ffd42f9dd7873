//! Conversion of responses to texts for models. Pure functions.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::api::OpenRouterResponse;
use super::resource::OpenRouterResource;

/// Maximum length of the message of an error, in characters.
const MAX_MESSAGE_LENGTH: usize = 300;

/// Returns the JSON of a successful response as it arrived; that of an empty one is `{}`.
///
/// # Errors
/// The reason and a remedy, for any other response.
pub fn json_text(resource: &OpenRouterResource, response: &OpenRouterResponse) -> Result<String, String> {
    if !(200..300).contains(&response.status) {
        return Err(refusal(resource, response));
    }
    let text = std::str::from_utf8(&response.body).ok().map(str::trim);
    match text {
        Some("") => Ok("{}".to_owned()),
        Some(text) if serde_json::from_str::<IgnoredAny>(text).is_ok() => Ok(text.to_owned()),
        _ => Err(format!(
            "The response to GET {} is not JSON. Ask the operator to check the base URL of OpenRouter.",
            resource.template()
        )),
    }
}

/// Returns the text for a response with another status: what was requested, the message of OpenRouter, and a remedy.
fn refusal(resource: &OpenRouterResource, response: &OpenRouterResponse) -> String {
    let OpenRouterResponse { status, body, retry_after } = response;
    let message = message(body).map(|message| format!(": {message}")).unwrap_or_default();
    let remedy = remedy(resource, *status, *retry_after);
    format!("OpenRouter answered GET {} with status {status}{message}. {remedy}", resource.template())
        .trim_end()
        .to_owned()
}

fn remedy(resource: &OpenRouterResource, status: u16, retry_after: Option<u64>) -> String {
    const MANAGEMENT_KEY: &str =
        "Only a management key can read this: ask the operator whether the configured key is one.";
    let text = match (status, resource) {
        (300..=399, _) => "Redirects are not followed: ask the operator to check the base URL of OpenRouter.",
        (401, _) => "Ask the operator to check the API key, which may be wrong, disabled or expired.",
        (402, _) => "The account or the key has no credits left: get_credits and get_api_key_info show them.",
        (403, _) if resource.needs_management_key() => MANAGEMENT_KEY,
        (403, _) => "The configured API key may not read this.",
        (404, OpenRouterResource::Key(_)) => "No key has this hash: list_api_keys returns the hashes.",
        (404, OpenRouterResource::Generation(_)) => {
            "No completion has this id (`id` of its response, such as gen-1234567890); a new one may take some seconds."
        }
        (404, _) => "Ask the operator to check the base URL of OpenRouter.",
        (408 | 429 | 500.., _) => {
            let wait = retry_after.map_or_else(|| "later".to_owned(), |seconds| format!("after {seconds} s"));
            return format!("Call again {wait}.");
        }
        _ => "",
    };
    text.to_owned()
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetails,
}

#[derive(Deserialize)]
struct ErrorDetails {
    message: String,
}

/// Returns the message of an error, in one line. `None`: the body is not an error of the API, such as a page of a proxy.
fn message(body: &[u8]) -> Option<String> {
    let ErrorBody { error } = serde_json::from_slice(body).ok()?;
    let words: Vec<_> = error.message.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    let short: String = line.chars().take(MAX_MESSAGE_LENGTH).collect();
    let ellipsis = if short.len() < line.len() { "…" } else { "" };
    (!short.is_empty()).then(|| short + ellipsis)
}
