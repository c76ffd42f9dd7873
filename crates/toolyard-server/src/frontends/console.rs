//! The console: a web page for people, which uses the REST API.
//!
//! Its files are those of `console/dist`, compressed by the build script of this crate. They are the same for every
//! gateway and reveal nothing about this one, so they need no key; the page signs in by itself.

use std::io::Read;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use toolyard_net::header_values::accepts_coding;

use super::rest::ProblemDetails;

/// A file of the console.
struct ConsoleFile {
    /// Path of the URL.
    path: &'static str,
    /// Entity tag, from the content.
    tag: &'static str,
    /// The content, compressed by gzip.
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// Folder of the files whose names contain a hash of their content.
const HASHED: &str = "/assets/";

/// Headers of every file.
///
/// The policy admits scripts and styles of the gateway only, and no inline ones, so that text of a hostile tool that
/// became markup by mistake could not run. The page is in no frame of another page (clickjacking).
const HEADERS: [(HeaderName, HeaderValue); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// Returns the routes of the files.
pub(crate) fn routes() -> Router {
    FILES.iter().fold(Router::new(), |router, file| {
        let answer = |headers: HeaderMap| std::future::ready(file.response(&headers));
        let refuse = || std::future::ready(ProblemDetails::method_not_allowed());
        router.route(file.path, get(answer).fallback(refuse))
    })
}

impl ConsoleFile {
    /// Answers a request with these headers.
    fn response(&self, request: &HeaderMap) -> Response {
        let mut response = match is_current(request, self.tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => self.content(request),
        };
        let headers = response.headers_mut();
        headers.extend(HEADERS);
        headers.insert(header::ETAG, HeaderValue::from_static(self.tag));
        let caching = match self.path.starts_with(HASHED) {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        response
    }

    fn content(&self, request: &HeaderMap) -> Response {
        let mut response = match accepts_coding(request, "gzip") {
            true => ([(header::CONTENT_ENCODING, "gzip")], Body::from(self.gzip)).into_response(),
            // Few clients, and no browser.
            false => Body::from(self.text()).into_response(),
        };
        let media_type = HeaderValue::from_static(media_type(self.path));
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        response
    }

    fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // The build script has written it.
        let _length = GzDecoder::new(self.gzip).read_to_end(&mut text);
        text
    }
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}

/// True if the client has the content with this entity tag (RFC 9110, section 13.1.2).
fn is_current(request: &HeaderMap, tag: &str) -> bool {
    let known = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|tags| tags.split(',')).any(|known| {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        known.trim() == "*" || opaque(known) == opaque(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of all files, compressed.
    const MAX_BYTES: usize = 300_000;

    fn page(headers: &[(HeaderName, &'static str)]) -> Response {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        let page = FILES.iter().find(|file| file.path == "/").expect("the page");
        page.response(&headers.collect())
    }

    #[test]
    fn files_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        println!("{bytes} bytes in {} files", FILES.len());
        assert!(bytes < MAX_BYTES, "{bytes}");
    }

    #[test]
    fn content_is_compressed_for_clients_that_accept_it() {
        let check = |accepted: &'static str, is_compressed: bool| {
            let response = page(&[(header::ACCEPT_ENCODING, accepted)]);
            let is = response.headers().get(header::CONTENT_ENCODING).is_some();
            assert_eq!(is, is_compressed, "{accepted}");
        };
        check("gzip, deflate, br", true);
        check("deflate;q=1, GZIP;q=0.5", true);
        check("gzip;q=0, deflate", false);
        check("identity", false);
        check("", false);
    }

    #[test]
    fn known_content_is_not_sent_again() {
        let tag = page(&[]).headers()[header::ETAG].to_str().expect("a tag").to_owned();
        let status = |known: &str| {
            let request = [(header::IF_NONE_MATCH, HeaderValue::from_str(known).expect("a value"))];
            FILES
                .iter()
                .find(|file| file.tag == tag)
                .expect("the page")
                .response(&request.into_iter().collect())
                .status()
        };
        for (known, expected) in [
            (tag.clone(), 304),
            (tag.trim_start_matches("W/").to_owned(), 304),
            (format!("\"other\", {tag}"), 304),
            ("*".to_owned(), 304),
            ("\"other\"".to_owned(), 200),
        ] {
            assert_eq!(status(&known).as_u16(), expected, "{known}");
        }
    }

    #[test]
    fn page_has_no_inline_script_or_style() {
        let page = FILES.iter().find(|file| file.path == "/").expect("the page");
        let text = String::from_utf8(page.text()).expect("UTF-8");
        assert!(text.contains("<script type=\"module\""), "{text}");
        assert!(!text.contains("<style") && !text.contains(" style="), "{text}");
        assert!(!text.replace("></script>", "").contains("</script>"), "{text}");
        assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    }
}
