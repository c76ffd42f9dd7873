//! Gets pages, within limits.
//!
//! - [`error`]: the reasons why there is no page;
//! - `content_coding`: decompresses bodies;
//! - `host_rates`: limits requests to one host;
//! - `subresource`: requests of pages that a browser renders;
//! - `robots`: what `robots.txt` permits, and its cache.
//!
//! Every URL of a chain of redirects passes the same steps: hosts that the operator allows, requests to one host,
//! `robots.txt`, and addresses. The client resolves a name once and connects to checked addresses only.

mod content_coding;
pub mod error;
mod host_rates;
mod robots;
mod subresource;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::Full;
use toolyard_manifest::WebSettings;
use toolyard_net::body;
use toolyard_net::budget::ByteBudget;
use toolyard_net::client::ResponseBody;

pub use self::error::FetchError;
use self::host_rates::HostRates;
use self::robots::RobotsCache;
pub(crate) use self::subresource::{SubresourceRequest, SubresourceResponse};
use crate::host_patterns::any_matches;
use crate::shared_client::SharedClient;
use crate::web_url::{WebUrl, WebUrlError};

/// Maximum number of redirects of one page; browsers follow 20.
const MAX_REDIRECTS: usize = 10;

const ACCEPT: &str =
    "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.9, */*;q=0.1";

/// Codings that are decoded.
const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// Gets pages. Clones share their limits.
#[derive(Clone)]
pub struct PageFetcher(Arc<FetcherInner>);

struct FetcherInner {
    client: SharedClient,
    settings: Arc<WebSettings>,
    user_agent: HeaderValue,
    rates: HostRates,
    robots: RobotsCache,
    budget: ByteBudget,
}

/// A page as its server sent it, decompressed.
#[derive(Debug, Clone)]
pub struct FetchedPage {
    /// URL after redirects.
    pub url: WebUrl,
    /// `Content-Type`, if it is text.
    pub content_type: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl PageFetcher {
    /// Returns a fetcher, whose large pages take their bytes from a budget.
    #[must_use]
    pub fn new(settings: Arc<WebSettings>, client: SharedClient, budget: ByteBudget) -> Self {
        let user_agent = settings.user_agent.as_deref().unwrap_or(DEFAULT_USER_AGENT);
        let user_agent =
            HeaderValue::from_str(user_agent).unwrap_or(HeaderValue::from_static(DEFAULT_USER_AGENT));
        Self(Arc::new(FetcherInner {
            client,
            user_agent,
            rates: HostRates::new(settings.host_requests),
            robots: RobotsCache::default(),
            budget,
            settings,
        }))
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &WebSettings {
        &self.0.settings
    }

    /// Returns `User-Agent` of requests.
    pub(crate) fn user_agent(&self) -> &str {
        self.0.user_agent.to_str().unwrap_or(DEFAULT_USER_AGENT)
    }

    /// Gets a page and follows its redirects.
    ///
    /// # Errors
    /// Returns the reason if there is no page.
    pub async fn fetch(&self, url: &WebUrl) -> Result<FetchedPage, FetchError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            self.check_host(&url)?;
            self.check_robots(&url).await?;
            let response = self.send(&url).await?;
            match redirect_target(&url, &response)? {
                Some(target) => url = target,
                None => return self.read(url, response).await,
            }
        }
        Err(FetchError::TooManyRedirects(MAX_REDIRECTS))
    }

    /// Checks the host of a URL against the operator's list.
    ///
    /// # Errors
    /// Returns an error if the host is not on it.
    pub fn check_host(&self, url: &WebUrl) -> Result<(), FetchError> {
        match &self.0.settings.hosts {
            Some(hosts) if !any_matches(hosts, url) => Err(FetchError::HostNotAllowed(url.host())),
            _ => Ok(()),
        }
    }

    /// Checks a URL against the rules of its site. A site whose rules cannot be had permits nothing (RFC 9309, section
    /// 2.3.1.4), unless it answers that there are none.
    async fn check_robots(&self, url: &WebUrl) -> Result<(), FetchError> {
        if !self.0.settings.robots {
            return Ok(());
        }
        let rules = match self.0.robots.get(&url.origin()) {
            Some(rules) => rules,
            None => {
                let rules = self.robots_of(url).await?;
                self.0.robots.put(url.origin(), rules.clone());
                rules
            }
        };
        match rules.permits(self.user_agent(), url) {
            true => Ok(()),
            false => Err(FetchError::Robots(url.host())),
        }
    }

    async fn robots_of(&self, url: &WebUrl) -> Result<Arc<robots::RobotsRules>, FetchError> {
        let mut url = url.resolve("/robots.txt").map_err(FetchError::Url)?;
        for _ in 0..=robots::MAX_REDIRECTS {
            self.check_host(&url)?;
            let response = self.send(&url).await?;
            if let Some(target) = redirect_target(&url, &response)? {
                url = target;
                continue;
            }
            let status = response.status();
            if status.is_client_error() {
                break;
            }
            if !status.is_success() {
                return Err(FetchError::RobotsUnavailable(url.host(), status.as_u16()));
            }
            let headers = response.headers().clone();
            let (start, _) =
                body::read_start(response.into_body(), robots::MAX_BYTES).await.map_err(FetchError::Body)?;
            // A body in an unknown coding has no rules, as other texts without rules.
            let text = content_coding::decode_start(start, &headers, robots::MAX_BYTES).unwrap_or_default();
            return Ok(Arc::new(robots::RobotsRules::parse(&String::from_utf8_lossy(&text))));
        }
        Ok(Arc::default())
    }

    /// Sends a request for a URL.
    async fn send(&self, url: &WebUrl) -> Result<Response<ResponseBody>, FetchError> {
        self.0.rates.take(&url.host())?;
        let request = Request::get(url.uri().clone())
            .header(header::USER_AGENT, &self.0.user_agent)
            .header(header::ACCEPT, ACCEPT)
            .header(header::ACCEPT_ENCODING, ACCEPT_ENCODING)
            .body(Full::<Bytes>::default())
            .map_err(|_| FetchError::Url(WebUrlError::Invalid))?;
        self.exchange(url, request).await
    }

    /// Sends a request by the client for the host of its URL.
    async fn exchange(
        &self,
        url: &WebUrl,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, FetchError> {
        let clients = self.0.client.get().await?;
        let client = match any_matches(&self.0.settings.private_hosts, url) {
            true => &clients.any,
            false => &clients.public,
        };
        client.send(request).await.map_err(|error| FetchError::request(error, url))
    }

    async fn read(&self, url: WebUrl, response: Response<ResponseBody>) -> Result<FetchedPage, FetchError> {
        let status = response.status();
        if !status.is_success() {
            return Err(FetchError::Status { status, host: url.host() });
        }
        let headers = response.headers().clone();
        let limit = self.0.settings.page_bytes;
        let body = body::read_within(response.into_body(), limit, &self.0.budget).await;
        let body = content_coding::decode(body.map_err(FetchError::Body)?, &headers, limit)?;
        let content_type = text_of(&headers, &header::CONTENT_TYPE);
        Ok(FetchedPage { url, content_type, body })
    }
}

/// `User-Agent` of requests without another one.
pub const DEFAULT_USER_AGENT: &str = concat!("Toolyard/", env!("CARGO_PKG_VERSION"));

/// Returns the target of a redirect; `None` if the response is none.
fn redirect_target<B>(url: &WebUrl, response: &Response<B>) -> Result<Option<WebUrl>, FetchError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
    let location = String::from_utf8_lossy(location.as_bytes());
    url.resolve(&location).map(Some).map_err(FetchError::Redirect)
}

fn text_of(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
