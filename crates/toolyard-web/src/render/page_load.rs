//! A page from its first request to its text.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use toolyard_manifest::ChromiumSettings;

use super::RenderError;
use super::devtools::{BrowserMessage, DevTools};
use super::paused_request::{PausedRequest, RequestKind};
use crate::fetch::{FetchError, FetchedPage, PageFetcher, SubresourceRequest, SubresourceResponse};
use crate::web_url::WebUrl;

/// Time of the clock of a page, in milliseconds. It stands still during requests and runs ahead of ours while the page
/// only waits, so that timers of some seconds fire at once.
const PAGE_TIME: u32 = 5_000;

/// Number of tasks after which the clock of a page moves on although the page does not wait.
const MAX_TASK_STARVATION: u32 = 10_000;

/// Number of concurrent requests of a page; more wait.
const CONCURRENT_REQUESTS: usize = 8;

/// Maximum number of nodes of a page that are read.
const MAX_NODES: usize = 300_000;

const READ_PAGE: &str = include_str!("read_page.js");

/// A page that a browser loads.
pub(super) struct PageLoad<'a> {
    devtools: &'a mut DevTools,
    fetcher: &'a PageFetcher,
    settings: &'a ChromiumSettings,
    page: &'a FetchedPage,
    /// The frame of the page, which is its only one that is loaded.
    frame: String,
    has_document: bool,
    /// `true` from the request for a document until it has come.
    is_navigating: bool,
    /// Number of requests that are still allowed.
    requests: usize,
    /// Number of bytes of responses that are still allowed.
    response_bytes: usize,
    waiting: VecDeque<(PausedRequest, WebUrl)>,
    running: FuturesUnordered<BoxFuture<'a, AnsweredRequest>>,
}

