//! The reasons why there is no page, as models read them.

use std::time::Duration;

use http::StatusCode;
use toolyard_net::body::BodyReadError;
use toolyard_net::client::RequestError;

use crate::render::RenderError;
use crate::shared_client::NoClient;
use crate::web_url::{WebUrl, WebUrlError};

/// The reason why there is no page. The texts name hosts of the call and of redirects, and no addresses.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URL cannot be visited.
    #[error("The URL cannot be visited: {0}.")]
    Url(#[source] WebUrlError),
    /// A redirect leads to a URL that cannot be visited.
    #[error("The page redirects to a URL that cannot be visited: {0}.")]
    Redirect(#[source] WebUrlError),
    /// The chain of redirects is too long.
    #[error("The page redirects more than {0} times.")]
    TooManyRedirects(usize),
    /// The operator does not allow the host.
    #[error("The host {0} cannot be visited: the operator of this gateway allows other hosts only.")]
    HostNotAllowed(String),
    /// The host has no public address.
    #[error("The host {0} cannot be visited: it has no public address.")]
    NotPublic(String),
    /// The scripts of a page lead to another host with a private address.
    #[error("The scripts of the page lead to the private host {0}: visit it by a URL of its own.")]
    OtherPrivateHost(String),
    /// The site does not permit the page.
    #[error("The site {0} does not permit automatic visits of this page (robots.txt). Use another source.")]
    Robots(String),
    /// The rules of the site are unknown.
    #[error(
        "The robots.txt of {0} answered with status {1}, so that no page of it may be visited. Try again later."
    )]
    RobotsUnavailable(String, u16),
    /// Too many requests to the host.
    #[error("There are too many requests to {host}: try again in {seconds} s, or use another source.")]
    TooManyRequests {
        /// The host.
        host: String,
        /// Time until the next request, in seconds.
        seconds: u64,
    },
    /// The server cannot be reached.
    #[error("The host {host} cannot be reached: {reason}.")]
    Unreachable {
        /// The host.
        host: String,
        /// The reason, which names no address.
        reason: &'static str,
        /// The cause.
        #[source]
        cause: RequestError,
    },
    /// The server refuses the page.
    #[error("{host} answered with status {status}.")]
    Status {
        /// The status.
        status: StatusCode,
        /// The host.
        host: String,
    },
    /// The body is too large, or ended early.
    #[error("The page cannot be read: {0}.")]
    Body(#[source] BodyReadError),
    /// The body cannot be decompressed.
    #[error("The page cannot be decompressed: {0}.")]
    Coding(String),
    /// The page is not a text.
    #[error(
        "The content type `{0}` cannot be read here: only HTML and other texts. Look for an HTML version."
    )]
    MediaType(String),
    /// The page has no text.
    #[error("The page has no text. It may need scripts, which are not run here: use another source.")]
    Empty,
    /// The part of the page that is within the limits of parsing has no text.
    #[error("The HTML of the page is too complex to be read here. Use another source.")]
    TooComplex,
    /// The page has no text after its scripts ran.
    #[error("The page has no text, even after its scripts ran. It may need a person: use another source.")]
    EmptyRendered,
    /// The page could not be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The time is over.
    #[error("The page took longer than {} s.", .0.as_secs())]
    TooSlow(Duration),
    /// The page could not be converted.
    #[error("The page cannot be converted.")]
    Conversion,
    /// The client could not be made.
    #[error(transparent)]
    Client(#[from] NoClient),
}

impl FetchError {
    /// Returns the error of a request.
    pub(super) fn request(error: RequestError, url: &WebUrl) -> Self {
        match error {
            RequestError::NotPublic => Self::NotPublic(url.host()),
            cause => Self::Unreachable { host: url.host(), reason: cause.reason(), cause },
        }
    }
}
