//! Requests of a page that a browser renders.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use toolyard_net::body;

use super::{ACCEPT_ENCODING, FetchError, PageFetcher, content_coding};
use crate::host_patterns::any_matches;
use crate::web_url::{WebUrl, WebUrlError};

/// A request of a page.
pub(crate) struct SubresourceRequest<'a> {
    pub(crate) url: &'a WebUrl,
    /// URL of the page that was visited.
    pub(crate) page: &'a WebUrl,
    /// `true` if the response becomes the page.
    pub(crate) is_document: bool,
    /// Headers of the request.
    pub(crate) headers: HeaderMap,
    /// Maximum size of the response, in bytes.
    pub(crate) limit: usize,
}

/// A response with any status, decompressed.
#[derive(Debug)]
pub(crate) struct SubresourceResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl PageFetcher {
    /// Makes a request of a page, and follows no redirect.
    ///
    /// # Errors
    /// Returns the reason if there is no response.
    pub(crate) async fn fetch_subresource(
        &self,
        request: SubresourceRequest<'_>,
    ) -> Result<SubresourceResponse, FetchError> {
        let SubresourceRequest { url, page, is_document, mut headers, limit } = request;
        self.check_host(url)?;
        let is_own = url.origin() == page.origin();
        // A page must not use the gateway to reach hosts that its author cannot.
        if !is_own && any_matches(&self.settings().private_hosts, url) {
            return Err(FetchError::OtherPrivateHost(url.host()));
        }
        if is_document {
            self.check_robots(url).await?;
        }
        // The number of requests of a page is limited, and one of its own host is counted for the page itself.
        if !is_own {
            self.0.rates.take(&url.host())?;
        }
        headers.insert(header::USER_AGENT, self.0.user_agent.clone());
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING));
        let mut request = Request::get(url.uri().clone())
            .body(Full::<Bytes>::default())
            .map_err(|_| FetchError::Url(WebUrlError::Invalid))?;
        *request.headers_mut() = headers;
        let response = self.exchange(url, request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let limit = self.settings().page_bytes.min(limit);
        let body = body::read_within(response.into_body(), limit, &self.0.budget).await;
        let body = content_coding::decode(body.map_err(FetchError::Body)?, &headers, limit)?;
        Ok(SubresourceResponse { status, headers, body })
    }
}
