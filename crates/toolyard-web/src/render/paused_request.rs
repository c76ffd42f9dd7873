//! Requests of a page, which the browser pauses until they are answered.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::fetch::SubresourceResponse;

/// Maximum size of the headers of a request together, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;

/// Headers of a request that are set by the gateway, or that concern one connection.
const OWN_HEADERS: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::RANGE,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::USER_AGENT,
];

/// Headers of a response that its decoded body no longer has.
const CODING_HEADERS: [HeaderName; 4] =
    [header::CONNECTION, header::CONTENT_ENCODING, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// A paused request: the parameters of `Fetch.requestPaused`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PausedRequest {
    pub(super) request_id: String,
    pub(super) request: BrowserRequest,
    #[serde(default)]
    pub(super) frame_id: String,
    #[serde(default)]
    resource_type: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct BrowserRequest {
    pub(super) url: String,
    pub(super) method: String,
    #[serde(default)]
    headers: Map<String, Value>,
}

/// The treatment of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A document of the page itself.
    Document,
    /// A script, or data that a script asks for.
    Subresource,
    /// A style sheet. Scripts may wait for it, and it has no text: it is answered with an empty one.
    Style,
    /// A URL that contains its data.
    Inline,
    /// An image, a frame or another request whose response adds no text, or that could have effects.
    Other,
}

impl PausedRequest {
    /// Returns the treatment of this request on a page with this frame.
    pub(super) fn kind(&self, page_frame: &str) -> RequestKind {
        let url = &self.request.url;
        if url.starts_with("data:") || url.starts_with("blob:") {
            return RequestKind::Inline;
        }
        // A visit only reads.
        if self.request.method != "GET" {
            return RequestKind::Other;
        }
        match &*self.resource_type {
            "Document" if self.frame_id == page_frame => RequestKind::Document,
            "Script" | "XHR" | "Fetch" => RequestKind::Subresource,
            "Stylesheet" => RequestKind::Style,
            _ => RequestKind::Other,
        }
    }

    /// Returns the headers of the request to the server. Those that are not valid or too long are left out.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut room = MAX_HEADER_BYTES;
        for (name, value) in &self.request.headers {
            let Some(value) = value.as_str() else { continue };
            let length = name.len() + value.len();
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
                continue;
            };
            if !OWN_HEADERS.contains(&name) && length <= room {
                room -= length;
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Returns the parameters of `Fetch.fulfillRequest` with a response.
    pub(super) fn fulfil(&self, response: &SubresourceResponse) -> Value {
        let headers: Vec<_> = response
            .headers
            .iter()
            .filter(|(name, _)| !CODING_HEADERS.contains(name))
            .map(|(name, value)| json!({"name": name.as_str(), "value": String::from_utf8_lossy(value.as_bytes())}))
            .collect();
        json!({
            "requestId": self.request_id,
            "responseCode": response.status.as_u16(),
            "responseHeaders": headers,
            "body": STANDARD.encode(&response.body),
        })
    }

    /// Returns the parameters of `Fetch.failRequest`. A document that is not loaded leaves the current one in its place,
    /// and not a page about an error.
    pub(super) fn fail(&self) -> Value {
        let reason = if self.resource_type == "Document" { "Aborted" } else { "BlockedByClient" };
        json!({"requestId": self.request_id, "errorReason": reason})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: &str, frame: &str, method: &str, url: &str) -> PausedRequest {
        let request = json!({"url": url, "method": method, "headers": {
            "Accept": "*/*", "Host": "other", "User-Agent": "x", "Bad Name": "x", "X-Long": "x".repeat(MAX_HEADER_BYTES),
        }});
        let paused = json!({"requestId": "1", "request": request, "frameId": frame, "resourceType": kind});
        serde_json::from_value(paused).expect("a request")
    }

    #[test]
    fn kind_of_a_request() {
        let check = |kind: &str, frame: &str, method: &str, url: &str, expected: RequestKind| {
            assert_eq!(
                request(kind, frame, method, url).kind("main"),
                expected,
                "{kind} {frame} {method} {url}"
            );
        };
        let url = "https://example.com/";
        check("Document", "main", "GET", url, RequestKind::Document);
        check("Document", "frame", "GET", url, RequestKind::Other);
        check("Document", "main", "POST", url, RequestKind::Other);
        check("Script", "main", "GET", url, RequestKind::Subresource);
        check("Fetch", "main", "GET", url, RequestKind::Subresource);
        check("Fetch", "main", "DELETE", url, RequestKind::Other);
        check("Stylesheet", "main", "GET", url, RequestKind::Style);
        check("EventSource", "main", "GET", url, RequestKind::Other);
        check("Image", "main", "GET", url, RequestKind::Other);
        check("Image", "main", "GET", "data:image/png;base64,", RequestKind::Inline);
        check("Script", "main", "GET", "blob:https://example.com/1", RequestKind::Inline);
    }

    #[test]
    fn only_valid_headers_of_the_page_are_sent() {
        let headers = request("Fetch", "main", "GET", "https://example.com/").headers();
        let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["accept"]);
    }
}