/// A request with the response of its server.
struct AnsweredRequest {
    request: PausedRequest,
    response: Result<SubresourceResponse, FetchError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedTarget {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AttachedTarget {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IsolatedWorld {
    execution_context_id: u64,
}

#[derive(Deserialize)]
struct Evaluated {
    result: EvaluatedValue,
}

#[derive(Deserialize)]
struct EvaluatedValue {
    /// URL, media type and text of a document.
    #[serde(default)]
    value: Option<(String, String, String)>,
}

impl<'a> PageLoad<'a> {
    /// Opens an empty page, in which every request is paused.
    pub(super) async fn open(
        devtools: &'a mut DevTools,
        fetcher: &'a PageFetcher,
        page: &'a FetchedPage,
    ) -> Result<Self, FetchError> {
        let target = devtools.call("Target.createTarget", &json!({"url": "about:blank"})).await?;
        let CreatedTarget { target_id } = read(target)?;
        let attach = json!({"targetId": target_id, "flatten": true});
        let AttachedTarget { session_id } = read(devtools.call("Target.attachToTarget", &attach).await?)?;
        devtools.session = Some(session_id);
        let commands = [
            ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
            ("Page.enable", json!({})),
            ("Inspector.enable", json!({})),
            ("Emulation.setUserAgentOverride", json!({"userAgent": fetcher.user_agent()})),
        ];
        for (command, parameters) in commands {
            devtools.call(command, &parameters).await?;
        }
        let settings = &fetcher.settings().chromium;
        Ok(Self {
            devtools,
            fetcher,
            settings,
            page,
            frame: target_id,
            has_document: false,
            is_navigating: true,
            requests: settings.requests,
            response_bytes: settings.response_bytes,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
        })
    }

    /// Loads the page, and returns it as its scripts leave it, or as it is at the deadline.
    pub(super) async fn finish(
        mut self,
        fragment: Option<&str>,
        deadline: Instant,
    ) -> Result<FetchedPage, FetchError> {
        let url = match fragment {
            Some(fragment) => format!("{}#{fragment}", self.page.url),
            None => self.page.url.to_string(),
        };
        self.devtools.send("Page.navigate", &json!({"url": url}));
        self.run(deadline).await?;
        self.read_page().await
    }

    /// Answers requests until the time of the page is over.
    async fn run(&mut self, deadline: Instant) -> Result<(), FetchError> {
        loop {
            tokio::select! {
                message = self.devtools.next() => {
                    if self.handle_event(message?)? {
                        return Ok(());
                    }
                }
                Some(answered) = self.running.next() => self.answer(answered)?,
                () = sleep_until(deadline) => return Ok(()),
            }
            self.start_waiting();
        }
    }

    /// Handles an event. Returns `true` if the page has done all it does within its time.
    fn handle_event(&mut self, message: BrowserMessage) -> Result<bool, FetchError> {
        match &*message.method {
            "Fetch.requestPaused" => self.pause(read(message.params)?),
            // The next document has a time of its own.
            "Emulation.virtualTimeBudgetExpired" => return Ok(!self.is_navigating),
            "Page.frameRequestedNavigation" if message.params["frameId"] == *self.frame => {
                self.is_navigating = true;
            }
            "Page.frameNavigated" if message.params["frame"]["id"] == *self.frame => {
                self.is_navigating = false;
                self.devtools.send("Emulation.setVirtualTimePolicy", &page_time());
            }
            // Scripts wait for the answer.
            "Page.javascriptDialogOpening" => {
                self.devtools.send("Page.handleJavaScriptDialog", &json!({"accept": false}));
            }
            "Inspector.targetCrashed" => return Err(RenderError::Ended.into()),
            _ => {}
        }
        Ok(false)
    }

    /// Answers a request, or lets it wait for its server.
    fn pause(&mut self, request: PausedRequest) {
        match request.kind(&self.frame) {
            RequestKind::Document if !self.has_document => {
                self.has_document = true;
                let response = document(self.page);
                self.devtools.send("Fetch.fulfillRequest", &request.fulfil(&response));
            }
            kind @ (RequestKind::Document | RequestKind::Subresource) => {
                match WebUrl::parse(&request.request.url) {
                    Ok(url) if self.requests > 0 => {
                        self.requests -= 1;
                        self.is_navigating |= kind == RequestKind::Document;
                        self.waiting.push_back((request, url));
                    }
                    _ => self.fail(&request),
                }
            }
            RequestKind::Style => {
                self.devtools.send("Fetch.fulfillRequest", &request.fulfil(&empty_style()));
            }
            RequestKind::Inline => {
                self.devtools.send("Fetch.continueRequest", &json!({"requestId": request.request_id}));
            }
            RequestKind::Other => self.fail(&request),
        }
    }

    fn fail(&mut self, request: &PausedRequest) {
        self.devtools.send("Fetch.failRequest", &request.fail());
    }

    /// Starts requests that wait.
    fn start_waiting(&mut self) {
        while self.running.len() < CONCURRENT_REQUESTS {
            let Some((request, url)) = self.waiting.pop_front() else { return };
            let (fetcher, page, limit) = (self.fetcher, &self.page.url, self.response_bytes);
            let is_document = request.kind(&self.frame) == RequestKind::Document;
            self.running.push(Box::pin(async move {
                let wanted =
                    SubresourceRequest { url: &url, page, is_document, headers: request.headers(), limit };
                let response = fetcher.fetch_subresource(wanted).await;
                AnsweredRequest { request, response }
            }));
        }
    }

    /// Passes a response to the browser.
    fn answer(&mut self, answered: AnsweredRequest) -> Result<(), FetchError> {
        let AnsweredRequest { request, response } = answered;
        match response {
            Ok(response) if response.body.len() <= self.response_bytes => {
                self.response_bytes -= response.body.len();
                self.devtools.send("Fetch.fulfillRequest", &request.fulfil(&response));
            }
            // A page that leads to another shows nothing itself.
            Err(error) if request.kind(&self.frame) == RequestKind::Document => return Err(error),
            Ok(_) | Err(_) => self.fail(&request),
        }
        Ok(())
    }

    /// Returns the document as HTML, or as the text that it is.
    async fn read_page(&mut self) -> Result<FetchedPage, FetchError> {
        let world = json!({"frameId": self.frame, "worldName": "toolyard"});
        let world: IsolatedWorld = read(self.devtools.call("Page.createIsolatedWorld", &world).await?)?;
        let limit = self.settings.dom_bytes;
        let evaluate = json!({
            "contextId": world.execution_context_id,
            "expression": format!("({READ_PAGE})({limit}, {MAX_NODES})"),
            "returnByValue": true,
        });
        let evaluated: Evaluated = read(self.devtools.call("Runtime.evaluate", &evaluate).await?)?;
        let Some((url, media_type, mut text)) = evaluated.result.value else {
            return Err(RenderError::Protocol("its document cannot be read".to_owned()).into());
        };
        let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        Ok(FetchedPage {
            url: WebUrl::parse(&url).map_err(FetchError::Redirect)?,
            content_type: Some(format!("{media_type}; charset=utf-8")),
            body: text.into(),
        })
    }
}

/// Returns the parameters of `Emulation.setVirtualTimePolicy` for a document.
fn page_time() -> Value {
    json!({
        "policy": "pauseIfNetworkFetchesPending",
        "budget": PAGE_TIME,
        "maxVirtualTimeTaskStarvationCount": MAX_TASK_STARVATION,
    })
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, RenderError> {
    serde_json::from_value(value)
        .map_err(|_| RenderError::Protocol("it answered in another form than documented".to_owned()))
}

/// Returns the response for the page that was visited before.
fn document(page: &FetchedPage) -> SubresourceResponse {
    let mut headers = HeaderMap::new();
    let content_type = page.content_type.as_deref().and_then(|value| HeaderValue::try_from(value).ok());
    headers.insert(header::CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("text/html")));
    SubresourceResponse { status: StatusCode::OK, headers, body: page.body.clone() }
}

fn empty_style() -> SubresourceResponse {
    let any = HeaderValue::from_static("*");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/css")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, any),
    ];
    SubresourceResponse { status: StatusCode::OK, headers: headers.into_iter().collect(), body: Bytes::new() }
}
